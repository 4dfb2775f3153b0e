//! A plan with everything around it that is worth telling: where objects came from, what is
//! wrong with them, which guarantees were checked.

use convoy_plan::{DIALECTS, Plan};
use jiff::Timestamp;
use serde_json::Value;

use crate::finding::{self, Finding};
use crate::input::Bag;
use crate::text;

/// All there is to tell about one plan.
#[derive(Debug)]
pub struct Report {
    pub bag: Bag,
    pub plan: Plan,
    /// What is wrong with the input and the objects.
    pub findings: Vec<Finding>,
    /// The guarantees that the plan breaks; absent if they were not checked.
    pub broken: Option<Vec<convoy_check::Finding>>,
}

impl Report {
    /// Plans what is in `bag`, as of `now`. An empty list of dialects means all.
    pub fn new(bag: Bag, now: Timestamp, dialects: &[&str], check: bool) -> Self {
        let mut plan = convoy_plan::plan(&bag.world, now);
        let broken = check.then(|| convoy_check::check(&bag.world, &plan));
        if !dialects.is_empty() {
            keep_dialects(&mut plan, dialects);
        }
        let findings = finding::all(&bag, &plan.diagnostics);
        Self { bag, plan, findings, broken }
    }

    /// The plan's own JSON, its diagnostics with their places and those of the input.
    pub fn to_json(&self) -> Value {
        let mut json = self.plan.to_json();
        json["diagnostics"] = finding::to_json(&self.findings);
        if let Some(broken) = &self.broken {
            json["check"] = serde_json::json!(broken);
        }
        json
    }

    /// For people; with styles, which [`output`](crate::output) removes where they cannot show.
    pub fn to_text(&self) -> String {
        text::plan(self)
    }
}

/// Leaves out the steps of other dialects, and what is wrong with objects that only they read.
fn keep_dialects(plan: &mut Plan, wanted: &[&str]) {
    let kept = || DIALECTS.iter().filter(|dialect| wanted.contains(&dialect.name()));
    plan.steps.retain(|step| wanted.contains(&step.dialect));
    plan.diagnostics.retain(|found| kept().any(|dialect| dialect.validates(&found.key.kind)));
}
