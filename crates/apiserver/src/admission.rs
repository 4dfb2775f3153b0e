//! Admission: built-in rules about other objects, admission policies and webhooks, between decoding
//! and the store.

mod audience;
mod authorizer;
mod condition;
mod hook;
mod kept;
mod own;
mod own_hooks;
mod policy;
mod review;
mod seen;

use std::sync::Arc;

use serde_json::Value;

use self::audience::{Subject, Write};
use self::condition::Match;
use self::hook::Hook;
use self::policy::Pass;
use self::seen::Seen;
use crate::conversion::between;
use crate::kinds;
use crate::options::Options;
use crate::patch;
use crate::registry::Resource;
use crate::resource_request::ResourceRequest;
use crate::status::{ApiResult, Status};

pub(crate) use convoy_plan::admission::Operation;

/// Runs mutating admission: built-in plugins, then policies, then webhooks.
pub(crate) async fn mutate(
    request: &ResourceRequest,
    operation: Operation,
    mut object: Value,
    old: Option<&Value>,
    options: &Options,
) -> ApiResult<Value> {
    if operation == Operation::Create {
        check_namespace(request, review::name(request, Some(&object)))?;
        kinds::of(&request.resource).admit(request, &mut object)?;
    }
    let (hooks, policies) = if is_exempt(request) {
        (Arc::default(), None)
    } else {
        let (webhooks, store) = (request.cluster.webhooks(), &request.server.store);
        let policies = webhooks.mutating_policies(store);
        (webhooks.mutating(store), Some(policies).filter(|(_, bindings)| !bindings.is_empty()))
    };
    let write = Write { request, operation, old, options };
    // Kept only where somebody may have to be called again.
    let before = policies.is_some().then(|| object.clone());
    if let Some(policies) = &policies {
        object = policy::mutate(policies, Pass::All, &write, object).await?;
    }
    let own_hooks = request.server.own_hooks();
    let own = own_hooks.mutating(request);
    let mut called = Vec::new();
    let mut again = 0;
    for hook in own.chain(&*hooks) {
        match call_mutating(&write, hook, &object).await? {
            Mutation::NotCalled => continue,
            Mutation::Unchanged => {}
            Mutation::Changed(changed) => {
                object = changed;
                again = called.len();
            }
        }
        if hook.is_reinvoked {
            called.push(hook);
        }
    }
    // Policies and webhooks with `reinvocationPolicy: IfNeeded` are called again after changes.
    if let Some(policies) = policies.filter(|_| before.is_some_and(|before| before != object)) {
        let changed = policy::mutate(&policies, Pass::Reinvoked, &write, object.clone()).await?;
        if changed != object {
            object = changed;
            again = called.len();
        }
    }
    for hook in &called[..again] {
        if let Mutation::Changed(changed) = call_mutating(&write, hook, &object).await? {
            object = changed;
        }
    }
    Ok(object)
}

/// The effect of a mutating webhook.
enum Mutation {
    /// The webhook does not apply to the request.
    NotCalled,
    Unchanged,
    Changed(Value),
}

async fn call_mutating(write: &Write<'_>, hook: &Hook, object: &Value) -> ApiResult<Mutation> {
    let request = write.request;
    let admission_request = write.admission_request(object);
    let subject = write.subject(object, &admission_request);
    let Some(reviewed) = call_in_version(hook, &subject, write.options).await? else {
        return Ok(Mutation::NotCalled);
    };
    let Some(changes) = reviewed.patch else { return Ok(Mutation::Unchanged) };
    let mut changed = patch::json_patch(reviewed.seen.as_ref().unwrap_or(object), &changes)
        .map_err(|error| Status::internal(format!("webhook {:?}: {error}", hook.name)))?;
    if reviewed.seen.is_some() {
        kinds::default_within(request.object_bytes_max(), &reviewed.row, &mut changed)?;
        changed = between(request, &reviewed.row, &request.resource, &changed).await?;
    }
    kinds::default_within(request.object_bytes_max(), &request.resource, &mut changed)?;
    Ok(if changed == *object { Mutation::Unchanged } else { Mutation::Changed(changed) })
}

/// Runs validating admission: built-in plugins, policies, then webhooks.
pub(crate) async fn validate(
    request: &ResourceRequest,
    operation: Operation,
    object: Option<&Value>,
    old: Option<&Value>,
    options: &Options,
) -> ApiResult<()> {
    if is_exempt(request) {
        return Ok(());
    }
    if let Some(object) = object {
        kinds::of(&request.resource).refuse(request, object, old)?;
    }
    let (webhooks, store) = (request.cluster.webhooks(), &request.server.store);
    let hooks = webhooks.validating(store);
    let (policies, bindings) = webhooks.policies(store);
    let own_hooks = request.server.own_hooks();
    let mut own = own_hooks.validating(request).peekable();
    if hooks.is_empty() && bindings.is_empty() && own.peek().is_none() {
        return Ok(());
    }
    let admission_request =
        review::admission_request(request, operation, object, old, options.dry_run);
    let subject =
        Subject { request, operation, object, old, admission_request: &admission_request };
    policy::judge(&policies, &bindings, &subject).await?;
    let called = own.chain(&*hooks).map(|hook| call_in_version(hook, &subject, options));
    futures_util::future::try_join_all(called).await?;
    Ok(())
}

