//! The kinds, annotations and reasons of the member agent. Those that it shares with the hub are
//! in the names of the fleet.

use convoy_api::{GroupKind, well_known};

use crate::dialect::fleet::names::FLEET_LABELS;

pub use crate::dialect::fleet::names::{
    APPLIED, AVAILABLE, CERTIFICATE_AUTHORITY, DIFF_REPORTED, ENTRY_POINT, INTERNAL_MEMBER_CLUSTER,
    KUBERNETES_VERSION, NAMESPACES_COLLECTED, PLACEMENT_GROUP, PROPERTIES_COLLECTED,
    PROVIDER_STARTED, WORK, WORK_CLEANUP, member_namespace,
};

/// The word that decision logs use.
pub const DIALECT: &str = "fleet-agent";

pub const APPLIED_WORK: GroupKind = GroupKind::new(PLACEMENT_GROUP, "AppliedWork");

/// The version that owner references name.
pub const PLACEMENT_API: &str = "placement.kubernetes-fleet.io/v1beta1";

/// The field manager of what is applied, as upstream's agent names it.
pub const FIELD_MANAGER: &str = "work-api-agent";

/// Annotations of objects on the member.
pub const SPEC_HASH: &str = "kubernetes-fleet.io/spec-hash";
pub const LAST_APPLIED: &str = "kubernetes-fleet.io/last-applied-configuration";

/// Annotations that other programs keep about objects; a manifest taken from a cluster may have
/// them, and they say nothing about another cluster.
pub const FOREIGN_ANNOTATIONS: [&str; 2] =
    [well_known::annotation::LAST_APPLIED, well_known::annotation::DEPLOYMENT_REVISION];

/// Domains whose labels and annotations no manifest sets.
pub const RESERVED_DOMAINS: [&str; 3] = [well_known::DOMAIN, "k8s.io/", FLEET_LABELS];

/// The property that counts nodes.
pub const NODE_COUNT: &str = "kubernetes-fleet.io/node-count";

/// A condition type of Works.
pub const STATUS_TRIMMED: &str = "StatusTrimmed";

/// Condition types of agents.
pub const JOINED: &str = "Joined";
pub const HEALTHY: &str = "Healthy";

/// Reasons of a manifest's `Applied`.
pub const PREPARING: &str = "PreparingToProcess";
pub const APPLY_FAILED: &str = "ManifestApplyFailed";
pub const DECODING_ERRED: &str = "DecodingErred";
