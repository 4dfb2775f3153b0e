//! Availability of ordinary Kubernetes objects: whether what was applied also works.
//!
//! Each kind has its own test on its live status. Objects that carry only data are available
//! as soon as they exist; whatever has no test is not trackable, which callers weigh as they
//! see fit (most let a fixed time pass).

use std::fmt;

use convoy_api::Object;
use convoy_api::object::shape;
use serde_json::Value;

/// What is known about one object, with the reason for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Availability {
    Available,
    NotYetAvailable {
        detail: String,
    },
    /// No test exists for the kind.
    NotTrackable {
        detail: String,
    },
    /// The object cannot be read as its kind.
    Failed {
        detail: String,
    },
}

/// A test either reads the object to its end or finds a field of the wrong type.
type Judged = Result<Availability, String>;

const EXPORT_GROUP: &str = "networking.fleet.azure.com";
const EXPORT_WEIGHT: &str = "networking.fleet.azure.com/weight";
const EXPORT_WEIGHT_MAX: i64 = 1000;

impl Availability {
    /// The one word that plans print.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Available => "Available",
            Self::NotYetAvailable { .. } => "NotYetAvailable",
            Self::NotTrackable { .. } => "NotTrackable",
            Self::Failed { .. } => "Failed",
        }
    }

    fn not_yet(detail: impl Into<String>) -> Self {
        Self::NotYetAvailable { detail: detail.into() }
    }
}

impl fmt::Display for Availability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Available => f.write_str("available"),
            Self::NotYetAvailable { detail }
            | Self::NotTrackable { detail }
            | Self::Failed { detail } => f.write_str(detail),
        }
    }
}

/// Judges an object by its live state. A kind is known in its stable version only; a
/// `ServiceExport` in those it is served in.
pub fn judge(object: &Object) -> Availability {
    let kind = object.kind();
    let judged = match (kind.group.as_str(), object.version(), kind.kind.as_str()) {
        ("apps", "v1", "Deployment") => deployment(object),
        ("apps", "v1", "StatefulSet") => stateful_set(object),
        ("apps", "v1", "DaemonSet") => daemon_set(object),
        ("", "v1", "Service") => service(object),
        ("apiextensions.k8s.io", "v1", "CustomResourceDefinition") => definition(object),
        ("policy", "v1", "PodDisruptionBudget") => disruption_budget(object),
        (EXPORT_GROUP, "v1alpha1" | "v1beta1", "ServiceExport") => service_export(object),
        (group, "v1", kind) if is_data(group, kind) => Ok(Availability::Available),
        (_, _, kind) => Ok(Availability::NotTrackable {
            detail: format!("the availability of a {kind} cannot be told from its state"),
        }),
    };
    judged.unwrap_or_else(|detail| Availability::Failed { detail })
}

/// Kinds that do nothing themselves: they work as soon as they exist.
fn is_data(group: &str, kind: &str) -> bool {
    match group {
        "" => matches!(
            kind,
            "Namespace"
                | "Secret"
                | "ConfigMap"
                | "LimitRange"
                | "ResourceQuota"
                | "ServiceAccount"
        ),
        "rbac.authorization.k8s.io" => {
            matches!(kind, "Role" | "ClusterRole" | "RoleBinding" | "ClusterRoleBinding")
        }
        "networking.k8s.io" => matches!(kind, "NetworkPolicy" | "IngressClass"),
        "storage.k8s.io" => {
            matches!(kind, "CSIDriver" | "CSINode" | "StorageClass" | "CSIStorageCapacity")
        }
        "apps" => kind == "ControllerRevision",
        "scheduling.k8s.io" => kind == "PriorityClass",
        _ => false,
    }
}

fn deployment(object: &Object) -> Judged {
    let want = integer(object, "/spec/replicas")?.unwrap_or(1);
    let available = count(object, "/status/availableReplicas")?;
    let updated = count(object, "/status/updatedReplicas")?;
    let unavailable = count(object, "/status/unavailableReplicas")?;
    if let Some(behind) = behind(object)? {
        return Ok(behind);
    }
    if (available, updated, unavailable) == (want, want, 0) {
        return Ok(Availability::Available);
    }
    Ok(Availability::not_yet(format!(
        "{available} of {want} replicas available, {updated} updated, {unavailable} unavailable"
    )))
}

