//! Looks on while a world of given objects runs: what is decided, what becomes of members, and
//! whether anything will still change.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use convoy_api::ObjectKey;
use convoy_api::karpenter::names::{NODE_CLAIM, NODE_POOL, label};
use convoy_controllers::request::Request;
use convoy_plan::{Action, Dialect, HoldReason, Step, Verb, Verdict, Warned};
use jiff::{SignedDuration, Timestamp};
use smol_str::SmolStr;

use super::Premise;
use super::controllers::of_workloads;
use super::course::{Course, Ending, Entry, GroupPeak, Happening, RolloutCourse, Sample};
use super::members::Member;
use super::readiness::Readiness;
use crate::scenario::{LinkState, Scenario, Towards};
use crate::simulation::cluster::{Cluster, WriteRecord};
use crate::simulation::random::Random;
use crate::simulation::{Decision, Trial};

/// A world in which nothing changes for so long, and in which nobody waits for a time, is stuck.
const STALL: SignedDuration = SignedDuration::from_mins(30);
/// Rollouts that are done for so long are done, though some loop is never at rest.
const SETTLED: SignedDuration = SignedDuration::from_mins(2);
/// Different words of one reason that are told on their own.
const WORDINGS_MAX: usize = 3;
/// The same decision within this time is told once.
const REPEATED: SignedDuration = SignedDuration::from_secs(1);
/// By then all nodes are there.
const WARM_UP: SignedDuration = SignedDuration::from_secs(5);

#[derive(Debug)]
pub(super) struct Observer {
    seed: u64,
    start: Timestamp,
    scenario: Scenario,
    dialects: Dialects,
    members: Vec<Member>,
    rollouts: BTreeMap<ObjectKey, Watched>,
    readiness: Readiness,
    /// The pools of NodeClaims: a claim that is given up is deleted beside its pool's decisions.
    pools: BTreeMap<ObjectKey, ObjectKey>,
    timeline: Vec<Entry>,
    /// The last change of any rollout.
    changed: Timestamp,
    /// The latest instant that anybody waited for then.
    horizon: Timestamp,
}

struct Dialects(Vec<&'static dyn Dialect>);

impl std::fmt::Debug for Dialects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|dialect| dialect.name())).finish()
    }
}

/// What is known of a rollout.
#[derive(Debug, Default)]
struct Watched {
    last: Option<Step>,
    /// Of its verdict and groups.
    digest: u64,
    seen: BTreeSet<u64>,
    finished: Option<SignedDuration>,
    is_gone: bool,
    groups: Vec<GroupPeak>,
    samples: Vec<Sample>,
    warned: Warned,
}

impl Observer {
    pub(super) fn new(premise: &Premise, seed: u64) -> Self {
        let mut scenario = premise.scenario.clone();
        scenario.seed = seed;
        let rollouts = premise.rollouts.iter().map(|key| (key.clone(), Watched::default()));
        Self {
            seed,
            start: premise.start,
            scenario,
            dialects: Dialects(premise.dialects.clone()),
            members: premise.members.clone(),
            rollouts: rollouts.collect(),
            readiness: Readiness::default(),
            pools: BTreeMap::new(),
            timeline: Vec::new(),
            changed: premise.start,
            horizon: premise.start,
        }
    }

    fn is_done(&self) -> bool {
        self.rollouts.values().all(Watched::is_done)
    }

    /// The deletions of a NodeClaim, as part of what happens to its pool.
    fn of_claim(&mut self, pool: &ObjectKey, step: &Step, at: SignedDuration) {
        if !self.rollouts.contains_key(pool) {
            return;
        }
        let is_removal = |action: &&Action| matches!(action.verb, Verb::Remove(_));
        let removals: Vec<Action> = step.actions.iter().filter(is_removal).cloned().collect();
        self.tell(pool, movements(&removals), at);
    }

    fn tell(&mut self, rollout: &ObjectKey, happenings: Vec<Happening>, at: SignedDuration) {
        for happening in happenings {
            let entry = Entry { at, rollout: rollout.clone(), happening };
            if !self.is_told(&entry) {
                self.timeline.push(entry);
            }
        }
    }

