//! The write ahead: every manifest is named in the Work's status before anything is written, so
//! that objects can be found again should this process end in between.

use convoy_api::Object;
use convoy_api::object::member::field;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::condition::{self, Condition};
use crate::dialect::fleet_agent::names::{APPLIED, PREPARING};
use crate::dialect::fleet_agent::read::manifest::Manifest;
use crate::dialect::fleet_agent::read::recorded::{self, Recorded};
use crate::step::{Action, Verb, Why};

/// Names the manifests; none if they are named already.
pub(super) fn announced(
    work: &Object,
    manifests: &[Manifest<'_>],
    now: Timestamp,
) -> Option<Action> {
    let known = recorded::of_work(work);
    let is_known = |manifest: &Manifest<'_>| {
        known.iter().any(|it| it.identifier.key("") == manifest.identifier.key(""))
    };
    if manifests.iter().filter(|it| it.problem.is_none()).all(is_known) {
        return None;
    }
    let entries = write_ahead(work, manifests, now);
    let mut status = json!({"manifestConditions": entries});
    // The definition of Works asks for it in every status, also in one that tells nothing yet.
    if !field(work.status(), "conditions").is_array() {
        status["conditions"] = json!([]);
    }
    let patch = json!({"status": status});
    let why = Why::new("PreparingToProcess", "the objects are named before they are written");
    Some(Action::patch_status(Verb::Record, work, patch, why))
}

/// The manifests as they are named before anything is written: what is known of them stays.
fn write_ahead(work: &Object, manifests: &[Manifest<'_>], now: Timestamp) -> Vec<Value> {
    let recorded = recorded::of_work(work);
    let usable = manifests.iter().filter(|manifest| manifest.problem.is_none());
    let named = usable.map(|manifest| {
        let key = manifest.identifier.key("");
        let known = recorded.iter().find(|it| it.identifier.key("") == key);
        known.map_or_else(|| prepared(manifest, work.generation(), now), |it| it.entry.clone())
    });
    // Those that have left the Work are named until their objects are gone.
    let is_left = |entry: &&Recorded<'_>| {
        let key = entry.identifier.key("");
        !manifests.iter().any(|manifest| manifest.identifier.key("") == key)
    };
    let left = recorded.iter().filter(is_left).map(|entry| entry.entry.clone());
    named.chain(left).collect()
}

/// The entry of a manifest that nothing was done about yet.
fn prepared(manifest: &Manifest<'_>, generation: i64, now: Timestamp) -> Value {
    let message = "the object is about to be written";
    let condition = Condition::new(APPLIED, "False", PREPARING, message).of_generation(generation);
    let mut conditions = Vec::new();
    condition::set(&mut conditions, &condition, now);
    json!({"identifier": manifest.identifier.to_value(), "conditions": conditions})
}
