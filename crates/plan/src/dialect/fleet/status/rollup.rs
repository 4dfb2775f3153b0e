//! A placement's status: what its clusters report, rolled up type by type. The first type
//! that is not true everywhere is the last one that is shown.

pub(crate) mod cluster;
pub(crate) mod mirror;

use std::collections::BTreeMap;

use convoy_api::Object;
use convoy_api::object::member::{member, same};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::condition::{self, Condition};

use crate::dialect::fleet::names::RESOURCE_INDEX;
use crate::dialect::fleet::read::placement::{Pick, Placement, Strategy, field, list, text};
use crate::dialect::fleet::read::snapshot::{ResourceGroup, contents};
use crate::dialect::fleet::status::rollup::cluster::{Entry, Kind};
use crate::snapshot::Snapshot;
use crate::step::Action;

/// The field with an entry for each cluster.
const CLUSTERS: &str = "placementStatuses";

/// What the status is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inputs<'a, 'w> {
    pub(crate) snapshot: &'a Snapshot<'w>,
    pub(crate) placement: &'a Placement<'w>,
    /// The policy snapshot in force, if it is there.
    pub(crate) policy: Option<&'w Object>,
    pub(crate) now: Timestamp,
}

/// The status under construction.
pub(crate) struct Draft<'a, 'w> {
    inputs: Inputs<'a, 'w>,
    fields: Map<String, Value>,
    conditions: Vec<Value>,
}

/// The status as it should read, None if it reads so already, and the writes that show it in
/// the namespace.
pub(crate) fn status(inputs: Inputs<'_, '_>) -> (Option<Value>, Vec<Action>) {
    let mut draft = Draft::begin(inputs);
    draft.fill();
    let actions = mirror::shown(&mut draft);
    (draft.finish(), actions)
}

/// The status of a placement that asks for what cannot be selected.
pub(crate) fn refused(inputs: Inputs<'_, '_>, message: &str) -> Option<Value> {
    let mut draft = Draft::begin(inputs);
    draft.set("Scheduled", "False", "InvalidResourceSelectors", message);
    draft.finish()
}

