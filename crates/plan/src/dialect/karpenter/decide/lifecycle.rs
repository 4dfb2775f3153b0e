//! The life of one NodeClaim from its creation to a node that is ready for pods: launch, register,
//! initialize; and what ends it early.
//!
//! The provider is the simulated one. Its machines are Nodes: a machine that was launched appears
//! as a Node after the delay of its node class, and is gone once that Node is being deleted.

use convoy_api::Object;
use jiff::{SignedDuration, Timestamp};

use crate::dialect::karpenter::names::{annotation, condition};
use crate::dialect::karpenter::read::catalogue::{self, InstanceType, Offering};
use crate::dialect::karpenter::read::claim::Member;
use crate::dialect::karpenter::read::lifecycle::{Claim, since};
use crate::dialect::karpenter::read::node;
use crate::gate::{self, Limit, Permit};
use crate::hold::HoldReason;
use crate::resources;

/// A claim that is not launched within this time is given up.
const LAUNCH_LIMIT: SignedDuration = SignedDuration::from_mins(5);

/// The same for one that is not registered.
const REGISTRATION_LIMIT: SignedDuration = SignedDuration::from_mins(15);

/// A claim that the provider has no machine for is given up after this time, so that the next one
/// is not made at once.
const REFUSAL_PAUSE: SignedDuration = SignedDuration::from_secs(10);

/// A Node that has less of a resource than this share of what was expected is not consistent.
const CONSISTENT_PERCENT: i128 = 90;

/// What happens next in the life of a claim.
#[derive(Clone, Debug)]
pub(crate) enum Stage<'w> {
    /// Its machine is of another provider, which has to launch it.
    Foreign,
    /// It is launched as this machine.
    Launch(&'static InstanceType, Offering),
    /// It is given up, for a reason in upstream's words.
    GiveUp {
        reason: &'static str,
        message: String,
        permit: Permit,
    },
    /// The provider has no machine for it; it is given up then.
    Refused {
        until: Option<Timestamp>,
        message: String,
    },
    /// Its machine is on its way, until then.
    Booting {
        until: Timestamp,
    },
    /// Its machine appears.
    Appear,
    /// Several Nodes claim to be its machine.
    Several,
    /// Its Node joins the cluster.
    Register(&'w Object),
    /// Its Node has joined, and is not ready for pods.
    Wait {
        reason: &'static str,
        message: String,
    },
    /// Its Node is ready for pods.
    Initialize(&'w Object),
    Ready,
}

/// When a claim is given up, if it does not get on.
pub(crate) fn gives_up_at(claim: &Object) -> Option<Timestamp> {
    let is = |kind: &str| claim.condition_status(kind) == Some("True");
    let (kind, limit) = if !is(condition::LAUNCHED) {
        (condition::LAUNCHED, LAUNCH_LIMIT)
    } else if !is(condition::REGISTERED) {
        (condition::REGISTERED, REGISTRATION_LIMIT)
    } else {
        return None;
    };
    since(claim, kind)?.checked_add(limit).ok()
}

/// The resources of a Node that are less than nine tenths of what its claim expects of them, in
/// words; only those that the claim asked for.
pub(crate) fn inconsistencies(claim: &Claim<'_>, node: &Object) -> Vec<String> {
    let mut found = Vec::new();
    for name in claim.requested() {
        let amount = |object: &Object| resources::capacity_millis(object, name);
        let (expected, has) = (amount(claim.object), amount(node));
        let (share, least) = (i128::from(has) * 100, i128::from(expected) * CONSISTENT_PERCENT);
        if expected > 0 && share < least {
            let percent = share / i128::from(expected);
            found.push(format!("the Node has {percent}% of the {name} that its NodeClaim expects"));
        }
    }
    found
}

/// What happens next to a claim that is not being deleted.
pub(crate) fn stage<'w>(claim: &Claim<'w>, now: Timestamp) -> Stage<'w> {
    if claim.object.annotation(annotation::INSTANCE) == Some("Interrupted") {
        let message = "the provider takes its machine back".to_owned();
        return given_up("interrupted", message, None);
    }
    if gives_up_at(claim.object).is_some_and(|at| at <= now) {
        let (reason, verb) = if claim.is(condition::LAUNCHED) {
            ("registration_timeout", "registered")
        } else {
            ("launch_timeout", "launched")
        };
        return given_up(reason, format!("the NodeClaim was not {verb} in time"), None);
    }
    if !claim.is(condition::LAUNCHED) {
        return launch(claim, now);
    }
    match (claim.nodes.as_slice(), claim.is(condition::REGISTERED)) {
        (_, false) if registration_failed(claim) => Stage::Several,
        ([_, _, ..], false) => Stage::Several,
        ([], false) => boot(claim, now),
        ([node], false) => Stage::Register(node),
        ([], true) => {
            let message = "the provider no longer has its instance".to_owned();
            given_up("garbage_collected", message, None)
        }
        ([node, ..], true) if !claim.is(condition::INITIALIZED) => initialize(claim, node),
        ([_, ..], true) => Stage::Ready,
    }
}

