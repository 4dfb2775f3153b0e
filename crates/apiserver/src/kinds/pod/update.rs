//! What may change in a pod once it exists.

use serde_json::Value;

use super::spec;
use crate::kinds::at::{At, Errors, same};

const CHANGEABLE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

pub(super) fn validate(pod: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    let (new_spec, old_spec) = (pod.get("spec"), old.get("spec"));
    for list in ["containers", "initContainers"] {
        let (new, before) = (new_spec.get(list), old_spec.get(list));
        if new.items().len() != before.items().len() {
            errors.push(new.forbidden("pod updates may not add or remove containers"));
            return;
        }
        for container in new.items() {
            let image = container.get("image");
            if image.text().trim() != image.text() {
                errors.push(image.invalid("must not have leading or trailing whitespace"));
            }
        }
    }
    if !deadline(&new_spec, &old_spec, errors) {
        return;
    }
    added_tolerations(&new_spec.get("tolerations"), &old_spec.get("tolerations"), errors);
    removed_gates(&new_spec.get("schedulingGates"), &old_spec.get("schedulingGates"), errors);
    if same(new_spec.value, old_spec.value) {
        return;
    }
    let kept = with_changeable(&new_spec, &old_spec, errors);
    if !same(&kept, old_spec.value) {
        let detail = format!(
            "pod updates may not change fields other than {CHANGEABLE}\n{}",
            differences(&kept, old_spec.value)
        );
        errors.push(new_spec.forbidden(&detail));
    }
}

/// Whether the deadline was set, or brought forward, or left alone.
fn deadline(new: &At<'_>, old: &At<'_>, errors: &mut Errors) -> bool {
    let deadline = new.get("activeDeadlineSeconds");
    let before = old.get("activeDeadlineSeconds").integer();
    match (deadline.integer(), before) {
        (Some(seconds), _) if !(0..=i64::from(i32::MAX)).contains(&seconds) => {
            deadline.within(0, i64::from(i32::MAX), errors);
            false
        }
        (Some(seconds), Some(before)) if seconds > before => {
            errors.push(deadline.invalid("must be less than or equal to previous value"));
            false
        }
        (None, Some(_)) => {
            errors.push(deadline.invalid("must not update from a positive integer to nil value"));
            true
        }
        _ => true,
    }
}

fn added_tolerations(new: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    let without_seconds = |toleration: &At<'_>| {
        let mut bare = toleration.value.clone();
        if let Value::Object(fields) = &mut bare {
            fields.shift_remove("tolerationSeconds");
        }
        bare
    };
    let present: Vec<Value> = new.items().iter().map(without_seconds).collect();
    if old.items().iter().any(|toleration| !present.contains(&without_seconds(toleration))) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        errors.push(new.forbidden(detail));
    }
}

fn removed_gates(new: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    let before = old.items();
    for gate in new.items() {
        let name = gate.get("name");
        if !before.iter().any(|old| old.get("name").text() == name.text()) {
            let detail = format!(
                "only deletion is allowed, but found new scheduling gate '{}'",
                name.text()
            );
            errors.push(name.forbidden(&detail));
        }
    }
}

/// The wanted spec with everything that may change as it was.
fn with_changeable(new: &At<'_>, old: &At<'_>, errors: &mut Errors) -> Value {
    let mut kept = new.value.clone();
    let before = old.value;
    for list in ["containers", "initContainers"] {
        let Some(containers) = kept.get_mut(list).and_then(Value::as_array_mut) else { continue };
        for (container, old) in
            containers.iter_mut().zip(before[list].as_array().into_iter().flatten())
        {
            container["image"] = old["image"].clone();
        }
    }
    let mut keep = |field: &str| {
        let Value::Object(fields) = &mut kept else { return };
        match before.get(field) {
            Some(value) => fields.insert(field.to_owned(), value.clone()),
            None => fields.shift_remove(field),
        };
    };
    for field in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        keep(field);
    }
    let grace = "terminationGracePeriodSeconds";
    if before[grace].as_i64().is_some_and(|seconds| seconds < 0) && new.value[grace] == 1 {
        keep(grace);
    }
    if !old.get("schedulingGates").is_empty() {
        let narrowed = old
            .get("nodeSelector")
            .entries()
            .iter()
            .all(|(key, value)| new.get("nodeSelector").value.get(*key) == Some(value.value));
        if !narrowed {
            let selector = new.get("nodeSelector");
            let detail = "only additions are allowed (no mutations or deletions)";
            errors.push(selector.invalid(detail));
        }
        keep("nodeSelector");
        keep("affinity");
    }
    kept
}

/// The fields that differ, for people.
fn differences(new: &Value, old: &Value) -> String {
    let names = |value: &Value| {
        value.as_object().map(|map| map.keys().cloned().collect::<Vec<_>>()).unwrap_or_default()
    };
    let mut all = [names(new), names(old)].concat();
    all.sort();
    all.dedup();
    let differing = all.iter().filter(|name| !same(&new[name.as_str()], &old[name.as_str()]));
    let lines: Vec<String> = differing
        .map(|name| format!("  spec.{name}: {} -> {}", old[name.as_str()], new[name.as_str()]))
        .collect();
    lines.join("\n")
}

/// Ephemeral containers are added, never changed or taken away.
pub(super) fn ephemeral(pod: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    let (new, before) = (pod.get("spec.ephemeralContainers"), old.get("spec.ephemeralContainers"));
    check_added_only(&new, &before, errors);
    spec::tolerations(&pod.get("spec.tolerations"), errors);
}

/// Everything that was in a list of named things is still there, as it was.
fn check_added_only(new: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    let present = new.items();
    for before in old.items() {
        let name = before.get("name").text();
        match present.iter().find(|one| one.get("name").text() == name) {
            None => {
                let detail = format!("existing ephemeral containers {name:?} may not be removed\n");
                errors.push(new.forbidden(&detail));
            }
            Some(one) if !same(one.value, before.value) => {
                let detail = format!("existing ephemeral containers {name:?} may not be changed\n");
                errors.push(new.forbidden(&detail));
            }
            Some(_) => {}
        }
    }
}
