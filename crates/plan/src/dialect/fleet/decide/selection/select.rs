//! Resource selectors: which of the hub's objects a placement takes along.

use std::collections::BTreeMap;

use convoy_api::kinds::{NAMESPACE, SERVICE};
use convoy_api::{GroupKind, Object, ObjectKey};
use serde_json::Value;
use smol_str::SmolStr;

use crate::built_in_kind::rank;
use crate::dialect::fleet::names::Family;
use crate::dialect::fleet::names::kind::{is_reserved_namespace, is_selectable};
use crate::dialect::fleet::read::options::Options;
use crate::dialect::fleet::read::placement::{
    Placement, is_shown_in_namespace, selected_namespace,
};
use crate::dialect::fleet::read::resource_selector::{ResourceSelector, any_may_ask_for};
use crate::portable::{cleaned, is_derived};
use crate::snapshot::Snapshot;
use crate::world::World;

const VOLUME_CLAIM: GroupKind = GroupKind::new("", "PersistentVolumeClaim");

/// Why nothing can be selected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SelectionError {
    #[error("namespace {name:?} is reserved and cannot be selected")]
    Reserved { name: String },
    #[error(
        "the status is shown in namespace {from:?}, so namespace {to:?} cannot be selected \
         instead; select {from:?} again, or create another placement"
    )]
    NamespaceChanged { from: String, to: String },
    #[error("{object} is selected twice")]
    Twice { object: ObjectKey },
    /// In upstream's words.
    #[error(
        "NamespaceWithResourceSelectors mode requires exactly one namespace, but no namespaces \
         were selected; create namespace {name:?}, or select another"
    )]
    NoNamespace { name: String },
    #[error("objects of kind {kind} are never selected")]
    NotSelectable { kind: GroupKind },
    /// Not a mistake of the user: without a single object of the kind nobody can tell whether
    /// there are none or none are known here, and taking everything away would be rash.
    #[error("no object of kind {kind} is known")]
    NotObserved { kind: GroupKind },
}

impl SelectionError {
    /// Whether the placement has to be changed.
    pub(crate) fn is_users(&self) -> bool {
        !matches!(self, Self::NotObserved { .. })
    }
}

/// The objects of `world` that a selection of this placement may look at.
pub(crate) fn candidates<'w>(world: &'w World, placement: &Placement<'_>) -> Vec<&'w Object> {
    let all = ResourceSelector::all(placement);
    let namespace = placement.namespace();
    let mut found: Vec<&'w Object> = Vec::new();
    for wanted in all.iter().filter(|wanted| is_selectable(&wanted.kind)) {
        // One of any name shows that the kind is known, should there be none of this one.
        found.extend(world.of(&wanted.kind).next());
        // Endpoints are held against all Services.
        let name = if wanted.kind == SERVICE { "" } else { wanted.name };
        match (placement.family, name) {
            (Family::Cluster, "") => found.extend(world.of(&wanted.kind)),
            (Family::Cluster, name) => {
                let spaces = ["", ResourceSelector::within(&all).unwrap_or_default()];
                let named = spaces.iter().filter_map(|it| world.find(&wanted.kind, it, name));
                found.extend(named);
            }
            (Family::Namespaced, "") => found.extend(world.in_namespace(&wanted.kind, namespace)),
            (Family::Namespaced, name) => found.extend(world.find(&wanted.kind, namespace, name)),
        }
        if !wanted.takes_contents() {
            continue;
        }
        let chosen: Vec<&Object> = match wanted.name {
            "" => world.of(&NAMESPACE).filter(|namespace| wanted.matches(namespace)).collect(),
            name => world.find(&NAMESPACE, "", name).into_iter().collect(),
        };
        for namespace in chosen {
            for kind in world.kinds().filter(|kind| is_selectable(kind)) {
                found.extend(world.in_namespace(kind, namespace.name()));
            }
        }
    }
    found.sort_by(|a, b| a.key().cmp(b.key()));
    found.dedup_by(|a, b| a.key() == b.key());
    found
}

