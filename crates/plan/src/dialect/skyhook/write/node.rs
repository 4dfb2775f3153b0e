//! What is written to nodes: status word, node state, cordon and taint in one patch, and the
//! two node conditions. One patch per node, so that a slot is taken, and a node cordoned, at
//! one instant.

use convoy_api::Object;
use convoy_api::skyhook::StatusWord;
use serde_json::{Map, Value, json};

use crate::dialect::skyhook::names::{CORDON, Keys, auto_taint};
use crate::dialect::skyhook::read::mark::Mark;
use crate::dialect::skyhook::read::node::{boot_id, is_cordoned, is_taint, taints, word_text};
use crate::dialect::skyhook::read::options::RuntimeTaint;
use crate::merge_patch::nested;
use crate::step::{Action, Verb, Why};

/// A patch of one node under construction.
#[derive(Clone, Debug)]
pub(crate) struct NodePatch<'w> {
    node: &'w Object,
    annotations: Map<String, Value>,
    labels: Map<String, Value>,
    spec: Map<String, Value>,
}

impl<'w> NodePatch<'w> {
    pub(crate) fn new(node: &'w Object) -> Self {
        Self { node, annotations: Map::new(), labels: Map::new(), spec: Map::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.annotations.is_empty() && self.labels.is_empty() && self.spec.is_empty()
    }

    /// The status word, as annotation and as label.
    pub(crate) fn word(&mut self, keys: &Keys, word: StatusWord, version: &str) {
        let text = word_text(word);
        if self.node.annotation(&keys.status) != Some(text) {
            self.annotate(&keys.status, json!(text));
        }
        if self.node.label(&keys.status) != Some(text) {
            self.labels.insert(keys.status.clone(), json!(text));
        }
        if !self.is_empty() && self.node.annotation(&keys.version) != Some(version) {
            self.annotate(&keys.version, json!(version));
        }
    }

    pub(crate) fn node_state(&mut self, keys: &Keys, text: &str) {
        let stored = self.node.annotation(&keys.node_state);
        if stored != Some(text) && !(stored.is_none() && text == "{}") {
            self.annotate(&keys.node_state, json!(text));
        }
    }

    /// The batch that it was picked for.
    pub(crate) fn mark(&mut self, keys: &Keys, mark: &Mark<'_>) {
        let text = mark.text();
        if self.node.annotation(&keys.batch) != Some(&text) {
            self.annotate(&keys.batch, json!(text));
        }
    }

    /// The boot that it runs, so that another is noticed.
    pub(crate) fn boot_id(&mut self, keys: &Keys) {
        let running = boot_id(self.node);
        if let Some(running) = running.filter(|_| self.node.annotation(&keys.boot) != running) {
            self.annotate(&keys.boot, json!(running));
        }
    }

    /// Keeps new pods away, in this Skyhook's name.
    pub(crate) fn cordon(&mut self, keys: &Keys) {
        self.annotate(&keys.cordon, json!("true"));
        self.spec.insert("unschedulable".to_owned(), json!(true));
    }

    /// Lifts this Skyhook's cordon. The node stays cordoned while another holds it too.
    pub(crate) fn uncordon(&mut self, keys: &Keys) {
        if self.node.annotation(&keys.cordon).is_none() {
            return;
        }
        self.annotate(&keys.cordon, Value::Null);
        let held = |(key, _): (&str, &str)| key.starts_with(CORDON) && key != keys.cordon;
        if is_cordoned(self.node) && !self.node.annotations().any(held) {
            self.spec.insert("unschedulable".to_owned(), Value::Null);
        }
    }

    /// Adds the taint that keeps workloads off, with a mark that it is ours.
    pub(crate) fn taint(&mut self, taint: &RuntimeTaint) {
        let mut taints = taints(self.node).to_vec();
        let RuntimeTaint { key, value, effect } = taint;
        taints.push(json!({"key": key, "value": value, "effect": effect}));
        self.spec.insert("taints".to_owned(), Value::Array(taints));
        self.annotate(&auto_taint(key), json!("true"));
    }

    /// Removes that taint, and the mark where there is one.
    pub(crate) fn untaint(&mut self, taint: &RuntimeTaint) {
        let mut taints = taints(self.node).to_vec();
        taints.retain(|entry| !is_taint(taint, entry));
        self.spec.insert("taints".to_owned(), Value::Array(taints));
        let mark = auto_taint(&taint.key);
        if self.node.annotation(&mark).is_some() {
            self.annotate(&mark, Value::Null);
        }
    }

    /// Forgets everything that one Skyhook recorded here.
    pub(crate) fn forget(&mut self, keys: &Keys) {
        self.uncordon(keys);
        for key in [&keys.node_state, &keys.status, &keys.boot, &keys.batch] {
            if self.node.annotation(key).is_some() {
                self.annotate(key, Value::Null);
            }
        }
        if self.node.label(&keys.status).is_some() {
            self.labels.insert(keys.status.clone(), Value::Null);
        }
    }

    /// The patch; none if there is nothing to write.
    pub(crate) fn action(self, verb: Verb, why: Why) -> Option<Action> {
        if self.is_empty() {
            return None;
        }
        let mut patch = Map::new();
        let mut metadata = Map::new();
        if !self.annotations.is_empty() {
            metadata.insert("annotations".to_owned(), Value::Object(self.annotations));
        }
        if !self.labels.is_empty() {
            metadata.insert("labels".to_owned(), Value::Object(self.labels));
        }
        if !metadata.is_empty() {
            patch.insert("metadata".to_owned(), Value::Object(metadata));
        }
        if !self.spec.is_empty() {
            patch.insert("spec".to_owned(), Value::Object(self.spec));
        }
        Some(Action::patch(verb, self.node, Value::Object(patch), why).concurrently())
    }

    fn annotate(&mut self, key: &str, value: Value) {
        self.annotations.insert(key.to_owned(), value);
    }
}

/// The two conditions that a Skyhook keeps on a node, written only where they read otherwise.
/// `now` is an instant as Kubernetes writes it.
pub(crate) fn conditions(
    node: &Object,
    skyhook: &str,
    keys: &Keys,
    (complete, erroring): (bool, bool),
    now: &Value,
) -> Option<Action> {
    let (not_ready, ready_reason) =
        if complete { ("False", "Complete") } else { ("True", "Incomplete") };
    let (failing, failing_reason) = if erroring {
        ("True", "Package(s) Erroring or Unknown")
    } else {
        ("False", "Not Erroring")
    };
    let ready_message = format_args!("Skyhook {skyhook} Ready");
    let failing_message = format_args!("Package Erroring or Unknown for {skyhook}");
    // The reason follows from the status, so that it need not be looked for in the JSON, which
    // is most of what a node at rest would cost.
    if node.condition_status(&keys.not_ready) == Some(not_ready)
        && node.condition_status(&keys.erroring) == Some(failing)
    {
        return None;
    }
    let wanted = [
        (&keys.not_ready, not_ready, ready_reason, ready_message.to_string()),
        (&keys.erroring, failing, failing_reason, failing_message.to_string()),
    ];
    let mut list =
        node.status().get("conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    for (kind, status, reason, message) in wanted.into_iter().rev() {
        put_first(&mut list, kind, status, reason, message, now);
    }
    let patch = nested(&["status", "conditions"], Value::Array(list));
    let standing = if complete { "complete" } else { "incomplete" };
    let why = Why::new("NodeConditions", format!("mark the node as {standing}"));
    Some(Action::patch_status(Verb::Record, node, patch, why).concurrently())
}

/// Replaces the condition where it stands, or puts it in front. Its transition time is kept
/// unless the status changes.
fn put_first(
    list: &mut Vec<Value>,
    kind: &str,
    status: &str,
    reason: &str,
    message: String,
    now: &Value,
) {
    let at = list.iter().position(|entry| entry["type"] == kind);
    let since = at
        .map(|at| &list[at])
        .filter(|entry| entry["status"] == status)
        .and_then(|entry| entry.get("lastTransitionTime").cloned())
        .unwrap_or_else(|| now.clone());
    let mut entry = Map::with_capacity(6);
    let mut put = |name: &str, value: Value| entry.insert(name.to_owned(), value);
    put("type", kind.into());
    put("status", status.into());
    put("lastHeartbeatTime", now.clone());
    put("lastTransitionTime", since);
    put("reason", reason.into());
    put("message", message.into());
    match at {
        Some(at) => list[at] = Value::Object(entry),
        None => list.insert(0, Value::Object(entry)),
    }
}
