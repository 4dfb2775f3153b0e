//! What people are told: Events once for each state, under upstream's names, and the list of all
//! names of Events and metrics.

use std::fmt::Write;

use convoy_api::Object;
use convoy_testkit::{Builder, karpenter, object};
use serde_json::{Value, json};

use super::{drifted, drifting, leaving, node, pool, step, unlimited};
use crate::Step;
use crate::dialect::karpenter::{names, report, write};
use crate::step::EventType;
use crate::warning::Warned;

/// The events of a step with this reason: whom they regard, and what they say.
fn told(step: &Step, reason: &str) -> Vec<(String, String)> {
    let of_reason = step.events.iter().filter(|event| event.reason == reason);
    let line = |event: &crate::step::Event| {
        let key = &event.regarding;
        (format!("{}/{}", key.kind.kind, key.name), event.message.clone())
    };
    of_reason.map(line).collect()
}

fn pair_of(name: &str) -> [Object; 2] {
    [drifted(name).build(), node(name).build()]
}

#[test]
fn a_drifted_node_whose_pods_fit_nowhere_is_told_why_it_stays() {
    let huge = karpenter::pod("p", "n", "1000").build();
    let text = "Pod default/p fits on no other node, and no pool could make one for it";
    let expected: Vec<(String, String)> =
        ["Node/n", "NodeClaim/n"].map(|it| (it.to_owned(), text.to_owned())).into();
    let stranded = step(pair_of("n").into_iter().chain([drifting(), huge.clone()]));
    assert_eq!(told(&stranded, "DisruptionBlocked"), expected);
    assert_eq!(told(&stranded, "Unconsolidatable").len(), 1, "of the pool");
    let old = karpenter::claim("default", "n").with("/spec/expireAfter", json!("1h")).build();
    let budgeted = unlimited().annotation("convoy.dev/expiration", "budgeted").build();
    let expired = step([budgeted, old, node("n").build(), huge]);
    assert_eq!(told(&expired, "DisruptionBlocked"), expected);
}

#[test]
fn a_budget_that_cannot_be_read_is_a_warning_once() {
    let budgets = |schedule: &str| {
        let bad = json!({"nodes": "1", "schedule": schedule, "duration": "1h"});
        step([pool(&json!({"budgets": [{"nodes": "5"}, bad]}))].into_iter().chain(pair_of("n")))
    };
    let bad = budgets("0 9 * * sat-sun");
    let events: Vec<_> = bad.events.iter().filter(|it| it.reason == "InvalidBudget").collect();
    let [event] = events[..] else { panic!("one event: {events:?}") };
    assert_eq!(event.kind, EventType::Warning);
    let start = "budget 1 cannot be evaluated, so nothing of this NodePool is disrupted: \
                 invalid schedule \"0 9 * * sat-sun\"";
    assert!(event.message.starts_with(start), "{}", event.message);
    let mut warned = Warned::default();
    assert!(warned.update(&bad).contains(event));
    assert!(!warned.update(&bad).contains(event), "it lasts");
    assert!(told(&budgets("0 9 * * sat,sun"), "InvalidBudget").is_empty());
}

#[test]
fn what_a_do_not_disrupt_annotation_comes_to_is_told() {
    // The pod started 24 hours ago.
    let cases = [
        ("soon", EventType::Warning, "InvalidDoNotDisruptAnnotation", "\"soon\""),
        ("-1h", EventType::Warning, "InvalidDoNotDisruptAnnotation", "\"-1h\""),
        ("25h", EventType::Normal, "DoNotDisruptUntil", "elapse at 2026-01-01T01:00:00Z"),
        ("1h", EventType::Normal, "DoNotDisruptGracePeriodElapsed", "has elapsed"),
    ];
    for (value, kind, reason, text) in cases {
        let pod = karpenter::pod("p", "n", "1").annotation("karpenter.sh/do-not-disrupt", value);
        let never = pool(&json!({"consolidateAfter": "Never"}));
        let step = step(karpenter::pair("default", "n").into_iter().chain([never, pod.build()]));
        let of_pod: Vec<_> =
            step.events.iter().filter(|event| event.regarding.kind.kind == "Pod").collect();
        let [event] = of_pod[..] else { panic!("{value}: {of_pod:?}") };
        assert_eq!((event.kind, event.reason.as_str(), event.lasts), (kind, reason, true));
        assert!(event.message.contains(text), "{}", event.message);
    }
}

