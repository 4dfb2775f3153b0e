//! Condition rules: conditions of a manifest that its work defines by expressions over the object.

use convoy_api::Object;
use convoy_api::cel::{Program, Scope};
use convoy_api::object::member::{list, text};
use serde_json::{Value, json};

use crate::condition::{Condition, truth};
use crate::dialect::ocm_agent::names::{COMPLETE, RULE_EVALUATED, RULE_FAILED, RULE_INVALID};

/// A rule with the expressions that decide it, all of which have to hold.
struct Rule<'r> {
    condition: &'r str,
    expressions: Vec<&'r str>,
    message: &'r str,
    message_expression: &'r str,
}

/// The conditions that rules give, in their order. A well-known condition that the kind does not
/// have gives none.
pub(crate) fn conditions<'r>(live: &Object, rules: &'r [Value]) -> Vec<Condition<'r>> {
    rules.iter().filter_map(|rule| condition(live, rule)).collect()
}

fn condition<'r>(live: &Object, given: &'r Value) -> Option<Condition<'r>> {
    let kind = text(given, "condition");
    let mut rule = Rule {
        condition: kind,
        expressions: Vec::new(),
        message: text(given, "message"),
        message_expression: text(given, "messageExpression"),
    };
    match text(given, "type") {
        "CEL" => {
            let expressions = list(given, "celExpressions").iter();
            rule.expressions = expressions.filter_map(Value::as_str).collect();
        }
        "WellKnownConditions" => {
            let (expression, message) = well_known(live, kind)?;
            rule.expressions.push(expression);
            if rule.message_expression.is_empty() && rule.message.is_empty() {
                rule.message_expression = message;
            }
        }
        other => {
            let message = format!("unrecognized condition rule type {other}");
            return Some(Condition::new(kind, "Unknown", RULE_INVALID, message));
        }
    }
    Some(match rule.holds(live) {
        Ok(holds) => {
            let message = rule.told(live, holds);
            Condition::new(kind, truth(holds), RULE_EVALUATED, message)
        }
        Err(message) => Condition::new(kind, "False", RULE_FAILED, message),
    })
}

/// The expression of a well-known condition, and that of its message.
fn well_known(live: &Object, condition: &str) -> Option<(&'static str, &'static str)> {
    match (live.api_version(), live.kind().kind.as_str(), condition) {
        ("batch/v1", "Job", COMPLETE) => Some((
            "hasConditions(object.status) && object.status.conditions.exists(it, \
             it.type in ['Complete', 'Failed'] && it.status == 'True')",
            "'Job is ' + (result ? '' : 'not ') + 'finished'",
        )),
        ("v1", "Pod", COMPLETE) => Some((
            "object.status.phase in ['Succeeded', 'Failed']",
            "'Pod is in phase ' + object.status.phase",
        )),
        _ => None,
    }
}

impl Rule<'_> {
    fn holds(&self, live: &Object) -> Result<bool, String> {
        let scope = scope(live);
        for expression in &self.expressions {
            let program = Program::compile(expression).map_err(|error| error.to_string())?;
            if !program.test(&scope).map_err(|error| error.to_string())? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The message, or why there is none.
    fn told(&self, live: &Object, holds: bool) -> String {
        if !self.message_expression.is_empty() {
            let scope = scope(live).variable("result", &json!(holds));
            match evaluated(self.message_expression, &scope) {
                Ok(message) if !message.is_empty() => return message,
                Ok(_) => {}
                Err(why) => return why,
            }
        }
        if !self.message.is_empty() {
            return self.message.to_owned();
        }
        let not = if holds { "" } else { "not " };
        format!("Manifest is {not}{}", self.condition)
    }
}

fn evaluated(expression: &str, scope: &Scope) -> Result<String, String> {
    let program = Program::compile(expression).map_err(|error| error.to_string())?;
    match program.evaluate(scope).map_err(|error| error.to_string())? {
        Value::String(message) => Ok(message),
        other => Err(format!(
            "expected message expression to have a string result, got {}",
            convoy_api::object::shape(&other)
        )),
    }
}

fn scope(live: &Object) -> Scope {
    Scope::new().variable("object", live.raw()).function("hasConditions", |arguments| {
        let status = arguments.first().unwrap_or(&Value::Null);
        Ok(json!(!list(status, "conditions").is_empty()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(finished: bool) -> Object {
        let status = if finished {
            json!({"succeeded": 1, "conditions": [{"type": "Failed", "status": "True"}]})
        } else {
            json!({})
        };
        Object::from_value(json!({"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": "once", "namespace": "shop"}, "status": status}))
        .unwrap()
    }

    fn told(live: &Object, rule: Value) -> (String, String, String) {
        let rules = [rule];
        let found = conditions(live, &rules);
        let it = found.first().expect("a condition");
        (it.status.to_owned(), it.reason.to_string(), it.message.to_string())
    }

    fn expect(status: &str, reason: &str, message: &str) -> (String, String, String) {
        (status.to_owned(), reason.to_owned(), message.to_owned())
    }

    #[test]
    fn a_job_is_complete_when_it_has_ended() {
        let rule = json!({"condition": "Complete", "type": "WellKnownConditions"});
        assert_eq!(
            told(&job(true), rule.clone()),
            expect("True", RULE_EVALUATED, "Job is finished")
        );
        let open = expect("False", RULE_EVALUATED, "Job is not finished");
        assert_eq!(told(&job(false), rule.clone()), open);
        let mut said = rule.clone();
        said["message"] = json!("done");
        assert_eq!(told(&job(true), said), expect("True", RULE_EVALUATED, "done"));
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
        let secret = Object::from_value(secret).unwrap();
        assert_eq!(conditions(&secret, &[rule]), [], "no such condition");
    }

    #[test]
    fn expressions_decide_and_give_the_message() {
        let cel = |expressions: Value| json!({"condition": "Progressing", "type": "CEL", "celExpressions": expressions});
        let job = job(true);
        assert_eq!(
            told(&job, cel(json!(["object.status.succeeded > 0", "object.status.succeeded > 1"]))),
            expect("False", RULE_EVALUATED, "Manifest is not Progressing")
        );
        let mut said = cel(json!(["true"]));
        said["messageExpression"] = json!("result ? 'yes' : 'no'");
        assert_eq!(told(&job, said.clone()), expect("True", RULE_EVALUATED, "yes"));
        said["messageExpression"] = json!("''");
        assert_eq!(told(&job, said), expect("True", RULE_EVALUATED, "Manifest is Progressing"));
        for broken in [json!(["object.status.succeeded"]), json!(["object.nothing"]), json!(["("])]
        {
            let (status, reason, _) = told(&job, cel(broken));
            assert_eq!((status.as_str(), reason.as_str()), ("False", RULE_FAILED));
        }
        let unknown = json!({"condition": "X", "type": "Lua"});
        let message = "unrecognized condition rule type Lua";
        assert_eq!(told(&job, unknown), expect("Unknown", RULE_INVALID, message));
    }
}
