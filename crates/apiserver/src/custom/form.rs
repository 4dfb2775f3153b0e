//! A compiled schema, compiled on first use and shared by every logical cluster that
//! has the same schema: a hundred clusters with the same definitions compile them once.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Weak};

use convoy_api::schema::Schema;
use parking_lot::Mutex;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::shape::{Shape, ShapeId, Shapes};
use crate::types::from_schema;

type Lazy<T> = LazyLock<T, Box<dyn FnOnce() -> T + Send>>;
type Digested = [u8; 32];

/// One `openAPIV3Schema`.
#[derive(Debug)]
pub struct CustomForm {
    pub schema: Lazy<Schema>,
    shapes: Lazy<(Shapes, ShapeId)>,
    /// As it was written. Text takes a tenth of what the parsed value does, and few ask for it.
    text: Arc<str>,
    digest: Digested,
}

impl CustomForm {
    pub fn of(schema: &Value) -> Arc<Self> {
        static KNOWN: LazyLock<Mutex<BTreeMap<Digested, Weak<CustomForm>>>> =
            LazyLock::new(Mutex::default);
        let text: Arc<str> = schema.to_string().into();
        let digest: Digested = Sha256::digest(text.as_bytes()).into();
        let mut known = KNOWN.lock();
        if let Some(form) = known.get(&digest).and_then(Weak::upgrade) {
            return form;
        }
        known.retain(|_, form| form.strong_count() > 0);
        let form = Arc::new(Self::new(text, digest));
        known.insert(digest, Arc::downgrade(&form));
        form
    }

    fn new(text: Arc<str>, digest: Digested) -> Self {
        let (for_schema, for_shapes) = (Arc::clone(&text), Arc::clone(&text));
        Self {
            schema: LazyLock::new(Box::new(move || Schema::from_json(&parsed(&for_schema)))),
            shapes: LazyLock::new(Box::new(move || from_schema(&parsed(&for_shapes)))),
            text,
            digest,
        }
    }

    /// The form of the whole object.
    pub fn shape(&self) -> Shape<'_> {
        let (shapes, id) = &*self.shapes;
        shapes.get(*id)
    }

    /// The `openAPIV3Schema` as it was written.
    pub fn open_api(&self) -> Value {
        parsed(&self.text)
    }

    /// Tells schemas apart.
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// Whether anything is ever filled in. A property of that name, or a text that looks like
    /// it, makes reads slower and no answer wrong.
    pub fn has_defaults(&self) -> bool {
        self.text.contains("\"default\":")
    }
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("it was printed from a value")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_schemas_are_one() {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object",
            "properties": {"size": {"type": "integer", "default": 3}}}}});
        let form = CustomForm::of(&schema);
        assert!(Arc::ptr_eq(&form, &CustomForm::of(&schema)));
        assert!(form.has_defaults() && form.open_api() == schema);
        let other = CustomForm::of(&json!({"type": "object"}));
        assert!(!Arc::ptr_eq(&form, &other) && !other.has_defaults());
        assert_ne!(form.digest(), other.digest());
        assert!(form.shape().child("spec").is_some());
    }
}
