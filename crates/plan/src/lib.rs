//! The engine: a bag of Kubernetes objects and an instant go in, what happens next in every
//! rollout and why nothing more does comes out.
//!
//! Everything here is pure: no clock, no randomness, no I/O. What cannot be understood
//! becomes a [`Diagnostic`]. [`dialect`] holds the five APIs, each a [`Dialect`]; the modules
//! beside it are the concepts they share.

pub mod admission;
mod ascending;
pub mod availability;
pub mod budget;
mod built_in_kind;
mod by_name;
pub mod condition;
pub mod conversion;
pub mod cron;
pub mod diagnostic;
pub mod dialect;
mod elapsed;
pub mod explanation;
mod finalizer;
pub mod gate;
mod hash;
pub mod hold;
pub mod intervention;
pub mod json;
mod json_diff;
mod memory;
pub mod merge_patch;
pub mod metric;
pub mod node_selector;
mod object_patch;
mod ownership;
pub mod pace;
mod parallel;
pub mod permission;
mod pod_budget;
mod pod_template;
mod pods;
mod portable;
pub mod quota;
mod refusal;
mod requirement;
mod resources;
pub mod selector;
pub mod series;
pub mod snapshot;
mod status;
pub mod step;
pub mod taint;
mod text;
pub mod three_way;
mod topology;
pub mod validation;
mod warning;
pub mod webhook;
pub mod window;
pub mod world;

pub use built_in_kind::is_namespaced;
pub use diagnostic::{Diagnostic, Severity};
pub use dialect::{DIALECTS, Dialect, Keep, NamedKind, Need, Watch};
pub use hold::{Hold, HoldReason};
pub use intervention::{Intervention, Refused, Revision};
pub use refusal::event_of as refused_event;
pub use snapshot::Snapshot;
pub use step::{
    Action, Complaint, Denial, Event, EventType, GroupReport, MemberState, Step, Verb, Verdict,
    Why, Write,
};
pub use warning::Warned;
pub use world::World;

use std::panic::{AssertUnwindSafe, catch_unwind};

use convoy_api::{Object, ObjectKey};
use jiff::Timestamp;

use self::hold::REPORT_DEFECT;
use self::refusal::Refusals;

/// What every rollout does next, and what is wrong with the objects given.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub now: Timestamp,
    pub diagnostics: Vec<Diagnostic>,
    /// By dialect in the order of [`DIALECTS`], then by key.
    pub steps: Vec<Step>,
}

/// Decides the next step of every rollout in `world`, as of `now`.
///
/// Equal inputs give equal plans, byte for byte, in whatever order the objects were listed.
/// Objects that a dialect refuses take no part: they give diagnostics and, if they are
/// rollouts, a step whose verdict is [`Verdict::Invalid`]. A rollout that hangs on a refused
/// object is held, so that nothing is done because it is missing; the others go on.
#[must_use = "a plan changes nothing until it is applied"]
pub fn plan(world: &World, now: Timestamp) -> Plan {
    let diagnostics = validate(world);
    let refusals = Refusals::among(&diagnostics);
    let mut steps = Vec::new();
    for dialect in DIALECTS {
        let sound = refusals.sound(*dialect, world);
        // Of several dialects that look at a refused object, the one that refuses it tells so.
        let is_told_elsewhere = |rollout: &&Object| {
            refusals.refuses(rollout.key()) && !dialect.validates(rollout.kind())
        };
        for rollout in dialect.rollouts(world).into_iter().filter(|it| !is_told_elsewhere(it)) {
            steps.push(next(*dialect, (world, &sound), &refusals, rollout, now));
        }
    }
    Plan { now, diagnostics, steps }
}

/// Decides the next step of one rollout, by the rules of [`plan`]; none if `rollout` is not
/// there, or is no rollout of this dialect any more.
///
/// `refused` holds what validation found wrong with the objects of this dialect. Callers that
/// decide often keep it per object, so that a pass does not validate the world again.
#[must_use = "a step changes nothing until it is carried out"]
pub fn decide(
    dialect: &dyn Dialect,
    world: &World,
    refused: &[Diagnostic],
    rollout: &ObjectKey,
    now: Timestamp,
) -> Option<Step> {
    let rollout = world.get(rollout).filter(|object| dialect.is_rollout(world, object))?;
    let refusals = Refusals::among(refused);
    let sound = refusals.sound(dialect, world);
    Some(next(dialect, (world, &sound), &refusals, rollout, now))
}

