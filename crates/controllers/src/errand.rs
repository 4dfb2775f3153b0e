//! The writes of one step on their way: in order, each fenced by what was observed, up to the
//! first that does not get through. This decides what is sent when and what an answer means;
//! whoever runs the errand sends.
//!
//! A write without a clear answer may have been carried out all the same. Its target is then
//! looked at, until an answer comes: before that nothing of its rollout is decided again, so
//! that no decision is older than a write of our own (G2).

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use convoy_api::{GroupKind, ObjectKey};
use convoy_plan::{Action, Denial, Write};
use serde_json::Value;

use crate::brain::News;
use crate::metrics::Metrics;
use crate::outcome::{Answer, Effect, Outcome, outcome};
use crate::projection::Projections;
use crate::request::{OwnVersions, Request, Resource, precondition, request};

/// Writes of one step that are on their way at once. They begin with one and double, so that
/// a server that refuses is not asked five hundred times.
const WIDTH_MAX: usize = 32;

/// The pauses between looks at what a write may have left.
const LOOK_FIRST: Duration = Duration::from_millis(100);
const LOOK_MAX: Duration = Duration::from_secs(30);

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Everything is written.
    Done,
    /// Something is not as observed: plan afresh.
    Conflict,
    Later {
        at_least: Duration,
        message: String,
    },
    Denied(Denial),
}

/// How a step ended, and what of it was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    pub ending: Ending,
    /// The targets of the actions that were done.
    done: BTreeSet<ObjectKey>,
    /// Whether all was done that the step decided, its own status aside.
    is_through: bool,
}

/// What is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    pub call: Call,
    /// Not before so long has passed.
    pub after: Duration,
}

/// Which request, by the place of its action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    Write(usize),
    /// What stands where it was to write?
    Look(usize),
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    Answer(Answer),
    /// No answer: whether it was carried out is not known.
    Lost(String),
    /// It was not sent, and may be later.
    Unsent(String),
    /// It cannot be sent as things stand.
    Impossible(String),
}

/// The writes of one step.
#[derive(Debug)]
pub struct Errand {
    actions: Vec<Action>,
    /// How many of them the step decided; the rest is its status.
    decided: usize,
    own: OwnVersions,
    /// Those on their way, which follow on those behind us.
    batch: Vec<State>,
    behind: usize,
    width: usize,
    done: BTreeSet<usize>,
    ending: Option<Ending>,
    projections: Arc<Projections>,
    metrics: Arc<Metrics>,
}

/// Where one write stands.
#[derive(Clone, Debug)]
enum State {
    Unsent,
    Sent,
    /// To be looked at, and then this is what became of it.
    Unclear {
        outcome: Outcome,
        looks: u32,
        is_asked: bool,
    },
    /// With the version that it left its target at.
    Settled {
        outcome: Outcome,
        version: Option<String>,
    },
}

impl Errand {
    pub(crate) fn new(
        mut actions: Vec<Action>,
        status: Option<Action>,
        projections: Arc<Projections>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let decided = actions.len();
        actions.extend(status);
        Self {
            actions,
            decided,
            own: OwnVersions::default(),
            batch: Vec::new(),
            behind: 0,
            width: 1,
            done: BTreeSet::new(),
            ending: None,
            projections,
            metrics,
        }
    }

    pub fn actions(&self) -> &[Action] {
        &self.actions
    }

    /// How it ended; none while there is something to do or to wait for.
    pub fn ended(&self) -> Option<Ended> {
        let target = |place: &usize| self.actions[*place].target.clone();
        Some(Ended {
            ending: self.ending.clone()?,
            done: self.done.iter().map(target).collect(),
            is_through: (0..self.decided).all(|place| self.done.contains(&place)),
        })
    }

    /// What is to be sent now; nothing while answers are awaited, and when it has ended.
    pub fn asks(&mut self) -> Vec<Ask> {
        while self.ending.is_none() {
            if self.batch.is_empty() {
                self.begin_batch();
                continue;
            }
            if self.batch.iter().all(|state| matches!(state, State::Settled { .. })) {
                self.end_batch();
                continue;
            }
            let behind = self.behind;
            let places = self.batch.iter_mut().enumerate();
            return places.filter_map(|(at, state)| state.ask(behind + at)).collect();
        }
        Vec::new()
    }

