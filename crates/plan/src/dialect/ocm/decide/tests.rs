//! Who gets the template of a replica set next, and what the others wait for.

use serde_json::{Value, json};

use super::*;

const NOW: &str = "2026-01-01T00:00:00Z";

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// Groups written as `c1:done c2:moving | c3`, names and statuses, groups parted by bars.
fn groups(layout: &'static str) -> Vec<RolloutGroup<'static>> {
    let soon = at("2026-01-01T00:00:30Z");
    let member = |word: &'static str| {
        let (name, status) = word.split_once(':').unwrap_or((word, ""));
        let status = match status {
            "" => RolloutStatus::Unstarted,
            "terminating" => RolloutStatus::Terminating,
            "apply" => RolloutStatus::ToApply,
            "moving" => RolloutStatus::Progressing { deadline: Some(soon) },
            "failed" => RolloutStatus::Failed { deadline: None },
            "soaking" => RolloutStatus::Soaking { until: soon },
            "done" => RolloutStatus::Finished,
            "lost" => RolloutStatus::TimedOut,
            other => panic!("no status {other}"),
        };
        (name, status)
    };
    let group = |(index, text): (usize, &'static str)| RolloutGroup {
        index: i64::try_from(index).unwrap(),
        name: if index == 0 { "canary".into() } else { SmolStr::default() },
        members: text.split_whitespace().map(member).collect(),
    };
    layout.split('|').enumerate().map(group).collect()
}

fn started(layout: &'static str, strategy: &Value, length: u32) -> String {
    let strategy = Strategy::read(strategy).unwrap();
    let rollout = roll_out(&groups(layout), &strategy, length, None);
    rollout.starts.into_iter().map(|(cluster, _)| cluster).collect::<Vec<_>>().join(" ")
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
        ("a:terminating b | c", &two, "b c"),
        ("a b c | d e", &canary, "a b c"),
        ("a:done b:moving | d e", &canary, ""),
        ("a:done b:lost | d e", &canary, ""),
        ("a:done b:done | d:moving e f", &canary, "e"),
        ("a:done n | d:moving e f", &canary, "n"),
    ];
    for (layout, strategy, expected) in cases {
        assert_eq!(started(layout, strategy, 9), expected, "{layout} under {strategy}");
    }
}

#[test]
fn without_a_number_a_decision_group_is_the_measure() {
    let plain = json!({"type": "Progressive"});
    assert_eq!(started("a b | c d e", &plain, 3), "a b c");
    assert_eq!(started("a b | c d e", &plain, 9), "a b c d e");
    let unlimited = json!({"type": "Progressive", "progressive": {"maxConcurrency": 0}});
    assert_eq!(started("a b | c d e", &unlimited, 2), "a b c d e");
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
        assert_eq!(started(layout, strategy, 9), expected, "{layout} under {strategy}");
    }
}

#[test]
fn in_mandatory_groups_a_timeout_stops_even_where_it_is_tolerated() {
    let seed =
        json!({"type": "Progressive", "timeout": "30m", "mandatoryDecisionGroups": ["canary"]});
    assert_eq!(started("a:lost | b c", &seed, 9), "");
    assert_eq!(started("a:done | b:lost c", &seed, 9), "c");
}

#[test]
fn all_takes_everybody_whatever_failed() {
    assert_eq!(started("a:failed b | c:lost d", &json!({}), 1), "b d");
}

#[test]
fn who_waits_is_told_the_limit_that_won() {
    let two = json!({"type": "Progressive", "progressive": {"maxConcurrency": 2}});
    let strategy = Strategy::read(&two).unwrap();
    let full = roll_out(&groups("a:moving b | c"), &strategy, 9, None);
    let by = vec![SmolStr::new("a"), SmolStr::new("b")].into();
    let spent = HoldReason::BudgetSpent { limit: "maxConcurrency", in_flight: 2, ceiling: 2, by };
    assert_eq!(full.holds["c"], spent);
    assert_eq!(full.recheck_at, Some(at(NOW) + jiff::SignedDuration::from_secs(30)));
    let stopped = roll_out(&groups("a:lost b | c"), &strategy, 9, None);
    let remedy = "fix the manifests or raise maxFailures";
    let stop = HoldReason::FailureStop { limit: "maxFailures", value: 0, failures: 1, remedy };
    assert_eq!((&stopped.holds["c"], stopped.failure_stop.as_ref()), (&stop, Some(&stop)));
    let per_group = Strategy::read(&json!({"type": "ProgressivePerGroup"})).unwrap();
    let ordered = roll_out(&groups("a:done b:moving | c | d"), &per_group, 9, None);
    let order = HoldReason::GroupOrder { behind: "canary (group 0)".to_owned(), unfinished: 1 };
    assert_eq!((&ordered.holds["c"], &ordered.holds["d"]), (&order, &order));
}

#[test]
fn a_deferral_lets_nobody_start_and_explains_only_what_no_limit_does() {
    let two = json!({"type": "Progressive", "progressive": {"maxConcurrency": 2}});
    let strategy = Strategy::read(&two).unwrap();
    let deferral = HoldReason::Depends { on: "a finalizer".to_owned() };
    let deferred = |layout| roll_out(&groups(layout), &strategy, 9, Some(deferral.clone()));
    let free = deferred("a:moving b | c");
    assert_eq!((free.starts.len(), &free.holds["b"], &free.holds["c"]), (0, &deferral, &deferral));
    let full = deferred("a:moving b:apply | c");
    assert!(matches!(full.holds["c"], HoldReason::BudgetSpent { in_flight: 2, ceiling: 2, .. }));
    let all =
        roll_out(&groups("a b"), &Strategy::read(&json!({})).unwrap(), 9, Some(deferral.clone()));
    assert_eq!((all.starts.len(), &all.holds["a"]), (0, &deferral));
}

#[test]
fn whoever_waits_behind_a_failed_mandatory_group_is_not_told_to_raise_max_failures() {
    let canary = json!({"type": "Progressive", "progressive": {"maxFailures": 9,
        "mandatoryDecisionGroups": [{"groupName": "canary"}]}});
    let strategy = Strategy::read(&canary).unwrap();
    let stopped = roll_out(&groups("a:lost b | c"), &strategy, 9, None);
    let HoldReason::FailureStop { limit, value, failures, remedy } = &stopped.holds["c"] else {
        panic!("{:?}", stopped.holds["c"]);
    };
    assert_eq!((*limit, *value, *failures), ("failures in mandatoryDecisionGroups", 0, 1));
    assert!(!remedy.contains("maxFailures"), "{remedy}");
}
