//! `convoy pause`, `resume`, `abort`, `retry`, `undo`, `approve` and `reset`: what people ask of a
//! rollout. The dialect says which writes that takes; this sends them and records who asked.

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use convoy_api::{Object, ObjectKey};
use convoy_controllers::live_objects::LiveObjects;
use convoy_plan::intervention::{Record, recorded};
use convoy_plan::step::Subresource;
use convoy_plan::{Action, Dialect, Intervention, Write};
use jiff::Timestamp;
use serde_json::json;

use super::source::warn;
use crate::clock::this_second;
use crate::cluster::{Cluster, ClusterArgs};
use crate::output::{self, TableFormat};
use crate::rollouts::{self, Target};

/// How often a write is made again because somebody else changed the object.
const ATTEMPTS_MAX: usize = 20;

/// The flags of every command that acts on a rollout.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status: 0 success, 1 it was not possible: the message says why and \
    what to do instead; 2 the usage was wrong.")]
pub(crate) struct Args {
    /// Name of the rollout, with its kind if several have the name
    #[arg(value_name = "[KIND/]NAME", required = true, num_args = 1..=2)]
    target: Vec<String>,
    /// Why, for the record on the rollout
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    /// Let the server check the writes without storing them, and print them
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: TableFormat,
}

/// Roll back to an earlier revision
///
/// Deployments only: takes the template of an earlier ReplicaSet, as `kubectl rollout undo` does.
/// For other kinds, prints what to do instead.
#[derive(Debug, clap::Args)]
pub(crate) struct UndoArgs {
    /// Revision to go back to; 0 is the previous one
    #[arg(long, value_name = "REVISION", default_value = "0")]
    to_revision: i64,
    #[command(flatten)]
    args: Args,
}

/// Approve a stage of an update run that waits for approval
///
/// For kinds without approvals, prints what to do instead.
#[derive(Debug, clap::Args)]
pub(crate) struct ApproveArgs {
    /// Stage to approve, if several wait
    #[arg(long, value_name = "STAGE")]
    stage: Option<String>,
    #[command(flatten)]
    args: Args,
}

pub(crate) fn undo(args: UndoArgs) -> Result<ExitCode> {
    let revision = Some(args.to_revision).filter(|revision| *revision != 0);
    run(args.args, &Intervention::Undo { revision })
}

pub(crate) fn approve(args: ApproveArgs) -> Result<ExitCode> {
    run(args.args, &Intervention::Approve { stage: args.stage })
}

/// A rollout that is to be changed.
struct Operation<'o> {
    dialect: &'static dyn Dialect,
    key: ObjectKey,
    intervention: &'o Intervention,
    record: Record,
}

pub(crate) fn run(args: Args, intervention: &Intervention) -> Result<ExitCode> {
    let Args { target, reason, dry_run, yes, cluster, output } = args;
    let target = Target::read(&target);
    target.check_kind()?;
    let cluster = cluster.connect()?;
    let mut live = cluster.read(&target.dialects())?;
    let now = this_second();
    let found = find(&live, cluster.namespace.as_deref(), &target);
    let (dialect, key) = found.inspect_err(|_| warn(&live.unread))?;
    let actor = cluster.wait(live.user()).unwrap_or_else(|| "unknown".to_owned());
    let record = Record::new(intervention, &actor, &reason, now);
    let operation = Operation { dialect, key, intervention, record };
    let actions = operation.actions(&live)?;
    let question = format!(
        "This makes {} forget how far it came: {} writes.",
        rollouts::path(&operation.key),
        actions.len()
    );
    let is_safe = *intervention != Intervention::Reset || dry_run || yes;
    if !output::confirmed(&question, is_safe)? {
        return Ok(ExitCode::SUCCESS);
    }
    for action in &actions {
        operation.send(&cluster, &mut live, action, dry_run)?;
    }
    print(&operation, &actions, dry_run, output)?;
    Ok(ExitCode::SUCCESS)
}

/// The rollout that is meant, among all objects of the cluster that people call so.
fn find(
    live: &LiveObjects,
    namespace: Option<&str>,
    target: &Target,
) -> Result<(&'static dyn Dialect, ObjectKey)> {
    let steps = rollouts::undecided(&live.world, namespace);
    let found = target.find(&steps.iter().collect::<Vec<_>>())?;
    Ok((rollouts::dialect_of(found), found.rollout.clone()))
}

impl Operation<'_> {
    fn rollout<'r>(&self, live: &'r LiveObjects) -> Result<&'r Object> {
        live.world.get(&self.key).context("the rollout was deleted")
    }

    /// The writes, the record among them.
    fn actions(&self, live: &LiveObjects) -> Result<Vec<Action>> {
        let rollout = self.rollout(live)?;
        let asked = self.intervene(live, rollout).map_err(|refused| anyhow!("{refused}"))?;
        Ok(recorded(asked, rollout, &self.record))
    }

    fn intervene(
        &self,
        live: &LiveObjects,
        rollout: &Object,
    ) -> Result<Vec<Action>, convoy_plan::Refused> {
        let at: Timestamp = self.record.at;
        self.dialect.intervene(&live.world, rollout, self.intervention, at)
    }

    /// Sends a write. If its object has changed, it is made again from the object as it is now.
    fn send(
        &self,
        cluster: &Cluster,
        live: &mut LiveObjects,
        action: &Action,
        dry_run: bool,
    ) -> Result<()> {
        let mut next = Some(action.clone());
        for _ in 0..ATTEMPTS_MAX {
            let Some(action) = next else { return Ok(()) };
            let Some(response) = cluster.wait(live.write(&action, dry_run))? else {
                bail!("the server has no objects of kind {}", action.target.kind)
            };
            match response.code {
                // What is gone needs no change.
                200..300 | 404 => return Ok(()),
                409 => {}
                _ => bail!("{}", response.message()),
            }
            if !cluster.wait(live.refresh(&action.target))? {
                return Ok(());
            }
            next = self.again(live, &action)?;
        }
        bail!("{} changes too often; try again", rollouts::full_name(&action.target))
    }

    /// The same write to the object as it is now; none if it is no longer needed.
    fn again(&self, live: &LiveObjects, action: &Action) -> Result<Option<Action>> {
        let rollout = self.rollout(live)?;
        // What was refused has been done by the writes before.
        let asked = self.intervene(live, rollout).unwrap_or_default();
        let is_same = |other: &Action| {
            other.target == action.target && is_of_status(other) == is_of_status(action)
        };
        Ok(recorded(asked, rollout, &self.record).into_iter().find(is_same))
    }
}

fn is_of_status(action: &Action) -> bool {
    matches!(&action.write, Write::Patch { subresource: Some(Subresource::Status), .. })
}

fn print(
    operation: &Operation<'_>,
    actions: &[Action],
    dry_run: bool,
    output: TableFormat,
) -> Result<()> {
    let name = rollouts::full_name(&operation.key);
    if let Some(format) = output.document() {
        let json = json!({"rollout": operation.key, "verb": operation.intervention.word(),
            "dryRun": dry_run, "record": operation.record, "writes": actions});
        return output::print_value(&json, format);
    }
    if output == TableFormat::Name {
        return output::print(&format!("{name}\n"));
    }
    let mut text = String::new();
    for action in actions.iter().filter(|_| dry_run) {
        let target = rollouts::full_name(&action.target);
        _ = writeln!(text, "would write {target}: {}", action.why.message);
    }
    let note = if dry_run { " (server dry run)" } else { "" };
    _ = writeln!(text, "{name} {}{note}", operation.intervention.done());
    output::print(&text)
}
