//! Actions of a Job, and the bodies of its pods.

use convoy_api::Object;
use serde_json::{Value, json};

use super::{claim, note};
use crate::dialect::workloads::decide::job::JobDecision;
use crate::dialect::workloads::names::{
    COMPLETION_INDEX, INDEX_FAILURES, INDEX_IGNORED_FAILURES, JOB_TRACKING,
};
use crate::dialect::workloads::read::job::Job;
use crate::dialect::workloads::read::template;
use crate::finalizer;
use crate::gate::Permit;
use crate::pods::writes::Writes;
use crate::pods::{Names, pod};
use crate::snapshot::Snapshot;
use crate::step::{Action, EventType, Propagation, Verb, Why};

pub(crate) fn writes<'o>(
    job: &Job<'o>,
    decision: &JobDecision<'_>,
    snapshot: &Snapshot<'_>,
) -> Writes<'o> {
    let mut writes = Writes::new(job.owner);
    let is_over = job.is_finished() || job.owner.is_deleting();
    // Pods are let go before any write that may be denied, which ends the step.
    release(&mut writes, job, decision);
    if is_over {
        expire(&mut writes, job, decision);
        return writes;
    }
    claim(&mut writes, &job.pods);
    track(&mut writes, job);
    tell_suspension(&mut writes, job);
    for (pod, permit) in &decision.removals {
        writes.remove(*permit, pod, Why::new("NotWanted", removal_message(job, decision)));
    }
    if let Some(permit) = decision.creation.permit() {
        create(&mut writes, job, decision, permit, snapshot);
    }
    if let Some(end) = decision.end.as_ref().filter(|end| end.is_reached) {
        if end.is_success {
            writes.tell(EventType::Normal, "Completed", "Job completed".to_owned());
        } else {
            writes.tell(EventType::Warning, &end.reason, end.message.clone());
        }
    }
    writes
}

/// Takes the finalizer off pods that are on record, or that will not be counted any more.
fn release(writes: &mut Writes<'_>, job: &Job<'_>, decision: &JobDecision<'_>) {
    let is_over = job.is_finished() || job.owner.is_deleting();
    let is_ending = decision.end.is_some();
    let may_go = |pod: &Object| {
        is_over || job.tally.may_go(pod) && (is_ending || !job.tells_of_its_index(pod))
    };
    for pod in job.pods.all.iter().filter(|pod| pod.has_finalizer(JOB_TRACKING)) {
        if !may_go(pod) {
            continue;
        }
        let why = Why::new("Counted", "the status of the Job records how the pod ended");
        let released = finalizer::removed(pod, &[JOB_TRACKING], why);
        writes.actions.extend(released.map(Action::concurrently));
    }
}

/// Puts the finalizer on pods that are at work without it, as adopted ones are: they would not be
/// counted.
fn track(writes: &mut Writes<'_>, job: &Job<'_>) {
    for (pod, _) in &job.active {
        let why = Why::new("NotTracked", "the pod is the Job's, and has to be counted");
        let added = finalizer::added(pod, &[JOB_TRACKING], why);
        writes.actions.extend(added.map(Action::concurrently));
    }
}

/// Deletes a finished Job once its time to live is over.
pub(crate) fn expire(writes: &mut Writes<'_>, job: &Job<'_>, decision: &JobDecision<'_>) {
    let is_due = decision.expires_at.is_some_and(|at| at <= job.now);
    if is_due && !job.owner.is_deleting() {
        let secs = job.ttl_secs.unwrap_or_default();
        let message = format!("ttlSecondsAfterFinished ({secs}) have passed since it finished");
        let why = Why::new("TimeToLive", message);
        let delete = Action::delete(Verb::Delete, job.owner, Propagation::Background, why);
        writes.actions.push(delete);
    }
}

fn tell_suspension(writes: &mut Writes<'_>, job: &Job<'_>) {
    match (job.was_suspended(), job.is_suspended) {
        (false, true) => {
            writes.tell(EventType::Normal, "Suspended", "Job suspended".to_owned());
        }
        (true, false) => writes.tell(EventType::Normal, "Resumed", "Job resumed".to_owned()),
        _ => {}
    }
}

fn removal_message(job: &Job<'_>, decision: &JobDecision<'_>) -> String {
    match &decision.end {
        Some(end) => format!("{}: {}", end.reason, end.message),
        None if job.is_suspended => "the Job is suspended".to_owned(),
        None => format!("{} pods run, more than are wanted", job.active.len()),
    }
}

fn create(
    writes: &mut Writes<'_>,
    job: &Job<'_>,
    decision: &JobDecision<'_>,
    permit: Permit,
    snapshot: &Snapshot<'_>,
) {
    let (owner, running) = (job.owner, job.active.len());
    let mut names = Names::new(snapshot);
    for index in &decision.indexes {
        let (base, about) = match index {
            Some(index) => (format!("{}-{index}", owner.name()), index.to_string()),
            None => (owner.name().to_string(), String::new()),
        };
        let key = names.next(&base, &about);
        let mut pod = pod(owner, template(owner), &key);
        let finalizers = pod["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
        let all: Vec<Value> = finalizers.into_iter().chain([json!(JOB_TRACKING)]).collect();
        pod["metadata"]["finalizers"] = Value::Array(all);
        if let Some(index) = index {
            number(&mut pod, owner, *index);
            if let Some(failures) = job.failures_of(*index) {
                note(&mut pod, "annotations", INDEX_FAILURES, &failures.counted.to_string());
                let ignored = failures.ignored.to_string();
                note(&mut pod, "annotations", INDEX_IGNORED_FAILURES, &ignored);
            }
        }
        let why = Why::new("TooFew", format!("{running} of {} pods run", job.parallelism));
        writes.start(permit, key, pod, why);
    }
}

/// Tells a pod of an indexed Job its index.
fn number(pod: &mut Value, owner: &Object, index: usize) {
    let text = index.to_string();
    note(pod, "annotations", COMPLETION_INDEX, &text);
    note(pod, "labels", COMPLETION_INDEX, &text);
    let from = json!({"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {
        "fieldPath": format!("metadata.labels['{COMPLETION_INDEX}']")}}});
    pod["spec"]["hostname"] = json!(format!("{}-{index}", owner.name()));
    for list in ["initContainers", "containers"] {
        let containers = pod["spec"].get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            if !container["env"].is_array() {
                container["env"] = json!([]);
            }
            container["env"].as_array_mut().expect("just made").push(from.clone());
        }
    }
}
