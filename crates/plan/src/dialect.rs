//! Dialects: the APIs that Convoy speaks, each a handful of pure functions over the world.

pub mod apps;
pub mod endpoints;
pub mod fleet;
pub mod fleet_agent;
pub mod karpenter;
pub mod ocm;
pub mod ocm_agent;
pub mod ocm_registration;
pub mod skyhook;
pub mod workloads;

use convoy_api::{CollectionKey, GroupKind, Object, ObjectKey};
use jiff::Timestamp;
use serde_json::Value;
use smol_str::SmolStr;

use crate::diagnostic::Diagnostic;
use crate::hold::Hold;
use crate::intervention::{Intervention, Refused, Revision};
use crate::permission::Permission;
use crate::snapshot::Snapshot;
use crate::step::{Action, Complaint, Denial, Step};
use crate::webhook::{Conversion, NeededRight, Request, Verdict, Webhook};
use crate::world::World;

/// Every dialect, in the order in which plans list them.
pub const DIALECTS: &[&dyn Dialect] =
    &[&skyhook::Skyhook::new(), &fleet::Fleet, &apps::Apps, &karpenter::Karpenter, &ocm::Ocm];

/// The field manager of dialects that have no other one.
pub const FIELD_MANAGER: &str = "convoy";

/// One API and its way of rolling out.
pub trait Dialect: Sync {
    /// The word that `--dialects` and plans use.
    fn name(&self) -> &'static str;

    /// The field manager of its writes.
    fn field_manager(&self) -> &'static str {
        FIELD_MANAGER
    }

    /// The kinds it reads in the home cluster, with the fields it keeps of each.
    fn watches(&self) -> &'static [Watch];

    /// The same for every member cluster that one of its rollouts needs.
    fn member_watches(&self) -> &'static [Watch] {
        &[]
    }

    /// What it does to objects of the home cluster beside reading them, complete; none for a
    /// controller that runs only where nobody asks for permissions.
    fn permissions(&self) -> Option<&'static [Permission]> {
        None
    }

    /// The same for member clusters. Kinds that are not listed are those that users place there.
    fn member_permissions(&self) -> Option<&'static [Permission]> {
        None
    }

    /// The version in which objects of a kind of [`Dialect::watches`] are read and written, if the
    /// server has it; empty for the one that it prefers. A write in a version that lacks fields
    /// would lose them.
    fn version(&self, _kind: &GroupKind) -> &'static str {
        ""
    }

    /// What a decision about `rollout` reads beside the kinds of [`Dialect::watches`]. A control
    /// loop asks again whenever it looks at the rollout, and decides nothing about it before
    /// all of this is in its cache; objects of these kinds are kept whole.
    fn needs(&self, _world: &World, _rollout: &Object) -> Vec<Need> {
        Vec::new()
    }

    /// The same for what has to be known whether or not there is a rollout, because rollouts are
    /// among it.
    fn standing_needs(&self) -> Vec<Need> {
        Vec::new()
    }

    /// Whether objects of this kind belong to [`Need::NamespacedKinds`].
    fn takes_along(&self, _kind: &GroupKind) -> bool {
        true
    }

    /// Whether objects of this kind are checked by [`Dialect::validate`]. A dialect that checks none
    /// says in a step, or in a status, what cannot be used.
    fn validates(&self, _kind: &GroupKind) -> bool {
        false
    }

    /// What is wrong with one object, alone and beside the others.
    fn validate(&self, _world: &World, _object: &Object) -> Vec<Diagnostic> {
        Vec::new()
    }

    /// Whether an object of a kind is judged beside those of another one, which are validated
    /// too: then it is validated again when one of those changes, otherwise only when it changes
    /// itself.
    fn validates_beside(&self, _kind: &GroupKind, _other: &GroupKind) -> bool {
        true
    }

    /// Whether what is wrong with an object of a kind may follow from its metadata: then it is
    /// validated again when they change, otherwise only when something else does.
    fn validates_metadata(&self, _kind: &GroupKind) -> bool {
        true
    }

    /// Whether a step is made for a rollout of a kind that validation refuses, since its API has
    /// its own words for it. Such a step counts only if its verdict is
    /// [`Verdict::Invalid`](crate::Verdict::Invalid).
    fn reports_invalid(&self, _kind: &GroupKind) -> bool {
        false
    }

    /// The kinds that people call rollouts. The other objects that it decides about are parts of
    /// these, or make them possible.
    fn rollout_kinds(&self) -> &'static [NamedKind] {
        &[]
    }

    /// Whether a decision about a rollout looks at nothing outside the rollout's namespace.
    fn stays_in_namespace(&self) -> bool {
        false
    }

    /// The rollout objects in `world`, in key order.
    fn rollouts<'w>(&self, world: &'w World) -> Vec<&'w Object>;

    /// Whether `object`, which is in `world`, is one of the rollouts.
    fn is_rollout(&self, world: &World, object: &Object) -> bool {
        self.rollouts(world).iter().any(|rollout| rollout.key() == object.key())
    }

    /// Which rollouts to look at again after `changed` changed, appeared or vanished. To be asked
    /// of the world before and after: an owner may be known from only one of them.
    fn affected(&self, world: &World, changed: &ObjectKey) -> Vec<ObjectKey>;

    /// The rollouts that look at what changed from `before` to `after`, where these are fewer than
    /// [`Dialect::affected`] finds by the object alone: a heartbeat concerns next to nobody. None:
    /// all of those. No decision was made later than `decided_at`.
    fn affected_by(
        &self,
        _world: &World,
        _before: &Object,
        _after: &Object,
        _decided_at: Timestamp,
    ) -> Option<Vec<ObjectKey>> {
        None
    }

    /// What a decision about `rollout` looks at.
    fn snapshot<'w>(&self, world: &'w World, rollout: &'w Object) -> Snapshot<'w>;

    /// Whether `rollout` has to stand still because `refused`, which is in its snapshot, was
    /// refused by this dialect: it is a member or may be one, or says what is done to members.
    /// Rollouts stand beside each other, so that one refused does not stop its peers.
    fn hangs_on(&self, _world: &World, _rollout: &Object, _refused: &Object) -> bool {
        false
    }

    /// What happens next in one rollout, and why nothing more does. Total: an object that
    /// validation would refuse gives a step with [`Verdict::Invalid`](crate::Verdict::Invalid).
    fn step(&self, snapshot: &Snapshot<'_>, now: Timestamp) -> Step;

    /// What is told when the server denies a write of the step, which ends it.
    fn complaint(&self, snapshot: &Snapshot<'_>, denial: &Denial, _now: Timestamp) -> Complaint {
        Complaint::about(snapshot.rollout(), denial)
    }

    /// The members that an object of this name is to rollouts: a node may be known by its claim, a
    /// cluster by its binding.
    fn member_names(&self, _world: &World, name: &str) -> Vec<SmolStr> {
        vec![SmolStr::new(name)]
    }

    /// Whether the object of this name is a member of a rollout, held or not.
    fn has_member(&self, _world: &World, _rollout: &Object, _name: &str) -> bool {
        false
    }

    /// Holds of members that a decision has no need to look at, for people who ask.
    fn member_holds(&self, _world: &World, _rollout: &Object) -> Vec<Hold> {
        Vec::new()
    }

    /// The writes by which a person's request takes effect, in order. The same request asked again
    /// after some of them gives the rest.
    fn intervene(
        &self,
        _world: &World,
        rollout: &Object,
        intervention: &Intervention,
        _now: Timestamp,
    ) -> Result<Vec<Action>, Refused> {
        let instead = "change the object itself";
        Err(intervention.unsupported(rollout.kind(), instead))
    }

    /// The states that a rollout had, as far as its API remembers them, the earliest first.
    fn revisions(&self, _world: &World, _rollout: &Object) -> Vec<Revision> {
        Vec::new()
    }

    /// The webhooks by which it has a say before objects are stored.
    fn webhooks(&self) -> &'static [Webhook] {
        &[]
    }

    /// The rights that a user needs for what is asked of a webhook, beside the right to write the
    /// object.
    fn rights(&self, _webhook: &Webhook, _request: &Request<'_>) -> Vec<NeededRight> {
        Vec::new()
    }

    /// What one of its webhooks says. `world` holds the kinds that the webhook looks at.
    fn admit(&self, _webhook: &Webhook, _world: &World, _request: &Request<'_>) -> Verdict {
        Verdict::allowed()
    }

    /// What its guards say to a request, as a review carries it.
    fn guard(&self, _world: &World, _request: &Value) -> Verdict {
        Verdict::allowed()
    }

    /// Its kinds whose versions an API server can have converted.
    fn conversions(&self) -> &'static [Conversion] {
        &[]
    }

    /// An object of such a kind in another version, or why that is not known.
    fn convert(&self, _object: &Value, to: &str) -> Result<Value, String> {
        Err(format!("nothing is converted to {to}"))
    }
}

