//! Which overrides apply where: first to the resources of a snapshot group, then to a cluster.
//! Applying them to manifests is the work generator's part.

use std::collections::BTreeSet;

use convoy_api::Object;
use serde_json::{Value, json};
use smol_str::SmolStr;

use super::names::{
    self, CLUSTER_OVERRIDE_SNAPSHOT, Family, OVERRIDE_SNAPSHOT, PLACEMENT_GROUP, RESOURCE_INDEX,
};
use super::placement::{Placement, field, list, text};
use crate::selector::Selector;
use crate::snapshot::Snapshot;

/// The newest overrides that touch the resources of one snapshot group.
#[derive(Clone, Debug, Default)]
pub struct Matching {
    /// By name.
    cluster: Vec<Override>,
    /// By namespace, then name.
    namespaced: Vec<Override>,
}

/// The override snapshots that a binding should carry, in their fixed order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chosen {
    pub cluster: Vec<SmolStr>,
    pub namespaced: Vec<(SmolStr, SmolStr)>,
}

/// Why it cannot be told which overrides apply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OverrideError {
    #[error("{found} of {want} resource snapshots of index {index} exist")]
    Incomplete { index: String, found: usize, want: usize },
    #[error("MemberCluster {cluster:?} not found")]
    NoCluster { cluster: String },
}

#[derive(Clone, Debug)]
struct Override {
    namespace: SmolStr,
    name: SmolStr,
    rules: Vec<Clusters>,
}

/// Which clusters one rule is for.
#[derive(Clone, Debug)]
enum Clusters {
    Every,
    AnyOf(Vec<Selector>),
}

/// Group, version, kind, namespace and name of a selected object.
type Identity<'o> = (&'o str, &'o str, &'o str, &'o str, &'o str);

impl Matching {
    /// The overrides for the resources of the group that `master` leads. Without any override
    /// in sight the group need not be complete.
    pub fn of(
        snapshot: &Snapshot<'_>,
        placement: &Placement<'_>,
        master: &Object,
    ) -> Result<Self, OverrideError> {
        let concerns = |object: &&&Object| {
            names::is_latest(object) && is_for(object, override_spec(object), placement)
        };
        let cluster: Vec<_> =
            snapshot.of(&CLUSTER_OVERRIDE_SNAPSHOT).iter().filter(concerns).collect();
        let namespaced: Vec<_> = snapshot.of(&OVERRIDE_SNAPSHOT).iter().filter(concerns).collect();
        if cluster.is_empty() && namespaced.is_empty() {
            return Ok(Self::default());
        }
        let group = group(snapshot, placement, master)?;
        let selected: BTreeSet<Identity<'_>> =
            group.iter().flat_map(|part| resources(part)).collect();
        let touching = |candidates: Vec<&&Object>, selectors: &str| {
            let touched = candidates.into_iter().filter(|object| {
                let selectors = list(override_spec(object), selectors);
                selectors.iter().any(|selector| touches(selector, object.namespace(), &selected))
            });
            touched.map(|object| Override::read(object)).collect()
        };
        Ok(Self {
            cluster: touching(cluster, "clusterResourceSelectors"),
            namespaced: touching(namespaced, "resourceSelectors"),
        })
    }

    /// Those with at least one rule for the cluster called `name`.
    pub fn on(&self, snapshot: &Snapshot<'_>, name: &str) -> Result<Chosen, OverrideError> {
        if self.cluster.is_empty() && self.namespaced.is_empty() {
            return Ok(Chosen::default());
        }
        let cluster = snapshot.find(&names::MEMBER_CLUSTER, "", name);
        let cluster =
            cluster.ok_or_else(|| OverrideError::NoCluster { cluster: name.to_owned() })?;
        let on = |entry: &&Override| entry.rules.iter().any(|rule| rule.matches(cluster));
        let named = |entry: &Override| (entry.namespace.clone(), entry.name.clone());
        Ok(Chosen {
            cluster: self.cluster.iter().filter(on).map(|entry| entry.name.clone()).collect(),
            namespaced: self.namespaced.iter().filter(on).map(named).collect(),
        })
    }
}

impl Chosen {
    /// As `clusterResourceOverrideSnapshots` reads on a binding; null where there are none.
    pub fn cluster_json(&self) -> Value {
        if self.cluster.is_empty() { Value::Null } else { json!(self.cluster) }
    }

    /// As `resourceOverrideSnapshots` reads on a binding; null where there are none.
    pub fn namespaced_json(&self) -> Value {
        if self.namespaced.is_empty() {
            return Value::Null;
        }
        let entry =
            |(namespace, name): &(SmolStr, SmolStr)| json!({"name": name, "namespace": namespace});
        self.namespaced.iter().map(entry).collect()
    }

