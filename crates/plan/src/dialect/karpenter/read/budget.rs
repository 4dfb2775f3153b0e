//! Disruption budgets: how many nodes of a pool may be down at once, per reason and instant.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::reason::Reason;
use crate::budget::{IntOrPercent, Rounding};
use crate::window::{Phase, Window};

/// Which reasons a budget without reasons covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Default {
    /// All of them, beside the budgets that name them.
    All,
    /// Those that no other active budget names.
    Unlisted,
}

/// One entry of `spec.disruption.budgets`.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    /// How many, or what is wrong with the entry.
    nodes: Result<IntOrPercent, String>,
    applies: Applies,
    /// Empty: no reasons were given.
    reasons: Vec<Reason>,
}

#[derive(Clone, Debug)]
enum Applies {
    Always,
    During(Window),
    /// Its schedule cannot be read.
    Unknown(String),
}

/// What the budgets of a pool say at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// By index of the budget.
    pub(crate) active: Vec<bool>,
    /// Index and text of every budget that cannot be evaluated; any closes the whole pool.
    pub(crate) errors: Vec<(usize, String)>,
    by_reason: [Limit; Reason::ALL.len()],
}

/// The limit for one reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limit {
    /// The most nodes that may be down; absent: unbounded.
    pub(crate) most: Option<u32>,
    /// Which budget that comes from, the first of several; absent where none or an error does.
    pub(crate) budget: Option<usize>,
}

/// The largest number of nodes there is; larger counts saturate here.
const MOST: u32 = i32::MAX as u32;

impl Budget {
    /// Reads one budget of a pool in `v1` form. What is unsound is kept as an error, which
    /// closes the pool.
    pub(crate) fn from_value(value: &Value, zone: &Result<TimeZone, String>) -> Self {
        let nodes = match value.get("nodes") {
            None | Some(Value::Null) => Ok(IntOrPercent::Percent(10)),
            Some(Value::String(text)) => {
                IntOrPercent::from_text(text).map_err(|error| format!("nodes {text:?}: {error}"))
            }
            Some(other) => Err(format!("nodes {other}: want a count or a percentage in quotes")),
        };
        let reasons = value.get("reasons").and_then(Value::as_array).into_iter().flatten();
        let reasons = reasons.filter_map(|word| Reason::from_word(word.as_str()?)).collect();
        Self { nodes, applies: Applies::from_value(value, zone), reasons }
    }

    pub(crate) fn error(&self) -> Option<&str> {
        match (&self.nodes, &self.applies) {
            (Err(text), _) | (_, Applies::Unknown(text)) => Some(text),
            _ => None,
        }
    }

    /// The window outside which it does not apply.
    pub(crate) fn window(&self) -> Option<&Window> {
        match &self.applies {
            Applies::During(window) => Some(window),
            _ => None,
        }
    }

    pub(crate) fn reasons(&self) -> &[Reason] {
        &self.reasons
    }

    /// A schedule that never hits leaves the budget active for good: the closed direction.
    fn is_active(&self, now: Timestamp) -> bool {
        match &self.applies {
            Applies::Always => true,
            Applies::During(window) => window.is_open(now).unwrap_or(true),
            Applies::Unknown(_) => false,
        }
    }

    /// When its activity changes next.
    fn changes_at(&self, now: Timestamp) -> Option<Timestamp> {
        match self.window()?.at(now) {
            Phase::Open { closes_at } => closes_at,
            Phase::Closed { opens_at } => opens_at,
            Phase::NoHit => None,
        }
    }
}

impl Applies {
    fn from_value(value: &Value, zone: &Result<TimeZone, String>) -> Self {
        let text = |field: &str| value.get(field).and_then(Value::as_str);
        let (schedule, duration) = match (text("schedule"), text("duration")) {
            (Some(schedule), Some(duration)) => (schedule, duration),
            (_, None) => return Self::Always,
            (None, Some(_)) => {
                return Self::Unknown("'schedule' must be set with 'duration'".to_owned());
            }
        };
        let length = duration.parse::<convoy_api::text::GoDuration>();
        match (length, zone) {
            (_, Err(error)) => Self::Unknown(error.clone()),
            (Err(error), _) => Self::Unknown(format!("duration: {error}")),
            (Ok(length), Ok(zone)) => match Window::new(schedule, length.signed(), zone.clone()) {
                Ok(window) => Self::During(window),
                Err(error) => Self::Unknown(format!("invariant violated, invalid cron, {error}")),
            },
        }
    }
}

