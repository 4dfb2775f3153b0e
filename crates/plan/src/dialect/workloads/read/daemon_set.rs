//! A DaemonSet, and nodes as it sees them: which of them it suits, and which pods it has on each.

use std::collections::BTreeMap;

use convoy_api::Object;
use convoy_api::apps::spec::{DaemonSetSpec, UpdateStrategy};
use convoy_api::kinds::NODE;
use convoy_api::object::member::{field, list};
use convoy_api::text::CountOrPercent;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::revisions::Revisions;
use super::{Health, OwnedPods, Unreadable, health, template};
use crate::budget::IntOrPercent;
use crate::dialect::workloads::names::{
    DAEMON_TOLERATIONS, HOST_NETWORK_TOLERATION, REVISION_HASH,
};
use crate::node_selector::{NodeSelector, intolerable};
use crate::snapshot::Snapshot;
use crate::taint::{Taint, Toleration};

/// A DaemonSet and its pods.
#[derive(Debug)]
pub(crate) struct DaemonSet<'o> {
    pub(crate) owner: &'o Object,
    pub(crate) strategy: Strategy,
    pub(crate) min_ready_secs: i64,
    pub(crate) pods: OwnedPods<'o>,
    pub(crate) revisions: Revisions<'o>,
    /// Every node, and every node that is gone and still has pods, by name.
    pub(crate) nodes: Vec<DaemonNode<'o>>,
}

/// The update strategy.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Strategy {
    /// A pod is replaced when somebody deletes it.
    OnDelete,
    RollingUpdate {
        unavailable: IntOrPercent,
        surge: IntOrPercent,
    },
}

/// One node with its daemon pods, the oldest first.
#[derive(Debug)]
pub(crate) struct DaemonNode<'o> {
    pub(crate) name: &'o str,
    pub(crate) fit: Fit,
    pub(crate) pods: Vec<DaemonPod<'o>>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct DaemonPod<'o> {
    pub(crate) object: &'o Object,
    /// Whether it is of the template as it is now.
    pub(crate) is_updated: bool,
    pub(crate) health: Health,
}

/// Whether a node is one for this DaemonSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    Good,
    /// Nothing is started there, and pods that are there stay.
    MayStay {
        taint: String,
    },
    Unfit,
}

impl<'o> DaemonSet<'o> {
    pub(crate) fn read(snapshot: &Snapshot<'o>, now: Timestamp) -> Result<Self, Unreadable> {
        let owner = snapshot.rollout();
        let spec: DaemonSetSpec = owner.spec_view()?;
        let pods = OwnedPods::read(snapshot)?;
        let strategy = Strategy::read(&spec.update_strategy.unwrap_or_default())?;
        let revisions = Revisions::read(snapshot, spec.revision_history_limit);
        let min_ready_secs = spec.min_ready_seconds.unwrap_or(0);
        let health = |pod: &Object| health(pod, min_ready_secs, now);
        let nodes = nodes(snapshot, &pods, &revisions.hash, health);
        Ok(Self { owner, strategy, min_ready_secs, pods, revisions, nodes })
    }
}

impl Strategy {
    fn read(given: &UpdateStrategy) -> Result<Self, Unreadable> {
        if given.kind.as_deref() == Some("OnDelete") {
            return Ok(Self::OnDelete);
        }
        let rolling = given.rolling_update.as_ref();
        let amount = |name: &str, given: Option<&CountOrPercent>, absent: i64| match given {
            None => Ok(IntOrPercent::Int(absent)),
            Some(given) => IntOrPercent::from_view(given).map_err(|_| Unreadable {
                field: format!("spec.updateStrategy.rollingUpdate.{name}"),
            }),
        };
        let unavailable = rolling.and_then(|rolling| rolling.max_unavailable.as_ref());
        let unavailable = amount("maxUnavailable", unavailable, 1)?;
        let surge = rolling.and_then(|rolling| rolling.max_surge.as_ref());
        let surge = amount("maxSurge", surge, 0)?;
        Ok(Self::RollingUpdate { unavailable, surge })
    }
}

