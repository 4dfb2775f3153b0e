//! The work generator: what a binding's Works are made from. Whether they are made at all was
//! decided by the rollout, which wrote the binding.

use convoy_api::Object;

use crate::dialect::fleet::names::{
    CLUSTER_OVERRIDE_SNAPSHOT, Family, MEMBER_CLUSTER, OVERRIDE_SNAPSHOT, PARENT, ROLLOUT_STARTED,
    WORK,
};
use crate::dialect::fleet::read::binding::{Binding, State};
use crate::dialect::fleet::read::overrides::Applicable;
use crate::dialect::fleet::read::placement::abandons;
use crate::dialect::fleet::read::snapshot::ResourceGroup;
use crate::dialect::fleet::read::work::binding_of;
use crate::snapshot::Snapshot;

/// A binding and its Works.
#[derive(Clone, Debug)]
pub(crate) struct Generation<'w> {
    pub(crate) binding: Binding<'w>,
    /// Its Works, by name, without those that are being deleted.
    pub(crate) works: Vec<&'w Object>,
    /// Its Works that are being deleted.
    pub(crate) leaving: Vec<&'w Object>,
    pub(crate) phase: Phase<'w>,
}

#[derive(Clone, Debug)]
pub(crate) enum Phase<'w> {
    /// Nothing is to be on the cluster yet, or the cluster is no member any more, or it leaves: its
    /// Works go with its namespace then, and the objects stay.
    Idle,
    /// The rollout has to say first whether it started for the binding's generation.
    AwaitingRollout,
    /// The binding is being deleted, and its Works go with it.
    Withdrawing {
        /// Whether the objects stay on the member.
        abandon: bool,
    },
    Generating(Box<Sources<'w>>),
}

/// What Works are made from.
#[derive(Clone, Debug)]
pub(crate) struct Sources<'w> {
    pub(crate) member: &'w Object,
    pub(crate) placement: Option<&'w Object>,
    /// None: the resource snapshot does not exist.
    pub(crate) resources: Option<ResourceGroup<'w>>,
    /// In the order in which they are applied.
    pub(crate) overrides: Vec<&'w Object>,
    /// The first override snapshot that does not exist.
    pub(crate) missing_override: Option<String>,
    /// Works of other bindings in the member's namespace, by name.
    pub(crate) others: Vec<&'w Object>,
}

/// None: the binding cannot be read.
pub(crate) fn decide<'w>(snapshot: &Snapshot<'w>) -> Option<Generation<'w>> {
    let object = snapshot.rollout();
    let binding = Binding::read(object)?;
    let is_own = |work: &&&'w Object| binding_of(work).as_ref() == Some(object.key());
    let works = snapshot.of(&WORK).iter();
    let (leaving, works) =
        works.filter(is_own).copied().partition(|work: &&Object| work.is_deleting());
    let member = snapshot.find(&MEMBER_CLUSTER, "", binding.cluster());
    let placement = placement(snapshot);
    let started = binding.condition(ROLLOUT_STARTED).is_some();
    let leaves = member.is_some_and(Object::is_deleting);
    let phase = match (binding.state, member) {
        _ if binding.is_deleting() && leaves => Phase::Idle,
        _ if binding.is_deleting() => {
            let deleted = placement.is_some_and(|it| it.is_deleting() && abandons(it));
            Phase::Withdrawing { abandon: deleted }
        }
        (State::Scheduled, _) | (_, None) => Phase::Idle,
        (State::Bound, _) if !started => Phase::AwaitingRollout,
        // Never bound: there is nothing that it could stand for.
        _ if binding.resource_snapshot().is_empty() => Phase::Idle,
        (_, Some(member)) => {
            Phase::Generating(Box::new(sources(snapshot, &binding, member, placement)))
        }
    };
    Some(Generation { binding, works, leaving, phase })
}

fn sources<'w>(
    snapshot: &Snapshot<'w>,
    binding: &Binding<'w>,
    member: &'w Object,
    placement: Option<&'w Object>,
) -> Sources<'w> {
    let object = snapshot.rollout();
    let applicable = Applicable::of_binding(object);
    let cluster = applicable.cluster.iter().map(|name| (CLUSTER_OVERRIDE_SNAPSHOT, "", name));
    let namespaced = applicable.namespaced.iter();
    let namespaced =
        namespaced.map(|(namespace, name)| (OVERRIDE_SNAPSHOT, namespace.as_str(), name));
    let mut overrides = Vec::new();
    let mut missing_override = None;
    for (kind, namespace, name) in cluster.chain(namespaced) {
        match snapshot.find(&kind, namespace, name) {
            Some(found) => overrides.push(found),
            None => _ = missing_override.get_or_insert_with(|| format!("{} {name}", kind.kind)),
        }
    }
    let others = snapshot.of(&WORK).iter().copied();
    let others = others.filter(|work| binding_of(work).as_ref() != Some(object.key())).collect();
    let resources = ResourceGroup::named(snapshot, object, binding.resource_snapshot());
    Sources { member, placement, resources, overrides, missing_override, others }
}

fn placement<'w>(snapshot: &Snapshot<'w>) -> Option<&'w Object> {
    let binding = snapshot.rollout();
    let kind = Family::of(binding).placement();
    snapshot.find(&kind, binding.namespace(), binding.label(PARENT)?)
}
