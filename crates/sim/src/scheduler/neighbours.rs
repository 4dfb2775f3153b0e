//! What a pod asks of the pods around it: to be near some, away from others, evenly spread, and
//! to have its ports for itself. Preferences are not looked at.

use std::collections::{BTreeMap, BTreeSet};

use convoy_api::object::member::{field, list, text};
use convoy_plan::selector::Selector;
use serde_json::Value;
use smol_str::SmolStr;

use super::room::Room;

/// The rules of one pod, all of them required.
#[derive(Debug)]
pub(crate) struct Rules<'p> {
    pod: &'p Value,
    near: Vec<Term<'p>>,
    apart: Vec<Term<'p>>,
    spread: Vec<Spread<'p>>,
    ports: Vec<Port<'p>>,
}

/// A term of pod affinity or anti-affinity.
#[derive(Debug)]
struct Term<'p> {
    key: &'p str,
    selector: Selector,
    /// Empty: the pod's own.
    namespaces: Vec<&'p str>,
    is_everywhere: bool,
}

/// An entry of `topologySpreadConstraints`.
#[derive(Debug)]
struct Spread<'p> {
    key: &'p str,
    selector: Selector,
    skew_max: i64,
    domains_min: usize,
}

/// A port of the node that a pod takes.
#[derive(Debug, PartialEq, Eq)]
struct Port<'p> {
    number: i64,
    protocol: &'p str,
    address: &'p str,
}

/// The pods on nodes, as the rules of one pod see them.
#[derive(Debug)]
pub(super) struct Surroundings<'s> {
    /// For each term: the domains in which there is a pod that it means.
    near: Vec<BTreeSet<&'s str>>,
    apart: Vec<BTreeSet<&'s str>>,
    /// Keys and domains that pods keep this one away from.
    unwelcome: BTreeSet<(SmolStr, &'s str)>,
    /// For each constraint: how many pods there are in each domain.
    spread: Vec<BTreeMap<&'s str, i64>>,
    /// Nodes on which a port is taken.
    taken: BTreeSet<&'s str>,
}

/// A pod on a node.
#[derive(Clone, Copy)]
pub(super) struct Neighbour<'s> {
    pub(super) pod: &'s Value,
    pub(super) node: &'s str,
    /// Absent while there is no such node.
    pub(super) room: Option<&'s Room>,
}

impl<'p> Rules<'p> {
    pub(crate) fn of(pod: &'p Value) -> Self {
        let spec = field(pod, "spec");
        let affinity = field(spec, "affinity");
        let spread = list(spec, "topologySpreadConstraints").iter();
        Self {
            pod,
            near: terms(field(affinity, "podAffinity")),
            apart: terms(field(affinity, "podAntiAffinity")),
            spread: spread.filter_map(|it| Spread::new(it, pod)).collect(),
            ports: pod_ports(pod).collect(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.keeps_nobody_away() && self.is_alone() && self.ports.is_empty()
    }

    /// Whether it does not matter to it that other pods come.
    pub(super) fn is_alone(&self) -> bool {
        self.near.is_empty() && self.spread.is_empty()
    }

    pub(super) fn keeps_nobody_away(&self) -> bool {
        self.apart.is_empty()
    }

    /// Looks at all pods once. `is_eligible` says whether the pod could be on a node at all, as
    /// far as its node selector goes.
    pub(super) fn look_around<'s>(
        &self,
        rooms: impl Iterator<Item = (&'s SmolStr, &'s Room)>,
        neighbours: impl Iterator<Item = Neighbour<'s>>,
        is_eligible: impl Fn(&str, &Room) -> bool,
    ) -> Surroundings<'s> {
        let mut found = Surroundings {
            near: vec![BTreeSet::new(); self.near.len()],
            apart: vec![BTreeSet::new(); self.apart.len()],
            unwelcome: BTreeSet::new(),
            spread: vec![BTreeMap::new(); self.spread.len()],
            taken: BTreeSet::new(),
        };
        let spreads = |name: &str, room: &Room| {
            self.spread.iter().all(|it| room.label(it.key).is_some()) && is_eligible(name, room)
        };
        if !self.spread.is_empty() {
            for (_, room) in rooms.filter(|(name, room)| spreads(name, room)) {
                for (counts, it) in found.spread.iter_mut().zip(&self.spread) {
                    counts.extend(room.label(it.key).map(|domain| (domain, 0)));
                }
            }
        }
        for neighbour in neighbours {
            self.look_at(neighbour, &mut found, &spreads);
        }
        found
    }

