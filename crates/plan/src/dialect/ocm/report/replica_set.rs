//! A `ManifestWorkReplicaSet`: one work per selected cluster, handed out as its strategy says.

use std::collections::BTreeSet;

use convoy_api::Object;
use convoy_api::object::member::text;
use convoy_api::ocm::names::{PLACEMENT_NAME_LABEL, REPLICA_SET_FINALIZER};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::dialect::ocm::decide::reference::{Outcome, Rolled, roll};
use crate::dialect::ocm::decide::schedule::earlier;
use crate::dialect::ocm::read::work::{Template, Works, delete, owner_value};
use crate::dialect::ocm::read::work_status::Standing;
use crate::dialect::ocm::{group_title, list, seconds_until};
use crate::hold::{Hold, HoldReason};
use crate::snapshot::Snapshot;
use crate::step::{Action, GroupReport, MemberState, Step, Verb, Verdict, Why};

/// The most characters that a label value, and so `namespace.name`, may have.
const OWNER_MAX: usize = 63;

/// What happens next with one replica set.
pub(crate) fn step(snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
    let replica_set = snapshot.rollout();
    let works = Works::read(snapshot);
    if replica_set.is_deleting() {
        return leave(replica_set, &works, now);
    }
    if owner_value(replica_set).len() > OWNER_MAX {
        return unnameable(replica_set, now);
    }
    let template = Template::read(replica_set);
    let mut pass = Pass::new(replica_set);
    let protected = replica_set.has_finalizer(REPLICA_SET_FINALIZER);
    if protected {
        pass.drop_unreferenced(&works);
    } else {
        pass.step.actions.push(protect(replica_set));
    }
    for entry in references(replica_set) {
        let mut outcome = roll(snapshot, entry, &works, &template, now);
        match &mut outcome {
            Outcome::Rolled(rolled) => {
                if !protected {
                    let on = "its replica set to be protected by a finalizer".to_owned();
                    rolled.defer(&HoldReason::Depends { on });
                }
                pass.carry_out(rolled, &template, &works, now);
            }
            Outcome::NotFound => {
                pass.missing(text(entry, "name"));
                pass.outcomes.push(outcome);
                break;
            }
            Outcome::Error(error) => pass.unreadable(error),
        }
        pass.outcomes.push(outcome);
    }
    pass.finish(protected, now)
}

/// The placement references, in order.
fn references(replica_set: &Object) -> &[Value] {
    list(replica_set.spec().get("placementRefs"))
}

/// Deletes the works of a replica set that is going, then lets it go.
fn leave(replica_set: &Object, works: &Works<'_>, now: Timestamp) -> Step {
    let mut step = Step::new("ocm", replica_set, Verdict::Done);
    let mut removed = BTreeSet::new();
    let mut report = GroupReport::new("removed");
    for work in &works.all {
        report.count(MemberState::Gone);
        if !work.is_deleting() {
            removed.insert(work.namespace().as_str());
            let message = format!("{} is being deleted", replica_set.name());
            step.actions.push(delete(work, "ReplicaSetDeleted", message));
        }
    }
    let foreground = text(replica_set.spec(), "cascadeDeletionPolicy") == "Foreground";
    let waits = foreground && !works.all.is_empty();
    if replica_set.has_finalizer(REPLICA_SET_FINALIZER) && !waits {
        step.actions.push(release(replica_set));
    }
    if waits {
        let on = format!("{} ManifestWorks to be deleted", works.all.len());
        step.holds.push(Hold::of_rollout(HoldReason::Depends { on }));
    }
    if waits || !step.actions.is_empty() {
        step.verdict = Verdict::Moving;
    }
    if report.total > 0 {
        step.groups.push(report);
    }
    step.decision = json!({"rollout": [], "waiting": [], "timedOut": [], "failed": [],
        "removed": removed, "requeueAfterSeconds": seconds_until(None, now)});
    step
}

fn protect(replica_set: &Object) -> Action {
    let mut finalizers = list(replica_set.metadata().get("finalizers")).to_vec();
    finalizers.push(json!(REPLICA_SET_FINALIZER));
    let why = Why::new("FinalizerMissing", "its works must go before it does");
    let patch = json!({"metadata": {"finalizers": finalizers}});
    Action::patch(Verb::Record, replica_set, patch, why)
}

fn release(replica_set: &Object) -> Action {
    let finalizers = list(replica_set.metadata().get("finalizers")).iter();
    let finalizers: Vec<&Value> =
        finalizers.filter(|finalizer| finalizer.as_str() != Some(REPLICA_SET_FINALIZER)).collect();
    let why = Why::new("WorksDeleted", "its works are gone or on their way");
    let patch = json!({"metadata": {"finalizers": finalizers}});
    Action::patch(Verb::Release, replica_set, patch, why)
}

