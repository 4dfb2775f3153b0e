//! Observes the rollouts of an Open Cluster Management hub: checks after every write that no more
//! clusters are in flight than may be, that nobody starts before those whose turn it is are
//! through, that clusters stay in their decision groups, and that no work is lost or doubled.
//!
//! It reads replica sets, placements, their decisions and works, and counts by the rules of the
//! API. A hub can only respect what it knows. What has changed since the loops last settled it may
//! not know yet: whoever starts is judged by that of the strategies, groups and reports since then
//! under which it may. What the hub has written itself it knows.

mod judge;
mod layout;
mod strategy;
mod work;

use std::collections::{BTreeMap, BTreeSet};

use convoy_api::object::member::{field, list, same, text};
use convoy_api::{GroupKind, Object, ObjectKey};
use jiff::Timestamp;
use serde_json::Value;

use self::layout::{Layout, Slice, group_strategy, length};
use self::strategy::Strategy;
use self::work::Work;
use super::Hand;

const CLUSTER_GROUP: &str = "cluster.open-cluster-management.io";
const WORK_GROUP: &str = "work.open-cluster-management.io";
const CLUSTER: GroupKind = GroupKind::new(CLUSTER_GROUP, "ManagedCluster");
const PLACEMENT: GroupKind = GroupKind::new(CLUSTER_GROUP, "Placement");
const DECISION: GroupKind = GroupKind::new(CLUSTER_GROUP, "PlacementDecision");
const REPLICA_SET: GroupKind = GroupKind::new(WORK_GROUP, "ManifestWorkReplicaSet");
const WORK: GroupKind = GroupKind::new(WORK_GROUP, "ManifestWork");
const PLACEMENT_LABEL: &str = "cluster.open-cluster-management.io/placement";
const OWNER_LABEL: &str = "work.open-cluster-management.io/manifestworkreplicaset";
const PLACEMENT_NAME_LABEL: &str = "work.open-cluster-management.io/placementname";
const REGROUP: &str = "convoy.dev/regroup";

/// The observed replica sets.
#[derive(Clone, Debug, Default)]
pub struct ReplicaSets {
    /// By `namespace.name`, as their works name them.
    sets: BTreeMap<String, Watched>,
    /// By namespace and name.
    placements: BTreeMap<(String, String), Placement>,
    /// By replica set and placement, then by cluster.
    slots: BTreeMap<(String, String), BTreeMap<String, Slot>>,
    /// All templates that were seen; others name them by their number.
    templates: Vec<Value>,
    /// Clusters that leave, or have left.
    leaving: BTreeSet<String>,
    /// What placements select clusters by: labels and taints.
    clusters: BTreeMap<String, (Value, Value)>,
    /// Clusters whose labels or taints changed since the loops last settled: a placement may have
    /// begun to write groups without them.
    unsettled: BTreeSet<String>,
}

/// A replica set.
#[derive(Clone, Debug, Default)]
struct Watched {
    /// What its spec said since the loops last settled; the last is what it says now.
    versions: Vec<Spec>,
    exists: bool,
    is_deleting: bool,
    /// Since the loops last settled.
    was_deleting: bool,
}

#[derive(Clone, Debug, PartialEq)]
struct Spec {
    template: usize,
    references: Vec<(String, Strategy)>,
}

/// A placement and its decisions.
#[derive(Clone, Debug, Default)]
struct Placement {
    exists: bool,
    slices: BTreeMap<String, Slice>,
    /// The groups since the loops last settled; the last are those of now.
    layouts: Vec<Layout>,
    /// How its clusters are to be grouped, likewise.
    strategies: Vec<Value>,
    /// The groups when the placement was last done with them, and all since.
    former: Vec<Layout>,
    is_compact: bool,
}

/// The work of one cluster for one placement.
#[derive(Clone, Debug, Default)]
struct Slot {
    works: BTreeMap<String, Work>,
    /// What was there since the loops last settled, or since the hub handed out the template, and
    /// until when.
    former: Vec<(Option<Work>, Timestamp)>,
}

impl ReplicaSets {
    /// Records a write or a deletion. Returns an error if a promise is broken.
    pub fn see(
        &mut self,
        object: &Object,
        is_gone: bool,
        by: Hand,
        now: Timestamp,
    ) -> Result<(), String> {
        if !object.key().cluster.is_empty() {
            return Ok(());
        }
        match object.kind() {
            kind if *kind == REPLICA_SET => self.see_set(object, is_gone),
            kind if *kind == PLACEMENT => return self.see_placement(object, is_gone),
            kind if *kind == DECISION => self.see_decision(object, is_gone),
            kind if *kind == WORK => return self.see_work(object, is_gone, by, now),
            kind if *kind == CLUSTER => self.see_cluster(object, is_gone),
            _ => {}
        }
        Ok(())
    }

