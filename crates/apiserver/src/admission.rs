//! What stands between a sound request and the store: rules about other objects, and the
//! policies and webhooks that users bring.

mod audience;
mod authorizer;
mod call;
mod condition;
mod hook;
mod kept;
mod own;
mod policy;
mod review;
mod seen;

use std::sync::Arc;

use serde_json::Value;

use self::audience::Subject;
use self::condition::Match;
use self::hook::Hook;
use self::seen::Seen;
use crate::ask::Ask;
use crate::convert::webhook::between;
use crate::kinds;
use crate::patch;
use crate::registry::Resource;
use crate::status::{Answer, Status};
use crate::write::{self, Options};

pub(crate) use convoy_plan::admission::Operation;

pub(crate) use self::call::Client as HookClient;
pub(crate) use self::kept::Webhooks;
pub(crate) use self::own::OwnHooks;

/// Lets plugins and webhooks change the object.
pub(crate) async fn mutate(
    ask: &Ask,
    operation: Operation,
    mut object: Value,
    old: Option<&Value>,
    options: &Options,
) -> Answer<Value> {
    if operation == Operation::Create {
        check_namespace(ask, review::name(ask, Some(&object)))?;
        kinds::admit(ask, &mut object)?;
    }
    let hooks = if is_exempt(ask) {
        Arc::default()
    } else {
        ask.cluster.webhooks.mutating(&ask.server.store)
    };
    let own = ask.server.own_hooks.mutating(ask);
    let mut asked = Vec::new();
    let mut again = 0;
    for hook in own.chain(&*hooks) {
        match ask_to_change(ask, operation, hook, &object, old, options).await? {
            Said::Nothing => continue,
            Said::Unchanged => {}
            Said::Changed(changed) => {
                object = changed;
                again = asked.len();
            }
        }
        if hook.is_reinvoked {
            asked.push(hook);
        }
    }
    // Those that want to see what later ones did are asked once more.
    for hook in &asked[..again] {
        let said = ask_to_change(ask, operation, hook, &object, old, options).await?;
        if let Said::Changed(changed) = said {
            object = changed;
        }
    }
    Ok(object)
}

/// What came of asking a webhook for its changes.
enum Said {
    /// It was not to be asked.
    Nothing,
    Unchanged,
    Changed(Value),
}

async fn ask_to_change(
    ask: &Ask,
    operation: Operation,
    hook: &Hook,
    object: &Value,
    old: Option<&Value>,
    options: &Options,
) -> Answer<Said> {
    let request = review::request(ask, operation, Some(object), old, options.dry_run);
    let subject = Subject { ask, operation, object: Some(object), old, request: &request };
    let Some(told) = consult(hook, &subject, options).await? else { return Ok(Said::Nothing) };
    let Some(changes) = told.patch else { return Ok(Said::Unchanged) };
    let mut changed = patch::json_patch(told.seen.as_ref().unwrap_or(object), &changes)
        .map_err(|error| Status::internal(format!("webhook {:?}: {error}", hook.name)))?;
    if told.seen.is_some() {
        write::defaults(&told.row, &mut changed);
        changed = between(ask, &told.row, &ask.resource, &changed).await?;
    }
    write::defaults(&ask.resource, &mut changed);
    Ok(if changed == *object { Said::Unchanged } else { Said::Changed(changed) })
}

/// Lets plugins and webhooks refuse the object.
pub(crate) async fn validate(
    ask: &Ask,
    operation: Operation,
    object: Option<&Value>,
    old: Option<&Value>,
    options: &Options,
) -> Answer<()> {
    if is_exempt(ask) {
        return Ok(());
    }
    if let Some(object) = object.filter(|_| operation == Operation::Create) {
        kinds::refuse(ask, object)?;
    }
    let (webhooks, store) = (&ask.cluster.webhooks, &ask.server.store);
    let hooks = webhooks.validating(store);
    let (policies, bindings) = webhooks.policies(store);
    let mut own = ask.server.own_hooks.validating(ask).peekable();
    if hooks.is_empty() && bindings.is_empty() && own.peek().is_none() {
        return Ok(());
    }
    let request = review::request(ask, operation, object, old, options.dry_run);
    let subject = Subject { ask, operation, object, old, request: &request };
    policy::judge(&policies, &bindings, &subject).await?;
    let asked = own.chain(&*hooks).map(|hook| consult(hook, &subject, options));
    futures_util::future::try_join_all(asked).await?;
    Ok(())
}