/// What `budgets` say at `now` about a pool of `total` nodes.
///
/// A share rounds up, as for a PodDisruptionBudget, and is taken of all nodes, also of those
/// that are down already:
///
/// | nodes | budgets                          | limit for Drifted, Empty | because             |
/// |------:|----------------------------------|-------------------------:|---------------------|
/// |    11 | 10%                              |                     2, 2 | 1.1 rounds up       |
/// |    10 | 10 [Drifted], 5                  |                5, 5 (all) | minimum of both     |
/// |    10 | 10 [Drifted], 5                  |          10, 5 (unlisted) | Drifted has its own |
/// |    10 | 0 [Empty], schedule `sat-sun`    |                     0, 0 | unreadable: closed  |
pub(crate) fn limits(budgets: &[Budget], default: Default, total: u32, now: Timestamp) -> Limits {
    let active = budgets.iter().map(|budget| budget.is_active(now)).collect();
    limits_of(budgets, active, default, total)
}

fn limits_of(budgets: &[Budget], active: Vec<bool>, default: Default, total: u32) -> Limits {
    let numbered = budgets.iter().enumerate();
    let errors: Vec<(usize, String)> =
        numbered.filter_map(|(at, budget)| Some((at, budget.error()?.to_owned()))).collect();
    let mut limits = [Limit::default(); Reason::ALL.len()];
    for (limit, reason) in limits.iter_mut().zip(Reason::ALL) {
        *limit = if errors.is_empty() {
            limit_for(reason, budgets, &active, default, total)
        } else {
            Limit { most: Some(0), budget: None }
        };
    }
    Limits { active, errors, by_reason: limits }
}

fn limit_for(
    reason: Reason,
    budgets: &[Budget],
    active: &[bool],
    default: Default,
    total: u32,
) -> Limit {
    let open = || budgets.iter().enumerate().filter(|(at, _)| active[*at]);
    let named = open().any(|(_, budget)| budget.reasons.contains(&reason));
    let matching = open().filter(|(_, budget)| match default {
        Default::Unlisted if named => budget.reasons.contains(&reason),
        _ => budget.reasons.is_empty() || budget.reasons.contains(&reason),
    });
    let value = |budget: &Budget| {
        let nodes = budget.nodes.as_ref().map_or(0, |nodes| nodes.resolve(total, Rounding::Up));
        nodes.min(MOST)
    };
    let smallest = matching.map(|(at, budget)| (value(budget), at)).min();
    Limit { most: smallest.map(|(most, _)| most), budget: smallest.map(|(_, at)| at) }
}

impl Limits {
    pub(crate) fn of(&self, reason: Reason) -> Limit {
        let at = Reason::ALL.iter().position(|known| *known == reason);
        self.by_reason[at.expect("ALL lists every reason")]
    }

    /// How many more of `total` nodes may go down for `reason`, `down` being down already.
    pub(crate) fn allowed(&self, reason: Reason, total: u32, down: u32) -> u32 {
        self.of(reason).most.unwrap_or(total).saturating_sub(down)
    }
}

/// How many changes ahead [`frees_at`] looks.
const CHANGES_AHEAD: u32 = 64;

/// When the passing of time alone lets a node go down for `reason`, numbers staying as they are.
pub(crate) fn frees_at(
    budgets: &[Budget],
    default: Default,
    reason: Reason,
    total: u32,
    down: u32,
    now: Timestamp,
) -> Option<Timestamp> {
    let mut active: Vec<bool> = budgets.iter().map(|budget| budget.is_active(now)).collect();
    let mut changes: Vec<Option<Timestamp>> =
        budgets.iter().map(|budget| budget.changes_at(now)).collect();
    for _ in 0..CHANGES_AHEAD {
        let at = changes.iter().flatten().copied().min()?;
        for (index, budget) in budgets.iter().enumerate() {
            if changes[index] == Some(at) {
                active[index] = budget.is_active(at);
                changes[index] = budget.changes_at(at);
            }
        }
        let limit = limit_for(reason, budgets, &active, default, total);
        if limit.most.unwrap_or(total) > down {
            return Some(at);
        }
        if at.duration_since(now) > SignedDuration::from_hours(24 * 366) {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests;