fn stateful_set(object: &Object) -> Judged {
    let want = integer(object, "/spec/replicas")?.unwrap_or(1);
    let available = count(object, "/status/availableReplicas")?;
    let current = count(object, "/status/currentReplicas")?;
    let updated = count(object, "/status/updatedReplicas")?;
    let from = text(object, "/status/currentRevision")?;
    let to = text(object, "/status/updateRevision")?;
    if let Some(behind) = behind(object)? {
        return Ok(behind);
    }
    if available == want && current == updated && from == to {
        return Ok(Availability::Available);
    }
    Ok(Availability::not_yet(format!(
        "{available} of {want} replicas available, {updated} updated; \
         going from revision {from:?} to {to:?}"
    )))
}

fn daemon_set(object: &Object) -> Judged {
    let want = count(object, "/status/desiredNumberScheduled")?;
    let available = count(object, "/status/numberAvailable")?;
    let current = count(object, "/status/currentNumberScheduled")?;
    let updated = count(object, "/status/updatedNumberScheduled")?;
    if let Some(behind) = behind(object)? {
        return Ok(behind);
    }
    if available == want && current == updated {
        return Ok(Availability::Available);
    }
    Ok(Availability::not_yet(format!(
        "{available} of {want} pods available, {updated} of {current} updated"
    )))
}

fn service(object: &Object) -> Judged {
    match text(object, "/spec/type")? {
        "" | "ClusterIP" | "NodePort" => {
            list(object, "/spec/clusterIPs")?;
            // A headless service has the address `None`, which counts as one.
            let assigned = !text(object, "/spec/clusterIPs/0")?.is_empty();
            Ok(when(assigned, "no cluster IP is assigned yet"))
        }
        "LoadBalancer" => {
            list(object, "/status/loadBalancer/ingress")?;
            let ip = text(object, "/status/loadBalancer/ingress/0/ip")?;
            let hostname = text(object, "/status/loadBalancer/ingress/0/hostname")?;
            let assigned = !ip.is_empty() || !hostname.is_empty();
            Ok(when(assigned, "the load balancer has neither an IP nor a host name yet"))
        }
        kind => Ok(Availability::NotTrackable {
            detail: format!("the availability of a Service of type {kind} cannot be told"),
        }),
    }
}

fn definition(object: &Object) -> Judged {
    list(object, "/status/conditions")?;
    let missing = ["Established", "NamesAccepted"]
        .into_iter()
        .find(|kind| object.condition_status(kind) != Some("True"));
    Ok(match missing {
        None => Availability::Available,
        Some(kind) => Availability::not_yet(format!("condition {kind} is not True yet")),
    })
}

fn disruption_budget(object: &Object) -> Judged {
    list(object, "/status/conditions")?;
    let allowed = count(object, "/status/disruptionsAllowed")?;
    let Some(condition) = object.condition("DisruptionAllowed") else {
        return Ok(Availability::not_yet("condition DisruptionAllowed is not set yet"));
    };
    if let Some(behind) = behind(object)? {
        return Ok(behind);
    }
    let want = if allowed > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    let word = |field| condition.get(field).and_then(Value::as_str).unwrap_or_default();
    let agrees = (word("status"), word("reason")) == want;
    let detail = format!(
        "{allowed} disruptions allowed, but DisruptionAllowed is {}/{}",
        word("status"),
        word("reason")
    );
    Ok(when(agrees, &detail))
}

/// A `ServiceExport` with weight 0 takes no traffic, so only its validity matters.
fn service_export(object: &Object) -> Judged {
    list(object, "/status/conditions")?;
    let current = |kind| {
        let condition = object.condition(kind)?;
        let observed = condition.get("observedGeneration").and_then(Value::as_i64).unwrap_or(0);
        (observed == object.generation()).then(|| condition.get("status")?.as_str())?
    };
    if current("ServiceExportValid") != Some("True") {
        return Ok(Availability::not_yet("condition ServiceExportValid is not True yet"));
    }
    let weight = match object.annotation(EXPORT_WEIGHT) {
        None => 1,
        Some(text) => text
            .parse::<i64>()
            .ok()
            .filter(|weight| (0..=EXPORT_WEIGHT_MAX).contains(weight))
            .ok_or_else(|| {
                format!("annotation {EXPORT_WEIGHT}: want 0 to {EXPORT_WEIGHT_MAX}, got {text:?}")
            })?,
    };
    let settled = weight == 0 || current("ServiceExportConflict") == Some("False");
    Ok(when(settled, "condition ServiceExportConflict is not False yet"))
}

fn when(available: bool, otherwise: &str) -> Availability {
    if available { Availability::Available } else { Availability::not_yet(otherwise) }
}