/// A kind that a dialect reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    pub kind: GroupKind,
    pub keep: Keep,
}

/// A kind and the short names that kubectl has for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedKind {
    pub kind: GroupKind,
    pub short: &'static [&'static str],
}

impl NamedKind {
    /// Whether a word on a command line means this kind: `Deployment`, `deployments`, `deploy` or
    /// `deployment.apps`.
    pub fn is_called(&self, word: &str) -> bool {
        let (word, group) = word.split_once('.').unwrap_or((word, ""));
        let word = word.to_lowercase();
        let kind = self.kind.kind.to_lowercase();
        let is_plural = word.strip_suffix('s').is_some_and(|singular| singular == kind);
        let is_named = word == kind || is_plural || self.short.contains(&word.as_str());
        is_named && (group.is_empty() || group == self.kind.group)
    }
}

/// Objects that one rollout needs, which no table names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// The kinds of [`Dialect::member_watches`] in a member cluster.
    Member { cluster: SmolStr },
    /// One kind in one cluster. In a member cluster, [`Need::Member`] is implied.
    Kind {
        collection: CollectionKey,
        /// The version to read it in; empty for the one that the server prefers.
        version: SmolStr,
    },
    /// Every namespaced kind that a cluster serves, as far as [`Dialect::takes_along`] says so.
    NamespacedKinds { cluster: SmolStr },
}

impl Need {
    /// One kind in the home cluster, in the version that the server prefers.
    pub fn of_home(kind: &GroupKind) -> Self {
        Self::Kind { collection: kind.in_cluster(""), version: SmolStr::default() }
    }

    /// The cluster that it is about; empty for the home cluster.
    pub fn cluster(&self) -> &SmolStr {
        match self {
            Self::Member { cluster } | Self::NamespacedKinds { cluster } => cluster,
            Self::Kind { collection, .. } => &collection.cluster,
        }
    }
}

/// How much of each object a cache has to keep for a dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// All of it: its content is copied on, or written back.
    Whole,
    /// Metadata, and these dotted paths.
    Fields(&'static [&'static str]),
}
