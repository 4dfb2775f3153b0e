//! `ValidatingAdmissionPolicy`: CEL expressions that deny a request, warn about it, or add an
//! annotation to the audit log.

mod expression;
mod parameters;

use std::collections::BTreeMap;

use convoy_api::cel::Scope;
use serde_json::{Value, json};

use super::audience::{Audience, Subject};
use super::condition::{Condition, Match, all_hold, scope};
use super::review::name;
use super::seen::Seen;
use crate::encoding;
use crate::status::{ApiResult, Status};
use expression::{Evaluation, Expression};
use parameters::{Reference, parameters};

/// The CEL cost budget of one policy per object.
const BUDGET: u64 = 10_000_000;

/// Where the audit log tells of what was found wrong and let pass.
const FAILURES: &str = "validation.policy.admission.k8s.io/validation_failure";

/// One `ValidatingAdmissionPolicy`.
#[derive(Debug)]
pub(super) struct Policy {
    name: String,
    audience: Audience,
    conditions: Vec<Condition>,
    /// In the order in which they may use each other.
    variables: Vec<(String, Expression)>,
    validations: Vec<Validation>,
    /// What it adds to the audit log, by key.
    notes: Vec<(String, Expression)>,
    ignores_failure: bool,
    /// Whether any of its expressions uses `authorizer`.
    asks: bool,
    /// apiVersion and kind of what its bindings bring.
    parameters: Option<(String, String)>,
}

/// One `ValidatingAdmissionPolicyBinding`.
#[derive(Debug)]
pub(super) struct Binding {
    name: String,
    policy: String,
    audience: Option<Audience>,
    parameters: Option<Reference>,
    /// `Deny`, `Warn` and `Audit`, as it lists them.
    actions: Vec<String>,
}

#[derive(Debug)]
struct Validation {
    expression: Expression,
    message: String,
    message_expression: Option<Expression>,
    reason: &'static str,
}

/// A validation that failed.
struct Finding {
    message: String,
    reason: &'static str,
    /// The index of the validation in the policy.
    index: usize,
}

/// The result of evaluating a policy.
#[derive(Default)]
struct PolicyResult {
    findings: Vec<Finding>,
    /// Audit annotations, by key.
    notes: Vec<(String, String)>,
}

impl Policy {
    pub(super) fn of(policy: &Value) -> Vec<Self> {
        Self::read(policy).into_iter().collect()
    }

    fn read(policy: &Value) -> Option<Self> {
        let spec = &policy["spec"];
        let list = |field: &str| spec[field].as_array().map_or(&[][..], Vec::as_slice);
        let kind = &spec["paramKind"];
        let named =
            |entries: &[Value], name: &str, expression: &str| -> Vec<(String, Expression)> {
                let read = |entry: &Value| {
                    (text(entry, name).to_owned(), Expression::read(text(entry, expression)))
                };
                entries.iter().map(read).collect()
            };
        let mut read = Self {
            name: policy["metadata"]["name"].as_str()?.to_owned(),
            audience: Audience::of_policy(&spec["matchConstraints"])?,
            conditions: list("matchConditions").iter().map(Condition::read).collect(),
            variables: named(list("variables"), "name", "expression"),
            validations: list("validations").iter().map(Validation::read).collect(),
            notes: named(list("auditAnnotations"), "key", "valueExpression"),
            ignores_failure: spec["failurePolicy"] == "Ignore",
            asks: false,
            parameters: kind
                .is_object()
                .then(|| (text(kind, "apiVersion").to_owned(), text(kind, "kind").to_owned())),
        };
        read.asks =
            read.conditions.iter().any(Condition::asks) || read.expressions().any(Expression::asks);
        Some(read)
    }

    fn expressions(&self) -> impl Iterator<Item = &Expression> {
        let shared = self.variables.iter().chain(&self.notes).map(|(_, expression)| expression);
        let own = self.validations.iter().flat_map(|validation| {
            std::iter::once(&validation.expression).chain(&validation.message_expression)
        });
        shared.chain(own)
    }

