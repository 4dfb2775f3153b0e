//! The rollouts of a report as people name them. Nothing is decided here: the engine's steps are
//! selected, found and summed up.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use convoy_api::text::similar;
use convoy_api::{Object, ObjectKey};
use convoy_controllers::live_objects::LiveObjects;
use convoy_plan::{DIALECTS, Dialect, Hold, HoldReason, NamedKind, Step, Verdict, World};
use jiff::Timestamp;
use serde_json::{Value, json};
use smol_str::SmolStr;

use crate::input::Manifests;
use crate::report::Report;

/// The dialect that decided a step.
pub(crate) fn dialect_of(step: &Step) -> &'static dyn Dialect {
    let found = DIALECTS.iter().find(|dialect| dialect.name() == step.dialect);
    *found.expect("a plan has steps of these dialects only")
}

/// The kind of a rollout, if people call it one.
fn named_kind(step: &Step) -> Option<&'static NamedKind> {
    dialect_of(step).rollout_kinds().iter().find(|named| named.kind == step.rollout.kind)
}

/// Whether people call what a step is about a rollout.
pub(crate) fn is_rollout(step: &Step) -> bool {
    named_kind(step).is_some()
}

/// The rollouts of one namespace and of cluster scope; with no namespace, all.
pub(crate) fn within<'r>(report: &'r Report, namespace: Option<&str>) -> Vec<&'r Step> {
    let steps = report.plan.steps.iter().filter(|step| is_rollout(step));
    steps.filter(|step| is_within(&step.rollout, namespace)).collect()
}

/// Whether a rollout is of a namespace or of cluster scope; without a namespace, always.
pub(crate) fn is_within(rollout: &ObjectKey, namespace: Option<&str>) -> bool {
    namespace.is_none_or(|space| rollout.namespace.is_empty() || rollout.namespace == space)
}

/// The rollouts among some objects, of one namespace and of cluster scope or all, without decisions.
pub(crate) fn undecided(world: &World, namespace: Option<&str>) -> Vec<Step> {
    let mut steps = Vec::new();
    for dialect in DIALECTS {
        let rollouts = dialect.rollouts(world).into_iter();
        for rollout in rollouts.filter(|rollout| is_within(rollout.key(), namespace)) {
            let step = Step::new(dialect.name(), rollout, Verdict::Held);
            steps.extend(is_rollout(&step).then_some(step));
        }
    }
    steps
}

/// A report on the objects of a cluster. Parts of rollouts are left out, and nothing is decided
/// about rollouts that hang on objects which could not be read.
pub(crate) fn report(live: LiveObjects, now: Timestamp, dialects: &[&str], check: bool) -> Report {
    let LiveObjects { world, unread, .. } = live;
    let mut report = Report::new(Manifests::of(world), now, dialects, check);
    report.plan.steps.retain(is_rollout);
    let world = &report.manifests.world;
    for step in &mut report.plan.steps {
        let dialect = dialect_of(step);
        let missing = dialect.watches().iter().find_map(|watch| unread.get_key_value(&watch.kind));
        let Some((kind, why)) = missing else { continue };
        let (cluster, kind, detail) = (String::new(), kind.to_string(), why.clone());
        let reason = HoldReason::NotObserved { cluster, kind, detail };
        if let Some(held) = convoy_plan::postpone(dialect, world, &step.rollout, reason) {
            *step = held;
        }
    }
    report
}

/// What is named on a command line: `NAME`, `KIND/NAME`, `KIND NAME` or, where several are meant,
/// `KIND`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) kind: Option<String>,
    pub(crate) name: Option<String>,
}

impl Target {
    /// Reads one or two words. A single one is a name.
    pub(crate) fn read(words: &[String]) -> Self {
        let (kind, name) = match words {
            [] => (None, None),
            [word] => match word.split_once('/') {
                Some((kind, name)) => (Some(kind), Some(name)),
                None => (None, Some(word.as_str())),
            },
            [kind, name, ..] => (Some(kind.as_str()), Some(name.as_str())),
        };
        Self { kind: kind.map(str::to_owned), name: name.map(str::to_owned) }
    }

    /// The same where a single word may be a kind.
    pub(crate) fn read_filter(words: &[String]) -> Self {
        match Self::read(words) {
            Self { kind: None, name: Some(word) } if is_kind(&word) => {
                Self { kind: Some(word), name: None }
            }
            target => target,
        }
    }

    /// An error if no dialect has the kind.
    pub(crate) fn check_kind(&self) -> Result<()> {
        match &self.kind {
            Some(kind) if !is_kind(kind) => {
                let known = kind_words();
                let meant = similar::question(kind, known.iter().map(String::as_str));
                bail!("unknown kind {kind:?}{meant}; kinds of rollouts: {}", known.join(", "))
            }
            _ => Ok(()),
        }
    }

