//! Replica sets: which placements one refers to, with which strategy, and how its works are
//! labelled.

use convoy_api::Object;
use convoy_api::object::member::{field, list, text};
use convoy_api::ocm::names::{PLACEMENT_NAME_LABEL, REPLICA_SET_FINALIZER, REPLICA_SET_LABEL};
use serde_json::{Value, json};

use super::strategy::{Strategy, StrategyError};

/// A placement that a replica set refers to, and how the template is handed through its groups.
#[derive(Clone, Debug)]
pub(crate) struct PlacementRef<'o> {
    pub(crate) name: &'o str,
    pub(crate) strategy: Result<Strategy, StrategyError>,
}

/// The placement references, in order.
pub(crate) fn placement_refs(replica_set: &Object) -> impl Iterator<Item = PlacementRef<'_>> {
    entries(replica_set).iter().map(|entry| PlacementRef {
        name: text(entry, "name"),
        strategy: Strategy::read(field(entry, "rolloutStrategy")),
    })
}

/// The names of the placements that a replica set refers to, without their strategies.
pub(crate) fn referenced(replica_set: &Object) -> impl Iterator<Item = &str> {
    entries(replica_set).iter().map(|entry| text(entry, "name"))
}

/// Each is read by itself: one whose strategy does not fit its type, which [`Strategy`] reports,
/// still names its placement.
fn entries(replica_set: &Object) -> &[Value] {
    list(replica_set.spec(), "placementRefs")
}

/// `namespace.name`, as the works' label says it.
pub(crate) fn owner_value(replica_set: &Object) -> String {
    format!("{}.{}", replica_set.namespace(), replica_set.name())
}

/// Whether deletion waits until the works are gone.
pub(crate) fn deletes_in_foreground(replica_set: &Object) -> bool {
    text(replica_set.spec(), "cascadeDeletionPolicy") == "Foreground"
}

/// Whether the finalizer keeps a replica set until its works are deleted.
pub(crate) fn is_protected(replica_set: &Object) -> bool {
    replica_set.has_finalizer(REPLICA_SET_FINALIZER)
}

/// The labels of the works that a replica set makes for a placement.
pub(crate) fn work_labels(replica_set: &Object, placement: &str) -> Value {
    let own = replica_set.labels().map(|(key, value)| (key.to_owned(), json!(value)));
    let ours = [
        (REPLICA_SET_LABEL.to_owned(), json!(owner_value(replica_set))),
        (PLACEMENT_NAME_LABEL.to_owned(), json!(placement)),
    ];
    Value::Object(own.chain(ours).collect())
}
