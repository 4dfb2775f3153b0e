//! Whether the limit that a hold names leaves no room, as the objects themselves say: members in
//! flight, schedules, taints and switches are read here again, without the engine's readings.

use std::collections::BTreeSet;

use convoy_api::Object;
use convoy_api::kinds::NODE;
use convoy_plan::{Hold, HoldReason, Step, Verb, Verdict, World, Write};
use convoy_testkit::{NOW, object};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use crate::moves;

/// A hold, and what it is measured against.
#[derive(Clone, Copy)]
pub(crate) struct Claim<'a> {
    pub(crate) world: &'a World,
    pub(crate) step: &'a Step,
    pub(crate) hold: &'a Hold,
    pub(crate) now: Timestamp,
    /// How many members of the hold's group, or of the step, start.
    pub(crate) starts: usize,
}

impl<'a> Claim<'a> {
    pub(crate) fn is_true(self) -> bool {
        match &self.hold.reason {
            HoldReason::BudgetSpent { limit, in_flight, ceiling, by } => {
                // A compartment has nobody in flight when a batch begins.
                let agrees = *limit != "the compartment" || *in_flight as usize == self.starts;
                in_flight >= ceiling && by.len() <= *in_flight as usize && agrees
            }
            HoldReason::AvailabilityFloor { limit, available, required, unavailable, by } => {
                let is_full = available <= required && by.len() <= *unavailable as usize;
                is_full && self.may_serve(*available) && self.is_required(limit, *required)
            }
            HoldReason::BatchFull { size, .. } => self.in_batch() == *size as usize,
            HoldReason::BatchRunning { unfinished, by, .. } => {
                let in_flight = self.with_slot();
                let are_in_flight = by.iter().all(|name| in_flight.contains(name.as_str()));
                let some = *unfinished > 0 && *unfinished as usize <= in_flight.len();
                some && are_in_flight && self.starts == 0
            }
            HoldReason::GroupOrder { behind, unfinished } => {
                let mut groups = self.step.groups.iter();
                let is_open = groups.any(|it| behind.contains(&it.name) && it.done < it.total);
                *unfinished > 0 && is_open
            }
            HoldReason::FailureStop { value, failures, .. } => {
                failures >= value && *failures > 0 && self.starts == 0
            }
            HoldReason::WindowClosed => self.is_in_blackout(),
            HoldReason::Paused => self.is_paused() && self.nobody_moves(),
            HoldReason::Disabled => self.is_disabled() && self.nobody_moves(),
            HoldReason::Ignored { by } => {
                let key = by.rsplit(' ').next().unwrap_or_default();
                let kept = |it: &Object| it.label(key).or(it.annotation(key)) == Some("true");
                self.members().any(kept)
            }
            HoldReason::TaintNotTolerated { taint } => self.members().any(|it| has(it, taint)),
            HoldReason::BehindRollout { rollout, priority } => self.is_behind(rollout, *priority),
            HoldReason::Missing { kind, name } => {
                !self.world.iter().any(|it| it.kind().kind == *kind && it.name() == name)
            }
            HoldReason::Approval { request } => self.is_asked_for(request),
            HoldReason::PodDisruptionBudget { budget, allowed, .. } => {
                let exists = self.world.iter().any(|it| {
                    it.kind().kind == "PodDisruptionBudget"
                        && budget.rsplit('/').next() == Some(it.name())
                });
                exists && *allowed <= 0
            }
            // Not limits: what a member, or the rollout, does or waits for by itself.
            HoldReason::PodProtected { .. }
            | HoldReason::Draining { .. }
            | HoldReason::Settling { .. }
            | HoldReason::NotAvailable { .. }
            | HoldReason::Depends { .. }
            | HoldReason::Failed { .. }
            | HoldReason::NotSelected { .. }
            | HoldReason::NotDisruptable { .. }
            | HoldReason::NoReason
            | HoldReason::Stalled { .. }
            | HoldReason::Invalid { .. }
            | HoldReason::HangsOnRefused { .. }
            | HoldReason::NotObserved { .. } => true,
            HoldReason::PlanFailed { .. } => false,
        }
    }