impl<'w> Draft<'_, 'w> {
    fn fill(&mut self) {
        let resources = ResourceGroup::latest(self.inputs.snapshot, self.inputs.placement);
        self.describe(resources.as_ref());
        let Some(policy) = self.scheduled() else {
            self.fields.insert(CLUSTERS.into(), json!([]));
            return;
        };
        let decisions = list(policy.status(), "targetClusters");
        let picked =
            |entry: &&Value| member(entry, "selected").and_then(Value::as_bool) == Some(true);
        let selected: Vec<&Value> = decisions.iter().filter(picked).collect();
        let unselected: Vec<&Value> = decisions.iter().filter(|entry| !picked(entry)).collect();
        let mut entries = cluster::entries(self.inputs, policy, &selected, resources.as_ref());
        let failed = cluster::unscheduled(self.inputs, &unselected, selected.len());
        let shown = list(self.inputs.placement.object.status(), CLUSTERS);
        let mut failed = failed.peekable();
        let unchanged = failed.peek().is_none()
            && entries.len() == shown.len()
            && entries.iter().zip(shown).all(|(entry, old)| entry.is_shown_in(old));
        if !unchanged {
            let statuses = entries.iter_mut().map(Entry::take_json).chain(failed);
            self.fields.insert(CLUSTERS.into(), cluster::bounded(statuses));
        }
        if entries.is_empty() {
            self.keep(&["Scheduled"]);
            return;
        }
        let external = self.inputs.placement.strategy == Strategy::External;
        if external && !self.agree(&entries) {
            self.keep(&["Scheduled", "RolloutStarted"]);
            return;
        }
        self.conclude(&entries);
    }

    /// `Scheduled`, and the policy snapshot that says so; None while it says nothing.
    fn scheduled(&mut self) -> Option<&'w Object> {
        let generation = self.inputs.placement.object.generation();
        if matches!(&self.inputs.placement.policy.pick, Pick::Fixed(names) if names.is_empty()) {
            // As upstream, whose scheduler skips it: a list may be empty until somebody fills it.
            let message = "spec.policy.clusterNames names no cluster yet";
            self.set("Scheduled", "Unknown", "SchedulePending", message);
            self.keep(&["Scheduled"]);
            return None;
        }
        let said = self.inputs.policy.and_then(|policy| {
            let condition = policy.condition("Scheduled")?;
            let number =
                |value: &Value, name: &str| value.get(name).and_then(Value::as_i64).unwrap_or(0);
            let current = number(condition, "observedGeneration") >= policy.generation()
                && number(policy.status(), "observedCRPGeneration") >= generation;
            let status = cluster::word(text(condition, "status"))?;
            (current && status != "Unknown").then_some((policy, condition, status))
        });
        let Some((policy, condition, status)) = said else {
            self.set("Scheduled", "Unknown", "SchedulePending", "clusters are not picked yet");
            return None;
        };
        self.set("Scheduled", status, text(condition, "reason"), text(condition, "message"));
        Some(policy)
    }

    /// What is selected, and the index that it goes by.
    fn describe(&mut self, resources: Option<&ResourceGroup<'_>>) {
        let index = resources.and_then(|group| group.master.label(RESOURCE_INDEX));
        self.fields.insert("observedResourceIndex".into(), json!(index.unwrap_or_default()));
        let objects = resources.map_or_else(Vec::new, |group| contents(group.master, &group.parts));
        let selected = objects.iter().map(identifier).collect::<Vec<_>>();
        self.fields.insert("selectedResources".into(), json!(selected));
    }

    /// With an external strategy: whether all clusters are at one index and have begun. If
    /// not, nobody here can say what is being rolled out.
    fn agree(&mut self, entries: &[Entry<'_>]) -> bool {
        let index = entries.first().map_or("", |entry| entry.index.as_str());
        let same = entries.iter().all(|entry| entry.index == index);
        let reason = "RolloutControlledByExternalController";
        if !same || index.is_empty() {
            self.describe(None);
            let message = if same {
                "no cluster has a resource snapshot yet"
            } else {
                "clusters have different resource snapshots"
            };
            self.set(Kind::RolloutStarted.name(), "Unknown", reason, message);
            return false;
        }
        let number = index.parse().ok();
        let group = number
            .and_then(|at| ResourceGroup::at(self.inputs.snapshot, self.inputs.placement, at));
        self.describe(group.as_ref());
        let unknown = |entry: &&Entry<'_>| entry.status(Kind::RolloutStarted) == Some("Unknown");
        let Some(entry) = entries.iter().find(unknown) else { return true };
        let message = format!("cluster {} has not begun yet", entry.cluster);
        self.set(Kind::RolloutStarted.name(), "Unknown", reason, &message);
        false
    }

    /// Type by type over all clusters, until one is not true everywhere.
    fn conclude(&mut self, entries: &[Entry<'_>]) {
        let mut reached = vec!["Scheduled"];
        for kind in Kind::expected(self.inputs.placement) {
            reached.push(kind.name());
            let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
            for status in entries.iter().filter_map(|entry| entry.status(*kind)) {
                *counts.entry(status).or_default() += 1;
            }
            let count = |status: &str| counts.get(status).copied().unwrap_or(0);
            let status = ["Unknown", "False"].into_iter().find(|status| count(status) > 0);
            let status = status.unwrap_or("True");
            let overridden = entries.iter().any(|entry| entry.is_overridden);
            let reason = match (kind, status) {
                (Kind::Overridden, "True") if !overridden => "NoOverrideSpecified",
                _ => kind.reason(status),
            };
            let message = format!("{} of {} clusters", count(status), entries.len());
            self.set(kind.name(), status, reason, &message);
            if status != "True" {
                break;
            }
        }
        self.keep(&reached);
    }
}

impl<'a, 'w> Draft<'a, 'w> {
    fn begin(inputs: Inputs<'a, 'w>) -> Self {
        let status = inputs.placement.object.status();
        let fields = status.as_object().into_iter().flatten().map(|(name, value)| {
            // The long list is made anew, so that it need not be copied; its place is kept.
            let value = if name == CLUSTERS { Value::Null } else { value.clone() };
            (name.clone(), value)
        });
        let conditions = list(status, "conditions").to_vec();
        Self { inputs, fields: fields.collect(), conditions }
    }

    fn finish(mut self) -> Option<Value> {
        self.fields.insert("conditions".into(), Value::Array(self.conditions));
        // Empty lists are written as absent, and read as the same.
        for name in [CLUSTERS, "selectedResources"] {
            if self
                .fields
                .get(name)
                .is_some_and(|value| value.as_array().is_some_and(Vec::is_empty))
            {
                self.fields.shift_remove(name);
            }
        }
        if self.fields.get("observedResourceIndex") == Some(&json!("")) {
            self.fields.shift_remove("observedResourceIndex");
        }
        let old = self.inputs.placement.object.status();
        let kept = self.fields.get(CLUSTERS).is_some_and(Value::is_null);
        let reads = |(name, value): (&String, &Value)| {
            kept && name == CLUSTERS || member(old, name).is_some_and(|old| same(value, old))
        };
        let length = old.as_object().map_or(0, Map::len);
        if length == self.fields.len() && self.fields.iter().all(reads) {
            return None;
        }
        if kept {
            self.fields.insert(CLUSTERS.into(), field(old, CLUSTERS).clone());
        }
        Some(Value::Object(self.fields))
    }

    fn prefixed(&self, kind: &str) -> String {
        format!("{}{kind}", self.inputs.placement.family.condition_prefix())
    }

    fn set(&mut self, kind: &str, status: &'static str, reason: &str, message: &str) {
        let wanted = Condition::new(self.prefixed(kind), status, reason, message)
            .of_generation(self.inputs.placement.object.generation());
        condition::set(&mut self.conditions, &wanted, self.inputs.now);
    }

    /// Takes away the types that were not reached.
    fn keep(&mut self, kinds: &[&str]) {
        let kept: Vec<String> = kinds.iter().map(|kind| self.prefixed(kind)).collect();
        self.conditions.retain(|entry| kept.iter().any(|kind| text(entry, "type") == kind));
    }
}

/// A selected object as the status names it.
fn identifier(object: &Value) -> Value {
    let api_version = text(object, "apiVersion");
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let metadata = field(object, "metadata");
    let words = [
        ("group", group),
        ("version", version),
        ("kind", text(object, "kind")),
        ("name", text(metadata, "name")),
        ("namespace", text(metadata, "namespace")),
    ];
    let words = words.into_iter().filter(|(_, word)| !word.is_empty());
    words.map(|(name, word)| (name.to_owned(), json!(word))).collect::<Map<_, _>>().into()
}

/// How many clusters the placement wants beyond those that are selected.
fn missing(placement: &Placement<'_>, selected: usize) -> usize {
    match &placement.policy.pick {
        Pick::All => 0,
        Pick::Number(wanted) => {
            usize::try_from(*wanted).unwrap_or(usize::MAX).saturating_sub(selected)
        }
        Pick::Fixed(names) => names.len().saturating_sub(selected),
    }
}

#[cfg(test)]
mod tests {
    use convoy_testkit::fleet;

    use super::*;

    const API: &str = "placement.kubernetes-fleet.io/v1beta1";
    const NOW: &str = "2026-01-01T00:00:00Z";

    fn policy(clusters: &[&str]) -> Object {
        let decisions: Vec<Value> = clusters
            .iter()
            .map(|name| json!({"clusterName": name, "selected": true, "reason": "picked"}))
            .chain([json!({"clusterName": "far", "selected": false, "reason": "too far"})])
            .collect();
        convoy_testkit::object(API, "ClusterSchedulingPolicySnapshot", "web-0")
            .with("/metadata/generation", json!(1))
            .label("kubernetes-fleet.io/parent-CRP", "web")
            .status(json!({"observedCRPGeneration": 3, "targetClusters": decisions,
                "conditions": [{"type": "Scheduled", "status": "True",
                    "reason": "SchedulingPolicyFulfilled", "observedGeneration": 1}]}))
            .build()
    }

    fn resources(index: u32, latest: bool) -> Object {
        let shop = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
        fleet::resource_snapshot("web", index, latest, &[shop]).build()
    }

    /// A binding that has reported as many types as true as `reached` says.
    fn binding(cluster: &str, index: u32, reached: usize) -> Object {
        let kinds = ["RolloutStarted", "Overridden", "WorkSynchronized", "Applied", "Available"];
        let conditions: Vec<Value> = kinds
            .iter()
            .enumerate()
            .take(reached + 1)
            .map(|(at, kind)| {
                let status = if at < reached { "True" } else { "False" };
                json!({"type": kind, "status": status, "reason": "Said", "observedGeneration": 1})
            })
            .collect();
        fleet::binding("web", cluster, "Bound", &format!("web-{index}-snapshot"))
            .with("/metadata/generation", json!(1))
            .status(json!({"conditions": conditions}))
            .build()
    }

    #[test]
    fn a_list_that_names_no_cluster_is_pending() {
        let nobody = json!({"placementType": "PickFixed", "clusterNames": []});
        let rollout =
            fleet::placement("web", nobody).with("/metadata/generation", json!(3)).build();
        let (policy, resources) = (policy(&[]), [resources(0, true)]);
        let snapshot = Snapshot::new(&rollout, resources.iter());
        let placement = Placement::read(&rollout).unwrap();
        let now = NOW.parse().unwrap();
        let inputs =
            Inputs { snapshot: &snapshot, placement: &placement, policy: Some(&policy), now };
        let status = status(inputs).0.unwrap();
        assert_eq!(status["conditions"].as_array().map(Vec::len), Some(1));
        let scheduled = &status["conditions"][0];
        assert_eq!(
            (&scheduled["status"], &scheduled["reason"]),
            (&json!("Unknown"), &json!("SchedulePending"))
        );
        assert_eq!(status["selectedResources"][0]["name"], "shop");
        assert_eq!(status["placementStatuses"], Value::Null);
    }

    fn rolled_up(strategy: &str, bindings: &[Object]) -> Value {
        let policy = policy(&["a", "b"]);
        let snapshots = [resources(0, false), resources(1, true)];
        let three = json!({"placementType": "PickN", "numberOfClusters": 3});
        let rollout = fleet::placement("web", three)
            .with("/metadata/generation", json!(3))
            .with("/spec/strategy", json!({"type": strategy}))
            .build();
        let snapshot = Snapshot::new(&rollout, bindings.iter().chain(&snapshots));
        let placement = Placement::read(&rollout).unwrap();
        let now = NOW.parse().unwrap();
        let inputs =
            Inputs { snapshot: &snapshot, placement: &placement, policy: Some(&policy), now };
        status(inputs).0.unwrap()
    }

    fn last(status: &Value) -> String {
        let conditions = status["conditions"].as_array().unwrap();
        let last = conditions.last().unwrap();
        let word = |name| text(last, name);
        format!("{}={}/{}", word("type"), word("status"), word("reason"))
    }

    #[test]
    fn the_first_type_that_is_not_true_everywhere_is_the_last() {
        let cases = [
            ("all good", 5, 5, "Available=True/ResourceAvailable"),
            ("one is not available", 5, 4, "Available=False/ResourceNotAvailableYet"),
            ("one is not applied", 3, 5, "Applied=False/ApplyFailed"),
            ("one has not begun", 5, 0, "RolloutStarted=False/RolloutNotStartedYet"),
        ];
        for (name, a, b, want) in cases {
            let status = rolled_up("RollingUpdate", &[binding("a", 1, a), binding("b", 1, b)]);
            assert_eq!(last(&status), format!("ClusterResourcePlacement{want}"), "{name}");
            assert_eq!(status["observedResourceIndex"], "1", "{name}");
        }
        let old = rolled_up("RollingUpdate", &[binding("a", 1, 5), binding("b", 0, 5)]);
        let want = "ClusterResourcePlacementRolloutStarted=Unknown/RolloutStartedUnknown";
        assert_eq!(last(&old), want, "of an older snapshot nothing is known");
    }

    #[test]
    fn wanted_clusters_that_could_not_be_picked_have_an_entry_without_a_name() {
        let status = rolled_up("RollingUpdate", &[binding("a", 1, 5), binding("b", 1, 5)]);
        let entries = status["placementStatuses"].as_array().unwrap();
        assert_eq!(entries.len(), 3);
        assert_eq!(entries[2].get("clusterName"), None);
        assert_eq!(entries[2]["conditions"][0]["message"], "too far");
    }

    #[test]
    fn somebody_elses_rollout_is_described_only_where_all_agree() {
        let mixed = rolled_up("External", &[binding("a", 1, 5), binding("b", 0, 5)]);
        let reason = "RolloutStarted=Unknown/RolloutControlledByExternalController";
        assert_eq!(last(&mixed), format!("ClusterResourcePlacement{reason}"));
        assert_eq!(mixed.get("observedResourceIndex"), None);
        let same = rolled_up("External", &[binding("a", 0, 5), binding("b", 0, 5)]);
        assert_eq!(same["observedResourceIndex"], "0");
        assert_eq!(last(&same), "ClusterResourcePlacementAvailable=True/ResourceAvailable");
    }
}
