//! `ValidatingAdmissionPolicy`: CEL expressions that deny a request, warn about it, or add an
//! annotation to the audit log.

use std::collections::BTreeMap;

use convoy_api::object::member::{list, text};
use serde_json::{Value, json};

use super::expression::{Evaluation, Expression};
use super::parameters::parameters;
use super::{Binding, Policy, Rules, named};
use crate::admission::audience::Subject;
use crate::admission::review::name;
use crate::admission::seen::Seen;
use crate::status::{ApiResult, Status};

/// Where the audit log tells of what was found wrong and let pass.
const FAILURES: &str = "validation.policy.admission.k8s.io/validation_failure";

/// What a `ValidatingAdmissionPolicy` checks.
#[derive(Debug)]
pub(in crate::admission) struct Validations {
    validations: Vec<Validation>,
    /// What it adds to the audit log, by key.
    notes: Vec<(String, Expression)>,
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

impl Rules for Validations {
    fn read(spec: &Value) -> Self {
        Self {
            validations: list(spec, "validations").iter().map(Validation::read).collect(),
            notes: named(list(spec, "auditAnnotations"), "key", "valueExpression"),
        }
    }

    fn expressions(&self) -> Vec<&Expression> {
        let notes = self.notes.iter().map(|(_, expression)| expression);
        let own = self.validations.iter().flat_map(|validation| {
            std::iter::once(&validation.expression).chain(&validation.message_expression)
        });
        notes.chain(own).collect()
    }
}

impl Policy<Validations> {
    /// Evaluates the policy for `subject` with one of its parameters.
    fn evaluate(&self, subject: &Subject<'_>, parameter: Option<&Value>) -> PolicyResult {
        let evaluation = match self.begin(subject, parameter) {
            Ok(Some(evaluation)) => evaluation,
            Ok(None) => return PolicyResult::default(),
            Err(why) => return PolicyResult::failed(why),
        };
        let mut result = PolicyResult::default();
        for (index, validation) in self.rules.validations.iter().enumerate() {
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
        for (key, expression) in &self.rules.notes {
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
pub(in crate::admission) async fn judge(
    policies: &[Policy<Validations>],
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
    policy: &Policy<Validations>,
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

#[cfg(test)]
mod tests;
