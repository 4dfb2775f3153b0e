//! Admission policies: what validating and mutating ones have in common. A policy says which
//! requests it is about and under which conditions; bindings put it in force and bring parameters.

mod expression;
mod mutating;
mod parameters;
mod validating;

use std::sync::Arc;

use convoy_api::object::member::{list, text};
use serde_json::Value;

use super::audience::{Audience, Subject};
use super::condition::{Condition, Match, all_hold, scope};
use crate::encoding;
use expression::{Evaluation, Expression};
use parameters::Reference;

pub(super) use mutating::{Mutations, Pass, mutate};
pub(super) use validating::{Validations, judge};

/// The CEL cost budget of one policy per object.
const BUDGET: u64 = 10_000_000;

/// One policy.
#[derive(Debug)]
pub(super) struct Policy<Rules> {
    name: String,
    audience: Audience,
    conditions: Vec<Condition>,
    /// In the order in which they may use each other.
    variables: Vec<(String, Expression)>,
    rules: Rules,
    ignores_failure: bool,
    /// Whether any of its expressions uses `authorizer`.
    asks: bool,
    /// apiVersion and kind of what its bindings bring.
    parameters: Option<(String, String)>,
}

/// What a policy does with the requests that it is about.
pub(super) trait Rules {
    fn read(spec: &Value) -> Self;

    fn expressions(&self) -> Vec<&Expression>;
}

/// What puts a policy in force.
#[derive(Debug)]
pub(super) struct Binding {
    name: String,
    policy: String,
    audience: Option<Audience>,
    parameters: Option<Reference>,
    /// `Deny`, `Warn` and `Audit`, as it lists them; a mutating policy's lists none.
    actions: Vec<String>,
}

/// Policies, and what puts them in force.
pub(super) type Bound<Rules> = (Arc<[Policy<Rules>]>, Arc<[Binding]>);

impl<R: Rules> Policy<R> {
    pub(super) fn of(policy: &Value) -> Vec<Self> {
        Self::read(policy).into_iter().collect()
    }

    fn read(policy: &Value) -> Option<Self> {
        let spec = &policy["spec"];
        let kind = &spec["paramKind"];
        let mut read = Self {
            name: policy["metadata"]["name"].as_str()?.to_owned(),
            audience: Audience::of_policy(&spec["matchConstraints"])?,
            conditions: list(spec, "matchConditions").iter().map(Condition::read).collect(),
            variables: named(list(spec, "variables"), "name", "expression"),
            rules: R::read(spec),
            ignores_failure: spec["failurePolicy"] == "Ignore",
            asks: false,
            parameters: kind
                .is_object()
                .then(|| (text(kind, "apiVersion").to_owned(), text(kind, "kind").to_owned())),
        };
        let variables = read.variables.iter().map(|(_, expression)| expression);
        read.asks = read.conditions.iter().any(Condition::asks)
            || variables.chain(read.rules.expressions()).any(Expression::asks);
        Some(read)
    }

    /// The evaluation of its expressions for `subject` with one of its parameters. `None`: its
    /// conditions leave the request out.
    fn begin(
        &self,
        subject: &Subject<'_>,
        parameter: Option<&Value>,
    ) -> Result<Option<Evaluation<'_>>, String> {
        let evaluation = self.evaluation(subject, parameter);
        match all_hold(&self.conditions, self.ignores_failure, evaluation.scope()) {
            Match::Yes => Ok(Some(evaluation)),
            Match::No => Ok(None),
            Match::Unknown(why) => Err(why),
        }
    }

    /// The same whatever its conditions say.
    fn evaluation(&self, subject: &Subject<'_>, parameter: Option<&Value>) -> Evaluation<'_> {
        let bound = scope(subject, self.asks)
            .variable("params", parameter.unwrap_or(&Value::Null))
            .variable("namespaceObject", &namespace(subject))
            .budget(BUDGET);
        Evaluation::new(&self.variables, bound)
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

/// Expressions with names, under the fields that hold both.
fn named(entries: &[Value], name: &str, expression: &str) -> Vec<(String, Expression)> {
    let read =
        |entry: &Value| (text(entry, name).to_owned(), Expression::read(text(entry, expression)));
    entries.iter().map(read).collect()
}