    /// Whether the same was told before. A step that met a conflict is decided again at once; what
    /// is wrong stays so until the rollout is done.
    fn is_told(&self, entry: &Entry) -> bool {
        let told = self.timeline.iter().rev().filter(|told| told.rollout == entry.rollout);
        let is_done = |told: &Entry| {
            matches!(told.happening, Happening::Turns { verdict: Verdict::Done, .. })
        };
        match &entry.happening {
            Happening::Acts { .. } => told
                .take_while(|told| entry.at - told.at < REPEATED)
                .any(|told| told.happening == entry.happening),
            Happening::Turns { verdict: Verdict::Done, .. } => {
                told.into_iter().next().is_some_and(is_done)
            }
            Happening::Warns { .. } => {
                told.take_while(|told| !is_done(told)).any(|told| told.happening == entry.happening)
            }
            Happening::Turns { verdict: new, until: end, .. } => {
                told.take_while(|told| !is_done(told)).any(|told| match &told.happening {
                    Happening::Turns { verdict, until, .. } => verdict == new && until == end,
                    _ => false,
                })
            }
        }
    }

    /// Whether all rollouts are done, or nothing will change.
    pub(super) fn is_over(&self, now: Timestamp, is_quiet: bool) -> bool {
        let since = |at: Timestamp| now.duration_since(at);
        if self.is_done() {
            return since(self.start) > WARM_UP && is_quiet || since(self.changed) > SETTLED;
        }
        since(self.changed.max(self.horizon)) > STALL
    }

    pub(super) fn course(self, end: Timestamp) -> Course {
        let ending = if self.is_done() {
            Ending::Done
        } else if end.duration_since(self.changed.max(self.horizon)) > STALL {
            Ending::Stuck
        } else {
            Ending::TimeUp
        };
        let readiness = &self.readiness;
        let rollout = |(key, watched): (ObjectKey, Watched)| {
            let finished = watched.finished.filter(|_| watched.is_done());
            let mut groups = watched.groups;
            for group in &mut groups {
                let peak = readiness.peak(&key, &group.name);
                (group.unavailable, group.unavailable_at) = (peak.most, peak.at);
            }
            let (last, samples) = (watched.last, watched.samples);
            RolloutCourse { key, finished, groups, last, samples }
        };
        Course {
            seed: self.seed,
            start: self.start,
            took: self.changed.duration_since(self.start),
            ending,
            rollouts: self.rollouts.into_iter().map(rollout).collect(),
            timeline: self.timeline,
        }
    }
}

impl Watched {
    fn is_done(&self) -> bool {
        self.is_gone || self.last.as_ref().is_some_and(|step| step.verdict == Verdict::Done)
    }

    /// Takes in a decision; returns whether the rollout is where it never was.
    fn update(&mut self, step: &Step, at: SignedDuration) -> bool {
        self.count(step);
        let mut hasher = DefaultHasher::new();
        (step.verdict as u8).hash(&mut hasher);
        for group in &step.groups {
            let by_state = (group.waiting, group.moving, group.settling, group.done, group.failed);
            (&group.name, by_state, group.gone, group.total).hash(&mut hasher);
        }
        let digest = hasher.finish();
        let was_done = self.last.as_ref().is_some_and(|last| last.verdict == Verdict::Done);
        let is_done = step.verdict == Verdict::Done;
        if self.last.is_none() || digest != self.digest {
            self.digest = digest;
            self.samples.push(Sample { at, groups: step.groups.clone() });
        }
        if is_done && !was_done {
            self.finished = Some(at);
        }
        self.last = Some(Step { actions: Vec::new(), status: None, ..step.clone() });
        // What comes and goes, as a container that crashes and restarts, is no progress.
        self.seen.insert(digest) || is_done != was_done
    }