    /// Called when the loops have processed all events and have nothing to do: from here on they
    /// know what is written. Returns an error if somebody waits whom nothing holds.
    pub fn rest(&mut self, now: Timestamp) -> Result<(), String> {
        for watched in self.sets.values_mut() {
            watched.versions.drain(..watched.versions.len().saturating_sub(1));
            watched.was_deleting = watched.is_deleting;
        }
        self.sets.retain(|_, watched| watched.exists);
        for slots in self.slots.values_mut() {
            for slot in slots.values_mut() {
                slot.former.clear();
            }
            slots.retain(|_, slot| !slot.works.is_empty());
        }
        self.slots.retain(|_, slots| !slots.is_empty());
        for ((_, name), placement) in &mut self.placements {
            placement
                .settle(&self.unsettled)
                .map_err(|error| format!("placement {name}: {error}"))?;
            let last = |versions: usize| ..versions.saturating_sub(1);
            placement.layouts.drain(last(placement.layouts.len()));
            placement.strategies.drain(last(placement.strategies.len()));
        }
        self.placements.retain(|_, placement| placement.exists || !placement.slices.is_empty());
        self.leaving.clear();
        self.unsettled.clear();
        self.judge_rest(now)
    }

    /// What is left behind, once everything has settled.
    pub fn left_behind(&self) -> Result<(), String> {
        let orphan = |(owner, placement): &(String, String)| {
            let set = self.sets.get(owner).filter(|it| it.exists);
            let mut references = set.and_then(|it| it.versions.last()).into_iter();
            !references.any(|spec| spec.references.iter().any(|(name, _)| name == placement))
        };
        if let Some((owner, placement)) = self.slots.keys().find(|key| orphan(key)) {
            return Err(format!("works of {owner} for placement {placement} are left behind"));
        }
        let is_left = |placement: &&Placement| !placement.exists && !placement.slices.is_empty();
        self.placements.values().find(is_left).map_or(Ok(()), |placement| {
            Err(format!("decisions {:?} have no placement", placement.slices.keys()))
        })
    }

    /// The number of a template.
    fn template(&mut self, spec: &Value) -> usize {
        let known = self.templates.iter().position(|it| same(it, spec));
        known.unwrap_or_else(|| {
            self.templates.push(spec.clone());
            self.templates.len() - 1
        })
    }

    fn see_set(&mut self, object: &Object, is_gone: bool) {
        let template = self.template(field(object.spec(), "manifestWorkTemplate"));
        let reference = |entry: &Value| {
            let strategy = Strategy::read(field(entry, "rolloutStrategy"));
            (text(entry, "name").to_owned(), strategy)
        };
        let references = list(object.spec(), "placementRefs").iter().map(reference).collect();
        let spec = Spec { template, references };
        let owner = format!("{}.{}", object.namespace(), object.name());
        let watched = self.sets.entry(owner).or_default();
        watched.exists = !is_gone;
        watched.is_deleting = object.is_deleting();
        watched.was_deleting |= is_gone || watched.is_deleting;
        if watched.versions.last() != Some(&spec) {
            watched.versions.push(spec);
        }
    }

    fn see_cluster(&mut self, object: &Object, is_gone: bool) {
        let name = object.name().to_string();
        if is_gone || object.is_deleting() {
            self.leaving.insert(name.clone());
        }
        let labels = field(object.metadata(), "labels").clone();
        let selected_by = (labels, field(object.spec(), "taints").clone());
        if self.clusters.insert(name.clone(), selected_by.clone()) != Some(selected_by) {
            self.unsettled.insert(name);
        }
    }

    fn see_placement(&mut self, object: &Object, is_gone: bool) -> Result<(), String> {
        let key = (object.namespace().to_string(), object.name().to_string());
        let placement = self.placements.entry(key).or_default();
        placement.exists = !is_gone;
        placement.is_compact = object.annotation(REGROUP) == Some("compact");
        let strategy = group_strategy(object);
        if placement.strategies.last() != Some(&strategy) {
            placement.strategies.push(strategy);
        }
        if is_gone || !placement.is_written(object) {
            return Ok(());
        }
        placement.settle(&self.unsettled).map_err(|error| format!("{}: {error}", object.key()))
    }

    fn see_decision(&mut self, object: &Object, is_gone: bool) {
        let Some(name) = object.label(PLACEMENT_LABEL) else { return };
        let placement = self.placement(object.namespace(), name);
        let key = object.name().to_string();
        if is_gone {
            placement.slices.remove(&key);
        } else {
            placement.slices.insert(key, Slice::read(object));
        }
        let layout = Layout::of(placement.slices.values());
        if placement.layouts.last() != Some(&layout) {
            placement.former.push(layout.clone());
            placement.layouts.push(layout);
        }
    }

