//! What a node says, beside the state of its packages: its boot, cordon, taints, and the status
//! word it carries.

use convoy_api::Object;
use convoy_api::skyhook::StatusWord;
use serde_json::Value;

use crate::dialect::skyhook::names::{CORDON, PREFIX};
use crate::dialect::skyhook::read::options::RuntimeTaint;
use crate::taint::Taint;

/// The boot that a node runs.
pub(crate) fn boot_id(node: &Object) -> Option<&str> {
    node.status().pointer("/nodeInfo/bootID")?.as_str()
}

pub(crate) fn is_cordoned(node: &Object) -> bool {
    node.spec().get("unschedulable") == Some(&Value::Bool(true))
}

/// Whether the cordon of `node` belongs to other Skyhooks and not to the one whose annotation is
/// `ours`. A cordon that bears no annotation of any Skyhook was set by somebody else: it is
/// neither joined nor lifted.
pub(crate) fn is_cordoned_by_others_only(node: &Object, ours: &str) -> bool {
    let mut marks = node.annotations().map(|(key, _)| key).filter(|key| key.starts_with(CORDON));
    is_cordoned(node) && node.annotation(ours).is_none() && marks.next().is_some()
}

/// The taints of a node, as they were written.
pub(crate) fn taints(node: &Object) -> &[Value] {
    let list = node.spec_member("taints").and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

/// Whether a node carries the taint.
pub(crate) fn has_taint(node: &Object, taint: &RuntimeTaint) -> bool {
    taints(node).iter().any(|entry| is_taint(taint, entry))
}

/// Whether `entry`, of a node's taints, is the taint.
pub(crate) fn is_taint(taint: &RuntimeTaint, entry: &Value) -> bool {
    let Taint { key, value, effect } = Taint::from_value(entry);
    (key, value, effect) == (&taint.key, &taint.value, &taint.effect)
}

/// Whether no Skyhook has ever written to a node.
pub(crate) fn is_new(node: &Object) -> bool {
    !node.annotations().any(|(key, _)| key.starts_with(PREFIX))
}

/// The status word that stands on the wire; none for a word that nobody knows.
pub(crate) fn parse_word(text: &str) -> Option<StatusWord> {
    Some(match text {
        "unknown" => StatusWord::Unknown,
        "complete" => StatusWord::Complete,
        "blocked" => StatusWord::Blocked,
        "waiting" => StatusWord::Waiting,
        "disabled" => StatusWord::Disabled,
        "paused" => StatusWord::Paused,
        "in_progress" => StatusWord::InProgress,
        "erroring" => StatusWord::Erroring,
        _ => return None,
    })
}

/// The word as it stands on the wire.
pub(crate) fn word_text(word: StatusWord) -> &'static str {
    match word {
        StatusWord::Unknown => "unknown",
        StatusWord::Complete => "complete",
        StatusWord::Blocked => "blocked",
        StatusWord::Waiting => "waiting",
        StatusWord::Disabled => "disabled",
        StatusWord::Paused => "paused",
        StatusWord::InProgress => "in_progress",
        StatusWord::Erroring => "erroring",
    }
}
