//! Cells that take more than a path: nodes, events, volumes, bindings, certificates.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::age::{age, duration};
use super::column::{Row, condition};
use super::selector;
use super::text::plain;

pub(super) fn node_status(row: &Row<'_>) -> Value {
    // The last one counts, should there be several.
    let ready = row.items("/status/conditions").filter(|one| one["type"] == "Ready").last();
    let status = match ready.map(|one| &one["status"]) {
        None => "Unknown",
        Some(status) if status == "True" => "Ready",
        Some(_) => "NotReady",
    };
    let is_cordoned = row.object["spec"]["unschedulable"] == true;
    json!(format!("{status}{}", if is_cordoned { ",SchedulingDisabled" } else { "" }))
}

pub(super) fn node_roles(row: &Row<'_>) -> Value {
    let labels = row.object["metadata"]["labels"].as_object().into_iter().flatten();
    let roles: BTreeSet<&str> = labels
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role),
            None if key == "kubernetes.io/role" => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    let roles: Vec<&str> = roles.into_iter().collect();
    json!(if roles.is_empty() { "<none>".to_owned() } else { roles.join(",") })
}

pub(super) fn internal_address(row: &Row<'_>) -> Value {
    address(row, "InternalIP")
}

pub(super) fn external_address(row: &Row<'_>) -> Value {
    address(row, "ExternalIP")
}

fn address(row: &Row<'_>, of: &str) -> Value {
    let mut addresses = row.items("/status/addresses");
    addresses.find(|one| one["type"] == of).map_or(json!("<none>"), |one| one["address"].clone())
}

pub(super) fn kernel(row: &Row<'_>) -> Value {
    let version = row.text_or("/status/nodeInfo/kernelVersion", "<unknown>");
    let architecture = row.text("/status/nodeInfo/architecture");
    json!(if architecture.is_empty() { version } else { format!("{version} ({architecture})") })
}

pub(super) fn event_first_seen(row: &Row<'_>) -> Value {
    json!(match row.text("/firstTimestamp") {
        "" => row.age("/eventTime"),
        first => age(Some(first), row.now),
    })
}

pub(super) fn event_last_seen(row: &Row<'_>) -> Value {
    if row.object["series"].is_object() {
        return json!(row.age("/series/lastObservedTime"));
    }
    match row.text("/lastTimestamp") {
        "" => event_first_seen(row),
        last => json!(age(Some(last), row.now)),
    }
}

pub(super) fn event_count(row: &Row<'_>) -> Value {
    json!(if row.object["series"].is_object() {
        row.number("/series/count")
    } else {
        row.number("/count").max(1)
    })
}

pub(super) fn event_object(row: &Row<'_>) -> Value {
    let kind = row.text("/involvedObject/kind").to_lowercase();
    let name = row.text("/involvedObject/name");
    json!(if name.is_empty() { kind } else { format!("{kind}/{name}") })
}

/// Who reported an event, and where.
pub(super) fn event_source(row: &Row<'_>) -> Value {
    let component = row.text_or("/source/component", row.text("/reportingComponent"));
    let instance = row.text_or("/source/host", row.text("/reportingInstance"));
    json!(if instance.is_empty() { component } else { format!("{component}, {instance}") })
}

pub(super) fn event_message(row: &Row<'_>) -> Value {
    json!(row.text("/message").trim())
}

pub(super) fn volume_modes(row: &Row<'_>) -> Value {
    access_modes(row, "/spec/accessModes")
}

/// A claim has what it asked for only once it has a volume.
pub(super) fn claim_modes(row: &Row<'_>) -> Value {
    match row.text("/spec/volumeName") {
        "" => json!(""),
        _ => access_modes(row, "/status/accessModes"),
    }
}

pub(super) fn claim_capacity(row: &Row<'_>) -> Value {
    json!(match row.text("/spec/volumeName") {
        "" => String::new(),
        _ => row.text_or("/status/capacity/storage", "0"),
    })
}

fn access_modes(row: &Row<'_>, pointer: &str) -> Value {
    let known = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let short = known.iter().filter(|(mode, _)| row.items(pointer).any(|one| one == mode));
    json!(short.map(|(_, short)| *short).collect::<Vec<_>>().join(","))
}

pub(super) fn volume_phase(row: &Row<'_>) -> Value {
    json!(if row.is_deleting() { "Terminating" } else { row.text("/status/phase") })
}

