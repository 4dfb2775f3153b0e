//! One decision about a DaemonSet: which nodes get a pod, and which pods go. The limits are
//! listed in [`super`].

use std::collections::{BTreeMap, BTreeSet};

use convoy_api::Object;

use crate::budget::{IntOrPercent, Rounding};
use crate::dialect::workloads::read::Health;
use crate::dialect::workloads::read::daemon_set::{DaemonNode, DaemonSet, Strategy};
use crate::gate::{self, Admission, Candidate, Limit, Permit};
use crate::hold::HoldReason;

/// The most pods that one step creates, and the most that it deletes.
const BURST: u32 = 250;

/// What is done about the pods of a DaemonSet.
#[derive(Debug, Default)]
pub(crate) struct DaemonSetDecision<'o> {
    /// Nodes that get a pod, by place.
    pub(crate) starts: BTreeSet<usize>,
    /// The gate's leave for all of them.
    pub(crate) start_permit: Option<Permit>,
    /// Pods that go, by the place of their node.
    pub(crate) removals: BTreeMap<usize, Vec<(&'o Object, Permit)>>,
    /// Why nothing happens on a node, by its place.
    pub(crate) holds: BTreeMap<usize, HoldReason>,
    /// The most nodes that are replaced at once.
    pub(crate) ceiling: Option<u32>,
}

pub(crate) fn decide<'o>(set: &DaemonSet<'o>) -> DaemonSetDecision<'o> {
    let budget = Budget::of(set);
    let mut decision = DaemonSetDecision { ceiling: budget.ceiling(), ..Default::default() };
    if set.owner.is_deleting() {
        return decision;
    }
    let surges = matches!(budget, Budget::Surge(_));
    let unwanted: Vec<Vec<&Object>> = set.nodes.iter().map(|node| unwanted(node, surges)).collect();
    decision.fill(set);
    decision.clear(&unwanted);
    match budget {
        Budget::OnDelete => decision.wait_for_deletion(set, &unwanted),
        Budget::Unavailable(ceiling) => decision.replace(set, &unwanted, ceiling),
        Budget::Surge(ceiling) => decision.surge(set, &unwanted, ceiling),
    }
    decision
}

/// How fast outdated pods are replaced.
#[derive(Clone, Copy, Debug)]
enum Budget {
    OnDelete,
    /// The most nodes without an available pod.
    Unavailable(u32),
    /// The most nodes with two pods.
    Surge(u32),
}

impl Budget {
    fn of(set: &DaemonSet<'_>) -> Self {
        let Strategy::RollingUpdate { unavailable, surge } = set.strategy else {
            return Self::OnDelete;
        };
        let desired = set.nodes.iter().filter(|node| node.fit.should_run()).count();
        let whole = |amount: IntOrPercent| amount.resolve(crate::count(desired), Rounding::Up);
        match (whole(unavailable), whole(surge)) {
            (0, 0) => Self::Unavailable(1),
            (unavailable, 0) => Self::Unavailable(unavailable),
            (_, surge) => Self::Surge(surge),
        }
    }

    fn ceiling(self) -> Option<u32> {
        match self {
            Self::OnDelete => None,
            Self::Unavailable(ceiling) | Self::Surge(ceiling) => Some(ceiling),
        }
    }
}

/// Pods that should not be on a node whatever the budget: finished ones, those on nodes that do
/// not suit, all but the oldest, and old ones beside a new one that is available.
fn unwanted<'o>(node: &DaemonNode<'o>, surges: bool) -> Vec<&'o Object> {
    let stays = node.fit.may_stay();
    let gone =
        |health: Health| health == Health::Finished || !stays && health != Health::Terminating;
    let mut unwanted: Vec<&Object> =
        node.pods.iter().filter(|pod| gone(pod.health)).map(|pod| pod.object).collect();
    let mut active = node.active().filter(|_| stays);
    let first = active.next();
    for pod in active {
        // While it surges a node has an old and a new pod.
        let is_pair = surges && first.is_some_and(|first| first.is_updated != pod.is_updated);
        if !is_pair {
            unwanted.push(pod.object);
        }
    }
    if surges && stays && fresh(node) == Some(Health::Available) {
        let known: BTreeSet<&str> = unwanted.iter().map(|pod| pod.name().as_str()).collect();
        let old = node.active().filter(|pod| !pod.is_updated).map(|pod| pod.object);
        let old: Vec<&Object> = old.filter(|pod| !known.contains(pod.name().as_str())).collect();
        unwanted.extend(old);
    }
    unwanted
}

/// How far the first pod of the present template has come.
fn fresh(node: &DaemonNode<'_>) -> Option<Health> {
    node.active().find(|pod| pod.is_updated).map(|pod| pod.health)
}

/// Whether a node that should have an available pod has none that stays.
fn is_down(node: &DaemonNode<'_>, unwanted: &[&Object]) -> bool {
    let stays = |pod: &Object| !unwanted.iter().any(|gone| gone.key() == pod.key());
    let mut available = node.active().filter(|pod| pod.health == Health::Available);
    node.fit.should_run() && !available.any(|pod| stays(pod.object))
}

/// How far the outdated pod of a node has come, if it is the only one.
fn outdated(node: &DaemonNode<'_>, unwanted: &[&Object]) -> Option<Health> {
    let is_alone = node.fit.may_stay() && unwanted.is_empty() && !node.is_terminating();
    node.active().next().filter(|pod| is_alone && !pod.is_updated).map(|pod| pod.health)
}

