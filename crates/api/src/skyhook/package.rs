//! Packages: what a Skyhook puts on a node, and what disturbs the node afterwards.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::EnvVar;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde::{Deserialize, Serialize};

use crate::derive::JsonSchema;

/// One package, under its name in the Skyhook's map.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Package {
    /// Taken from the map's key where absent; must equal it otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 43), regex(pattern = r"^[a-z][-a-z0-9]{0,41}[a-z]$"))]
    pub name: Option<String>,
    /// A semantic version; it is the image's tag as well.
    pub version: String,
    /// The package image without a tag; a tag is ignored.
    pub image: String,
    /// `sha256:…`; the image is pulled by it where given.
    #[serde(default, rename = "containerSHA", skip_serializing_if = "Option::is_none")]
    pub container_sha: Option<String>,
    /// The agent image with its tag, instead of the operator's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_image_override: Option<String>,
    /// What disturbs the node once the package is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupt: Option<Interrupt>,
    /// Packages, with their exact versions, that have to be complete first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depends_on: Option<BTreeMap<String, String>>,
    /// What disturbs the node when a key of the config changes, by key or glob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_interrupts: Option<BTreeMap<String, Interrupt>>,
    /// Files that the package reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map: Option<BTreeMap<String, String>>,
    /// Environment of the package's steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<Vec<EnvVar>>,
    /// Requests and limits of the package's steps: all four or none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceOverrides>,
    /// How long a step may take to stop, e.g. `46s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graceful_shutdown: Option<String>,
}

/// A disturbance of a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
pub struct Interrupt {
    #[serde(rename = "type")]
    pub kind: InterruptType,
    /// The services to restart, where the type is `service`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub services: Option<Vec<String>>,
}

/// What kind of disturbance.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum InterruptType {
    Service,
    Reboot,
    Noop,
    RestartAllServices,
}

/// Requests and limits of a package's steps.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceOverrides {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_request: Option<Quantity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_limit: Option<Quantity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_request: Option<Quantity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit: Option<Quantity>,
}