#[test]
fn consolidation_says_why_it_does_not_look_at_a_node() {
    let kind = "node.kubernetes.io/instance-type";
    let pointer = |key: &str| format!("/metadata/labels/{}", key.replace('/', "~1"));
    let of = |disruption: Value, node: Builder| {
        let pod = karpenter::pod("p", "n", "1").build();
        let claim = karpenter::claim("default", "n").build();
        let step = step([pool(&disruption), claim, node.build(), pod]);
        told(&step, "Unconsolidatable")
    };
    let both = |text: &str| -> Vec<(String, String)> {
        ["Node/n", "NodeClaim/n"].map(|it| (it.to_owned(), text.to_owned())).into()
    };
    let now = || json!({"consolidateAfter": "0s"});
    let empty = json!({"consolidateAfter": "0s", "consolidationPolicy": "WhenEmpty"});
    let policy = "NodePool \"default\" has consolidation policy WhenEmpty, but node is not empty";
    assert_eq!(of(empty, node("n")), both(policy));
    let type_of = |name: &str| node("n").label(kind, name);
    assert_eq!(of(now(), type_of("huge")), both("Instance Type \"huge\" not found"));
    for key in ["karpenter.sh/capacity-type", "topology.kubernetes.io/zone"] {
        let without = node("n").with(&pointer(key), Value::Null);
        assert_eq!(of(now(), without), both(&format!("Node does not have label \"{key}\"")));
    }
    let disabled = "NodePool \"default\" has consolidation disabled".to_owned();
    let never = of(json!({"consolidateAfter": "Never"}), node("n"));
    assert_eq!(never, [("NodePool/default".to_owned(), disabled)]);
}

