//! What a pod needs of a node, beyond room: labels, taints it bears, ports, topology.

use std::hash::{DefaultHasher, Hash, Hasher};

use convoy_api::Object;
use convoy_api::object::member::{field, list};
use serde_json::Value;
use smol_str::SmolStr;

use super::requirement;
use crate::requirement::Requirements;
use crate::resources::Amounts;
use crate::taint::{Taint, Toleration};
use crate::topology::{self, TopologyRules};

/// The needs of one pod.
#[derive(Clone, Debug)]
pub(crate) struct PodRequirements<'w> {
    pub(crate) object: &'w Object,
    pub(crate) amounts: Amounts,
    /// `nodeSelector`.
    selector: Requirements,
    /// Required node affinity: the first of these, unless that is relaxed. Empty: any node will
    /// do.
    terms: Vec<Requirements>,
    /// Preferred node affinity, the heaviest first, which counts as if it were required.
    preferred: Vec<Requirements>,
    tolerations: Vec<Toleration<'w>>,
    ports: Vec<Port<'w>>,
    pub(crate) topology: TopologyRules<'w>,
    /// The same for pods that fit on the same nodes: those of one template. None: it depends on
    /// other pods where it fits, or some wish was given up.
    pub(crate) shape: Option<u64>,
}

/// A port of the node that a pod takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Port<'w> {
    number: i64,
    protocol: &'w str,
    address: &'w str,
}

impl<'w> PodRequirements<'w> {
    pub(crate) fn of(pod: &'w Object) -> Self {
        Self::of_spec(pod, pod.spec())
    }

    /// Those of the pods that a DaemonSet makes.
    pub(crate) fn of_template(daemon_set: &'w Object) -> Self {
        let spec = daemon_set.spec().pointer("/template/spec").unwrap_or(&Value::Null);
        Self::of_spec(daemon_set, spec)
    }

    fn of_spec(object: &'w Object, spec: &'w Value) -> Self {
        let affinity = field(field(spec, "affinity"), "nodeAffinity");
        let required = field(affinity, "requiredDuringSchedulingIgnoredDuringExecution");
        let term = |term: &Value| {
            let mut all = requirement::from_value(list(term, "matchExpressions"));
            all.extend(requirement::from_value(list(term, "matchFields")));
            all
        };
        let mut preferred: Vec<&Value> =
            list(affinity, "preferredDuringSchedulingIgnoredDuringExecution").iter().collect();
        preferred.sort_by_key(|entry| std::cmp::Reverse(topology::weight(entry)));
        let topology = TopologyRules::of(spec);
        Self {
            shape: topology.is_empty().then(|| shape(spec)),
            object,
            amounts: Amounts::of_pod(spec),
            selector: requirement::from_labels(spec.get("nodeSelector")),
            terms: list(required, "nodeSelectorTerms").iter().map(term).collect(),
            preferred: preferred.into_iter().map(|it| term(field(it, "preference"))).collect(),
            tolerations: list(spec, "tolerations").iter().map(Toleration::from_value).collect(),
            ports: list(spec, "containers").iter().flat_map(ports).collect(),
            topology,
        }
    }

    /// Whether a node with these labels is one the pod may run on, with the preferences that it
    /// still has.
    pub(crate) fn accept<'v>(&self, look_up: impl Fn(&str) -> Option<&'v str> + Copy) -> bool {
        let first = self.terms.first();
        let preferred = self.preferred.first();
        self.selector.first_unmet(look_up).is_none()
            && first.is_none_or(|term| !term.is_empty() && term.first_unmet(look_up).is_none())
            && preferred.is_none_or(|term| term.first_unmet(look_up).is_none())
    }

    /// Whether the pod may run on a node whose label `key` is `value`, as far as that goes.
    pub(crate) fn allow(&self, key: &str, value: Option<&str>) -> bool {
        self.parts().all(|part| part.allow(key, value))
    }

    /// The values that it names for `key`.
    pub(crate) fn values_of<'k>(&'k self, key: &'k str) -> impl Iterator<Item = &'k SmolStr> {
        self.parts().flat_map(move |part| part.values_of(key))
    }

    /// What it requires of labels, with the preferences that it still has.
    fn parts(&self) -> impl Iterator<Item = &Requirements> {
        [Some(&self.selector), self.terms.first(), self.preferred.first()].into_iter().flatten()
    }

    /// The same whatever the pod prefers, and whichever of its terms the node meets.
    pub(crate) fn accept_relaxed<'v>(
        &self,
        look_up: impl Fn(&str) -> Option<&'v str> + Copy,
    ) -> bool {
        let meets = |term: &Requirements| !term.is_empty() && term.first_unmet(look_up).is_none();
        self.selector.first_unmet(look_up).is_none()
            && (self.terms.is_empty() || self.terms.iter().any(meets))
    }

    /// Gives up one wish of a pod that found no node, in upstream's order: the first of several
    /// terms of required node affinity, then the heaviest preference to be near pods, to be away
    /// from pods, for a node, and to be spread. False: nothing is left to give up.
    pub(crate) fn relax(&mut self) -> bool {
        self.shape = None;
        if self.terms.len() > 1 {
            self.terms.remove(0);
            return true;
        }
        if self.topology.relax_affinity() {
            return true;
        }
        if !self.preferred.is_empty() {
            self.preferred.remove(0);
            return true;
        }
        self.topology.relax_spread()
    }

    /// The first taint that keeps the pod away. Preferences do not.
    pub(crate) fn first_intolerable<'t>(&self, taints: &[Taint<'t>]) -> Option<Taint<'t>> {
        let hard = taints.iter().filter(|taint| taint.effect != "PreferNoSchedule");
        let tolerated = |taint: &Taint<'_>| {
            self.tolerations.iter().any(|toleration| toleration.tolerates(taint))
        };
        hard.copied().find(|taint| !tolerated(taint))
    }

    pub(crate) fn ports(&self) -> &[Port<'w>] {
        &self.ports
    }
}

/// What decides which nodes a pod fits on.
fn shape(spec: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    for name in ["containers", "initContainers", "overhead"] {
        spec.get(name).hash(&mut hasher);
    }
    for name in ["nodeSelector", "affinity", "tolerations"] {
        spec.get(name).hash(&mut hasher);
    }
    hasher.finish()
}

impl Port<'_> {
    pub(crate) fn collides(&self, other: &Port<'_>) -> bool {
        let everywhere = |address: &str| address.is_empty() || address == "0.0.0.0";
        self.number == other.number
            && self.protocol == other.protocol
            && (self.address == other.address
                || everywhere(self.address)
                || everywhere(other.address))
    }
}

fn ports(container: &Value) -> impl Iterator<Item = Port<'_>> {
    let ports = container.get("ports").and_then(Value::as_array).into_iter().flatten();
    ports.filter_map(|port| {
        let text = |field: &str| port.get(field).and_then(Value::as_str);
        Some(Port {
            number: port.get("hostPort")?.as_i64().filter(|number| *number > 0)?,
            protocol: text("protocol").unwrap_or("TCP"),
            address: text("hostIP").unwrap_or_default(),
        })
    })
}
