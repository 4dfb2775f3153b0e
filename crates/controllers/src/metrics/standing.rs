//! Where all rollouts stand: how many have each verdict, how many members are in each state, how
//! full their limits are, and how long rollouts take. Sums over each dialect, so that they cost the
//! same for ten rollouts and for ten thousand.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use convoy_plan::{Step, Verdict};
use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::rollout::Rollout;

/// A ceiling from here on means that there is none.
const NO_CEILING: u32 = i32::MAX as u32;

#[derive(Debug)]
pub(super) struct Standings {
    rollouts: Family<VerdictLabels, Gauge>,
    members: Family<StateLabels, Gauge>,
    in_flight: Family<DialectLabels, Gauge>,
    ceiling: Family<DialectLabels, Gauge>,
    took: Family<DialectLabels, Histogram, fn() -> Histogram>,
    recorded: Mutex<RecordedStandings>,
}

/// A decision about a rollout, whose object was created then.
pub(crate) struct Decision<'d> {
    pub(crate) rollout: &'d Rollout,
    pub(crate) step: &'d Step,
    pub(crate) created: Option<Timestamp>,
    pub(crate) now: Timestamp,
}

#[derive(Debug, Default)]
struct RecordedStandings {
    by_rollout: BTreeMap<Rollout, (&'static str, Standing)>,
    /// When the first decision was made.
    since: Option<Timestamp>,
}

/// Where one rollout stands.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Standing {
    verdict: Verdict,
    /// Members by state, in the order of [`STATES`].
    members: [i64; 6],
    in_flight: i64,
    ceiling: i64,
    /// When it left `Done`, or was created; `None` if it is done, or began before this process.
    began: Option<Timestamp>,
}

const STATES: [&str; 6] = ["waiting", "moving", "settling", "done", "failed", "gone"];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VerdictLabels {
    dialect: &'static str,
    verdict: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    dialect: &'static str,
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DialectLabels {
    dialect: &'static str,
}

impl Default for Standings {
    fn default() -> Self {
        // From ten seconds to a week.
        let histogram: fn() -> Histogram = || {
            Histogram::new([10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 86400.0, 604_800.0])
        };
        Self {
            rollouts: Family::default(),
            members: Family::default(),
            in_flight: Family::default(),
            ceiling: Family::default(),
            took: Family::new_with_constructor(histogram),
            recorded: Mutex::default(),
        }
    }
}

impl Standings {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("convoy_rollouts", "Rollouts, by verdict", self.rollouts.clone());
        registry.register("convoy_members", "Members of rollouts, by state", self.members.clone());
        registry.register(
            "convoy_in_flight",
            "Members in flight in groups with a ceiling, of rollouts that are not done",
            self.in_flight.clone(),
        );
        registry.register(
            "convoy_ceiling",
            "The most members in flight, of all groups with a ceiling, of rollouts that are not done",
            self.ceiling.clone(),
        );
        registry.register(
            "convoy_rollout_seconds",
            "Time from the beginning of a rollout until it is done",
            self.took.clone(),
        );
    }

    pub(super) fn decided(&self, decision: &Decision<'_>) {
        let Decision { rollout, step, created, now } = *decision;
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        let since = *recorded.since.get_or_insert(now);
        let before = recorded.by_rollout.get(rollout).map(|(_, standing)| standing);
        let mut after = Standing::of(step);
        // There from the first decision on, so that the first rollout counts as an increase.
        let took = self.took.get_or_create(&DialectLabels { dialect: step.dialect });
        if step.verdict == Verdict::Done {
            if let Some(began) = before.and_then(|before| before.began) {
                took.observe(now.duration_since(began).as_secs_f64().max(0.0));
            }
        } else {
            after.began = match before {
                Some(before) if before.verdict == Verdict::Done => Some(now),
                Some(before) => before.began,
                None => created.filter(|created| *created >= since),
            };
        }
        if before == Some(&after) {
            return;
        }
        self.change(step.dialect, before, Some(&after));
        recorded.by_rollout.insert(rollout.clone(), (step.dialect, after));
    }

    /// A rollout is gone.
    pub(super) fn remove(&self, rollout: &Rollout) {
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((dialect, standing)) = recorded.by_rollout.remove(rollout) {
            self.change(dialect, Some(&standing), None);
        }
    }

    fn change(&self, dialect: &'static str, before: Option<&Standing>, after: Option<&Standing>) {
        let labels = DialectLabels { dialect };
        for (standing, sign) in [(before, -1), (after, 1)] {
            let Some(standing) = standing else { continue };
            let verdict = format!("{:?}", standing.verdict);
            self.rollouts.get_or_create(&VerdictLabels { dialect, verdict }).inc_by(sign);
            for (state, count) in STATES.into_iter().zip(standing.members) {
                self.members.get_or_create(&StateLabels { dialect, state }).inc_by(sign * count);
            }
            self.in_flight.get_or_create(&labels).inc_by(sign * standing.in_flight);
            self.ceiling.get_or_create(&labels).inc_by(sign * standing.ceiling);
        }
    }
}

