//! What stands between a sound request and the store: rules about other objects, and the
//! webhooks that users bring.

mod call;
mod hook;
mod review;

use std::time::Duration;

use serde_json::Value;

use self::hook::{Hook, Match, Subject};
use crate::ask::Ask;
use crate::kinds;
use crate::status::{Answer, Status};
use crate::write::{self, Options};
use crate::{encoding, patch};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
}

impl Operation {
    fn word(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }

    fn options_kind(self) -> &'static str {
        match self {
            Self::Create => "CreateOptions",
            Self::Update => "UpdateOptions",
            Self::Delete => "DeleteOptions",
        }
    }
}

const MUTATING: &str = "mutatingwebhookconfigurations";
const VALIDATING: &str = "validatingwebhookconfigurations";

/// Lets plugins and webhooks change the object.
pub(crate) async fn mutate(
    ask: &Ask,
    operation: Operation,
    mut object: Value,
    old: Option<&Value>,
    options: &Options,
) -> Answer<Value> {
    if operation == Operation::Create {
        check_namespace(ask)?;
        kinds::admit(ask, &mut object)?;
    }
    let hooks = hooks(ask, MUTATING);
    let mut changed_at = Vec::new();
    for (index, hook) in hooks.iter().enumerate() {
        if let Some(changed) = ask_to_change(ask, operation, hook, &object, old, options).await? {
            object = changed;
            changed_at.push(index);
        }
    }
    // Those that want to see what later ones did are asked once more.
    let last = changed_at.last().copied().unwrap_or(0);
    for hook in hooks[..last].iter().filter(|hook| hook.is_reinvoked) {
        if let Some(changed) = ask_to_change(ask, operation, hook, &object, old, options).await? {
            object = changed;
        }
    }
    Ok(object)
}

/// The object as a webhook changed it; none if it did not.
async fn ask_to_change(
    ask: &Ask,
    operation: Operation,
    hook: &Hook,
    object: &Value,
    old: Option<&Value>,
    options: &Options,
) -> Answer<Option<Value>> {
    let request = review::request(ask, operation, Some(object), old, options.dry_run);
    let subject = Subject { ask, operation, object: Some(object), old, request: &request };
    let Some(verdict) = consult(hook, &subject, options).await? else { return Ok(None) };
    let Some(changes) = verdict else { return Ok(None) };
    let mut changed = patch::json_patch(object, &changes)
        .map_err(|error| Status::internal(format!("webhook {:?}: {error}", hook.name)))?;
    write::defaults(&ask.resource, &mut changed);
    Ok((changed != *object).then_some(changed))
}

/// Lets plugins and webhooks refuse the object.
pub(crate) async fn validate(
    ask: &Ask,
    operation: Operation,
    object: Option<&Value>,
    old: Option<&Value>,
    options: &Options,
) -> Answer<()> {
    let hooks = hooks(ask, VALIDATING);
    if hooks.is_empty() {
        return Ok(());
    }
    let request = review::request(ask, operation, object, old, options.dry_run);
    let subject = Subject { ask, operation, object, old, request: &request };
    let asked = hooks.iter().map(|hook| consult(hook, &subject, options));
    futures_util::future::try_join_all(asked).await?;
    Ok(())
}

/// Asks a webhook. None: it is not to be asked, or its failure does not matter; inner none: it
/// has nothing to change.
async fn consult(
    hook: &Hook,
    subject: &Subject<'_>,
    options: &Options,
) -> Answer<Option<Option<json_patch::Patch>>> {
    let ask = subject.ask;
    match hook.matches(subject) {
        Match::No => return Ok(None),
        Match::Unknown(why) => {
            return Err(Status::forbidden(&ask.resource, &ask.target.name, &why));
        }
        Match::Yes => {}
    }
    if options.dry_run && hook.has_side_effects {
        let name = &hook.name;
        return Err(Status::bad_request(format!(
            "admission webhook {name:?} does not support dry run"
        )));
    }
    let timeout = Duration::from_secs(hook.timeout_seconds);
    let review = review::review(subject.request);
    let answer = call::call(ask, &hook.client, &review, timeout).await;
    let verdict = answer.and_then(|answer| review::verdict(&hook.name, subject.request, &answer));
    match verdict {
        Ok(Ok(verdict)) => {
            for warning in verdict.warnings {
                ask.warn(warning);
            }
            Ok(Some(verdict.patch))
        }
        Ok(Err(denied)) => Err(denied),
        Err(why) if hook.ignores_failure => {
            tracing::warn!(webhook = hook.name, %why, "a webhook failed and is ignored");
            Ok(None)
        }
        Err(why) => Err(Status::internal(format!(
            "failed calling webhook {:?}: failed to call webhook: {why}",
            hook.name
        ))),
    }
}

/// The webhooks of all configurations of a kind, by name and position. Configurations are not
/// subject to webhooks, lest one locks itself in; nor are questions about access.
fn hooks(ask: &Ask, plural: &str) -> Vec<Hook> {
    let exempt = ["admissionregistration.k8s.io", "authentication.k8s.io", "authorization.k8s.io"];
    if exempt.contains(&ask.resource.group.as_str()) {
        return Vec::new();
    }
    let Some(resource) = ask.registry.get("admissionregistration.k8s.io", "v1", plural) else {
        return Vec::new();
    };
    let snapshot = ask.server.store.snapshot();
    let entries = snapshot.list(&ask.cluster.shelf(resource));
    entries.flat_map(|entry| Hook::of(&encoding::read_entry(entry))).collect()
}

/// New objects need a namespace that exists and is not on its way out.
fn check_namespace(ask: &Ask) -> Answer<()> {
    let namespace = ask.namespace();
    if namespace.is_empty() {
        return Ok(());
    }
    let namespaces = ask.registry.get("", "v1", "namespaces").expect("a built-in resource");
    let key = ask.cluster.shelf(namespaces).key("", namespace);
    let snapshot = ask.server.store.snapshot();
    let Some(entry) = snapshot.get(&key) else {
        return Err(Status::not_found(namespaces, namespace));
    };
    if !entry.head.is_deleting() {
        return Ok(());
    }
    let why = format!(
        "unable to create new content in namespace {namespace} because it is being terminated"
    );
    let cause = format!("namespace {namespace} is being terminated");
    Err(Status::forbidden(&ask.resource, &ask.target.name, &why).with_cause(
        "NamespaceTerminating",
        &cause,
        "metadata.namespace",
    ))
}
