//! Rounds of a replica set: who gets the template next, and who holds the others up.

use serde_json::{Value, json};

use super::*;

const NOW: &str = "2026-01-01T00:00:00Z";

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// Groups written as `c1:done c2:moving | c3`, names and standings, groups parted by bars.
fn rings(layout: &'static str) -> Vec<Ring<'static>> {
    let soon = at("2026-01-01T00:00:30Z");
    let member = |word: &'static str| {
        let (name, standing) = word.split_once(':').unwrap_or((word, ""));
        let standing = match standing {
            "" => Standing::Unstarted,
            "leaving" => Standing::Leaving,
            "apply" => Standing::ToApply,
            "moving" => Standing::Progressing { deadline: Some(soon) },
            "failed" => Standing::Failed { deadline: None },
            "soaking" => Standing::Soaking { until: soon },
            "done" => Standing::Finished,
            "lost" => Standing::TimedOut,
            other => panic!("no standing {other}"),
        };
        (name, standing)
    };
    let ring = |(index, text): (usize, &'static str)| Ring {
        index: i64::try_from(index).unwrap(),
        name: if index == 0 { "canary".into() } else { SmolStr::default() },
        members: text.split_whitespace().map(member).collect(),
    };
    layout.split('|').enumerate().map(ring).collect()
}

fn taken(layout: &'static str, strategy: &Value, length: u32) -> String {
    let strategy = Strategy::read(strategy).unwrap();
    let round = round(&rings(layout), &strategy, length);
    round.take.into_iter().collect::<Vec<_>>().join(" ")
}

#[test]
fn slots_are_filled_by_name_across_groups() {
    let two = json!({"type": "Progressive", "progressive": {"maxConcurrency": 2}});
    let lenient = json!({"type": "Progressive",
        "progressive": {"maxConcurrency": 2, "maxFailures": 1}});
    let canary = json!({"type": "Progressive",
        "progressive": {"maxConcurrency": 2, "mandatoryDecisionGroups": [{"groupName": "canary"}]}});
    let cases = [
        ("z a | b c", &two, "a b"),
        ("a:moving | b c", &two, "b"),
        ("a:soaking b:apply | c", &two, ""),
        ("a:lost | b c", &two, ""),
        ("a:lost | b c d", &lenient, "b c"),
        ("a:failed | b c d", &lenient, "b"),
        ("a:done b:done | c d e", &two, "c d"),
        ("a:leaving b | c", &two, "b c"),
        ("a b c | d e", &canary, "a b c"),
        ("a:done b:moving | d e", &canary, ""),
        ("a:done b:lost | d e", &canary, ""),
        ("a:done b:done | d:moving e f", &canary, "e"),
        ("a:done n | d:moving e f", &canary, "n"),
    ];
    for (layout, strategy, expected) in cases {
        assert_eq!(taken(layout, strategy, 9), expected, "{layout} under {strategy}");
    }
}

#[test]
fn without_a_number_a_decision_group_is_the_measure() {
    let plain = json!({"type": "Progressive"});
    assert_eq!(taken("a b | c d e", &plain, 3), "a b c");
    assert_eq!(taken("a b | c d e", &plain, 9), "a b c d e");
    let unlimited = json!({"type": "Progressive", "progressive": {"maxConcurrency": 0}});
    assert_eq!(taken("a b | c d e", &unlimited, 2), "a b c d e");
}

#[test]
fn a_group_starts_when_the_one_before_is_through() {
    let strict = json!({"type": "ProgressivePerGroup"});
    let lenient =
        json!({"type": "ProgressivePerGroup", "progressivePerGroup": {"maxFailures": "30%"}});
    let seed = json!({"type": "ProgressivePerGroup", "timeout": "30m"});
    let second = json!({"type": "ProgressivePerGroup", "mandatoryDecisionGroups": ["1"]});
    let cases = [
        ("a b | c | d", &strict, "a b"),
        ("a:done b:moving | c", &strict, ""),
        ("a:done b:done | c | d", &strict, "c"),
        ("a:done b:failed | c", &strict, ""),
        ("a:done b:done x:lost | c", &lenient, "c"),
        ("a:done b:failed x:lost | c", &lenient, ""),
        ("a:done b:moving x:lost | c", &lenient, ""),
        ("a:failed x:lost n | c", &strict, "n"),
        ("a:done b:lost | c", &seed, "c"),
        ("a:done b:failed | c", &seed, ""),
        ("a | b c | d", &second, "b c"),
        ("a | b:done c:done | d", &second, "a"),
    ];
    for (layout, strategy, expected) in cases {
        assert_eq!(taken(layout, strategy, 9), expected, "{layout} under {strategy}");
    }
}

#[test]
fn in_mandatory_groups_a_timeout_stops_even_where_it_is_tolerated() {
    let seed =
        json!({"type": "Progressive", "timeout": "30m", "mandatoryDecisionGroups": ["canary"]});
    assert_eq!(taken("a:lost | b c", &seed, 9), "");
    assert_eq!(taken("a:done | b:lost c", &seed, 9), "c");
}

#[test]
fn all_takes_everybody_whatever_failed() {
    assert_eq!(taken("a:failed b | c:lost d", &json!({}), 1), "b d");
}

#[test]
fn who_waits_is_told_the_limit_that_won() {
    let two = json!({"type": "Progressive", "progressive": {"maxConcurrency": 2}});
    let strategy = Strategy::read(&two).unwrap();
    let full = round(&rings("a:moving b | c"), &strategy, 9);
    let by = vec![SmolStr::new("a"), SmolStr::new("b")];
    let spent = HoldReason::BudgetSpent { limit: "maxConcurrency", in_flight: 2, ceiling: 2, by };
    assert_eq!(full.waits["c"], spent);
    assert_eq!(full.recheck, Some(at(NOW) + jiff::SignedDuration::from_secs(30)));
    let stopped = round(&rings("a:lost b | c"), &strategy, 9);
    let stop = failure_stop(1, 0);
    assert_eq!((&stopped.waits["c"], stopped.breach.as_ref()), (&stop, Some(&stop)));
    let per_group = Strategy::read(&json!({"type": "ProgressivePerGroup"})).unwrap();
    let ordered = round(&rings("a:done b:moving | c | d"), &per_group, 9);
    let order = HoldReason::GroupOrder { behind: "canary (group 0)".to_owned(), unfinished: 1 };
    assert_eq!((&ordered.waits["c"], &ordered.waits["d"]), (&order, &order));
}
