//! Why something does not move: the holds of a rollout or of a member in the order in which they
//! matter, each followed by what it waits for.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use convoy_api::ObjectKey;
use jiff::Timestamp;
use smol_str::SmolStr;

use crate::hold::{Hold, HoldReason};
use crate::step::Step;

/// How far a chain is followed. Longer ones say nothing that a person would act on.
const DEPTH_MAX: usize = 6;

/// One link of a chain: members that the same holds, or the rollout itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Cause<'s> {
    /// 0 for what was asked about, 1 for what that waits for, and so on.
    pub depth: usize,
    pub step: &'s Step,
    pub group: Option<&'s SmolStr>,
    /// Empty if the rollout or the whole group is held.
    pub members: Vec<&'s SmolStr>,
    /// None: nothing holds them, they are on their way.
    pub reason: Option<&'s HoldReason>,
    pub until: Option<Timestamp>,
}

/// Everything that holds a rollout and its members. What a person has to do something about comes
/// first, after what holds the rollout as a whole; then what holds the most members. Members with
/// the same reason share a cause.
pub fn of_rollout<'s>(steps: &'s [Step], step: &'s Step) -> Vec<Cause<'s>> {
    let mut causes: Vec<Cause<'s>> = Vec::new();
    let mut known = BTreeMap::new();
    for hold in step.holds.iter().filter(|hold| hold.reason != HoldReason::NoReason) {
        let identity =
            (hold.group.as_ref(), hold.member.is_none(), hold.reason.to_string(), hold.until);
        let at = *known.entry(identity).or_insert_with(|| {
            causes.push(cause(step, hold, 0));
            causes.len() - 1
        });
        // The first member is in the cause already.
        let is_new = causes[at].members.last() != hold.member.as_ref().as_ref();
        causes[at].members.extend(hold.member.as_ref().filter(|_| is_new));
    }
    causes.sort_by_key(|cause| {
        let reason = cause.reason.expect("made from a hold");
        let is_whole = cause.members.is_empty() && cause.group.is_none();
        (!is_whole, reason.rank(), !cause.members.is_empty(), Reverse(cause.members.len()))
    });
    let mut chain = Chain { steps, seen: BTreeSet::new(), causes: Vec::new() };
    chain.seen.extend(
        step.holds.iter().filter_map(|hold| Some(rollout_member(step, hold.member.as_ref()?))),
    );
    for cause in causes {
        let (reason, members) = (cause.reason, cause.members.clone());
        chain.causes.push(cause);
        chain.follow(step, reason, &members, 1);
    }
    chain.causes
}

/// What holds a member, which rollouts may know by any of `names`: by rollout, what holds the
/// rollout, the member's group and the member, and what each waits for.
pub fn of_member<'s>(steps: &'s [Step], step: &'s Step, names: &[SmolStr]) -> Vec<Cause<'s>> {
    let own: Vec<&Hold> = step
        .holds
        .iter()
        .filter(|hold| hold.member.as_ref().is_some_and(|member| names.contains(member)))
        .collect();
    if own.is_empty() {
        return Vec::new();
    }
    let mut chain = Chain { steps, seen: BTreeSet::new(), causes: Vec::new() };
    let above = step.holds.iter().filter(|hold| {
        hold.member.is_none()
            && (hold.group.is_none() || own.iter().any(|own| own.group == hold.group))
    });
    for hold in above.chain(own.iter().copied()) {
        chain.hold(step, hold, 0);
    }
    chain.causes
}

/// The holds of a step that name a pod: its budget, or itself, keeps a node from being drained.
pub fn of_pod<'s>(step: &'s Step, pod: &str) -> Vec<Cause<'s>> {
    let is_it = |named: &str| named == pod || named.rsplit_once('/').is_some_and(|it| it.1 == pod);
    let naming = step.holds.iter().filter(|hold| match &hold.reason {
        HoldReason::PodDisruptionBudget { pod, .. } | HoldReason::PodProtected { pod } => {
            is_it(pod)
        }
        _ => false,
    });
    naming.map(|hold| cause(step, hold, 0)).collect()
}

/// A chain as it is followed.
struct Chain<'s> {
    steps: &'s [Step],
    /// What the chain has: whoever waits for whoever waits for it is named once.
    seen: BTreeSet<RolloutMember<'s>>,
    causes: Vec<Cause<'s>>,
}

/// A member of a rollout.
type RolloutMember<'s> = (&'s ObjectKey, &'s SmolStr);

fn rollout_member<'s>(step: &'s Step, member: &'s SmolStr) -> RolloutMember<'s> {
    (&step.rollout, member)
}

fn cause<'s>(step: &'s Step, hold: &'s Hold, depth: usize) -> Cause<'s> {
    let Hold { member, group, reason, until } = hold;
    let members = member.iter().collect();
    Cause { depth, step, group: group.as_ref(), members, reason: Some(reason), until: *until }
}

impl<'s> Chain<'s> {
    fn hold(&mut self, step: &'s Step, hold: &'s Hold, depth: usize) {
        let is_new = match &hold.member {
            Some(member) => self.seen.insert(rollout_member(step, member)),
            None => !self.causes.iter().any(|known| known.reason == Some(&hold.reason)),
        };
        if is_new && depth <= DEPTH_MAX {
            self.causes.push(cause(step, hold, depth));
            let members: Vec<&'s SmolStr> = hold.member.iter().collect();
            self.follow(step, Some(&hold.reason), &members, depth + 1);
        }
    }