    /// Whether so many clusters of a placement can be available: there are as many bindings.
    fn may_serve(self, available: u32) -> bool {
        let bindings = self.world.iter().filter(|it| it.kind().kind == "ClusterResourceBinding");
        self.step.dialect != "fleet" || bindings.count() >= available as usize
    }

    /// Whether a disruption budget asks for so many.
    fn is_required(self, limit: &str, required: u32) -> bool {
        let kind = "ClusterResourcePlacementDisruptionBudget";
        let mut budgets = self.world.iter().filter(|it| it.kind().kind == kind);
        limit != "minAvailable" || budgets.any(|it| it.spec()["minAvailable"] == required)
    }

    /// How many members have begun in the batch that begins now. Other dialects than Skyhook only
    /// have bursts: a step makes or removes so many pods or claims, and the next one goes on.
    fn in_batch(self) -> usize {
        if self.step.dialect == "skyhook" {
            return self.starts;
        }
        let writes = |made: fn(&Write) -> bool| {
            let counted = self.step.actions.iter().filter(|it| moves(it.verb) && made(&it.write));
            counted.count()
        };
        let removed = writes(|write| matches!(write, Write::Delete { .. } | Write::Evict { .. }));
        writes(|write| matches!(write, Write::Create { .. })).max(removed)
    }

    /// The nodes of the hold's compartment that have a slot: the Skyhook's status lists them, or
    /// they say themselves that they are in progress.
    fn with_slot(self) -> BTreeSet<&'a str> {
        let rollout = self.rollout();
        let key = format!("skyhook.nvidia.com/status_{}", rollout.name());
        let has_slot = |name: &&str| {
            let node = self.world.find(&NODE, "", name);
            node.and_then(|node| node.annotation(&key)) == Some("in_progress")
                || rollout.status()["nodePriority"].get(*name).is_some()
        };
        let compartment = self.hold.group.as_deref().unwrap_or_default();
        let members = self.step.decision["compartments"][compartment]["members"].as_array();
        members.into_iter().flatten().filter_map(Value::as_str).filter(has_slot).collect()
    }

    /// Whether a budget without nodes has a window that is open. The schedules are those that
    /// pools are drawn with.
    fn is_in_blackout(self) -> bool {
        let budgets = self.rollout().spec().pointer("/disruption/budgets");
        let budgets = budgets.and_then(Value::as_array).into_iter().flatten();
        let total: u32 = self.step.groups.iter().map(|group| group.total).sum();
        let mut closed = budgets.filter(|budget| {
            let allows_none = ["0", "0%"].iter().any(|none| budget["nodes"] == *none);
            allows_none || total == 0
        });
        closed.any(|budget| budget["schedule"].as_str().is_some_and(|it| is_open(it, self.now)))
    }

    fn is_paused(self) -> bool {
        let rollout = self.rollout();
        let says = |pointer: &str| rollout.spec().pointer(pointer) == Some(&Value::Bool(true));
        let annotation = rollout.annotation("skyhook.nvidia.com/pause") == Some("true");
        let state = rollout.spec()["state"].as_str();
        let run = self.step.dialect == "fleet" && state != Some("Run");
        annotation || says("/pause") || says("/paused") || says("/suspend") || run
    }

    fn is_disabled(self) -> bool {
        let keys = [
            "skyhook.nvidia.com/disable",
            "cluster.open-cluster-management.io/experimental-scheduling-disable",
        ];
        keys.iter().any(|key| self.rollout().annotation(key) == Some("true"))
    }

    /// Pods of a suspended Job are removed; nothing is started.
    fn nobody_moves(self) -> bool {
        let begins = |verb: Verb| matches!(verb, Verb::Start(_) | Verb::Retry(_) | Verb::Update(_));
        !self.step.actions.iter().any(|action| begins(action.verb))
    }

    fn is_behind(self, other: &str, priority: i64) -> bool {
        let order = |skyhook: &Object| skyhook.spec()["priority"].as_i64().unwrap_or(200);
        let kind = &self.step.rollout.kind;
        let first = self.world.find(kind, "", other);
        let own = (order(self.rollout()), self.rollout().name().as_str());
        first.is_some_and(|it| order(it) == priority && (priority, it.name().as_str()) < own)
    }

    /// Whether a request is there, or is made by this step, that nobody has approved.
    fn is_asked_for(self, request: &str) -> bool {
        let mut asked = self.world.iter().filter(|it| it.kind().kind.ends_with("ApprovalRequest"));
        let is_open = |it: &Object| it.condition_status("Approved") != Some("True");
        let made = self.step.actions.iter().any(|action| action.target.name == request);
        made || asked.any(|it| it.name() == request && is_open(it))
    }

    fn rollout(self) -> &'a Object {
        self.world.get(&self.step.rollout).expect("rollouts do not go")
    }

    /// The objects that the held member may be.
    fn members(self) -> impl Iterator<Item = &'a Object> {
        let name = self.hold.member.as_deref();
        self.world.iter().filter(move |it| Some(it.name().as_str()) == name)
    }
}

