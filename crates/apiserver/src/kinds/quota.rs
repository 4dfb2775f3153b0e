//! Resource quotas: which objects they count does not change.

use serde_json::Value;

use super::at::{At, Errors};
use super::kind::{Change, Kind};

pub(super) fn validate(object: &Value, old: Option<&Value>) -> Errors {
    let mut errors = Errors::new();
    if let Some(old) = old {
        let scopes = |object| At::root(object).get("spec").get("scopes");
        scopes(object).immutable(&scopes(old), &mut errors);
    }
    errors
}

pub(super) struct Quota;

impl Kind for Quota {
    fn validate(&self, change: &Change<'_>) -> Errors {
        validate(change.object, change.old)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn scopes_do_not_change() {
        let quota = |scope: &str| json!({"spec": {"scopes": [scope], "hard": {"pods": "1"}}});
        assert!(validate(&quota("BestEffort"), Some(&quota("BestEffort"))).is_empty());
        let refused = validate(&quota("NotBestEffort"), Some(&quota("BestEffort")));
        assert_eq!(
            refused[0].to_string(),
            "spec.scopes: Invalid value: [\"NotBestEffort\"]: field is immutable"
        );
    }
}
