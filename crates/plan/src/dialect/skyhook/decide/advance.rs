//! Advances a node that holds a slot: which package pods are created next, how the node is made
//! ready for an interrupt, and what it waits for if nothing can be done.

use convoy_api::Object;
use convoy_api::skyhook::{Interrupt, PackageState, Stage};

use crate::count;
use crate::dialect::skyhook::decide::drain::{Disruptions, Readiness, readiness};
use crate::dialect::skyhook::decide::interrupt::{Merged, merge};
use crate::dialect::skyhook::decide::lifecycle::{change_versions, next_stage, runnable};
use crate::dialect::skyhook::decide::member::Member;
use crate::dialect::skyhook::read::hook::{Hook, Package};
use crate::dialect::skyhook::read::node::is_cordoned_by_others_only;
use crate::dialect::skyhook::read::observe::Observation;
use crate::dialect::skyhook::read::state::{Entry, NodeState};
use crate::gate::{Limit, grant};
use crate::hold::HoldReason;

/// What is done to one node.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodePlan<'w> {
    /// Its packages after this step.
    pub(crate) state: NodeState,
    pub(crate) cordon: bool,
    pub(crate) evictions: Vec<&'w Object>,
    /// The package, as `name:version`, for which the node is drained.
    pub(crate) drained_for: String,
    pub(crate) pods: Vec<NewPod>,
}

/// A pod to be made.
#[derive(Clone, Debug)]
pub(crate) struct NewPod {
    /// What the entry in node state says of it.
    pub(crate) entry: Entry,
    /// For interrupts, what is to be done.
    pub(crate) interrupt: Option<Interrupt>,
}

/// What advancing a node depends on beside the node itself.
#[derive(Debug)]
pub(crate) struct Context<'r, 'w> {
    pub(crate) hook: &'r Hook<'r>,
    /// Packages, by unique name, that must not run now.
    pub(crate) frozen: Vec<&'r str>,
    pub(crate) disruptions: Disruptions<'w>,
    /// If the Skyhook is serial, who runs a package.
    pub(crate) serial: Option<Serial<'w>>,
}

/// `spec.serial`: one package at a time on one node.
#[derive(Debug)]
pub(crate) struct Serial<'w> {
    /// The nodes that run a package.
    pub(crate) busy: Vec<&'w str>,
}

impl Serial<'_> {
    fn limit(&self) -> Limit {
        Limit::slots("spec.serial", count(self.busy.len()), 1, self.busy.iter().copied())
    }
}

/// Everything about one node while its next step is worked out.
struct Planner<'c, 'r, 'w> {
    context: &'c mut Context<'r, 'w>,
    node: &'w Object,
    seen: Option<&'c Observation<'w>>,
    on_node: &'c [&'w Object],
    other_pod: Option<&'w Object>,
    ready: Option<bool>,
    plan: NodePlan<'w>,
    /// What it waits for.
    hold: Option<HoldReason>,
}

/// Takes `member` as far as it can go now; why it does not move, if it does not. `on_node` are
/// all pods on it, `other_pod` is a package pod of another Skyhook.
pub(crate) fn advance<'w>(
    context: &mut Context<'_, 'w>,
    member: &Member<'w>,
    on_node: &[&'w Object],
    other_pod: Option<&'w Object>,
) -> (NodePlan<'w>, Option<HoldReason>) {
    let hook = context.hook;
    let mut state = member.assessed.state.clone();
    change_versions(hook, &mut state);
    clear_failures(&mut state);
    let seen = member.seen.as_deref();
    let plan = NodePlan { state, ..NodePlan::default() };
    let node = member.node;
    let mut planner =
        Planner { context, node, seen, on_node, other_pod, ready: None, plan, hold: None };
    planner.uninstall();
    let packages = runnable(hook, &planner.plan.state);
    let interrupting = interrupting(&packages, &planner.plan.state);
    let merged = merge(interrupting.iter().copied());
    for package in &packages {
        planner.advance(package);
    }
    if let Some(merged) = merged {
        planner.interrupt(&interrupting, &merged);
    }
    planner.finish(&packages)
}

