//! The numbers about a Skyhook that upstream's operator publishes, under its names and labels.
//! Every status, state and stage is there, with 0 where nobody is in it.

use std::collections::BTreeMap;

use convoy_api::skyhook::{PackageState, Stage, StatusWord};

use crate::dialect::skyhook::decide::Decision;
use crate::dialect::skyhook::decide::compartment::Compartment;
use crate::dialect::skyhook::read::node::word_text;
use crate::dialect::skyhook::read::state::{Entry, NodeState, stage_word, state_word};
use crate::series::{Metric, Series};

const STATUS: Metric = Metric::new("skyhook_status", "Whether the Skyhook has this status");
const NODE_STATUS: Metric =
    Metric::new("skyhook_node_status_count", "Targeted nodes with this status");
const NODE_TARGET: Metric = Metric::new("skyhook_node_target_count", "Targeted nodes");
const PACKAGE_STATE: Metric =
    Metric::new("skyhook_package_state_count", "Nodes on which the package is in this state");
const PACKAGE_STAGE: Metric =
    Metric::new("skyhook_package_stage_count", "Nodes on which the package is at this stage");
const PACKAGE_RESTARTS: Metric =
    Metric::new("skyhook_package_restarts_count", "Restarts of the package's pods on all nodes");
const MATCHED: Metric = Metric::new("skyhook_rollout_matched_nodes", "Nodes of the compartment");
const CEILING: Metric = Metric::new(
    "skyhook_rollout_ceiling",
    "Nodes of the compartment that may be in progress at once",
);
const IN_PROGRESS: Metric = Metric::new("skyhook_rollout_in_progress", "Nodes in progress");
const COMPLETED: Metric = Metric::new("skyhook_rollout_completed", "Nodes that are complete");
const PROGRESS: Metric = Metric::new(
    "skyhook_rollout_progress_percent",
    "Share of the compartment's nodes that are complete, in percent",
);
const CURRENT_BATCH: Metric = Metric::new(
    "skyhook_rollout_current_batch",
    "Number of the current batch of the compartment; 0 without a strategy",
);
const FAILURES: Metric =
    Metric::new("skyhook_rollout_consecutive_failures", "Batches in a row that failed");
const SHOULD_STOP: Metric =
    Metric::new("skyhook_rollout_should_stop", "Whether failures have stopped the compartment");

/// The policy name of a Skyhook without a policy.
const LEGACY: &str = "legacy";

const WORDS: [StatusWord; 8] = [
    StatusWord::Unknown,
    StatusWord::Complete,
    StatusWord::Blocked,
    StatusWord::Waiting,
    StatusWord::Disabled,
    StatusWord::Paused,
    StatusWord::InProgress,
    StatusWord::Erroring,
];

const STATES: [PackageState; 5] = [
    PackageState::Complete,
    PackageState::InProgress,
    PackageState::Skipped,
    PackageState::Erroring,
    PackageState::Unknown,
];

const STAGES: [Stage; 6] = [
    Stage::Apply,
    Stage::Interrupt,
    Stage::PostInterrupt,
    Stage::Config,
    Stage::Uninstall,
    Stage::Upgrade,
];

/// All of them, as things stand after this decision.
pub(crate) fn series(
    decision: &Decision<'_, '_>,
    words: &[StatusWord],
    rolled_up: StatusWord,
) -> Vec<Series> {
    let skyhook = ("skyhook_name", decision.hook.name().as_str());
    let mut all = vec![Series::new(&NODE_TARGET, &[skyhook], words.len())];
    for word in WORDS {
        let labels = [skyhook, ("status", word_text(word))];
        let nodes = words.iter().filter(|found| **found == word).count();
        all.push(Series::new(&STATUS, &labels, word == rolled_up));
        all.push(Series::new(&NODE_STATUS, &labels, nodes));
    }
    packages(decision, skyhook, &mut all);
    for compartment in &decision.compartments {
        all.extend(rollout(decision, skyhook, compartment, words));
    }
    all
}