    /// The most of each group.
    fn count(&mut self, step: &Step) {
        // A workload is one group: its revisions come and go.
        let has_groups = ["skyhook", "karpenter", "fleet", "ocm"].contains(&step.dialect);
        if !has_groups && self.groups.is_empty() {
            self.groups.push(GroupPeak::default());
        }
        let (_, members) = step.progress();
        if !has_groups && let [whole] = self.groups.as_mut_slice() {
            let moving = step.groups.iter().map(|group| group.moving + group.settling).sum();
            let failed = step.groups.iter().map(|group| group.failed).sum();
            whole.raise(members, None, moving, failed);
            return;
        }
        for group in step.groups.iter().filter(|group| group.total > 0) {
            let known = self.groups.iter().position(|known| known.name == group.name);
            let index = known.unwrap_or_else(|| {
                self.groups.push(GroupPeak { name: group.name.clone(), ..GroupPeak::default() });
                self.groups.len() - 1
            });
            let moving = group.moving + group.settling;
            self.groups[index].raise(group.total, group.ceiling, moving, group.failed);
        }
    }
}

/// Where a rollout stands, if that is worth telling.
fn turn(step: &Step) -> Option<Happening> {
    let closed = step.holds.iter().find(|hold| hold.reason == HoldReason::WindowClosed);
    let first = closed.or(step.holds.first());
    let why = first.map(|hold| hold.reason.to_string()).unwrap_or_default();
    let until = first.and_then(|hold| hold.until);
    let verdict = step.verdict;
    match verdict {
        Verdict::Done => Some(Happening::Turns { verdict, why: String::new(), until: None }),
        Verdict::Stopped | Verdict::Paused | Verdict::Invalid => {
            Some(Happening::Turns { verdict, why, until })
        }
        Verdict::Held if closed.is_some() => Some(Happening::Turns { verdict, why, until }),
        Verdict::Held | Verdict::Moving => None,
    }
}

impl GroupPeak {
    fn raise(&mut self, members: u32, ceiling: Option<u32>, in_flight: u32, failed: u32) {
        self.members = self.members.max(members);
        self.ceiling = ceiling.or(self.ceiling);
        self.in_flight = self.in_flight.max(in_flight);
        self.failed = self.failed.max(failed);
    }
}

/// Verb, reason and message of actions that are told in one line.
type Line<'a> = (Verb, &'a str, &'a str);

