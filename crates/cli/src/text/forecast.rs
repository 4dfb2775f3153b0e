//! Simulated rollouts as text: the timeline of one seed, and what all seeds have in common.

use std::fmt::Write;

use convoy_api::ObjectKey;
use convoy_plan::Verdict;
use convoy_sim::forecast::{
    Ending, Entry, GroupPeak, Happening, Outlook, Premise, Range, RolloutCourse,
};
use jiff::SignedDuration;

use super::style::{self, BAD, BUSY, CAREFUL, DIM, GOOD, HEADING, painted};
use super::table::{Cell, Table};
use super::words::{self, count, names, plain, target};
use super::{holds, time};

/// Maximum number of lines of a timeline; the first and the last ones are shown.
const LINES_MAX: usize = 60;
/// Lines at its end that are shown in any case.
const LAST_LINES: usize = 10;

/// The timeline of the first seed, and the summary.
pub(crate) fn outlook(premise: &Premise, outlook: &Outlook) -> String {
    let mut text = String::new();
    let seeds = count(outlook.courses.len(), "seed");
    let controllers = premise.controllers().join(", ");
    let _ = writeln!(text, "{}  {}, {seeds}, {controllers}", premise.start(), machines(premise));
    text.push('\n');
    if let Some(course) = outlook.courses.first() {
        let title = format!("timeline of seed {}", course.seed);
        let _ = writeln!(text, "{}", painted(HEADING, &title));
        timeline(&mut text, &course.timeline);
        if course.timeline.is_empty() {
            let _ = writeln!(text, "  nothing moves");
        }
        text.push('\n');
    }
    text.push_str(&summary(outlook));
    text
}

/// What is simulated beside the controllers, and whether it was made up.
fn machines(premise: &Premise) -> String {
    let invented = |is_invented: bool| if is_invented { " (none given)" } else { "" };
    let nodes = format!("{}{}", count(premise.nodes, "node"), invented(premise.has_invented_nodes));
    let pods = match premise.invented_pods {
        0 => String::new(),
        pods => format!(", {} (not among the objects)", count(pods, "pod")),
    };
    match premise.member_clusters() {
        0 => format!("{nodes}{pods}"),
        members => {
            let members = count(members, "member cluster");
            format!("{members}{} with {nodes}{pods}", invented(premise.has_invented_members))
        }
    }
}

/// How long every rollout takes, its groups at their worst, and what does not finish.
pub(crate) fn summary(outlook: &Outlook) -> String {
    let mut text = String::new();
    for key in outlook.rollouts() {
        let _ = writeln!(text, "{}: {}", painted(HEADING, &target(key)), result(outlook, key));
        groups(&mut text, &outlook.peaks(key));
        unfinished(&mut text, outlook, key);
    }
    text
}

/// Two simulations side by side.
pub(crate) fn comparison(base: &Outlook, other: &Outlook) -> String {
    let mut text = String::new();
    for key in base.rollouts() {
        let _ = writeln!(text, "{}", painted(HEADING, &target(key)));
        let headings = ["", "base", "other", "change"];
        let mut table = Table::new(&headings.map(Cell::heading));
        let durations = (base.duration(key), other.duration(key));
        let middle = |range: Option<Range>| range.map(|range| range.median);
        let duration = |range: Option<Range>| range.map_or_else(|| "-".to_owned(), spread);
        let differ = change(middle(durations.0), middle(durations.1));
        table.row(row("duration", &duration(durations.0), &duration(durations.1), differ));
        let finished = |of: &Outlook| format!("{} of {}", of.finished(key), of.courses.len());
        table.row(row("finished", &finished(base), &finished(other), String::new()));
        let others = other.peaks(key);
        for group in base.peaks(key) {
            let new = others.iter().find(|other| other.name == group.name);
            let Some(new) = new else { continue };
            let name = |what: &str| {
                let group = plain(&group.name);
                if group.is_empty() { what.to_owned() } else { format!("{group}: {what}") }
            };
            let numbers = [
                ("peak in flight", group.in_flight, new.in_flight),
                ("peak unavailable", group.unavailable, new.unavailable),
                ("failed", group.failed, new.failed),
            ];
            for (what, before, after) in numbers.into_iter().filter(|(_, one, two)| one + two > 0) {
                let differ = i64::from(after) - i64::from(before);
                let differ = if differ == 0 { String::new() } else { format!("{differ:+}") };
                table.row(row(&name(what), &before.to_string(), &after.to_string(), differ));
            }
        }
        table.write(&mut text, 2);
        for (name, of) in [("base", base), ("other", other)] {
            if of.finished(key) < of.courses.len() {
                let _ = writeln!(text, "  {}", painted(HEADING, name));
                unfinished(&mut text, of, key);
            }
        }
    }
    text
}

fn row(name: &str, base: &str, other: &str, change: String) -> Vec<Cell> {
    vec![Cell::new(name), Cell::new(base), Cell::new(other), Cell::new(change)]
}

/// `-26%`; empty if either is not known, or both are as long.
fn change(base: Option<SignedDuration>, other: Option<SignedDuration>) -> String {
    let (Some(base), Some(other)) = (base, other) else { return String::new() };
    let (base, other) = (base.as_millis(), other.as_millis());
    if base == 0 || base == other {
        String::new()
    } else {
        format!("{:+}%", (other - base) * 100 / base)
    }
}