/// What a webhook said, and about what.
struct Told {
    /// None: it has nothing to change, or its failure does not matter.
    patch: Option<json_patch::Patch>,
    /// The resource as it knows it, and the object in that version if it is another one.
    row: Arc<Resource>,
    seen: Option<Value>,
}

/// Asks a webhook about a request, in the version that it knows. None: it is not to be asked.
async fn consult(hook: &Hook, subject: &Subject<'_>, options: &Options) -> Answer<Option<Told>> {
    let Some(row) = hook.row(subject) else { return Ok(None) };
    let seen = Seen::through(subject, &row).await?;
    let shown = seen.as_ref().map(|seen| seen.subject(subject));
    let patch = call(hook, shown.as_ref().unwrap_or(subject), options).await?;
    Ok(patch.map(|patch| Told { patch, row, seen: seen.and_then(Seen::into_object) }))
}

/// Asks a webhook. None: it is not to be asked.
async fn call(
    hook: &Hook,
    subject: &Subject<'_>,
    options: &Options,
) -> Answer<Option<Option<json_patch::Patch>>> {
    let ask = subject.ask;
    match hook.matches(subject) {
        Match::No => return Ok(None),
        Match::Unknown(why) => {
            let name = review::name(ask, subject.object);
            return Err(Status::forbidden(&ask.resource, name, &why));
        }
        Match::Yes => {}
    }
    if options.dry_run && hook.has_side_effects {
        let name = &hook.name;
        return Err(Status::bad_request(format!(
            "admission webhook {name:?} does not support dry run"
        )));
    }
    let review = review::review(subject.request);
    let begun = std::time::Instant::now();
    let answer = hook.ask(ask, &review).await;
    let verdict = answer.and_then(|answer| review::verdict(&hook.name, subject.request, &answer));
    let rejects = !matches!(verdict, Ok(Ok(_)));
    let (name, operation) = (&hook.name, subject.operation.word());
    ask.server.metrics.webhook_called(name, operation, hook.role, rejects, begun.elapsed());
    match verdict {
        Ok(Ok(verdict)) => {
            for warning in verdict.warnings {
                ask.warn(warning);
            }
            for (key, value) in verdict.notes {
                ask.annotate(&format!("{}/{key}", hook.name), value);
            }
            Ok(Some(verdict.patch))
        }
        Ok(Err(denied)) => Err(denied),
        Err(why) if hook.ignores_failure => {
            tracing::warn!(webhook = hook.name, %why, "a webhook failed and is ignored");
            Ok(Some(None))
        }
        Err(why) => Err(Status::internal(format!(
            "failed calling webhook {:?}: failed to call webhook: {why}",
            hook.name
        ))),
    }
}

/// Configurations are not subject to webhooks and policies, lest one locks itself in; nor are
/// questions about access.
fn is_exempt(ask: &Ask) -> bool {
    let exempt = ["admissionregistration.k8s.io", "authentication.k8s.io", "authorization.k8s.io"];
    exempt.contains(&ask.resource.group.as_str())
}

/// New objects need a namespace that exists and is not on its way out.
fn check_namespace(ask: &Ask, name: &str) -> Answer<()> {
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
    Err(Status::forbidden(&ask.resource, name, &why).with_cause(
        "NamespaceTerminating",
        &cause,
        "metadata.namespace",
    ))
}
