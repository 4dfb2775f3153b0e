//! The state of a definition: its conditions, its names, the versions that were ever stored.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::conditions::{self, Condition};
use crate::surroundings::seconds;

use super::is_true;
use super::names::Verdict;
use super::rules::approval;

/// Holds a definition until its objects are gone.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The state in which a definition begins.
pub(crate) fn prepare_create(definition: &mut Value) {
    definition["status"] = json!({
        "conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": [],
    });
    note_storage_version(definition);
}

/// A version that becomes the stored one is remembered.
pub(crate) fn prepare_update(definition: &mut Value, subresource: &str) {
    if subresource.is_empty() {
        note_storage_version(definition);
    }
}

fn note_storage_version(definition: &mut Value) {
    let mut versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    let storage = versions.find(|version| version["storage"] == true);
    let Some(name) = storage.map(|version| version["name"].clone()) else { return };
    if let Some(Value::Array(stored)) = definition.pointer_mut("/status/storedVersions") {
        if !stored.contains(&name) {
            stored.push(name);
        }
    } else {
        definition["status"]["storedVersions"] = json!([name]);
    }
}

/// A deletion begins: the objects go first.
pub(crate) fn mark_deleting(definition: &mut Value) {
    let since = crate::metadata::text(definition, "deletionTimestamp").to_owned();
    let condition = Condition {
        kind: "Terminating",
        is_true: true,
        reason: "InstanceDeletionPending",
        message: "the definition is being deleted, and its objects will follow",
    };
    conditions::set(&mut definition["status"], &condition, &since);
}

/// Writes down what became of a definition's names. It is established once they were all
/// accepted, and stays so.
pub(crate) fn settle(definition: &mut Value, verdict: &Verdict, now: Timestamp) {
    let now = seconds(now);
    let was_established = is_true(definition, "Established");
    let approved = approval(definition);
    let status = &mut definition["status"];
    status["acceptedNames"] = verdict.accepted.clone();
    let (reason, message) = match &verdict.conflict {
        None => ("NoConflicts", "no conflicts found"),
        Some(conflict) => (conflict.reason, conflict.message.as_str()),
    };
    let is_free = verdict.conflict.is_none();
    let names = Condition { kind: "NamesAccepted", is_true: is_free, reason, message };
    conditions::set(status, &names, &now);
    let (reason, message) = if is_free {
        ("InitialNamesAccepted", "the initial names have been accepted")
    } else {
        ("NotAccepted", "not all names are accepted")
    };
    if !was_established {
        let established = Condition { kind: "Established", is_true: is_free, reason, message };
        conditions::set(status, &established, &now);
    }
    if let Some((is_true, reason, message)) = approved {
        let kind = "KubernetesAPIApprovalPolicyConformant";
        conditions::set(status, &Condition { kind, is_true, reason, message: &message }, &now);
    }
}
