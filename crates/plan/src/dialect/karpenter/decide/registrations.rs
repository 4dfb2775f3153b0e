//! Whether the machines of a pool become nodes: the last few results, which the pool carries.
//! Nothing depends on it; it tells people that a template does not work.

use jiff::Timestamp;
use smol_str::SmolStr;

use super::lifecycle;
use crate::condition::instant;
use crate::dialect::karpenter::names::{KWOK_NODE_CLASS, annotation};
use crate::dialect::karpenter::read::Cluster;
use crate::dialect::karpenter::read::claim::{self, Member};
use crate::snapshot::Snapshot;

/// How many results count.
const RESULTS: usize = 4;

/// So many failures among them mean that something is wrong.
const FAILURES: usize = 2;

/// The reason of the condition where a claim does not tell one.
pub(crate) const FAILED: &str = "RegistrationFailed";

/// The results of a pool, the oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Registrations {
    /// The generations of the pool and its node class that they are about.
    generations: String,
    /// Later results are not among them yet.
    until: Option<Timestamp>,
    results: Vec<bool>,
    /// Whether they were forgotten, because the pool or its class has changed.
    pub(crate) is_reset: bool,
    /// Reason and message of the last failure, if it is new.
    pub(crate) failure: Option<(SmolStr, String)>,
}

impl Registrations {
    /// The results that the pool carries, and those that its claims tell since.
    pub(crate) fn read(cluster: &Cluster<'_>, snapshot: &Snapshot<'_>) -> Self {
        let pool = cluster.pool();
        let class = pool.class.as_ref().map_or("", |class| &class.name);
        let class = snapshot.find(&KWOK_NODE_CLASS, "", class);
        let class = class.map_or(0, convoy_api::Object::generation);
        let generations = format!("{}.{class}", pool.object.generation());
        let noted = pool.object.annotation(annotation::REGISTRATIONS);
        let noted = noted.and_then(|text| Self::parse(text, &generations, cluster.now));
        let mut all = noted.unwrap_or(Self {
            generations,
            until: None,
            results: Vec::new(),
            is_reset: false,
            failure: None,
        });
        let members = cluster.own_members().filter(|(_, member)| is_owned(cluster, member));
        let mut told: Vec<(Timestamp, &Member<'_>, bool)> = members
            .filter_map(|(_, member)| result(member).map(|(at, is_good)| (at, member, is_good)))
            .filter(|(at, _, _)| all.until.is_none_or(|until| *at > until))
            .collect();
        told.sort_by_key(|(at, member, _)| (*at, member.name()));
        // Only the last ones are left in the end.
        for (at, member, is_good) in told.split_off(told.len().saturating_sub(RESULTS)) {
            all.add(at, is_good, || failure(member));
        }
        all
    }

    /// Reads what [`Self::note`] has written. Results about something else are forgotten.
    fn parse(text: &str, generations: &str, now: Timestamp) -> Option<Self> {
        let mut words = text.split(' ');
        let (about, until) = (words.next()?, words.next()?.parse().ok()?);
        let is_reset = about != generations;
        let results = words.next().unwrap_or_default().chars().filter(|_| !is_reset);
        Some(Self {
            generations: generations.to_owned(),
            until: Some(if is_reset { now } else { until }),
            results: results.map(|letter| letter == 'S').collect(),
            is_reset,
            failure: None,
        })
    }

    fn add(&mut self, at: Timestamp, is_good: bool, failure: impl Fn() -> (SmolStr, String)) {
        if self.results.len() == RESULTS {
            self.results.remove(0);
        }
        self.results.push(is_good);
        self.until = Some(at);
        if !is_good {
            self.failure = Some(failure());
        }
    }

    /// What the pool carries, if it is to be written: another result that changes nothing is not.
    pub(crate) fn note(&self, written: Option<&str>) -> Option<String> {
        let letters: String =
            self.results.iter().map(|good| if *good { 'S' } else { 'F' }).collect();
        let before = written.map(|text| {
            let mut words = text.split(' ');
            (words.next().unwrap_or_default(), words.nth(1).unwrap_or_default())
        });
        let now = (self.generations.as_str(), letters.as_str());
        if before == Some(now) || before.is_none() && letters.is_empty() {
            return None;
        }
        let until = instant(self.until?);
        Some(format!("{} {} {letters}", self.generations, until.as_str().unwrap_or_default()))
    }

    /// | results | healthy | because                                  |
    /// |---------|---------|------------------------------------------|
    /// | (none)  | unknown | nothing is known                         |
    /// | F       | unknown | one failure says little                  |
    /// | F S     | yes     | a success, and less than two failures    |
    /// | F S F   | no      | two failures                             |
    /// | F F S S | no      | both failures are still among the last 4 |
    pub(crate) fn are_healthy(&self) -> Option<bool> {
        let failures = self.results.iter().filter(|is_good| !**is_good).count();
        match self.results.len() - failures {
            _ if failures >= FAILURES => Some(false),
            0 => None,
            _ => Some(true),
        }
    }
}

/// Claims that somebody else made say nothing about the pool.
fn is_owned(cluster: &Cluster<'_>, member: &Member<'_>) -> bool {
    let owner = member.facts.owner.as_deref();
    owner.is_some() && owner == cluster.pool().object.uid()
}

/// When a claim succeeded or failed, if it did either.
fn result(member: &Member<'_>) -> Option<(Timestamp, bool)> {
    if let Some(registered) = &member.facts.registered {
        return Some((registered.since?, true));
    }
    let deleted = member.claim.deleted_at()?;
    let given_up = lifecycle::gives_up_at(member.claim).is_some_and(|at| at <= deleted);
    given_up.then_some((deleted, false))
}

/// Why a claim was given up: its launch says so itself.
fn failure(member: &Member<'_>) -> (SmolStr, String) {
    match claim::launch_refusal(member.claim) {
        Some((reason, message)) => (SmolStr::new(reason), message.to_owned()),
        None => (SmolStr::new_static(FAILED), "Failed to register node".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(letters: &str) -> Registrations {
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        Registrations::parse(&format!("1.1 {now} {letters}"), "1.1", now).unwrap()
    }

    #[test]
    fn two_failures_of_four_are_too_many() {
        let cases = [
            ("", None),
            ("F", None),
            ("S", Some(true)),
            ("FS", Some(true)),
            ("FSF", Some(false)),
            ("FFSS", Some(false)),
            ("FSSS", Some(true)),
        ];
        for (letters, healthy) in cases {
            assert_eq!(of(letters).are_healthy(), healthy, "{letters}");
        }
    }

    #[test]
    fn only_what_changes_something_is_written() {
        let why = || (SmolStr::default(), String::new());
        let later = "2026-01-01T00:01:00Z".parse().unwrap();
        let mut all = of("SSSS");
        let written = "1.1 2026-01-01T00:00:00Z SSSS";
        all.add(later, true, why);
        assert_eq!(all.note(Some(written)), None);
        all.add(later, false, why);
        assert_eq!(all.note(Some(written)).unwrap(), "1.1 2026-01-01T00:01:00Z SSSF");
        assert_eq!(of("").note(None), None);
        let reset = Registrations::parse(written, "2.1", later).unwrap();
        assert_eq!((reset.are_healthy(), reset.is_reset), (None, true));
        assert_eq!(reset.note(Some(written)).unwrap(), "2.1 2026-01-01T00:01:00Z ");
    }
}