    fn look_at<'s>(
        &self,
        neighbour: Neighbour<'s>,
        found: &mut Surroundings<'s>,
        spreads: &impl Fn(&str, &Room) -> bool,
    ) {
        let Neighbour { pod, node, room } = neighbour;
        if self.takes_a_port_of(pod) {
            found.taken.insert(node);
        }
        let Some(room) = room else { return };
        for (terms, domains) in [(&self.near, &mut found.near), (&self.apart, &mut found.apart)] {
            for (term, domains) in terms.iter().zip(domains) {
                let domain = room.label(term.key).filter(|_| term.means(self.pod, pod));
                domains.extend(domain);
            }
        }
        for term in terms(field(field(field(pod, "spec"), "affinity"), "podAntiAffinity")) {
            let domain = room.label(term.key).filter(|_| term.means(pod, self.pod));
            found.unwelcome.extend(domain.map(|domain| (SmolStr::new(term.key), domain)));
        }
        let is_leaving = !text(field(pod, "metadata"), "deletionTimestamp").is_empty();
        if self.spread.is_empty() || is_leaving || !spreads(node, room) {
            return;
        }
        for (it, counts) in self.spread.iter().zip(&mut found.spread) {
            if let Some(domain) = room.label(it.key).filter(|_| it.counts(self.pod, pod)) {
                *counts.entry(domain).or_default() += 1;
            }
        }
    }

    /// Whether it needs a port of the node that another pod has.
    pub(crate) fn takes_a_port_of(&self, other: &Value) -> bool {
        let theirs = || pod_ports(other).collect::<Vec<_>>();
        !self.ports.is_empty()
            && theirs().iter().any(|theirs| self.ports.iter().any(|ours| ours.collides(theirs)))
    }

    /// Why a node will not do, in the words of Kubernetes.
    pub(super) fn refusal(
        &self,
        around: &Surroundings<'_>,
        name: &str,
        room: &Room,
    ) -> Option<&'static str> {
        if around.taken.contains(name) {
            return Some("node(s) didn't have free ports for the requested pod ports");
        }
        for (it, counts) in self.spread.iter().zip(&around.spread) {
            let Some(domain) = room.label(it.key) else {
                return Some(
                    "node(s) didn't match pod topology spread constraints (missing required label)",
                );
            };
            if !it.permits(self.pod, counts, domain) {
                return Some("node(s) didn't match pod topology spread constraints");
            }
        }
        let is_near = |(term, domains): (&Term<'_>, &BTreeSet<&str>)| {
            // The first of a group that wants to be together may begin anywhere.
            let begins = domains.is_empty() && term.means(self.pod, self.pod);
            room.label(term.key).is_some_and(|domain| begins || domains.contains(domain))
        };
        if !self.near.iter().zip(&around.near).all(is_near) {
            return Some("node(s) didn't match pod affinity rules");
        }
        let mut apart = self.apart.iter().zip(&around.apart);
        let is_here = |key: &str, domains: &BTreeSet<&str>| {
            room.label(key).is_some_and(|domain| domains.contains(domain))
        };
        if apart.any(|(term, domains)| is_here(term.key, domains)) {
            return Some("node(s) didn't match pod anti-affinity rules");
        }
        let mut unwelcome = around.unwelcome.iter();
        unwelcome
            .any(|(key, domain)| room.label(key) == Some(domain))
            .then_some("node(s) didn't satisfy existing pods anti-affinity rules")
    }
}