    /// Evaluates the policy for `subject` with one of its parameters.
    fn evaluate(&self, subject: &Subject<'_>, parameter: Option<&Value>) -> PolicyResult {
        let bound: Scope = scope(subject, self.asks)
            .variable("params", parameter.unwrap_or(&Value::Null))
            .variable("namespaceObject", &namespace(subject))
            .budget(BUDGET);
        match all_hold(&self.conditions, self.ignores_failure, &bound) {
            Match::Yes => {}
            Match::No => return PolicyResult::default(),
            Match::Unknown(why) => return PolicyResult::failed(why),
        }
        let evaluation = Evaluation::new(&self.variables, bound);
        let mut result = PolicyResult::default();
        for (index, validation) in self.validations.iter().enumerate() {
            match evaluation.value(&validation.expression) {
                Ok(Value::Bool(true)) => {}
                Ok(_) => {
                    let message = validation.message(&evaluation);
                    result.findings.push(Finding { message, reason: validation.reason, index });
                }
                Err(_) if self.ignores_failure => {}
                Err(why) => {
                    let source = &validation.expression.source;
                    let message = format!("expression '{source}' resulted in error: {why}");
                    result.findings.push(Finding { message, reason: "Invalid", index });
                }
            }
        }
        for (key, expression) in &self.notes {
            match evaluation.value(expression) {
                Ok(Value::String(value)) if !value.trim().is_empty() => {
                    result.notes.push((key.clone(), value));
                }
                Ok(_) => {}
                Err(_) if self.ignores_failure => {}
                Err(why) => {
                    let source = &expression.source;
                    let why = format!("valueExpression '{source}' resulted in error: {why}");
                    result.findings.extend(PolicyResult::failed(why).findings);
                }
            }
        }
        result
    }
}

impl PolicyResult {
    fn failed(message: String) -> Self {
        let finding = Finding { message, reason: "Invalid", index: 0 };
        Self { findings: vec![finding], notes: Vec::new() }
    }
}

impl Binding {
    pub(super) fn of(binding: &Value) -> Vec<Self> {
        Self::read(binding).into_iter().collect()
    }

    fn read(binding: &Value) -> Option<Self> {
        let spec = &binding["spec"];
        let actions = spec["validationActions"].as_array().into_iter().flatten();
        let resources = &spec["matchResources"];
        Some(Self {
            name: binding["metadata"]["name"].as_str()?.to_owned(),
            policy: text(spec, "policyName").to_owned(),
            audience: if resources.is_object() {
                Some(Audience::of_policy(resources)?)
            } else {
                None
            },
            parameters: if spec["paramRef"].is_object() {
                Some(Reference::read(&spec["paramRef"])?)
            } else {
                None
            },
            actions: actions.filter_map(Value::as_str).map(str::to_owned).collect(),
        })
    }

    fn includes(&self, subject: &Subject<'_>) -> bool {
        self.audience.as_ref().is_none_or(|audience| {
            if audience.names_nothing() {
                audience.selects(subject)
            } else {
                audience.includes(subject)
            }
        })
    }

    fn does(&self, action: &str) -> bool {
        self.actions.iter().any(|known| known == action)
    }
}

impl Validation {
    fn read(validation: &Value) -> Self {
        let message_expression = text(validation, "messageExpression");
        Self {
            expression: Expression::read(text(validation, "expression")),
            message: text(validation, "message").trim().to_owned(),
            message_expression: (!message_expression.is_empty())
                .then(|| Expression::read(message_expression)),
            reason: match text(validation, "reason") {
                "Unauthorized" => "Unauthorized",
                "Forbidden" => "Forbidden",
                "RequestEntityTooLarge" => "RequestEntityTooLarge",
                _ => "Invalid",
            },
        }
    }

