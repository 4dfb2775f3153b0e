//! Validating admission policies: expressions that refuse what they find wrong, or warn of it.

use std::sync::Arc;

use convoy_api::cel::{Program, Scope};
use convoy_plan::selector::Selector;
use serde_json::{Map, Value};

use super::audience::{Audience, Subject};
use super::condition::{Condition, Match, all_hold, scope};
use super::review::name;
use crate::encoding;
use crate::registry::Resource;
use crate::status::{Answer, Status};

/// What all expressions of one policy may cost about one object.
const BUDGET: u64 = 10_000_000;

/// One `ValidatingAdmissionPolicy`.
#[derive(Debug)]
pub(super) struct Policy {
    name: String,
    audience: Audience,
    conditions: Vec<Condition>,
    /// In the order in which they may use each other.
    variables: Vec<(String, Expression)>,
    validations: Vec<Validation>,
    ignores_failure: bool,
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
    denies: bool,
    warns: bool,
}

/// Which objects a binding brings to its policy.
#[derive(Debug)]
struct Reference {
    name: String,
    namespace: String,
    selector: Option<Selector>,
    /// Whether requests pass where there is none.
    may_miss: bool,
}

#[derive(Debug)]
struct Validation {
    expression: Expression,
    message: String,
    message_expression: Option<Expression>,
    reason: &'static str,
}

#[derive(Debug)]
struct Expression {
    source: String,
    program: Result<Program, String>,
}

/// Something that a policy does not put up with.
struct Finding {
    message: String,
    reason: &'static str,
}

impl Policy {
    pub(super) fn of(policy: &Value) -> Vec<Self> {
        Self::read(policy).into_iter().collect()
    }

    fn read(policy: &Value) -> Option<Self> {
        let spec = &policy["spec"];
        let list = |field: &str| spec[field].as_array().map_or(&[][..], Vec::as_slice);
        let kind = &spec["paramKind"];
        let variable = |entry: &Value| {
            (text(entry, "name").to_owned(), Expression::read(text(entry, "expression")))
        };
        Some(Self {
            name: policy["metadata"]["name"].as_str()?.to_owned(),
            audience: Audience::of_policy(&spec["matchConstraints"])?,
            conditions: list("matchConditions").iter().map(Condition::read).collect(),
            variables: list("variables").iter().map(variable).collect(),
            validations: list("validations").iter().map(Validation::read).collect(),
            ignores_failure: spec["failurePolicy"] == "Ignore",
            parameters: kind
                .is_object()
                .then(|| (text(kind, "apiVersion").to_owned(), text(kind, "kind").to_owned())),
        })
    }

    /// What it does not put up with about `subject`, given one of its parameters.
    fn findings(&self, subject: &Subject<'_>, parameter: Option<&Value>) -> Vec<Finding> {
        let bound = || {
            scope(subject)
                .variable("params", parameter.unwrap_or(&Value::Null))
                .variable("namespaceObject", &namespace(subject))
                .budget(BUDGET)
        };
        let failed = |message: String| Finding { message, reason: "Invalid" };
        match all_hold(&self.conditions, self.ignores_failure, &bound()) {
            Match::Yes => {}
            Match::No => return Vec::new(),
            Match::Unknown(why) => return vec![failed(why)],
        }
        let mut variables = Map::new();
        for (name, expression) in &self.variables {
            let known = bound().variable("variables", &Value::Object(variables.clone()));
            // One that cannot be told is missed by whoever uses it.
            if let Ok(value) = expression.evaluate(&known) {
                variables.insert(name.clone(), value);
            }
        }
        let known = bound().variable("variables", &Value::Object(variables));
        let mut findings = Vec::new();
        for validation in &self.validations {
            match validation.expression.evaluate(&known) {
                Ok(Value::Bool(true)) => {}
                Ok(_) => findings.push(validation.finding(&known)),
                Err(_) if self.ignores_failure => {}
                Err(why) => {
                    let source = &validation.expression.source;
                    findings
                        .push(failed(format!("expression '{source}' resulted in error: {why}")));
                }
            }
        }
        findings
    }
}

impl Binding {
    pub(super) fn of(binding: &Value) -> Vec<Self> {
        Self::read(binding).into_iter().collect()
    }

    fn read(binding: &Value) -> Option<Self> {
        let spec = &binding["spec"];
        let actions = spec["validationActions"].as_array().map_or(&[][..], Vec::as_slice);
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
            denies: actions.iter().any(|action| action == "Deny"),
            warns: actions.iter().any(|action| action == "Warn"),
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
}

impl Reference {
    fn read(reference: &Value) -> Option<Self> {
        let selector = &reference["selector"];
        Some(Self {
            name: text(reference, "name").to_owned(),
            namespace: text(reference, "namespace").to_owned(),
            selector: if selector.is_object() {
                Some(Selector::from_value(selector).ok()?)
            } else {
                None
            },
            may_miss: reference["parameterNotFoundAction"] == "Allow",
        })
    }

