//! Which groups of rollouts to member clusters miss a cluster: what was placed there does not work.

use std::collections::BTreeMap;

use convoy_api::object::member::{list, text};
use convoy_api::ocm::names::{
    GROUP_INDEX_LABELS, GROUP_NAME_LABELS, MANIFEST_WORK, MANIFEST_WORK_REPLICA_SET,
    PLACEMENT_DECISION, PLACEMENT_LABEL, REPLICA_SET_LABEL,
};
use convoy_api::{Object, ObjectKey};
use convoy_plan::dialect::fleet::names::{Family, PARENT};
use convoy_plan::dialect::ocm::group_title;
use smol_str::SmolStr;

/// A rollout and one of its groups. Workloads have one group, without a name.
pub(super) type Group = (ObjectKey, String);

/// The one group of a rolling update of KubeFleet.
const BINDINGS: &str = "bindings";

/// The decision groups of clusters.
#[derive(Debug, Default)]
pub(super) struct Placed {
    /// What a rollout in a namespace may call the group of a cluster.
    titles: BTreeMap<(SmolStr, SmolStr), Vec<String>>,
}

impl Placed {
    /// Reads the decisions of a placement.
    pub(super) fn see(&mut self, decision: &Object) {
        if *decision.kind() != PLACEMENT_DECISION {
            return;
        }
        let label = |names: [&str; 2]| names.into_iter().find_map(|name| decision.label(name));
        let index = label(GROUP_INDEX_LABELS).and_then(|index| index.parse().ok()).unwrap_or(0);
        let title = group_title(index, label(GROUP_NAME_LABELS).unwrap_or_default());
        let placement = decision.label(PLACEMENT_LABEL).unwrap_or_default();
        let titles = vec![format!("{placement}: {title}"), title];
        for one in list(decision.status(), "decisions") {
            let cluster = (decision.namespace().clone(), text(one, "clusterName").into());
            self.titles.insert(cluster, titles.clone());
        }
    }

    /// The groups that miss a cluster, as a binding or a work has it; none for other objects.
    pub(super) fn missed(&self, object: &Object) -> Option<Vec<Group>> {
        let kind = object.kind();
        let families = [Family::Cluster, Family::Namespaced];
        if let Some(family) = families.into_iter().find(|family| family.binding() == *kind) {
            let placement = object.label(PARENT)?;
            let rollout = family.placement().key(object.namespace(), placement);
            let is_missed = object.spec_text("state") == "Bound" && !works(object);
            let groups = is_missed.then(|| (rollout, BINDINGS.to_owned()));
            return Some(groups.into_iter().collect());
        }
        if *kind != MANIFEST_WORK {
            return None;
        }
        let (namespace, name) = object.label(REPLICA_SET_LABEL)?.split_once('.')?;
        if works(object) {
            return Some(Vec::new());
        }
        let rollout = MANIFEST_WORK_REPLICA_SET.key(namespace, name);
        let titles = self.titles.get(&(namespace.into(), object.namespace().clone()));
        let groups = titles.into_iter().flatten();
        Some(groups.map(|title| (rollout.clone(), title.clone())).collect())
    }
}

/// Whether the newest that was placed is available.
fn works(object: &Object) -> bool {
    object.condition("Available").is_some_and(|available| {
        text(available, "status") == "True"
            && available["observedGeneration"] == object.generation()
    })
}