/// A node that holds a slot tries again what failed: whatever still fails will say so.
fn clear_failures(state: &mut NodeState) {
    for entry in state.entries.values_mut() {
        if entry.state == PackageState::Erroring {
            (entry.state, entry.restarts) = (PackageState::InProgress, 0);
        }
    }
}

/// The packages that still have an interrupt before them.
fn interrupting<'p, 'o>(packages: &[&'p Package<'o>], state: &NodeState) -> Vec<&'p Package<'o>> {
    let ahead = |package: &&&Package<'_>| {
        package.has_interrupt()
            && state.get(&package.unique).is_none_or(|entry| {
                entry.stage != Stage::PostInterrupt
                    && !entry.is(Stage::Interrupt, PackageState::Complete)
            })
    };
    packages.iter().filter(ahead).copied().collect()
}

impl<'w> Planner<'_, '_, 'w> {
    /// Packages that leave go first.
    fn uninstall(&mut self) {
        let leaving: Vec<Entry> = self
            .plan
            .state
            .values()
            .filter(|entry| entry.stage == Stage::Uninstall && entry.is_running())
            .cloned()
            .collect();
        for entry in leaving {
            self.make(&Package::recorded(&entry), Stage::Uninstall, None);
        }
    }

    /// Makes the pod of the stage that a package is at, or comes to.
    fn advance(&mut self, package: &Package<'_>) {
        if self.context.frozen.contains(&package.unique.as_str()) {
            self.wait(HoldReason::Depends {
                on: format!("the config change of package {} to reach all nodes", package.name),
            });
            return;
        }
        let Some(stage) = self.next(package) else { return };
        if stage == Stage::Interrupt {
            return; // decided for all packages together
        }
        let disturbs = package.has_interrupt()
            && matches!(stage, Stage::Apply | Stage::Upgrade | Stage::Config);
        if disturbs && self.pod_for(package, stage).is_none() && !self.is_ready(package) {
            return;
        }
        self.make(package, stage, None);
    }

    /// The stage that a package should be running; none while it waits for another.
    fn next(&self, package: &Package<'_>) -> Option<Stage> {
        let Some(entry) = self.plan.state.get(&package.unique) else { return Some(Stage::Apply) };
        let stage = match entry.state {
            PackageState::Complete => next_stage(entry.stage, package.has_interrupt()),
            PackageState::Skipped if entry.stage == Stage::Uninstall => {
                let leaving = |other: &&Entry| {
                    other.name == package.name
                        && other.version != package.version
                        && other.stage == Stage::Uninstall
                };
                let waits = self.plan.state.values().any(|other| leaving(&other));
                (!waits).then_some(Stage::Apply)
            }
            PackageState::Skipped => Some(Stage::Interrupt),
            _ => Some(entry.stage),
        }?;
        // A config that changed may no longer ask for the interrupt that was under way.
        let dropped = stage == Stage::Interrupt
            && !package.has_interrupt()
            && self.pod_for(package, stage).is_none();
        Some(if dropped { Stage::Config } else { stage })
    }