/// Set while the object's controller has not seen its latest change.
fn behind(object: &Object) -> Result<Option<Availability>, String> {
    let observed = count(object, "/status/observedGeneration")?;
    let generation = integer(object, "/metadata/generation")?.unwrap_or(0);
    Ok((observed != generation).then(|| {
        Availability::not_yet(format!(
            "generation {generation} is not observed yet ({observed} is)"
        ))
    }))
}

fn integer(object: &Object, pointer: &str) -> Result<Option<i64>, String> {
    match object.raw().pointer(pointer) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_i64().map(Some).ok_or_else(|| wrong(pointer, "an integer", value)),
    }
}

/// Absent counts are 0, as in Go.
fn count(object: &Object, pointer: &str) -> Result<i64, String> {
    integer(object, pointer).map(Option::unwrap_or_default)
}

fn text<'o>(object: &'o Object, pointer: &str) -> Result<&'o str, String> {
    match object.raw().pointer(pointer) {
        None | Some(Value::Null) => Ok(""),
        Some(value) => value.as_str().ok_or_else(|| wrong(pointer, "a string", value)),
    }
}

fn list(object: &Object, pointer: &str) -> Result<(), String> {
    match object.raw().pointer(pointer) {
        None | Some(Value::Null | Value::Array(_)) => Ok(()),
        Some(value) => Err(wrong(pointer, "a list", value)),
    }
}

