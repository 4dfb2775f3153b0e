//! The committed list of specs: which pass, which fail and why, and which cannot run and why.
//!
//! A line has four columns, separated by tabs: the home, the state, the spec, and the reason. A spec
//! that passes has no reason, every other one has.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter, Write};

use anyhow::{Context, Result, bail, ensure};

/// The API server that a spec runs against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Home {
    /// `convoy up` with simulated nodes.
    Embedded,
    /// A kube-apiserver with `convoy run` and simulated nodes.
    Real,
}

/// A spec by its home and its full name.
pub(super) type Key = (Home, String);

/// What the list says about a spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Pass,
    Fail(String),
    CannotRun(String),
}

/// How a spec ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SpecResult {
    Passed,
    /// With the message of the failure.
    Failed(String),
    /// By the suite itself, with its reason.
    Skipped(String),
}

/// A spec whose outcome is not what the list says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) key: Key,
    /// Nothing, if the list does not have the spec.
    pub(super) listed: Option<State>,
    pub(super) outcome: SpecResult,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct List(pub(super) BTreeMap<Key, State>);

/// How many specs are in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) pass: usize,
    pub(super) fail: usize,
    pub(super) cannot_run: usize,
}

const HEADER: &str = "# home\tstate\tspec\treason\n";

impl List {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut specs = BTreeMap::new();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
            let entry = entry(line).with_context(|| format!("line {}: {line:?}", index + 1))?;
            let repeated = specs.insert(entry.0, entry.1).is_some();
            ensure!(!repeated, "line {}: the spec is listed twice", index + 1);
        }
        Ok(Self(specs))
    }

    pub(super) fn text(&self) -> String {
        let mut text = HEADER.to_owned();
        for ((home, spec), state) in &self.0 {
            let (word, reason) = match state {
                State::Pass => ("pass", ""),
                State::Fail(reason) => ("fail", reason.as_str()),
                State::CannotRun(reason) => ("cannot run", reason.as_str()),
            };
            let line = format!("{home}\t{word}\t{spec}\t{reason}");
            writeln!(text, "{}", line.trim_end()).expect("a String takes everything");
        }
        text
    }

    /// The outcomes that are not what the list says.
    pub(super) fn differences(&self, outcomes: &BTreeMap<Key, SpecResult>) -> Vec<Difference> {
        let differs = outcomes.iter().filter(|(key, outcome)| match (self.0.get(key), outcome) {
            (Some(State::Pass), SpecResult::Passed)
            | (Some(State::Fail(_)), SpecResult::Failed(_)) => false,
            // It may fail as well, if somebody runs it all the same.
            (Some(State::CannotRun(_)), outcome) => **outcome == SpecResult::Passed,
            _ => true,
        });
        let difference = |(key, outcome): (&Key, &SpecResult)| Difference {
            key: key.clone(),
            listed: self.0.get(key).cloned(),
            outcome: outcome.clone(),
        };
        differs.map(difference).collect()
    }

    /// Takes over outcomes. Reasons stay as long as their specs do not pass; a new one is the first
    /// line of the message, for somebody to replace.
    pub(super) fn update(&mut self, outcomes: &BTreeMap<Key, SpecResult>) {
        for Difference { key, listed: _, outcome } in self.differences(outcomes) {
            let state = match outcome {
                SpecResult::Passed => State::Pass,
                SpecResult::Failed(message) => State::Fail(first_line(&message)),
                SpecResult::Skipped(message) => State::CannotRun(first_line(&message)),
            };
            self.0.insert(key, state);
        }
    }

    pub(super) fn counts(&self, counted: impl Fn(&Key) -> bool) -> Counts {
        let mut counts = Counts::default();
        for (_, state) in self.0.iter().filter(|(key, _)| counted(key)) {
            match state {
                State::Pass => counts.pass += 1,
                State::Fail(_) => counts.fail += 1,
                State::CannotRun(_) => counts.cannot_run += 1,
            }
        }
        counts
    }
}

fn entry(line: &str) -> Result<(Key, State)> {
    let mut columns = line.split('\t');
    let mut column = |name| columns.next().with_context(|| format!("the {name} is missing"));
    let (home, word, spec) = (column("home")?, column("state")?, column("spec")?);
    let reason = columns.next().unwrap_or_default().to_owned();
    ensure!(columns.next().is_none(), "there are more than four columns");
    let home = match home {
        "up" => Home::Embedded,
        "run" => Home::Real,
        _ => bail!("unknown home {home:?}: use \"up\" or \"run\""),
    };
    let state = match word {
        "pass" => State::Pass,
        "fail" => State::Fail(reason.clone()),
        "cannot run" => State::CannotRun(reason.clone()),
        _ => bail!("unknown state {word:?}: use \"pass\", \"fail\" or \"cannot run\""),
    };
    ensure!(reason.is_empty() == (state == State::Pass), "a spec has a reason unless it passes");
    Ok(((home, spec.to_owned()), state))
}

/// The first line of a message, as a column.
pub(super) fn first_line(message: &str) -> String {
    let mut lines = message.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.next().unwrap_or("no message").replace('\t', " ")
}

impl Counts {
    pub(super) fn can_run(self) -> usize {
        self.pass + self.fail
    }
}