    /// Runs the one interrupt of all packages, once nothing else is at work on the node.
    fn interrupt(&mut self, interrupting: &[&Package<'_>], merged: &Merged) {
        let at = |package: &Package<'_>, state: &NodeState| {
            let entry = state.get(&package.unique)?;
            Some((entry.stage, entry.is_running(), entry.state))
        };
        let running: Vec<&&Package<'_>> = interrupting
            .iter()
            .filter(|package| {
                matches!(at(package, &self.plan.state), Some((Stage::Interrupt, true, _)))
            })
            .collect();
        for package in &running {
            // The package that began it ends it, even if its pod vanished with a reboot.
            let own = merge([**package]).map(|own| own.interrupt);
            let order =
                if package.unique == merged.runner { Some(merged.interrupt.clone()) } else { own };
            self.make(package, Stage::Interrupt, order);
        }
        let waiting = |package: &&&Package<'_>| {
            matches!(
                at(package, &self.plan.state),
                Some(
                    (Stage::Config, _, PackageState::Complete)
                        | (Stage::Interrupt, _, PackageState::Skipped)
                )
            )
        };
        let waiting: Vec<&Package<'_>> = interrupting.iter().filter(waiting).copied().collect();
        if running.is_empty() {
            let runner = waiting.iter().find(|package| package.unique == merged.runner);
            let Some(runner) = runner.copied() else { return };
            if !self.is_alone() || !self.is_ready(runner) {
                return;
            }
            self.make(runner, Stage::Interrupt, Some(merged.interrupt.clone()));
        }
        for package in waiting {
            let begun = self.plan.state.get(&package.unique).is_some_and(Entry::is_running);
            if !begun && self.interrupt_is_under_way(interrupting) {
                self.plan.state.put(package.entry(Stage::Interrupt, PackageState::Skipped));
            }
        }
    }

    fn interrupt_is_under_way(&self, interrupting: &[&Package<'_>]) -> bool {
        interrupting.iter().any(|package| {
            let entry = self.plan.state.get(&package.unique);
            entry.is_some_and(|entry| entry.stage == Stage::Interrupt && entry.is_running())
        })
    }

    /// Whether no package pod, of any Skyhook, is on the node or about to be.
    fn is_alone(&mut self) -> bool {
        if let Some(pod) = self.other_pod {
            let on = format!("pod {} of another Skyhook", pod.name());
            self.wait(HoldReason::Depends { on });
            return false;
        }
        let ours = self.seen.is_some_and(|seen| {
            !(seen.live.is_empty() && seen.done.is_empty() && seen.strays.is_empty())
        });
        if ours {
            let on = "its own package pods to be deleted".to_owned();
            self.wait(HoldReason::Depends { on });
        }
        !ours && self.plan.pods.is_empty()
    }

    /// Whether the node may be disturbed; takes the next step towards it where it may not.
    fn is_ready(&mut self, package: &Package<'_>) -> bool {
        if let Some(known) = self.ready {
            return known;
        }
        let context = &mut *self.context;
        let needs = readiness(context.hook, self.node, self.on_node, &mut context.disruptions);
        let ready = matches!(needs, Readiness::Ready);
        self.ready = Some(ready);
        self.plan.cordon = match needs {
            Readiness::Cordon => true,
            // A cordon of another Skyhook would go with that one.
            _ => is_cordoned_by_others_only(self.node, &self.context.hook.keys.cordon),
        };
        match needs {
            Readiness::Ready | Readiness::Cordon => {}
            Readiness::Wait(reason) => self.wait(reason),
            Readiness::Evict(pods, reason) => {
                self.plan.evictions = pods;
                self.plan.drained_for = format!("{}:{}", package.name, package.version);
                self.wait(reason);
            }
        }
        ready
    }

    fn pod_for(&self, package: &Package<'_>, stage: Stage) -> Option<&'w Object> {
        let seen = self.seen?;
        seen.pod_for(&package.unique, stage).map(|live| live.pod)
    }

    /// Makes the pod of a stage, unless it is there.
    fn make(&mut self, package: &Package<'_>, stage: Stage, interrupt: Option<Interrupt>) {
        if let Some(pod) = self.pod_for(package, stage) {
            if pod.is_deleting() {
                self.wait(HoldReason::Depends { on: format!("pod {} to be deleted", pod.name()) });
            }
            return;
        }
        let limits: Vec<Limit> = self.context.serial.iter().map(Serial::limit).collect();
        if let Some(reason) = grant(1, &limits).hold {
            self.wait(reason);
            return;
        }
        if let Some(serial) = &mut self.context.serial {
            serial.busy.push(self.node.name());
        }
        let entry = package.begun(stage);
        self.plan.state.put(entry.clone());
        self.plan.pods.push(NewPod { entry, interrupt });
    }

    /// Waits; the first reason is kept.
    fn wait(&mut self, reason: HoldReason) {
        self.hold.get_or_insert(reason);
    }

    fn finish(mut self, packages: &[&Package<'_>]) -> (NodePlan<'w>, Option<HoldReason>) {
        let moves = !self.plan.pods.is_empty()
            || self.plan.cordon
            || self.seen.is_some_and(Observation::is_at_work);
        if moves {
            self.hold = None;
        } else if self.hold.is_none() && packages.is_empty() {
            let detail =
                "no package can run: each depends on another that is not complete".to_owned();
            self.hold = Some(HoldReason::Stalled { detail });
        }
        (self.plan, self.hold)
    }
}
