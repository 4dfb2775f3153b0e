//! Condition types and reasons that upstream fixes. Kinds, labels and annotations are in
//! `convoy_api::ocm::names`, because other crates need them too.

/// The most characters that a label value may have.
pub(crate) const LABEL_VALUE_MAX: usize = 63;
/// The field at fault where a name does not fit.
pub(crate) const NAME_FIELD: &str = "metadata.name";

/// Conditions of a placement.
pub(crate) const PLACEMENT_SATISFIED: &str = "PlacementSatisfied";
pub(crate) const PLACEMENT_MISCONFIGURED: &str = "PlacementMisconfigured";

/// Conditions of a replica set.
pub(crate) const PLACEMENT_VERIFIED: &str = "PlacementVerified";
pub(crate) const PLACEMENT_ROLLED_OUT: &str = "PlacementRolledOut";
pub(crate) const MANIFEST_WORK_APPLIED: &str = "ManifestworkApplied";

/// Reasons of these conditions.
pub(crate) const AS_EXPECTED: &str = "AsExpected";
pub(crate) const NOT_AS_EXPECTED: &str = "NotAsExpected";
pub(crate) const PLACEMENT_DECISION_EMPTY: &str = "PlacementDecisionEmpty";
pub(crate) const PLACEMENT_DECISION_NOT_FOUND: &str = "PlacementDecisionNotFound";
pub(crate) const INVALID_MANIFEST_WORK_NAME: &str = "InvalidManifestWorkName";
pub(crate) const NOT_ALL_DECISIONS_SCHEDULED: &str = "NotAllDecisionsScheduled";

/// Conditions of a work, as its agent reports them.
pub(crate) const APPLIED: &str = "Applied";
pub(crate) const AVAILABLE: &str = "Available";
pub(crate) const PROGRESSING: &str = "Progressing";
pub(crate) const DEGRADED: &str = "Degraded";