impl Display for Counts {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let can_run = self.can_run();
        // In tenths of a percent, rounded down: 100.0% means all.
        let tenths = self.pass * 1000 / can_run.max(1);
        write!(f, "{} of {can_run} pass ({}.{}%)", self.pass, tenths / 10, tenths % 10)?;
        write!(f, ", {} cannot run", self.cannot_run)
    }
}

impl Display for Home {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Embedded => "up",
            Self::Real => "run",
        })
    }
}

impl Display for Difference {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (home, spec) = &self.key;
        let listed = match &self.listed {
            None => "not listed".to_owned(),
            Some(State::Pass) => "listed as pass".to_owned(),
            Some(State::Fail(reason)) => format!("listed as fail ({reason})"),
            Some(State::CannotRun(reason)) => format!("listed as cannot run ({reason})"),
        };
        let outcome = match &self.outcome {
            SpecResult::Passed => "passed".to_owned(),
            SpecResult::Failed(message) => format!("failed: {}", first_line(message)),
            SpecResult::Skipped(message) => format!("was skipped: {}", first_line(message)),
        };
        write!(f, "{home}: {spec}\n    {listed}, {outcome}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "# home\tstate\tspec\treason\n\
        up\tcannot run\t[sig-node] logs [Conformance]\tno containers\n\
        up\tfail\t[sig-apps] quota\tnot enforced\n\
        up\tpass\t[sig-apps] jobs [Conformance]\n\
        run\tpass\t[sig-apps] jobs [Conformance]\n";

    fn list() -> List {
        List::parse(LIST).unwrap()
    }

    fn outcomes(outcomes: &[(&str, SpecResult)]) -> BTreeMap<Key, SpecResult> {
        let embedded = |spec: &&str| (Home::Embedded, (*spec).to_owned());
        outcomes.iter().map(|(spec, outcome)| (embedded(spec), outcome.clone())).collect()
    }

    #[test]
    fn a_list_is_sorted_and_stays_the_same_otherwise() {
        let text = list().text();
        assert_eq!(List::parse(&text).unwrap(), list());
        let (mut sorted, mut lines): (Vec<_>, Vec<_>) =
            (text.lines().collect(), LIST.lines().collect());
        sorted.sort_unstable();
        lines.sort_unstable();
        assert_eq!(sorted, lines);
    }

    #[test]
    fn lines_that_say_too_little_are_refused() {
        let refused = [
            ("up\tpass", "the spec is missing"),
            ("down\tpass\ta", "unknown home"),
            ("up\tmaybe\ta", "unknown state"),
            ("up\tfail\ta", "a reason unless it passes"),
            ("up\tpass\ta\tbecause", "a reason unless it passes"),
            ("up\tfail\ta\tb\tc", "more than four"),
            ("up\tpass\ta\nup\tpass\ta", "listed twice"),
        ];
        for (text, why) in refused {
            let error = format!("{:#}", List::parse(text).unwrap_err());
            assert!(error.contains(why), "{text:?}: {error}");
        }
    }

    #[test]
    fn a_difference_is_a_failure_a_pass_or_a_spec_that_nobody_listed() {
        let failed = || SpecResult::Failed("timed out\nat line 7".to_owned());
        let same = outcomes(&[
            ("[sig-apps] jobs [Conformance]", SpecResult::Passed),
            ("[sig-apps] quota", failed()),
            ("[sig-node] logs [Conformance]", failed()),
        ]);
        assert_eq!(list().differences(&same), []);
        let other = outcomes(&[
            ("[sig-apps] jobs [Conformance]", failed()),
            ("[sig-apps] quota", SpecResult::Passed),
            ("[sig-apps] new", SpecResult::Passed),
        ]);
        let shown: Vec<String> =
            list().differences(&other).iter().map(Difference::to_string).collect();
        let expected = [
            "up: [sig-apps] jobs [Conformance]\n    listed as pass, failed: timed out",
            "up: [sig-apps] new\n    not listed, passed",
            "up: [sig-apps] quota\n    listed as fail (not enforced), passed",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn an_update_keeps_reasons_and_adds_the_first_line_of_a_message() {
        let mut updated = list();
        updated.update(&outcomes(&[
            (
                "[sig-apps] jobs [Conformance]",
                SpecResult::Failed("\n  timed\tout\nat line 7".to_owned()),
            ),
            ("[sig-apps] quota", SpecResult::Failed("another message".to_owned())),
            ("[sig-apps] skipped", SpecResult::Skipped("needs a cloud".to_owned())),
        ]));
        let state = |spec: &str| updated.0[&(Home::Embedded, spec.to_owned())].clone();
        assert_eq!(state("[sig-apps] jobs [Conformance]"), State::Fail("timed out".to_owned()));
        assert_eq!(state("[sig-apps] quota"), State::Fail("not enforced".to_owned()));
        assert_eq!(state("[sig-apps] skipped"), State::CannotRun("needs a cloud".to_owned()));
        assert!(List::parse(&updated.text()).is_ok());
    }

    #[test]
    fn percentages_are_of_the_specs_that_can_run() {
        let counts = list().counts(|(home, _)| *home == Home::Embedded);
        assert_eq!(counts, Counts { pass: 1, fail: 1, cannot_run: 1 });
        assert_eq!(counts.to_string(), "1 of 2 pass (50.0%), 1 cannot run");
        let all_but_one = Counts { pass: 1999, fail: 1, cannot_run: 0 };
        assert_eq!(all_but_one.to_string(), "1999 of 2000 pass (99.9%), 0 cannot run");
    }
}
