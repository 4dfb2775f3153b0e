//! Objects as the engine sees them: defaults filled in, numbers resolved, once. Beside `write`,
//! `status` and `validate` this is the only role that knows JSON paths.

pub(crate) mod conditions;
pub(crate) mod deployment;
pub(crate) mod owned_set;
pub(crate) mod pod;
pub(crate) mod replica_set;

use convoy_api::Object;
use convoy_api::apps::REPLICA_SET;
use convoy_api::apps::spec::DeploymentSpec;
use convoy_api::object::member::field;
use serde_json::Value;

/// The pod template, as raw JSON: it is compared, hashed and copied as it stands.
pub(crate) fn template(owner: &Object) -> &Value {
    field(owner.spec(), "template")
}

/// Whether the decision about a rollout looks at pods: a ReplicaSet always does, a Deployment to
/// see old pods end (Recreate) or new ones settle (minReadySeconds).
pub(crate) fn needs_pods(rollout: &Object) -> bool {
    if *rollout.kind() == REPLICA_SET {
        return true;
    }
    let Ok(spec) = rollout.spec_view::<DeploymentSpec>() else { return false };
    let is_recreate = spec.strategy.is_some_and(|it| it.kind.as_deref() == Some("Recreate"));
    is_recreate || spec.min_ready_seconds.is_some_and(|secs| secs > 0)
}
