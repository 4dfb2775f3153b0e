//! Overrides: which override snapshots touch a placement's resources, and which of those concern a
//! cluster. Of a snapshot the parts are read as they are needed: what it puts in for an object can
//! be large, and is of no concern here.

use std::collections::{BTreeMap, BTreeSet};

use convoy_api::Object;
use convoy_api::fleet::overrides::{PlacementRef, ResourceSelector};
use convoy_api::fleet::policy::ClusterSelectorTerm;
use convoy_api::object::view::view_of;
use serde_json::{Value, json};
use smol_str::SmolStr;

use crate::dialect::fleet::names::{self, Family};
use crate::dialect::fleet::read::placement::{Placement, field, list, text};
use crate::selector::Selector;
use crate::snapshot::Snapshot;

/// The latest override snapshots that touch the resources a placement selected.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overrides<'w> {
    /// By name.
    cluster: Vec<Override<'w>>,
    /// By namespace, then name.
    namespaced: Vec<Override<'w>>,
}

/// The override snapshots for one cluster, as a binding lists them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Applicable {
    /// Names of `ClusterResourceOverrideSnapshot`s.
    pub(crate) cluster: Vec<SmolStr>,
    /// Namespaces and names of `ResourceOverrideSnapshot`s.
    pub(crate) namespaced: Vec<(SmolStr, SmolStr)>,
}

/// Overrides touch the resources, and the cluster whose labels would tell which is not there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("member cluster {cluster:?} not found, so its overrides cannot be told")]
pub(crate) struct UnknownCluster {
    pub(crate) cluster: SmolStr,
}

/// One override snapshot with its cluster selectors read once.
#[derive(Clone, Debug)]
struct Override<'w> {
    snapshot: &'w Object,
    /// Per rule that selects clusters at all, the terms of which one has to match.
    rules: Vec<Vec<Selector>>,
}

/// Group, version, kind and name; the namespace is empty for what has cluster scope.
pub(crate) type Identity<'v> = (&'v str, &'v str, &'v str, &'v str, &'v str);

