//! A hub of KubeFleet and its members under trial: people who release, move and resize placements,
//! change limits, label, taint and evict, start, stop and approve update runs; releases that never
//! work, members that do not answer, leave and come back, and processes that end between any two
//! writes. After every write enough clusters work and not too many carry the resources, and runs
//! keep to their stages.

mod end;
mod staged;
mod user;
pub(super) mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use convoy_api::kinds::DEPLOYMENT;
use convoy_api::{GroupKind, Object, ObjectKey};
use convoy_check::{Placements, StagedRuns};
use convoy_controllers::request::Request;
use convoy_plan::Dialect;
use convoy_plan::dialect::fleet::{Hub, Options};
use convoy_plan::dialect::fleet_agent::FleetAgent;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use smol_str::{SmolStr, format_smolstr};

use self::world::{HUB_DEPLOYMENT, member_name, workload};
use super::cluster::{Author, Cluster, WriteRecord, path_in};
use super::ending::Ending;
use super::random::Random;
use super::trial::FaultPhases;
use super::{RunSettings, Trial};
use crate::seed::Seed;

/// Without the intervals by which changes are collected: what is at rest then stays at rest. Agents
/// of members that leave are given the least time that there is a flag for, or more.
static HUBS: [Hub; 2] = [hub(30), hub(120)];

const fn hub(wait_secs: i64) -> Hub {
    let force_delete_wait = SignedDuration::from_secs(wait_secs);
    Hub { options: Options { force_delete_wait, ..Options::AT_ONCE } }
}

const GROUP: &str = "placement.kubernetes-fleet.io";
const PLACEMENT: GroupKind = GroupKind::new(GROUP, "ClusterResourcePlacement");
const BINDING: GroupKind = GroupKind::new(GROUP, "ClusterResourceBinding");
const EVICTION: GroupKind = GroupKind::new(GROUP, "ClusterResourcePlacementEviction");
const SNAPSHOT: GroupKind = GroupKind::new(GROUP, "ClusterResourceSnapshot");
const WORK: GroupKind = GroupKind::new(GROUP, "Work");
const APPLIED_WORK: GroupKind = GroupKind::new(GROUP, "AppliedWork");
const MEMBER: GroupKind = GroupKind::new("cluster.kubernetes-fleet.io", "MemberCluster");
const INTERNAL: GroupKind = GroupKind::new("cluster.kubernetes-fleet.io", "InternalMemberCluster");

/// The agents of all members that a trial may have.
static AGENTS: LazyLock<Vec<FleetAgent>> =
    LazyLock::new(|| (1..=world::MEMBERS_MAX).map(|n| FleetAgent::new(member_name(n))).collect());

/// One placement on a few members, and what befalls it.
pub struct Fleets {
    members: u32,
    hub: &'static dyn Dialect,
    /// What is created first.
    objects: Vec<(&'static str, Value)>,
    seen: BTreeMap<ObjectKey, Object>,
    vigil: Placements,
    staged: StagedRuns,
    ending: Ending,
    /// Whether the last action was taken.
    is_ending: bool,
    /// Members that left, or are leaving; what was on them stays.
    left: BTreeSet<String>,
    /// Of these, those that leave with the resources, and for no other reason than to leave.
    keeps: BTreeSet<String>,
    /// The images that were released so far, and the evictions.
    releases: u32,
    evictions: u32,
    /// The runs that were started so far, and whether one is about to be.
    runs: u32,
    awaits_run: bool,
    has_writes: bool,
}

impl Fleets {
    /// A trial and its settings, as a seed has it.
    pub fn from_seed(seed: u64) -> (Self, RunSettings) {
        let mut random = Random::new(Seed::new(seed).child("trial", "fleet"));
        let phases =
            FaultPhases { short: (10_000, 60_000), long: (60_000, 200_000), long_ones: 100 };
        let settings = RunSettings::disturbed(&mut random, phases);
        let members = u32::try_from(random.between(2, i64::from(world::MEMBERS_MAX))).unwrap_or(2);
        let mut objects = world::objects(members, &mut random);
        let ending = Ending::random(&mut random);
        objects.insert(0, (staged::STRATEGIES, staged::strategy(&mut random)));
        let trial = Self {
            members,
            hub: &HUBS[usize::from(random.happens(500))],
            objects,
            seen: BTreeMap::new(),
            vigil: Placements::default(),
            staged: StagedRuns::default(),
            ending,
            is_ending: false,
            left: BTreeSet::new(),
            keeps: BTreeSet::new(),
            releases: 1,
            evictions: 0,
            runs: 0,
            awaits_run: false,
            has_writes: false,
        };
        (trial, settings)
    }

