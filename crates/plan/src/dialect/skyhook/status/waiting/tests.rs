//! The text of the `NodesWaiting` condition.

use super::*;

fn hold(node: &str, group: &str, reason: HoldReason) -> Hold {
    Hold::of_member(node, reason).in_group(group)
}

fn taint(key: &str) -> HoldReason {
    HoldReason::TaintNotTolerated { taint: format!("{key}:NoSchedule") }
}

#[test]
fn nodes_that_wait_for_the_same_are_told_together() {
    let running =
        HoldReason::BatchRunning { batch: 2, unfinished: 1, by: vec!["node-0".into()].into() };
    let mut holds: Vec<Hold> =
        (1..=7).map(|at| hold(&format!("node-{at}"), "all", running.clone())).collect();
    holds.push(hold("node-8", "all", taint("gpu")));
    holds.push(hold("node-9", "few", taint("gpu")));
    holds.push(Hold::of_rollout(HoldReason::Paused));
    let expected = "7 nodes of all [node-1, node-2, node-3, node-4, node-5 and 2 more]: \
        batch 2 is still running, 1 unfinished: node-0; \
        1 node of all [node-8]: taint gpu:NoSchedule is not tolerated; \
        1 node of few [node-9]: taint gpu:NoSchedule is not tolerated";
    assert_eq!(summary(&holds).as_deref(), Some(expected));
    assert_eq!(summary(&[]), None);
}

#[test]
fn the_text_does_not_grow_with_the_reasons() {
    let holds: Vec<Hold> =
        (0..50).map(|at| hold(&format!("n{at:02}"), "all", taint(&format!("k{at}")))).collect();
    let text = summary(&holds).expect("they wait");
    assert!(text.contains("[n09]") && !text.contains("[n10]"), "{text}");
    assert!(text.ends_with("; 40 nodes for 40 more reasons"), "{text}");
}
