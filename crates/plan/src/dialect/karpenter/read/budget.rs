//! Disruption budgets as they are written: how many nodes, when, and for which reasons.

use convoy_api::karpenter::node_pool as api;
use convoy_api::text::GoDuration;
use jiff::tz::TimeZone;

use super::reason::Reason;
use crate::budget::{IntOrPercent, Rounding};
use crate::cron::{Cron, CronError};
use crate::window::Window;

/// Which reasons a budget without reasons covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coverage {
    /// All reasons, beside the budgets that name them.
    All,
    /// The reasons that no other active budget names.
    Unlisted,
}

/// One entry of `spec.disruption.budgets`.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    /// How many nodes, or why the entry cannot be evaluated.
    nodes: Result<IntOrPercent, Unreadable>,
    /// The window outside which it does not apply, absent if it always applies; or why that
    /// cannot be evaluated.
    window: Result<Option<Window>, Unreadable>,
    /// Empty: no reasons were given.
    reasons: Vec<Reason>,
}

/// Why a budget cannot be evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable {
    /// The field at fault: of the budget, or [`ZONE`].
    pub(crate) field: &'static str,
    pub(crate) text: String,
}

/// Stands for the time zone of the pool, which is no field of a budget.
pub(crate) const ZONE: &str = "zone";

/// The largest number of nodes there is; larger counts saturate here.
pub(crate) const NODES_MAX: u32 = i32::MAX as u32;

impl Budget {
    /// Reads one budget. A budget that cannot be evaluated is kept with its error, which closes
    /// the pool.
    pub(crate) fn new(budget: &api::Budget, zone: &Result<TimeZone, String>) -> Self {
        let nodes = match &budget.nodes {
            None => Ok(IntOrPercent::Percent(10)),
            Some(text) => {
                let read = IntOrPercent::from_text(text);
                read.map_err(|error| unreadable("nodes", format!("nodes {text:?}: {error}")))
            }
        };
        let words = budget.reasons.iter().flatten();
        let reasons = words.filter_map(|word| Reason::from_word(word)).collect();
        Self { nodes, window: window(budget, zone), reasons }
    }

    /// The budget of a pool that does not fit the API's types.
    pub(crate) fn closed(error: String) -> Self {
        let nodes = Err(unreadable("nodes", error));
        Self { nodes, window: Ok(None), reasons: Vec::new() }
    }

    /// Why it cannot be evaluated, and which field is at fault.
    pub(crate) fn unreadable(&self) -> Option<&Unreadable> {
        self.nodes.as_ref().err().or(self.window.as_ref().err())
    }

    /// The same, in words alone.
    pub(crate) fn error(&self) -> Option<&str> {
        self.unreadable().map(|error| error.text.as_str())
    }

    pub(crate) fn window(&self) -> Option<&Window> {
        self.window.as_ref().ok()?.as_ref()
    }

    /// Whether it applies whatever the time is.
    pub(crate) fn is_permanent(&self) -> bool {
        self.window == Ok(None)
    }

    /// Whether it was written for `reason`.
    pub(crate) fn names(&self, reason: Reason) -> bool {
        self.reasons.contains(&reason)
    }

    /// Whether it was written for `reason`, or for no reason in particular.
    pub(crate) fn concerns(&self, reason: Reason) -> bool {
        self.reasons.is_empty() || self.names(reason)
    }

    /// How [`Budget::ceiling`] comes about, in words.
    pub(crate) fn amount(&self, total: u32) -> String {
        let ceiling = self.ceiling(total);
        match &self.nodes {
            Ok(IntOrPercent::Percent(share)) => {
                format!("{share}% of {total} nodes, rounded up, is {ceiling}")
            }
            _ if ceiling == 1 => "1 node".to_owned(),
            _ => format!("{ceiling} nodes"),
        }
    }

    /// The most nodes of `total` that it lets be down at once. A share rounds up, as for a
    /// PodDisruptionBudget, and is taken of all nodes, including those that are down.
    ///
    /// | total | nodes | ceiling | because       |
    /// |------:|-------|--------:|---------------|
    /// |    11 | 10%   |       2 | 1.1 rounds up |
    /// |     0 | 100%  |       0 | of no nodes   |
    /// |     4 | 24    |      24 | a count       |
    pub(crate) fn ceiling(&self, total: u32) -> u32 {
        let nodes = self.nodes.as_ref().map_or(0, |nodes| nodes.resolve(total, Rounding::Up));
        nodes.min(NODES_MAX)
    }
}

fn unreadable(field: &'static str, text: String) -> Unreadable {
    Unreadable { field, text }
}

fn window(
    budget: &api::Budget,
    zone: &Result<TimeZone, String>,
) -> Result<Option<Window>, Unreadable> {
    let refused = |schedule: &str, error: &CronError| {
        unreadable("schedule", format!("invalid schedule {schedule:?}: {}", error.advice))
    };
    let (schedule, duration) = match (&budget.schedule, &budget.duration) {
        (Some(schedule), Some(duration)) => (schedule, duration),
        (None, None) => return Ok(None),
        // It always applies. Its author meant something else by a schedule that cannot be read.
        (Some(schedule), None) => {
            let read = Cron::parse(schedule);
            return read.map(|_| None).map_err(|error| refused(schedule, &error));
        }
        (None, Some(_)) => {
            let text = "'schedule' must be set with 'duration'";
            return Err(unreadable("schedule", text.to_owned()));
        }
    };
    let zone = zone.clone().map_err(|error| unreadable(ZONE, error))?;
    let length: GoDuration = duration.parse().map_err(|error| {
        unreadable("duration", format!("invalid duration {duration:?}: {error}"))
    })?;
    let window = Window::new(schedule, length.signed(), zone);
    window.map(Some).map_err(|error| refused(schedule, &error))
}