/// The actions that move members, those with the same words together. If a reason has many
/// different words, as it does when each names its member, its actions are one line.
fn movements(actions: &[Action]) -> Vec<Happening> {
    let movements = || actions.iter().filter(|action| is_movement(action.verb));
    let reason = |action: &Action| (action.verb, action.why.reason);
    let mut words: BTreeMap<_, BTreeSet<&str>> = BTreeMap::new();
    for action in movements() {
        words.entry(reason(action)).or_default().insert(&action.why.message);
    }
    let mut lines: Vec<(Line<'_>, Vec<ObjectKey>)> = Vec::new();
    for action in movements() {
        let (verb, why) = reason(action);
        let differ = words.get(&(verb, why)).is_some_and(|words| words.len() > WORDINGS_MAX);
        let line = (verb, why, if differ { "" } else { action.why.message.as_str() });
        match lines.iter_mut().find(|(known, _)| *known == line) {
            Some((_, targets)) if targets.contains(&action.target) => {}
            Some((_, targets)) => targets.push(action.target.clone()),
            None => lines.push((line, vec![action.target.clone()])),
        }
    }
    let told = lines.into_iter().map(|((verb, why, message), targets)| {
        let first = words.get(&(verb, why)).and_then(|words| words.first());
        let message = match message {
            "" => format!("{}, and so on", first.copied().unwrap_or_default()),
            message => message.to_owned(),
        };
        Happening::Acts { verb: <&str>::from(verb), targets, message }
    });
    told.collect()
}

fn is_movement(verb: Verb) -> bool {
    matches!(
        verb,
        Verb::Start(_)
            | Verb::Retry(_)
            | Verb::Update(_)
            | Verb::Remove(_)
            | Verb::Scale(_)
            | Verb::RollBack
    )
}

/// What a loop of the simulation runs.
enum Role<'o> {
    Home,
    /// The agents of a member.
    Agents(&'o Member),
    /// The controllers of the workloads in a member.
    Workloads(&'o Member),
}

impl Observer {
    fn role(&self, index: usize) -> Role<'_> {
        let member = |at: usize| &self.members[(at - 1) / 2];
        match index {
            0 => Role::Home,
            odd if odd % 2 == 1 => Role::Agents(member(odd)),
            even => Role::Workloads(member(even)),
        }
    }
}

impl Trial for Observer {
    fn loops(&self) -> Vec<Vec<&'static dyn Dialect>> {
        let dialects = |index| match self.role(index) {
            Role::Home => self.dialects.0.clone(),
            Role::Agents(member) => member.agents.clone(),
            Role::Workloads(_) => of_workloads(),
        };
        (0..=2 * self.members.len()).map(dialects).collect()
    }

    fn members(&self, index: usize) -> Vec<SmolStr> {
        match self.role(index) {
            Role::Agents(member) => vec![member.name.clone()],
            Role::Home | Role::Workloads(_) => Vec::new(),
        }
    }

    fn home(&self, index: usize) -> SmolStr {
        match self.role(index) {
            Role::Workloads(member) => member.name.clone(),
            Role::Home | Role::Agents(_) => SmolStr::default(),
        }
    }

    fn link(&self, index: usize, cluster: &str, now: Timestamp) -> (LinkState, Option<Timestamp>) {
        let Role::Agents(member) = self.role(index) else { return (LinkState::default(), None) };
        let towards = if cluster.is_empty() { Towards::Hub } else { Towards::Member };
        let schedule = self.scenario.link_of_member(&member.name, towards);
        let elapsed = now.duration_since(self.start);
        let next = schedule.next_change(elapsed).and_then(|at| self.start.checked_add(at).ok());
        (schedule.at(elapsed), next)
    }

    fn starts_at_once(&self, index: usize) -> bool {
        !matches!(self.role(index), Role::Home)
    }

    fn scenario(&self) -> Scenario {
        if self.members.is_empty() {
            return self.scenario.clone();
        }
        Scenario { nodes: Vec::new(), ..self.scenario.clone() }
    }

    fn member_scenarios(&self) -> Vec<(SmolStr, Scenario)> {
        let own = |member: &Member| (member.name.clone(), member.scenario(&self.scenario));
        self.members.iter().map(own).collect()
    }

    fn begin(&mut self) -> Vec<Request> {
        Vec::new()
    }

    fn act(&mut self, _random: &mut Random, _cluster: &mut Cluster) -> Vec<Request> {
        Vec::new()
    }

    fn end(&mut self, _cluster: &mut Cluster) -> Vec<Request> {
        Vec::new()
    }

    fn see(&mut self, record: &WriteRecord) -> Result<(), String> {
        let at = record.at.duration_since(self.start).max(SignedDuration::ZERO);
        self.readiness.see(&record.object, record.is_deletion(), at);
        if *record.object.kind() == NODE_CLAIM
            && let Some(pool) = record.object.label(label::NODE_POOL)
        {
            self.pools.insert(record.object.key().clone(), NODE_POOL.key("", pool));
        }
        if record.is_deletion()
            && let Some(watched) = self.rollouts.get_mut(record.object.key())
        {
            watched.is_gone = true;
            watched.finished = Some(at);
        }
        Ok(())
    }

    fn observes_decisions(&self) -> bool {
        true
    }

    fn decided(&mut self, &Decision { index, step, now, .. }: &Decision<'_>) {
        if !matches!(self.role(index), Role::Home) {
            return;
        }
        let at = now.duration_since(self.start).max(SignedDuration::ZERO);
        if let Some(pool) = self.pools.get(&step.rollout).cloned() {
            return self.of_claim(&pool, step, at);
        }
        let Some(watched) = self.rollouts.get_mut(&step.rollout) else { return };
        self.readiness.begin();
        let mut happenings = movements(&step.actions);
        let warnings = watched.warned.update(step).into_iter();
        happenings.extend(warnings.map(|event| {
            let (reason, message) = (event.reason, event.message);
            Happening::Warns { reason, message }
        }));
        happenings.extend(turn(step));
        if watched.update(step, at) {
            let waited = step.holds.iter().filter_map(|hold| hold.until).chain(step.wake_at);
            self.changed = now;
            self.horizon = waited.max().unwrap_or(now).max(self.horizon);
        }
        self.tell(&step.rollout, happenings, at);
    }

    fn rest(&mut self, _now: Timestamp) {}

    fn is_complete(&self) -> Result<(), String> {
        if self.is_done() { Ok(()) } else { Err("a rollout is not done".to_owned()) }
    }
}
