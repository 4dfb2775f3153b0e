//! Topology: which other pods a pod has to be near to, away from, or evenly spread among.
//!
//! Preferences count as if they were required until somebody relaxes them, one by one: they
//! decide where a pod goes, and never whether it goes.

use std::collections::BTreeMap;

use convoy_api::Object;
use convoy_api::object::member::{field, list, text};
use serde_json::Value;

use crate::selector::Selector;

/// The rules of one pod, required ones before preferences.
#[derive(Clone, Debug, Default)]
pub(crate) struct TopologyRules<'w> {
    spread: Vec<Spread<'w>>,
    near: Vec<Term<'w>>,
    apart: Vec<Term<'w>>,
}

/// An entry of `topologySpreadConstraints`.
#[derive(Clone, Debug)]
struct Spread<'w> {
    /// `ScheduleAnyway`.
    is_preferred: bool,
    key: &'w str,
    max_skew: u32,
    selector: Selector,
}

/// A term of pod affinity or anti-affinity.
#[derive(Clone, Debug)]
struct Term<'w> {
    is_preferred: bool,
    key: &'w str,
    selector: Selector,
    /// Empty: the pod's own.
    namespaces: Vec<&'w str>,
}

/// A pod somewhere, and a way to look up the labels of its node.
pub(crate) trait Located<'w> {
    fn pod(&self) -> &'w Object;
    fn domain(&self, key: &str) -> Option<&str>;
    fn topology(&self) -> Option<&TopologyRules<'w>>;
}

impl<'w> TopologyRules<'w> {
    /// The rules of a pod with all its preferences.
    pub(crate) fn of(spec: &'w Value) -> Self {
        let affinity = field(spec, "affinity");
        let spread = list(spec, "topologySpreadConstraints").iter();
        Self {
            spread: spread.filter_map(Spread::from_value).collect(),
            near: terms(field(affinity, "podAffinity")),
            apart: terms(field(affinity, "podAntiAffinity")),
        }
    }

    /// The same without preferences.
    pub(crate) fn required(spec: &'w Value) -> Self {
        Self::of(spec).into_required()
    }

    pub(crate) fn into_required(mut self) -> Self {
        self.spread.retain(|spread| !spread.is_preferred);
        self.near.retain(|term| !term.is_preferred);
        self.apart.retain(|term| !term.is_preferred);
        self
    }

    /// Drops the heaviest preference to be near pods, or else to be away from some.
    pub(crate) fn relax_affinity(&mut self) -> bool {
        [&mut self.near, &mut self.apart].into_iter().any(|terms| {
            let preferred = terms.iter().position(|term| term.is_preferred);
            preferred.map(|at| terms.remove(at)).is_some()
        })
    }

    /// Drops the first preference to be spread.
    pub(crate) fn relax_spread(&mut self) -> bool {
        let preferred = self.spread.iter().position(|spread| spread.is_preferred);
        preferred.map(|at| self.spread.remove(at)).is_some()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.spread.is_empty() && self.near.is_empty() && self.apart.is_empty()
    }

    /// Whether other pods have to stay away; a preference to be apart is no reason for others.
    pub(crate) fn keeps_others_away(&self) -> bool {
        self.apart.iter().any(|term| !term.is_preferred)
    }

    /// Whether `pod` may join a node with these labels, given where all others are and which
    /// domains there are at all.
    pub(crate) fn permits<'v, S: Located<'w>>(
        &self,
        pod: &Object,
        node: impl Fn(&str) -> Option<&'v str>,
        others: &[S],
        domains: impl Fn(&str) -> Vec<String>,
    ) -> bool {
        let here =
            |key: &str, other: &S| node(key).is_some_and(|mine| other.domain(key) == Some(mine));
        let apart = |term: &Term<'_>| {
            others.iter().any(|other| term.means(pod, other.pod()) && here(term.key, other))
        };
        let near = |term: &Term<'_>| {
            let somewhere = others.iter().any(|other| term.means(pod, other.pod()));
            // The first of a group that wants to be together may begin anywhere.
            let first = !somewhere && term.means(pod, pod);
            node(term.key).is_some()
                && (first
                    || others
                        .iter()
                        .any(|other| term.means(pod, other.pod()) && here(term.key, other)))
        };
        let unwelcome = || {
            others.iter().any(|other| {
                let terms = other.topology().map_or(&[][..], |topology| &topology.apart[..]);
                let mut required = terms.iter().filter(|term| !term.is_preferred);
                required.any(|term| term.means(other.pod(), pod) && here(term.key, other))
            })
        };
        !self.apart.iter().any(apart)
            && self.near.iter().all(near)
            && self.spread.iter().all(|spread| spread.permits(pod, &node, others, &domains))
            && !unwelcome()
    }
}