/// `done after 1m 5s (58s to 1m 12s)`, in the style of what it means.
fn result(outlook: &Outlook, key: &ObjectKey) -> String {
    let (finished, all) = (outlook.finished(key), outlook.courses.len());
    let Some(range) = outlook.duration(key) else {
        let endings = outlook.courses.iter().all(|course| course.ending == Ending::TimeUp);
        let word = if endings { "not done when the time is up" } else { "gets stuck" };
        let verdict = outlook.of(key).next().map_or(Verdict::Held, RolloutCourse::verdict);
        return format!("{} ({})", painted(BAD, word), words::verdict(verdict));
    };
    let done = painted(GOOD, &format!("done after {}", spread(range)));
    if finished == all {
        return done;
    }
    let seeds = count(all, "seed");
    format!("{done}, and {} in {} of {seeds}", painted(BAD, "not done"), all - finished)
}

/// `1m 5s (58s to 1m 12s)`.
fn spread(range: Range) -> String {
    let Range { least, median, most } = range;
    let median = time::length(median);
    if least == most {
        return median;
    }
    format!("{median} ({} to {})", time::length(least), time::length(most))
}

fn groups(text: &mut String, groups: &[GroupPeak]) {
    if groups.is_empty() {
        return;
    }
    let headings = [
        Cell::heading("group"),
        Cell::heading("members").right(),
        Cell::heading("peak in flight").right(),
        Cell::heading("ceiling").right(),
        Cell::heading("peak unavailable").right(),
        Cell::heading("failed").right(),
    ];
    let mut table = Table::new(&headings);
    for group in groups {
        let number = |number: u32| Cell::new(number.to_string()).right();
        let name = if group.name.is_empty() { "all".to_owned() } else { plain(&group.name) };
        let ceiling = group.ceiling.map_or_else(|| "-".to_owned(), |ceiling| ceiling.to_string());
        let unavailable = match group.unavailable {
            0 => "0".to_owned(),
            most => format!("{most} (at +{})", time::length(group.unavailable_at)),
        };
        let failed = number(group.failed);
        let failed = if group.failed > 0 { failed.styled(BAD) } else { failed };
        table.row(vec![
            Cell::new(name),
            number(group.members),
            number(group.in_flight),
            Cell::new(ceiling).right(),
            Cell::new(unavailable).right(),
            failed,
        ]);
    }
    table.write(text, 2);
}

/// Why a rollout did not finish, under the first seed in which it did not.
fn unfinished(text: &mut String, outlook: &Outlook, key: &ObjectKey) {
    let mut courses = outlook.courses.iter();
    let first = courses.find_map(|course| {
        let rollout = course.unfinished().find(|rollout| rollout.key == *key)?;
        Some((course, rollout.last.as_ref()?))
    });
    let Some((course, step)) = first else { return };
    let end = course.start.checked_add(course.took).unwrap_or(course.start);
    let (done, total) = step.progress();
    let since = time::length(course.took);
    let words = format!("seed {}: {done} of {total} done, no change after {since}", course.seed);
    let _ = writeln!(text, "  {}", painted(CAREFUL, &words));
    holds::write(text, step, end);
}

/// How long something took, in words.
pub(crate) fn length(took: SignedDuration) -> String {
    time::length(took)
}

fn timeline(text: &mut String, entries: &[Entry]) {
    let mut table = Table::new(&[]);
    let left_out = entries.len().saturating_sub(LINES_MAX);
    let first = if left_out > 0 { LINES_MAX - LAST_LINES } else { entries.len() };
    for (index, entry) in entries.iter().enumerate() {
        if index == first && left_out > 0 {
            let more = format!("… {}; -o json lists all", count(left_out, "more line"));
            let mut cells = vec![Cell::new(""); 3];
            cells.push(Cell::new(more).styled(DIM));
            table.row(cells);
        }
        if index < first || index >= first + left_out {
            table.row(line(entry));
        }
    }
    table.write(text, 2);
}

fn line(entry: &Entry) -> Vec<Cell> {
    let (word, style, sentence) = match &entry.happening {
        Happening::Acts { verb, targets, message } => {
            (*verb, BUSY, format!("{}: {}", moved(targets), plain(message)))
        }
        Happening::Warns { reason, message } => (reason.as_str(), BAD, plain(message)),
        Happening::Turns { verdict, why, until } => {
            let until = until.map(|until| format!(" until {until}")).unwrap_or_default();
            let sentence = format!("{}{until}", plain(why));
            (words::verdict(*verdict), style::of_verdict(*verdict), sentence)
        }
    };
    vec![
        Cell::new(format!("+{}", time::length(entry.at))).right(),
        Cell::new(target(&entry.rollout)),
        Cell::new(word).styled(style),
        Cell::new(sentence),
    ]
}

/// `Nodes a, b and 3 more`.
fn moved(targets: &[ObjectKey]) -> String {
    match targets {
        [] => String::new(),
        [only] => target(only),
        [first, ..] => {
            let short: Vec<&str> = targets.iter().map(|key| key.name.as_str()).collect();
            format!("{} {}", words::plural(&plain(&first.kind.kind)), names(&short))
        }
    }
}