/// How many nodes have a package in each state and at each stage.
#[derive(Debug, Default)]
struct Tally {
    states: [u32; STATES.len()],
    stages: [u32; STAGES.len()],
    restarts: i64,
}

impl Tally {
    fn count(&mut self, entry: &Entry, nodes: u32) {
        let state = STATES.iter().position(|state| *state == entry.state);
        let stage = STAGES.iter().position(|stage| *stage == entry.stage);
        if let (Some(state), Some(stage)) = (state, stage) {
            self.states[state] += nodes;
            self.stages[stage] += nodes;
        }
        let restarts = entry.restarts.saturating_mul(i64::from(nodes));
        self.restarts = self.restarts.saturating_add(restarts);
    }
}

/// The packages of the spec, and those that are on their way out.
fn packages(decision: &Decision<'_, '_>, skyhook: (&'static str, &str), all: &mut Vec<Series>) {
    let known = decision.hook.packages.iter();
    let mut tallies: BTreeMap<(&str, &str), Tally> = known
        .map(|package| ((package.name.as_str(), package.version.as_str()), Tally::default()))
        .collect();
    for (state, nodes) in alike(decision) {
        for entry in state.values() {
            tallies.entry((&entry.name, &entry.version)).or_default().count(entry, nodes);
        }
    }
    for ((name, version), tally) in tallies {
        let package = [skyhook, ("package_name", name), ("package_version", version)];
        let with = |label, value| [package[0], package[1], package[2], (label, value)];
        for (state, nodes) in STATES.iter().zip(tally.states) {
            let labels = with("state", state_word(*state));
            all.push(Series::new(&PACKAGE_STATE, &labels, nodes));
        }
        for (stage, nodes) in STAGES.iter().zip(tally.stages) {
            let labels = with("stage", stage_word(*stage));
            all.push(Series::new(&PACKAGE_STAGE, &labels, nodes));
        }
        all.push(Series::new(&PACKAGE_RESTARTS, &package, tally.restarts));
    }
}

/// The states of nodes, and how many share each: those at the same stage share one reading.
fn alike<'p>(decision: &'p Decision<'_, '_>) -> Vec<(&'p NodeState, u32)> {
    /// How far back a state is looked for; a fleet is at a few stages at a time.
    const RECENT: usize = 8;
    let mut alike: Vec<(&NodeState, u32)> = Vec::new();
    for index in 0..decision.members.len() {
        let state = decision.state_after(index);
        let mut recent = alike.iter_mut().rev().take(RECENT);
        match recent.find(|(known, _)| std::ptr::eq(*known, state)) {
            Some((_, nodes)) => *nodes += 1,
            None => alike.push((state, 1)),
        }
    }
    alike
}

fn rollout(
    decision: &Decision<'_, '_>,
    skyhook: (&'static str, &str),
    compartment: &Compartment,
    words: &[StatusWord],
) -> Vec<Series> {
    let strategy = compartment.spec.strategy.as_ref();
    let policy = if decision.hook.policy.is_empty() { LEGACY } else { &decision.hook.policy };
    let labels = [
        skyhook,
        ("policy_name", policy),
        ("compartment_name", compartment.spec.name.as_str()),
        ("strategy", strategy.map_or("unknown", |strategy| strategy.word())),
    ];
    let progress = compartment.progress(&decision.members, words);
    let batch = strategy.map(|_| &compartment.batch);
    let failures = batch.map_or(0, |batch| batch.consecutive_failures);
    [
        (&MATCHED, progress.matched),
        (&CEILING, progress.ceiling),
        (&IN_PROGRESS, progress.in_progress),
        (&COMPLETED, progress.completed),
        (&PROGRESS, progress.progress_percent),
        (&CURRENT_BATCH, batch.map_or(0, |batch| batch.current_batch)),
        (&FAILURES, failures),
        (&SHOULD_STOP, batch.map_or(0, |batch| u32::from(batch.should_stop))),
    ]
    .map(|(metric, value)| Series::new(metric, &labels, value))
    .to_vec()
}