    fn message(&self, evaluation: &Evaluation<'_>) -> String {
        let told = self.message_expression.as_ref().and_then(|expression| {
            let told = evaluation.value(expression).ok()?.as_str()?.trim().to_owned();
            (!told.is_empty() && !told.contains('\n')).then_some(told)
        });
        told.unwrap_or_else(|| {
            if self.message.is_empty() {
                format!("failed expression: {}", self.expression.source.trim())
            } else {
                self.message.clone()
            }
        })
    }
}

/// Evaluates every bound policy; the first denial decides.
pub(super) async fn judge(
    policies: &[Policy],
    bindings: &[Binding],
    subject: &Subject<'_>,
) -> ApiResult<()> {
    let mut record = Record::default();
    let mut judged = Ok(());
    for binding in bindings {
        let policy = policies.iter().find(|policy| policy.name == binding.policy);
        let Some(policy) = policy else { continue };
        let Some(row) = policy.audience.row(subject) else { continue };
        if binding.includes(subject) {
            let seen = Seen::through(subject, &row).await?;
            let shown = seen.as_ref().map(|seen| seen.subject(subject));
            let verdict = apply(policy, binding, shown.as_ref().unwrap_or(subject), &mut record);
            judged = judged.and(verdict);
        }
    }
    record.write(subject);
    judged
}

/// What goes into the audit log about one request.
#[derive(Default)]
struct Record {
    failures: Vec<Value>,
    notes: BTreeMap<String, Vec<String>>,
}

impl Record {
    fn write(self, subject: &Subject<'_>) {
        if !self.failures.is_empty() {
            subject.request.annotate(FAILURES, json!(self.failures).to_string());
        }
        for (key, values) in self.notes {
            subject.request.annotate(&key, values.join(", "));
        }
    }
}

fn apply(
    policy: &Policy,
    binding: &Binding,
    subject: &Subject<'_>,
    record: &mut Record,
) -> ApiResult<()> {
    let request = subject.request;
    let outcomes = match parameters(policy, binding, subject) {
        Ok(None) => vec![policy.evaluate(subject, None)],
        Ok(Some(all)) => {
            all.iter().map(|parameter| policy.evaluate(subject, Some(parameter))).collect()
        }
        Err(_) if policy.ignores_failure => Vec::new(),
        Err(why) => vec![PolicyResult::failed(format!("failed to configure binding: {why}"))],
    };
    let who =
        format!("ValidatingAdmissionPolicy '{}' with binding '{}'", policy.name, binding.name);
    let mut verdict = Ok(());
    for PolicyResult { findings, notes } in outcomes {
        for (key, value) in notes {
            let values = record.notes.entry(format!("{}/{key}", policy.name)).or_default();
            if !values.contains(&value) {
                values.push(value);
            }
        }
        for Finding { message, reason, index } in findings {
            if binding.does("Warn") {
                request.warn(format!("Validation failed for {who}: {message}"));
            }
            if binding.does("Audit") {
                record.failures.push(json!({"message": message, "policy": policy.name,
                    "binding": binding.name, "expressionIndex": index,
                    "validationActions": binding.actions}));
            }
            if binding.does("Deny") && verdict.is_ok() {
                let why = format!("{who} denied request: {message}");
                let refused =
                    Status::forbidden(&request.resource, name(request, subject.object), &why);
                verdict = Err(refused.because(reason).with_cause("", &why, ""));
            }
        }
    }
    verdict
}

/// The namespace that the request is in, as it is stored.
fn namespace(subject: &Subject<'_>) -> Value {
    let request = subject.request;
    let namespaces = request.registry.get("", "v1", "namespaces");
    let key =
        namespaces.map(|namespaces| request.cluster.shelf(namespaces).key("", request.namespace()));
    let snapshot = request.server.store.snapshot();
    let entry = key.and_then(|key| snapshot.get(&key));
    entry.map_or(Value::Null, |entry| encoding::read_entry(entry))
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests;