    /// The objects that it refers to. Without a namespace of its own, those beside the request's
    /// object.
    fn objects(&self, subject: &Subject<'_>, resource: &Resource) -> Vec<Value> {
        let ask = subject.ask;
        let snapshot = ask.server.store.snapshot();
        let shelf = ask.cluster.shelf(resource);
        let namespace = match (resource.namespaced, self.namespace.as_str()) {
            (false, _) => "",
            (true, "") => ask.namespace(),
            (true, named) => named,
        };
        let Some(selector) = &self.selector else {
            let found = snapshot.get(&shelf.key(namespace, &self.name));
            return found.map(|entry| encoding::read_entry(entry)).into_iter().collect();
        };
        let chosen = snapshot
            .list_namespace(&shelf, namespace)
            .filter(|entry| selector.matches_with(|label| entry.head.label(label)));
        chosen.map(|entry| encoding::read_entry(entry)).collect()
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

    fn finding(&self, scope: &Scope) -> Finding {
        let told = self.message_expression.as_ref().and_then(|expression| {
            let told = expression.evaluate(scope).ok()?.as_str()?.trim().to_owned();
            (!told.is_empty() && !told.contains('\n')).then_some(told)
        });
        let message = told.unwrap_or_else(|| {
            if self.message.is_empty() {
                format!("failed expression: {}", self.expression.source.trim())
            } else {
                self.message.clone()
            }
        });
        Finding { message, reason: self.reason }
    }
}

impl Expression {
    fn read(source: &str) -> Self {
        let program = Program::compile(source).map_err(|error| error.to_string());
        Self { source: source.to_owned(), program }
    }

    fn evaluate(&self, scope: &Scope) -> Result<Value, String> {
        let program = self.program.as_ref().map_err(Clone::clone)?;
        program.evaluate(scope).map_err(|error| error.to_string())
    }
}

/// Asks every policy that is bound; the first refusal stands.
pub(super) fn judge(
    policies: &[Policy],
    bindings: &Arc<[Binding]>,
    subject: &Subject<'_>,
) -> Answer<()> {
    for binding in bindings.iter() {
        let policy = policies.iter().find(|policy| policy.name == binding.policy);
        let Some(policy) = policy else { continue };
        if policy.audience.includes(subject) && binding.includes(subject) {
            apply(policy, binding, subject)?;
        }
    }
    Ok(())
}

fn apply(policy: &Policy, binding: &Binding, subject: &Subject<'_>) -> Answer<()> {
    let ask = subject.ask;
    let findings = match parameters(policy, binding, subject) {
        Ok(None) => policy.findings(subject, None),
        Ok(Some(all)) => {
            all.iter().flat_map(|parameter| policy.findings(subject, Some(parameter))).collect()
        }
        Err(_) if policy.ignores_failure => Vec::new(),
        Err(why) => {
            let message = format!("failed to configure binding: {why}");
            vec![Finding { message, reason: "Invalid" }]
        }
    };
    let who =
        format!("ValidatingAdmissionPolicy '{}' with binding '{}'", policy.name, binding.name);
    if binding.warns {
        for finding in &findings {
            ask.warn(format!("Validation failed for {who}: {}", finding.message));
        }
    }
    match findings.first().filter(|_| binding.denies) {
        None => Ok(()),
        Some(Finding { message, reason }) => {
            let why = format!("{who} denied request: {message}");
            let refused = Status::forbidden(&ask.resource, name(ask, subject.object), &why);
            Err(refused.because(reason))
        }
    }
}

/// What the binding brings to its policy; none if the policy asks for nothing.
fn parameters(
    policy: &Policy,
    binding: &Binding,
    subject: &Subject<'_>,
) -> Result<Option<Vec<Value>>, String> {
    let Some((api_version, kind)) = &policy.parameters else { return Ok(None) };
    let Some(reference) = &binding.parameters else { return Ok(None) };
    let resource = subject.ask.registry.of_kind(api_version, kind);
    let resource = resource.ok_or_else(|| {
        format!("failed to find resource referenced by paramKind: '{api_version}, Kind={kind}'")
    })?;
    let found = reference.objects(subject, resource);
    if found.is_empty() && !reference.may_miss {
        return Err(
            "no params found for policy binding with `Deny` parameterNotFoundAction".to_owned()
        );
    }
    Ok(Some(found))
}

/// The namespace that the request is in, as it is stored.
fn namespace(subject: &Subject<'_>) -> Value {
    let ask = subject.ask;
    let namespaces = ask.registry.get("", "v1", "namespaces");
    let key = namespaces.map(|namespaces| ask.cluster.shelf(namespaces).key("", ask.namespace()));
    let snapshot = ask.server.store.snapshot();
    let entry = key.and_then(|key| snapshot.get(&key));
    entry.map_or(Value::Null, |entry| encoding::read_entry(entry))
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests;