impl Standing {
    fn of(step: &Step) -> Self {
        let mut standing =
            Self { verdict: step.verdict, members: [0; 6], in_flight: 0, ceiling: 0, began: None };
        for group in &step.groups {
            let counts =
                [group.waiting, group.moving, group.settling, group.done, group.failed, group.gone];
            for (sum, count) in standing.members.iter_mut().zip(counts) {
                *sum += i64::from(count);
            }
            let ceiling = group.ceiling.filter(|ceiling| *ceiling < NO_CEILING);
            if let Some(ceiling) = ceiling.filter(|_| step.verdict != Verdict::Done) {
                standing.in_flight += i64::from(group.moving);
                standing.ceiling += i64::from(ceiling);
            }
        }
        standing
    }
}

#[cfg(test)]
mod tests {
    use convoy_api::GroupKind;
    use convoy_plan::{GroupReport, MemberState};
    use convoy_testkit::object;

    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_second(1_767_225_600 + secs).expect("a valid time")
    }

    fn rollout(name: &str) -> Rollout {
        Rollout { dialect: 0, key: GroupKind::new("apps", "Deployment").key("shop", name) }
    }

    fn step(verdict: Verdict, moving: u32) -> Step {
        let web = object("apps/v1", "Deployment", "web").build();
        let mut step = Step::new("apps", &web, verdict);
        let mut group = GroupReport::new("new");
        (0..moving).for_each(|_| group.count(MemberState::Moving));
        group.ceiling = Some(3);
        step.groups = vec![group];
        step
    }

    /// A decision about a rollout whose object was created at `created`.
    fn decided(standings: &Standings, name: &str, step: &Step, created: Option<i64>, now: i64) {
        let (rollout, created, now) = (&rollout(name), created.map(at), at(now));
        standings.decided(&Decision { rollout, step, created, now });
    }

    /// What is served has these lines.
    fn tells(standings: &Standings, lines: &[&str]) {
        let mut registry = Registry::default();
        standings.register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).expect("a string");
        for line in lines {
            assert!(text.lines().any(|told| told == *line), "{line} is not in {text}");
        }
    }

    #[test]
    fn sums_follow_the_newest_decisions() {
        let standings = Standings::default();
        // The second time nothing has changed.
        for _ in 0..2 {
            decided(&standings, "web", &step(Verdict::Moving, 2), None, 0);
            decided(&standings, "db", &step(Verdict::Held, 1), None, 0);
            tells(
                &standings,
                &[
                    r#"convoy_rollouts{dialect="apps",verdict="Moving"} 1"#,
                    r#"convoy_members{dialect="apps",state="moving"} 3"#,
                    r#"convoy_in_flight{dialect="apps"} 3"#,
                    r#"convoy_ceiling{dialect="apps"} 6"#,
                ],
            );
        }
        decided(&standings, "web", &step(Verdict::Done, 0), None, 9);
        standings.remove(&rollout("db"));
        tells(
            &standings,
            &[
                r#"convoy_rollouts{dialect="apps",verdict="Done"} 1"#,
                r#"convoy_rollouts{dialect="apps",verdict="Held"} 0"#,
                r#"convoy_in_flight{dialect="apps"} 0"#,
                r#"convoy_ceiling{dialect="apps"} 0"#,
            ],
        );
    }

    /// A process that starts in the middle of a rollout does not know when it began.
    #[test]
    fn only_rollouts_that_were_seen_from_their_beginning_are_timed() {
        let standings = Standings::default();
        let passes = |name: &str, verdict, created: i64, now: i64| {
            decided(&standings, name, &step(verdict, 0), Some(created), now);
        };
        passes("old", Verdict::Moving, -900, 0);
        passes("old", Verdict::Done, -900, 5);
        tells(&standings, &[r#"convoy_rollout_seconds_count{dialect="apps"} 0"#]);
        passes("old", Verdict::Moving, -900, 10);
        passes("old", Verdict::Held, -900, 20);
        passes("old", Verdict::Done, -900, 50);
        passes("new", Verdict::Moving, 50, 51);
        passes("new", Verdict::Done, 50, 60);
        tells(
            &standings,
            &[
                r#"convoy_rollout_seconds_count{dialect="apps"} 2"#,
                r#"convoy_rollout_seconds_sum{dialect="apps"} 50.0"#,
            ],
        );
    }
}
