//! A forecast over several seeds: ranges instead of numbers, and how often something got stuck.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use convoy_api::ObjectKey;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::course::{Course, GroupPeak, RolloutCourse, secs};
use super::{ForecastError, Premise, Until};

/// The courses of the same premise under different seeds; at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct Outlook {
    pub courses: Vec<Course>,
}

/// The least, the middle and the most of several durations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub least: SignedDuration,
    pub median: SignedDuration,
    pub most: SignedDuration,
}

impl Outlook {
    /// Plays `count` seeds from `first` on, as many at the same time as there are processors.
    pub fn new(
        premise: &Premise,
        first: u64,
        count: u32,
        until: Until,
    ) -> Result<Self, ForecastError> {
        Self::counted(premise, first, count, until, &AtomicU32::new(0))
    }

    /// The same, and counts the seeds that have been played in `played`, for people who wait.
    pub fn counted(
        premise: &Premise,
        first: u64,
        count: u32,
        until: Until,
        played: &AtomicU32,
    ) -> Result<Self, ForecastError> {
        let seeds: Vec<u64> =
            (0..u64::from(count.max(1))).map(|at| first.wrapping_add(at)).collect();
        let workers = thread::available_parallelism().map_or(1, usize::from).min(seeds.len());
        let share = seeds.len().div_ceil(workers.max(1));
        let play_one = |seed: &u64| {
            let course = premise.play(*seed, until);
            played.fetch_add(1, Ordering::Relaxed);
            course
        };
        let courses: Vec<Result<Course, ForecastError>> = thread::scope(|scope| {
            let play = |seeds: &[u64]| -> Vec<_> { seeds.iter().map(play_one).collect() };
            let running: Vec<_> =
                seeds.chunks(share).map(|some| scope.spawn(move || play(some))).collect();
            running
                .into_iter()
                .flat_map(|run| run.join().expect("the simulation does not panic"))
                .collect()
        });
        Ok(Self { courses: courses.into_iter().collect::<Result<_, _>>()? })
    }

    pub fn rollouts(&self) -> impl Iterator<Item = &ObjectKey> {
        self.courses.iter().take(1).flat_map(|course| &course.rollouts).map(|rollout| &rollout.key)
    }

    /// One rollout in all courses.
    pub fn of<'o>(&'o self, key: &'o ObjectKey) -> impl Iterator<Item = &'o RolloutCourse> {
        let all = self.courses.iter().flat_map(|course| &course.rollouts);
        all.filter(move |rollout| rollout.key == *key)
    }

    /// How long a rollout takes where it finishes.
    pub fn duration(&self, key: &ObjectKey) -> Option<Range> {
        let mut all: Vec<SignedDuration> =
            self.of(key).filter_map(|rollout| rollout.finished).collect();
        all.sort_unstable();
        let (least, most) = (*all.first()?, *all.last()?);
        Some(Range { least, median: all[all.len() / 2], most })
    }

    /// In how many courses a rollout finishes.
    pub fn finished(&self, key: &ObjectKey) -> usize {
        self.of(key).filter(|rollout| rollout.is_done()).count()
    }

    /// The worst of every group of a rollout, over all courses.
    pub fn peaks(&self, key: &ObjectKey) -> Vec<GroupPeak> {
        let mut worst: Vec<GroupPeak> = Vec::new();
        for group in self.of(key).flat_map(|rollout| &rollout.groups) {
            match worst.iter_mut().find(|known| known.name == group.name) {
                Some(known) => known.worsen(group),
                None => worst.push(group.clone()),
            }
        }
        worst
    }

    /// For programs; the courses have the details.
    pub fn to_json(&self) -> Value {
        let rollout = |key: &ObjectKey| {
            let duration = self.duration(key).map(|range| {
                json!({"least": secs(range.least), "median": secs(range.median),
                    "most": secs(range.most)})
            });
            let peaks: Vec<Value> = self.peaks(key).iter().map(GroupPeak::to_json).collect();
            json!({"object": key.to_string(), "finished": self.finished(key),
                "durationSeconds": duration, "groups": peaks})
        };
        let start = self.courses.first().map(|course| course.start.to_string());
        json!({"start": start, "seeds": self.courses.len(),
            "rollouts": self.rollouts().map(rollout).collect::<Vec<_>>(),
            "courses": self.courses.iter().map(Course::to_json).collect::<Vec<_>>()})
    }
}
