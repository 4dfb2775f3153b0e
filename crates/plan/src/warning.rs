//! What a person must act on, as Warning events, and the events that tell of a state: once for each
//! reason, not in every decision.

use std::collections::{BTreeMap, BTreeSet};

use smol_str::SmolStr;

use crate::hold::{Hold, HoldReason, NAMED};
use crate::step::{Event, EventType, Step};

/// The dialects whose holds become events. Other controllers have events of their own, with
/// upstream's names.
const WARNED: [&str; 5] = ["apps", "fleet", "karpenter", "ocm", "skyhook"];

/// The dialects that have events of their own about members.
const WARNED_AS_A_WHOLE: [&str; 1] = ["karpenter"];

/// A reason, and the group that it holds.
type Identity = (&'static str, Option<SmolStr>);

/// What was told about a rollout, and holds still.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Warned {
    /// The reasons and groups of holds, each with the members that were told to have failed.
    holds: BTreeMap<Identity, BTreeSet<SmolStr>>,
    /// The states that the dialect has events of its own about.
    states: BTreeSet<Event>,
}

impl Warned {
    /// Nothing was told, or nothing of it holds any more.
    pub fn is_empty(&self) -> bool {
        self.holds.is_empty() && self.states.is_empty()
    }

    /// The events for what is new in a step. What no longer holds may be told again.
    pub fn update(&mut self, step: &Step) -> Vec<Event> {
        let states: BTreeSet<Event> =
            step.events.iter().filter(|event| event.lasts).cloned().collect();
        let mut events: Vec<Event> = states.difference(&self.states).cloned().collect();
        self.states = states;
        if WARNED.contains(&step.dialect) {
            events.extend(self.of_holds(step));
        }
        events
    }

    fn of_holds(&mut self, step: &Step) -> Vec<Event> {
        let mut found: BTreeMap<Identity, Vec<&Hold>> = BTreeMap::new();
        let whole = WARNED_AS_A_WHOLE.contains(&step.dialect);
        for hold in step.holds.iter().filter(|hold| !whole || hold.member.is_none()) {
            if let Some(word) = word(hold) {
                found.entry((word, hold.group.clone())).or_default().push(hold);
            }
        }
        self.holds.retain(|identity, _| found.contains_key(identity));
        let mut events = Vec::new();
        for (identity, holds) in found {
            let new = self.untold(&identity, holds);
            if !new.is_empty() {
                let (word, group) = &identity;
                let message = message(group.as_deref(), &new);
                events.push(Event::new(&step.rollout, EventType::Warning, word, message));
            }
        }
        events
    }

    /// The holds that nothing was told about: all if the reason is new, and later the members that
    /// fail, each of which somebody has to look at.
    fn untold<'h>(&mut self, identity: &Identity, holds: Vec<&'h Hold>) -> Vec<&'h Hold> {
        let is_known = self.holds.contains_key(identity);
        let told = self.holds.entry(identity.clone()).or_default();
        if identity.0 != FAILED {
            return if is_known { Vec::new() } else { holds };
        }
        let is_new = |hold: &&Hold| match &hold.member {
            Some(member) => told.insert(member.clone()),
            None => !is_known,
        };
        holds.into_iter().filter(is_new).collect()
    }
}

const FAILED: &str = "Failed";

/// The reason of the event; none for what passes by itself, or was asked for.
fn word(hold: &Hold) -> Option<&'static str> {
    Some(match &hold.reason {
        HoldReason::PodDisruptionBudget { .. } | HoldReason::PodProtected { .. } => "DrainBlocked",
        HoldReason::Failed { .. } => FAILED,
        HoldReason::FailureStop { .. } => "Stopped",
        HoldReason::Stalled { .. } => "Stalled",
        HoldReason::Missing { .. } => "NotFound",
        HoldReason::Approval { .. } => "ApprovalNeeded",
        // Of one member it is what a selector is for; of the rollout it is nobody's wish.
        HoldReason::NotSelected { .. } if hold.member.is_none() => "NothingSelected",
        _ => return None,
    })
}

/// The first hold in its own words, and who else has the same reason.
fn message(group: Option<&str>, holds: &[&Hold]) -> String {
    let Some(first) = holds.first() else { return String::new() };
    let members: Vec<&str> = holds.iter().filter_map(|hold| hold.member.as_deref()).collect();
    let place = group.map(|group| format!(" of {group}")).unwrap_or_default();
    match members.split_first() {
        None => first.reason.to_string(),
        Some((only, [])) => format!("{only}{place}: {}", first.reason),
        Some((one, others)) => {
            let named = others.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
            let rest = others.len().saturating_sub(NAMED);
            let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
            format!("{one}{place}: {}; the same kind of reason: {named}{more}", first.reason)
        }
    }
}

