//! The scale sub-resource of a custom kind: where its numbers are, by JSON path.

use convoy_api::schema::FieldError;
use serde_json::{Map, Value, json};

use crate::status::{Answer, Status};

/// Paths with a leading dot, as the definition writes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scale {
    pub spec_replicas: String,
    pub status_replicas: String,
    pub label_selector: Option<String>,
}

impl Scale {
    /// How many replicas an object wants. An object that does not say cannot be scaled.
    pub fn wanted(&self, object: &Value) -> Answer<i64> {
        let found = at(object, &self.spec_replicas).and_then(Value::as_i64);
        found.ok_or_else(|| {
            let path = &self.spec_replicas;
            Status::internal(format!("the spec replicas field {path:?} does not exist"))
        })
    }

    /// How many replicas an object has; none unless it says so.
    pub fn observed(&self, object: &Value) -> i64 {
        at(object, &self.status_replicas).and_then(Value::as_i64).unwrap_or(0)
    }

    /// Which pods are counted, as a selector's text.
    pub fn selector<'o>(&self, object: &'o Value) -> Option<&'o str> {
        at(object, self.label_selector.as_ref()?)?.as_str()
    }

    /// Writes the wanted number, making the objects on its path.
    pub fn set_wanted(&self, object: &mut Value, replicas: i64) {
        let mut value = object;
        for name in parts(&self.spec_replicas) {
            if !value.is_object() {
                *value = Value::Object(Map::new());
            }
            let fields = value.as_object_mut().expect("made an object above");
            value = fields.entry(name).or_insert(Value::Null);
        }
        *value = json!(replicas);
    }

    /// Numbers of replicas are 32 bits wide and not negative.
    pub(super) fn validate(&self, object: &Value) -> Vec<FieldError> {
        let paths = [&self.spec_replicas, &self.status_replicas];
        let errors = paths.into_iter().filter_map(|path| {
            let number = at(object, path)?.as_i64()?;
            let detail = match number {
                ..0 => "should be a non-negative integer",
                _ if i32::try_from(number).is_err() => "should be less than or equal to 2147483647",
                _ => return None,
            };
            Some(FieldError::invalid(path.trim_start_matches('.'), &json!(number), detail))
        });
        errors.collect()
    }
}

fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('.').filter(|part| !part.is_empty())
}

fn at<'v>(object: &'v Value, path: &str) -> Option<&'v Value> {
    parts(path).try_fold(object, |value, part| value.get(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_and_set_by_their_paths() {
        let scale = Scale {
            spec_replicas: ".spec.size.replicas".to_owned(),
            status_replicas: ".status.replicas".to_owned(),
            label_selector: Some(".status.selector".to_owned()),
        };
        let mut object = json!({"spec": {}, "status": {"replicas": 5, "selector": "a=b"}});
        let refused = scale.wanted(&object).unwrap_err();
        assert!(refused.message.contains("\".spec.size.replicas\" does not exist"));
        scale.set_wanted(&mut object, 3);
        assert_eq!(object["spec"], json!({"size": {"replicas": 3}}));
        assert_eq!((scale.wanted(&object).unwrap(), scale.observed(&object)), (3, 5));
        assert_eq!(scale.selector(&object), Some("a=b"));
        assert!(scale.validate(&object).is_empty());
        scale.set_wanted(&mut object, -1);
        assert_eq!(scale.validate(&object)[0].field, "spec.size.replicas");
    }
}