    /// What a reason waits for: the members that it names, or another rollout on the same ones.
    fn follow(
        &mut self,
        step: &'s Step,
        reason: Option<&'s HoldReason>,
        members: &[&'s SmolStr],
        depth: usize,
    ) {
        match reason {
            Some(
                HoldReason::BudgetSpent { by, .. }
                | HoldReason::AvailabilityFloor { by, .. }
                | HoldReason::BatchRunning { by, .. },
            ) => {
                for member in by.iter() {
                    self.member(step, member, depth);
                }
            }
            Some(HoldReason::BehindRollout { rollout, .. }) => {
                let named = |other: &&Step| {
                    other.dialect == step.dialect
                        && rollout.rsplit([' ', '/']).next() == Some(other.rollout.name.as_str())
                };
                let Some(other) = self.steps.iter().find(named) else { return };
                let on_them = |hold: &&Hold| {
                    hold.member.as_ref().is_none_or(|member| members.contains(&member))
                };
                for hold in other.holds.iter().filter(on_them) {
                    self.hold(other, hold, depth);
                }
            }
            Some(HoldReason::GroupOrder { behind, .. }) => {
                let before = step.holds.iter().filter(|hold| hold.group.as_deref() == Some(behind));
                for hold in before {
                    self.hold(step, hold, depth);
                }
            }
            _ => {}
        }
    }

    fn member(&mut self, step: &'s Step, member: &'s SmolStr, depth: usize) {
        let mut holds = step.holds.iter().filter(|hold| hold.member.as_ref() == Some(member));
        if let Some(hold) = holds.next() {
            self.hold(step, hold, depth);
        } else if self.seen.insert(rollout_member(step, member)) {
            let (members, reason, until) = (vec![member], None, None);
            self.causes.push(Cause { depth, step, group: None, members, reason, until });
        }
    }
}

#[cfg(test)]
mod tests {
    use convoy_testkit::object;

    use super::*;
    use crate::step::Verdict;

    fn step(name: &str, holds: Vec<Hold>) -> Step {
        let rollout = object("skyhook.nvidia.com/v1alpha1", "Skyhook", name).build();
        let mut step = Step::new("skyhook", &rollout, Verdict::Held);
        step.holds = holds;
        step
    }

    fn spent(by: &[&str]) -> HoldReason {
        let by = by.iter().map(SmolStr::new).collect();
        HoldReason::BudgetSpent { limit: "budget", in_flight: 2, ceiling: 2, by }
    }

    fn told(causes: &[Cause<'_>]) -> Vec<String> {
        let line = |cause: &Cause<'_>| {
            let members: Vec<&str> = cause.members.iter().map(|member| member.as_str()).collect();
            let reason = cause.reason.map_or("on its way", HoldReason::word);
            format!("{} {} {reason}", cause.depth, members.join("+"))
        };
        causes.iter().map(line).collect()
    }

    #[test]
    fn the_chain_of_a_member_leads_to_what_frees_it() {
        let steps = [step(
            "a",
            vec![
                Hold::of_member("n1", spent(&["n2", "n3"])),
                Hold::of_member("n2", HoldReason::Draining { pods: 2 }),
                Hold::of_member("n4", spent(&["n1"])),
            ],
        )];
        let causes = of_member(&steps, &steps[0], &[SmolStr::new("n4")]);
        assert_eq!(
            told(&causes),
            ["0 n4 BudgetSpent", "1 n1 BudgetSpent", "2 n2 Draining", "2 n3 on its way"]
        );
        assert!(of_member(&steps, &steps[0], &[SmolStr::new("n9")]).is_empty());
    }

    #[test]
    fn a_circle_ends() {
        let holds =
            vec![Hold::of_member("n1", spent(&["n2"])), Hold::of_member("n2", spent(&["n1"]))];
        let steps = [step("a", holds)];
        let causes = of_member(&steps, &steps[0], &[SmolStr::new("n1")]);
        assert_eq!(told(&causes), ["0 n1 BudgetSpent", "1 n2 BudgetSpent"]);
    }

    #[test]
    fn another_rollout_is_followed_on_the_same_member() {
        let behind = HoldReason::BehindRollout { rollout: "Skyhook b".to_owned(), priority: 1 };
        let steps = [
            step("a", vec![Hold::of_member("n1", behind)]),
            step(
                "b",
                vec![
                    Hold::of_member("n1", HoldReason::Draining { pods: 1 }),
                    Hold::of_member("n2", HoldReason::Draining { pods: 1 }),
                ],
            ),
        ];
        let causes = of_member(&steps, &steps[0], &[SmolStr::new("n1")]);
        assert_eq!(told(&causes), ["0 n1 BehindRollout", "1 n1 Draining"]);
    }

    #[test]
    fn a_rollout_tells_first_what_a_person_must_do() {
        let steps = [step(
            "a",
            vec![
                Hold::of_rollout(HoldReason::WindowClosed),
                Hold::of_member("n1", spent(&["n3"])),
                Hold::of_member("n2", spent(&["n3"])),
                Hold::of_member("n3", HoldReason::Failed { detail: String::new() }),
                Hold::of_member("n4", HoldReason::NoReason),
            ],
        )];
        let causes = of_rollout(&steps, &steps[0]);
        assert_eq!(told(&causes), ["0  WindowClosed", "0 n3 Failed", "0 n1+n2 BudgetSpent"]);
    }

    #[test]
    fn a_pod_is_named_by_what_it_holds_up() {
        let protected = HoldReason::PodProtected { pod: "shop/web-1".to_owned() };
        let steps = [step("a", vec![Hold::of_member("n1", protected)])];
        assert_eq!(told(&of_pod(&steps[0], "web-1")), ["0 n1 PodProtected"]);
        assert!(of_pod(&steps[0], "web").is_empty());
    }
}
