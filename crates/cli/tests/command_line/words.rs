//! A plan in words, from steps made by hand: every part of the text once.

use convoy_cli::finding;
use convoy_cli::input::{Limits, Manifests, read_bytes};
use convoy_cli::report::Report;
use convoy_plan::step::BatchReport;
use convoy_plan::{Action, GroupReport, Hold, HoldReason, Plan, Step, Verb, Verdict, Why};
use jiff::Timestamp;
use serde_json::json;

const OBJECTS: &str = "\
apiVersion: skyhook.nvidia.com/v1alpha1
kind: Skyhook
metadata: {name: gpu-init}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
";

fn now() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn later(secs: i64) -> Timestamp {
    Timestamp::from_second(now().as_second() + secs).unwrap()
}

fn manifests() -> Manifests {
    let mut manifests = Manifests::default();
    read_bytes("fleet.yaml", OBJECTS.into(), Limits::default(), &mut manifests);
    manifests
}

fn step(manifests: &Manifests, kind: &str, dialect: &'static str, verdict: Verdict) -> Step {
    let object = manifests.world.iter().find(|object| object.kind().kind == kind).unwrap();
    Step::new(dialect, object, verdict)
}

fn moving(manifests: &Manifests) -> Step {
    let mut step = step(manifests, "Skyhook", "skyhook", Verdict::Moving);
    step.groups = vec![
        GroupReport {
            total: 40,
            done: 12,
            moving: 3,
            waiting: 24,
            failed: 1,
            ceiling: Some(4),
            batch: Some(BatchReport {
                number: 3,
                size: 4,
                consecutive_failures: 1,
                stopped: false,
            }),
            ..GroupReport::new("production")
        },
        GroupReport { total: 3, done: 3, ..GroupReport::new("__default__") },
    ];
    let node = |name: &str| convoy_api::GroupKind::new("", "Node").key("", name);
    let permit = convoy_plan::gate::grant(3, &[]).permit().expect("nothing limits");
    for name in ["gpu-20", "gpu-21", "gpu-22"] {
        let why = Why::new("BatchStarts", "batch 3 takes 4 nodes");
        step.actions.push(Action::create(Verb::Start(permit), node(name), json!({}), why));
    }
    let why = Why::new("DrainDone", "the node is empty");
    step.actions.push(Action::create(Verb::Cordon, node("gpu-4"), json!({}), why));
    step.status = Some(json!({}));
    let by = vec!["gpu-4".into(), "gpu-7".into(), "gpu-9".into()];
    let spent =
        HoldReason::BudgetSpent { limit: "production", in_flight: 4, ceiling: 4, by: by.into() };
    for number in 23..47 {
        let hold = Hold::of_member(format!("gpu-{number}"), spent.clone());
        step.holds.push(hold.in_group("production"));
    }
    let settling = HoldReason::Settling { for_secs: 600 };
    step.holds.push(Hold::of_member("gpu-9", settling).until(Some(later(540))));
    step.wake_at = Some(later(540));
    step
}

#[test]
fn a_plan_reads_as_a_person_would_tell_it() {
    let manifests = manifests();
    let mut held = step(&manifests, "Deployment", "apps", Verdict::Paused);
    held.holds.push(Hold::of_rollout(HoldReason::Paused));
    let mut judged = step(&manifests, "Service", "fleet", Verdict::Done);
    judged.decision = json!({"available": {"Service/web": "NotTrackable"}});
    let steps = vec![moving(&manifests), judged, held];
    let plan = Plan { now: now(), diagnostics: Vec::new(), steps };
    let findings = finding::all(&manifests, &plan.diagnostics);
    let report = Report { manifests, plan, findings, violations: Some(Vec::new()) };
    let text = anstream::adapter::strip_str(&convoy_cli::text::plan(&report)).to_string();
    let file = format!("{}/tests/golden/text/words.txt", env!("CARGO_MANIFEST_DIR"));
    expectorate::assert_contents(file, &text);
}
