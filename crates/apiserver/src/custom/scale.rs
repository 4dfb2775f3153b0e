//! The scale sub-resource of a custom kind: where its numbers are, by JSON path, and what they
//! may be.

use convoy_api::schema::FieldError;
use serde_json::{Value, json};

/// Paths with a leading dot, as the definition writes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scale {
    pub spec_replicas: String,
    pub status_replicas: String,
    pub label_selector: Option<String>,
}

impl Scale {
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

fn at<'v>(object: &'v Value, path: &str) -> Option<&'v Value> {
    let mut parts = path.split('.').filter(|part| !part.is_empty());
    parts.try_fold(object, |value, part| value.get(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_replicas_are_small_and_not_negative() {
        let scale = Scale {
            spec_replicas: ".spec.size.replicas".to_owned(),
            status_replicas: ".status.replicas".to_owned(),
            label_selector: None,
        };
        let cases: [(Value, Value, &[&str]); 4] = [
            (json!(0), json!(3), &[]),
            (Value::Null, Value::Null, &[]),
            (json!(-1), json!(3), &["spec.size.replicas"]),
            (json!(1), json!(1_i64 << 31), &["status.replicas"]),
        ];
        for (wanted, present, expected) in cases {
            let object =
                json!({"spec": {"size": {"replicas": wanted}}, "status": {"replicas": present}});
            let errors = scale.validate(&object);
            let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
            assert_eq!(fields, expected, "{object}");
        }
    }
}
