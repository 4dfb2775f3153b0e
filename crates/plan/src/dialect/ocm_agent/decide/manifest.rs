//! What becomes of one manifest.

use convoy_api::Object;
use serde_json::Value;

use crate::dialect::ocm_agent::read::config::{Config, Strategy};
use crate::dialect::ocm_agent::read::desired;
use crate::dialect::ocm_agent::read::manifest::Item;
use crate::dialect::ocm_agent::read::owner::Owners;
use crate::dialect::ocm_agent::read::record::{Record, hash, hash_of_difference};
use crate::dialect::ocm_agent::read::server_side::{ServerSide, server_side};

/// A manifest, the object that it is about, and what became of it.
#[derive(Clone, Debug)]
pub(crate) struct Processed<'w> {
    pub(crate) item: Item<'w>,
    pub(crate) config: Config<'w>,
    pub(crate) live: Option<&'w Object>,
    pub(crate) result: ApplyResult,
    /// What is recorded once the object is as it should be: the hash of the manifest, and of
    /// what the server keeps otherwise.
    pub(crate) entry: Option<(String, Option<String>)>,
}

/// What became of a manifest.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ApplyResult {
    Applied,
    /// The object has to be written first; then it is looked at again.
    Pending {
        write: Wanted,
    },
    /// The same, where the server has denied it before.
    Retried {
        write: Wanted,
        message: String,
    },
    /// Nothing is written, and somebody has to look.
    Failed {
        message: String,
    },
    /// Nothing is written: fields that are to be left to others cannot be found.
    Misconfigured {
        message: String,
    },
    /// The work is through: whatever was told about the manifest stays.
    Frozen,
}

/// The object as it should read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Wanted {
    Created(Value),
    /// By a patch of the live object.
    Changed(Value),
    /// By a server-side apply.
    Applied(ServerSide),
}

/// What one manifest is judged by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    pub(crate) applied_work: &'a Object,
    pub(crate) record: &'a Record,
    /// Whether the object goes with the work.
    pub(crate) is_owned: bool,
    /// Why the server denied the last write of this manifest.
    pub(crate) denied: Option<&'a str>,
    /// The manifest is through, and not written any more.
    pub(crate) is_complete: bool,
    /// Why the executor of the work may not apply it.
    pub(crate) refused: Option<&'a str>,
}

impl<'w> Processed<'w> {
    pub(crate) fn new(item: Item<'w>, config: Config<'w>, live: Option<&'w Object>) -> Self {
        Self { item, config, live, result: ApplyResult::Applied, entry: None }
    }

    pub(crate) fn decided(mut self, context: Context<'_>) -> Self {
        if let Some(problem) = self.item.problem {
            self.result = ApplyResult::Failed { message: problem.message().to_owned() };
            return self;
        }
        if context.is_complete {
            return self;
        }
        if let Some(message) = context.refused {
            self.result = ApplyResult::Failed { message: message.to_owned() };
            return self;
        }
        if self.config.strategy == Strategy::ReadOnly {
            return self;
        }
        let write = match (self.live, self.config.strategy) {
            (live, Strategy::ServerSideApply(options)) => {
                match server_side(desired::manifest(&self.item), options, live) {
                    Ok(apply) => self.applied(apply, context),
                    Err(message) => {
                        self.result = ApplyResult::Misconfigured { message };
                        return self;
                    }
                }
            }
            (None, _) => {
                self.entry = Some((self.hash(context), None));
                let owner = context.is_owned.then_some(context.applied_work);
                Some(Wanted::Created(desired::created(&self.item, owner)))
            }
            (Some(live), Strategy::CreateOnly) => Self::changed(live, live.raw().clone(), context),
            (Some(live), _) => self.updated(live, context),
        };
        self.result = match (write, context.denied) {
            (None, _) => ApplyResult::Applied,
            (Some(write), None) => ApplyResult::Pending { write },
            (Some(write), Some(message)) => {
                ApplyResult::Retried { write, message: message.to_owned() }
            }
        };
        self
    }

    /// An object is overwritten when its manifest is new, and when it no longer says what the
    /// manifest says: but for what the server has kept otherwise before.
    fn updated(&mut self, live: &Object, context: Context<'_>) -> Option<Wanted> {
        let is_current = self.is_current(&self.item.clone(), live, context);
        let wanted =
            if is_current { live.raw().clone() } else { desired::overwritten(&self.item, live) };
        Self::changed(live, wanted, context)
    }

    /// The same with a server-side apply. The owner is no part of what is applied.
    fn applied(&mut self, apply: ServerSide, context: Context<'_>) -> Option<Wanted> {
        let Some(live) = self.live else {
            self.entry = Some((self.hash(context), None));
            return Some(Wanted::Applied(apply));
        };
        let is_current = if apply.is_hashed {
            apply.is_applied_to(live)
        } else {
            self.is_current(&apply.item(&self.item), live, context)
        };
        if is_current {
            Self::changed(live, live.raw().clone(), context)
        } else {
            Some(Wanted::Applied(apply))
        }
    }

    /// Whether a manifest was applied to an object that still says so. What is recorded once it
    /// is, is set.
    fn is_current(&mut self, item: &Item<'_>, live: &Object, context: Context<'_>) -> bool {
        let hash = self.hash(context);
        let left = desired::difference(item, live).map(|it| hash_of_difference(&it));
        let is_known = context.record.has(&hash);
        let is_current =
            is_known && (left.is_none() || context.record.left(&hash) == left.as_deref());
        self.entry = Some((hash, left.filter(|_| is_known)));
        is_current
    }

    /// The object with its owners as they should be; none if it reads so already.
    fn changed(live: &Object, wanted: Value, context: Context<'_>) -> Option<Wanted> {
        let is_ours = Owners::of(live, context.applied_work).is_ours;
        let wanted = if is_ours == context.is_owned {
            wanted
        } else {
            desired::owned(wanted, live, context.applied_work, context.is_owned)
        };
        (wanted != *live.raw()).then_some(Wanted::Changed(wanted))
    }

    fn hash(&self, context: Context<'_>) -> String {
        let strategy = match self.config.strategy {
            Strategy::ServerSideApply(options) => options,
            _ => &Value::Null,
        };
        hash(&self.item.key(&context.applied_work.key().cluster), self.item.raw, strategy)
    }
}