    /// The kind that has to be known for a call.
    pub fn kind(&self, call: Call) -> &GroupKind {
        &self.action(call).target.kind
    }

    /// The request of a call.
    pub fn request(&self, call: Call, resource: &Resource) -> Request {
        let action = self.action(call);
        match call {
            Call::Write(_) => request(action, resource, &self.own),
            Call::Look(_) => Request::get(resource.object(&action.target)),
        }
    }

    /// Takes in what came of a call; gives back what is to be told.
    pub fn replied(&mut self, call: Call, reply: Reply) -> Option<News> {
        let (Call::Write(place) | Call::Look(place)) = call;
        let at = place.checked_sub(self.behind).filter(|at| *at < self.batch.len())?;
        match call {
            Call::Write(_) => self.written(place, at, reply),
            Call::Look(_) => self.looked(place, at, reply),
        }
    }

    fn action(&self, call: Call) -> &Action {
        let (Call::Write(place) | Call::Look(place)) = call;
        &self.actions[place]
    }

    fn written(&mut self, place: usize, at: usize, reply: Reply) -> Option<News> {
        let action = &self.actions[place];
        let code = match &reply {
            Reply::Answer(answer) => Some(answer.code),
            Reply::Lost(_) => Some(0),
            Reply::Unsent(_) | Reply::Impossible(_) => None,
        };
        if let Some(code) = code {
            self.metrics.wrote(verb(&action.write), code);
        }
        let is_unclear = code.is_some_and(|code| code >= 500 || code == 408 || code == 0);
        let outcome = match &reply {
            Reply::Answer(answer) => outcome(&action.write, answer),
            Reply::Lost(message) | Reply::Unsent(message) => {
                Outcome::Later { at_least: Duration::ZERO, message: message.clone() }
            }
            Reply::Impossible(message) => Outcome::Refused { message: message.clone() },
        };
        if outcome == Outcome::Conflict {
            self.metrics.conflict();
        }
        if is_unclear || outcome == Outcome::Conflict {
            self.batch[at] = State::Unclear { outcome, looks: 0, is_asked: false };
            return None;
        }
        let (news, version) = match (&outcome, reply) {
            (Outcome::Done(Effect::Shown), Reply::Answer(Answer { body, .. })) => {
                let version = body.pointer("/metadata/resourceVersion").and_then(Value::as_str);
                let version = version.map(str::to_owned);
                (self.projections.read(Cow::Owned(body)).map(News::Answered), version)
            }
            (Outcome::Done(Effect::Gone), _) => {
                (Some(News::Forgotten(action.target.clone())), None)
            }
            _ => (None, None),
        };
        self.batch[at] = State::Settled { outcome, version };
        news
    }

    /// Brings the world up to date about what a conflict was about, so that the next decision
    /// is made from the state that caused it and not from the same one again.
    fn looked(&mut self, place: usize, at: usize, reply: Reply) -> Option<News> {
        let State::Unclear { outcome, looks, .. } = &self.batch[at] else { return None };
        let (outcome, looks) = (outcome.clone(), *looks);
        let target = &self.actions[place].target;
        let news = match reply {
            Reply::Answer(answer) if answer.is_success() => {
                Some(self.projections.read(Cow::Owned(answer.body)).map(News::Answered))
            }
            Reply::Answer(answer) if answer.code == 404 => {
                Some(Some(News::Forgotten(target.clone())))
            }
            // Of a conflict the watch will tell.
            _ if outcome == Outcome::Conflict => Some(None),
            _ => None,
        };
        let is_seen = news.is_some();
        self.batch[at] = if is_seen {
            State::Settled { outcome, version: None }
        } else {
            State::Unclear { outcome, looks: looks.saturating_add(1), is_asked: false }
        };
        news.flatten()
    }

