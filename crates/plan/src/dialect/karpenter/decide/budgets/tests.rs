//! Budget arithmetic, row by row.

use convoy_api::object::view::view_of;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::*;
use crate::dialect::karpenter::read::budget::NODES_MAX;

fn budgets(values: &Value) -> Vec<Budget> {
    let zone = Ok(TimeZone::UTC);
    let values = values.as_array().unwrap().iter();
    values.map(|value| Budget::new(&view_of(value).unwrap(), &zone)).collect()
}

fn instant(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// Allowed for Empty, Drifted and Underutilized.
fn allowed(values: &Value, coverage: Coverage, total: u32, down: u32, now: &str) -> [u32; 3] {
    let budgets = budgets(values);
    let budgets = Budgets::of(&budgets, coverage, total, instant(now));
    [Reason::Empty, Reason::Drifted, Reason::Underutilized]
        .map(|reason| budgets.ceiling(reason).unwrap_or(total).saturating_sub(down))
}

const NOON: &str = "2024-05-15T12:00:00Z";

#[test]
fn the_smallest_budget_that_applies_counts() {
    let seed = json!([
        {"nodes": "15", "reasons": ["Drifted", "Underutilized"]},
        {"nodes": "10", "reasons": ["Drifted"]},
        {"nodes": "5"},
    ]);
    let cases = [
        (&seed, Coverage::Unlisted, 100, 0, [5, 10, 15]),
        (&seed, Coverage::Unlisted, 100, 14, [0, 0, 1]),
        (&seed, Coverage::All, 100, 0, [5, 5, 5]),
        (&seed, Coverage::All, 100, 14, [0, 0, 0]),
        (&json!([]), Coverage::All, 7, 2, [5, 5, 5]),
        (&json!([{}]), Coverage::All, 11, 0, [2, 2, 2]),
        (&json!([{"nodes": "50%"}]), Coverage::All, 10, 2, [3, 3, 3]),
        (&json!([{"nodes": "100%"}]), Coverage::All, 0, 0, [0, 0, 0]),
        (&json!([{"nodes": "24"}]), Coverage::All, 4, 0, [24, 24, 24]),
        (&json!([{"nodes": "99999999999"}]), Coverage::All, 4, 0, [NODES_MAX; 3]),
        (&json!([{"nodes": "0", "reasons": []}]), Coverage::All, 4, 0, [0, 0, 0]),
    ];
    for (values, coverage, total, down, expected) in cases {
        let found = allowed(values, coverage, total, down, NOON);
        assert_eq!(found, expected, "{values} {coverage:?} of {total}, {down} down");
    }
}

#[test]
fn one_budget_that_cannot_be_read_closes_the_pool() {
    for broken in [
        json!({"nodes": "1", "reasons": ["Empty"], "schedule": "0 0 * * sat-sun", "duration": "1h"}),
        json!({"nodes": "1000a%"}),
        json!({"duration": "1h"}),
        json!({"schedule": "@daily", "duration": "1 hour"}),
    ] {
        let values = json!([{"nodes": "100%"}, broken]);
        assert_eq!(allowed(&values, Coverage::All, 4, 0, NOON), [0, 0, 0], "{broken}");
    }
}

#[test]
fn a_reason_whose_own_budgets_are_closed_falls_back_to_the_default() {
    let values = json!([
        {"nodes": "0", "reasons": ["Drifted"], "schedule": "0 9 * * mon-fri", "duration": "8h"},
        {"nodes": "10%"},
    ]);
    let night = "2024-05-15T02:00:00Z";
    assert_eq!(allowed(&values, Coverage::Unlisted, 20, 0, NOON), [2, 0, 2]);
    assert_eq!(allowed(&values, Coverage::Unlisted, 20, 0, night), [2, 2, 2]);
}

#[test]
fn time_that_frees_a_reason_is_named_to_the_second() {
    let now = instant(NOON);
    let frees = |values: &Value, reason| {
        Budgets::of(&budgets(values), Coverage::All, 10, now).frees_at(reason, 0, now)
    };
    let windows = json!([
        {"nodes": "0", "schedule": "0 9 * * *", "duration": "8h"},
        {"nodes": "0", "schedule": "0 17 * * *", "duration": "90m", "reasons": ["Drifted"]},
    ]);
    assert_eq!(frees(&windows, Reason::Empty), Some(instant("2024-05-15T17:00:00Z")));
    assert_eq!(frees(&windows, Reason::Drifted), Some(instant("2024-05-15T18:30:00Z")));
    assert_eq!(frees(&json!([{"nodes": "0"}]), Reason::Empty), None);
}

#[test]
fn a_window_above_a_budget_that_always_applies_changes_nothing() {
    let now = instant(NOON);
    let window = |nodes: &str, reasons: &[&str]| json!({"nodes": nodes, "schedule": "0 9 * * *", "duration": "8h", "reasons": reasons});
    let closes = Some(instant("2024-05-15T17:00:00Z"));
    let cases = [
        (json!([window("5", &["Drifted"]), {"nodes": "1"}]), Coverage::All, None),
        (json!([window("1", &["Drifted"]), {"nodes": "5"}]), Coverage::All, closes),
        // While the window is open, the budget without reasons does not apply to Drifted.
        (json!([window("5", &["Drifted"]), {"nodes": "1"}]), Coverage::Unlisted, closes),
        (
            json!([window("5", &["Drifted"]), {"nodes": "1", "reasons": ["Drifted"]}]),
            Coverage::Unlisted,
            None,
        ),
        (json!([window("5", &[]), {"nodes": "1"}]), Coverage::Unlisted, None),
        (json!([window("0", &["Empty"]), {"nodes": "1"}]), Coverage::All, None),
    ];
    for (values, coverage, expected) in cases {
        let budgets = budgets(&values);
        let budgets = Budgets::of(&budgets, coverage, 10, now);
        let found = budgets.changes_at(Reason::Drifted, now);
        assert_eq!(found, expected, "{values} {coverage:?}");
    }
}
