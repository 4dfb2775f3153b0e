//! What was read of objects, kept from one decision to the next.
//!
//! A decision about thousands of nodes reads all of them, and between two decisions few of them
//! change. Reading them anew is most of what the second one costs: their JSON lies all over the
//! memory, and what was read of it lies side by side here. A reading follows from one object
//! alone, so it is right as long as the object is the same; decisions do not depend on whether
//! anything is remembered, only their speed does.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use convoy_api::Object;
use smol_str::SmolStr;

use crate::parallel;

/// An object and what was read of it.
pub(crate) type Reading<T> = (Object, T);

/// The last readings of each type, by cluster.
#[derive(Default)]
pub(crate) struct Memory {
    last: Mutex<BTreeMap<(TypeId, SmolStr), Arc<dyn Any + Send + Sync>>>,
}

impl Memory {
    /// What `read` makes of each of `objects`, which are in key order; of those that are the same
    /// as in the last call, what it made then.
    pub(crate) fn read<T: Clone + Send + Sync + 'static>(
        &self,
        cluster: &SmolStr,
        objects: &[&Object],
        read: impl Fn(&Object) -> T + Sync,
    ) -> Arc<Vec<Reading<T>>> {
        let slot = (TypeId::of::<T>(), cluster.clone());
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).remove(&slot);
        let last = last.and_then(|last| last.downcast::<Vec<Reading<T>>>().ok());
        let readings = match last {
            Some(last) if is_same(&last, objects) => last,
            Some(last) => Arc::new(renewed(Arc::unwrap_or_clone(last), objects, &read)),
            None => Arc::new(parallel::map(objects, |object| ((*object).clone(), read(object)))),
        };
        let kept: Arc<dyn Any + Send + Sync> = Arc::clone(&readings) as _;
        self.last.lock().unwrap_or_else(PoisonError::into_inner).insert(slot, kept);
        readings
    }
}

fn is_same<T>(readings: &[Reading<T>], objects: &[&Object]) -> bool {
    readings.len() == objects.len()
        && readings.iter().zip(objects).all(|((known, _), object)| known.is_same(object))
}

/// The readings of `objects`, taken from the last ones where the object is the same.
fn renewed<T>(
    last: Vec<Reading<T>>,
    objects: &[&Object],
    read: &impl Fn(&Object) -> T,
) -> Vec<Reading<T>> {
    let mut last = last.into_iter().peekable();
    let reading = |object: &&Object| {
        while last.next_if(|(known, _)| known.key() < object.key()).is_some() {}
        match last.next_if(|(known, _)| known.is_same(object)) {
            Some(known) => known,
            None => ((*object).clone(), read(object)),
        }
    };
    objects.iter().map(reading).collect()
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::json;

    use super::*;

    fn node(name: &str, size: i64) -> Object {
        let raw = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
            "spec": {"size": size}});
        Object::from_value(raw).unwrap()
    }

    #[test]
    fn only_what_changed_is_read_again() {
        let (memory, reads) = (Memory::default(), AtomicUsize::new(0));
        let size = |object: &Object| {
            reads.fetch_add(1, Ordering::Relaxed);
            object.spec()["size"].as_i64().unwrap()
        };
        let sizes = |objects: &[Object]| -> (Vec<i64>, usize) {
            reads.store(0, Ordering::Relaxed);
            let objects: Vec<&Object> = objects.iter().collect();
            let readings = memory.read(&SmolStr::default(), &objects, size);
            assert!(readings.iter().zip(&objects).all(|((known, _), object)| known == *object));
            (readings.iter().map(|(_, size)| *size).collect(), reads.load(Ordering::Relaxed))
        };
        let [a, b, c] = [node("a", 1), node("b", 2), node("c", 3)];
        assert_eq!(sizes(&[a.clone(), b.clone(), c.clone()]), (vec![1, 2, 3], 3));
        assert_eq!(sizes(&[a.clone(), b.clone(), c.clone()]), (vec![1, 2, 3], 0));
        assert_eq!(sizes(&[a.clone(), node("b", 7), c.clone()]), (vec![1, 7, 3], 1));
        assert_eq!(sizes(&[a.clone(), c.clone()]), (vec![1, 3], 0));
        assert_eq!(sizes(&[node("0", 9), a, node("d", 4)]), (vec![9, 1, 4], 2));
        assert_eq!(sizes(&[]), (vec![], 0));
    }
}
