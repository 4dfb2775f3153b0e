//! Scenarios: how a simulated fleet looks and misbehaves, as a file that people write.
//!
//! Everything has a default, so an empty file is a sound scenario. What is not understood is
//! refused with the field and the value.

mod behaviour;
mod latency;
mod member_cluster;
mod member_event;
mod package;
mod pattern;

use std::collections::BTreeMap;

use convoy_api::object::view::{ViewError, view_of};
use serde::Deserialize;
use serde_json::Value;

pub use behaviour::{Adjustment, Behaviour, Failure, PREFIX};
pub use latency::Latency;
pub use member_cluster::MemberClusterRule;
pub use member_event::{LinkSchedule, LinkState, MemberClusterEvent, Towards};
pub use package::{PackageCondition, Step};
pub use pattern::Pattern;

/// A whole scenario file.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Scenario {
    /// Random seed.
    pub seed: u64,
    /// The nodes to make, group by group.
    pub nodes: Vec<NodeTemplate>,
    pub latencies: Latencies,
    pub rates: Rates,
    /// What single pods do differently; later ones win.
    pub rules: Vec<Rule>,
    /// What happens to nodes, and when.
    pub node_events: Vec<NodeEvent>,
    /// How often a node renews its lease.
    pub heartbeat: Latency,
    /// What member clusters are like; later ones win.
    pub member_clusters: Vec<MemberClusterRule>,
    /// What happens to the connections of member clusters, and when.
    pub member_cluster_events: Vec<MemberClusterEvent>,
}

/// A group of like nodes, named `NAME-0` and onwards.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NodeTemplate {
    pub name: String,
    pub count: u32,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub taints: Vec<Taint>,
    /// Beside the defaults of 8 cpu, 32Gi of memory, 100Gi of disk and 110 pods.
    pub capacity: BTreeMap<String, String>,
    /// Nodes take these in turn, as `topology.kubernetes.io/zone`.
    pub zones: Vec<String>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Taint {
    pub key: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
    pub effect: String,
}

/// How long the steps of a pod's life take.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Latencies {
    /// Until the images are there.
    pub pull: Latency,
    /// From there until a container runs.
    pub start: Latency,
    /// From there until it is ready.
    pub ready: Latency,
    /// From the request to end until it has ended.
    pub stop: Latency,
    /// How long an init container runs.
    pub init: Latency,
    /// How long a container of a Job runs.
    pub job: Latency,
}

