//! What higher layers keep with a server or a cluster: found by its type, and known to those alone
//! who put it there.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::RwLock;

/// One value of each type.
#[derive(Default)]
pub(crate) struct Attached {
    values: RwLock<BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

impl Attached {
    /// The value of this type, made when it is asked for first.
    pub(crate) fn get<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let of_type = TypeId::of::<T>();
        let known = self.values.read().get(&of_type).cloned();
        let value = known.unwrap_or_else(|| {
            let mut values = self.values.write();
            Arc::clone(values.entry(of_type).or_insert_with(|| Arc::new(make())))
        });
        value.downcast().expect("values are kept by their type")
    }

    /// Puts a value in the place of the one that was there.
    pub(crate) fn set<T: Any + Send + Sync>(&self, value: T) {
        self.values.write().insert(TypeId::of::<T>(), Arc::new(value));
    }
}

impl fmt::Debug for Attached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attached").finish_non_exhaustive()
    }
}