/// Whether a placement may select an object of this name, or anything in its namespace.
pub(crate) fn may_select(placement: &Object, changed: &ObjectKey) -> bool {
    let reachable =
        Family::of(placement) == Family::Cluster || changed.namespace == *placement.namespace();
    reachable && any_may_ask_for(placement, changed)
}

/// What the placement selects, cleaned, in the order of application.
pub(crate) fn selected(
    snapshot: &Snapshot<'_>,
    placement: &Placement<'_>,
    options: &Options,
) -> Result<Vec<Value>, SelectionError> {
    let wanted = ResourceSelector::all(placement);
    stays_in_namespace(placement, &wanted)?;
    let within = ResourceSelector::within(&wanted);
    let mut found: BTreeMap<&ObjectKey, &Object> = BTreeMap::new();
    for wanted in &wanted {
        for object in matching(snapshot, placement, wanted, within)? {
            if found.insert(object.key(), object).is_some() {
                return Err(SelectionError::Twice { object: object.key().clone() });
            }
        }
    }
    let has_namespace = found.keys().any(|key| key.kind == NAMESPACE);
    if let Some(name) = within.filter(|_| !has_namespace) {
        return Err(SelectionError::NoNamespace { name: name.to_owned() });
    }
    let stays = |object: &&Object| options.runs_workloads && *object.kind() == VOLUME_CLAIM;
    let mut objects: Vec<&Object> = found.into_values().filter(|it| !stays(it)).collect();
    objects.sort_by_cached_key(|object| order(object));
    Ok(objects.into_iter().map(cleaned).collect())
}

/// A placement whose status is shown in the namespace that it selects keeps to that namespace.
fn stays_in_namespace(
    placement: &Placement<'_>,
    wanted: &[ResourceSelector<'_>],
) -> Result<(), SelectionError> {
    let object = placement.object;
    if !is_shown_in_namespace(object) || placement.family != Family::Cluster {
        return Ok(());
    }
    let next = wanted.iter().find(|wanted| wanted.is_namespace());
    match (selected_namespace(object), next) {
        (Some(from), Some(next)) if from != next.name => Err(SelectionError::NamespaceChanged {
            from: from.to_owned(),
            to: next.name.to_owned(),
        }),
        _ => Ok(()),
    }
}

fn matching<'w>(
    snapshot: &Snapshot<'w>,
    placement: &Placement<'_>,
    wanted: &ResourceSelector<'_>,
    within: Option<&str>,
) -> Result<Vec<&'w Object>, SelectionError> {
    if !is_selectable(&wanted.kind) {
        return Err(SelectionError::NotSelectable { kind: wanted.kind.clone() });
    }
    if wanted.is_namespace() && is_reserved_namespace(wanted.name) {
        return Err(SelectionError::Reserved { name: wanted.name.to_owned() });
    }
    let known = snapshot.of(&wanted.kind);
    if !snapshot.knows(&wanted.kind) {
        return Err(SelectionError::NotObserved { kind: wanted.kind.clone() });
    }
    let reachable = |object: &&&'w Object| match placement.family {
        Family::Namespaced => object.namespace() == placement.namespace(),
        Family::Cluster => {
            object.namespace().is_empty() || within == Some(object.namespace().as_str())
        }
    };
    let chosen = known.iter().filter(reachable).filter(|object| wanted.matches(object)).copied();
    let chosen: Vec<&Object> = chosen.filter(|object| is_sent(snapshot, object)).collect();
    if !wanted.takes_contents() {
        return Ok(chosen);
    }
    let namespaces: Vec<&SmolStr> = chosen.iter().map(|namespace| namespace.name()).collect();
    let contents = snapshot.iter().filter(|object| {
        namespaces.contains(&object.namespace())
            && is_selectable(object.kind())
            && is_sent(snapshot, object)
    });
    Ok(chosen.iter().copied().chain(contents).collect())
}

/// Whether this object of a selectable kind leaves the hub.
fn is_sent(snapshot: &Snapshot<'_>, object: &Object) -> bool {
    let service_exists = |endpoints: &Object| {
        snapshot.find(&SERVICE, endpoints.namespace(), endpoints.name()).is_some()
    };
    let reserved = *object.kind() == NAMESPACE && is_reserved_namespace(object.name());
    !object.is_deleting() && !reserved && !is_derived(object, service_exists)
}

