//! Defaults of the controllers of pods.

use serde_json::{Value, json};

use crate::kinds::fill::{self, Fields};
use crate::kinds::pod::defaults::template_in;
use crate::kinds::storage;

/// A template is never absent, though it may be empty.
pub(super) fn make_template(object: &mut Value) {
    let template = fill::spec(object).and_then(|spec| fill::make(spec, "template"));
    if let Some(template) = template {
        fill::make(template, "spec");
    }
}

pub(super) fn daemon_set(object: &mut Value) {
    let Some(spec) = fill::spec(object) else { return };
    if let Some(strategy) = fill::make(spec, "updateStrategy") {
        fill::text(strategy, "type", "RollingUpdate");
        if strategy["type"] == "RollingUpdate"
            && let Some(rolling) = fill::make(strategy, "rollingUpdate")
        {
            fill::absent(rolling, "maxUnavailable", || json!(1));
            fill::absent(rolling, "maxSurge", || json!(0));
        }
    }
    fill::absent(spec, "revisionHistoryLimit", || json!(10));
    template_in(spec);
}

pub(super) fn stateful_set(object: &mut Value) {
    let Some(spec) = fill::spec(object) else { return };
    fill::text(spec, "podManagementPolicy", "OrderedReady");
    if let Some(strategy) = fill::make(spec, "updateStrategy") {
        if fill::given(strategy, "type").is_empty() {
            fill::text(strategy, "type", "RollingUpdate");
            fill::make(strategy, "rollingUpdate");
        }
        if strategy["type"] == "RollingUpdate"
            && let Some(rolling) = fill::fields(strategy.get_mut("rollingUpdate"))
        {
            fill::absent(rolling, "partition", || json!(0));
        }
    }
    if let Some(policy) = fill::make(spec, "persistentVolumeClaimRetentionPolicy") {
        fill::text(policy, "whenDeleted", "Retain");
        fill::text(policy, "whenScaled", "Retain");
    }
    fill::absent(spec, "replicas", || json!(1));
    fill::absent(spec, "revisionHistoryLimit", || json!(10));
    template_in(spec);
    fill::each(spec.get_mut("volumeClaimTemplates"), |claim| {
        // Whatever it says, a template of claims is one.
        claim.insert("kind".to_owned(), json!("PersistentVolumeClaim"));
        claim.insert("apiVersion".to_owned(), json!("v1"));
        storage::defaults::claim(claim);
    });
}

/// Selector and labels come from the template where they are not given.
pub(super) fn replication_controller(object: &mut Value) {
    let Some(spec) = fill::spec(object) else { return };
    fill::absent(spec, "replicas", || json!(1));
    let labels = spec.get("template").map(|template| template["metadata"]["labels"].clone());
    if spec.get("template").is_some_and(Value::is_object) {
        template_in(spec);
    }
    let Some(labels) = labels.filter(Value::is_object) else { return };
    if is_empty_map(spec, "selector") {
        spec.insert("selector".into(), labels.clone());
    }
    adopt_labels(object, labels);
}

/// An object without labels takes those of its pods.
pub(in crate::kinds) fn adopt_labels(object: &mut Value, labels: Value) {
    let metadata = crate::metadata::of(object);
    if is_empty_map(metadata, "labels") {
        metadata.insert("labels".into(), labels);
    }
}

fn is_empty_map(map: &Fields, key: &str) -> bool {
    map.get(key).and_then(Value::as_object).is_none_or(Fields::is_empty)
}