/// The result of calling a webhook in the version that it knows.
struct WebhookReview {
    /// `None`: no changes, or a failure that `failurePolicy: Ignore` covers.
    patch: Option<json_patch::Patch>,
    /// The resource in the webhook's version, and the object converted to it if that differs.
    row: Arc<Resource>,
    seen: Option<Value>,
}

/// Calls a webhook with the request converted to the version that it knows. `None`: the webhook
/// does not apply.
async fn call_in_version(
    hook: &Hook,
    subject: &Subject<'_>,
    options: &Options,
) -> ApiResult<Option<WebhookReview>> {
    let Some(row) = hook.row(subject) else { return Ok(None) };
    let seen = Seen::through(subject, &row).await?;
    let shown = seen.as_ref().map(|seen| seen.subject(subject));
    let patch = call(hook, shown.as_ref().unwrap_or(subject), options).await?;
    Ok(patch.map(|patch| WebhookReview { patch, row, seen: seen.and_then(Seen::into_object) }))
}

/// Calls a webhook. `None`: the webhook does not apply.
async fn call(
    hook: &Hook,
    subject: &Subject<'_>,
    options: &Options,
) -> ApiResult<Option<Option<json_patch::Patch>>> {
    let request = subject.request;
    match hook.matches(subject) {
        Match::No => return Ok(None),
        Match::Unknown(why) => {
            let name = review::name(request, subject.object);
            return Err(Status::forbidden(&request.resource, name, &why));
        }
        Match::Yes => {}
    }
    if options.dry_run && hook.has_side_effects {
        let name = &hook.name;
        return Err(Status::bad_request(format!(
            "admission webhook {name:?} does not support dry run"
        )));
    }
    let review = review::review(subject.admission_request);
    let begun = std::time::Instant::now();
    let answer = hook.call(request, &review).await;
    let verdict =
        answer.and_then(|answer| review::verdict(&hook.name, subject.admission_request, &answer));
    let rejects = !matches!(verdict, Ok(Ok(_)));
    let (name, operation) = (&hook.name, subject.operation.word());
    request.server.metrics.webhook_called(name, operation, hook.role, rejects, begun.elapsed());
    match verdict {
        Ok(Ok(verdict)) => {
            for warning in verdict.warnings {
                request.warn(warning);
            }
            for (key, value) in verdict.notes {
                request.annotate(&format!("{}/{key}", hook.name), value);
            }
            Ok(Some(verdict.patch))
        }
        Ok(Err(denied)) => Err(denied),
        Err(why) if hook.ignores_failure => {
            tracing::warn!(webhook = hook.name, %why, "webhook failed; ignored because its failurePolicy is Ignore");
            Ok(Some(None))
        }
        Err(why) => Err(Status::internal(format!(
            "failed calling webhook {:?}: failed to call webhook: {why}",
            hook.name
        ))),
    }
}

/// Admission configurations are exempt, so that a broken one can be repaired; so are access
/// reviews.
fn is_exempt(request: &ResourceRequest) -> bool {
    let exempt = ["admissionregistration.k8s.io", "authentication.k8s.io", "authorization.k8s.io"];
    exempt.contains(&request.resource.group.as_str())
}

/// Rejects new objects in a namespace that does not exist or is terminating.
fn check_namespace(request: &ResourceRequest, name: &str) -> ApiResult<()> {
    let namespace = request.namespace();
    if namespace.is_empty() {
        return Ok(());
    }
    let namespaces = request.registry.get("", "v1", "namespaces").expect("a built-in resource");
    let key = request.cluster.shelf(namespaces).key("", namespace);
    let snapshot = request.server.store.snapshot();
    let Some(entry) = snapshot.get(&key) else {
        return Err(Status::not_found(namespaces, namespace));
    };
    if !entry.meta.is_deleting() {
        return Ok(());
    }
    let why = format!(
        "unable to create new content in namespace {namespace} because it is being terminated"
    );
    let cause = format!("namespace {namespace} is being terminated");
    Err(Status::forbidden(&request.resource, name, &why).with_cause(
        "NamespaceTerminating",
        &cause,
        "metadata.namespace",
    ))
}
