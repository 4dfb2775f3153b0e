//! Why a node is disrupted. Budgets may speak of each separately.

use serde::Serialize;

/// The reasons, in the order in which a loop looks for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) enum Reason {
    /// Too old; budgeted only in pools that ask for it.
    Expired,
    Empty,
    Drifted,
    Underutilized,
}

impl Reason {
    pub(crate) const ALL: [Self; 4] =
        [Self::Expired, Self::Empty, Self::Drifted, Self::Underutilized];

    /// As `v1` spells it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Expired => "Expired",
            Self::Empty => "Empty",
            Self::Drifted => "Drifted",
            Self::Underutilized => "Underutilized",
        }
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.word() == word)
    }

    /// What a hold calls the limit.
    pub(crate) fn limit_name(self) -> &'static str {
        match self {
            Self::Expired => "the disruption budget for Expired",
            Self::Empty => "the disruption budget for Empty",
            Self::Drifted => "the disruption budget for Drifted",
            Self::Underutilized => "the disruption budget for Underutilized",
        }
    }

    /// Disruptions of the graceful kind wait for pods that must not be disturbed; drift goes
    /// ahead of them where the claim has a deadline of its own.
    pub(crate) fn is_graceful(self) -> bool {
        self != Self::Drifted
    }

    /// Consolidation has to stay sensible for a while before it is begun.
    pub(crate) fn is_validated(self) -> bool {
        matches!(self, Self::Empty | Self::Underutilized)
    }
}
