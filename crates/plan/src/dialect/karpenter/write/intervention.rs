//! What people ask of a NodePool: a pause is a budget of zero nodes beside the others, which is
//! how the API itself has it.

use convoy_api::Object;
use convoy_api::object::member::{field, list};
use serde_json::{Value, json};

use crate::dialect::karpenter::names::PAUSED;
use crate::intervention::{Intervention, Refused};
use crate::merge_patch::nested;
use crate::step::{Action, Verb, Why};

/// The writes of a request.
pub(crate) fn intervene(
    pool: &Object,
    intervention: &Intervention,
) -> Result<Vec<Action>, Refused> {
    let is_paused = pool.annotation(PAUSED) == Some("true");
    match intervention {
        Intervention::Pause if is_paused => Err(refused(pool, "is already paused")),
        Intervention::Pause => Ok(vec![paused(pool)]),
        Intervention::Resume if is_paused => Ok(vec![resumed(pool)]),
        Intervention::Resume if budgets(pool).iter().any(is_closed) => {
            Err(refused(pool, "has a budget of 0 nodes that `convoy pause` did not set; remove it"))
        }
        Intervention::Resume => Err(refused(pool, "is not paused")),
        Intervention::Abort => Err(intervention.unsupported(
            pool.kind(),
            "`convoy pause` starts nothing new; a disruption under way goes on",
        )),
        Intervention::Retry => Err(intervention
            .unsupported(pool.kind(), "a disruption that failed is tried again by itself")),
        Intervention::Undo { .. } => Err(intervention.unsupported(
            pool.kind(),
            "it keeps no revisions: apply its previous template, and nodes drift back",
        )),
        Intervention::Approve { .. } => Err(intervention.unsupported(
            pool.kind(),
            "budgets with a schedule say when nodes may go; `convoy pause` and `convoy resume` are \
             a person's say",
        )),
        Intervention::Reset => Err(intervention.unsupported(
            pool.kind(),
            "it keeps no progress to forget: delete a NodeClaim to replace its node",
        )),
    }
}

fn refused(pool: &Object, state: &str) -> Refused {
    Refused::not_now(format!("NodePool {:?} {state}", pool.name()))
}

/// The budgets; absent ones are those that the API fills in.
fn budgets(pool: &Object) -> Vec<Value> {
    let disruption = field(pool.spec(), "disruption");
    if field(disruption, "budgets").is_null() {
        return vec![json!({"nodes": "10%"})];
    }
    list(disruption, "budgets").to_vec()
}

/// Whether a budget is the one that a pause adds: nothing for any reason, at any time.
fn is_closed(budget: &Value) -> bool {
    *budget == json!({"nodes": "0"})
}

/// The budget comes last, so that the others keep their places.
fn paused(pool: &Object) -> Action {
    let mut budgets = budgets(pool);
    budgets.push(json!({"nodes": "0"}));
    written(pool, budgets, json!("true"), Why::new("Paused", "add a budget of 0 nodes"))
}

fn resumed(pool: &Object) -> Action {
    let mut budgets = budgets(pool);
    if let Some(at) = budgets.iter().rposition(is_closed) {
        budgets.remove(at);
    }
    written(pool, budgets, Value::Null, Why::new("Resumed", "remove the budget of 0 nodes"))
}

fn written(pool: &Object, budgets: Vec<Value>, mark: Value, why: Why) -> Action {
    let mut patch = nested(&["spec", "disruption", "budgets"], Value::Array(budgets));
    patch["metadata"] = nested(&["annotations", PAUSED], mark);
    Action::patch(Verb::Record, pool, patch, why)
}

#[cfg(test)]
mod tests {
    use convoy_testkit::karpenter::pool;

    use super::*;
    use crate::intervention::Intervention::{Abort, Pause, Resume};
    use crate::step::Write;

    fn budgets_after(pool: &Object, asked: &Intervention) -> Value {
        let action = intervene(pool, asked).expect("it is possible").remove(0);
        let Write::Patch { patch, .. } = action.write else { panic!("a patch") };
        patch["spec"]["disruption"]["budgets"].clone()
    }

    #[test]
    fn a_pause_is_one_more_budget() {
        let own = json!({"nodes": "2"});
        let plain = pool("p", &json!({"budgets": [own]})).build();
        let closed = json!([own, {"nodes": "0"}]);
        assert_eq!(budgets_after(&plain, &Pause), closed);
        assert!(intervene(&plain, &Resume).is_err() && intervene(&plain, &Abort).is_err());
        let paused = pool("p", &json!({"budgets": closed})).annotation(PAUSED, "true").build();
        assert_eq!(budgets_after(&paused, &Resume), json!([own]));
        assert!(intervene(&paused, &Pause).is_err());
    }

    #[test]
    fn a_closed_budget_of_others_stays() {
        let frozen = pool("p", &json!({"budgets": [{"nodes": "0"}]})).build();
        let refused = intervene(&frozen, &Resume).expect_err("it is not ours");
        assert!(refused.to_string().contains("did not set"));
    }
}
