//! A progressive ManifestWorkReplicaSet never has more clusters in flight than maxConcurrency. Counts
//! works with the current template whose agent has not reported on it: these are in flight,
//! whatever else is.

use convoy_api::Object;
use convoy_api::ocm::names::{
    MANIFEST_WORK, MANIFEST_WORK_REPLICA_SET, PLACEMENT_DECISION, PLACEMENT_LABEL,
    REPLICA_SET_LABEL,
};
use convoy_plan::Verb;
use convoy_plan::budget::{IntOrPercent, Rounding};
use serde_json::Value;

use crate::{Finding, Guarantee, Subject};

pub(super) fn over(subject: &Subject<'_>) -> Option<Finding> {
    let set = subject.world.get(&subject.step.rollout)?;
    if *set.kind() != MANIFEST_WORK_REPLICA_SET {
        return None;
    }
    let references = set.spec().get("placementRefs")?.as_array()?;
    let [reference] = references.as_slice() else { return None };
    let strategy = reference.get("rolloutStrategy")?;
    let block = strategy.get("progressive")?;
    let plain = strategy.get("type")?.as_str()? == "Progressive"
        && block.get("mandatoryDecisionGroups").is_none();
    let given = IntOrPercent::from_value(block.get("maxConcurrency")?).ok()?;
    let total = u32::try_from(selected(subject, reference.get("name")?.as_str()?)).ok()?;
    let ceiling = match given.resolve(total, Rounding::Up) {
        0 => total,
        ceiling => ceiling.min(total),
    };
    let starts = |verb: &Verb| matches!(verb, Verb::Start(_) | Verb::Update(_));
    let starting = subject.step.actions.iter().filter(|action| starts(&action.verb)).count();
    let busy = busy(subject, set);
    let over = plain && total > 0 && starting > 0 && starting + busy > ceiling as usize;
    over.then(|| {
        let message =
            format!("starts {starting} clusters with {busy} in flight, more than {ceiling} in all");
        subject.finding(Guarantee::G1, message)
    })
}

/// Number of clusters in the decisions of a placement.
fn selected(subject: &Subject<'_>, placement: &str) -> usize {
    let nearby = subject.world.in_namespace(&PLACEMENT_DECISION, &subject.step.rollout.namespace);
    let own = nearby.filter(|decision| decision.label(PLACEMENT_LABEL) == Some(placement));
    own.filter_map(|decision| Some(decision.status().get("decisions")?.as_array()?.len())).sum()
}

fn busy(subject: &Subject<'_>, set: &Object) -> usize {
    let owner = format!("{}.{}", set.namespace(), set.name());
    let template = set.spec().get("manifestWorkTemplate");
    let waits = |work: &&Object| {
        let observed = work.condition("Applied").and_then(|c| c.get("observedGeneration"));
        work.label(REPLICA_SET_LABEL) == Some(&owner)
            && Some(work.spec()) == template
            && !work.is_deleting()
            && observed.and_then(Value::as_i64).unwrap_or(0) != work.generation()
            && !removed(subject, work)
    };
    subject.world.of(&MANIFEST_WORK).filter(waits).count()
}

/// Whether this step removes the work, and frees its slot.
fn removed(subject: &Subject<'_>, work: &Object) -> bool {
    let gone = |verb: &Verb| matches!(verb, Verb::Remove(_));
    subject.step.actions.iter().any(|action| gone(&action.verb) && action.target == *work.key())
}
