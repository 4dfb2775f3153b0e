//! The disruption budgets of NodePools, worked out from raw objects: which nodes count, which are
//! down, and how many may be for a reason. Plans are judged by it, and so is every write of a pool
//! that runs in a test.

use std::collections::BTreeMap;

use convoy_api::Object;
use convoy_api::karpenter::convert;
use convoy_api::karpenter::names::{NODE_CLAIM, annotation, condition, label};
use convoy_api::kinds::NODE;
use convoy_api::object::member::list;
use convoy_api::text::GoDuration;
use convoy_plan::World;
use convoy_plan::budget::{IntOrPercent, Rounding};
use convoy_plan::cron;
use convoy_plan::window::Window;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

/// The claims and Nodes that count in a pool: initialized, and with a machine that is not ending.
pub fn counted<'w>(world: &'w World, pool: &str) -> Vec<(&'w Object, &'w Object)> {
    let nodes = world.of(&NODE).map(|node| (node.spec_text("providerID"), node));
    let nodes: BTreeMap<&str, &Object> = nodes.filter(|(id, _)| !id.is_empty()).collect();
    let pairs = world.of(&NODE_CLAIM).filter_map(|claim| {
        let node = *nodes.get(claim.status_text("providerID"))?;
        let is_registered = node.label(label::REGISTERED) == Some("true");
        let named = if is_registered { node } else { claim }.label(label::NODE_POOL);
        let is_initialized = node.label(label::INITIALIZED) == Some("true");
        let ends = claim.condition_status(condition::INSTANCE_TERMINATING) == Some("True");
        (is_initialized && !ends && named == Some(pool)).then_some((claim, node))
    });
    pairs.collect()
}

/// Whether a node that counts is down: not ready, or on its way out.
pub fn is_down(claim: &Object, node: &Object) -> bool {
    node.condition_status("Ready") != Some("True")
        || claim.is_deleting()
        || claim.condition_status(condition::DISRUPTION_REASON) == Some("True")
}

/// The most nodes of `total` that may be down for `reason` by the budgets of a pool; `None` if no
/// budget covers it.
///
/// | budgets            | window of the first | Drifted | Empty | because              |
/// |--------------------|---------------------|--------:|------:|----------------------|
/// | 2 [Drifted], 50%   | open                |       2 |     5 | the smaller of both  |
/// | 2 [Drifted], 50%   | closed              |       5 |     5 | of 10 nodes          |
/// | 2 [Drifted]        | closed              |       - |     - | nothing covers it    |
/// | `sat-sun`, 50%     | unreadable          |       0 |     0 | any error closes all |
pub fn limit(pool: &Object, reason: &str, total: u32, now: Timestamp) -> Option<u32> {
    let v1 = match pool.version() {
        "v1beta1" => convert::to_v1(pool.raw()),
        _ => pool.raw().clone(),
    };
    let noted = |key: &str| v1.pointer("/metadata/annotations")?.get(key)?.as_str();
    let zone =
        noted(annotation::TIME_ZONE).map_or(Some(TimeZone::UTC), |name| cron::zone(name).ok());
    let default = json!([{"nodes": "10%"}]);
    let budgets = v1.pointer("/spec/disruption/budgets").unwrap_or(&default);
    let budgets = budgets.as_array().map_or(&[][..], Vec::as_slice);
    let open: Option<Vec<bool>> =
        budgets.iter().map(|budget| is_open(budget, zone.as_ref(), now)).collect();
    let Some(open) = open else { return Some(0) };
    let active = || budgets.iter().zip(&open).filter(|(_, open)| **open).map(|(budget, _)| budget);
    let names = |budget: &Value| list(budget, "reasons").iter().any(|it| *it == reason);
    let is_alone = noted(annotation::DEFAULT_BUDGET) == Some("unlisted") && active().any(names);
    let covers = |budget: &Value| names(budget) || !is_alone && list(budget, "reasons").is_empty();
    let ceilings: Option<Vec<u32>> =
        budgets.iter().map(|it| Some(nodes(it)?.resolve(total, Rounding::Up))).collect();
    // One that cannot be read closes the pool, whichever reason it is for.
    let Some(ceilings) = ceilings else { return Some(0) };
    let applies = |at: &usize| open[*at] && covers(&budgets[*at]);
    (0..budgets.len()).filter(applies).map(|at| ceilings[at]).min()
}

