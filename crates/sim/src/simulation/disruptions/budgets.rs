//! The budgets that people give to a pool under trial: counts and shares, for all reasons or for
//! one, always or for some minutes of every hour.

use convoy_api::Object;
use convoy_api::karpenter::names::annotation;
use convoy_check::node_pools;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::simulation::random::Random;

/// The reasons that budgets speak of.
pub(super) const REASONS: [&str; 3] = ["Underutilized", "Empty", "Drifted"];

/// How long a decision may take to be written: a window may have opened since it was made.
const DELAY: SignedDuration = SignedDuration::from_mins(1);

/// The budgets of a pool.
#[derive(Clone, Debug)]
pub(super) struct Budgets(Vec<Budget>);

#[derive(Clone, Debug)]
struct Budget {
    nodes: Nodes,
    /// Absent: for every reason.
    reason: Option<&'static str>,
    /// The minute of every hour at which it begins to apply, and for how many minutes.
    window: Option<(i64, i64)>,
}

/// How many nodes may be disrupted.
#[derive(Clone, Copy, Debug)]
enum Nodes {
    Count(i64),
    Percent(i64),
}

impl Budgets {
    /// One budget, or two of which one may be for a reason or a part of the time.
    pub(super) fn random(random: &mut Random) -> Self {
        let first = Budget::always(Nodes::random(random));
        if random.happens(500) {
            return Self(vec![first]);
        }
        let mut second = Budget::always(Nodes::random(random));
        second.reason = random.pick(&REASONS).copied().filter(|_| random.happens(700));
        if random.happens(500) {
            second.window = Some((random.between(0, 59), random.between(5, 50)));
        }
        if random.happens(300) { Self(vec![second]) } else { Self(vec![first, second]) }
    }

    /// So many nodes, always and for every reason.
    pub(super) fn count(nodes: i64) -> Self {
        Self(vec![Budget::always(Nodes::Count(nodes))])
    }

    /// All nodes at once.
    pub(super) fn all() -> Self {
        Self(vec![Budget::always(Nodes::Percent(100))])
    }

    /// As the pool has them, with so many nodes more.
    pub(super) fn to_json(&self, excess: i64) -> Value {
        self.0.iter().map(|budget| budget.to_json(excess)).collect()
    }

    /// The most nodes of `total` that may be disrupted for `reason` at `now`, or shortly before.
    pub(super) fn allowed(&self, reason: &str, zone: &str, total: usize, now: Timestamp) -> usize {
        let pool = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool",
            "metadata": {"name": "default", "annotations": {annotation::TIME_ZONE: zone}},
            "spec": {"disruption": {"budgets": self.to_json(0)}}});
        let pool = Object::from_value(pool).expect("a whole object");
        let nodes = u32::try_from(total).unwrap_or(u32::MAX);
        let at = |now| node_pools::limit(&pool, reason, nodes, now);
        let most = |now| at(now).map_or(total, |limit| limit as usize);
        most(now).max(now.checked_sub(DELAY).map_or(0, most))
    }
}

impl Budget {
    fn always(nodes: Nodes) -> Self {
        Self { nodes, reason: None, window: None }
    }

    fn to_json(&self, excess: i64) -> Value {
        let nodes = match self.nodes {
            Nodes::Count(count) => (count + excess).to_string(),
            Nodes::Percent(percent) => format!("{percent}%"),
        };
        let mut budget = json!({"nodes": nodes});
        if let Some(reason) = self.reason {
            budget["reasons"] = json!([reason]);
        }
        if let Some((minute, length)) = self.window {
            budget["schedule"] = json!(format!("{minute} * * * *"));
            budget["duration"] = json!(format!("{length}m"));
        }
        budget
    }
}

impl Nodes {
    fn random(random: &mut Random) -> Self {
        if random.happens(500) {
            Self::Count(random.between(0, 2))
        } else {
            Self::Percent(random.between(0, 4) * 25)
        }
    }
}
