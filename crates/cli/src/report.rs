//! A plan with its context: the origins of the objects, the findings about them, and the result
//! of checking the guarantees.

use convoy_plan::{DIALECTS, Plan};
use jiff::Timestamp;
use serde_json::Value;

use crate::finding::{self, Finding};
use crate::input::Manifests;

/// The content of the output of `convoy plan`.
#[derive(Debug)]
pub struct Report {
    pub manifests: Manifests,
    pub plan: Plan,
    /// Problems of the input and the objects.
    pub findings: Vec<Finding>,
    /// Violated guarantees; absent if they were not checked.
    pub violations: Option<Vec<convoy_check::Finding>>,
}

impl Report {
    /// Plans the objects in `manifests` as of `now`. An empty list of dialects means all.
    pub fn new(manifests: Manifests, now: Timestamp, dialects: &[&str], check: bool) -> Self {
        let mut plan = convoy_plan::plan(&manifests.world, now);
        let violations = check.then(|| convoy_check::check(&manifests.world, &plan));
        if !dialects.is_empty() {
            keep_dialects(&mut plan, dialects);
        }
        let findings = finding::all(&manifests, &plan.diagnostics);
        Self { manifests, plan, findings, violations }
    }

    /// The plan as JSON, with the findings and their locations as diagnostics.
    pub fn to_json(&self) -> Value {
        let mut json = self.plan.to_json();
        json["diagnostics"] = finding::to_json(&self.findings);
        if let Some(violations) = &self.violations {
            json["check"] = serde_json::json!(violations);
        }
        json
    }
}

/// Removes the steps of other dialects, and diagnostics of objects that only they read.
fn keep_dialects(plan: &mut Plan, wanted: &[&str]) {
    let kept = || DIALECTS.iter().filter(|dialect| wanted.contains(&dialect.name()));
    plan.steps.retain(|step| wanted.contains(&step.dialect));
    plan.diagnostics.retain(|found| kept().any(|dialect| dialect.validates(&found.key.kind)));
}
