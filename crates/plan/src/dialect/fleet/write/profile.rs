//! The writes to the ClusterProfile of a member cluster.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use convoy_api::Object;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::dialect::fleet::decide::profile::{Health, Profile};
use crate::dialect::fleet::names::{
    CERTIFICATE_AUTHORITY, CLUSTER_MANAGER, CLUSTER_MANAGER_LABEL, CLUSTER_PROFILE,
    CLUSTER_PROFILE_API, ENTRY_POINT, KUBERNETES_VERSION, PROFILE_CLEANUP, PROPERTIES_COLLECTED,
    SYSTEM_NAMESPACE,
};
use crate::dialect::fleet::read::member::holds;
use crate::dialect::fleet::read::placement::{field, text};
use crate::dialect::fleet::write::membership::owned;
use crate::finalizer;
use crate::object_patch::ObjectPatch;
use crate::step::{Action, Propagation, Verb, Why};

const HEALTHY: &str = "ControlPlaneHealthy";

/// What the profile comes to. The finalizer of the member is in place before there is a profile, and
/// goes after it; one that somebody takes off stays off.
pub(crate) fn actions(member: &Object, profile: &Profile<'_>, now: Timestamp) -> Vec<Action> {
    match profile {
        Profile::Unwanted | Profile::Foreign { .. } | Profile::Withdrawn { found: None } => {
            Vec::new()
        }
        Profile::Withdrawn { found: Some(found) } if found.is_deleting() => Vec::new(),
        Profile::Withdrawn { found: Some(found) } => {
            let why = Why::new("MemberLeaving", format!("cluster {} leaves", member.name()));
            vec![Action::delete(Verb::Delete, found, Propagation::Background, why)]
        }
        Profile::Kept { found, health, .. } => {
            let Some(found) = found else {
                let why = Why::new("MemberProfiled", "its ClusterProfile is to be deleted with it");
                let guarded = finalizer::added(member, &[PROFILE_CLEANUP], why);
                return guarded.into_iter().chain([created(member)]).collect();
            };
            kept(member, found, *health, now)
        }
    }
}

/// The finalizers that a member which leaves does not need for its profile any more.
pub(crate) fn released(profile: &Profile<'_>) -> &'static [&'static str] {
    match profile {
        Profile::Withdrawn { found: None } => &[PROFILE_CLEANUP],
        _ => &[],
    }
}

fn spec(member: &Object) -> Value {
    json!({"displayName": member.name(), "clusterManager": {"name": CLUSTER_MANAGER}})
}

fn why(member: &Object) -> Why {
    Why::new("MemberProfiled", format!("cluster {} has joined", member.name()))
}

fn created(member: &Object) -> Action {
    let mut metadata = owned(member, member.name(), SYSTEM_NAMESPACE);
    metadata["labels"] = json!({CLUSTER_MANAGER_LABEL: CLUSTER_MANAGER});
    let object = json!({
        "apiVersion": CLUSTER_PROFILE_API,
        "kind": CLUSTER_PROFILE.kind,
        "metadata": metadata,
        "spec": spec(member),
    });
    let target = member.key().sibling(&CLUSTER_PROFILE, SYSTEM_NAMESPACE, member.name());
    Action::create(Verb::Create, target, object, why(member))
}

/// Puts the profile right, then what it says about the cluster.
fn kept(member: &Object, found: &Object, health: Health, now: Timestamp) -> Vec<Action> {
    let spec = spec(member);
    let is_labelled = found.label(CLUSTER_MANAGER_LABEL) == Some(CLUSTER_MANAGER);
    if field(found.spec(), "displayName") != &spec["displayName"] || !is_labelled {
        let labels = json!({CLUSTER_MANAGER_LABEL: CLUSTER_MANAGER});
        let patch = json!({"metadata": {"labels": labels}, "spec": spec});
        return vec![Action::patch(Verb::Record, found, patch, why(member))];
    }
    let mut patch = ObjectPatch::new(found, now);
    let (status, reason, message) = told(health);
    patch.set(HEALTHY, status, reason, message);
    if holds(member, PROPERTIES_COLLECTED) {
        if let Some(version) = property(member, KUBERNETES_VERSION) {
            patch.status("version", json!({"kubernetes": version}));
        }
        let access = json!({"name": CLUSTER_MANAGER, "cluster": access(member)});
        patch.status("accessProviders", json!([access]));
    }
    patch.actions(Verb::Record, &why(member))
}

/// How the cluster is reached, as far as its agent says; the server is a required field.
fn access(member: &Object) -> Value {
    let mut access = json!({"server": property(member, ENTRY_POINT).unwrap_or_default()});
    if let Some(certificates) = property(member, CERTIFICATE_AUTHORITY) {
        access["certificate-authority-data"] = json!(STANDARD.encode(certificates));
    }
    access
}

fn property<'w>(member: &'w Object, name: &str) -> Option<&'w str> {
    let value = text(field(field(member.status(), "properties"), name), "value");
    (!value.is_empty()).then_some(value)
}

fn told(health: Health) -> (&'static str, &'static str, &'static str) {
    match health {
        Health::NoReport => {
            ("Unknown", "MemberAgentReportedNoStatus", "the member agent has not reported yet")
        }
        Health::Silent => (
            "False",
            "MemberAgentHeartbeatLost",
            "the hub has not heard the member agent within the threshold",
        ),
        Health::Unsaid => (
            "Unknown",
            "MemberAgentReportedNoHealthInfo",
            "the member agent does not say whether the API server is healthy",
        ),
        Health::Unhealthy => (
            "False",
            "MemberClusterAPIServerUnhealthy",
            "the member agent finds the API server unhealthy",
        ),
        Health::Healthy => (
            "True",
            "MemberClusterAPIServerHealthy",
            "the member agent finds the API server healthy",
        ),
    }
}