    fn placement(&mut self, namespace: &str, name: &str) -> &mut Placement {
        self.placements.entry((namespace.to_owned(), name.to_owned())).or_default()
    }

    fn see_work(
        &mut self,
        object: &Object,
        is_gone: bool,
        by: Hand,
        now: Timestamp,
    ) -> Result<(), String> {
        let Some(owner) = object.label(OWNER_LABEL) else { return Ok(()) };
        let placement = object.label(PLACEMENT_NAME_LABEL).unwrap_or_default();
        let key = (owner.to_owned(), placement.to_owned());
        let cluster = object.namespace().to_string();
        let template = self.template(object.spec());
        let slots = self.slots.entry(key.clone()).or_default();
        let slot = slots.entry(cluster.clone()).or_default();
        let name = object.name().to_string();
        let before = slot.current().cloned();
        let known = slot.works.get(&name).cloned();
        let after = (!is_gone).then(|| Work::read(object, template));
        match after.clone() {
            Some(work) => _ = slot.works.insert(name, work),
            None => _ = slot.works.remove(&name),
        }
        let is_handed_out = after
            .as_ref()
            .is_some_and(|it| known.as_ref().is_none_or(|was| was.template != it.template));
        if before.as_ref() != slot.current() {
            slot.former.push((before, now));
        }
        if by != Hand::Loop {
            return Ok(());
        }
        if is_handed_out {
            let staying = slot.works.values().filter(|work| !work.is_deleting).count();
            if staying > 1 {
                return Err(format!(
                    "cluster {cluster} has {staying} works for placement {placement}"
                ));
            }
            let verdict = self.judge_start(&key, &cluster, template, now);
            if let Some(slot) = self.slots.get_mut(&key).and_then(|it| it.get_mut(&cluster)) {
                slot.former.clear();
            }
            return verdict;
        }
        let goes = after.as_ref().is_none_or(|work| work.is_deleting);
        if goes && known.is_some_and(|work| !work.is_deleting) {
            return self.judge_removal(&key, &cluster, object.key());
        }
        Ok(())
    }
}

impl Slot {
    /// The work that counts: one that stays before one that goes.
    fn current(&self) -> Option<&Work> {
        self.works.values().min_by_key(|work| work.is_deleting)
    }
}

impl Placement {
    /// Whether the status of the placement tells of the decisions that there are.
    fn is_written(&self, object: &Object) -> bool {
        let groups = list(object.status(), "decisionGroups");
        let names: BTreeSet<&str> = groups
            .iter()
            .flat_map(|group| list(group, "decisions"))
            .filter_map(Value::as_str)
            .collect();
        let layout = self.layout();
        let sizes = groups.iter().map(|group| field(group, "clusterCount").as_u64().unwrap_or(0));
        let actual = layout.groups.iter().map(|group| group.clusters.len() as u64);
        names.len() == self.slices.len()
            && self.slices.keys().all(|name| names.contains(name.as_str()))
            && layout.doubled.is_none()
            && sizes.filter(|size| *size > 0).eq(actual)
    }

    fn layout(&self) -> Layout {
        self.layouts.last().cloned().unwrap_or_default()
    }

    /// The placement is done with its decisions: the groups are as they should be, and who was
    /// there all along has kept its place.
    fn settle(&mut self, unsettled: &BTreeSet<String>) -> Result<(), String> {
        let layout = self.layout();
        let is_known = self.strategies.len() == 1 && self.exists;
        let per_group = |it: &Self| field(&it.strategies[0], "clustersPerDecisionGroup").clone();
        if is_known {
            layout.is_sound(&per_group(self))?;
        }
        if let Some((first, since)) = self.former.split_first()
            && is_known
            && !self.is_compact
        {
            let per_group = per_group(self);
            let selected =
                |it: &Layout| it.clusters().filter(|cluster| !unsettled.contains(*cluster)).count();
            let sizes = since.iter().map(|it| length(&per_group, selected(it)));
            let most = sizes.chain([length(&per_group, layout.len())]).min().unwrap_or(0);
            let stays = |cluster: &str| since.iter().all(|it| it.group_of(cluster).is_some());
            layout.keeps(first, most, stays)?;
        }
        self.former = vec![layout];
        Ok(())
    }
}

/// Which work this is about, for messages.
fn named(key: &ObjectKey) -> String {
    format!("work {} of cluster {}", key.name, key.namespace)
}
