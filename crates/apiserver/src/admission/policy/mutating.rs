//! `MutatingAdmissionPolicy`: CEL expressions that change an object, by a configuration that is
//! merged into it or by a JSON patch.

use std::sync::Arc;

use convoy_api::cel::plain;
use convoy_api::object::member::{list, text};
use serde_json::Value;

use super::expression::{Evaluation, Expression};
use super::parameters::parameters;
use super::{Binding, Bound, Policy, Rules};
use crate::admission::audience::{Subject, Write};
use crate::admission::review::name;
use crate::admission::seen::Seen;
use crate::apply;
use crate::conversion::between;
use crate::form;
use crate::kinds;
use crate::patch::{self, PatchError};
use crate::registry::Resource;
use crate::status::{ApiResult, Status};

/// What a `MutatingAdmissionPolicy` changes.
#[derive(Debug)]
pub(in crate::admission) struct Mutations {
    mutations: Vec<Mutation>,
    /// `reinvocationPolicy: IfNeeded`.
    is_reinvoked: bool,
}

#[derive(Debug)]
enum Mutation {
    /// An object that is merged as server-side apply does, whoever owns its fields.
    ApplyConfiguration(Expression),
    /// A list of operations.
    JsonPatch(Expression),
}

/// Which policies run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::admission) enum Pass {
    All,
    /// After the object has changed: those that want to be called again.
    Reinvoked,
}

impl Rules for Mutations {
    fn read(spec: &Value) -> Self {
        Self {
            mutations: list(spec, "mutations").iter().map(Mutation::read).collect(),
            is_reinvoked: spec["reinvocationPolicy"] == "IfNeeded",
        }
    }

    fn expressions(&self) -> Vec<&Expression> {
        self.mutations.iter().map(Mutation::expression).collect()
    }
}

impl Mutation {
    fn read(mutation: &Value) -> Self {
        let expression = |field: &str| Expression::read(text(&mutation[field], "expression"));
        match text(mutation, "patchType") {
            "JSONPatch" => Self::JsonPatch(expression("jsonPatch")),
            _ => Self::ApplyConfiguration(expression("applyConfiguration")),
        }
    }

    fn expression(&self) -> &Expression {
        match self {
            Self::ApplyConfiguration(expression) | Self::JsonPatch(expression) => expression,
        }
    }

    /// The object with what the expression changes.
    fn applied(
        &self,
        evaluation: &Evaluation<'_>,
        object: &Value,
        row: &Resource,
    ) -> Result<Value, String> {
        let mismatch = |why: String| format!("type mismatch: {why}");
        let made = plain(evaluation.value(self.expression())?).map_err(mismatch)?;
        match self {
            Self::ApplyConfiguration(_) => {
                let mut config = made;
                if !config.is_object() {
                    return Err("ApplyConfiguration expression made no object".to_owned());
                }
                for field in ["apiVersion", "kind"] {
                    config[field] = object[field].clone();
                }
                apply::overlay(form::shape_of(row), object, &config)
                    .map_err(|error| format!("error applying patch: {error}"))
            }
            Self::JsonPatch(_) => {
                let patched = patch::json_patch_of(made)
                    .and_then(|operations| patch::json_patch(object, &operations));
                match patched {
                    // A patch whose tests fail is not meant for this object.
                    Err(PatchError::TestFailed(_)) => Ok(object.clone()),
                    patched => patched.map_err(|error| format!("JSON Patch: {error}")),
                }
            }
        }
    }
}

/// The object after the policies of one pass, each with what the ones before it changed.
pub(in crate::admission) async fn mutate(
    bound: &Bound<Mutations>,
    pass: Pass,
    write: &Write<'_>,
    mut object: Value,
) -> ApiResult<Value> {
    let (policies, bindings) = bound;
    let runs = |policy: &&Policy<Mutations>| pass == Pass::All || policy.rules.is_reinvoked;
    for policy in policies.iter().filter(runs) {
        for binding in bindings.iter().filter(|binding| binding.policy == policy.name) {
            if let Some(changed) = mutate_by(policy, binding, write, &object).await? {
                object = changed;
            }
        }
    }
    Ok(object)
}

/// What a policy in force makes of an object. `None`: it is not about this request.
async fn mutate_by(
    policy: &Policy<Mutations>,
    binding: &Binding,
    write: &Write<'_>,
    object: &Value,
) -> ApiResult<Option<Value>> {
    let admission_request = write.admission_request(object);
    let subject = write.subject(object, &admission_request);
    let Some(row) = policy.audience.row(&subject) else { return Ok(None) };
    if !binding.includes(&subject) {
        return Ok(None);
    }
    let seen = Seen::through(&subject, &row).await?;
    let shown = seen.as_ref().map(|seen| seen.subject(&subject));
    let invocation = Invocation { policy, binding, row: &row };
    let Some(changed) = invocation.mutated(shown.as_ref().unwrap_or(&subject))? else {
        return Ok(None);
    };
    if Arc::ptr_eq(&row, &write.request.resource) {
        return Ok(Some(changed));
    }
    between(write.request, &row, &write.request.resource, &changed).await.map(Some)
}

/// A policy that a binding puts in force for a request.
struct Invocation<'i> {
    policy: &'i Policy<Mutations>,
    binding: &'i Binding,
    /// The resource in the version that the policy asks for.
    row: &'i Resource,
}

impl Invocation<'_> {
    /// The object after all mutations, for each parameter in turn.
    fn mutated(&self, subject: &Subject<'_>) -> ApiResult<Option<Value>> {
        let Some(object) = subject.object else { return Ok(None) };
        let found = match parameters(self.policy, self.binding, subject) {
            Ok(found) => found,
            Err(_) if self.policy.ignores_failure => return Ok(None),
            Err(why) => {
                let why = format!("failed to configure binding: {why}");
                return Err(self.refusal(subject, &why));
            }
        };
        let mut object = object.clone();
        let parameters: Vec<Option<&Value>> = match &found {
            None => vec![None],
            Some(all) => all.iter().map(Some).collect(),
        };
        for parameter in parameters {
            object = self.mutated_with(subject, parameter, object)?;
        }
        Ok(Some(object))
    }

    fn mutated_with(
        &self,
        subject: &Subject<'_>,
        parameter: Option<&Value>,
        mut object: Value,
    ) -> ApiResult<Value> {
        let policy = self.policy;
        match policy.begin(&subject.showing(&object), parameter) {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(object),
            Err(why) => return Err(self.refusal(subject, &why)),
        }
        for mutation in &policy.rules.mutations {
            // Variables too see what the mutations before have changed.
            let evaluation = policy.evaluation(&subject.showing(&object), parameter);
            match mutation.applied(&evaluation, &object, self.row) {
                Ok(changed) => object = changed,
                Err(_) if policy.ignores_failure => continue,
                Err(why) => return Err(self.refusal(subject, &why)),
            }
            kinds::default_within(subject.request.object_bytes_max(), self.row, &mut object)?;
        }
        Ok(object)
    }

    fn refusal(&self, subject: &Subject<'_>, why: &str) -> Box<Status> {
        let request = subject.request;
        let mut refused = Status::forbidden(&request.resource, name(request, subject.object), "");
        refused.reason = "Invalid";
        refused.message = format!(
            "policy '{}' with binding '{}' denied request: {why}",
            self.policy.name, self.binding.name
        );
        let message = refused.message.clone();
        refused.with_cause("", &message, "")
    }
}

#[cfg(test)]
mod tests;