impl<'w> Overrides<'w> {
    /// The overrides that touch what is selected in `group`, all snapshots of one index.
    pub(crate) fn touching(
        snapshot: &Snapshot<'w>,
        placement: &Placement<'w>,
        group: &[&'w Object],
    ) -> Self {
        let cluster = snapshot.of(&names::CLUSTER_OVERRIDE_SNAPSHOT);
        let namespaced = snapshot.of(&names::OVERRIDE_SNAPSHOT);
        if cluster.is_empty() && namespaced.is_empty() {
            return Self::default();
        }
        let mut selected = BTreeSet::new();
        for resource in group.iter().flat_map(|part| list(part.spec(), "selectedResources")) {
            collect(resource, &mut selected);
        }
        let touching =
            |object: &&'w Object| is_for(object, placement) && touches(object, &selected);
        let read = |objects: &[&'w Object]| -> Vec<Override<'w>> {
            in_force(objects).into_iter().filter(touching).map(Override::read).collect()
        };
        Self { cluster: read(cluster), namespaced: read(namespaced) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.cluster.is_empty() && self.namespaced.is_empty()
    }

    /// Those that concern the cluster `name`, whose `MemberCluster` is `member`.
    pub(crate) fn concerning(
        &self,
        name: &str,
        member: Option<&Object>,
    ) -> Result<Applicable, UnknownCluster> {
        if self.is_empty() {
            return Ok(Applicable::default());
        }
        let member = member.ok_or_else(|| UnknownCluster { cluster: SmolStr::new(name) })?;
        let concerning = |found: &&Override<'_>| found.concerns(member);
        Ok(Applicable {
            cluster: self
                .cluster
                .iter()
                .filter(concerning)
                .map(|found| found.snapshot.name().clone())
                .collect(),
            namespaced: self
                .namespaced
                .iter()
                .filter(concerning)
                .map(|found| (found.snapshot.namespace().clone(), found.snapshot.name().clone()))
                .collect(),
        })
    }
}

impl Applicable {
    /// What `spec` of a binding says; null equals empty.
    pub(crate) fn of_binding(binding: &Object) -> Self {
        Self::read(binding.spec())
    }

    /// What any object with the two lists says, e.g. a cluster's entry in an update run.
    pub(crate) fn read(carrier: &Value) -> Self {
        let cluster = list(carrier, "clusterResourceOverrideSnapshots").iter();
        let namespaced = list(carrier, "resourceOverrideSnapshots").iter();
        Self {
            cluster: cluster.filter_map(Value::as_str).map(SmolStr::new).collect(),
            namespaced: namespaced
                .map(|entry| {
                    (SmolStr::new(text(entry, "namespace")), SmolStr::new(text(entry, "name")))
                })
                .collect(),
        }
    }

    /// The value of `clusterResourceOverrideSnapshots`; null where there is none.
    pub(crate) fn cluster_json(&self) -> Value {
        if self.cluster.is_empty() { Value::Null } else { json!(self.cluster) }
    }

    /// The value of `resourceOverrideSnapshots`; null where there is none.
    pub(crate) fn namespaced_json(&self) -> Value {
        let entry =
            |(namespace, name): &(SmolStr, SmolStr)| json!({"namespace": namespace, "name": name});
        match self.namespaced.as_slice() {
            [] => Value::Null,
            entries => entries.iter().map(entry).collect(),
        }
    }
}

impl<'w> Override<'w> {
    fn read(snapshot: &'w Object) -> Self {
        let policy = field(field(snapshot.spec(), "overrideSpec"), "policy");
        let rules = list(policy, "overrideRules").iter();
        Self { snapshot, rules: rules.filter_map(cluster_terms).collect() }
    }

    fn concerns(&self, member: &Object) -> bool {
        self.rules.iter().any(|terms| terms_match(terms, member))
    }
}

/// Whether a rule with these terms is for the cluster; one without terms is for all.
pub(crate) fn terms_match(terms: &[Selector], member: &Object) -> bool {
    terms.is_empty() || terms.iter().any(|term| term.matches(member))
}

/// The terms of a rule's cluster selector. None: it selects no cluster. A term that cannot be
/// read matches nothing; the validator says so.
pub(crate) fn cluster_terms(rule: &Value) -> Option<Vec<Selector>> {
    let selector = rule.get("clusterSelector").filter(|selector| !selector.is_null())?;
    let terms: Option<Vec<ClusterSelectorTerm>> =
        view_of(field(selector, "clusterSelectorTerms")).ok()?;
    let terms = terms.unwrap_or_default();
    let read = terms.iter().map(|term| Selector::from_view(term.label_selector.as_ref()));
    let read: Vec<Selector> = read.filter_map(Result::ok).collect();
    if read.is_empty() && !terms.is_empty() { None } else { Some(read) }
}

/// Whether a snapshot holds what the override says now.
pub(crate) fn is_snapshot_of(snapshot: &Object, overrides: &Object) -> bool {
    snapshot.spec().get("overrideSpec") == Some(overrides.spec())
}

/// The snapshots in force, in the order given. While an override changes two of its snapshots say
/// that they are the latest, and the newest of them counts.
fn in_force<'w>(snapshots: &[&'w Object]) -> Vec<&'w Object> {
    let latest: Vec<&'w Object> =
        snapshots.iter().copied().filter(|object| names::is_latest(object)).collect();
    let index = |object: &Object| names::index(object, names::OVERRIDE_INDEX);
    let mut newest: BTreeMap<(&str, &str), Option<u32>> = BTreeMap::new();
    for &object in &latest {
        if let Some(parent) = parent(object) {
            let known = newest.entry(parent).or_default();
            *known = (*known).max(index(object));
        }
    }
    let counts = |object: &&Object| {
        parent(object).is_none_or(|parent| newest.get(&parent) == Some(&index(object)))
    };
    latest.into_iter().filter(counts).collect()
}

/// Namespace and name of the override that a snapshot is of.
fn parent(snapshot: &Object) -> Option<(&str, &str)> {
    let name = snapshot.label(names::PARENT_OVERRIDE)?;
    Some((snapshot.namespace().as_str(), name))
}

/// Whether an override is meant for this placement: it names none, or this one.
fn is_for(object: &Object, placement: &Placement<'_>) -> bool {
    let named = field(field(object.spec(), "overrideSpec"), "placement");
    let Ok(named) = view_of::<Option<PlacementRef>>(named) else { return false };
    let Some(PlacementRef { name, scope }) = named else { return true };
    let family = match scope.as_deref() {
        Some("Namespaced") => Family::Namespaced,
        _ => Family::Cluster,
    };
    let reachable = family == Family::Cluster || object.namespace() == placement.namespace();
    name == *placement.name() && family == placement.family && reachable
}

fn touches(object: &Object, selected: &BTreeSet<Identity<'_>>) -> bool {
    let spec = field(object.spec(), "overrideSpec");
    let namespace = object.namespace().as_str();
    let selectors = match namespace {
        "" => list(spec, "clusterResourceSelectors"),
        _ => list(spec, "resourceSelectors"),
    };
    selectors.iter().filter_map(|selector| view_of(selector).ok()).any(|it: ResourceSelector| {
        selected.contains(&(&it.group, &it.version, &it.kind, namespace, &it.name))
    })
}

/// The identities by which overrides may ask for a selected resource: its own, and that of
/// its namespace. An envelope stands for what it wraps.
fn collect<'v>(resource: &'v Value, into: &mut BTreeSet<Identity<'v>>) {
    let namespace = text(field(resource, "metadata"), "namespace");
    if is_envelope(resource) {
        if !namespace.is_empty() {
            into.insert(("", "v1", "Namespace", "", namespace));
        }
        let wrapped = field(resource, "data").as_object().into_iter().flatten();
        for (_, object) in wrapped {
            // An object that does not belong into this envelope is the work generator's to refuse.
            if text(field(object, "metadata"), "namespace") == namespace {
                into.insert(identity(object));
            }
        }
        return;
    }
    if !namespace.is_empty() {
        into.insert(("", "v1", "Namespace", "", namespace));
    }
    into.insert(identity(resource));
}

