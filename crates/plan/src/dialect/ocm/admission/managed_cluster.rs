//! Managed clusters: what admission fills in, what it refuses, and the rights that it asks for.

use convoy_api::kinds::NAMESPACE;
use convoy_api::object::member::{field, list, text};
use convoy_api::object::meta::timestamp;
use convoy_api::ocm::names::{CLUSTER_GROUP, CLUSTER_SET_LABEL, DEFAULT_CLUSTER_SET};
use serde_json::{Value, json};

use crate::admission::{NeededRight, Request, Verdict};
use crate::condition::instant;
use crate::selector::is_dns_label;
use crate::world::World;

/// The set that a cluster is in, and when its taints were added.
pub(super) fn completed(object: &Value, request: &Request<'_>) -> Verdict {
    let mut changes = Vec::new();
    let labels = field(field(object, "metadata"), "labels");
    if text(labels, CLUSTER_SET_LABEL).is_empty() {
        let mut labels = labels.as_object().cloned().unwrap_or_default();
        labels.insert(CLUSTER_SET_LABEL.to_owned(), json!(DEFAULT_CLUSTER_SET));
        changes.push(json!({"op": "add", "path": "/metadata/labels", "value": labels}));
    }
    let given = list(field(object, "spec"), "taints");
    match taints(given, request) {
        Ok(dated) if dated == given => {}
        Ok(dated) => changes.push(json!({"op": "add", "path": "/spec/taints", "value": dated})),
        Err(keys) => {
            return Verdict::Invalid(format!(
                "It is not allowed to set TimeAdded of Taint {:?}.",
                keys.join(",")
            ));
        }
    }
    Verdict::Allowed { changes, warnings: Vec::new() }
}

/// The taints with the time at which they were added; the keys of those whose time somebody else
/// gave.
fn taints(given: &[Value], request: &Request<'_>) -> Result<Vec<Value>, Vec<String>> {
    let before = request.old.map(|old| list(field(old, "spec"), "taints"));
    let now = instant(request.circumstances.now);
    let mut wrong = Vec::new();
    let dated = given.iter().map(|taint| {
        let key = text(taint, "key");
        let mut dated = taint.clone();
        let known = before.and_then(|all| all.iter().find(|it| text(it, "key") == key));
        let is_kept = known.is_some_and(|known| {
            ["value", "effect"].iter().all(|part| text(known, part) == text(taint, part))
        });
        let [known_time, time] = [known.unwrap_or(&Value::Null), taint]
            .map(|it| timestamp(Some(field(it, "timeAdded"))));
        if is_kept {
            if known_time != time {
                wrong.push(key.to_owned());
            }
        } else if before.is_some() && time.is_some() {
            wrong.push(key.to_owned());
        } else if dated.is_object() {
            dated["timeAdded"] = now.clone();
        }
        dated
    });
    let dated: Vec<Value> = dated.collect();
    if wrong.is_empty() { Ok(dated) } else { Err(wrong) }
}

pub(super) fn judged(world: &World, object: &Value, request: &Request<'_>) -> Verdict {
    let (spec, name) = (field(object, "spec"), text(field(object, "metadata"), "name"));
    if request.old.is_none_or(|old| field(old, "spec") != spec) {
        let wrong = problems(name, spec);
        if !wrong.is_empty() {
            return Verdict::Invalid(wrong.join("\n"));
        }
    }
    let user = request.user;
    let forbidden = |what: &str, name: &str, why: String| {
        Verdict::Refused(format!("{what}.{CLUSTER_GROUP} {name:?} is forbidden: {why}"))
    };
    let is_leaving =
        |namespace: &convoy_api::Object| namespace.status_text("phase") == "Terminating";
    if is_accepting(object, request.old) && world.find(&NAMESPACE, "", name).is_some_and(is_leaving)
    {
        let why = format!("cluster namespace {name:?} is terminating");
        return forbidden("managedclusters/accept", name, why);
    }
    match request.circumstances.denied.first() {
        None => Verdict::allowed(),
        Some(right) if right.resource == "managedclusters" => {
            let why = format!("user {user:?} cannot update the HubAcceptsClient field");
            forbidden("managedclusters/accept", name, why)
        }
        Some(NeededRight { name: set, .. }) => {
            let why = format!(
                "user {user:?} cannot add/remove a ManagedCluster to/from ManagedClusterSet {set:?}"
            );
            forbidden("managedclustersets/join", set, why)
        }
    }
}

/// What is wrong with a cluster, in upstream's words.
fn problems(name: &str, spec: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    if !is_dns_label(name) {
        wrong.push(format!(
            "metadata.name format is not correct: {name:?} is no name of a namespace: want at \
             most 63 lower-case letters, digits or '-', beginning and ending with a letter or digit"
        ));
    }
    for config in list(spec, "managedClusterClientConfigs") {
        let url = text(config, "url");
        if url.strip_prefix("https://").is_none_or(str::is_empty) {
            wrong.push(format!("url {url:?} is invalid in client configs"));
        }
    }
    wrong
}

/// Whether the hub takes the cluster from now on.
fn is_accepting(object: &Value, old: Option<&Value>) -> bool {
    let accepts = |it: &Value| field(field(it, "spec"), "hubAcceptsClient").as_bool() == Some(true);
    accepts(object) && !old.is_some_and(accepts)
}

pub(super) fn rights(object: &Value, old: Option<&Value>) -> Vec<NeededRight> {
    let mut rights = Vec::new();
    if is_accepting(object, old) {
        rights.push(NeededRight {
            verb: "update",
            group: "register.open-cluster-management.io",
            resource: "managedclusters",
            subresource: "accept",
            namespace: String::new(),
            name: text(field(object, "metadata"), "name").to_owned(),
        });
    }
    let set =
        |it: &Value| text(field(field(it, "metadata"), "labels"), CLUSTER_SET_LABEL).to_owned();
    let (before, after) = (old.map(set).unwrap_or_default(), set(object));
    if before != after {
        let sets = [before, after].into_iter().filter(|set| !set.is_empty());
        rights.extend(sets.map(|set| of_set("join", &set)));
    }
    rights
}

/// The right to do something with a cluster set.
pub(super) fn of_set(subresource: &'static str, set: &str) -> NeededRight {
    NeededRight {
        verb: "create",
        group: CLUSTER_GROUP,
        resource: "managedclustersets",
        subresource,
        namespace: String::new(),
        name: set.to_owned(),
    }
}
