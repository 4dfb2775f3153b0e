//! Budget arithmetic, row by row.

use serde_json::json;

use super::*;

fn budgets(values: &Value) -> Vec<Budget> {
    let zone = Ok(TimeZone::UTC);
    values.as_array().unwrap().iter().map(|value| Budget::from_value(value, &zone)).collect()
}

fn instant(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// Allowed for Empty, Drifted and Underutilized.
fn allowed(values: &Value, default: Default, total: u32, down: u32, now: &str) -> [u32; 3] {
    let limits = limits(&budgets(values), default, total, instant(now));
    [Reason::Empty, Reason::Drifted, Reason::Underutilized]
        .map(|reason| limits.allowed(reason, total, down))
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
        (&seed, Default::Unlisted, 100, 0, [5, 10, 15]),
        (&seed, Default::Unlisted, 100, 14, [0, 0, 1]),
        (&seed, Default::All, 100, 0, [5, 5, 5]),
        (&seed, Default::All, 100, 14, [0, 0, 0]),
        (&json!([]), Default::All, 7, 2, [5, 5, 5]),
        (&json!([{}]), Default::All, 11, 0, [2, 2, 2]),
        (&json!([{"nodes": "50%"}]), Default::All, 10, 2, [3, 3, 3]),
        (&json!([{"nodes": "100%"}]), Default::All, 0, 0, [0, 0, 0]),
        (&json!([{"nodes": "24"}]), Default::All, 4, 0, [24, 24, 24]),
        (&json!([{"nodes": "99999999999"}]), Default::All, 4, 0, [MOST, MOST, MOST]),
        (&json!([{"nodes": "0", "reasons": []}]), Default::All, 4, 0, [0, 0, 0]),
    ];
    for (values, default, total, down, expected) in cases {
        let found = allowed(values, default, total, down, NOON);
        assert_eq!(found, expected, "{values} {default:?} of {total}, {down} down");
    }
}

#[test]
fn one_budget_that_cannot_be_read_closes_the_pool() {
    for broken in [
        json!({"nodes": "1", "reasons": ["Empty"], "schedule": "0 0 * * sat-sun", "duration": "1h"}),
        json!({"nodes": "1000a%"}),
        json!({"nodes": 3}),
        json!({"duration": "1h"}),
        json!({"schedule": "@daily", "duration": "1 hour"}),
    ] {
        let values = json!([{"nodes": "100%"}, broken]);
        assert_eq!(allowed(&values, Default::All, 4, 0, NOON), [0, 0, 0], "{broken}");
    }
}

#[test]
fn a_reason_whose_own_budgets_are_closed_falls_back_to_the_default() {
    let values = json!([
        {"nodes": "0", "reasons": ["Drifted"], "schedule": "0 9 * * mon-fri", "duration": "8h"},
        {"nodes": "10%"},
    ]);
    let night = "2024-05-15T02:00:00Z";
    assert_eq!(allowed(&values, Default::Unlisted, 20, 0, NOON), [2, 0, 2]);
    assert_eq!(allowed(&values, Default::Unlisted, 20, 0, night), [2, 2, 2]);
}

#[test]
fn time_that_frees_a_reason_is_named_to_the_second() {
    let values = budgets(&json!([
        {"nodes": "0", "schedule": "0 9 * * *", "duration": "8h"},
        {"nodes": "0", "schedule": "0 17 * * *", "duration": "90m", "reasons": ["Drifted"]},
    ]));
    let frees = |reason| frees_at(&values, Default::All, reason, 10, 0, instant(NOON));
    assert_eq!(frees(Reason::Empty), Some(instant("2024-05-15T17:00:00Z")));
    assert_eq!(frees(Reason::Drifted), Some(instant("2024-05-15T18:30:00Z")));
    let closed = budgets(&json!([{"nodes": "0"}]));
    assert_eq!(frees_at(&closed, Default::All, Reason::Empty, 10, 0, instant(NOON)), None);
}
