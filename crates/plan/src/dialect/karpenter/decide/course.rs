//! What happens to each claim of the pool in this step: which disruptions begin, wait for their
//! validation, go on or are undone, and what is left over from one that was interrupted.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::Disruptions;
use super::command::{self, Command, Progress};
use super::lifecycle;
use super::simulate::Replacement;
use crate::ascending;
use crate::dialect::karpenter::read::Cluster;
use crate::dialect::karpenter::read::reason::Reason;
use crate::gate::Permit;
use crate::snapshot::Snapshot;

/// What happens to one claim.
#[derive(Clone, Debug)]
pub(crate) enum Course<'d, 'w> {
    /// It is being deleted: its node is drained and its machine given back.
    Terminate,
    /// Its Node is being deleted, and so it goes too.
    Follow(Permit),
    /// Its Node has been unhealthy for too long.
    Repair(Permit),
    /// Its disruption is under way.
    Proceed(Progress),
    /// It is too old, and nothing limits that.
    Expire(&'d Command<'w>),
    /// Its disruption begins, after these replacements are asked for.
    Begin { command: &'d Command<'w>, replacements: Vec<String> },
    /// Its disruption begins once it has stayed sensible until then; absent: it is proposed now.
    Propose { command: &'d Command<'w>, ripe: Option<Timestamp> },
    /// It was proposed, and nothing begins while a claim is being launched: it stays proposed.
    Defer,
    /// It is on its way out by somebody else's doing.
    Leave,
    /// Nothing; what an interrupted disruption has left is removed.
    Stay,
}

/// A claim that is asked for in place of others.
#[derive(Clone, Debug)]
pub(crate) struct Order<'d, 'w> {
    pub(crate) command: &'d Command<'w>,
    pub(crate) name: String,
    pub(crate) replacement: &'d Replacement<'w>,
}

/// The course of every claim of the own pool, by index.
pub(crate) fn courses<'d, 'w>(
    cluster: &Cluster<'w>,
    snapshot: &Snapshot<'_>,
    disruptions: &'d Disruptions<'_, 'w>,
) -> impl Iterator<Item = (usize, Course<'d, 'w>)> {
    let mut starting: BTreeMap<usize, &'d Command<'w>> = BTreeMap::new();
    for command in &disruptions.commands {
        starting.extend(command.members.iter().map(|at| (*at, command)));
    }
    let mut starting = ascending::lookup(starting);
    let mut of = move |at: usize| {
        let command = starting(at);
        let member = &cluster.members[at];
        if member.facts.is_deleting {
            return Course::Terminate;
        }
        if let Some(permit) = lifecycle::follows(member) {
            return Course::Follow(permit);
        }
        if let Some(permit) = disruptions.repairs.permit_of(at) {
            return Course::Repair(permit);
        }
        if member.is_in_flight() {
            let is_empty = disruptions.is_empty(at);
            return Course::Proceed(command::progress(cluster, snapshot, member, is_empty));
        }
        match command {
            Some(command) => begin(cluster, snapshot, command, at),
            None if member.is_leaving() => Course::Leave,
            None if is_deferred(cluster, disruptions, at) => Course::Defer,
            None => Course::Stay,
        }
    };
    cluster.own_members().map(move |(at, _)| (at, of(at)))
}

fn begin<'d, 'w>(
    cluster: &Cluster<'_>,
    snapshot: &Snapshot<'_>,
    command: &'d Command<'w>,
    at: usize,
) -> Course<'d, 'w> {
    if command.is_forced {
        return Course::Expire(command);
    }
    if let Err(ripe) = command::is_mature(cluster, command, at) {
        return Course::Propose { command, ripe };
    }
    let names = command::replacement_names(cluster, snapshot, command).into_iter();
    Course::Begin { command, replacements: names.map(|(name, _, _)| name).collect() }
}

/// Whether a member that is proposed only waits for a claim that is being launched, which closes all
/// budgets for a moment. Were the proposal dropped, a pool that gets a node every few seconds would
/// never consolidate.
fn is_deferred(cluster: &Cluster<'_>, disruptions: &Disruptions<'_, '_>, at: usize) -> bool {
    let is_eligible = |reason| disruptions.is_eligible(at, reason);
    cluster.launching().is_some()
        && cluster.members[at].facts.proposal.is_some()
        && [Reason::Empty, Reason::Underutilized].into_iter().any(is_eligible)
}

/// The claims that commands ask for whose first member is of the own pool, as far as they are
/// not there yet.
pub(crate) fn orders<'d, 'w>(
    cluster: &Cluster<'_>,
    snapshot: &Snapshot<'_>,
    disruptions: &'d Disruptions<'_, 'w>,
) -> Vec<Order<'d, 'w>> {
    let mut orders = Vec::new();
    for command in &disruptions.commands {
        let Some(first) = command.members.first() else { continue };
        let is_ours = cluster.members[*first].pool == Some(cluster.own);
        if !is_ours || command::is_mature(cluster, command, *first).is_err() {
            continue;
        }
        let names = command::replacement_names(cluster, snapshot, command).into_iter();
        let missing = names.filter(|(_, _, is_missing)| *is_missing);
        orders.extend(missing.map(|(name, replacement, _)| Order { command, name, replacement }));
    }
    orders
}
