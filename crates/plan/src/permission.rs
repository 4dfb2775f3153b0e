//! What a dialect does to objects beside reading them: a table in each dialect, from which the roles
//! of its account are generated, and what a step takes of it. A step that its table does not cover is
//! a defect of the dialect, which debug builds find where it is decided.

use std::collections::BTreeSet;

use convoy_api::GroupKind;
use serde_json::Value;

use crate::step::{Action, Step, Subresource, Write};

/// What a dialect does to objects of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permission {
    pub kind: GroupKind,
    pub verbs: &'static [ApiVerb],
    pub within: Within,
    /// For people who read the role; may be empty.
    pub why: &'static str,
}

/// Where a permission is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Within {
    Everywhere,
    /// The namespace in which the dialect makes what it needs itself.
    OwnNamespace,
}

/// A write as an API server distinguishes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ApiVerb {
    Create,
    Patch,
    PatchStatus,
    PatchScale,
    Delete,
    /// Of pods.
    Evict,
    /// Owners whose deletion waits for what they own: a server may ask for the permission to set the
    /// finalizers of the owner.
    BlockDeletion,
}

impl ApiVerb {
    /// The verb of a rule, and what follows the name of the resource.
    pub fn rule(self) -> (&'static str, &'static str) {
        match self {
            Self::Create => ("create", ""),
            Self::Patch => ("patch", ""),
            Self::PatchStatus => ("patch", "/status"),
            Self::PatchScale => ("patch", "/scale"),
            Self::Delete => ("delete", ""),
            Self::Evict => ("create", "/eviction"),
            Self::BlockDeletion => ("update", "/finalizers"),
        }
    }
}

/// A permission that a step takes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Needed {
    pub kind: GroupKind,
    pub verb: ApiVerb,
    /// In a member cluster.
    pub is_member: bool,
}

/// The permissions that carrying out a step takes.
pub fn needed(step: &Step) -> BTreeSet<Needed> {
    let status = step.status.is_some().then(|| Needed {
        kind: step.rollout.kind.clone(),
        verb: ApiVerb::PatchStatus,
        is_member: !step.rollout.cluster.is_empty(),
    });
    step.actions.iter().flat_map(by_action).chain(status).collect()
}

fn by_action(action: &Action) -> Vec<Needed> {
    let is_member = !action.target.cluster.is_empty();
    let (verbs, object): (&[ApiVerb], Option<&Value>) = match &action.write {
        Write::Create { object } => (&[ApiVerb::Create], Some(object)),
        Write::Patch { patch, subresource, .. } => match subresource {
            Some(Subresource::Status) => (&[ApiVerb::PatchStatus], None),
            Some(Subresource::Scale) => (&[ApiVerb::PatchScale], None),
            None => (&[ApiVerb::Patch], Some(patch)),
        },
        Write::Apply { object, precondition, .. } if precondition.uid.is_none() => {
            (&[ApiVerb::Create, ApiVerb::Patch], Some(object))
        }
        Write::Apply { object, .. } => (&[ApiVerb::Patch], Some(object)),
        Write::Delete { .. } => (&[ApiVerb::Delete], None),
        Write::Evict { .. } => (&[ApiVerb::Evict], None),
    };
    let kind = &action.target.kind;
    let own = verbs.iter().map(|verb| Needed { kind: kind.clone(), verb: *verb, is_member });
    let owners = object.into_iter().flat_map(blocked_owners).map(|kind| Needed {
        kind,
        verb: ApiVerb::BlockDeletion,
        is_member,
    });
    own.chain(owners).collect()
}

/// The kinds of the owners whose deletion waits for an object.
fn blocked_owners(object: &Value) -> Vec<GroupKind> {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let blocked = owners.into_iter().flatten().filter(|owner| owner["blockOwnerDeletion"] == true);
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = |owner: &Value| {
        let version = word(&owner["apiVersion"]);
        let group = version.split_once('/').map_or("", |(group, _)| group);
        GroupKind { group: group.into(), kind: word(&owner["kind"]).into() }
    };
    blocked.map(kind).collect()
}

/// What a step takes and the tables of its dialect do not give, for the home cluster and for members.
/// No table gives everything.
pub fn uncovered(
    home: Option<&[Permission]>,
    members: Option<&[Permission]>,
    step: &Step,
) -> Vec<Needed> {
    let is_covered = |needed: &Needed| {
        let rows = if needed.is_member { members } else { home };
        let mut rows = rows.into_iter().flatten().filter(|row| row.kind == needed.kind).peekable();
        // Kinds that a table of members lacks are those that users place there.
        let is_free = if needed.is_member { rows.peek().is_none() } else { home.is_none() };
        is_free || rows.any(|row| row.verbs.contains(&needed.verb))
    };
    needed(step).into_iter().filter(|needed| !is_covered(needed)).collect()
}
