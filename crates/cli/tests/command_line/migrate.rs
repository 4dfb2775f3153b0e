//! `convoy migrate` on the example of the documentation, and what it makes is valid.

use crate::binary;

const SKYHOOK: &str = r"
apiVersion: skyhook.nvidia.com/v1alpha1
kind: Skyhook
metadata: {name: tuning}
spec:
  interruptionBudget: {percent: 25}
  packages:
    tuning: {version: 1.0.0, image: example/tuning}
";

#[test]
fn a_legacy_budget_becomes_a_policy() {
    let run = binary::run_with(SKYHOOK.as_bytes(), &["migrate", "-f", "-"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    for part in [
        "kind: DeploymentPolicy",
        "name: legacy-equivalent",
        "percent: 25",
        "initialBatch: 1",
        "batchThreshold: 100",
        "safetyLimit: 50",
        "deploymentPolicy: legacy-equivalent",
    ] {
        assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
    }
    assert!(!run.stdout.contains("interruptionBudget"), "{}", run.stdout);
    let checked = binary::run_with(run.stdout.as_bytes(), &["validate", "-f", "-"]);
    assert_eq!(checked.code, Some(0), "{}", checked.stdout);
    let again = binary::run_with(run.stdout.as_bytes(), &["migrate", "-f", "-"]);
    assert_eq!((again.code, again.stdout.as_str()), (Some(0), ""));
}
