//! Match conditions: CEL expressions that narrow down the requests of a webhook or a policy.

use convoy_api::cel::{Program, Scope};
use serde_json::Value;

use super::audience::Subject;
use super::authorizer::{self, with_authorizer};

#[derive(Debug)]
pub(super) struct Condition {
    name: String,
    program: Result<Program, String>,
}

/// Whether conditions hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Match {
    Yes,
    No,
    /// A condition could not be evaluated, and `failurePolicy` does not ignore that.
    Unknown(String),
}

/// Whether all conditions hold; a false one outweighs one that cannot be evaluated.
pub(super) fn all_hold(conditions: &[Condition], ignores_failure: bool, scope: &Scope) -> Match {
    let mut unknown = None;
    for condition in conditions {
        match condition.holds(scope) {
            Ok(true) => {}
            Ok(false) => return Match::No,
            Err(why) => unknown = Some(why),
        }
    }
    match unknown {
        None => Match::Yes,
        Some(_) if ignores_failure => Match::No,
        Some(why) => Match::Unknown(why),
    }
}

/// The variables that every expression has; `asks` if one of them uses `authorizer`.
pub(super) fn scope(subject: &Subject<'_>, asks: bool) -> Scope {
    let scope = Scope::new()
        .variable("object", subject.object.unwrap_or(&Value::Null))
        .variable("oldObject", subject.old.unwrap_or(&Value::Null))
        .variable("request", subject.admission_request)
        // Told to policies alone, who say what it is after this.
        .variable("namespaceObject", &Value::Null);
    if asks { with_authorizer(scope, subject) } else { scope }
}

impl Condition {
    pub(super) fn read(condition: &Value) -> Self {
        let expression = condition["expression"].as_str().unwrap_or_default();
        Self {
            name: condition["name"].as_str().unwrap_or_default().to_owned(),
            program: Program::compile(expression).map_err(|error| error.to_string()),
        }
    }

    /// Whether it uses `authorizer`.
    pub(super) fn asks(&self) -> bool {
        self.program.as_ref().is_ok_and(|program| program.mentions(authorizer::NAME))
    }

    fn holds(&self, scope: &Scope) -> Result<bool, String> {
        let program = self.program.as_ref().map_err(Clone::clone)?;
        program.test(scope).map_err(|error| format!("{}: {error}", self.name))
    }
}
