//! One rule of `x-kubernetes-validations`: its source, and what is said when it is broken.

use std::sync::OnceLock;

use serde_json::Value;

use super::error::Reason;
use crate::cel::{Program, Scope};

/// The longest message that an expression may give.
const MESSAGE_MAX: usize = 5 * 1024;

/// One rule.
#[derive(Debug)]
pub(super) struct Rule {
    pub source: String,
    pub message: String,
    pub message_expression: Option<String>,
    pub reason: Reason,
    /// Where below the node the error is, e.g. `.spec.replicas`.
    pub field_path: String,
    pub optional_old_self: bool,
    /// Compiled when first asked for: most objects meet few of a kind's rules.
    program: OnceLock<Result<Program, String>>,
    message_program: OnceLock<Option<Program>>,
}

impl Rule {
    pub(super) fn read_all(rules: &Value) -> Vec<Self> {
        rules.as_array().into_iter().flatten().map(Self::read).collect()
    }

    fn read(rule: &Value) -> Self {
        let text = |name: &str| rule[name].as_str().unwrap_or_default().trim().to_owned();
        Self {
            source: text("rule"),
            message: text("message"),
            message_expression: Some(text("messageExpression")).filter(|text| !text.is_empty()),
            reason: match rule["reason"].as_str() {
                Some("FieldValueForbidden") => Reason::Forbidden,
                Some("FieldValueRequired") => Reason::Required,
                Some("FieldValueDuplicate") => Reason::Duplicate,
                _ => Reason::Invalid,
            },
            field_path: text("fieldPath"),
            optional_old_self: rule["optionalOldSelf"].as_bool().unwrap_or(false),
            program: OnceLock::new(),
            message_program: OnceLock::new(),
        }
    }

    pub(super) fn program(&self) -> &Result<Program, String> {
        let compile = || Program::compile(&self.source).map_err(|error| error.to_string());
        self.program.get_or_init(compile)
    }

    /// How the rule is called where it could not be evaluated.
    pub(super) fn name(&self) -> &str {
        if self.message.is_empty() { &self.source } else { &self.message }
    }

    /// What is said when the rule is broken.
    pub(super) fn complaint(&self, scope: &Scope) -> String {
        let compile = || Program::compile(self.message_expression.as_ref()?).ok();
        let expression = self.message_program.get_or_init(compile).as_ref();
        let text = expression.and_then(|program| match program.evaluate(scope) {
            Ok(Value::String(text)) => Some(text.trim().to_owned()),
            _ => None,
        });
        let is_fit =
            |text: &String| !text.is_empty() && text.len() <= MESSAGE_MAX && !text.contains('\n');
        match text.filter(is_fit) {
            Some(text) => text,
            None if self.message.is_empty() => format!("failed rule: {}", self.source),
            None => self.message.clone(),
        }
    }
}
