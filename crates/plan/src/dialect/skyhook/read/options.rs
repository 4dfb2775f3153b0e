//! What an operator is started with. Decisions depend on these as on any other input.

use smol_str::SmolStr;

use crate::dialect::skyhook::names::{AGENT_IMAGE, PAUSE_IMAGE};

/// The options, with upstream's defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where package pods and ConfigMaps live.
    pub namespace: SmolStr,
    pub agent_image: SmolStr,
    pub pause_image: SmolStr,
    pub image_pull_secret: Option<SmolStr>,
    /// Where packages are copied to on a node.
    pub copy_root: SmolStr,
    /// Where packages log to on a node.
    pub log_root: SmolStr,
    pub runtime_taint: RuntimeTaint,
    /// A node that rebooted, other than by an interrupt, starts over.
    pub reapply_on_reboot: bool,
    /// What is recorded as the operator's version.
    pub version: SmolStr,
}

/// The taint that keeps workloads off until every Skyhook that they require is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuntimeTaint {
    pub key: SmolStr,
    pub value: SmolStr,
    pub effect: SmolStr,
}

impl Options {
    /// `const`, so that the dialect can stand in a table.
    pub const fn new() -> Self {
        Self {
            namespace: SmolStr::new_static("skyhook"),
            agent_image: SmolStr::new_static(AGENT_IMAGE),
            pause_image: SmolStr::new_static(PAUSE_IMAGE),
            image_pull_secret: None,
            copy_root: SmolStr::new_static("/var/lib/skyhook"),
            log_root: SmolStr::new_static("/var/log/skyhook"),
            runtime_taint: RuntimeTaint {
                key: SmolStr::new_static("skyhook.nvidia.com"),
                value: SmolStr::new_static("runtime-required"),
                effect: SmolStr::new_static("NoSchedule"),
            },
            reapply_on_reboot: false,
            version: SmolStr::new_static("v0.13.0"),
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}