/// The step of a rollout about which nothing can be decided, as `missing` is not observed. None as
/// with [`decide`].
#[must_use = "a step changes nothing until it is carried out"]
pub fn postpone(
    dialect: &dyn Dialect,
    world: &World,
    rollout: &ObjectKey,
    missing: HoldReason,
) -> Option<Step> {
    let rollout = world.get(rollout).filter(|object| dialect.is_rollout(world, object))?;
    let event = match &missing {
        // A list that takes its time is not worth an event.
        HoldReason::NotObserved { detail, .. } if detail.is_empty() => None,
        missing => Some(format!("Nothing is decided: {missing}")),
    };
    let mut step = Step::held(dialect.name(), rollout, Hold::of_rollout(missing));
    let event =
        event.map(|message| Event::new(rollout.key(), EventType::Warning, "NotObserved", message));
    step.events.extend(event.map(Event::lasting));
    Some(step)
}

/// What is told about a rollout when the server denies a write of its step; none as with
/// [`decide`].
#[must_use = "a complaint is heard when it is written"]
pub fn complain(
    dialect: &dyn Dialect,
    world: &World,
    refused: &[Diagnostic],
    rollout: &ObjectKey,
    denial: &Denial,
    now: Timestamp,
) -> Option<Complaint> {
    let rollout = world.get(rollout).filter(|object| dialect.is_rollout(world, object))?;
    let refusals = Refusals::among(refused);
    let sound = refusals.sound(dialect, world);
    Some(dialect.complaint(&dialect.snapshot(&sound, rollout), denial, now))
}

/// One rollout of the whole world, decided in what is sound of it.
fn next(
    dialect: &dyn Dialect,
    (world, sound): (&World, &World),
    refusals: &Refusals<'_>,
    rollout: &Object,
    now: Timestamp,
) -> Step {
    let fields = refusals.fields(rollout.key());
    let decided = || guarded(|| dialect.step(&dialect.snapshot(sound, rollout), now));
    let step = if !fields.is_empty() {
        let own = dialect.reports_invalid(rollout.kind()).then(decided).and_then(Result::ok);
        let own = own.filter(|step| step.verdict == Verdict::Invalid).map(step::finished);
        own.unwrap_or_else(|| Step::invalid(dialect.name(), rollout, fields))
    } else if let Some(hold) = refusals.hold(dialect, world, rollout) {
        Step::held(dialect.name(), rollout, hold)
    } else {
        let failed = |panic| Step::failed(dialect.name(), rollout, panic, now);
        step::finished(decided().unwrap_or_else(failed))
    };
    debug_assert_eq!(
        permission::uncovered(dialect.permissions(), dialect.member_permissions(), &step),
        [],
        "{} writes what its table of permissions lacks",
        dialect.name()
    );
    refusal::told(step, rollout, refusals, now)
}

/// What is wrong with the objects of `world`: per object and across objects.
#[must_use = "diagnostics are the only result"]
pub fn validate(world: &World) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for dialect in DIALECTS {
        for (_, objects) in world.by_kind().filter(|(kind, _)| dialect.validates(kind)) {
            for object in objects {
                found.extend(validate_object(*dialect, world, object));
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

/// What `dialect` finds wrong with one object. A defect in a check refuses the object it fails on,
/// and harms no other.
#[must_use = "diagnostics are the only result"]
pub fn validate_object(dialect: &dyn Dialect, world: &World, object: &Object) -> Vec<Diagnostic> {
    guarded(|| dialect.validate(world, object)).unwrap_or_else(|panic| {
        let message = format!("validation failed ({panic}); {REPORT_DEFECT}");
        vec![Diagnostic::error(object, "", message)]
    })
}

/// What `work` gives, or the message with which it panics. Decisions only read, so nothing is
/// left half done.
fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        text.unwrap_or("no message").to_owned()
    })
}

/// A length as a count of members.
pub(crate) fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

impl Plan {
    /// Whether any object was refused.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }
}
