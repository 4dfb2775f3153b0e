//! Membership: how a cluster joins the fleet and leaves it, as far as the hub decides. The
//! agent on the member does its part through the `InternalMemberCluster`.

use convoy_api::Object;
use convoy_api::kinds::NAMESPACE;
use jiff::Timestamp;

use crate::dialect::fleet::names::{INTERNAL_MEMBER_CLUSTER, member_namespace};
use crate::dialect::fleet::read::member::joined;
use crate::dialect::fleet::read::options::Options;
use crate::snapshot::Snapshot;

/// Where a cluster stands between joining and leaving.
#[derive(Clone, Debug)]
pub(crate) struct Membership<'w> {
    /// What the agent on the member reports.
    pub(crate) internal: Option<&'w Object>,
    /// `Joined` over all agents: True, False or Unknown.
    pub(crate) joined: &'static str,
    pub(crate) phase: Phase<'w>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Phase<'w> {
    /// It is, or becomes, a member.
    Joining,
    /// The agent is asked to leave, and given until then.
    AwaitingAgent {
        until: Option<Timestamp>,
    },
    /// The agent has left, or does not answer: its namespace goes.
    DeletingNamespace(&'w Object),
    AwaitingNamespace,
    /// Nothing is left.
    Left,
}

pub(crate) fn decide<'w>(
    snapshot: &Snapshot<'w>,
    options: &Options,
    now: Timestamp,
) -> Membership<'w> {
    let member = snapshot.rollout();
    let home = member_namespace(member.name());
    let internal = snapshot.find(&INTERNAL_MEMBER_CLUSTER, &home, member.name());
    let joined = joined(internal);
    let until = member.deleted_at().and_then(|at| at.checked_add(options.force_delete_wait).ok());
    let given_up = until.is_none_or(|until| until <= now);
    let gone = internal.is_none() || joined == "False";
    let phase = match snapshot.find(&NAMESPACE, "", &home) {
        _ if !member.is_deleting() => Phase::Joining,
        _ if !gone && !given_up => Phase::AwaitingAgent { until },
        Some(namespace) if !namespace.is_deleting() => Phase::DeletingNamespace(namespace),
        Some(_) => Phase::AwaitingNamespace,
        None => Phase::Left,
    };
    Membership { internal, joined, phase }
}