    /// Whether an object with the two lists (a binding's spec, a run's cluster status) carries
    /// exactly these; null equals empty, order matters.
    pub fn is_on(&self, carrier: &Value) -> bool {
        let cluster = list(carrier, "clusterResourceOverrideSnapshots");
        let namespaced = list(carrier, "resourceOverrideSnapshots");
        cluster.len() == self.cluster.len()
            && namespaced.len() == self.namespaced.len()
            && cluster.iter().zip(&self.cluster).all(|(have, want)| have == want.as_str())
            && namespaced.iter().zip(&self.namespaced).all(|(have, (namespace, name))| {
                text(have, "namespace") == namespace && text(have, "name") == name
            })
    }

    /// What an object with the two lists carries.
    pub fn read(carrier: &Value) -> Self {
        let cluster = list(carrier, "clusterResourceOverrideSnapshots").iter();
        let namespaced = list(carrier, "resourceOverrideSnapshots").iter();
        Self {
            cluster: cluster.filter_map(Value::as_str).map(SmolStr::new).collect(),
            namespaced: namespaced
                .map(|entry| (text(entry, "namespace").into(), text(entry, "name").into()))
                .collect(),
        }
    }
}

/// All parts of the group that `master` leads, by name; an error while parts are missing.
pub fn group<'w>(
    snapshot: &Snapshot<'w>,
    placement: &Placement<'_>,
    master: &Object,
) -> Result<Vec<&'w Object>, OverrideError> {
    let index = master.label(RESOURCE_INDEX);
    let all = snapshot.of(&placement.family.resource_snapshot()).iter().copied();
    let parts: Vec<&Object> =
        all.filter(|part| placement.owns(part) && part.label(RESOURCE_INDEX) == index).collect();
    let want = master.annotation(names::NUMBER_OF_SNAPSHOTS).and_then(|text| text.parse().ok());
    match want.unwrap_or(1) {
        want if parts.len() < want => {
            let index = index.unwrap_or_default().to_owned();
            Err(OverrideError::Incomplete { index, found: parts.len(), want })
        }
        _ => Ok(parts),
    }
}

impl Override {
    fn read(object: &Object) -> Self {
        let rules = list(field(override_spec(object), "policy"), "overrideRules").iter();
        Self {
            namespace: object.namespace().clone(),
            name: object.name().clone(),
            rules: rules.filter_map(Clusters::read).collect(),
        }
    }
}

impl Clusters {
    /// A rule without a selector is for no cluster, one without terms for every cluster.
    fn read(rule: &Value) -> Option<Self> {
        let selector = rule.get("clusterSelector").filter(|selector| !selector.is_null())?;
        let terms = list(selector, "clusterSelectorTerms");
        if terms.is_empty() {
            return Some(Self::Every);
        }
        let selectors = terms.iter().map(|term| Selector::from_value(field(term, "labelSelector")));
        Some(Self::AnyOf(selectors.filter_map(Result::ok).collect()))
    }

    fn matches(&self, cluster: &Object) -> bool {
        match self {
            Self::Every => true,
            Self::AnyOf(terms) => terms.iter().any(|term| term.matches(cluster)),
        }
    }
}

fn override_spec(object: &Object) -> &Value {
    field(object.spec(), "overrideSpec")
}

/// Whether an override is for every placement, or names this one.
fn is_for(object: &Object, spec: &Value, placement: &Placement<'_>) -> bool {
    let Some(reference) = spec.get("placement").filter(|reference| !reference.is_null()) else {
        return true;
    };
    let family = match text(reference, "scope") {
        "Namespaced" => Family::Namespaced,
        _ => Family::Cluster,
    };
    text(reference, "name") == placement.name()
        && family == placement.family
        && (family == Family::Cluster || object.namespace() == placement.namespace())
}

/// What can be overridden in one snapshot: each selected object, what envelopes wrap, and the
/// namespaces that any of them live in.
fn resources(part: &Object) -> Vec<Identity<'_>> {
    let mut found = Vec::new();
    for resource in list(part.spec(), "selectedResources") {
        let identity @ (group, _, kind, namespace, _) = identity(resource);
        let wraps = group == PLACEMENT_GROUP
            && matches!(kind, "ClusterResourceEnvelope" | "ResourceEnvelope");
        if !namespace.is_empty() {
            found.push(("", "v1", "Namespace", "", namespace));
        }
        if !wraps {
            found.push(identity);
            continue;
        }
        // An envelope holds objects of its own scope and namespace; others are an error that
        // the work generator reports.
        let wrapped = field(resource, "data").as_object().into_iter().flatten();
        let wrapped = wrapped.map(|(_, object)| self::identity(object));
        found.extend(wrapped.filter(|inner| inner.3 == namespace));
    }
    found
}

fn identity(resource: &Value) -> Identity<'_> {
    let api_version = text(resource, "apiVersion");
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let metadata = field(resource, "metadata");
    (group, version, text(resource, "kind"), text(metadata, "namespace"), text(metadata, "name"))
}

