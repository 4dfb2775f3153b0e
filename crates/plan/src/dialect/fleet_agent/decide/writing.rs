//! How an object is brought in line with its manifest: by a merge that is made here, or by an
//! apply that the server makes.

use convoy_api::Object;
use serde_json::Value;

use super::owners::Owners;
use crate::dialect::fleet_agent::read::desired::{self, LastApplied};
use crate::dialect::fleet_agent::read::manifest::Manifest;
use crate::dialect::fleet_agent::read::strategy::{Method, Strategy, TakeOver};

/// One write to the object of a manifest.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Writing {
    Create(Value),
    /// A server-side apply where there is no object.
    ApplyNew {
        object: Value,
        force: bool,
    },
    /// The object as it should read.
    Merge(Value),
    /// A server-side apply. `owners` are written first where they have to change, since an apply
    /// adds owners but takes none away.
    Apply {
        object: Value,
        owners: Option<Vec<Value>>,
        force: bool,
    },
}

/// For an object that is not there. An apply has no way to say that the object must not exist,
/// so one that may not be taken over is created by a request that fails if it does; the fields are
/// then not those of an apply, and stay when they leave the manifest.
pub(crate) fn created(
    manifest: &Manifest<'_>,
    strategy: Strategy,
    applied_work: &Object,
) -> Writing {
    let owners = [desired::owner(applied_work)];
    match (strategy.method, strategy.take_over) {
        (Method::ServerSide { force }, TakeOver::Always) => {
            Writing::ApplyNew { object: desired::sent(manifest, &owners, LastApplied::None), force }
        }
        (Method::ServerSide { .. }, _) => {
            Writing::Create(desired::sent(manifest, &owners, LastApplied::None))
        }
        (Method::ClientSide | Method::ReportDiff, _) => {
            Writing::Create(desired::sent(manifest, &owners, LastApplied::Annotated))
        }
    }
}

/// For an object that is there, and is this Work's or becomes it. None: it reads as it should.
pub(crate) fn updated(
    manifest: &Manifest<'_>,
    live: &Object,
    owners: &Owners<'_>,
    strategy: Strategy,
    applied_work: &Object,
) -> Option<Writing> {
    let kept: Vec<&str> = owners.others.iter().map(|owner| owner.uid).collect();
    let references = desired::owners(live, &kept, applied_work);
    match strategy.method {
        Method::ServerSide { force } => {
            applied(manifest, live, references, (LastApplied::None, force), applied_work)
        }
        // As with an apply of `kubectl`, what was applied last has to fit into an annotation. The
        // server does without.
        _ if desired::is_too_large(manifest, &references) => {
            applied(manifest, live, references, (LastApplied::Annotated, false), applied_work)
        }
        _ => {
            let wanted = desired::updated(manifest, live, &references);
            (wanted != *live.raw()).then_some(Writing::Merge(wanted))
        }
    }
}

fn applied(
    manifest: &Manifest<'_>,
    live: &Object,
    references: Vec<Value>,
    (history, force): (LastApplied, bool),
    applied_work: &Object,
) -> Option<Writing> {
    let present = desired::present_owners(live);
    let is_owned = present.len() == references.len()
        && references.iter().all(|reference| present.contains(reference));
    let object = desired::sent(manifest, &[desired::owner(applied_work)], history);
    if is_owned && desired::covers(live, &object) {
        return None;
    }
    let owners = (!is_owned).then_some(references);
    Some(Writing::Apply { object, owners, force })
}