pub(super) fn volume_claim(row: &Row<'_>) -> Value {
    let claim = &row.object["spec"]["claimRef"];
    if !claim.is_object() {
        return json!("");
    }
    json!(format!("{}/{}", plain(&claim["namespace"]), plain(&claim["name"])))
}

/// An annotation of old counts before the field.
pub(super) fn storage_class(row: &Row<'_>) -> Value {
    let annotated =
        &row.object["metadata"]["annotations"]["volume.beta.kubernetes.io/storage-class"];
    json!(annotated.as_str().unwrap_or_else(|| row.text("/spec/storageClassName")))
}

/// Several classes may say that they are the default; the youngest is, and of equals the first
/// by name.
pub(super) fn storage_class_name(row: &Row<'_>) -> Value {
    let annotation = |object: &Value, key: &str| object["metadata"]["annotations"][key] == "true";
    let says_so = |object: &&Value| {
        annotation(object, "storageclass.kubernetes.io/is-default-class")
            || annotation(object, "storageclass.beta.kubernetes.io/is-default-class")
    };
    let name = |object: &Value| plain(&object["metadata"]["name"]);
    let created = |object: &Value| plain(&object["metadata"]["creationTimestamp"]);
    let default = row
        .siblings
        .iter()
        .filter(says_so)
        .max_by(|a, b| created(a).cmp(&created(b)).then_with(|| name(b).cmp(&name(a))));
    let is_default = default.is_some_and(|one| name(one) == name(row.object));
    json!(format!("{}{}", name(row.object), if is_default { " (default)" } else { "" }))
}

pub(super) fn token_audiences(row: &Row<'_>) -> Value {
    let Some(Value::Array(requests)) = row.object.pointer("/spec/tokenRequests") else {
        return json!("<unset>");
    };
    let audiences: Vec<String> = requests.iter().map(|one| plain(&one["audience"])).collect();
    json!(audiences.join(","))
}

pub(super) fn claim_state(row: &Row<'_>) -> Value {
    let is_allocated = row.object["status"]["allocation"].is_object();
    let is_reserved = is_allocated && row.items("/status/reservedFor").next().is_some();
    let states = [
        (row.is_deleting(), "deleted"),
        (!is_allocated && !row.is_deleting(), "pending"),
        (is_allocated, "allocated"),
        (is_reserved, "reserved"),
    ];
    let states: Vec<&str> = states.iter().filter(|(is, _)| *is).map(|(_, word)| *word).collect();
    json!(states.join(","))
}

pub(super) fn quota_requests(row: &Row<'_>) -> Value {
    quota(row, false)
}

pub(super) fn quota_limits(row: &Row<'_>) -> Value {
    quota(row, true)
}

fn quota(row: &Row<'_>, limits: bool) -> Value {
    let hard = row.object["status"]["hard"].as_object().into_iter().flatten();
    let used = &row.object["status"]["used"];
    let mut terms: Vec<String> = hard
        .filter(|(name, _)| name.starts_with("limits.") == limits)
        .map(|(name, hard)| {
            let used = match plain(&used[name.as_str()]) {
                used if used.is_empty() => "0".to_owned(),
                used => used,
            };
            format!("{name}: {used}/{}", plain(hard))
        })
        .collect();
    terms.sort();
    json!(terms.join(", "))
}

pub(super) fn component_status(row: &Row<'_>) -> Value {
    let healthy = condition(&row.object["conditions"], "Healthy").map(|one| &one["status"]);
    json!(match healthy {
        None => "Unknown",
        Some(status) if status == "True" => "Healthy",
        Some(_) => "Unhealthy",
    })
}

pub(super) fn component_message(row: &Row<'_>) -> Value {
    json!(
        condition(&row.object["conditions"], "Healthy")
            .map(|one| plain(&one["message"]))
            .unwrap_or_default()
    )
}

pub(super) fn component_error(row: &Row<'_>) -> Value {
    json!(
        condition(&row.object["conditions"], "Healthy")
            .map(|one| plain(&one["error"]))
            .unwrap_or_default()
    )
}

pub(super) fn role(row: &Row<'_>) -> Value {
    let role = &row.object["roleRef"];
    json!(format!("{}/{}", plain(&role["kind"]), plain(&role["name"])))
}

pub(super) fn bound_users(row: &Row<'_>) -> Value {
    subjects(row, "User")
}