/// The works' label cannot say whose they are: nothing is done until it is renamed.
fn unnameable(replica_set: &Object, now: Timestamp) -> Step {
    let mut step = Step::new("ocm", replica_set, Verdict::Stopped);
    let owner = owner_value(replica_set);
    let message = format!(
        "{owner:?} cannot be a label value: the combined length of namespace and name must be at \
         most {OWNER_MAX} characters, with the dot between them"
    );
    step.status = crate::dialect::ocm::status::replica_set::with_condition(
        replica_set,
        "ManifestworkApplied",
        "InvalidManifestWorkName",
        &message,
        now,
    );
    step.holds.push(Hold::of_rollout(HoldReason::Stalled { detail: message }));
    step.decision = json!({"rollout": [], "waiting": [], "timedOut": [], "failed": [],
        "removed": [], "requeueAfterSeconds": null});
    step
}

/// One pass over all references, as it comes together.
struct Pass<'w> {
    replica_set: &'w Object,
    step: Step,
    outcomes: Vec<Outcome<'w>>,
    several: bool,
    rollout: BTreeSet<&'w str>,
    waiting: BTreeSet<&'w str>,
    timed_out: BTreeSet<&'w str>,
    failed: BTreeSet<&'w str>,
    removed: BTreeSet<&'w str>,
    leaving: GroupReport,
    recheck: Option<Timestamp>,
}

impl<'w> Pass<'w> {
    fn new(replica_set: &'w Object) -> Self {
        Self {
            replica_set,
            step: Step::new("ocm", replica_set, Verdict::Done),
            outcomes: Vec::new(),
            several: references(replica_set).len() > 1,
            rollout: BTreeSet::new(),
            waiting: BTreeSet::new(),
            timed_out: BTreeSet::new(),
            failed: BTreeSet::new(),
            removed: BTreeSet::new(),
            leaving: GroupReport::new("removed"),
            recheck: None,
        }
    }

    /// Deletes the works of placements that are no longer referred to.
    fn drop_unreferenced(&mut self, works: &Works<'w>) {
        let names: BTreeSet<&str> =
            references(self.replica_set).iter().map(|entry| text(entry, "name")).collect();
        for work in &works.all {
            let placement = work.label(PLACEMENT_NAME_LABEL);
            if placement.is_some_and(|placement| names.contains(placement)) {
                continue;
            }
            let message =
                format!("placement {:?} is not referred to", placement.unwrap_or_default());
            self.remove(work, "PlacementNotReferenced", message);
        }
    }

    fn remove(&mut self, work: &'w Object, reason: &'static str, message: String) {
        self.leaving.count(MemberState::Gone);
        if !work.is_deleting() {
            self.removed.insert(work.namespace());
            self.step.actions.push(delete(work, reason, message));
        }
    }

    /// The writes, reports and holds of one reference.
    fn carry_out(
        &mut self,
        rolled: &Rolled<'w>,
        template: &Template<'_>,
        works: &Works<'w>,
        now: Timestamp,
    ) {
        let placement = &rolled.placement;
        for cluster in &rolled.round.take {
            let work = works.pair(placement, cluster, template).work;
            self.step.actions.push(template.hand_out(cluster, placement, work, now));
        }
        for work in &rolled.mislabelled {
            self.step.actions.push(template.relabel(placement, work));
        }
        for work in &rolled.removed {
            self.remove(work, "NotSelected", format!("{placement} no longer selects the cluster"));
        }
        for work in &rolled.surplus {
            let message = format!("one work is enough for placement {placement}");
            self.step.actions.push(delete(work, "Surplus", message));
        }
        self.rollout.extend(rolled.round.take.iter());
        self.waiting.extend(rolled.round.waits.keys());
        for (cluster, standing) in rolled.members() {
            match standing {
                Standing::TimedOut => _ = self.timed_out.insert(cluster),
                Standing::Failed { .. } => _ = self.failed.insert(cluster),
                _ => {}
            }
        }
        self.recheck = earlier(self.recheck, rolled.round.recheck);
        self.report(rolled);
        if let Some(breach) = &rolled.round.breach {
            self.hold_rollout(rolled, breach.clone());
        }
    }

    fn report(&mut self, rolled: &Rolled<'w>) {
        for ring in &rolled.rings {
            let title = group_title(usize::try_from(ring.index).unwrap_or(0), &ring.name);
            let title = if self.several { format!("{}: {title}", rolled.placement) } else { title };
            let mut report = GroupReport::new(title.clone());
            let mandatory = rolled.round.mandatory.contains(&ring.index);
            report.ceiling = rolled.round.ceiling.filter(|_| !mandatory);
            for (cluster, standing) in &ring.members {
                report.count(state(*standing, rolled.round.take.contains(cluster)));
                let waits = rolled.round.waits.get(cluster);
                let reason = waits.cloned().or_else(|| in_flight(*standing, rolled));
                if let Some(reason) = reason {
                    let hold = Hold::of_member(*cluster, reason).in_group(title.clone());
                    self.step.holds.push(hold.until(standing.recheck()));
                }
            }
            self.step.groups.push(report);
        }
    }