/// Shares of all pods, from 0 to 1, that fail by chance.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Rates {
    pub crash: f64,
    pub image_pull_error: f64,
    pub never_ready: f64,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rule {
    /// Which containers; all that is given must hold.
    pub when: Condition,
    pub then: Adjustment,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Condition {
    pub image: Option<Pattern>,
    pub namespace: Option<Pattern>,
    pub node: Option<Pattern>,
    /// The container's name.
    pub container: Option<Pattern>,
    /// The container's command and arguments, with spaces between them: `sleep 300`.
    pub command: Option<Pattern>,
    pub labels: BTreeMap<String, String>,
    /// Variables of the container.
    pub env: BTreeMap<String, Pattern>,
    /// What the pod of a Skyhook stands for.
    pub package: Option<PackageCondition>,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeEvent {
    pub node: Pattern,
    /// After the start of the fleet.
    pub at: Latency,
    pub event: NodeEventKind,
    /// For how long; absent: for good, and 30s for a reboot.
    #[serde(default, rename = "for")]
    pub lasts: Option<Latency>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum NodeEventKind {
    /// Its kubelet runs and says it is not ready.
    NotReady,
    /// Nothing is heard of it.
    Silent,
    /// Silent for a while; back with another boot id, and every container starts again.
    Reboot,
    /// The machine is gone for good, and its node object with it.
    Vanish,
}

/// Why a scenario was refused.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    #[error("not YAML: {0}")]
    Syntax(String),
    #[error("{field}: {message}")]
    Field { field: String, message: String },
}

impl Scenario {
    /// Reads and checks a file.
    pub fn from_yaml(text: &str) -> Result<Self, ScenarioError> {
        let value: Value = serde_saphyr::from_str(text)
            .map_err(|error| ScenarioError::Syntax(error.to_string()))?;
        let value = if value.is_null() { Value::Object(serde_json::Map::new()) } else { value };
        let scenario: Self = view_of(&value)
            .map_err(|ViewError { field, message }| ScenarioError::Field { field, message })?;
        scenario.check()?;
        Ok(scenario)
    }

    /// `count` nodes in place of those of the file, in the same proportions; one group if the file
    /// has none.
    #[must_use]
    pub fn with_nodes(mut self, count: u32) -> Self {
        if self.nodes.is_empty() {
            self.nodes.push(NodeTemplate::default());
        }
        let counts: Vec<u32> = self.nodes.iter().map(|template| template.count).collect();
        for (template, count) in self.nodes.iter_mut().zip(shares(&counts, count)) {
            template.count = count;
        }
        self
    }

    /// The same for a number that somebody asked for, which is refused if a group that has nodes
    /// would lose them all: nothing that was written for its nodes would be seen.
    pub fn with_nodes_in_every_group(self, count: u32) -> Result<Self, ScenarioError> {
        let counts: Vec<u32> = self.nodes.iter().map(|template| template.count).collect();
        let is_lost = |total: u32| {
            counts.iter().zip(shares(&counts, total)).position(|(had, has)| *had > 0 && has == 0)
        };
        let Some(lost) = is_lost(count).filter(|_| count > 0) else {
            return Ok(self.with_nodes(count));
        };
        let sum = counts.iter().fold(0_u32, |sum, count| sum.saturating_add(*count));
        let least = (count..sum).take(LEAST_TRIED).find(|total| is_lost(*total).is_none());
        let group = &self.nodes[lost].name;
        let least = least.unwrap_or(sum);
        let want = format!(
            "group {group:?} would have none of {count} nodes; want 0, or at least {least}"
        );
        Err(ScenarioError::Field { field: "nodes".to_owned(), message: want })
    }

    /// The names of the nodes that it makes.
    pub(crate) fn node_names(&self) -> impl Iterator<Item = String> {
        let names = |template: &NodeTemplate| {
            let name = template.name.clone();
            (0..template.count).map(move |at| format!("{name}-{at}"))
        };
        self.nodes.iter().flat_map(names)
    }

    /// How many nodes it makes.
    pub(crate) fn node_count(&self) -> u32 {
        self.nodes.iter().fold(0, |sum, template| sum.saturating_add(template.count))
    }

    fn check(&self) -> Result<(), ScenarioError> {
        for (index, template) in self.nodes.iter().enumerate() {
            template.check(&format!("nodes[{index}]"))?;
        }
        let Rates { crash, image_pull_error, never_ready } = self.rates;
        let rates =
            [("crash", crash), ("imagePullError", image_pull_error), ("neverReady", never_ready)];
        for (name, rate) in rates {
            if !(0.0..=1.0).contains(&rate) {
                return Err(refused(&format!("rates.{name}"), &rate, "want a share from 0 to 1"));
            }
        }
        if self.heartbeat.shortest().is_zero() {
            return Err(refused("heartbeat", &"0s", "want a positive duration"));
        }
        self.check_member_events()
    }
}

impl NodeTemplate {
    fn check(&self, at: &str) -> Result<(), ScenarioError> {
        if !convoy_plan::selector::is_dns_subdomain(&self.name) {
            return Err(refused(&format!("{at}.name"), &self.name, "want a DNS subdomain"));
        }
        for (name, amount) in &self.capacity {
            if amount.parse::<convoy_api::text::Quantity>().is_err() {
                let field = format!("{at}.capacity.{name}");
                return Err(refused(&field, amount, "want a quantity such as 8 or 32Gi"));
            }
        }
        for (index, taint) in self.taints.iter().enumerate() {
            if !["NoSchedule", "PreferNoSchedule", "NoExecute"].contains(&taint.effect.as_str()) {
                let field = format!("{at}.taints[{index}].effect");
                let want = "want NoSchedule, PreferNoSchedule or NoExecute";
                return Err(refused(&field, &taint.effect, want));
            }
        }
        Ok(())
    }
}

/// How many totals are tried for the least one that leaves no group out; the scenario's own total is
/// right in any case.
const LEAST_TRIED: usize = 100_000;

/// `total` in the proportions of `counts`: everybody gets their whole shares, and what is left goes
/// to the largest remainders, the first among equals. All to the first if nobody has any.
fn shares(counts: &[u32], total: u32) -> Vec<u32> {
    let sum: u64 = counts.iter().copied().map(u64::from).sum();
    if sum == 0 {
        return counts.iter().enumerate().map(|(at, _)| if at == 0 { total } else { 0 }).collect();
    }
    let parts = counts.iter().map(|count| u64::from(*count) * u64::from(total));
    let (mut whole, rests): (Vec<u32>, Vec<u64>) =
        parts.map(|part| (u32::try_from(part / sum).unwrap_or(total), part % sum)).unzip();
    let left = total - whole.iter().sum::<u32>();
    let mut order: Vec<usize> = (0..counts.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(rests[*at]));
    for at in order.into_iter().take(usize::try_from(left).unwrap_or(usize::MAX)) {
        whole[at] += 1;
    }
    whole
}

fn refused(field: &str, value: &dyn std::fmt::Debug, want: &str) -> ScenarioError {
    ScenarioError::Field { field: field.to_owned(), message: format!("{value:?}: {want}") }
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            seed: 0,
            nodes: Vec::new(),
            latencies: Latencies::default(),
            rates: Rates::default(),
            rules: Vec::new(),
            node_events: Vec::new(),
            heartbeat: Latency::from_millis(10_000, 10_000),
            member_clusters: Vec::new(),
            member_cluster_events: Vec::new(),
        }
    }
}

impl Default for NodeTemplate {
    fn default() -> Self {
        Self {
            name: "node".to_owned(),
            count: 1,
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            taints: Vec::new(),
            capacity: BTreeMap::new(),
            zones: Vec::new(),
        }
    }
}

impl Default for Latencies {
    fn default() -> Self {
        Self {
            pull: Latency::from_millis(50, 200),
            start: Latency::from_millis(50, 150),
            ready: Latency::from_millis(100, 500),
            stop: Latency::from_millis(50, 250),
            init: Latency::from_millis(100, 300),
            job: Latency::from_millis(500, 1_500),
        }
    }
}

#[cfg(test)]
mod tests;
