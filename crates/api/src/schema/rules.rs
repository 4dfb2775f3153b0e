//! `x-kubernetes-validations`: rules in CEL on the nodes of a schema.

use cel::common::types::CelOptional;
use cel::common::value::Val;
use serde_json::Value;

use super::error::{FieldError, Reason};
use super::lists::child;
use super::node::{Additional, ListType, Node, Type};
use super::rule::Rule;
use super::typed::typed;
use crate::cel::{EvaluateError, Program, Scope};

/// What one rule may cost, as in Kubernetes.
const RULE_BUDGET: u64 = 1_000_000;
/// What all rules about one object may cost together.
const OBJECT_BUDGET: u64 = 10_000_000;

/// Every rule that `value` breaks. Rules that name `oldSelf` are skipped where there is no old
/// value to compare with.
pub(super) fn validate(root: &Node, value: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut check = Check::new(true);
    check.node(root, value, old, "", true);
    check.errors
}

/// The rules that a value breaks whose own errors make some rules impossible to evaluate; those are
/// left out.
pub(super) fn broken_rules(root: &Node, value: &Value) -> Vec<FieldError> {
    let mut check = Check::new(false);
    check.node(root, value, None, "", true);
    check.errors
}

struct Check {
    errors: Vec<FieldError>,
    /// Whether rules that cannot be evaluated are errors.
    failures: bool,
    /// What the rules may still cost; none once a rule was stopped, and then no other is run.
    left: Option<u64>,
}

impl Check {
    fn new(failures: bool) -> Self {
        Self { errors: Vec::new(), failures, left: Some(OBJECT_BUDGET) }
    }

    fn node(&mut self, node: &Node, value: &Value, old: Option<&Value>, path: &str, root: bool) {
        if value.is_null() || self.left.is_none() || !node.has_rules {
            return;
        }
        let old = old.filter(|old| !old.is_null());
        self.rules(node, node, value, old, path, root);
        for branch in &node.all_of {
            self.rules(branch, node, value, old, path, root);
        }
        match value {
            Value::Array(items) => {
                let Some(schema) = &node.items else { return };
                for (index, item) in items.iter().enumerate() {
                    let old = old.and_then(|old| counterpart(&node.list_type, old, item));
                    self.node(schema, item, old, &format!("{path}[{index}]"), schema.embedded);
                }
            }
            Value::Object(fields) => {
                for (name, value) in fields {
                    let old = old.and_then(|old| old.get(name));
                    if let Some(schema) = node.properties.get(name) {
                        self.node(schema, value, old, &child(path, name), schema.embedded);
                    } else if let Additional::Like(schema) = &node.additional {
                        self.node(schema, value, old, &format!("{path}[{name}]"), schema.embedded);
                    }
                }
            }
            _ => {}
        }
    }

    /// The rules of `holder`, which is `node` or a branch of it, on a value of `node`.
    fn rules(
        &mut self,
        holder: &Node,
        node: &Node,
        value: &Value,
        old: Option<&Value>,
        path: &str,
        root: bool,
    ) {
        if holder.rules.is_empty() {
            return;
        }
        let scope = Scope::new().bound("self", typed(node, value, root));
        let old_value = old.map(|old| typed(node, old, root));
        for rule in &holder.rules {
            let program = match rule.program() {
                Ok(program) => program,
                Err(error) => {
                    let detail = format!("rule compile error: {error}");
                    self.errors.push(FieldError::invalid(path, &type_name(node), &detail));
                    continue;
                }
            };
            let uses_old = program.mentions("oldSelf");
            if uses_old && old.is_none() && !rule.optional_old_self {
                continue;
            }
            let scope = if uses_old {
                scope.clone().bound("oldSelf", old_self(rule, old_value.as_deref()))
            } else {
                scope.clone()
            };
            let Some(left) = self.left else { return };
            match self.tested(program, &scope, left) {
                Ok(true) => {}
                Ok(false) => {
                    let error = broken(rule, &scope, node, value, path);
                    self.errors.push(FieldError { unratcheted: uses_old, ..error });
                }
                Err(EvaluateError::Failed(_)) if !self.failures => {}
                Err(error) => {
                    let detail = failure(rule, &error, left);
                    let error = FieldError::invalid(path, &type_name(node), &detail);
                    self.errors.push(FieldError { unratcheted: true, ..error });
                }
            }
        }
    }

    /// What a rule says, paid for with what is left.
    fn tested(
        &mut self,
        program: &Program,
        scope: &Scope,
        left: u64,
    ) -> Result<bool, EvaluateError> {
        let budget = left.min(RULE_BUDGET);
        let (answer, unused) = program.test_within(scope, budget);
        self.left = unused.map(|unused| left - (budget - unused));
        answer
    }
}

fn old_self(rule: &Rule, old: Option<&(dyn Val + 'static)>) -> Box<dyn Val> {
    match (old.map(Val::clone_as_boxed), rule.optional_old_self) {
        (Some(old), true) => Box::new(CelOptional::of(old)),
        (Some(old), false) => old,
        (None, _) => Box::new(CelOptional::none()),
    }
}

fn broken(rule: &Rule, scope: &Scope, node: &Node, value: &Value, path: &str) -> FieldError {
    let detail = rule.complaint(scope);
    let field = match relative(&rule.field_path) {
        below if below.is_empty() => path.to_owned(),
        below => child(path, &below),
    };
    let is_compound = node.is(Type::Object) || node.is(Type::Array);
    match rule.reason {
        Reason::Forbidden | Reason::Required => FieldError::plain(rule.reason, &field, &detail),
        Reason::Duplicate if is_compound => FieldError::plain(rule.reason, &field, ""),
        Reason::Duplicate => FieldError::about(rule.reason, &field, value, ""),
        _ if is_compound => FieldError::plain(Reason::Invalid, &field, &detail),
        _ => FieldError::invalid(&field, value, &detail),
    }
}

/// Why a rule has no answer, with so much of the budget `left` when it began.
fn failure(rule: &Rule, error: &EvaluateError, left: u64) -> String {
    let name = rule.name();
    match error {
        EvaluateError::Failed(text) if text.starts_with("no such overload") => format!(
            "'{text}': call arguments did not match a supported operator, function or macro \
             signature for rule: {name}"
        ),
        EvaluateError::OverBudget if left < RULE_BUDGET => {
            "validation failed due to running out of cost budget, no further validation rules \
             will be run"
                .to_owned()
        }
        EvaluateError::OverBudget => format!(
            "'{error}': no further validation rules will be run due to call cost exceeds limit \
             for rule: {name}"
        ),
        error => format!("{error} evaluating rule: {name}"),
    }
}

fn type_name(node: &Node) -> Value {
    let name = match node.types.as_slice() {
        [kind] => kind.name(),
        _ => "",
    };
    Value::String(name.to_owned())
}

/// `.spec['a.b'].c` as the rest of a field path: `spec.a.b.c`.
fn relative(field_path: &str) -> String {
    let plain = field_path.replace("['", ".").replace("']", "");
    plain.strip_prefix('.').unwrap_or(&plain).to_owned()
}

/// The element of an old list that `item` is the new state of.
fn counterpart<'o>(list_type: &ListType, old: &'o Value, item: &Value) -> Option<&'o Value> {
    let ListType::Map { keys } = list_type else { return None };
    let same = |old: &&Value| keys.iter().all(|key| old.get(key) == item.get(key));
    old.as_array()?.iter().find(same)
}