/// Several Nodes: that is never judged again.
fn registration_failed(claim: &Claim<'_>) -> bool {
    claim.object.condition_status(condition::REGISTERED) == Some("False")
}

/// A claim that does not get on is deleted. Only the pause after a refusal limits that.
fn given_up<'w>(reason: &'static str, message: String, until: Option<Timestamp>) -> Stage<'w> {
    let refused = || HoldReason::NotAvailable { detail: message.clone() };
    let pause = until.map(|_| Limit::closed(refused()));
    match gate::grant(1, pause.as_slice()).permit() {
        Some(permit) => Stage::GiveUp { reason, message, permit },
        None => Stage::Refused { until, message },
    }
}

/// The permit of a claim that goes because its Node is being deleted: nothing limits that.
pub(crate) fn follows(member: &Member<'_>) -> Option<Permit> {
    let node_goes = member.node.or(member.shared).is_some_and(|node| node.facts.is_deleting);
    gate::grant(u32::from(node_goes), &[]).permit()
}

fn launch<'w>(claim: &Claim<'w>, now: Timestamp) -> Stage<'w> {
    if !claim.is_simulated {
        return Stage::Foreign;
    }
    let name = claim.class_name;
    let pause = claim.facts.created.and_then(|at| at.checked_add(REFUSAL_PAUSE).ok());
    let pause = pause.filter(|until| *until > now);
    let give_up = |reason, message| given_up(reason, message, pause);
    let Some(class) = &claim.class else {
        let message = format!("KWOKNodeClass {name} does not exist");
        return give_up("insufficient_capacity", message);
    };
    if !class.is_ready {
        return give_up("nodeclass_not_ready", format!("KWOKNodeClass {name} is not ready"));
    }
    if class.fails(claim.object) {
        let message = format!("the provider failed to launch a machine of KWOKNodeClass {name}");
        return Stage::Refused { until: None, message };
    }
    let Some((kind, offering)) = cheapest(claim, &class.sold_out) else {
        let message = "no instance type meets the requirements and resource requests";
        return give_up("insufficient_capacity", message.to_owned());
    };
    Stage::Launch(kind, offering)
}

/// The cheapest machine that a claim may be; of equals the first by name and zone.
fn cheapest(claim: &Claim<'_>, sold_out: &[&str]) -> Option<(&'static InstanceType, Offering)> {
    let (requirements, requests) = (claim.requirements(), claim.amounts());
    let suits = |kind: &InstanceType, offering: Offering| {
        requirements.keys().all(|key| match kind.label(offering, key) {
            Some(value) => requirements.allow(key, Some(value)),
            // Keys that no machine has come from the pool.
            None => true,
        })
    };
    let is_there = |kind: &InstanceType, offering: Offering| {
        let words = [kind.name.as_str(), offering.zone, offering.capacity_type];
        !words.iter().any(|word| sold_out.contains(word))
    };
    let types = catalogue::all().iter().filter(|kind| requests.fit_into(&kind.allocatable()));
    let all = types.flat_map(|kind| catalogue::offerings().map(move |offering| (kind, offering)));
    let fitting =
        all.filter(|(kind, offering)| is_there(kind, *offering) && suits(kind, *offering));
    let price = |(kind, offering): &(&InstanceType, Offering)| {
        kind.price(offering.capacity_type).unwrap_or(f64::INFINITY)
    };
    fitting.min_by(|one, other| price(one).total_cmp(&price(other)))
}

/// Whether the machine that was launched has come up.
fn boot<'w>(claim: &Claim<'w>, now: Timestamp) -> Stage<'w> {
    if !claim.is_simulated {
        return Stage::Foreign;
    }
    let delay = claim.class.as_ref().map_or(SignedDuration::ZERO, |class| class.delay);
    let until = since(claim.object, condition::LAUNCHED).and_then(|at| at.checked_add(delay).ok());
    match until {
        Some(until) if until > now => Stage::Booting { until },
        _ => Stage::Appear,
    }
}

/// Whether a Node that has joined is ready for pods.
fn initialize<'w>(claim: &Claim<'w>, node: &'w Object) -> Stage<'w> {
    let wait = |reason, message| Stage::Wait { reason, message };
    if node.condition_status("Ready") != Some("True") {
        return wait("NodeNotReady", "Node status is NotReady".to_owned());
    }
    let startup = node::startup_taints(claim.object);
    for taint in node::taints(node) {
        if node::is_startup(&startup, &taint) {
            let message = format!("StartupTaint \"{taint}\" still exists");
            return wait("StartupTaintsExist", message);
        }
        if node::is_ephemeral(&taint) {
            let message = format!("KnownEphemeralTaint \"{taint}\" still exists");
            return wait("KnownEphemeralTaintsExist", message);
        }
    }
    if let Some(name) = claim.unregistered_resource(node) {
        let message = format!("Resource {name:?} was requested but not registered");
        return wait("ResourceNotRegistered", message);
    }
    Stage::Initialize(node)
}
