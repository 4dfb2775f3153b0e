//! What people ask of a rollout by hand, and the record of it. A dialect turns each request into
//! writes to its own fields and annotations, or says what to do instead; nothing here knows how.

use std::fmt;

use convoy_api::{GroupKind, Object};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::step::{Action, Verb, Why, Write};

/// On a rollout: what people asked of it, the latest last, as JSON.
pub const RECORDS: &str = "convoy/interventions";

/// How many records a rollout keeps: objects do not grow with their age (G8).
const RECORDS_MAX: usize = 10;

/// How many characters of a reason are kept.
const REASON_CHARS_MAX: usize = 256;

/// A request of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Intervention {
    /// Start nothing new until it is resumed.
    Pause,
    Resume,
    /// Give it up where it stands.
    Abort,
    /// Try again what failed.
    Retry,
    /// Go back to a revision; without one, to the previous one.
    Undo {
        revision: Option<i64>,
    },
    /// Approve what waits for it; without a stage, the only one that does.
    Approve {
        stage: Option<String>,
    },
    /// Forget how far it came and begin again.
    Reset,
}

/// Why nothing is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The API has nothing of the kind.
    Unsupported { kind: GroupKind, verb: &'static str, instead: String },
    /// Not as the rollout stands.
    NotNow { reason: String },
}

/// One request as it is recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub at: Timestamp,
    pub verb: String,
    pub actor: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// A state that a rollout had, as its API remembers it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Revision {
    pub number: i64,
    /// The object that remembers it.
    pub object: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    pub is_current: bool,
    /// What it consists of, or why it was made, in a few words.
    pub content: String,
}

impl Intervention {
    /// The word on the command line.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Abort => "abort",
            Self::Retry => "retry",
            Self::Undo { .. } => "undo",
            Self::Approve { .. } => "approve",
            Self::Reset => "reset",
        }
    }

    /// What the rollout is afterwards: `paused`.
    pub fn done(&self) -> &'static str {
        match self {
            Self::Pause => "paused",
            Self::Resume => "resumed",
            Self::Abort => "aborted",
            Self::Retry => "retried",
            Self::Undo { .. } => "rolled back",
            Self::Approve { .. } => "approved",
            Self::Reset => "reset",
        }
    }

    /// The refusal of a kind that has nothing of the kind.
    pub(crate) fn unsupported(&self, kind: &GroupKind, instead: impl Into<String>) -> Refused {
        let (kind, verb, instead) = (kind.clone(), self.word(), instead.into());
        Refused::Unsupported { kind, verb, instead }
    }
}

impl Refused {
    pub(crate) fn not_now(reason: impl Into<String>) -> Self {
        Self::NotNow { reason: reason.into() }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported { kind, verb, instead } => {
                write!(f, "the {} API has no {verb}; {instead}", kind.kind)
            }
            Self::NotNow { reason } => f.write_str(reason),
        }
    }
}

impl Record {
    /// A record of `intervention`. A long reason is cut.
    pub fn new(intervention: &Intervention, actor: &str, reason: &str, at: Timestamp) -> Self {
        let reason = reason.chars().take(REASON_CHARS_MAX).collect();
        Self { at, verb: intervention.word().to_owned(), actor: actor.to_owned(), reason }
    }
}

/// What people asked of a rollout, the earliest first. What cannot be read was not written here.
pub fn records(rollout: &Object) -> Vec<Record> {
    let text = rollout.annotation(RECORDS).unwrap_or_default();
    serde_json::from_str(text).unwrap_or_default()
}

/// The writes of an intervention with its record on the rollout: in the write to the rollout, if
/// there is one, otherwise in a write of its own that comes last.
pub fn recorded(mut actions: Vec<Action>, rollout: &Object, record: &Record) -> Vec<Action> {
    let mut all = records(rollout);
    all.push(record.clone());
    let recent = &all[all.len().saturating_sub(RECORDS_MAX)..];
    let text = Value::from(json!(recent).to_string());
    let to_rollout = actions.iter_mut().find_map(|action| match &mut action.write {
        Write::Patch { patch, subresource: None, .. } if action.target == *rollout.key() => {
            Some(patch)
        }
        _ => None,
    });
    if let Some(patch) = to_rollout {
        patch["metadata"]["annotations"][RECORDS] = text;
        return actions;
    }
    let patch = json!({"metadata": {"annotations": {RECORDS: text}}});
    let why = Why::new("Recorded", format!("record who asked for {}", record.verb));
    actions.push(Action::patch(Verb::Record, rollout, patch, why));
    actions
}

#[cfg(test)]
mod tests {
    use convoy_testkit::object;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn stored(actions: &[Action]) -> Vec<Record> {
        let Write::Patch { patch, .. } = &actions.last().unwrap().write else { panic!("a patch") };
        let text = patch["metadata"]["annotations"][RECORDS].as_str().unwrap();
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn the_latest_records_are_kept() {
        let mut rollout = object("apps/v1", "Deployment", "web").build();
        for second in 0..12 {
            let record = Record::new(&Intervention::Pause, "ann", "calm", at(second));
            let actions = recorded(Vec::new(), &rollout, &record);
            let text = json!(stored(&actions)).to_string();
            rollout = object("apps/v1", "Deployment", "web").annotation(RECORDS, &text).build();
        }
        let kept = records(&rollout);
        assert_eq!((kept.len(), kept[0].at, kept[9].at), (10, at(2), at(11)));
        assert_eq!((kept[0].verb.as_str(), kept[0].reason.as_str()), ("pause", "calm"));
    }

    #[test]
    fn the_record_joins_the_write_to_the_rollout() {
        let rollout = object("apps/v1", "Deployment", "web").build();
        let patch = json!({"spec": {"paused": true}});
        let why = Why::new("Paused", "by hand");
        let paused = Action::patch(Verb::Record, &rollout, patch, why.clone());
        let record = Record::new(&Intervention::Pause, "ann", &"x".repeat(999), at(0));
        let actions = recorded(vec![paused], &rollout, &record);
        assert_eq!((actions.len(), stored(&actions)[0].reason.len()), (1, REASON_CHARS_MAX));
        let status = Action::patch_status(Verb::Record, &rollout, json!({"status": {}}), why);
        assert_eq!(recorded(vec![status], &rollout, &record).len(), 2);
    }
}