    /// The dialects that have the kind; empty if any may be meant.
    pub(crate) fn dialects(&self) -> Vec<&'static str> {
        let Some(kind) = &self.kind else { return Vec::new() };
        let has_it = |dialect: &&&'static dyn Dialect| {
            dialect.rollout_kinds().iter().any(|named| named.is_called(kind))
        };
        DIALECTS.iter().filter(has_it).map(|dialect| dialect.name()).collect()
    }

    pub(crate) fn matches(&self, step: &Step) -> bool {
        let is_kind = |kind: &String| named_kind(step).is_some_and(|named| named.is_called(kind));
        self.kind.as_ref().is_none_or(is_kind)
            && self.name.as_ref().is_none_or(|name| step.rollout.name == name.as_str())
    }

    /// The only step that matches.
    pub(crate) fn find<'r>(&self, steps: &[&'r Step]) -> Result<&'r Step> {
        self.check_kind()?;
        let found: Vec<&'r Step> =
            steps.iter().filter(|step| self.matches(step)).copied().collect();
        match found.as_slice() {
            [only] => Ok(*only),
            [] => {
                let kind = self.kind.as_deref().unwrap_or("rollout");
                let name = self.name.as_deref().unwrap_or_default();
                // A single word may be a kind as well.
                let kinds = if self.kind.is_none() { kind_words() } else { Vec::new() };
                let of_kind = Self { kind: self.kind.clone(), name: None };
                let names = steps.iter().filter(|step| of_kind.matches(step));
                let names = names.map(|step| step.rollout.name.as_str());
                let known = names.chain(kinds.iter().map(String::as_str));
                let meant = similar::question(name, known);
                bail!("{kind} {name:?} not found{meant}; `convoy get -A` lists all rollouts")
            }
            several => {
                let names: Vec<String> = several.iter().map(|step| path(&step.rollout)).collect();
                bail!("several rollouts match; name one of {}", names.join(", "))
            }
        }
    }
}

fn is_kind(word: &str) -> bool {
    let mut kinds = DIALECTS.iter().flat_map(|dialect| dialect.rollout_kinds());
    kinds.any(|named| named.is_called(word))
}

fn kind_words() -> Vec<String> {
    let kinds = DIALECTS.iter().flat_map(|dialect| dialect.rollout_kinds());
    kinds.map(|named| named.kind.kind.to_lowercase()).collect()
}

/// `deployment/web`, after the namespace where it has one.
pub(crate) fn path(key: &ObjectKey) -> String {
    let namespace =
        if key.namespace.is_empty() { String::new() } else { format!(" -n {}", key.namespace) };
    format!("{}/{}{namespace}", key.kind.kind.to_lowercase(), key.name)
}

/// `deployment.apps/web`, as `kubectl -o name` has it.
pub(crate) fn full_name(key: &ObjectKey) -> String {
    let group =
        if key.kind.group.is_empty() { String::new() } else { format!(".{}", key.kind.group) };
    format!("{}{group}/{}", key.kind.kind.to_lowercase(), key.name)
}

/// Members in flight: on their way, or being watched.
pub(crate) fn in_flight(step: &Step) -> u32 {
    step.groups.iter().map(|group| group.moving + group.settling).sum()
}

pub(crate) fn failed(step: &Step) -> u32 {
    step.groups.iter().map(|group| group.failed).sum()
}

/// The batches that the groups are at: `2`, or `1-3` where they differ.
pub(crate) fn batch(step: &Step) -> Option<String> {
    let numbers = || step.groups.iter().filter_map(|group| Some(group.batch.as_ref()?.number));
    let (first, last) = (numbers().min()?, numbers().max()?);
    Some(if first == last { first.to_string() } else { format!("{first}-{last}") })
}

/// Adds the holds of members that decisions need not look at, for people who ask.
pub(crate) fn add_member_holds(report: &mut Report) {
    let world = &report.manifests.world;
    for step in &mut report.plan.steps {
        let Some(rollout) = world.get(&step.rollout) else { continue };
        let known: BTreeSet<Option<SmolStr>> =
            step.holds.iter().map(|hold| hold.member.clone()).collect();
        let more = dialect_of(step).member_holds(world, rollout).into_iter();
        let more: Vec<Hold> = more.filter(|hold| !known.contains(&hold.member)).collect();
        step.holds.extend(more);
    }
}

/// One rollout of `convoy get -o json`.
pub(crate) fn to_json(step: &Step, rollout: Option<&Object>, reason: Option<String>) -> Value {
    let (done, total) = step.progress();
    let mut json = step.to_json();
    let created = rollout.and_then(Object::created_at).map(|at| at.to_string());
    json!({
        "dialect": json["dialect"].take(),
        "object": json["object"].take(),
        "verdict": json["verdict"].take(),
        "done": done,
        "total": total,
        "batch": batch(step),
        "inFlight": in_flight(step),
        "failed": failed(step),
        "reason": reason,
        "groups": json["groups"].take(),
        "wakeAt": json["wakeAt"].take(),
        "createdAt": created,
    })
}

/// Whether a hold says that a member does not move.
pub(crate) fn is_held(hold: &Hold) -> bool {
    hold.reason != HoldReason::NoReason
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> (Option<String>, Option<String>) {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let target = Target::read_filter(&words);
        (target.kind, target.name)
    }

    #[test]
    fn rollouts_are_named_as_in_kubectl() {
        let some = |word: &str| Some(word.to_owned());
        assert_eq!(read(&["web"]), (None, some("web")));
        assert_eq!(read(&["deploy/web"]), (some("deploy"), some("web")));
        assert_eq!(read(&["crp", "web"]), (some("crp"), some("web")));
        assert_eq!(read(&["nodepools"]), (some("nodepools"), None));
        assert_eq!(read(&[]), (None, None));
        for word in ["Deployment", "deployments.apps", "skyhook", "mwrs", "placement"] {
            assert!(is_kind(word), "{word}");
        }
        assert!(!is_kind("deployment.example.com") && !is_kind("pod"));
    }
}