    /// The same with another controller of the hub.
    #[must_use]
    pub fn with_hub(self, hub: &'static dyn Dialect) -> Self {
        Self { hub, ..self }
    }

    fn of(&self, kind: GroupKind) -> impl Iterator<Item = &Object> {
        self.seen.values().filter(move |object| *object.kind() == kind)
    }

    fn get(&self, kind: &GroupKind, name: &str) -> Option<&Object> {
        self.seen.get(&kind.key("", name))
    }

    /// A member that leaves keeps what is on it.
    fn see_leaving(&mut self, record: &WriteRecord) -> Result<(), String> {
        let key = record.object.key();
        let is_going = record.is_deletion() || record.object.is_deleting();
        let name = key.name.to_string();
        if key.kind == MEMBER && is_going {
            let is_here = |it: &Object| {
                let is_bound = it.spec_text("state") == "Bound" && !it.is_deleting();
                is_bound && it.spec_text("targetCluster") == name
            };
            if self.left.insert(name.clone()) && self.of(BINDING).any(is_here) {
                self.keeps.insert(name);
            }
        } else if key.kind == MEMBER {
            self.keeps.remove(&name);
        } else if record.by == Author::Person && [PLACEMENT, BINDING, EVICTION].contains(&key.kind)
        {
            // It may be wanted elsewhere from now on.
            self.keeps.clear();
        }
        let is_lost = key.kind == DEPLOYMENT && record.is_deletion();
        if is_lost && self.keeps.contains(key.cluster.as_str()) && record.by != Author::Person {
            return Err(format!("{key} is gone, because {} leaves the fleet", key.cluster));
        }
        Ok(())
    }

    /// The next image; some never work.
    fn release(&mut self, kind: &str) -> Request {
        self.releases += 1;
        let image = format!("{kind}-{}", self.releases);
        let containers = json!([{"name": "app", "image": image}]);
        let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
        Request::merge(HUB_DEPLOYMENT, patch)
    }
}

impl Trial for Fleets {
    fn loops(&self) -> Vec<Vec<&'static dyn Dialect>> {
        let agents = AGENTS.iter().take(self.members as usize);
        let agents = agents.map(|agent| -> Vec<&'static dyn Dialect> { vec![agent] });
        std::iter::once(vec![self.hub]).chain(agents).collect()
    }

    fn members(&self, index: usize) -> Vec<SmolStr> {
        if index == 0 { Vec::new() } else { vec![format_smolstr!("member-{index}")] }
    }

    fn begin(&mut self) -> Vec<Request> {
        self.objects.iter().map(|(path, body)| Request::create(path, body.clone())).collect()
    }

    fn act(&mut self, random: &mut Random, _cluster: &mut Cluster) -> Vec<Request> {
        self.user_action(random).into_iter().collect()
    }

    fn end(&mut self, _cluster: &mut Cluster) -> Vec<Request> {
        self.last_action()
    }

    fn see(&mut self, record: &WriteRecord) -> Result<(), String> {
        self.has_writes = true;
        let key = record.object.key();
        if record.is_deletion() {
            self.seen.remove(key);
        } else {
            self.seen.insert(key.clone(), record.object.clone());
        }
        self.see_leaving(record)?;
        let (is_gone, hand) = (record.is_deletion(), record.hand());
        self.staged.see(&record.object, is_gone, hand)?;
        self.vigil.see(&record.object, is_gone, hand, record.at)
    }

    /// The workload controllers of the members, and people.
    fn react(
        &mut self,
        record: &WriteRecord,
        random: &mut Random,
    ) -> Vec<(SignedDuration, Request)> {
        let mut requests = workload(record, random);
        requests.extend(self.people(record, random));
        requests
    }

    /// Heartbeats.
    fn is_routine(&self, record: &WriteRecord) -> bool {
        [MEMBER, INTERNAL].contains(record.object.kind())
    }

    fn rest(&mut self, _now: Timestamp) {
        if std::mem::take(&mut self.has_writes) {
            self.vigil.rest();
        }
    }

    fn is_complete(&self) -> Result<(), String> {
        self.vigil.left_behind()?;
        self.has_ended()
    }
}

impl std::fmt::Debug for Fleets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fleets").field("members", &self.members).finish_non_exhaustive()
    }
}
