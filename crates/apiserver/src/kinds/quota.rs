//! Resource quotas: which objects they count does not change.

use serde_json::{Value, json};

use super::at::{At, Errors};
use super::kind::{Change, Kind};
use crate::column::Cell::Made;
use crate::column::{AGE, Column, NAME, Row, plain, string};

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

    fn columns(&self) -> &'static [Column] {
        const { &[NAME, string("Request", Made(requests)), string("Limit", Made(limits)), AGE] }
    }
}

fn requests(row: &Row<'_>) -> Value {
    amounts(row, false)
}

fn limits(row: &Row<'_>) -> Value {
    amounts(row, true)
}

fn amounts(row: &Row<'_>, limits: bool) -> Value {
    let hard = row.object["status"]["hard"].as_object().into_iter().flatten();
    let used = &row.object["status"]["used"];
    let mut terms: Vec<String> = hard
        .filter(|(name, _)| name.starts_with("limits.") == limits)
        .map(|(name, hard)| {
            let used = match plain(&used[name.as_str()]) {
                used if used.is_empty() => "0".to_owned(),
                used => used,
            };
            format!("{name}: {used}/{}", plain(hard))
        })
        .collect();
    terms.sort();
    json!(terms.join(", "))
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
