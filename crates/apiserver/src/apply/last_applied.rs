//! The annotation of kubectl's client-side apply, for objects that move to server-side apply.
//! Only the field manager `kubectl` is treated like this.

use convoy_api::well_known::annotation::LAST_APPLIED as ANNOTATION;
use serde_json::{Map, Value};

use super::check::{Duplicates, check};
use super::compare::compare;
use super::conflict::Conflicts;
use super::fields::FieldSet;
use super::own::set_of;
use super::{Context, same};

const KUBECTL: &str = "kubectl";
/// All annotations of an object together; see the metadata rules.
const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

/// The conflicts without those on fields that client-side apply wrote and nobody changed since.
pub(super) fn conflicts_left(
    context: &Context<'_>,
    live: &Value,
    conflicts: Conflicts,
) -> Conflicts {
    if context.manager != KUBECTL {
        return conflicts;
    }
    match unchanged_since(context, live) {
        Some(allowed) => conflicts.without(&allowed),
        None => conflicts,
    }
}

/// Keeps the annotation, if the object has one, in step with what was applied.
pub(super) fn refresh(context: &Context<'_>, object: &mut Value, config: &Value) {
    if context.manager != KUBECTL || annotation(object).is_none() {
        return;
    }
    let mut config = config.clone();
    if let Some(Value::Object(annotations)) = config.pointer_mut("/metadata/annotations") {
        annotations.shift_remove(ANNOTATION);
    }
    config.sort_all_objects();
    let Some(Value::Object(annotations)) = object.pointer_mut("/metadata/annotations") else {
        return;
    };
    annotations.insert(ANNOTATION.to_owned(), format!("{config}\n").into());
    if bytes(annotations) > ANNOTATIONS_BYTES_MAX {
        annotations.shift_remove(ANNOTATION);
    }
}

/// The fields that the annotation has exactly as the object has them.
fn unchanged_since(context: &Context<'_>, live: &Value) -> Option<FieldSet> {
    let applied: Value = serde_json::from_str(annotation(live)?).ok()?;
    if !same(applied.get("apiVersion")?, &context.api_version.into()) {
        return None;
    }
    check(context.shape, &applied, Duplicates::Refused).ok()?;
    check(context.shape, live, Duplicates::Refused).ok()?;
    let mut set = set_of(context.shape, &applied);
    let changes = compare(context.shape, &applied, live);
    set.subtract(&changes.written());
    set.subtract(&changes.removed);
    Some(set)
}

fn annotation(object: &Value) -> Option<&str> {
    let annotations = object.get("metadata")?.get("annotations")?;
    annotations.get(ANNOTATION)?.as_str().filter(|text| !text.is_empty())
}

fn bytes(annotations: &Map<String, Value>) -> usize {
    let value = |value: &Value| value.as_str().map_or(0, str::len);
    annotations.iter().map(|(key, text)| key.len() + value(text)).sum()
}
