//! Why members stay: what the gate and the simulation said, and what people are told of that.

use jiff::Timestamp;

use super::Disruptions;
use super::obstacle::Obstacle;
use crate::dialect::karpenter::read::reason::Reason;
use crate::hold::HoldReason;

/// Why a member does not start for a reason.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) reason: Reason,
    pub(super) hold: HoldReason,
    pub(super) is_obstacle: bool,
}

/// Why the simulation speaks against disrupting a member for a reason.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    pub(super) reason: Reason,
    pub(super) text: String,
}

/// What ends a hold without anybody's doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    Instant(Timestamp),
    /// A window of the budgets opens or closes; see [`Disruptions::frees_at`].
    BudgetChange(Reason),
    /// The search for savings goes on.
    NextSearch,
}

/// What came in between the proposal of a consolidation and its start, in upstream's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rejection {
    /// A budget is used up, or pods will come to the node.
    Budget,
    /// Its pods fit nowhere any more, or nothing would be saved.
    Scheduling,
    /// The node is no candidate any more.
    Churn,
}

impl Rejection {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Budget => "budget",
            Self::Scheduling => "scheduling",
            Self::Churn => "churn",
        }
    }
}

impl Disruptions<'_, '_> {
    /// Why a member of the own pool that has a reason to go does not, and until when, if time
    /// alone changes that.
    pub(crate) fn hold(&self, at: usize) -> Option<(HoldReason, Option<Until>)> {
        if let Some(Refusal { text, .. }) = self.refused.get(&at) {
            return Some((HoldReason::NotDisruptable { detail: text.clone() }, None));
        }
        if self.unreached.contains(&at) {
            let detail = "consolidation has not evaluated this node yet".to_owned();
            return Some((HoldReason::NotDisruptable { detail }, Some(Until::NextSearch)));
        }
        let Held { reason, hold, .. } = self.holds[at].as_ref()?;
        let until = match hold {
            HoldReason::WindowClosed => Some(Until::BudgetChange(*reason)),
            HoldReason::BudgetSpent { limit, .. } if *limit == reason.limit_name() => {
                Some(Until::BudgetChange(*reason))
            }
            HoldReason::PodProtected { .. } => {
                self.obstacles[at].as_ref().and_then(Obstacle::until).map(Until::Instant)
            }
            _ => None,
        };
        Some((hold.clone(), until))
    }

    /// When the budgets of the own pool have room for `reason` again, if time alone makes it.
    pub(crate) fn frees_at(&self, reason: Reason) -> Option<Timestamp> {
        let down = self.down[self.cluster.own].count;
        self.own_budgets().frees_at(reason, down, self.cluster.now)
    }

    /// The members of the own pool that consolidation has looked at in vain, and why.
    pub(crate) fn unconsolidatable(&self) -> impl Iterator<Item = (usize, &str)> {
        self.refused_for(|reason| reason == Reason::Underutilized)
    }

    /// The members of the own pool that have drifted or expired and cannot go, because their pods
    /// fit nowhere.
    pub(crate) fn stranded(&self) -> impl Iterator<Item = (usize, &str)> {
        self.refused_for(|reason| reason != Reason::Underutilized)
    }

    fn refused_for(&self, is_it: impl Fn(Reason) -> bool) -> impl Iterator<Item = (usize, &str)> {
        let own = Some(self.cluster.own);
        let refused = self.refused.iter();
        let found = refused.filter(move |(at, it)| self.pool_of(**at) == own && is_it(it.reason));
        found.map(|(at, it)| (*at, it.text.as_str()))
    }

    /// Why a consolidation that was proposed for a member of the own pool does not start.
    pub(crate) fn rejection(&self, at: usize) -> Rejection {
        let is_nominated = self.obstacles[at] == Some(Obstacle::Nominated);
        let refused = self.refused.get(&at).map(|it| it.reason);
        if refused == Some(Reason::Underutilized) {
            Rejection::Scheduling
        } else if is_nominated || self.is_eligible(at, Reason::Underutilized) {
            Rejection::Budget
        } else {
            Rejection::Churn
        }
    }

    /// Which searches for savings were cut short, in upstream's words.
    pub(crate) fn timeouts(&self) -> impl Iterator<Item = &'static str> {
        let multi = self.is_cut_short.then_some("multi");
        let single = (!self.unreached.is_empty()).then_some("single");
        multi.into_iter().chain(single)
    }
}