fn nodes(budget: &Value) -> Option<IntOrPercent> {
    match budget.get("nodes") {
        None => Some(IntOrPercent::Percent(10)),
        Some(value) => IntOrPercent::from_text(value.as_str()?).ok(),
    }
}

/// Whether a budget applies at `now`; `None` if its window cannot be read.
fn is_open(budget: &Value, zone: Option<&TimeZone>, now: Timestamp) -> Option<bool> {
    let text = |field: &str| budget.get(field).and_then(Value::as_str);
    match (text("schedule"), text("duration")) {
        (None, None) => Some(true),
        (Some(schedule), None) => cron::Cron::parse(schedule).ok().map(|_| true),
        (None, Some(_)) => None,
        (Some(schedule), Some(duration)) => {
            let duration = duration.parse::<GoDuration>().ok()?.signed();
            let window = Window::new(schedule, duration, zone?.clone()).ok()?;
            // A date that never comes counts as one that is always there.
            Some(window.is_open(now).unwrap_or(true))
        }
    }
}

#[cfg(test)]
mod tests {
    use convoy_testkit::karpenter;

    use super::*;

    /// The same for a window that opens at a full hour of every day, by the clock alone.
    fn is_open_by_the_clock(opens: i64, hours: i64, now: Timestamp) -> bool {
        let clock = now.to_zoned(TimeZone::UTC);
        let minutes = i64::from(clock.hour()) * 60 + i64::from(clock.minute());
        (minutes - opens * 60).rem_euclid(24 * 60) < hours * 60
    }

    #[test]
    fn a_daily_window_is_open_as_the_clock_says() {
        let start: Timestamp = "2024-05-15T00:00:00Z".parse().unwrap();
        for half_hours in 0..48_i64 {
            let now = start + jiff::SignedDuration::from_mins(30 * half_hours);
            for (opens, hours) in [(0, 1), (9, 8), (17, 12), (23, 2)] {
                let budget = json!({"schedule": format!("0 {opens} * * *"),
                    "duration": format!("{hours}h")});
                let found = is_open(&budget, Some(&TimeZone::UTC), now);
                let expected = is_open_by_the_clock(opens, hours, now);
                assert_eq!(found, Some(expected), "{opens}:00 for {hours}h at {now}");
            }
        }
    }

    #[test]
    fn the_smallest_budget_that_is_open_counts() {
        let window = |nodes: &str, schedule: &str| json!({"nodes": nodes, "reasons": ["Drifted"], "schedule": schedule, "duration": "8h"});
        let half = json!({"nodes": "50%"});
        let cases = [
            (json!([window("2", "0 9 * * *"), half]), Some(2), Some(5)),
            (json!([window("2", "0 18 * * *"), half]), Some(5), Some(5)),
            (json!([window("2", "0 18 * * *")]), None, None),
            (json!([window("2", "0 9 * * sat-sun"), half]), Some(0), Some(0)),
            (json!([{"nodes": "1.5"}]), Some(0), Some(0)),
            (json!([{}]), Some(1), Some(1)),
        ];
        let noon: Timestamp = "2024-05-15T12:00:00Z".parse().unwrap();
        for (budgets, drifted, empty) in cases {
            let pool = karpenter::pool("default", &json!({"budgets": budgets})).build();
            let found = ["Drifted", "Empty"].map(|reason| limit(&pool, reason, 10, noon));
            assert_eq!(found, [drifted, empty], "{budgets}");
        }
    }
}
