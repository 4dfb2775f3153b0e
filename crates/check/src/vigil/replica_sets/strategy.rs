//! The rollout strategy of a placement reference, read from its JSON by the rules of the API.

use convoy_api::object::member::{field, list, text};
use jiff::SignedDuration;
use serde_json::Value;

use super::layout::DecisionGroup;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Strategy {
    pub(super) order: Order,
    /// Clusters in flight; null for as many as a decision group may hold.
    max_concurrency: Value,
    max_failures: Value,
    /// How long a cluster has to be successful before it counts.
    pub(super) soak: SignedDuration,
    pub(super) deadline: Option<SignedDuration>,
    /// The deadline is given as `timeout`: who misses it is done with, and no failure.
    pub(super) is_tolerant: bool,
    mandatory: Vec<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    AtOnce,
    ByNumber,
    ByGroup,
}

impl Strategy {
    pub(super) fn read(strategy: &Value) -> Self {
        let (order, block) = match text(strategy, "type") {
            "Progressive" => (Order::ByNumber, "progressive"),
            "ProgressivePerGroup" => (Order::ByGroup, "progressivePerGroup"),
            _ => (Order::AtOnce, "all"),
        };
        let block = field(strategy, block);
        let soak = duration(text(block, "minSuccessTime")).unwrap_or_default();
        let timeout = duration(text(block, "timeout"));
        let max_failures = field(block, "maxFailures").clone();
        Self {
            order,
            max_concurrency: field(block, "maxConcurrency").clone(),
            soak: if order == Order::AtOnce { SignedDuration::ZERO } else { soak },
            deadline: duration(text(block, "progressDeadline")).or(timeout),
            is_tolerant: timeout.is_some()
                && field(block, "progressDeadline").is_null()
                && max_failures.is_null(),
            max_failures,
            mandatory: list(block, "mandatoryDecisionGroups").to_vec(),
        }
    }

    /// Whether a group goes before all others.
    pub(super) fn is_mandatory(&self, group: &DecisionGroup) -> bool {
        self.order != Order::AtOnce
            && self.mandatory.iter().any(|entry| match text(entry, "groupName") {
                "" => field(entry, "groupIndex").as_i64().unwrap_or(0) == group.index,
                name => name == group.name,
            })
    }

    /// How many of `total` may fail.
    pub(super) fn failures(&self, total: usize) -> usize {
        share(&self.max_failures, total).unwrap_or(0).min(total)
    }

    /// How many of `total` may be in flight, where a group holds at most `length`.
    pub(super) fn concurrency(&self, total: usize, length: usize) -> usize {
        match share(&self.max_concurrency, total).unwrap_or(length) {
            0 => total,
            most => most.min(total),
        }
    }
}

/// A number, or a share of the total that rounds up.
pub(super) fn share(value: &Value, total: usize) -> Option<usize> {
    let number = value.as_u64().or_else(|| {
        let percent: u64 = value.as_str()?.strip_suffix('%')?.parse().ok()?;
        Some((percent * total as u64).div_ceil(100))
    });
    number.and_then(|number| usize::try_from(number).ok())
}

/// Whole numbers of hours, minutes and seconds; None for any other text.
fn duration(text: &str) -> Option<SignedDuration> {
    let (mut secs, mut number) = (0_i64, None::<i64>);
    for letter in text.chars() {
        if let Some(digit) = letter.to_digit(10) {
            number = Some(number.unwrap_or(0).checked_mul(10)?.checked_add(i64::from(digit))?);
            continue;
        }
        let unit = match letter {
            'h' => 3_600,
            'm' => 60,
            's' => 1,
            _ => return None,
        };
        secs = secs.checked_add(number.take()?.checked_mul(unit)?)?;
    }
    (!text.is_empty() && number.is_none()).then(|| SignedDuration::from_secs(secs))
}