fn wrong(pointer: &str, want: &str, got: &Value) -> String {
    let field = pointer.trim_start_matches('/').replace('/', ".");
    format!("{field}: want {want}, got {}", shape(got))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn judged(api_version: &str, kind: &str, rest: &Value) -> &'static str {
        let mut raw = json!({"apiVersion": api_version, "kind": kind,
            "metadata": {"name": "it", "generation": 2}});
        for (key, value) in rest.as_object().unwrap() {
            match key.as_str() {
                "annotations" => raw["metadata"]["annotations"] = value.clone(),
                _ => raw[key] = value.clone(),
            }
        }
        judge(&Object::from_value(raw).unwrap()).word()
    }

    #[test]
    fn workloads_are_available_when_every_replica_is_current_and_available() {
        let status = |available: i64, updated: i64| {
            json!({"observedGeneration": 2,
            "availableReplicas": available, "updatedReplicas": updated})
        };
        let cases = [
            ("all of three", json!({"spec": {"replicas": 3}, "status": status(3, 3)}), "Available"),
            ("one by default", json!({"status": status(1, 1)}), "Available"),
            (
                "zero wanted",
                json!({"spec": {"replicas": 0}, "status": {"observedGeneration": 2}}),
                "Available",
            ),
            (
                "too few",
                json!({"spec": {"replicas": 3}, "status": status(2, 3)}),
                "NotYetAvailable",
            ),
            (
                "old ones left",
                json!({"spec": {"replicas": 3}, "status": status(3, 2)}),
                "NotYetAvailable",
            ),
            (
                "not seen",
                json!({"spec": {"replicas": 1}, "status": {"observedGeneration": 1,
                "availableReplicas": 1, "updatedReplicas": 1}}),
                "NotYetAvailable",
            ),
            ("unreadable", json!({"spec": {"replicas": "3"}}), "Failed"),
        ];
        for (name, rest, want) in cases {
            assert_eq!(judged("apps/v1", "Deployment", &rest), want, "{name}");
        }
        let roll = |from: &str| {
            json!({"status": {"observedGeneration": 2, "availableReplicas": 1,
            "currentReplicas": 1, "updatedReplicas": 1, "currentRevision": from, "updateRevision": "b"}})
        };
        assert_eq!(judged("apps/v1", "StatefulSet", &roll("b")), "Available");
        assert_eq!(judged("apps/v1", "StatefulSet", &roll("a")), "NotYetAvailable");
        let nodes = |updated: i64| {
            json!({"status": {"observedGeneration": 2, "numberAvailable": 2,
            "desiredNumberScheduled": 2, "currentNumberScheduled": 2, "updatedNumberScheduled": updated}})
        };
        assert_eq!(judged("apps/v1", "DaemonSet", &nodes(2)), "Available");
        assert_eq!(judged("apps/v1", "DaemonSet", &nodes(1)), "NotYetAvailable");
        assert_eq!(judged("apps/v1beta1", "Deployment", &json!({})), "NotTrackable");
    }

    #[test]
    fn services_are_available_with_an_address() {
        let cases = [
            ("assigned", json!({"spec": {"clusterIPs": ["10.0.0.1"]}}), "Available"),
            (
                "headless",
                json!({"spec": {"type": "ClusterIP", "clusterIPs": ["None"]}}),
                "Available",
            ),
            ("the old field alone", json!({"spec": {"clusterIP": "10.0.0.1"}}), "NotYetAvailable"),
            ("empty", json!({"spec": {"type": "NodePort", "clusterIPs": [""]}}), "NotYetAvailable"),
            (
                "balancer",
                json!({"spec": {"type": "LoadBalancer"},
                "status": {"loadBalancer": {"ingress": [{"hostname": "a.example"}]}}}),
                "Available",
            ),
            (
                "balancer waits",
                json!({"spec": {"type": "LoadBalancer"},
                "status": {"loadBalancer": {"ingress": [{}]}}}),
                "NotYetAvailable",
            ),
            ("external", json!({"spec": {"type": "ExternalName"}}), "NotTrackable"),
            ("unreadable", json!({"spec": {"clusterIPs": "10.0.0.1"}}), "Failed"),
        ];
        for (name, rest, want) in cases {
            assert_eq!(judged("v1", "Service", &rest), want, "{name}");
        }
    }

    #[test]
    fn budgets_and_definitions_go_by_their_conditions() {
        let budget = |observed: i64, allowed: i64, status: &str, reason: &str| {
            let rest = json!({"status": {"observedGeneration": observed, "disruptionsAllowed": allowed,
                "conditions": [{"type": "DisruptionAllowed", "status": status, "reason": reason}]}});
            judged("policy/v1", "PodDisruptionBudget", &rest)
        };
        assert_eq!(budget(2, 1, "True", "SufficientPods"), "Available");
        assert_eq!(budget(2, 0, "False", "InsufficientPods"), "Available");
        assert_eq!(budget(2, 0, "True", "SufficientPods"), "NotYetAvailable");
        assert_eq!(budget(1, 1, "True", "SufficientPods"), "NotYetAvailable");
        let definition = |accepted: &str| {
            let rest = json!({"status": {"conditions": [{"type": "Established", "status": "True"},
                {"type": "NamesAccepted", "status": accepted}]}});
            judged("apiextensions.k8s.io/v1", "CustomResourceDefinition", &rest)
        };
        assert_eq!(definition("True"), "Available");
        assert_eq!(definition("False"), "NotYetAvailable");
    }

    #[test]
    fn a_service_export_is_judged_by_its_weight() {
        let export = |weight: Option<&str>, valid: &str, conflict: &str, observed: i64| {
            let condition = |kind: &str, status: &str| {
                json!({"type": kind, "status": status,
                "observedGeneration": observed})
            };
            let mut rest = json!({"status": {"conditions": [condition("ServiceExportValid", valid),
                condition("ServiceExportConflict", conflict)]}});
            if let Some(weight) = weight {
                rest["annotations"] = json!({EXPORT_WEIGHT: weight});
            }
            judged("networking.fleet.azure.com/v1alpha1", "ServiceExport", &rest)
        };
        assert_eq!(export(None, "True", "False", 2), "Available");
        assert_eq!(export(None, "True", "True", 2), "NotYetAvailable");
        assert_eq!(export(Some("0"), "True", "True", 2), "Available");
        assert_eq!(export(Some("0"), "False", "False", 2), "NotYetAvailable");
        assert_eq!(export(Some("1000"), "True", "False", 2), "Available");
        assert_eq!(export(Some("1001"), "True", "False", 2), "Failed");
        assert_eq!(export(Some("1001"), "False", "False", 2), "NotYetAvailable");
        assert_eq!(export(None, "True", "False", 1), "NotYetAvailable");
    }

    #[test]
    fn data_is_available_at_once_and_the_rest_is_not_trackable() {
        for (version, kind) in [
            ("v1", "Namespace"),
            ("v1", "ServiceAccount"),
            ("rbac.authorization.k8s.io/v1", "RoleBinding"),
            ("networking.k8s.io/v1", "IngressClass"),
            ("storage.k8s.io/v1", "CSINode"),
            ("apps/v1", "ControllerRevision"),
            ("scheduling.k8s.io/v1", "PriorityClass"),
        ] {
            assert_eq!(judged(version, kind, &json!({})), "Available", "{kind}");
        }
        for (version, kind) in [
            ("batch/v1", "Job"),
            ("networking.k8s.io/v1", "Ingress"),
            ("storage.k8s.io/v1beta1", "CSINode"),
            ("example.com/v1", "ConfigMap"),
        ] {
            assert_eq!(judged(version, kind, &json!({})), "NotTrackable", "{kind}");
        }
    }
}
