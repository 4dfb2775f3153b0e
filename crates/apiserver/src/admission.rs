//! What stands between a sound request and the store: rules about other objects, and the
//! webhooks that users bring.

use serde_json::Value;

use crate::ask::Ask;
use crate::kinds;
use crate::status::{Answer, Status};
use crate::write::Options;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
}

/// Lets plugins and webhooks change the object.
pub(crate) async fn mutate(
    ask: &Ask,
    operation: Operation,
    mut object: Value,
    _old: Option<&Value>,
    _options: &Options,
) -> Answer<Value> {
    if operation == Operation::Create {
        check_namespace(ask)?;
        kinds::admit(ask, &mut object)?;
    }
    Ok(object)
}

/// Lets plugins and webhooks refuse the object.
pub(crate) async fn validate(
    _ask: &Ask,
    _operation: Operation,
    _object: Option<&Value>,
    _old: Option<&Value>,
    _options: &Options,
) -> Answer<()> {
    Ok(())
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
