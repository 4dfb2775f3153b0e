//! A picture of simulated rollouts: a band for each group, in which members become done over time.

use std::fmt::Write;

use convoy_plan::GroupReport;
use convoy_sim::forecast::{Course, Outlook, RolloutCourse};
use jiff::SignedDuration;

use crate::text::forecast::length;

const WIDTH: f64 = 960.0;
/// Where the bands begin; names of groups are left of it.
const LEFT: f64 = 190.0;
const RIGHT: f64 = 20.0;
const BAND: f64 = 56.0;
const GAP: f64 = 14.0;
const TITLE: f64 = 34.0;
const AXIS: f64 = 30.0;
const TICKS: i32 = 5;
/// How many members of a group are in a state.
type Count = fn(&GroupReport) -> u32;

/// States from the bottom of a band upwards, with their colours.
const STATES: [(&str, &str, Count); 3] = [
    ("done", "#3f9c5a", |group| group.done),
    ("in flight", "#e0a526", |group| group.moving + group.settling),
    ("failed", "#c8413b", |group| group.failed),
];

/// The first course of an outlook as SVG.
pub(crate) fn svg(outlook: &Outlook) -> String {
    let Some(course) = outlook.courses.first() else { return String::new() };
    let mut body = String::new();
    let mut top = 10.0;
    for rollout in &course.rollouts {
        top = picture(&mut body, course, rollout, top);
    }
    legend(&mut body, top);
    let height = top + AXIS;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{body}</svg>\n"
    )
}

/// One rollout from `top` on; returns where it ends.
fn picture(body: &mut String, course: &Course, rollout: &RolloutCourse, mut top: f64) -> f64 {
    let key = &rollout.key;
    let title = format!("{} {}", key.kind.kind, key.name);
    let _ = writeln!(
        body,
        "<text x=\"10\" y=\"{:.1}\" font-weight=\"bold\">{}</text>",
        top + 16.0,
        escaped(&title)
    );
    top += TITLE;
    let mut groups: Vec<&str> = Vec::new();
    for group in rollout.samples.iter().flat_map(|sample| &sample.groups) {
        if group.total > 0 && !groups.contains(&group.name.as_str()) {
            groups.push(&group.name);
        }
    }
    for group in groups {
        band(body, course.took, rollout, group, top);
        top += BAND + GAP;
    }
    axis(body, course.took, top);
    top + AXIS
}

/// One group: its members by state, stacked, as steps over time.
fn band(body: &mut String, took: SignedDuration, rollout: &RolloutCourse, name: &str, top: f64) {
    let reports: Vec<(f64, Option<&GroupReport>)> = rollout
        .samples
        .iter()
        .map(|sample| (x(sample.at, took), sample.groups.iter().find(|group| group.name == name)))
        .collect();
    let most = reports.iter().filter_map(|(_, group)| group.map(|group| group.total)).max();
    let most = f64::from(most.unwrap_or(1).max(1));
    let _ = writeln!(
        body,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{} ({most})</text>\n\
         <rect x=\"{LEFT}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{BAND}\" fill=\"#eef0f2\"/>",
        LEFT - 8.0,
        top + BAND / 2.0 + 4.0,
        escaped(if name.is_empty() { "-" } else { name }),
        WIDTH - LEFT - RIGHT,
    );
    for upto in (0..STATES.len()).rev() {
        let level = |group: Option<&GroupReport>| -> f64 {
            let states = STATES.iter().take(upto + 1);
            group.map_or(0.0, |group| states.map(|(_, _, count)| f64::from(count(group))).sum())
        };
        let (bottom, mut points) = (top + BAND, String::new());
        let _ = write!(points, "{LEFT:.1},{bottom:.1}");
        let mut last = bottom;
        for (at, group) in &reports {
            let y = bottom - BAND * level(*group) / most;
            let _ = write!(points, " {at:.1},{last:.1} {at:.1},{y:.1}");
            last = y;
        }
        let end = WIDTH - RIGHT;
        let _ = write!(points, " {end:.1},{last:.1} {end:.1},{bottom:.1}");
        let _ = writeln!(body, "<polygon fill=\"{}\" points=\"{points}\"/>", STATES[upto].1);
    }
}

fn axis(body: &mut String, took: SignedDuration, top: f64) {
    for tick in 0..=TICKS {
        let at = took * tick / TICKS;
        let _ = writeln!(
            body,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#555555\">+{}</text>",
            x(at, took),
            top + 4.0,
            length(at)
        );
    }
}

fn legend(body: &mut String, top: f64) {
    let mut left = LEFT;
    for (name, colour, _) in STATES {
        let _ = writeln!(
            body,
            "<rect x=\"{left:.1}\" y=\"{:.1}\" width=\"12\" height=\"12\" fill=\"{colour}\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\">{name}</text>",
            top,
            left + 18.0,
            top + 11.0
        );
        left += 90.0;
    }
}

fn x(at: SignedDuration, took: SignedDuration) -> f64 {
    let share = if took.is_zero() { 0.0 } else { at.as_secs_f64() / took.as_secs_f64() };
    LEFT + share * (WIDTH - LEFT - RIGHT)
}

/// Text that XML takes for text.
fn escaped(text: &str) -> String {
    let mut safe = String::new();
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            letter if letter.is_control() => safe.push(' '),
            letter => safe.push(letter),
        }
    }
    safe
}
