//! Nodes as a DaemonSet sees them: which of them it suits, and what it has on each.

use convoy_api::Object;
use convoy_api::object::member::{field, list};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::kept::{HASH_LABEL, Health, template};
use crate::hold::HoldReason;
use crate::node_selector::{NodeSelector, intolerable};
use crate::taint::{Taint, Toleration};

/// Taints that every daemon pod bears: nodes have trouble, and daemons are there to see it.
const BORNE: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];
const OF_HOST_NETWORK: (&str, &str) = ("node.kubernetes.io/network-unavailable", "NoSchedule");

/// Whether a node is one for this DaemonSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    Good,
    /// Nothing is started there, and what is there stays.
    MayStay {
        taint: String,
    },
    Unfit,
}

impl Fit {
    pub(super) fn should_run(&self) -> bool {
        *self == Self::Good
    }

    pub(super) fn may_stay(&self) -> bool {
        *self != Self::Unfit
    }

    pub(super) fn hold(&self) -> Option<HoldReason> {
        match self {
            Self::MayStay { taint } => Some(HoldReason::TaintNotTolerated { taint: taint.clone() }),
            _ => None,
        }
    }
}

/// What a DaemonSet asks of nodes.
#[derive(Debug)]
pub(super) struct Suitability<'o> {
    selector: NodeSelector<'o>,
    tolerations: Vec<Toleration<'o>>,
}

impl<'o> Suitability<'o> {
    pub(super) fn of(owner: &'o Object) -> Self {
        let spec = field(template(owner), "spec");
        let own = list(spec, "tolerations").iter().map(Toleration::from_value);
        let tolerations = own.chain(borne(spec).map(|(key, effect)| Toleration {
            key,
            operator: "Exists",
            value: "",
            effect,
        }));
        Self { selector: NodeSelector::of(spec), tolerations: tolerations.collect() }
    }

    pub(super) fn judge(&self, node: &Object) -> Fit {
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

fn borne(spec: &Value) -> impl Iterator<Item = (&'static str, &'static str)> {
    let host = (field(spec, "hostNetwork") == &json!(true)).then_some(OF_HOST_NETWORK);
    BORNE.into_iter().chain(host)
}

/// Ties a new pod to its node, and lets it bear what daemons bear.
pub(super) fn pinned(spec: &mut Value, node: &str) {
    let terms = json!([{"matchFields": [
        {"key": "metadata.name", "operator": "In", "values": [node]}]}]);
    let added: Vec<Value> = borne(spec)
        .map(|(key, effect)| json!({"key": key, "operator": "Exists", "effect": effect}))
        .filter(|toleration| !list(spec, "tolerations").contains(toleration))
        .collect();
    if !spec["affinity"].is_object() {
        spec["affinity"] = json!({});
    }
    if !spec["affinity"]["nodeAffinity"].is_object() {
        spec["affinity"]["nodeAffinity"] = json!({});
    }
    spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
        json!({"nodeSelectorTerms": terms});
    if !spec["tolerations"].is_array() {
        spec["tolerations"] = json!([]);
    }
    spec["tolerations"].as_array_mut().expect("just made").extend(added);
}

/// The node that a pod is on, or is tied to.
pub(super) fn node_of(pod: &Object) -> Option<&str> {
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

/// One node with its pods.
#[derive(Debug)]
pub(super) struct Place<'w> {
    pub(super) node: &'w str,
    pub(super) fit: Fit,
    /// With whether each is of the template as it is now.
    pub(super) pods: Vec<(&'w Object, bool, Health)>,
    /// A pod is made although there is one: a surge.
    pub(super) surges: bool,
    pub(super) deleted: Vec<&'w Object>,
}

impl<'w> Place<'w> {
    pub(super) fn new(
        node: &'w str,
        fit: Fit,
        pods: Vec<(&'w Object, Health)>,
        hash: &str,
    ) -> Self {
        let mut pods: Vec<(&'w Object, bool, Health)> = pods
            .into_iter()
            .map(|(pod, health)| (pod, pod.label(HASH_LABEL) == Some(hash), health))
            .collect();
        pods.sort_by_key(|(pod, ..)| (pod.created_at(), pod.name()));
        Self { node, fit, pods, surges: false, deleted: Vec::new() }
    }

    /// Whether a pod is made here now.
    pub(super) fn creates(&self) -> bool {
        self.surges || self.fit.should_run() && self.pods.is_empty()
    }

    /// Its pods that are neither over nor leaving.
    pub(super) fn alive(&self) -> impl Iterator<Item = &(&'w Object, bool, Health)> {
        self.pods.iter().filter(|(.., health)| !matches!(health, Health::Over | Health::Leaving))
    }

    /// The pod that stands for the node: the new one if it is available, else the oldest. Whether
    /// it is of the template as it is now, and how well it is.
    pub(super) fn current(&self) -> Option<(bool, Health)> {
        let best =
            self.alive().find(|(_, updated, health)| *updated && *health == Health::Available);
        let one = best.or_else(|| self.alive().next()).or_else(|| self.pods.first())?;
        Some((one.1, one.2))
    }

    pub(super) fn is_leaving(&self) -> bool {
        !self.deleted.is_empty() || self.pods.iter().any(|(.., health)| *health == Health::Leaving)
    }

    /// For how long a ready pod is watched before it counts.
    pub(super) fn min_ready_secs(&self, until: Option<Timestamp>) -> i64 {
        let since = self.alive().find_map(|(pod, ..)| {
            convoy_api::object::meta::timestamp(pod.condition("Ready")?.get("lastTransitionTime"))
        });
        until.zip(since).map_or(0, |(until, since)| until.duration_since(since).as_secs())
    }
}
