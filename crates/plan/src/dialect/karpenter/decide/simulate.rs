//! Where pods would go if some nodes were gone: first onto nodes that stay, then onto new ones.
//! Nothing here decides whether that is worth it.

mod inventory;
mod replacement;

use std::collections::{BTreeMap, BTreeSet};

use convoy_api::Object;
use smol_str::SmolStr;

pub(crate) use inventory::Ground;
pub(crate) use replacement::{Fresh, Offer};

use crate::dialect::karpenter::read::Cluster;
use crate::dialect::karpenter::read::pod::Pod;
use crate::dialect::karpenter::read::pod_requirements::Needs;
use crate::dialect::karpenter::read::topology::{Company, Somewhere};
use inventory::Place;

/// What would happen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome<'w> {
    /// Pods that have to move and cannot, with the reason.
    pub(crate) stranded: Vec<String>,
    /// Existing nodes that pods would go to.
    pub(crate) used: BTreeSet<SmolStr>,
    /// Nodes that would be made.
    pub(crate) fresh: Vec<Fresh<'w>>,
}

/// Which nodes to imagine gone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question<'q> {
    /// Members that would be disrupted.
    pub(crate) candidates: &'q [usize],
    /// Members on their way out already.
    pub(crate) leaving: &'q BTreeSet<usize>,
    /// Whether it is asked to save money: then nodes that pods have come to lately are left
    /// alone too.
    pub(crate) is_consolidation: bool,
}

/// Where a pod that needs a place comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Pending,
    Candidate,
    Leaving,
}

/// Imagines the candidates gone.
pub(crate) fn simulate<'w>(ground: &Ground<'_, 'w>, question: Question<'_>) -> Outcome<'w> {
    let mut moving = movers(ground, question);
    if moving.is_empty() {
        return Outcome::default();
    }
    // Large pods first; names make the order total.
    moving.sort_by(|(_, a), (_, b)| {
        let size = |needs: &Needs<'_>| (needs.amounts.cpu, needs.amounts.memory);
        size(b).cmp(&size(a)).then_with(|| a.object.key().cmp(b.object.key()))
    });
    let gone: BTreeSet<usize> =
        question.candidates.iter().chain(question.leaving).copied().collect();
    let mut state = State::new(ground, &gone, &moving);
    for (origin, needs) in &moving {
        state.settle(*origin, needs, question.is_consolidation);
    }
    state.outcome
}

/// The pods that need a place: those that wait for one, and those of nodes that go.
fn movers<'w>(ground: &Ground<'_, 'w>, question: Question<'_>) -> Vec<(Origin, Needs<'w>)> {
    let cluster = ground.cluster;
    let pending = cluster.pending.iter().map(|pod| (Origin::Pending, pod));
    let on = |members: Vec<usize>, origin: Origin| {
        members.into_iter().flat_map(move |member| {
            let pods = cluster.pods_of(&cluster.members[member]).iter();
            pods.map(move |pod| (origin, pod))
        })
    };
    let moves = |pod: &Pod<'_>| {
        pod.is_reschedulable()
            && !pod.is_protected(cluster.now)
            && !cluster.pod_budgets.is_fully_blocked(pod.object)
    };
    let leaving = on(question.leaving.iter().copied().collect(), Origin::Leaving);
    let candidates = on(question.candidates.to_vec(), Origin::Candidate);
    let bound = candidates.chain(leaving).filter(|(_, pod)| moves(pod));
    pending.chain(bound).map(|(origin, pod)| (origin, Needs::of(pod.object))).collect()
}

/// A simulation under way.
struct State<'g, 'c, 'w> {
    ground: &'g Ground<'c, 'w>,
    /// The places that something was put onto; the others are as the ground has them.
    changed: BTreeMap<usize, Place<'w>>,
    gone: &'g BTreeSet<usize>,
    /// Where pods are, if any of them cares about company.
    stationed: Vec<Stationed<'w>>,
    outcome: Outcome<'w>,
}

/// A pod in a place.
struct Stationed<'w> {
    pod: &'w Object,
    company: Option<Company<'w>>,
    spot: Spot<'w>,
}

/// The labels of a place.
enum Spot<'w> {
    Node(&'w Object),
    New { zone: String, host: String },
}

impl<'w> Somewhere<'w> for Stationed<'w> {
    fn pod(&self) -> &'w Object {
        self.pod
    }

    fn domain(&self, key: &str) -> Option<&str> {
        use crate::dialect::karpenter::names::label;
        match &self.spot {
            Spot::Node(node) => node.label(key),
            Spot::New { zone, .. } if key == label::ZONE => Some(zone),
            Spot::New { host, .. } if key == label::HOSTNAME => Some(host),
            Spot::New { .. } => None,
        }
    }

    fn company(&self) -> Option<&Company<'w>> {
        self.company.as_ref()
    }
}

