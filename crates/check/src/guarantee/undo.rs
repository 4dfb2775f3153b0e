//! G9: Convoy undoes only its own changes. It uncordons a node only if our annotation says that we
//! cordoned it and no other rollout's annotation still holds it; it removes only its own taints.

use convoy_api::Object;
use convoy_api::kinds::NODE;
use convoy_plan::{Action, Write};
use serde_json::Value;

use crate::{Finding, Guarantee, Subject};

const CORDON_MARK: &str = "skyhook.nvidia.com/cordon_";

/// Taint keys that Convoy adds and removes, by dialect.
const OUR_TAINTS: [(&str, &str); 2] =
    [("skyhook", "skyhook.nvidia.com"), ("karpenter", "karpenter.sh/")];

pub(crate) fn only_what_we_did(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for action in &subject.step.actions {
        let Write::Patch { patch, .. } = &action.write else { continue };
        if action.target.kind != NODE {
            continue;
        }
        let Some(node) = subject.world.get(&action.target) else { continue };
        findings.extend(cordon(subject, action, node, patch));
        findings.extend(taints(subject, action, node, patch));
    }
}

fn cordon(subject: &Subject<'_>, action: &Action, node: &Object, patch: &Value) -> Option<Finding> {
    let cordoned = node.spec().get("unschedulable") == Some(&Value::Bool(true));
    let asked = patch.pointer("/spec/unschedulable")?;
    if !cordoned || *asked == Value::Bool(true) {
        return None;
    }
    let ours = format!("{CORDON_MARK}{}", subject.step.rollout.name);
    let left =
        |key: &str| patch.pointer("/metadata/annotations").and_then(|map| map.get(key)).is_none();
    let mut marks =
        node.annotations().map(|(key, _)| key).filter(|key| key.starts_with(CORDON_MARK));
    if node.annotation(&ours).is_none() {
        let message = format!("uncordons {} without holding its cordon", action.target.name);
        return Some(subject.finding(Guarantee::G9, message));
    }
    let other = marks.find(|key| *key != ours && left(key))?;
    let message = format!("uncordons {} though {other} still holds it", action.target.name);
    Some(subject.finding(Guarantee::G9, message))
}

fn taints(subject: &Subject<'_>, action: &Action, node: &Object, patch: &Value) -> Option<Finding> {
    let wanted = patch.pointer("/spec/taints")?;
    let keys = |list: &Value| -> Vec<String> {
        let entries = list.as_array().into_iter().flatten();
        entries.filter_map(|taint| Some(taint.get("key")?.as_str()?.to_owned())).collect()
    };
    let kept = keys(wanted);
    let ours = |key: &str| {
        OUR_TAINTS
            .iter()
            .any(|(dialect, mark)| *dialect == subject.step.dialect && key.starts_with(mark))
    };
    let before = keys(node.spec().get("taints").unwrap_or(&Value::Null));
    let lost = before.into_iter().find(|key| !kept.contains(key) && !ours(key))?;
    let message =
        format!("removes taint {lost} of {}, which Convoy did not add", action.target.name);
    Some(subject.finding(Guarantee::G9, message))
}