#[cfg(test)]
mod tests {
    use convoy_testkit::object;

    use super::*;
    use crate::hold::Names;
    use crate::step::Verdict;

    fn step(holds: Vec<Hold>) -> Step {
        let rollout = object("skyhook.nvidia.com/v1alpha1", "Skyhook", "tuning").build();
        Step { holds, ..Step::new("skyhook", &rollout, Verdict::Held) }
    }

    fn blocked(node: &str) -> Hold {
        let reason = HoldReason::PodDisruptionBudget {
            budget: "shop/web".to_owned(),
            pod: format!("shop/web-{node}"),
            allowed: 0,
        };
        Hold::of_member(node, reason).in_group("production")
    }

    fn told(warned: &mut Warned, holds: Vec<Hold>) -> Vec<String> {
        let events = warned.update(&step(holds));
        events.iter().map(|event| format!("{}: {}", event.reason, event.message)).collect()
    }

    #[test]
    fn a_reason_is_told_once_until_it_has_gone() {
        let mut warned = Warned::default();
        let first = "DrainBlocked: a of production: PodDisruptionBudget shop/web allows 0 \
                     disruptions, so pod shop/web-a cannot be evicted";
        assert_eq!(told(&mut warned, vec![blocked("a")]), [first]);
        assert!(told(&mut warned, vec![blocked("a"), blocked("b")]).is_empty());
        assert!(told(&mut warned, Vec::new()).is_empty());
        assert!(warned.is_empty());
        let several = told(&mut warned, vec![blocked("a"), blocked("b"), blocked("c")]);
        assert_eq!(several, [format!("{first}; the same kind of reason: b, c")]);
    }

    fn failed(node: &str) -> Hold {
        let reason = HoldReason::Failed { detail: format!("package on {node} failed") };
        Hold::of_member(node, reason).in_group("production")
    }

    #[test]
    fn a_member_that_fails_later_is_told_as_well_and_each_once() {
        let mut warned = Warned::default();
        let first = told(&mut warned, vec![failed("a")]);
        assert!(first[0].starts_with("Failed: a of production: "), "{first:?}");
        assert!(told(&mut warned, vec![failed("a")]).is_empty(), "not in every pass");
        let later = told(&mut warned, vec![failed("a"), failed("b"), failed("c")]);
        assert!(later[0].starts_with("Failed: b of production: "), "{later:?}");
        assert!(later[0].ends_with("the same kind of reason: c"), "{later:?}");
        assert!(told(&mut warned, vec![failed("b")]).is_empty());
        assert!(told(&mut warned, vec![failed("a"), failed("b")]).is_empty(), "it was told before");
        let many = (0..2_000).map(|at| failed(&format!("n{at:04}"))).collect();
        let many = told(&mut warned, many);
        assert_eq!(many.len(), 1);
        assert!(many[0].ends_with(&format!("and {} more", 1_999 - NAMED)), "{many:?}");
    }

    #[test]
    fn a_state_is_told_when_it_begins_and_something_that_happens_every_time() {
        let mut step = step(Vec::new());
        let event = |reason| Event::new(&step.rollout, EventType::Normal, reason, "words");
        let events = vec![event("Blocked").lasting(), event("Done")];
        step.events = events.clone();
        let mut warned = Warned::default();
        assert_eq!(warned.update(&step), events[..1]);
        assert!(warned.update(&step).is_empty());
        step.events.remove(0);
        assert!(warned.update(&step).is_empty());
        assert!(warned.is_empty());
        step.events = events.clone();
        assert_eq!(warned.update(&step), events[..1], "it is so again");
    }

    #[test]
    fn what_passes_by_itself_is_not_told() {
        let waits = HoldReason::BatchRunning { batch: 1, unfinished: 1, by: Names::default() };
        let left_out = HoldReason::NotSelected { detail: "not in the selector".to_owned() };
        let holds = vec![Hold::of_member("a", waits), Hold::of_member("b", left_out)];
        assert!(told(&mut Warned::default(), holds).is_empty());
    }

    #[test]
    fn a_rollout_that_selects_nothing_is_told() {
        let reason = HoldReason::NotSelected { detail: "no node matches".to_owned() };
        let found = told(&mut Warned::default(), vec![Hold::of_rollout(reason)]);
        assert_eq!(found, ["NothingSelected: not selected: no node matches"]);
    }
}
