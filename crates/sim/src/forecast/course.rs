//! What happened in one simulation: a timeline, and how each rollout fared.

use convoy_api::ObjectKey;
use convoy_plan::{GroupReport, Step, Verdict};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// The course of events under one seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Course {
    pub seed: u64,
    pub start: Timestamp,
    /// Until the last change of any rollout.
    pub took: SignedDuration,
    pub ending: Ending,
    pub timeline: Vec<Entry>,
    pub rollouts: Vec<RolloutCourse>,
}

/// How a simulation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Done,
    /// Nothing changed any more, and something was not done.
    Stuck,
    TimeUp,
}

/// A line of the timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Since the start.
    pub at: SignedDuration,
    pub rollout: ObjectKey,
    pub happening: Happening,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// Members are moved, with the words of the decision.
    Acts { verb: &'static str, targets: Vec<ObjectKey>, message: String },
    /// What somebody would have to act on.
    Warns { reason: String, message: String },
    /// The rollout stands elsewhere, perhaps until an instant.
    Turns { verdict: Verdict, why: String, until: Option<Timestamp> },
}

/// How one rollout fared.
#[derive(Clone, Debug, PartialEq)]
pub struct RolloutCourse {
    pub key: ObjectKey,
    /// When it was done for good, since the start.
    pub finished: Option<SignedDuration>,
    pub groups: Vec<GroupPeak>,
    /// The last decision, without its writes; none if nothing was decided.
    pub last: Option<Step>,
    pub samples: Vec<Sample>,
}

/// The worst of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupPeak {
    pub name: String,
    pub members: u32,
    pub ceiling: Option<u32>,
    /// The most members that were in flight at once.
    pub in_flight: u32,
    /// The most members that were unavailable at once, and when that began.
    pub unavailable: u32,
    pub unavailable_at: SignedDuration,
    pub failed: u32,
}

/// How far the groups of a rollout were at an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    pub at: SignedDuration,
    pub groups: Vec<GroupReport>,
}

impl RolloutCourse {
    pub fn is_done(&self) -> bool {
        self.finished.is_some()
    }

    pub fn verdict(&self) -> Verdict {
        self.last.as_ref().map_or(Verdict::Held, |step| step.verdict)
    }
}

impl Course {
    /// The rollouts that did not finish.
    pub fn unfinished(&self) -> impl Iterator<Item = &RolloutCourse> {
        self.rollouts.iter().filter(|rollout| !rollout.is_done())
    }

    /// For programs.
    pub fn to_json(&self) -> Value {
        let ending = match self.ending {
            Ending::Done => "Done",
            Ending::Stuck => "Stuck",
            Ending::TimeUp => "TimeUp",
        };
        let timeline: Vec<Value> = self.timeline.iter().map(Entry::to_json).collect();
        let rollouts: Vec<Value> = self.rollouts.iter().map(RolloutCourse::to_json).collect();
        json!({"seed": self.seed, "ending": ending, "tookSeconds": secs(self.took),
            "rollouts": rollouts, "timeline": timeline})
    }
}

impl Entry {
    fn to_json(&self) -> Value {
        let mut line = json!({"atSeconds": secs(self.at), "rollout": self.rollout.to_string()});
        let more = match &self.happening {
            Happening::Acts { verb, targets, message } => {
                let targets: Vec<String> = targets.iter().map(ToString::to_string).collect();
                json!({"verb": verb, "targets": targets, "message": message})
            }
            Happening::Warns { reason, message } => json!({"warning": reason, "message": message}),
            Happening::Turns { verdict, why, until } => {
                json!({"verdict": verdict, "message": why,
                    "until": until.map(|until| until.to_string())})
            }
        };
        if let (Value::Object(line), Value::Object(more)) = (&mut line, more) {
            line.extend(more);
        }
        line
    }
}

impl RolloutCourse {
    fn to_json(&self) -> Value {
        let sample =
            |sample: &Sample| json!({"atSeconds": secs(sample.at), "groups": sample.groups});
        let (done, total) = self.last.as_ref().map_or((0, 0), Step::progress);
        let holds = self.last.as_ref().filter(|_| !self.is_done()).map(|step| &step.holds);
        json!({"object": self.key.to_string(), "verdict": self.verdict(),
            "finishedSeconds": self.finished.map(secs), "done": done, "members": total,
            "groups": self.groups.iter().map(GroupPeak::to_json).collect::<Vec<_>>(), "holds": holds,
            "samples": self.samples.iter().map(sample).collect::<Vec<_>>()})
    }
}

impl GroupPeak {
    /// The worse of both.
    pub(super) fn worsen(&mut self, other: &Self) {
        self.members = self.members.max(other.members);
        self.ceiling = self.ceiling.max(other.ceiling);
        self.in_flight = self.in_flight.max(other.in_flight);
        self.failed = self.failed.max(other.failed);
        if other.unavailable > self.unavailable {
            (self.unavailable, self.unavailable_at) = (other.unavailable, other.unavailable_at);
        }
    }

    pub(super) fn to_json(&self) -> Value {
        json!({"name": self.name, "members": self.members, "ceiling": self.ceiling,
            "peakInFlight": self.in_flight, "peakUnavailable": self.unavailable,
            "peakUnavailableAtSeconds": secs(self.unavailable_at), "failed": self.failed})
    }
}

/// Seconds with milliseconds.
pub(super) fn secs(length: SignedDuration) -> Value {
    let millis = i32::try_from(length.as_millis() % 1_000).unwrap_or(0);
    let whole = length.as_secs();
    format!("{whole}.{millis:03}").parse::<f64>().map_or(Value::Null, |secs| json!(secs))
}
