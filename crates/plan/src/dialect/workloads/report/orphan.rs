//! A pod that no Job will count any more as a [`Step`].

use convoy_api::Object;

use crate::dialect::workloads::names::JOB_TRACKING;
use crate::finalizer;
use crate::step::{Step, Verdict, Why};

/// Takes the finalizer off.
pub(crate) fn step(dialect: &'static str, pod: &Object) -> Step {
    let mut step = Step::new(dialect, pod, Verdict::Moving);
    let why = Why::new("JobGone", "no Job is left that would count the pod");
    step.actions.extend(finalizer::removed(pod, &[JOB_TRACKING], why));
    step
}
