//! The rules of a schema: that they are written down properly, that they compile, and that they
//! are about what the schema declares.

use serde_json::{Value, json};

use super::{Check, Level, SchemaPosition};
use crate::cel::{Declared, Program, Type, type_of};
use crate::schema::declared::self_type;
use crate::schema::go;

const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

impl Check {
    pub(super) fn rules(&mut self, schema: &Value, position: &SchemaPosition) {
        let rules = schema["x-kubernetes-validations"].as_array().into_iter().flatten();
        for (index, rule) in rules.enumerate() {
            let keyword = format!("x-kubernetes-validations[{index}]");
            self.words(rule, schema, position, &keyword);
            self.expressions(rule, schema, position, &keyword);
        }
    }

    /// What can be wrong with a rule beside its expressions.
    fn words(&mut self, rule: &Value, schema: &Value, position: &SchemaPosition, keyword: &str) {
        let text = |name: &str| rule[name].as_str().unwrap_or_default();
        let trimmed = |name: &str| text(name).trim();
        let shown = |name: &str| go::shown(&rule[name]);
        let mut error = |name: &str, message: &str| {
            self.error(position, &format!("{keyword}.{name}"), message);
        };
        if trimmed("rule").is_empty() {
            error("rule", "Required value: rule is not specified");
        }
        if !text("message").is_empty() && trimmed("message").is_empty() {
            error("message", &format!("{}: must be non-empty if specified", shown("message")));
        } else if trimmed("message").contains(['\n', '\r']) {
            error("message", &format!("{}: must not contain line breaks", shown("message")));
        } else if trimmed("rule").contains(['\n', '\r']) && trimmed("message").is_empty() {
            let detail = "Required value: message must be specified if rule contains line breaks";
            error("message", detail);
        }
        if !text("messageExpression").is_empty() && trimmed("messageExpression").is_empty() {
            let detail = "Required value: messageExpression must be non-empty if specified";
            error("messageExpression", detail);
        }
        if rule["reason"].as_str().is_some_and(|reason| !REASONS.contains(&reason)) {
            let supported = REASONS.map(|reason| format!("{reason:?}")).join(", ");
            let shown = shown("reason");
            error("reason", &format!("Unsupported value: {shown}: supported values: {supported}"));
        }
        let path = trimmed("fieldPath");
        if !path.is_empty() && !is_path(schema, path) {
            error("fieldPath", &format!("{}: must be a valid path", shown("fieldPath")));
        }
    }

    /// What the compiler says, which is told where nothing else is wrong.
    fn expressions(
        &mut self,
        rule: &Value,
        schema: &Value,
        position: &SchemaPosition,
        keyword: &str,
    ) {
        let text = |name: &str| rule[name].as_str().unwrap_or_default().trim();
        let (source, message) = (text("rule"), text("messageExpression"));
        let mut compiled = Vec::new();
        let mut error = |name: &str, message: &str| {
            compiled.push(format!("{}.{keyword}.{name}: {message}", position.path));
        };
        let is_embedded = schema["x-kubernetes-embedded-resource"] == true;
        let Some(own) = self_type(schema, position.level == Level::Root || is_embedded) else {
            error("rule", &format!("{}: the schema does not say what self is", as_go(rule)));
            self.compiled.extend(compiled);
            return;
        };
        let is_optional = rule["optionalOldSelf"] == true;
        let old = if is_optional { Type::optional(own.clone()) } else { own.clone() };
        let declared = Declared::new().variable("self", own).variable("oldSelf", old);
        let found = type_of(source, &declared);
        let is_sound = found.is_ok();
        match found {
            Err(why) => error("rule", &format!("{}: compilation failed: {why}", as_go(rule))),
            Ok(Type::Bool) => {}
            Ok(_) => {
                let detail = "cel expression must evaluate to a bool";
                error("rule", &format!("{}: {detail}", as_go(rule)));
            }
        }
        let uses_old = Program::compile(source).is_ok_and(|program| program.mentions("oldSelf"));
        if let Some(list) = position.uncorrelatable.as_ref().filter(|_| uses_old) {
            error(
                "rule",
                &format!(
                    "{}: oldSelf cannot be used on the uncorrelatable portion of the schema within {list}",
                    go::shown(&json!(source))
                ),
            );
        }
        if (!uses_old || !is_sound) && !rule["optionalOldSelf"].is_null() {
            let shown = &rule["optionalOldSelf"];
            let detail = "may not be set if oldSelf is not used in rule";
            error("optionalOldSelf", &format!("{shown}: {detail}"));
        }
        match (message, type_of(message, &declared)) {
            ("", _) | (_, Ok(Type::String)) => {}
            (_, Ok(_)) => {
                let detail = "messageExpression must evaluate to a string";
                error("messageExpression", &format!("{}: {detail}", as_go(rule)));
            }
            (_, Err(why)) => {
                let detail = format!("messageExpression compilation failed: {why}");
                error("messageExpression", &format!("{}: {detail}", as_go(rule)));
            }
        }
        self.compiled.extend(compiled);
    }
}

/// A rule as Go writes it.
fn as_go(rule: &Value) -> String {
    let text = |name: &str| rule[name].as_str().unwrap_or_default();
    let shown = format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\"OptionalOldSelf\":{}}}",
        json!(text("rule")),
        json!(text("message")),
        json!(text("messageExpression")),
        rule["reason"],
        json!(text("fieldPath")),
        rule["optionalOldSelf"],
    );
    shown.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// Whether `.spec['a.b'].c` leads to a field of a schema.
fn is_path(schema: &Value, path: &str) -> bool {
    let mut schema = schema;
    let mut rest = path;
    while !rest.is_empty() {
        let (name, after) = if let Some(quoted) = rest.strip_prefix("['") {
            let Some(parts) = quoted.split_once("']") else { return false };
            parts
        } else if let Some(plain) = rest.strip_prefix('.') {
            plain.split_at(plain.find(['.', '[']).unwrap_or(plain.len()))
        } else {
            return false;
        };
        rest = after;
        match (schema["properties"].get(name), &schema["additionalProperties"]) {
            (Some(property), _) => schema = property,
            (None, values @ Value::Object(_)) => schema = values,
            _ => return false,
        }
    }
    true
}
