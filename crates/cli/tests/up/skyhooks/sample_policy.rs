//! The document's sample policy, as `examples/` has it, on the simulated nodes that it brings along.

use serde_json::json;

use super::policies::batches;
use super::site::Site;

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/skyhook-policy.yaml");

/// The nodes of a compartment of the example.
fn nodes(compartment: &str, count: usize) -> Vec<String> {
    (1..=count).map(|at| format!("{compartment}-{at}")).collect()
}

#[test]
fn the_sample_policy_rolls_out() {
    let site = Site::alone();
    // A node that is not ready yet has a taint, and would not be in the first batch.
    site.access.kubectl(&format!("apply -l workload=gpu -f {EXAMPLE}"));
    site.access.until("nodes -l workload=gpu", |nodes| {
        let nodes = nodes["items"].as_array().unwrap();
        let is_free = |node: &serde_json::Value| {
            super::words::condition(node, "Ready").starts_with("True")
                && node["spec"]["taints"].as_array().is_none_or(Vec::is_empty)
        };
        nodes.len() == 27 && nodes.iter().all(is_free)
    });
    let skyhooks = site.record_skyhook("tuning");
    site.access.kubectl(&format!("apply -f {EXAMPLE}"));
    let status = site.wait("tuning", "complete");
    assert_eq!(status["completeNodes"], "27/27");
    let now = site.skyhook("tuning");
    for (name, prefix, matched, ceiling, expected) in [
        ("critical", "critical", 2, 1, vec![1, 1]),
        ("production", "production", 6, 3, vec![1, 2, 3]),
        // A third of nine is 2.97, which rounds down.
        ("staging", "staging", 9, 2, vec![1, 2, 2, 2, 2]),
        // Eight after the first two, of which half of the compartment may go.
        ("test", "test", 8, 4, vec![2, 4, 2]),
        ("__default__", "other", 2, 2, vec![1, 1]),
    ] {
        let told = &status["compartmentStatuses"][name];
        assert_eq!(
            (&told["matched"], &told["ceiling"], &told["progressPercent"]),
            (&json!(matched), &json!(ceiling), &json!(100)),
            "{name}"
        );
        assert_eq!(batches(&skyhooks, &now, &nodes(prefix, matched)), expected, "{name}");
    }
}