/// A pod without a node that the scheduler refused.
fn refused(cpu: &str) -> Object {
    object("v1", "Pod", "waits")
        .namespace("default")
        .spec(json!({"containers":
            [{"name": "c", "image": "pause", "resources": {"requests": {"cpu": cpu}}}]}))
        .status(json!({"phase": "Pending", "conditions":
            [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}))
        .build()
}

#[test]
fn pods_that_no_pool_could_serve_are_told() {
    let ready = || unlimited().status(json!({"conditions": [karpenter::is("Ready")]}));
    let text = "Failed to schedule pod, it fits on no node, and no NodePool could make one for it";
    let failed = vec![("Pod/waits".to_owned(), text.to_owned())];
    let too_large = step([ready().build(), refused("1000")]);
    assert_eq!(told(&too_large, "FailedScheduling"), failed);
    assert!(told(&too_large, "NoCompatibleInstanceTypes").is_empty());
    assert!(told(&step([ready().build(), refused("1")]), "FailedScheduling").is_empty());
    let arch = json!([{"key": "kubernetes.io/arch", "operator": "In", "values": ["s390x"]}]);
    let none = ready().with("/spec/template/spec/requirements", arch).build();
    let none = step([none, refused("1")]);
    assert_eq!(told(&none, "FailedScheduling"), failed);
    let text = "NodePool requirements filtered out all compatible available instance types";
    let pool = vec![("NodePool/default".to_owned(), text.to_owned())];
    assert_eq!(told(&none, "NoCompatibleInstanceTypes"), pool);
}

/// A claim whose consolidation was proposed, of a kind.
fn proposed(proposal: &str) -> Builder {
    let text = format!("{proposal} 2025-12-31T23:59:50Z");
    karpenter::claim("default", "n").annotation("convoy.dev/disruption-proposal", &text)
}

#[test]
fn a_proposal_of_one_node_that_is_given_up_says_what_came_in_between() {
    let now = |nodes: &str| pool(&json!({"consolidateAfter": "0s", "budgets": [{"nodes": nodes}]}));
    let pod = || karpenter::pod("p", "n", "1").build();
    let large = |builder: Builder| {
        builder.label("node.kubernetes.io/instance-type", "s-64x-amd64-linux").build()
    };
    let word = |objects: Vec<Object>| {
        let step = step(objects);
        let told = told(&step, "ConsolidationRejected");
        let words: Vec<&str> = told.iter().filter_map(|it| it.1.split("reason: ").nth(1)).collect();
        words.first().map(|it| it.split(' ').next().unwrap_or_default().to_owned())
    };
    let single = || large(proposed("single/1"));
    let budget = word(vec![now("0"), single(), large(node("n")), pod()]);
    assert_eq!(budget.as_deref(), Some("budget"));
    let huge = karpenter::pod("p", "n", "1000").build();
    let scheduling = word(vec![now("100%"), single(), large(node("n")), huge]);
    assert_eq!(scheduling.as_deref(), Some("scheduling"));
    let protect = node("n").annotation("karpenter.sh/do-not-disrupt", "true");
    let churn = word(vec![now("100%"), single(), large(protect), pod()]);
    assert_eq!(churn.as_deref(), Some("churn"));
    for other in ["multi/1", "empty"] {
        let protect = node("n").annotation("karpenter.sh/do-not-disrupt", "true");
        let objects = vec![now("100%"), large(proposed(other)), large(protect), pod()];
        let step = step(objects);
        assert!(told(&step, "ConsolidationRejected").is_empty(), "{other}: upstream tells nothing");
        let kind = other.split('/').next().unwrap().to_owned();
        let counted = step.counts.iter().any(|it| {
            it.metric.name.ends_with("failed_validations")
                && it.labels == [("consolidation_type", kind.clone())]
        });
        assert!(counted, "{other}");
    }
}

#[test]
fn a_disruption_that_is_undone_is_no_rejected_consolidation() {
    let mut conditions: Vec<Value> =
        ["Launched", "Registered", "Initialized"].map(karpenter::is).into();
    let mut reason = karpenter::is("DisruptionReason");
    reason["reason"] = json!("Drifted");
    conditions.push(reason);
    let note = json!({"id": "1", "replacements": ["gone"]}).to_string();
    let claim = drifted("n")
        .with("/status/conditions", json!(conditions))
        .annotation("convoy.dev/disruption-command", &note);
    let step = step([drifting(), claim.build(), node("n").build()]);
    assert!(told(&step, "ConsolidationRejected").is_empty());
    let undone = told(&step, "DisruptionRolledBack");
    assert_eq!(undone[0], ("Node/n".to_owned(), "Drifted: replacement gone is gone".to_owned()));
}

#[test]
fn a_pool_with_the_policy_balanced_says_what_a_move_is_worth() {
    let balanced = json!({"consolidateAfter": "0s", "consolidationPolicy": "Balanced",
        "budgets": [{"nodes": "100%"}]});
    let kind = "node.kubernetes.io/instance-type";
    let large = |builder: Builder| builder.label(kind, "s-64x-amd64-linux");
    let room =
        json!({"cpu": "63900m", "memory": "256Gi", "pods": "1000", "ephemeral-storage": "20Gi"});
    let objects = |claim: Builder| {
        let node = large(node("n")).with("/status/allocatable", room.clone());
        [pool(&balanced), claim.build(), node.build(), karpenter::pod("p", "n", "2").build()]
    };
    let first = step(objects(large(karpenter::claim("default", "n"))));
    let proposal = first.actions.iter().find_map(|action| {
        let crate::Write::Patch { patch, .. } = &action.write else { return None };
        let note = patch.pointer("/metadata/annotations/convoy.dev~1disruption-proposal")?;
        Some(note.as_str()?.split(' ').next()?.to_owned())
    });
    let proposal = proposal.expect("it is proposed first");
    assert!(proposal.starts_with("single/"), "{proposal}");
    let ripe = large(proposed(&proposal))
        .annotation("convoy.dev/disruption-proposal", &format!("{proposal} 2025-12-31T23:59:00Z"));
    let begins = step(objects(ripe));
    let told = told(&begins, "ConsolidationApproved");
    assert_eq!(told.len(), 2, "{:?}", begins.events);
    assert!(told[0].1.starts_with("score ") && told[0].1.contains(">= threshold 0.50"), "{told:?}");
    let moves = begins.counts.iter().find(|it| it.metric.name == "karpenter_consolidation_moves");
    let labels = moves.map(|it| it.labels.clone()).unwrap_or_default();
    assert!(labels.contains(&("policy", "Balanced".to_owned())), "{labels:?}");
}

#[test]
fn a_deadline_is_told_of_the_node_and_of_its_claim() {
    let claim = drifted("n").with("/spec/terminationGracePeriod", json!("5m"));
    let step = leaving(claim, vec![karpenter::pod("p", "n", "1").build()]);
    let whom: Vec<String> =
        told(&step, "TerminationGracePeriodExpiring").into_iter().map(|it| it.0).collect();
    assert_eq!(whom, ["Node/n", "NodeClaim/n"]);
    let evicted = told(&step, "Evicted");
    let reason = "Evicted pod: Forceful Termination".to_owned();
    assert_eq!(evicted, [("Pod/p".to_owned(), reason)]);
}

#[test]
fn the_machines_of_a_pool_have_a_price() {
    let step = step(karpenter::pair("default", "n").into_iter().chain([drifting()]));
    let cost = step.series.iter().find(|it| it.metric.name == "karpenter_nodepools_cost_total");
    // 4 cpus at 0.025, and 17.18 GB at 0.001.
    assert_eq!(cost.map(|it| it.value), Some(117));
}

/// Dashboards and alerts of users have these names.
#[test]
fn no_name_of_an_event_or_metric_changes() {
    let mut found = String::new();
    let mut all = names::event::ALL.to_vec();
    all.sort_unstable();
    for name in all {
        _ = writeln!(found, "event {name}");
    }
    let mut metrics: Vec<&str> = write::counts_of_tests().map(|it| it.name).collect();
    metrics.extend(report::series::ALL.iter().map(|it| it.name));
    metrics.sort_unstable();
    for name in &metrics {
        _ = writeln!(found, "metric {name}");
    }
    // Each is in the list.
    let sources = [include_str!("../write/counts.rs"), include_str!("../report/series.rs")];
    let written: usize = sources.iter().map(|it| it.matches("\"karpenter_").count()).sum();
    assert_eq!(metrics.len(), written);
    let events = include_str!("../names.rs").split("mod event").nth(1).unwrap_or_default();
    let written = events.lines().take_while(|line| *line != "}");
    let written = written.filter(|line| line.contains(": &str = ")).count();
    assert_eq!(names::event::ALL.len(), written);
    assert_eq!(found, include_str!("told/names.txt"));
}