fn touches(selector: &Value, namespace: &str, selected: &BTreeSet<Identity<'_>>) -> bool {
    let word = |name| text(selector, name);
    selected.contains(&(word("group"), word("version"), word("kind"), namespace, word("name")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(raw: Value) -> Object {
        Object::from_value(raw).unwrap()
    }

    fn placement(name: &str) -> Object {
        object(json!({"apiVersion": "placement.kubernetes-fleet.io/v1beta1",
            "kind": "ClusterResourcePlacement", "metadata": {"name": name}, "spec": {}}))
    }

    fn master() -> Object {
        object(json!({"apiVersion": "placement.kubernetes-fleet.io/v1beta1",
            "kind": "ClusterResourceSnapshot",
            "metadata": {"name": "web-0-snapshot", "labels": {names::PARENT: "web",
                names::LATEST: "true", RESOURCE_INDEX: "0"}},
            "spec": {"selectedResources": [
                {"apiVersion": "apps/v1", "kind": "Deployment",
                 "metadata": {"name": "front", "namespace": "shop"}},
                {"apiVersion": "placement.kubernetes-fleet.io/v1beta1", "kind": "ResourceEnvelope",
                 "metadata": {"name": "wrapped", "namespace": "shop"}, "data": {"a": {
                    "apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {"name": "inner", "namespace": "shop"}}}}]}}))
    }

    fn cluster(name: &str, tier: &str) -> Object {
        object(json!({"apiVersion": "cluster.kubernetes-fleet.io/v1beta1", "kind": "MemberCluster",
            "metadata": {"name": name, "labels": {"tier": tier}}}))
    }

    fn overriding(kind: &str, namespace: &str, name: &str, spec: &Value) -> Object {
        object(json!({"apiVersion": "placement.kubernetes-fleet.io/v1beta1", "kind": kind,
            "metadata": {"name": name, "namespace": namespace, "labels": {names::LATEST: "true"}},
            "spec": {"overrideSpec": spec}}))
    }

    fn gold() -> Value {
        json!([{"clusterSelector": {"clusterSelectorTerms": [
            {"labelSelector": {"matchLabels": {"tier": "gold"}}}]}}])
    }

    #[test]
    fn overrides_apply_by_resource_then_by_cluster() {
        let namespace =
            json!([{"group": "", "version": "v1", "kind": "Namespace", "name": "shop"}]);
        let inner = json!([{"group": "", "version": "v1", "kind": "ConfigMap", "name": "inner"}]);
        let other = json!([{"group": "", "version": "v1", "kind": "ConfigMap", "name": "other"}]);
        let every = json!([{"clusterSelector": {}}]);
        let objects = [
            master(),
            cluster("a", "gold"),
            cluster("b", "silver"),
            overriding(
                "ClusterResourceOverrideSnapshot",
                "",
                "x-0",
                &json!({"clusterResourceSelectors": namespace, "policy": {"overrideRules": gold()}}),
            ),
            overriding(
                "ClusterResourceOverrideSnapshot",
                "",
                "another-0",
                &json!({"placement": {"name": "db"}, "clusterResourceSelectors": namespace,
                    "policy": {"overrideRules": every}}),
            ),
            overriding(
                "ClusterResourceOverrideSnapshot",
                "",
                "nobody-0",
                &json!({"clusterResourceSelectors": namespace, "policy": {"overrideRules": [{}]}}),
            ),
            overriding(
                "ResourceOverrideSnapshot",
                "shop",
                "y-0",
                &json!({"placement": {"name": "web"}, "resourceSelectors": inner,
                    "policy": {"overrideRules": every}}),
            ),
            overriding(
                "ResourceOverrideSnapshot",
                "shop",
                "z-0",
                &json!({"resourceSelectors": other, "policy": {"overrideRules": every}}),
            ),
        ];
        let rollout = placement("web");
        let snapshot = Snapshot::new(&rollout, objects.iter());
        let placement = Placement::read(&rollout).unwrap();
        let matching = Matching::of(&snapshot, &placement, &objects[0]).unwrap();
        let on_a = matching.on(&snapshot, "a").unwrap();
        assert_eq!(on_a.cluster, ["x-0"]);
        assert_eq!(on_a.namespaced, [("shop".into(), "y-0".into())]);
        assert_eq!(matching.on(&snapshot, "b").unwrap().cluster, [""; 0]);
        assert!(matching.on(&snapshot, "gone").is_err());
        let carrier = json!({"clusterResourceOverrideSnapshots": on_a.cluster_json(),
            "resourceOverrideSnapshots": on_a.namespaced_json()});
        assert!(on_a.is_on(&carrier) && Chosen::read(&carrier) == on_a);
        assert!(!on_a.is_on(&json!({})) && Chosen::default().is_on(&json!({})));
    }
}
