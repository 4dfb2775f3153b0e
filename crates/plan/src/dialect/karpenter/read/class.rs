//! The node class of a pool, as far as it decides whether the pool is sound.

use super::pool::Pool;
use crate::dialect::karpenter::names::{KWOK_NODE_CLASS, annotation};
use crate::snapshot::Snapshot;

/// How the node class of a pool stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeClassState<'w> {
    /// It is of another provider, whose controller judges it.
    Foreign,
    NotFound,
    Terminating,
    /// Its readiness is known not to be known.
    Unknown {
        generation: i64,
    },
    NotReady {
        generation: i64,
        reason: &'w str,
        message: &'w str,
    },
    Ready {
        generation: i64,
    },
}

/// What the simulated provider makes new machines of the pool from, if it says so.
pub(crate) fn image<'w>(pool: &Pool<'_>, snapshot: &Snapshot<'w>) -> Option<&'w str> {
    let class = snapshot.find(&KWOK_NODE_CLASS, "", name(pool)).filter(|_| pool.has_catalogue)?;
    class.annotation(annotation::IMAGE)
}

/// The name of the pool's node class.
pub(crate) fn name<'p>(pool: &'p Pool<'_>) -> &'p str {
    pool.class.as_ref().map_or("", |class| &class.name)
}

impl<'w> NodeClassState<'w> {
    pub(crate) fn read(pool: &Pool<'_>, snapshot: &Snapshot<'w>) -> Self {
        if !pool.has_catalogue {
            return Self::Foreign;
        }
        let Some(class) = snapshot.find(&KWOK_NODE_CLASS, "", name(pool)) else {
            return Self::NotFound;
        };
        if class.is_deleting() {
            return Self::Terminating;
        }
        let generation = class.generation();
        // Ready from the start, unless it says otherwise.
        match class.condition_status("Ready") {
            None | Some("True") => Self::Ready { generation },
            Some("Unknown") => Self::Unknown { generation },
            Some(_) => {
                let entry = class.condition("Ready");
                let field = |name: &str| entry.and_then(|entry| entry.get(name)?.as_str());
                let reason = field("reason").unwrap_or("NodeClassNotReady");
                let message = field("message").unwrap_or_default();
                Self::NotReady { generation, reason, message }
            }
        }
    }
}