impl<'o> DaemonSetDecision<'o> {
    /// Nodes that should have a pod and have none.
    fn fill(&mut self, set: &DaemonSet<'_>) {
        let nodes = set.nodes.iter().enumerate();
        let bare = nodes.filter(|(_, node)| node.fit.should_run() && node.pods.is_empty());
        let candidates = bare.map(|(at, node)| Candidate::free(node.name, at)).collect();
        let admission = gate::admit(candidates, &[Limit::burst(BURST, 0)]);
        self.start(&admission);
    }

    /// Pods that must not be there.
    fn clear(&mut self, unwanted: &[Vec<&'o Object>]) {
        let pods: Vec<(usize, &Object)> = unwanted
            .iter()
            .enumerate()
            .flat_map(|(at, pods)| pods.iter().map(move |pod| (at, *pod)))
            .collect();
        let candidates = pods.iter().enumerate();
        let candidates =
            candidates.map(|(index, (_, pod))| Candidate::free(pod.name(), index)).collect();
        let admission = gate::admit(candidates, &[Limit::burst(BURST, 0)]);
        if let Some(permit) = admission.permit() {
            for member in &admission.starts {
                let (at, pod) = pods[member.index];
                self.removals.entry(at).or_default().push((pod, permit));
            }
        }
        for (member, reason) in admission.holds {
            self.holds.insert(pods[member.index].0, reason);
        }
    }

    /// `OnDelete`: an outdated pod stays until somebody deletes it.
    fn wait_for_deletion(&mut self, set: &DaemonSet<'o>, unwanted: &[Vec<&Object>]) {
        let on = "somebody to delete the pod: the update strategy is OnDelete".to_owned();
        let limits = [Limit::closed(HoldReason::Depends { on })];
        let nodes = set.nodes.iter().enumerate();
        let old = nodes
            .filter(|(at, node)| node.fit.should_run() && outdated(node, &unwanted[*at]).is_some());
        let candidates = old.map(|(at, node)| Candidate::free(node.name, at)).collect();
        self.remove(set, &gate::admit(candidates, &limits));
    }

    /// Deletes outdated pods: those that are not available at once, others within maxUnavailable.
    fn replace(&mut self, set: &DaemonSet<'o>, unwanted: &[Vec<&Object>], ceiling: u32) {
        let nodes = || set.nodes.iter().enumerate();
        let down: Vec<&str> = nodes()
            .filter(|(at, node)| is_down(node, &unwanted[*at]))
            .map(|(_, node)| node.name)
            .collect();
        let costs = |node: &DaemonNode<'_>, health: Health| {
            node.fit.should_run() && health.may_be_available()
        };
        let (mut free, mut costly) = (Vec::new(), Vec::new());
        for (at, node) in nodes() {
            let Some(health) = outdated(node, &unwanted[at]) else { continue };
            let list = if costs(node, health) { &mut costly } else { &mut free };
            list.push(Candidate::free(node.name, at));
        }
        let cleared = self.removed();
        self.remove(set, &gate::admit(free, &[Limit::burst(BURST, cleared)]));
        let in_flight = crate::count(down.len());
        let unavailable = Limit::slots("maxUnavailable", in_flight, ceiling, down);
        let limits = [unavailable, Limit::burst(BURST, self.removed())];
        self.remove(set, &gate::admit(costly, &limits));
    }

    /// Creates new pods beside outdated ones: beside one that is not available at once, beside
    /// others within maxSurge.
    fn surge(&mut self, set: &DaemonSet<'o>, unwanted: &[Vec<&Object>], ceiling: u32) {
        let (mut surging, mut free, mut costly) = (Vec::new(), Vec::new(), Vec::new());
        for (at, node) in set.nodes.iter().enumerate().filter(|(_, node)| node.fit.may_stay()) {
            let Some(old) = node.active().find(|pod| !pod.is_updated) else { continue };
            match fresh(node) {
                Some(Health::Available) => {}
                Some(_) => surging.push(node.name),
                None if !node.fit.should_run() || !unwanted[at].is_empty() => {}
                None if old.health.may_be_available() => {
                    costly.push(Candidate::free(node.name, at));
                }
                None => free.push(Candidate::free(node.name, at)),
            }
        }
        let limits = [Limit::burst(BURST, self.starts.len())];
        self.start(&gate::admit(free, &limits));
        let in_flight = crate::count(surging.len());
        let surge = Limit::slots("maxSurge", in_flight, ceiling, surging);
        let limits = [surge, Limit::burst(BURST, self.starts.len())];
        self.start(&gate::admit(costly, &limits));
    }

    fn start(&mut self, admission: &Admission<'_>) {
        if let Some(permit) = admission.permit() {
            self.start_permit = Some(permit);
            self.starts.extend(admission.starts.iter().map(|member| member.index));
        }
        self.hold(admission);
    }

    /// Deletes every pod that is active on the nodes that start.
    fn remove(&mut self, set: &DaemonSet<'o>, admission: &Admission<'_>) {
        if let Some(permit) = admission.permit() {
            for member in &admission.starts {
                let pods = set.nodes[member.index].active().map(|pod| (pod.object, permit));
                self.removals.entry(member.index).or_default().extend(pods);
            }
        }
        self.hold(admission);
    }

    fn hold(&mut self, admission: &Admission<'_>) {
        let holds = admission.holds.iter();
        self.holds.extend(holds.map(|(member, reason)| (member.index, reason.clone())));
    }

    fn removed(&self) -> usize {
        self.removals.values().map(Vec::len).sum()
    }
}
