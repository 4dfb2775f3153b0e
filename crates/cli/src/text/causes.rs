//! Chains of causes: what holds, in the order in which it matters, and what frees it. Every member
//! is named.

use std::fmt::Write;

use convoy_plan::Step;
use convoy_plan::explanation::Cause;
use jiff::Timestamp;
use smol_str::SmolStr;

use super::holds::{Held, sentence};
use super::style::{DIM, painted};
use super::words::{member, plain};
use super::{budgets, disruptable, rollout, time};

/// How wide lists of names are.
const WIDTH: usize = 96;

/// A rollout and what holds it.
pub(crate) fn of_rollout(step: &Step, causes: &[Cause<'_>], now: Timestamp) -> String {
    let mut text = format!("{}\n", rollout::title(step));
    if causes.is_empty() {
        let flight = crate::rollouts::in_flight(step);
        let words = match (flight, step.is_quiet()) {
            (0, true) => "nothing waits".to_owned(),
            (0, false) => "nothing waits: the next step is about to be made".to_owned(),
            (1, _) => format!("nothing waits: 1 {} is in flight", member(step.dialect, None)),
            (many, _) => {
                format!("nothing waits: {many} {}s are in flight", member(step.dialect, None))
            }
        };
        let _ = writeln!(text, "  {words}");
    }
    write(&mut text, causes, now, Members::All);
    let budgets = budgets::lines(step, now);
    if !budgets.is_empty() {
        let _ = writeln!(text, "  budgets");
    }
    for line in budgets {
        let _ = writeln!(text, "    {line}");
    }
    let stay = disruptable::lines(step);
    if !stay.is_empty() {
        let _ = writeln!(text, "  {}", disruptable::HEADING);
    }
    for line in stay {
        let _ = writeln!(text, "    {line}");
    }
    text
}

/// A member and what holds it, in one rollout; `stays` is why it cannot be disrupted at all.
pub(crate) fn of_member(
    step: &Step,
    causes: &[Cause<'_>],
    stays: Option<&str>,
    now: Timestamp,
) -> String {
    let mut text = format!("{}\n", rollout::title(step));
    write(&mut text, causes, now, Members::InSentence);
    if let Some(stays) = stays {
        let _ = writeln!(text, "  {}: {}", disruptable::HEADING, plain(stays));
    }
    text
}

/// Whether members are listed below a sentence that counts them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Members {
    All,
    InSentence,
}

fn write(text: &mut String, causes: &[Cause<'_>], now: Timestamp, members: Members) {
    let mut number = 0;
    for cause in causes {
        let indent = "  ".repeat(cause.depth + 1);
        let mark = if cause.depth == 0 {
            number += 1;
            format!("{number}. ")
        } else {
            "└ ".to_owned()
        };
        let space = format!("{indent}{}", " ".repeat(mark.chars().count()));
        let _ = writeln!(text, "{indent}{mark}{}", told(cause, now));
        if members == Members::All && cause.members.len() > 1 {
            for line in wrapped(&cause.members, WIDTH.saturating_sub(space.len() + 2)) {
                let _ = writeln!(text, "{space}  {}", painted(DIM, &line));
            }
        }
        let remedy = cause.reason.map(convoy_plan::HoldReason::remedy).unwrap_or_default();
        if !remedy.is_empty() {
            let _ = writeln!(text, "{space}{} {}", painted(DIM, "freed when"), plain(&remedy));
        }
    }
}

fn told(cause: &Cause<'_>, now: Timestamp) -> String {
    let held = Held { group: cause.group, members: cause.members.clone() };
    let Some(reason) = cause.reason else {
        let names: Vec<String> = cause.members.iter().map(|name| plain(name)).collect();
        // Where all members are in one group, its name tells what they are.
        let group = match cause.step.groups.as_slice() {
            [only] => Some(only.name.as_str()),
            _ => None,
        };
        let noun = member(cause.step.dialect, group);
        return format!("{noun} {} is on its way", names.join(", "));
    };
    let until = cause.until.map(|at| format!(", until {}", time::at(at, now)));
    let sentence = sentence(cause.step.dialect, &held, reason);
    format!("{sentence}{}", until.unwrap_or_default())
}

/// All names, in lines of at most `width` characters.
fn wrapped(names: &[&SmolStr], width: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for (at, name) in names.iter().enumerate() {
        let separator = if at + 1 == names.len() { "" } else { "," };
        let word = format!("{}{separator}", plain(name));
        let line = lines.last_mut().expect("there is one");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(word);
            continue;
        }
        line.push_str(if line.is_empty() { "" } else { " " });
        line.push_str(&word);
    }
    lines
}

#[cfg(test)]
mod tests {
    use convoy_plan::{Hold, HoldReason, Verdict, explanation};
    use convoy_testkit::object;

    use super::*;

    /// No objects give rise to it.
    #[test]
    fn a_defect_says_whom_to_tell() {
        let rollout = object("skyhook.nvidia.com/v1alpha1", "Skyhook", "a").build();
        let mut step = Step::new("skyhook", &rollout, Verdict::Stopped);
        let panic = "index out of bounds".to_owned();
        step.holds.push(Hold::of_rollout(HoldReason::PlanFailed { panic }));
        let steps = [step];
        let causes = explanation::of_rollout(&steps, &steps[0]);
        let text = of_rollout(&steps[0], &causes, Timestamp::UNIX_EPOCH);
        let told =
            "planning failed (index out of bounds); this is a defect in Convoy: please report";
        assert!(text.contains(told), "{text}");
        assert!(text.contains("the defect is fixed"), "{text}");
    }

    #[test]
    fn every_name_is_printed() {
        let names: Vec<SmolStr> =
            (1..=9).map(|number| SmolStr::new(format!("n{number}"))).collect();
        let names: Vec<&SmolStr> = names.iter().collect();
        let lines = wrapped(&names, 12);
        assert_eq!(lines, ["n1, n2, n3,", "n4, n5, n6,", "n7, n8, n9"]);
    }
}
