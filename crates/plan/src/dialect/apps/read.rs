//! Objects as the engine sees them: defaults filled in, numbers resolved, once. Beside `write`,
//! `status` and `validate` this is the only role that knows JSON paths.

pub(crate) mod deployment;
pub(crate) mod owned_set;
pub(crate) mod pod;
pub(crate) mod replica_set;

use convoy_api::Object;
use convoy_api::apps::REPLICA_SET;
use convoy_api::object::member::{field, text};
use serde_json::Value;

/// The pod template, as raw JSON: it is compared, hashed and copied as it stands.
pub(crate) fn template(owner: &Object) -> &Value {
    field(owner.spec(), "template")
}

/// Whether the decision about a rollout looks at pods: a ReplicaSet always does, a Deployment to
/// see old pods end (Recreate) or new ones settle (minReadySeconds).
///
/// It is asked on every change of every pod, so it reads two fields instead of a view.
pub(crate) fn needs_pods(rollout: &Object) -> bool {
    let spec = rollout.spec();
    let is_recreate = text(field(spec, "strategy"), "type") == "Recreate";
    let settles = field(spec, "minReadySeconds").as_i64().is_some_and(|secs| secs > 0);
    is_recreate || settles || *rollout.kind() == REPLICA_SET
}