    /// Sets the next writes off that may overtake each other.
    fn begin_batch(&mut self) {
        let rest = &self.actions[self.behind..];
        let Some(first) = rest.first() else {
            self.ending = Some(Ending::Done);
            return;
        };
        let mut targets = BTreeSet::new();
        let alike = rest
            .iter()
            .take(self.width + 1)
            .take_while(|other| are_alike(first, other) && targets.insert(&other.target))
            .count()
            .max(1);
        self.batch = rest.iter().take(alike.min(self.width)).map(State::begin).collect();
        let is_more = alike > self.batch.len();
        self.width = if is_more { (self.width * 2).min(WIDTH_MAX) } else { 1 };
    }

    fn end_batch(&mut self) {
        let mut ending = None;
        for state in std::mem::take(&mut self.batch) {
            let State::Settled { outcome, version } = state else { continue };
            let place = self.behind;
            self.behind += 1;
            let action = &self.actions[place];
            let before = precondition(&action.write)
                .and_then(|fence| self.own.fence(&action.target, fence).resource_version);
            self.own.note(&action.target, before.as_deref(), version.as_deref());
            if matches!(outcome, Outcome::Done(_)) {
                self.done.insert(place);
            }
            ending = ending.or_else(|| end(action, outcome));
        }
        self.ending = ending;
    }
}

impl Ended {
    /// Whether what was to be done about an object was done. Of one that no action is about,
    /// that is so when everything else was.
    pub(crate) fn did(&self, key: &ObjectKey) -> bool {
        self.is_through || self.done.contains(key)
    }

    /// The step could not be carried on for a reason of our own.
    pub(crate) fn broken(message: &str) -> Self {
        let message = message.to_owned();
        Self {
            ending: Ending::Later { at_least: Duration::ZERO, message },
            done: BTreeSet::new(),
            is_through: false,
        }
    }
}

impl State {
    fn begin(action: &Action) -> Self {
        if action.target.cluster.is_empty() {
            return Self::Unsent;
        }
        let message = format!("there is no connection to cluster {:?}", action.target.cluster);
        Self::Settled { outcome: Outcome::Refused { message }, version: None }
    }

    fn ask(&mut self, place: usize) -> Option<Ask> {
        match self {
            Self::Unsent => {
                *self = Self::Sent;
                Some(Ask { call: Call::Write(place), after: Duration::ZERO })
            }
            Self::Unclear { looks, is_asked, .. } if !*is_asked => {
                *is_asked = true;
                let pause = looks.checked_sub(1).map_or(Duration::ZERO, |failures| {
                    LOOK_FIRST.saturating_mul(1 << failures.min(16)).min(LOOK_MAX)
                });
                Some(Ask { call: Call::Look(place), after: pause })
            }
            Self::Sent | Self::Unclear { .. } | Self::Settled { .. } => None,
        }
    }
}

/// Whether two writes may overtake each other: their decision says so, and both make, both
/// delete, or both patch objects of one kind in one namespace.
fn are_alike(one: &Action, other: &Action) -> bool {
    let same = one.target.kind == other.target.kind
        && one.target.namespace == other.target.namespace
        && one.verb == other.verb;
    let alike = match (&one.write, &other.write) {
        (Write::Create { .. }, Write::Create { .. })
        | (Write::Delete { .. }, Write::Delete { .. }) => true,
        (Write::Patch { subresource, .. }, Write::Patch { subresource: others, .. }) => {
            subresource == others
        }
        _ => false,
    };
    one.concurrent && other.concurrent && same && alike
}

fn end(action: &Action, outcome: Outcome) -> Option<Ending> {
    match outcome {
        Outcome::Done(_) => None,
        Outcome::Conflict => Some(Ending::Conflict),
        Outcome::Later { at_least, message } => Some(Ending::Later { at_least, message }),
        Outcome::Refused { message } => {
            let target = action.target.clone();
            Some(Ending::Denied(Denial { target, verb: verb(&action.write), message }))
        }
    }
}

/// The word for a write in metrics and events.
fn verb(write: &Write) -> &'static str {
    match write {
        Write::Create { .. } => "create",
        Write::Patch { .. } => "patch",
        Write::Delete { .. } => "delete",
        Write::Evict { .. } => "evict",
    }
}

#[cfg(test)]
mod tests;
