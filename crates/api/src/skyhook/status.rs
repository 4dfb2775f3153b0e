//! What is published about a Skyhook. The nodes' own annotations are the truth; most of this
//! mirrors or sums them up.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde::{Deserialize, Serialize};

use crate::derive::JsonSchema;

/// The status sub-resource of a Skyhook.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkyhookStatus {
    /// The generation that was last completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// By node and `name|version`, where each package stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_state: Option<BTreeMap<String, BTreeMap<String, PackageStatus>>>,
    /// By node, where it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_status: Option<BTreeMap<String, StatusWord>>,
    /// The nodes' statuses in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<StatusWord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
    /// By node, the boot that was last seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_boot_ids: Option<BTreeMap<String, String>>,
    /// The nodes that were picked and are not complete, with when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_priority: Option<BTreeMap<String, Time>>,
    /// By package, the keys of its config that changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_updates: Option<BTreeMap<String, Vec<String>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compartment_statuses: Option<BTreeMap<String, CompartmentStatus>>,
    /// Nodes in progress or erroring.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 0))]
    pub nodes_in_progress: Option<i64>,
    /// `complete/targeted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "0/0"))]
    pub complete_nodes: Option<String>,
    /// `name:version` of every package, sorted, joined by commas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = ""))]
    pub package_list: Option<String>,
}

/// Where a node or a whole Skyhook stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StatusWord {
    Unknown,
    Complete,
    Blocked,
    Waiting,
    Disabled,
    Paused,
    InProgress,
    Erroring,
}

/// Where one package stands on one node.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct PackageStatus {
    pub name: String,
    pub version: String,
    pub image: String,
    #[serde(default, rename = "containerSHA", skip_serializing_if = "Option::is_none")]
    pub container_sha: Option<String>,
    pub stage: Stage,
    pub state: PackageState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarts: Option<i32>,
}

/// The stages a package goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    Apply,
    Interrupt,
    PostInterrupt,
    Config,
    Uninstall,
    Upgrade,
}

/// How a stage went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PackageState {
    Complete,
    InProgress,
    Skipped,
    Erroring,
    Unknown,
}

/// How far one compartment has come.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompartmentStatus {
    pub matched: i64,
    pub ceiling: i64,
    pub in_progress: i64,
    pub completed: i64,
    pub progress_percent: i64,
    /// Present where the compartment has a strategy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_state: Option<BatchState>,
}

/// Where a compartment is in its batches. What is zero or false is left out.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BatchState {
    /// Counts from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_batch: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consecutive_failures: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_nodes: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_nodes: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub should_stop: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_batch_size: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_batch_failed: Option<bool>,
}
