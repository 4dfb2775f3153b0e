//! The kinds, finalizers, annotations and reasons of the work agent. Those that it shares with the
//! hub are in the names of `ocm`.

pub use convoy_api::kinds::CUSTOM_RESOURCE_DEFINITION;

pub(crate) use crate::dialect::ocm::names::{
    APPLIED, AVAILABLE, COMPLETE, DELETING, PROGRESSING, WORK_FINALIZER,
};

/// The word that decision logs use.
pub const DIALECT: &str = "ocm-agent";

/// The version of `AppliedManifestWork` that owner references name.
pub(crate) const WORK_API: &str = "work.open-cluster-management.io/v1";

/// Keeps an `AppliedManifestWork` until its objects are gone.
pub const APPLIED_WORK_FINALIZER: &str =
    "cluster.open-cluster-management.io/applied-manifest-work-cleanup";

/// On an `AppliedManifestWork`: which manifests were applied in full.
pub const APPLIED_MANIFESTS: &str = "convoy.dev/applied-manifests";

/// On objects that are applied by the server with fields left to others: what was applied.
pub const CONFIG_SPEC_HASH: &str = "open-cluster-management.io/config-spec-hash";

/// The field manager of the agent.
pub const WORK_AGENT: &str = "work-agent";

/// A condition type of manifests.
pub(crate) const FEEDBACK_SYNCED: &str = "StatusFeedbackSynced";

/// Reasons of a manifest's `Applied`.
pub(crate) const APPLY_COMPLETE: &str = "AppliedManifestComplete";
pub(crate) const APPLY_FAILED: &str = "AppliedManifestFailed";

pub(crate) const IGNORE_FAILED: &str = "AppliedManifestSSAIgnoreFieldError";

/// What the message of a manifest that was not applied begins with.
pub(crate) const FAILED_PREFIX: &str = "Failed to apply manifest: ";

/// Reasons of conditions that rules give begin with this.
pub(crate) const RULE_PREFIX: &str = "ConditionRule";
pub(crate) const RULE_EVALUATED: &str = "ConditionRuleEvaluated";
pub(crate) const RULE_INVALID: &str = "ConditionRuleInvalid";
pub(crate) const RULE_FAILED: &str = "ConditionRuleExpressionError";
