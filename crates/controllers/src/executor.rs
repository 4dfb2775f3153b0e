//! Carries out the writes of a step, in order, each fenced by what was observed. What the
//! server answers is told to the loop at once; the first conflict ends the step.

use std::sync::Arc;
use std::time::Duration;

use convoy_api::ObjectKey;
use convoy_plan::{Action, Write};
use futures_util::future::join_all;
use kube::Client;
use tokio::sync::mpsc;

use crate::api;
use crate::discovery::Discovery;
use crate::metrics::Metrics;
use crate::outcome::{Effect, Outcome, outcome};
use crate::projection::Projections;
use crate::request::{OwnVersions, Request, precondition, request};
use crate::run::Message;

/// Writes of one step that are on their way at once. They begin with one and double, so that
/// a server that refuses is not asked five hundred times.
const WIDTH_MAX: usize = 32;

pub(crate) struct Executor {
    pub(crate) client: Client,
    pub(crate) discovery: Arc<Discovery>,
    pub(crate) projections: Arc<Projections>,
    pub(crate) messages: mpsc::Sender<Message>,
    pub(crate) metrics: Arc<Metrics>,
}

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Everything is written.
    Done,
    /// Something is not as observed: plan afresh.
    Conflict,
    Later {
        at_least: Duration,
        message: String,
    },
    Refused {
        verb: &'static str,
        message: String,
    },
}

/// A write and what it left behind.
struct Written {
    outcome: Outcome,
    /// The version that its target has now.
    version: Option<String>,
}

impl Executor {
    pub(crate) async fn carry_out(&self, actions: &[Action]) -> Ending {
        let mut own = OwnVersions::default();
        let (mut rest, mut width) = (actions, 1);
        while let Some(first) = rest.first() {
            let alike = rest.iter().take_while(|other| are_alike(first, other)).count().max(1);
            let (now, later) = rest.split_at(alike.min(width));
            let all = join_all(now.iter().map(|action| self.write(action, &own))).await;
            for (action, written) in now.iter().zip(all) {
                let before = precondition(&action.write)
                    .and_then(|fence| own.fence(&action.target, fence).resource_version);
                own.note(&action.target, before.as_deref(), written.version.as_deref());
                if let Some(ending) = ending(action, written.outcome) {
                    return ending;
                }
            }
            width = if alike > now.len() { (width * 2).min(WIDTH_MAX) } else { 1 };
            rest = later;
        }
        Ending::Done
    }

    async fn write(&self, action: &Action, own: &OwnVersions) -> Written {
        let outcome = self.attempt(action, own).await;
        let version = match &outcome {
            Outcome::Done(Effect::Object(raw)) => {
                let version = raw.pointer("/metadata/resourceVersion");
                version.and_then(|version| version.as_str()).map(str::to_owned)
            }
            _ => None,
        };
        match &outcome {
            Outcome::Done(Effect::Object(raw)) => self.show(raw.clone()).await,
            Outcome::Done(Effect::Gone) => self.forget(&action.target).await,
            Outcome::Conflict => self.look_again(&action.target).await,
            _ => {}
        }
        Written { outcome, version }
    }

    async fn attempt(&self, action: &Action, own: &OwnVersions) -> Outcome {
        let target = &action.target;
        if !target.cluster.is_empty() {
            let message = format!("there is no connection to cluster {:?}", target.cluster);
            return Outcome::Refused { message };
        }
        let resource = match self.discovery.find(&self.client, &target.kind).await {
            Ok(Some(resource)) => resource,
            Ok(None) => {
                return Outcome::Refused { message: format!("{} is not served", target.kind) };
            }
            Err(error) => return later(&error),
        };
        let answer = match api::send(&self.client, request(action, &resource, own)).await {
            Ok(answer) => answer,
            Err(error) => {
                self.metrics.wrote(verb(&action.write), 0);
                return later(&error);
            }
        };
        self.metrics.wrote(verb(&action.write), answer.code);
        outcome(&action.write, answer)
    }

    /// Brings the world up to date about what a conflict was about, so that the next decision
    /// is made from the state that caused it and not from the same one again.
    async fn look_again(&self, key: &ObjectKey) {
        self.metrics.conflict();
        let Ok(Some(resource)) = self.discovery.find(&self.client, &key.kind).await else { return };
        match api::send(&self.client, Request::get(resource.object(key))).await {
            Ok(answer) if answer.is_success() => self.show(answer.body).await,
            Ok(answer) if answer.code == 404 => self.forget(key).await,
            // The watch will tell.
            _ => {}
        }
    }

    async fn show(&self, raw: serde_json::Value) {
        if let Some(object) = self.projections.read(raw) {
            // The loop outlives its writes; without it nobody needs to know.
            drop(self.messages.send(Message::Changed(object)).await);
        }
    }

    async fn forget(&self, key: &ObjectKey) {
        drop(self.messages.send(Message::Forgotten(key.clone())).await);
    }
}

/// Whether two writes may overtake each other: both make, or both delete, objects of one kind
/// in one namespace.
fn are_alike(one: &Action, other: &Action) -> bool {
    let same = one.target.kind == other.target.kind
        && one.target.namespace == other.target.namespace
        && one.verb == other.verb;
    same && matches!(
        (&one.write, &other.write),
        (Write::Create { .. }, Write::Create { .. }) | (Write::Delete { .. }, Write::Delete { .. })
    )
}

fn ending(action: &Action, outcome: Outcome) -> Option<Ending> {
    match outcome {
        Outcome::Done(_) => None,
        Outcome::Conflict => Some(Ending::Conflict),
        Outcome::Later { at_least, message } => Some(Ending::Later { at_least, message }),
        Outcome::Refused { message } => {
            Some(Ending::Refused { verb: verb(&action.write), message })
        }
    }
}

fn later(error: &dyn std::error::Error) -> Outcome {
    Outcome::Later { at_least: Duration::ZERO, message: api::chain(error) }
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