/// The terms of pod affinity or anti-affinity: what is required, then what is preferred, the
/// heaviest first.
fn terms(affinity: &Value) -> Vec<Term<'_>> {
    let required = list(affinity, "requiredDuringSchedulingIgnoredDuringExecution").iter();
    let mut preferred: Vec<&Value> =
        list(affinity, "preferredDuringSchedulingIgnoredDuringExecution").iter().collect();
    preferred.sort_by_key(|entry| std::cmp::Reverse(weight(entry)));
    let preferred = preferred.into_iter().map(|entry| (field(entry, "podAffinityTerm"), true));
    let all = required.map(|term| (term, false)).chain(preferred);
    all.filter_map(|(term, is_preferred)| Term::new(term, is_preferred)).collect()
}

/// How much a preference weighs.
pub(crate) fn weight(preference: &Value) -> i64 {
    field(preference, "weight").as_i64().unwrap_or(0)
}

impl<'w> Spread<'w> {
    fn from_value(value: &'w Value) -> Option<Self> {
        let skew = value.get("maxSkew").and_then(Value::as_u64).unwrap_or(1);
        Some(Self {
            is_preferred: text(value, "whenUnsatisfiable") == "ScheduleAnyway",
            key: value.get("topologyKey")?.as_str()?,
            max_skew: u32::try_from(skew).unwrap_or(u32::MAX),
            selector: Selector::from_value(value.get("labelSelector")?).ok()?,
        })
    }

    fn permits<'v, S: Located<'w>>(
        &self,
        pod: &Object,
        node: &impl Fn(&str) -> Option<&'v str>,
        others: &[S],
        domains: &impl Fn(&str) -> Vec<String>,
    ) -> bool {
        let Some(mine) = node(self.key) else { return false };
        let mut counts: BTreeMap<String, u32> =
            domains(self.key).into_iter().map(|domain| (domain, 0)).collect();
        counts.entry(mine.to_owned()).or_default();
        for other in others {
            let same = other.pod().namespace() == pod.namespace();
            if same
                && self.selector.matches(other.pod())
                && let Some(domain) = other.domain(self.key)
            {
                *counts.entry(domain.to_owned()).or_default() += 1;
            }
        }
        // A new node is a new host: the emptiest host is always one that could be made.
        let is_host = self.key == convoy_api::karpenter::names::label::HOSTNAME;
        let least = if is_host { 0 } else { counts.values().copied().min().unwrap_or(0) };
        let joined = counts.get(mine).copied().unwrap_or(0) + u32::from(self.selector.matches(pod));
        joined.saturating_sub(least) <= self.max_skew
    }
}

impl<'w> Term<'w> {
    fn new(value: &'w Value, is_preferred: bool) -> Option<Self> {
        let namespaces = value.get("namespaces").and_then(Value::as_array).into_iter().flatten();
        Some(Self {
            is_preferred,
            key: value.get("topologyKey")?.as_str()?,
            selector: Selector::from_value(value.get("labelSelector")?).ok()?,
            namespaces: namespaces.filter_map(Value::as_str).collect(),
        })
    }

    /// Whether the term of `owner` speaks of `other`.
    fn means(&self, owner: &Object, other: &Object) -> bool {
        let place = other.namespace().as_str();
        let of_namespace = if self.namespaces.is_empty() {
            place == owner.namespace().as_str()
        } else {
            self.namespaces.contains(&place)
        };
        of_namespace && self.selector.matches(other)
    }
}
