//! What people ask of a placement or a replica set, as far as their API has it.

use convoy_api::Object;
use convoy_api::ocm::names::{PLACEMENT, SCHEDULING_DISABLED};
use serde_json::{Value, json};

use crate::intervention::{Intervention, Refused};
use crate::step::{Action, Verb, Why};

/// The writes of a request.
pub(crate) fn intervene(
    rollout: &Object,
    intervention: &Intervention,
) -> Result<Vec<Action>, Refused> {
    if *rollout.kind() != PLACEMENT {
        return Err(intervention.unsupported(rollout.kind(), instead_of(intervention)));
    }
    let is_disabled = rollout.annotation(SCHEDULING_DISABLED) == Some("true");
    let refused = |state: &str| Refused::not_now(format!("Placement {:?} {state}", rollout.name()));
    match intervention {
        Intervention::Pause if is_disabled => Err(refused("is already paused")),
        Intervention::Pause => Ok(vec![disabled(rollout, true)]),
        Intervention::Resume if !is_disabled => Err(refused("is not paused")),
        Intervention::Resume => Ok(vec![disabled(rollout, false)]),
        Intervention::Abort => Err(intervention
            .unsupported(rollout.kind(), "`convoy pause` keeps its decisions as they are")),
        _ => Err(intervention.unsupported(
            rollout.kind(),
            "it selects clusters and is decided again whenever they change; change its spec",
        )),
    }
}

/// What people do to a replica set instead.
fn instead_of(intervention: &Intervention) -> &'static str {
    match intervention {
        Intervention::Pause | Intervention::Resume | Intervention::Abort => {
            "`convoy pause` of its Placement keeps new clusters out; a lower maxConcurrency of the \
             rolloutStrategy slows it down"
        }
        Intervention::Retry => {
            "agents apply a failed work again by themselves; a new template starts the others"
        }
        Intervention::Undo { .. } | Intervention::Reset => {
            "it keeps no revisions: apply its previous manifestWorkTemplate"
        }
        Intervention::Approve { .. } => {
            "mandatoryDecisionGroups of the rolloutStrategy hold the others back until they succeed"
        }
    }
}

fn disabled(placement: &Object, value: bool) -> Action {
    let text = if value { json!("true") } else { Value::Null };
    let patch = json!({"metadata": {"annotations": {SCHEDULING_DISABLED: text}}});
    let (reason, message) =
        if value { ("Paused", "decide nothing new") } else { ("Resumed", "go on") };
    Action::patch(Verb::Record, placement, patch, Why::new(reason, message))
}

#[cfg(test)]
mod tests {
    use convoy_testkit::ocm::{placement, replica_set};

    use super::*;
    use crate::intervention::Intervention::{Abort, Pause, Resume, Retry};

    #[test]
    fn a_placement_is_paused_by_an_annotation() {
        let plain = placement("p", json!({})).build();
        assert_eq!(intervene(&plain, &Pause).map(|actions| actions.len()), Ok(1));
        assert!(intervene(&plain, &Resume).is_err() && intervene(&plain, &Abort).is_err());
        let paused = placement("p", json!({})).annotation(SCHEDULING_DISABLED, "true").build();
        assert!(intervene(&paused, &Pause).is_err());
        assert_eq!(intervene(&paused, &Resume).map(|actions| actions.len()), Ok(1));
    }

    #[test]
    fn a_replica_set_says_what_to_do_instead() {
        let set = replica_set("s", "1", &json!([{"name": "p"}])).build();
        for asked in [Pause, Resume, Abort, Retry] {
            let refused = intervene(&set, &asked).expect_err("it has none of these");
            assert!(refused.to_string().starts_with("the ManifestWorkReplicaSet API has no "));
        }
    }
}
