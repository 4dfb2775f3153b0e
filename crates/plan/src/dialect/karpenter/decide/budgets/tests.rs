//! Budget arithmetic, row by row.

use convoy_api::Object;
use convoy_api::object::view::view_of;
use convoy_testkit::karpenter;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::*;
use crate::dialect::karpenter::read::budget::NODES_MAX;
use crate::dialect::karpenter::validate;

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

/// A pool in a zone, with a budget of 0 in a window of a length.
fn pool_in(zone: &str, schedule: &str, duration: &str) -> Object {
    let closed = json!({"nodes": "0", "schedule": schedule, "duration": duration});
    karpenter::pool("default", &json!({"budgets": [{"nodes": "3"}, closed]}))
        .annotation("convoy.dev/budget-time-zone", zone)
        .build()
}

/// Berlin changes its clocks on 2026-03-29, from 02:00 to 03:00, and on 2026-10-25, from 03:00 back
/// to 02:00; both at 01:00 UTC.
#[test]
fn windows_are_those_of_the_zone_before_and_after_its_clocks_change() {
    let cases = [
        ("0 9 * * *", "8h", "2026-03-28T07:59:59Z", 3, "08:59 in winter"),
        ("0 9 * * *", "8h", "2026-03-28T08:00:00Z", 0, "09:00 in winter"),
        ("0 9 * * *", "8h", "2026-03-28T15:59:59Z", 0, "16:59 in winter"),
        ("0 9 * * *", "8h", "2026-03-28T16:00:00Z", 3, "17:00 in winter"),
        ("0 9 * * *", "8h", "2026-03-29T06:59:59Z", 3, "08:59 in summer"),
        ("0 9 * * *", "8h", "2026-03-29T07:00:00Z", 0, "09:00 in summer"),
        ("0 9 * * *", "8h", "2026-03-29T15:00:00Z", 3, "17:00 in summer"),
        ("0 9 * * *", "8h", "2026-10-24T07:00:00Z", 0, "09:00 in summer"),
        ("0 9 * * *", "8h", "2026-10-25T07:00:00Z", 3, "08:00 in winter"),
        ("0 9 * * *", "8h", "2026-10-25T08:00:00Z", 0, "09:00 in winter"),
        ("30 2 * * *", "10m", "2026-03-28T01:30:00Z", 0, "02:30"),
        ("30 2 * * *", "10m", "2026-03-29T01:30:00Z", 3, "03:30: there is no 02:30 that day"),
        ("30 2 * * *", "10m", "2026-03-29T00:30:00Z", 3, "01:30"),
        ("30 2 * * *", "10m", "2026-10-25T00:30:00Z", 0, "02:30 for the first time"),
        ("30 2 * * *", "10m", "2026-10-25T01:30:00Z", 0, "02:30 for the second time"),
        ("0 22 * * *", "8h", "2026-03-29T04:59:59Z", 0, "06:59: the night is an hour shorter"),
        ("0 22 * * *", "8h", "2026-03-29T05:00:00Z", 3, "07:00: eight hours have passed"),
    ];
    for (schedule, duration, now, expected, because) in cases {
        let object = pool_in("Europe/Berlin", schedule, duration);
        let pool = Pool::new(&object);
        let budgets = Budgets::new(&pool, 10, instant(now));
        assert_eq!(budgets.ceiling(Reason::Drifted), Some(expected), "{now}: {because}");
    }
}

#[test]
fn a_zone_that_nobody_knows_closes_the_pool_and_is_named() {
    let object = pool_in("Europe/Berln", "0 9 * * *", "8h");
    let pool = Pool::new(&object);
    let budgets = Budgets::new(&pool, 10, instant("2026-03-28T07:00:00Z"));
    for reason in [Reason::Drifted, Reason::Empty, Reason::Underutilized] {
        assert_eq!(budgets.ceiling(reason), Some(0), "{reason:?}");
    }
    let errors: Vec<(usize, &str)> = budgets.errors().collect();
    assert_eq!(errors, [(1, "convoy.dev/budget-time-zone: unknown time zone Europe/Berln")]);
    let field = "metadata.annotations[convoy.dev/budget-time-zone]";
    let found = validate::pool(&object);
    let of_zone: Vec<&str> =
        found.iter().filter(|it| it.field == field).map(|it| it.message.as_str()).collect();
    let [message] = of_zone[..] else { panic!("one finding: {found:?}") };
    assert!(message.contains("unknown time zone Europe/Berln"), "{message}");
}