pub(crate) fn identity(resource: &Value) -> Identity<'_> {
    let api_version = text(resource, "apiVersion");
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let metadata = field(resource, "metadata");
    (group, version, text(resource, "kind"), text(metadata, "namespace"), text(metadata, "name"))
}

pub(crate) fn is_envelope(resource: &Value) -> bool {
    let kind = text(resource, "kind");
    text(resource, "apiVersion").starts_with(names::PLACEMENT_GROUP)
        && (kind == names::CLUSTER_ENVELOPE.kind || kind == names::ENVELOPE.kind)
}

#[cfg(test)]
mod tests {
    use convoy_testkit::fleet;

    use super::*;

    fn override_snapshot(name: &str, spec: &Value) -> Object {
        let api = "placement.kubernetes-fleet.io/v1beta1";
        convoy_testkit::object(api, "ClusterResourceOverrideSnapshot", name)
            .label(names::LATEST, "true")
            .spec(json!({"overrideSpec": spec}))
            .build()
    }

    fn everywhere() -> Value {
        json!({"overrideRules": [{"clusterSelector": {"clusterSelectorTerms": []}}]})
    }

    #[test]
    fn an_override_applies_by_placement_resource_and_cluster() {
        let placement = fleet::placement("web", json!(null)).build();
        let front = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "front", "namespace": "shop"}});
        let resources = fleet::resource_snapshot("web", 0, true, &[front]).build();
        let shop = json!([{"group": "", "version": "v1", "kind": "Namespace", "name": "shop"}]);
        let other = json!([{"group": "", "version": "v1", "kind": "Namespace", "name": "other"}]);
        let east = json!({"overrideRules": [{"clusterSelector": {"clusterSelectorTerms": [
            {"labelSelector": {"matchLabels": {"region": "east"}}}]}}]});
        let cases = [
            ("all", json!({"clusterResourceSelectors": shop, "policy": everywhere()}), true),
            (
                "other-resource",
                json!({"clusterResourceSelectors": other, "policy": everywhere()}),
                false,
            ),
            (
                "other-placement",
                json!({"placement": {"name": "db"}, "clusterResourceSelectors": shop, "policy": everywhere()}),
                false,
            ),
            (
                "this-placement",
                json!({"placement": {"name": "web"}, "clusterResourceSelectors": shop, "policy": everywhere()}),
                true,
            ),
            ("other-cluster", json!({"clusterResourceSelectors": shop, "policy": east}), false),
            (
                "no-cluster",
                json!({"clusterResourceSelectors": shop, "policy": {"overrideRules": [{}]}}),
                false,
            ),
        ];
        let member = fleet::member("west-1", "").label("region", "west").build();
        for (name, spec, applies) in cases {
            let found = override_snapshot(name, &spec);
            let snapshot = Snapshot::new(&placement, [&found]);
            let placement = Placement::read(&placement).unwrap();
            let overrides = Overrides::touching(&snapshot, &placement, &[&resources]);
            let concerning = overrides.concerning("west-1", Some(&member)).unwrap();
            assert_eq!(!concerning.cluster.is_empty(), applies, "{name}");
        }
    }

    #[test]
    fn of_two_snapshots_of_one_override_the_newest_counts() {
        let snapshot = |override_name: &str, index: u32, latest: bool| {
            let api = "placement.kubernetes-fleet.io/v1beta1";
            let name = format!("{override_name}-{index}");
            convoy_testkit::object(api, "ClusterResourceOverrideSnapshot", &name)
                .label(names::PARENT_OVERRIDE, override_name)
                .label(names::OVERRIDE_INDEX, &index.to_string())
                .label(names::LATEST, if latest { "true" } else { "false" })
                .build()
        };
        let all = [
            snapshot("cpu", 10, true),
            snapshot("cpu", 9, true),
            snapshot("image", 0, true),
            snapshot("image", 1, false),
        ];
        let all: Vec<&Object> = all.iter().collect();
        let names: Vec<&str> = in_force(&all).iter().map(|found| found.name().as_str()).collect();
        assert_eq!(names, ["cpu-10", "image-0"]);
    }

    #[test]
    fn overrides_of_an_unknown_cluster_cannot_be_told() {
        let none = Overrides::default();
        assert_eq!(none.concerning("gone", None), Ok(Applicable::default()));
        let found = override_snapshot("a", &json!({"policy": everywhere()}));
        let some = Overrides { cluster: vec![Override::read(&found)], namespaced: Vec::new() };
        assert!(some.concerning("gone", None).is_err());
    }
}
