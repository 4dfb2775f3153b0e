//! Whether a run can go on from where it is: nothing it was initialised with has changed, and
//! its record makes sense.

use std::collections::BTreeSet;

use super::scope::Scope;
use super::{Halt, Pass, stages};
use crate::dialect::fleet::names::{PROGRESSING, SUCCEEDED};
use crate::dialect::fleet::read::run::{End, Record, Stage};

/// The stage to work on; one past the last is the delete stage. None: all is finished, and
/// only saying so is left.
pub(super) fn current_stage(pass: &Pass<'_, '_>, scope: &Scope<'_>) -> Result<Option<usize>, Halt> {
    let record = &pass.record;
    unchanged(record, scope)?;
    let name = pass.run.name();
    let computed = stages::computed(pass.snapshot, name, record.strategy(), &scope.update)?;
    same_stages(&record.stages, &computed)?;
    let mut finished = 0;
    let mut updating = None;
    for (index, stage) in record.stages.iter().enumerate() {
        let limit = record.max_concurrency(index);
        match stage.node.end() {
            Some(End::Succeeded) => {
                is_all_done(stage)?;
                if updating.is_some() || index != finished {
                    return Err(out_of_order(stage));
                }
                finished += 1;
            }
            Some(End::Failed) => {
                let why = stage.node.message(SUCCEEDED);
                return Err(Halt::abort(format!("stage {} has failed: {why}", stage.name())));
            }
            None if stage.node.has(PROGRESSING) => {
                if updating.is_some() || index != finished {
                    return Err(out_of_order(stage));
                }
                is_within(stage, limit)?;
                updating = Some(index);
            }
            None => {}
        }
    }
    deletion(record, scope, updating.unwrap_or(finished))
}

/// The world that was recorded is the world that is.
fn unchanged(record: &Record, scope: &Scope<'_>) -> Result<(), Halt> {
    if record.apply_strategy() != scope.placement.apply_strategy {
        return Err(Halt::abort("the placement's apply strategy has changed".to_owned()));
    }
    let (index, recorded) = (scope.policy_index, record.policy_index());
    if index != recorded {
        return Err(Halt::abort(format!(
            "the newest policy snapshot has index {index}, the run was made for {recorded:?}"
        )));
    }
    let count = u64::try_from(scope.cluster_count).unwrap_or(u64::MAX);
    let recorded = record.cluster_count();
    if recorded != Some(count) {
        return Err(Halt::abort(format!(
            "{count} clusters are wanted, the run was made for {}",
            recorded.unwrap_or(0)
        )));
    }
    Ok(())
}

fn same_stages(recorded: &[Stage], computed: &[Stage]) -> Result<(), Halt> {
    if recorded.len() != computed.len() {
        let (was, is) = (recorded.len(), computed.len());
        return Err(Halt::abort(format!("the run has {is} stages where it had {was}")));
    }
    for (was, is) in recorded.iter().zip(computed) {
        if was.name() != is.name() {
            let (was, is) = (was.name(), is.name());
            return Err(Halt::abort(format!("stage {is} stands where {was} was")));
        }
        if !was.cluster_names().eq(is.cluster_names()) {
            let name = was.name();
            return Err(Halt::abort(format!(
                "the clusters of stage {name}, or their order, changed"
            )));
        }
    }
    Ok(())
}

fn is_all_done(stage: &Stage) -> Result<(), Halt> {
    match stage.unfinished() {
        0 => Ok(()),
        some => Err(Halt::abort(format!(
            "stage {} is finished, but {some} of its clusters are not",
            stage.name()
        ))),
    }
}

fn is_within(stage: &Stage, limit: u32) -> Result<(), Halt> {
    match crate::count(stage.in_progress()) {
        some if some > limit => Err(Halt::abort(format!(
            "{some} clusters of stage {} are in progress where {limit} may be",
            stage.name()
        ))),
        _ => Ok(()),
    }
}

fn out_of_order(stage: &Stage) -> Halt {
    Halt::abort(format!("stage {} is ahead of an unfinished one", stage.name()))
}

/// The delete stage is the last, and knows all clusters that are to go.
fn deletion(record: &Record, scope: &Scope<'_>, current: usize) -> Result<Option<usize>, Halt> {
    let Some(stage) = &record.deletion else {
        return Err(Halt::abort("the run has no record of its delete stage".to_owned()));
    };
    let known: BTreeSet<&str> = stage.cluster_names().collect();
    for binding in &scope.delete {
        if !known.contains(binding.cluster()) {
            let cluster = binding.cluster();
            return Err(Halt::abort(format!("cluster {cluster:?} was de-selected during the run")));
        }
    }
    let end = stage.node.end();
    if current < record.stages.len() {
        if end.is_some() || stage.node.is_true(PROGRESSING) {
            return Err(out_of_order(stage));
        }
        return Ok(Some(current));
    }
    match end {
        Some(End::Succeeded) => Ok(None),
        Some(End::Failed) => {
            let why = stage.node.message(SUCCEEDED);
            Err(Halt::abort(format!("the delete stage has failed: {why}")))
        }
        None => Ok(Some(current)),
    }
}
