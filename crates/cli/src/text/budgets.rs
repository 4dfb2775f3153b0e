//! The disruption budgets of a NodePool: for each reason how many nodes may go now, the arithmetic
//! behind it, who uses it up and when time changes it.

use std::collections::BTreeMap;

use convoy_plan::Step;
use jiff::Timestamp;
use serde::Deserialize;

use super::time;
use super::words::plain;

/// What `decision.explain` says about one reason.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Allowance {
    allowed: u32,
    formula: String,
    used_by: Vec<String>,
    changes_at: Option<Timestamp>,
}

/// One line for each reason; none for rollouts without such budgets.
pub(super) fn lines(step: &Step, now: Timestamp) -> Vec<String> {
    let explained =
        step.decision.get("explain").and_then(|all| all.get(step.rollout.name.as_str()));
    let Some(Ok(by_reason)) = explained.map(BTreeMap::<String, Allowance>::deserialize) else {
        return Vec::new();
    };
    by_reason.iter().map(|(reason, it)| line(reason, it, now)).collect()
}

fn line(reason: &str, it: &Allowance, now: Timestamp) -> String {
    let mut text = format!("{reason}: {} allowed ({})", it.allowed, plain(&it.formula));
    if !it.used_by.is_empty() {
        let names: Vec<String> = it.used_by.iter().map(|name| plain(name)).collect();
        text = format!("{text}, used by {}", names.join(", "));
    }
    match it.changes_at {
        Some(at) => format!("{text}; changes at {}", time::at(at, now)),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use convoy_plan::{Step, Verdict};
    use convoy_testkit::{NOW, object};
    use serde_json::json;

    use super::*;

    #[test]
    fn every_reason_says_how_many_may_go_and_why() {
        let pool = object("karpenter.sh/v1", "NodePool", "workers").build();
        let mut step = Step::new("karpenter", &pool, Verdict::Held);
        let now: Timestamp = NOW.parse().unwrap();
        let at = now + jiff::SignedDuration::from_hours(1);
        step.decision = json!({"explain": {"workers": {
            "Drifted": {"allowed": 0, "formula": "budget 1: 0; 0 - 1 down = 0", "usedBy": ["a"],
                "limit": 0, "inUse": 1, "budget": 1, "changesAt": at.to_string()},
            "Empty": {"allowed": 2, "formula": "budget 0: 10% of 20; 2 - 0 down = 2",
                "usedBy": [], "changesAt": null},
        }}});
        assert_eq!(
            lines(&step, now),
            [
                format!(
                    "Drifted: 0 allowed (budget 1: 0; 0 - 1 down = 0), used by a; changes at \
                     {at} (in 1h)"
                ),
                "Empty: 2 allowed (budget 0: 10% of 20; 2 - 0 down = 2)".to_owned(),
            ]
        );
        assert!(lines(&Step::new("apps", &pool, Verdict::Done), now).is_empty());
    }
}