impl<'g, 'c, 'w> State<'g, 'c, 'w> {
    fn new(
        ground: &'g Ground<'c, 'w>,
        gone: &'g BTreeSet<usize>,
        moving: &[(Origin, Needs<'w>)],
    ) -> Self {
        let cares = moving.iter().any(|(_, needs)| !needs.company.is_empty());
        let stationed =
            if cares || ground.has_company { ground.stationed(gone) } else { Vec::new() };
        Self { ground, changed: BTreeMap::new(), gone, stationed, outcome: Outcome::default() }
    }

    fn place(&self, at: usize) -> &Place<'w> {
        self.changed.get(&at).unwrap_or(&self.ground.places[at])
    }

    fn settle(&mut self, origin: Origin, needs: &Needs<'w>, is_consolidation: bool) {
        let avoid_restless = is_consolidation && origin == Origin::Candidate;
        let fits = |at: usize| {
            let place = self.place(at);
            !(avoid_restless && place.is_restless)
                && place.takes(needs)
                && place.member.is_none_or(|member| !self.gone.contains(&member))
                && self.permits(needs, |key| place.label(key))
        };
        let found = (0..self.ground.places.len()).find(|at| fits(*at));
        if let Some(at) = found {
            return self.join(origin, needs, at);
        }
        if self.join_fresh(needs) || self.make_fresh(needs) {
            return;
        }
        if origin != Origin::Pending {
            let object = needs.object;
            self.outcome.stranded.push(format!(
                "pod {}/{} fits on no other node, and no pool could make one for it",
                object.namespace(),
                object.name()
            ));
        }
    }

    fn join(&mut self, origin: Origin, needs: &Needs<'w>, at: usize) {
        let place = self.changed.entry(at).or_insert_with(|| self.ground.places[at].clone());
        place.take(needs);
        let (is_initialized, name, labels) =
            (place.is_initialized, place.name.clone(), place.labels);
        if !is_initialized && origin == Origin::Candidate {
            let object = needs.object;
            self.outcome.stranded.push(format!(
                "pod {}/{} would depend on node {name}, which is not initialized yet",
                object.namespace(),
                object.name()
            ));
        }
        self.outcome.used.insert(name);
        if let Some(node) = labels {
            self.station(needs, Spot::Node(node));
        }
    }

    fn join_fresh(&mut self, needs: &Needs<'w>) -> bool {
        for at in 0..self.outcome.fresh.len() {
            let Some(grown) = self.outcome.fresh[at].with(self.ground, needs) else { continue };
            if let Some((grown, zone)) = self.in_company(needs, grown, at) {
                self.outcome.fresh[at] = grown;
                self.station(needs, Spot::New { zone, host: host(at) });
                return true;
            }
        }
        false
    }

    /// A new node of the pool that goes first: by weight, then by name, last first.
    fn make_fresh(&mut self, needs: &Needs<'w>) -> bool {
        let at = self.outcome.fresh.len();
        for pool in self.ground.pool_order() {
            let planned = self.outcome.fresh.iter().filter(|fresh| fresh.pool == pool).count();
            let Some(fresh) = Fresh::new(self.ground, pool, planned, needs) else { continue };
            if let Some((fresh, zone)) = self.in_company(needs, fresh, at) {
                self.outcome.fresh.push(fresh);
                self.station(needs, Spot::New { zone, host: host(at) });
                return true;
            }
        }
        false
    }

    /// The node narrowed to the first zone in which the pod's company permits it.
    fn in_company(
        &self,
        needs: &Needs<'w>,
        fresh: Fresh<'w>,
        at: usize,
    ) -> Option<(Fresh<'w>, String)> {
        use crate::dialect::karpenter::names::label;
        let zones = fresh.zones();
        if needs.company.is_empty() && self.stationed.is_empty() {
            let zone = zones.first().cloned().unwrap_or_default();
            return Some((fresh, zone));
        }
        let name = host(at);
        let zone = zones.into_iter().find(|zone| {
            self.permits(needs, |key| match key {
                label::ZONE => Some(zone.as_str()),
                label::HOSTNAME => Some(name.as_str()),
                _ => None,
            })
        })?;
        let narrowed = if needs.company.is_empty() { fresh } else { fresh.in_zone(&zone) };
        Some((narrowed, zone))
    }

    fn permits<'v>(&self, needs: &Needs<'w>, node: impl Fn(&str) -> Option<&'v str>) -> bool {
        if needs.company.is_empty() && self.stationed.is_empty() {
            return true;
        }
        let domains = |key: &str| self.ground.domains(key);
        needs.company.permits(needs.object, node, &self.stationed, domains)
    }

    fn station(&mut self, needs: &Needs<'w>, spot: Spot<'w>) {
        let matters =
            self.ground.has_company || !self.stationed.is_empty() || !needs.company.is_empty();
        if matters {
            let company = needs.company.keeps_others_away().then(|| needs.company.clone());
            self.stationed.push(Stationed { pod: needs.object, company, spot });
        }
    }
}

/// What a node that does not exist yet is called.
fn host(at: usize) -> String {
    format!("new node {at}")
}

/// The nodes that pods waiting for a place will go to.
pub(crate) fn nominated(cluster: &Cluster<'_>, daemons: &[&Object]) -> BTreeSet<SmolStr> {
    let ground = Ground::new(cluster, daemons);
    let question = Question { candidates: &[], leaving: &BTreeSet::new(), is_consolidation: false };
    simulate(&ground, question).used
}
