//! The kinds that a decision reads because a placement names them, which no table can.

use convoy_api::kinds::{NAMESPACE, SERVICE};
use convoy_api::{GroupKind, Object};
use smol_str::SmolStr;

use crate::dialect::Need;
use crate::dialect::fleet::names::kind::is_selectable;
use crate::dialect::fleet::names::{self, Family, RolloutKind};
use crate::dialect::fleet::read::options::Options;
use crate::dialect::fleet::read::placement::Placement;
use crate::dialect::fleet::read::resource_selector::ResourceSelector;
use crate::dialect::fleet::read::{eviction, run};
use crate::world::World;

/// What a decision about `rollout` reads beside the fleet's own kinds.
pub(crate) fn needs(world: &World, rollout: &Object, options: &Options) -> Vec<Need> {
    match RolloutKind::of(rollout.kind()) {
        Some(RolloutKind::Placement(_)) => of_placement(rollout),
        Some(RolloutKind::Run(family)) => {
            of_named(world, family, rollout.namespace(), &run::spec(rollout).placement_name)
        }
        Some(RolloutKind::Eviction) => {
            of_named(world, Family::Cluster, "", &eviction::spec(rollout).placement_name)
        }
        Some(RolloutKind::Member) => {
            let has_profile =
                options.has_cluster_profiles || rollout.has_finalizer(names::PROFILE_CLEANUP);
            let profile = has_profile.then_some(names::CLUSTER_PROFILE);
            let inside = names::IN_MEMBER_NAMESPACE.into_iter();
            inside.chain([NAMESPACE]).chain(profile).map(|kind| Need::of_home(&kind)).collect()
        }
        Some(RolloutKind::Binding(_) | RolloutKind::Override) | None => Vec::new(),
    }
}

fn of_named(world: &World, family: Family, namespace: &str, name: &str) -> Vec<Need> {
    let placement = world.find(&family.placement(), namespace, name);
    placement.map(of_placement).unwrap_or_default()
}

/// The kinds that a placement selects. Resources are read in the version of the selector.
fn of_placement(placement: &Object) -> Vec<Need> {
    let Ok(placement) = Placement::read(placement) else { return Vec::new() };
    let wanted = ResourceSelector::all(&placement);
    let wanted = wanted.iter().filter(|wanted| is_selectable(&wanted.kind));
    let mut needs = Vec::new();
    for wanted in wanted {
        let (collection, version) = (wanted.kind.in_cluster(""), SmolStr::new(wanted.version));
        needs.push(Need::Kind { collection, version });
        // Endpoints are sent unless they are those of a Service.
        if is_of_services(&wanted.kind) {
            needs.push(Need::of_home(&SERVICE));
        }
        if wanted.takes_contents() {
            needs.push(Need::NamespacedKinds { cluster: SmolStr::default() });
        }
    }
    needs.sort();
    needs.dedup();
    needs
}

fn is_of_services(kind: &GroupKind) -> bool {
    matches!(kind.kind.as_str(), "Endpoints" | "EndpointSlice")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn placement(selectors: &Value) -> Object {
        Object::from_value(json!({
            "apiVersion": "placement.kubernetes-fleet.io/v1beta1",
            "kind": "ClusterResourcePlacement", "metadata": {"name": "web"},
            "spec": {"resourceSelectors": selectors}}))
        .unwrap()
    }

    fn kind(group: &'static str, kind: &'static str, version: &str) -> Need {
        let collection = GroupKind::new(group, kind).in_cluster("");
        Need::Kind { collection, version: SmolStr::new(version) }
    }

    #[test]
    fn a_placement_needs_the_kinds_that_it_selects() {
        let role = json!({"group": "rbac.authorization.k8s.io", "version": "v1",
            "kind": "ClusterRole", "name": "reader"});
        let custom = json!({"group": "x.dev", "version": "v1alpha1", "kind": "Thing"});
        let pod = json!({"group": "", "version": "v1", "kind": "Pod"});
        let selectors = json!([role, custom, pod, custom]);
        let needs = needs(&World::new(), &placement(&selectors), &Options::new());
        let expected = [
            kind("rbac.authorization.k8s.io", "ClusterRole", "v1"),
            kind("x.dev", "Thing", "v1alpha1"),
        ];
        assert_eq!(needs, expected, "pods are never selected");
    }

    #[test]
    fn a_whole_namespace_needs_every_namespaced_kind() {
        let shop = |scope: &str| {
            let term = json!({"group": "", "version": "v1", "kind": "Namespace", "name": "shop",
                "selectionScope": scope});
            needs(&World::new(), &placement(&json!([term])), &Options::new())
        };
        let namespaces = kind("", "Namespace", "v1");
        assert_eq!(shop("NamespaceOnly"), std::slice::from_ref(&namespaces));
        let contents = Need::NamespacedKinds { cluster: SmolStr::default() };
        assert_eq!(shop("NamespaceWithResources"), [namespaces, contents]);
    }
}
