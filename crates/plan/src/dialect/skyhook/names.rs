//! The names that a Skyhook goes by on other objects: annotation, label and condition keys,
//! and the names of pods and ConfigMaps.

pub(super) use convoy_api::skyhook::names::{PACKAGE, PAUSE};
pub(super) use convoy_api::well_known::annotation::{CONFIG_MIRROR, LIMIT_RANGER};
pub(super) use convoy_api::well_known::taint::UNSCHEDULABLE;
use sha2::{Digest, Sha256};
use smol_str::SmolStr;

/// The images of package pods, as upstream's operator has them by default.
pub(super) const AGENT_IMAGE: &str = "ghcr.io/nvidia/skyhook/agent:v6.4.0";
pub(super) const PAUSE_IMAGE: &str = "registry.k8s.io/pause:3.10";

/// What every key of ours begins with.
pub(super) const PREFIX: &str = "skyhook.nvidia.com/";
/// On pods and ConfigMaps: whose they are.
pub(super) const NAME: &str = "skyhook.nvidia.com/name";
/// On interrupt pods.
pub(super) const INTERRUPT: &str = "skyhook.nvidia.com/interrupt";
/// On nodes, by people: leave it alone.
pub(super) const IGNORE: &str = "skyhook.nvidia.com/ignore";
/// On Skyhooks, by people, as is [`PAUSE`]; only the text `true` counts.
pub(super) const DISABLE: &str = "skyhook.nvidia.com/disable";
/// On a `DeploymentPolicy`, by people: which nodes count as progress towards the safety limit.
pub(super) const SAFETY_PROGRESS: &str = "convoy.dev/safety-progress";
/// On Skyhooks: the operator version that last wrote them.
pub(super) const VERSION: &str = "skyhook.nvidia.com/version";
/// On node metadata ConfigMaps.
pub(super) const NODE_META: &str = "skyhook.nvidia.com/skyhook-node-meta";
/// On a package's ConfigMap while nodes are being told about a change: the changed keys.
pub(super) const PENDING_KEYS: &str = "skyhook.nvidia.com/configUpdates";
pub(super) const FINALIZER: &str = "skyhook.nvidia.com/skyhook";
/// On nodes, with a Skyhook's name behind it.
pub(super) const CORDON: &str = "skyhook.nvidia.com/cordon_";
/// On nodes, with a Skyhook's name behind it.
pub(super) const NODE_STATE: &str = "skyhook.nvidia.com/nodeState_";
/// On nodes, with a taint's key behind it.
pub(super) const AUTO_TAINT: &str = "skyhook.nvidia.com/autoTaint_";

/// The keys that one Skyhook uses on nodes.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    pub(super) node_state: String,
    pub(super) status: String,
    pub(super) cordon: String,
    pub(super) version: String,
    pub(super) boot: String,
    /// Which batch the node was picked for.
    pub(super) batch: String,
    pub(super) not_ready: String,
    pub(super) erroring: String,
}

impl Keys {
    pub(super) fn of(skyhook: &str) -> Self {
        Self {
            node_state: format!("{NODE_STATE}{skyhook}"),
            status: format!("{PREFIX}status_{skyhook}"),
            cordon: format!("{CORDON}{skyhook}"),
            version: format!("{PREFIX}version_{skyhook}"),
            boot: format!("{PREFIX}bootId_{skyhook}"),
            batch: format!("{PREFIX}batch_{skyhook}"),
            not_ready: format!("{PREFIX}{skyhook}/NotReady"),
            erroring: format!("{PREFIX}{skyhook}/Erroring"),
        }
    }
}

/// `name|version`, the key of a package in node state.
pub(super) fn unique(name: &str, version: &str) -> String {
    format!("{name}|{version}")
}

/// The parts as one name of at most `longest` bytes, told apart by a hash of all of them.
pub(super) fn safe_name(longest: usize, parts: &[&str]) -> String {
    let joined = parts.join("-").replace('.', "-");
    let digest = Sha256::digest(joined.as_bytes());
    let hash = digest.iter().take(4).fold(0u32, |hash, byte| hash << 8 | u32::from(*byte));
    let mut end = joined.len().min(longest.saturating_sub(9));
    while !joined.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}-{hash:08x}", &joined[..end]).to_lowercase()
}

/// On nodes: the taint of this key is ours. A key may have a prefix, and this one has one.
pub(super) fn auto_taint(taint_key: &str) -> String {
    format!("{AUTO_TAINT}{}", taint_key.replace('/', "_"))
}

/// The ConfigMap that holds a package's files.
pub(super) fn package_config_map(skyhook: &str, package: &str, version: &str) -> SmolStr {
    SmolStr::new(format!("{skyhook}-{package}-{version}").to_lowercase())
}

/// The ConfigMap that tells packages about their node.
pub(super) fn metadata_config_map(skyhook: &str, node: &str) -> SmolStr {
    SmolStr::new(safe_name(253, &[skyhook, node, "metadata"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_and_hashed() {
        let cases: [(usize, &[&str], &str); 3] = [
            (
                63,
                &["gpu-init", "driver", "1.2.3", "apply", "worker-1"],
                "gpu-init-driver-1-2-3-apply-worker-1-7355aae7",
            ),
            (
                63,
                &["gpu-init", "interrupt", "reboot", "worker-1"],
                "gpu-init-interrupt-reboot-worker-1-685e07d6",
            ),
            (253, &["gpu-init", "worker-1", "metadata"], "gpu-init-worker-1-metadata-04f1494d"),
        ];
        for (longest, parts, name) in cases {
            assert_eq!(safe_name(longest, parts), name);
        }
        let long = "x".repeat(100);
        assert_eq!(safe_name(63, &[&long]).len(), 63);
        assert!(safe_name(20, &["ééééééééééééé"]).len() <= 20);
    }
}