    fn hold_rollout(&mut self, rolled: &Rolled<'_>, reason: HoldReason) {
        let hold = Hold::of_rollout(reason);
        let hold = if self.several { hold.in_group(rolled.placement.clone()) } else { hold };
        self.step.holds.push(hold);
    }

    fn missing(&mut self, name: &str) {
        let reason = HoldReason::Missing { kind: "Placement", name: name.to_owned() };
        self.step.holds.push(Hold::of_rollout(reason));
    }

    fn unreadable(&mut self, error: &str) {
        let detail = error.to_owned();
        self.step.holds.push(Hold::of_rollout(HoldReason::Stalled { detail }));
    }

    fn finish(mut self, protected: bool, now: Timestamp) -> Step {
        let not_found = self.outcomes.iter().any(|outcome| matches!(outcome, Outcome::NotFound));
        let (set, kind) = (self.replica_set, "PlacementVerified");
        self.step.status = if !protected {
            None
        } else if not_found {
            crate::dialect::ocm::status::replica_set::with_condition(
                set,
                kind,
                "PlacementDecisionNotFound",
                "",
                now,
            )
        } else {
            crate::dialect::ocm::status::replica_set::status(set, &self.outcomes, now)
        };
        if self.leaving.total > 0 {
            self.step.groups.push(self.leaving.clone());
        }
        self.step.verdict = self.verdict();
        if self.step.verdict == Verdict::Stopped
            && self.step.holds.iter().all(|hold| hold.member.is_some())
        {
            let lost = self.timed_out.len() + self.failed.len();
            let total: u32 = self.step.groups.iter().map(|group| group.total).sum();
            let detail = format!("{lost} of {total} clusters failed or timed out");
            self.step.holds.push(Hold::of_rollout(HoldReason::Failed { detail }));
        }
        self.step.wake_at = self.recheck;
        self.step.decision = json!({
            "rollout": self.rollout,
            "waiting": self.waiting,
            "timedOut": self.timed_out,
            "failed": self.failed,
            "removed": self.removed,
            "requeueAfterSeconds": seconds_until(self.recheck, now),
        });
        self.step
    }

    fn verdict(&self) -> Verdict {
        let any = |count: fn(&GroupReport) -> u32| self.step.groups.iter().any(|g| count(g) > 0);
        let broken = self.outcomes.iter().any(|outcome| !matches!(outcome, Outcome::Rolled(_)));
        let waiting = |reason: &HoldReason| matches!(reason, HoldReason::Depends { .. });
        if !self.step.actions.is_empty() || any(|group| group.moving + group.settling + group.gone)
        {
            Verdict::Moving
        } else if broken
            || self.recheck.is_some()
            || self.step.holds.iter().any(|hold| waiting(&hold.reason))
        {
            Verdict::Held
        } else if any(|group| group.waiting + group.failed) {
            Verdict::Stopped
        } else {
            Verdict::Done
        }
    }
}

/// Where a cluster stands, in the words that all dialects share.
fn state(standing: Standing, taken: bool) -> MemberState {
    match standing {
        Standing::Unstarted if taken => MemberState::Moving,
        Standing::Unstarted | Standing::Leaving => MemberState::Waiting,
        Standing::ToApply | Standing::Progressing { .. } => MemberState::Moving,
        Standing::Soaking { .. } => MemberState::Settling,
        Standing::Finished => MemberState::Done,
        Standing::Failed { .. } | Standing::TimedOut => MemberState::Failed,
    }
}

/// What a cluster that has the template is waiting for, if it is.
fn in_flight(standing: Standing, rolled: &Rolled<'_>) -> Option<HoldReason> {
    let detail = |text: &str| text.to_owned();
    let deadline = rolled.strategy.deadline.map_or(0, |deadline| deadline.as_secs());
    Some(match standing {
        Standing::Unstarted | Standing::Leaving | Standing::Finished => return None,
        Standing::ToApply => {
            HoldReason::NotAvailable { detail: detail("its agent has not applied the work yet") }
        }
        Standing::Progressing { .. } => {
            HoldReason::NotAvailable { detail: detail("the work is still progressing") }
        }
        Standing::Soaking { .. } => {
            HoldReason::Settling { for_secs: rolled.strategy.soak.as_secs() }
        }
        Standing::Failed { .. } => {
            HoldReason::Failed { detail: detail("the work is degraded or could not be applied") }
        }
        Standing::TimedOut => HoldReason::Failed { detail: format!("timed out after {deadline}s") },
    })
}