fn terms(affinity: &Value) -> Vec<Term<'_>> {
    let required = list(affinity, "requiredDuringSchedulingIgnoredDuringExecution");
    required.iter().filter_map(Term::new).collect()
}

impl<'p> Term<'p> {
    fn new(term: &'p Value) -> Option<Self> {
        let everywhere = field(term, "namespaceSelector").as_object();
        Some(Self {
            key: text(term, "topologyKey"),
            selector: Selector::from_value(term.get("labelSelector")?).ok()?,
            namespaces: list(term, "namespaces").iter().filter_map(Value::as_str).collect(),
            is_everywhere: everywhere.is_some_and(serde_json::Map::is_empty),
        })
    }

    /// Whether the term of `owner` speaks of `other`.
    fn means(&self, owner: &Value, other: &Value) -> bool {
        let namespace = |pod| text(field(pod, "metadata"), "namespace");
        let is_there = self.is_everywhere
            || self.namespaces.contains(&namespace(other))
            || self.namespaces.is_empty() && namespace(owner) == namespace(other);
        is_there && selects(&self.selector, other)
    }
}

fn selects(selector: &Selector, pod: &Value) -> bool {
    let labels = field(field(pod, "metadata"), "labels");
    selector.matches_with(|key| labels.get(key).and_then(Value::as_str))
}

impl<'p> Spread<'p> {
    fn new(constraint: &'p Value, pod: &Value) -> Option<Self> {
        if text(constraint, "whenUnsatisfiable") == "ScheduleAnyway" {
            return None;
        }
        let mut selector = constraint.get("labelSelector").cloned().unwrap_or_default();
        let labels = field(field(pod, "metadata"), "labels");
        for key in list(constraint, "matchLabelKeys").iter().filter_map(Value::as_str) {
            if let Some(value) = labels.get(key) {
                selector["matchLabels"][key] = value.clone();
            }
        }
        Some(Self {
            key: text(constraint, "topologyKey"),
            selector: Selector::from_value(&selector).ok()?,
            skew_max: field(constraint, "maxSkew").as_i64().unwrap_or(1),
            domains_min: field(constraint, "minDomains")
                .as_u64()
                .and_then(|least| usize::try_from(least).ok())
                .unwrap_or(1),
        })
    }

    fn counts(&self, owner: &Value, other: &Value) -> bool {
        let namespace = |pod| text(field(pod, "metadata"), "namespace");
        namespace(owner) == namespace(other) && selects(&self.selector, other)
    }

    fn permits(&self, pod: &Value, counts: &BTreeMap<&str, i64>, domain: &str) -> bool {
        let least = counts.values().copied().min().filter(|_| counts.len() >= self.domains_min);
        let here = counts.get(domain).copied().unwrap_or(0);
        here + i64::from(selects(&self.selector, pod)) - least.unwrap_or(0) <= self.skew_max
    }
}

impl Port<'_> {
    fn collides(&self, other: &Port<'_>) -> bool {
        let is_any = |address: &str| matches!(address, "" | "0.0.0.0");
        (self.number, self.protocol) == (other.number, other.protocol)
            && (self.address == other.address || is_any(self.address) || is_any(other.address))
    }
}

fn pod_ports(pod: &Value) -> impl Iterator<Item = Port<'_>> {
    let spec = field(pod, "spec");
    list(spec, "initContainers").iter().chain(list(spec, "containers")).flat_map(ports)
}

fn ports(container: &Value) -> impl Iterator<Item = Port<'_>> {
    let taken = |port: &&Value| field(port, "hostPort").as_i64().is_some_and(|number| number > 0);
    list(container, "ports").iter().filter(taken).map(|port| Port {
        number: field(port, "hostPort").as_i64().unwrap_or(0),
        protocol: Some(text(port, "protocol")).filter(|it| !it.is_empty()).unwrap_or("TCP"),
        address: text(port, "hostIP"),
    })
}