pub(super) fn bound_groups(row: &Row<'_>) -> Value {
    subjects(row, "Group")
}

pub(super) fn bound_accounts(row: &Row<'_>) -> Value {
    subjects(row, "ServiceAccount")
}

fn subjects(row: &Row<'_>, kind: &str) -> Value {
    let names = row.items("/subjects").filter(|one| one["kind"] == kind).map(|one| match kind {
        "ServiceAccount" => format!("{}/{}", plain(&one["namespace"]), plain(&one["name"])),
        _ => plain(&one["name"]),
    });
    json!(names.collect::<Vec<_>>().join(", "))
}

pub(super) fn requested_duration(row: &Row<'_>) -> Value {
    let seconds = row.object.pointer("/spec/expirationSeconds").and_then(Value::as_i64);
    json!(seconds.map_or_else(|| "<none>".to_owned(), duration))
}

pub(super) fn certificate_state(row: &Row<'_>) -> Value {
    let conditions = &row.object["status"]["conditions"];
    let has = |of: &str| condition(conditions, of).is_some();
    let decision = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    };
    let failed = if has("Failed") { ",Failed" } else { "" };
    let issued = if row.text("/status/certificate").is_empty() { "" } else { ",Issued" };
    json!(format!("{decision}{failed}{issued}"))
}

pub(super) fn pod_certificate_state(row: &Row<'_>) -> Value {
    let states = row.items("/status/conditions").filter_map(|one| one["type"].as_str());
    let known = states.filter(|state| ["Issued", "Denied", "Failed"].contains(state));
    json!(known.last().unwrap_or("Pending"))
}

pub(super) fn policy_parameters(row: &Row<'_>) -> Value {
    let kind = &row.object["spec"]["paramKind"];
    if !kind.is_object() {
        return json!("<unset>");
    }
    json!(format!("{}/{}", plain(&kind["apiVersion"]), plain(&kind["kind"])))
}

pub(super) fn policy_binding_parameter(row: &Row<'_>) -> Value {
    let parameter = &row.object["spec"]["paramRef"];
    let (namespace, name) = (plain(&parameter["namespace"]), plain(&parameter["name"]));
    json!(match (namespace.is_empty(), name.is_empty()) {
        (false, false) => format!("{namespace}/{name}"),
        (true, false) => format!("*/{name}"),
        (_, true) if parameter["selector"].is_object() => selector::text(&parameter["selector"]),
        (_, true) => "<unset>".to_owned(),
    })
}

/// Who serves a group: this server, or a service.
pub(super) fn api_service(row: &Row<'_>) -> Value {
    let service = &row.object["spec"]["service"];
    if !service.is_object() {
        return json!("Local");
    }
    json!(format!("{}/{}", plain(&service["namespace"]), plain(&service["name"])))
}

pub(super) fn api_available(row: &Row<'_>) -> Value {
    let Some(available) = condition(&row.object["status"]["conditions"], "Available") else {
        return json!("Unknown");
    };
    let (status, reason) = (plain(&available["status"]), plain(&available["reason"]));
    json!(if status == "True" || reason.is_empty() {
        status
    } else {
        format!("{status} ({reason})")
    })
}

pub(super) fn missing_level(row: &Row<'_>) -> Value {
    let dangling = condition(&row.object["status"]["conditions"], "Dangling");
    json!(dangling.map_or_else(|| "?".to_owned(), |one| plain(&one["status"])))
}

/// Empty for a taint that nobody has timed.
pub(super) fn taint_age(row: &Row<'_>) -> Value {
    let added = "/spec/taint/timeAdded";
    json!(if row.text(added).is_empty() { String::new() } else { row.age(added) })
}

pub(super) fn migrated_resource(row: &Row<'_>) -> Value {
    let (resource, group) = (row.text("/spec/resource/resource"), row.text("/spec/resource/group"));
    json!(if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") })
}

/// The last of the conditions that hold and say how far a migration is.
pub(super) fn migration_state(row: &Row<'_>) -> Value {
    let states = ["Running", "Failed", "Succeeded"];
    let holding = row.items("/status/conditions").filter(|one| one["status"] == "True");
    let kinds = holding.filter_map(|one| one["type"].as_str());
    json!(kinds.filter(|kind| states.contains(kind)).last().unwrap_or("Unknown"))
}
