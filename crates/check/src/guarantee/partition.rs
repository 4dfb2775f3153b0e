//! G4: every member is in exactly one state, and every waiting member has exactly one hold.

use std::collections::BTreeSet;

use crate::{Finding, Guarantee, Subject};

/// The states of a group add up to its members.
pub(crate) fn one_state_each(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for group in &subject.step.groups {
        if !group.is_partition() {
            let message =
                format!("the states of group {} do not add up to {}", group.name, group.total);
            findings.push(subject.finding(Guarantee::G4, message));
        }
    }
    let names: BTreeSet<&str> =
        subject.step.groups.iter().map(|group| group.name.as_str()).collect();
    if names.len() != subject.step.groups.len() {
        findings.push(subject.finding(Guarantee::G4, "two groups have the same name"));
    }
}

/// A member has at most one hold, and a group has as many holds as waiting members.
pub(crate) fn who_waits_says_why(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let mut seen = BTreeSet::new();
    for hold in &subject.step.holds {
        if let Some(member) = &hold.member
            && !seen.insert((&hold.group, member))
        {
            let message = format!("member {member} has two holds");
            findings.push(subject.finding(Guarantee::G4, message));
        }
    }
    if subject.step.dialect == "apps" {
        return; // replicas have no names before they exist, so the rollout carries their hold
    }
    for group in &subject.step.groups {
        let of_group = |hold: &&convoy_plan::Hold| hold.group.as_deref() == Some(&group.name);
        let held = subject.step.holds.iter().filter(of_group).filter(|hold| hold.member.is_some());
        let held = u32::try_from(held.count()).unwrap_or(u32::MAX);
        if held < group.waiting {
            let message = format!(
                "{} members of group {} wait, {held} have a hold",
                group.waiting, group.name
            );
            findings.push(subject.finding(Guarantee::G4, message));
        }
    }
}