fn nodes<'o>(
    snapshot: &Snapshot<'o>,
    pods: &OwnedPods<'o>,
    hash: &str,
    health: impl Fn(&Object) -> Health,
) -> Vec<DaemonNode<'o>> {
    let suitability = Suitability::of(snapshot.rollout());
    let mut on_nodes: BTreeMap<&str, Vec<DaemonPod<'o>>> = BTreeMap::new();
    for object in &pods.all {
        let is_updated = object.label(REVISION_HASH) == Some(hash);
        let pod = DaemonPod { object, is_updated, health: health(object) };
        on_nodes.entry(node_of(object).unwrap_or_default()).or_default().push(pod);
    }
    let mut nodes: Vec<DaemonNode<'o>> = Vec::new();
    for node in snapshot.of(&NODE) {
        let pods = on_nodes.remove(node.name().as_str()).unwrap_or_default();
        nodes.push(DaemonNode::new(node.name(), suitability.judge(node), pods));
    }
    let gone = on_nodes.into_iter().filter(|(node, _)| !node.is_empty());
    nodes.extend(gone.map(|(node, pods)| DaemonNode::new(node, Fit::Unfit, pods)));
    nodes
}

impl<'o> DaemonNode<'o> {
    fn new(name: &'o str, fit: Fit, mut pods: Vec<DaemonPod<'o>>) -> Self {
        pods.sort_by_key(|pod| (pod.object.created_at(), pod.object.name()));
        Self { name, fit, pods }
    }

    /// Its pods that are neither finished nor terminating.
    pub(crate) fn active(&self) -> impl Iterator<Item = &DaemonPod<'o>> {
        self.pods.iter().filter(|pod| pod.health.is_active())
    }

    pub(crate) fn is_terminating(&self) -> bool {
        self.pods.iter().any(|pod| pod.health == Health::Terminating)
    }

    /// The pod that stands for the node: the new one if it is available, else the oldest.
    pub(crate) fn current(&self) -> Option<&DaemonPod<'o>> {
        let is_best = |pod: &&DaemonPod<'_>| pod.is_updated && pod.health == Health::Available;
        let best = self.active().find(is_best);
        best.or_else(|| self.active().next()).or_else(|| self.pods.first())
    }
}

impl Fit {
    pub(crate) fn should_run(&self) -> bool {
        *self == Self::Good
    }

    pub(crate) fn may_stay(&self) -> bool {
        *self != Self::Unfit
    }
}

/// What a DaemonSet asks of nodes.
#[derive(Debug)]
struct Suitability<'o> {
    selector: NodeSelector<'o>,
    tolerations: Vec<Toleration<'o>>,
}

impl<'o> Suitability<'o> {
    fn of(owner: &'o Object) -> Self {
        let spec = field(template(owner), "spec");
        let own = list(spec, "tolerations").iter().map(Toleration::from_value);
        let tolerations = own.chain(default_tolerations(spec).map(|(key, effect)| Toleration {
            key,
            operator: "Exists",
            value: "",
            effect,
        }));
        Self { selector: NodeSelector::of(spec), tolerations: tolerations.collect() }
    }

    fn judge(&self, node: &Object) -> Fit {
        if !self.selector.matches(node.name(), |key| node.label(key)) {
            return Fit::Unfit;
        }
        let against = |effects: &[&str]| -> Option<Taint<'_>> {
            intolerable(node.spec(), &self.tolerations, effects)
        };
        if against(&["NoExecute"]).is_some() {
            return Fit::Unfit;
        }
        match against(&["NoSchedule"]) {
            Some(taint) => Fit::MayStay { taint: taint.to_string() },
            None => Fit::Good,
        }
    }
}

/// The taints that daemon pods of this pod spec tolerate by default, with their effects.
pub(crate) fn default_tolerations(
    spec: &Value,
) -> impl Iterator<Item = (&'static str, &'static str)> + use<> {
    let host = (field(spec, "hostNetwork") == &json!(true)).then_some(HOST_NETWORK_TOLERATION);
    DAEMON_TOLERATIONS.into_iter().chain(host)
}

/// The node that a pod is on, or is tied to.
fn node_of(pod: &Object) -> Option<&str> {
    let on = pod.spec_text("nodeName");
    if !on.is_empty() {
        return Some(on);
    }
    let required = pod.spec().pointer(
        "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms",
    );
    let fields = required?.as_array()?.iter().flat_map(|term| list(term, "matchFields"));
    let mut named = fields.filter(|field| field["key"] == "metadata.name");
    named.find_map(|field| list(field, "values").first()?.as_str())
}