/// By what must exist first, then by group, version and kind, then by namespace and name.
fn order(object: &Object) -> (usize, String, String) {
    let rank = rank(&object.kind().kind);
    let kind = format!("{}, Kind={}", object.api_version(), object.kind().kind);
    (rank, kind, format!("{}/{}", object.namespace(), object.name()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::dialect::fleet::read::placement::text;

    fn object(api_version: &str, kind: &str, namespace: &str, name: &str) -> Object {
        let mut raw = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
        if !namespace.is_empty() {
            raw["metadata"]["namespace"] = json!(namespace);
        }
        Object::from_value(raw).unwrap()
    }

    fn hub() -> World {
        [
            object("v1", "Namespace", "", "shop"),
            object("v1", "Namespace", "", "kube-system"),
            object("apps/v1", "Deployment", "shop", "front"),
            object("v1", "ConfigMap", "shop", "kube-root-ca.crt"),
            object("v1", "ConfigMap", "shop", "settings"),
            object("v1", "Pod", "shop", "front-1"),
            object("v1", "Service", "shop", "front"),
            object("v1", "Endpoints", "shop", "front"),
            object("v1", "ConfigMap", "other", "settings"),
            object("rbac.authorization.k8s.io/v1", "ClusterRole", "", "reader"),
        ]
        .into_iter()
        .collect()
    }

    fn names(selectors: &Value) -> Result<Vec<String>, SelectionError> {
        let placement = Object::from_value(json!({
            "apiVersion": "placement.kubernetes-fleet.io/v1beta1",
            "kind": "ClusterResourcePlacement", "metadata": {"name": "web"},
            "spec": {"resourceSelectors": selectors}}))
        .unwrap();
        let world = hub();
        let placement = Placement::read(&placement).unwrap();
        let snapshot = Snapshot::new(placement.object, candidates(&world, &placement));
        let found = selected(&snapshot, &placement, &Options::new())?;
        let name =
            |value: &Value| format!("{}/{}", text(value, "kind"), text(&value["metadata"], "name"));
        Ok(found.iter().map(name).collect())
    }

    #[test]
    fn a_namespace_is_taken_with_what_belongs_to_it() {
        let shop = |scope: &str| json!({"group": "", "version": "v1", "kind": "Namespace", "name": "shop", "selectionScope": scope});
        let whole = names(&json!([shop("NamespaceWithResources")])).unwrap();
        assert_eq!(
            whole,
            ["Namespace/shop", "ConfigMap/settings", "Service/front", "Deployment/front"]
        );
        assert_eq!(names(&json!([shop("NamespaceOnly")])).unwrap(), ["Namespace/shop"]);
        let some = json!([shop("NamespaceWithResourceSelectors"),
            {"group": "", "version": "v1", "kind": "ConfigMap"}]);
        assert_eq!(names(&some).unwrap(), ["Namespace/shop", "ConfigMap/settings"]);
    }

    #[test]
    fn what_cannot_be_selected_is_said() {
        let role =
            json!({"group": "rbac.authorization.k8s.io", "version": "v1", "kind": "ClusterRole"});
        let twice = names(&json!([role, role])).unwrap_err();
        assert!(matches!(twice, SelectionError::Twice { .. }), "{twice}");
        let system =
            json!([{"group": "", "version": "v1", "kind": "Namespace", "name": "kube-system"}]);
        assert!(names(&system).unwrap_err().is_users());
        let absent = json!([{"group": "", "version": "v1", "kind": "Namespace", "name": "absent",
            "selectionScope": "NamespaceWithResourceSelectors"}]);
        let refused = names(&absent).unwrap_err();
        assert!(refused.is_users(), "{refused}");
        assert!(refused.to_string().contains("but no namespaces were selected"), "{refused}");
        let unknown = json!([{"group": "x.dev", "version": "v1", "kind": "Thing"}]);
        assert!(!names(&unknown).unwrap_err().is_users());
    }
}