/// Whether an object has a taint, written as `key=value:effect`.
fn has(object: &Object, taint: &str) -> bool {
    let taints = object.spec()["taints"].as_array().into_iter().flatten();
    let mut keys = taints.filter_map(|it| it["key"].as_str());
    keys.any(|key| taint.strip_prefix(key).is_some_and(|rest| rest.starts_with(['=', ':'])))
}

/// Whether the window of a schedule is open, by hand.
fn is_open(schedule: &str, now: Timestamp) -> bool {
    let now = now.to_zoned(TimeZone::UTC);
    let minute = u16::from(now.hour().unsigned_abs()) * 60 + u16::from(now.minute().unsigned_abs());
    let is_weekend = now.weekday().to_monday_zero_offset() >= 5;
    match schedule {
        "0 0 * * *" => minute < 60,
        "30 23 * * *" => !(30..23 * 60 + 30).contains(&minute),
        "@hourly" => minute % 60 < 10,
        "0 12 * * *" => (12 * 60..14 * 60).contains(&minute),
        "0 0 30 2 *" => true, // it never opens, and is taken for open
        "0 0 * * sat-sun" => is_weekend && minute < 60,
        other => panic!("a schedule that this table does not know: {other}"),
    }
}

fn is_true(step: &Step, world: &World, reason: HoldReason, starts: usize, now: &str) -> bool {
    let hold = Hold::of_member("n1", reason);
    let now = now.parse().expect("an instant");
    Claim { world, step, hold: &hold, now, starts }.is_true()
}

#[test]
fn a_batch_is_full_with_as_many_members_as_it_may_have() {
    let rollout = object("skyhook.nvidia.com/v1alpha1", "Skyhook", "tune").build();
    let step = Step::new("skyhook", &rollout, Verdict::Held);
    let world = [rollout].into_iter().collect();
    let full =
        |starts| is_true(&step, &world, HoldReason::BatchFull { batch: 1, size: 2 }, starts, NOW);
    assert_eq!([full(0), full(1), full(2), full(3)], [false, false, true, false]);
    let by = ["n2".into()].into_iter().collect();
    let running = HoldReason::BatchRunning { batch: 1, unfinished: 1, by };
    assert!(!is_true(&step, &world, running, 0, NOW), "nobody has a slot");
    assert!(!is_true(&step, &world, HoldReason::Paused, 0, NOW), "nobody paused it");
    let taint = "broken:NoSchedule".to_owned();
    assert!(!is_true(&step, &world, HoldReason::TaintNotTolerated { taint }, 0, NOW));
}

#[test]
fn a_window_is_closed_outside_of_it_alone() {
    let budgets = json!([{"nodes": "0", "schedule": "0 12 * * *", "duration": "2h"}]);
    let pool = convoy_testkit::karpenter::pool("a", &json!({"budgets": budgets})).build();
    let step = Step::new("karpenter", &pool, Verdict::Held);
    let world = [pool].into_iter().collect();
    let closed = |hour| {
        let now = format!("2026-01-01T{hour}:00:00Z");
        is_true(&step, &world, HoldReason::WindowClosed, 0, &now)
    };
    assert_eq!([closed(11), closed(12), closed(13), closed(14)], [false, true, true, false]);
}
