//! Staged update runs: the people who start, stop, approve and delete them.

use convoy_api::{GroupKind, Object};
use convoy_controllers::request::Request;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::user::of_placement;
use super::world::NAME;
use super::{Fleets, GROUP, PLACEMENT};
use crate::simulation::cluster::WriteRecord;
use crate::simulation::ending::Ending;
use crate::simulation::random::Random;

pub(super) const RUN: GroupKind = GroupKind::new(GROUP, "ClusterStagedUpdateRun");
pub(super) const APPROVAL: GroupKind = GroupKind::new(GROUP, "ClusterApprovalRequest");

const API: &str = "placement.kubernetes-fleet.io/v1beta1";
const RUNS: &str = "/apis/placement.kubernetes-fleet.io/v1beta1/clusterstagedupdateruns";
const APPROVALS: &str = "/apis/placement.kubernetes-fleet.io/v1beta1/clusterapprovalrequests";
pub(super) const STRATEGIES: &str =
    "/apis/placement.kubernetes-fleet.io/v1beta1/clusterstagedupdatestrategies";
const STRATEGY: &str = "regions";

/// How long whoever ends a trial waits before the next run.
const BETWEEN_RUNS: SignedDuration = SignedDuration::from_secs(20);

/// A stage for each region, with tasks.
pub(super) fn strategy(random: &mut Random) -> Value {
    let mut stages: Vec<Value> = Vec::new();
    for region in ["west", "east"] {
        let mut stage = json!({"name": region,
            "labelSelector": {"matchLabels": {"region": region}}});
        match random.between(0, 2) {
            0 => stage["maxConcurrency"] = json!("60%"),
            1 => stage["maxConcurrency"] = json!(random.between(1, 3)),
            _ => {}
        }
        if random.happens(300) {
            stage["beforeStageTasks"] = json!([{"type": "Approval"}]);
        }
        let mut after: Vec<Value> = Vec::new();
        if random.happens(300) {
            after.push(json!({"type": "TimedWait", "waitTime": "5s"}));
        }
        if random.happens(300) {
            after.push(json!({"type": "Approval"}));
        }
        if !after.is_empty() {
            stage["afterStageTasks"] = json!(after);
        }
        stages.push(stage);
    }
    if random.happens(500) {
        stages.reverse();
    }
    json!({"apiVersion": API, "kind": "ClusterStagedUpdateStrategy",
        "metadata": {"name": STRATEGY}, "spec": {"stages": stages}})
}

impl Fleets {
    pub(super) fn is_external(&self) -> bool {
        self.get(&PLACEMENT, NAME).is_some_and(|it| {
            it.spec().pointer("/strategy/type").is_some_and(|it| it == "External")
        })
    }

    /// What somebody does about runs.
    pub(super) fn run_action(&mut self, random: &mut Random) -> Option<Request> {
        if !self.is_external() {
            // From then on only runs move the placement.
            let external = json!({"strategy": {"type": "External", "rollingUpdate": null}});
            return random.happens(200).then(|| of_placement(external));
        }
        let runs: Vec<(String, String)> = self
            .of(RUN)
            .map(|run| (run.name().to_string(), run.spec_text("state").to_owned()))
            .collect();
        match random.between(0, 5) {
            0 if !runs.is_empty() => {
                let (name, _) = random.pick(&runs)?;
                Some(Request::delete(format!("{RUNS}/{name}")))
            }
            1..=2 if !runs.is_empty() => {
                let (name, state) = random.pick(&runs)?;
                let next = if state == "Run" { "Stop" } else { "Run" };
                Some(Request::merge(&format!("{RUNS}/{name}"), json!({"spec": {"state": next}})))
            }
            _ => {
                let state = random.pick(&["Run", "Run", "Run", "Initialize"]).unwrap_or(&"Run");
                Some(self.start_run(state))
            }
        }
    }

    fn start_run(&mut self, state: &str) -> Request {
        self.runs += 1;
        let body = json!({"apiVersion": API, "kind": "ClusterStagedUpdateRun",
            "metadata": {"name": format!("run-{}", self.runs)},
            "spec": {"placementName": NAME, "stagedRolloutStrategyName": STRATEGY,
                "state": state}});
        Request::create(RUNS, body)
    }

    /// Runs in progress go, so that the last one is alone.
    pub(super) fn end_runs(&self) -> Vec<Request> {
        self.of(RUN).map(|run| Request::delete(format!("{RUNS}/{}", run.name()))).collect()
    }

    /// What people do about a write: they approve what they are asked to, and in the end start runs
    /// until everything is rolled out.
    pub(super) fn people(
        &mut self,
        record: &WriteRecord,
        random: &mut Random,
    ) -> Vec<(SignedDuration, Request)> {
        let mut requests = Vec::new();
        let object = &record.object;
        if *object.kind() == APPROVAL
            && !record.is_deletion()
            && object.condition("Approved").is_none()
        {
            requests.push((random.millis(0, 15_000), approved(object)));
        }
        if *object.kind() == RUN && self.awaits_run {
            self.awaits_run = object.name() != format!("run-{}", self.runs).as_str();
        }
        let is_idle = self.is_ending && !self.awaits_run && self.of(RUN).all(is_over);
        let is_wanted = self.is_external() && self.ending != Ending::Deleted;
        if is_idle && is_wanted && self.has_ended().is_err() {
            self.awaits_run = true;
            requests.push((BETWEEN_RUNS, self.start_run("Run")));
        }
        requests
    }
}

/// Whether a run does nothing any more; one that is being deleted is soon gone.
fn is_over(run: &Object) -> bool {
    run.condition_status("Initialized") == Some("False")
        || run.condition_status("Succeeded").is_some()
}

fn approved(request: &Object) -> Request {
    let condition = json!({"type": "Approved", "status": "True", "reason": "ByHand",
        "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
        "observedGeneration": request.generation()});
    let path = format!("{APPROVALS}/{}/status", request.name());
    let metadata = json!({"uid": request.uid()});
    Request::merge(&path, json!({"metadata": metadata, "status": {"conditions": [condition]}}))
}
