//! G7: applying plans reaches a state in which nothing more is written.

use convoy_plan::Plan;

use crate::{Applier, ApplyError, History};

/// The state in which a world settled.
#[derive(Clone, Debug)]
pub struct Settled {
    /// Number of rounds of planning and applying; the last one wrote nothing.
    pub rounds: u32,
    /// The quiet plan at the end.
    pub plan: Plan,
    pub history: History,
}

/// Why a world did not settle.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NotSettled {
    #[error("still writing after {rounds} rounds: {last}")]
    StillWriting { rounds: u32, last: String },
    #[error("a write was refused in round {round}")]
    Refused { round: u32, source: ApplyError },
}

/// Plans and applies, letting `outside` act after every round (kubelets, agents), until a
/// plan writes nothing, `outside` changes nothing, and no timer lies ahead; a timer moves time on.
pub fn settle(
    applier: &mut Applier,
    most_rounds: u32,
    mut outside: impl FnMut(&mut Applier) -> bool,
) -> Result<Settled, NotSettled> {
    let mut history = History::new();
    for round in 1..=most_rounds {
        let plan = convoy_plan::plan(applier.world(), applier.now());
        history.observe(applier.world(), &plan);
        let quiet = plan.steps.iter().all(convoy_plan::Step::is_quiet);
        for step in &plan.steps {
            match applier.apply(step) {
                // Another rollout of this round wrote first: plan again, as the control loop does.
                Ok(())
                | Err(ApplyError::Stale(_) | ApplyError::Exists(_) | ApplyError::NotFound(_)) => {}
                Err(source) => return Err(NotSettled::Refused { round, source }),
            }
        }
        let changed = outside(applier);
        if !quiet || changed {
            continue;
        }
        match plan.steps.iter().filter_map(|step| step.wake_at).min() {
            Some(at) if at > applier.now() => applier.advance_to(at),
            _ => return Ok(Settled { rounds: round, plan, history }),
        }
    }
    let plan = convoy_plan::plan(applier.world(), applier.now());
    let last =
        plan.steps.iter().find(|step| !step.is_quiet()).map(|step| step.to_json().to_string());
    Err(NotSettled::StillWriting { rounds: most_rounds, last: last.unwrap_or_default() })
}
