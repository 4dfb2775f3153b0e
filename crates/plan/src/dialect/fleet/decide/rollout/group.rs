//! Bindings sorted by what a rolling update may do with them.

use jiff::{SignedDuration, Timestamp};

use crate::dialect::fleet::decide::rollout::counts::Counts;
use crate::dialect::fleet::names::MEMBER_CLUSTER;
use crate::dialect::fleet::read::binding::{Binding, Readiness, State, previous_state};
use crate::dialect::fleet::read::overrides::{Applicable, Overrides, UnknownCluster};
use crate::dialect::fleet::read::placement::{Placement, RollingUpdate};
use crate::snapshot::Snapshot;

/// The bindings of a placement, in list order within each group. Every binding is in exactly
/// one of the first seven.
#[derive(Debug, Default)]
pub(crate) struct Groups<'w> {
    /// Picked clusters that have nothing yet.
    pub(crate) bind: Vec<Change<'w>>,
    /// De-selected clusters that may go.
    pub(crate) remove: Vec<Binding<'w>>,
    /// De-selected clusters on which the resources do not work, or never were: they go first, so
    /// that others can come in their place.
    pub(crate) discard: Vec<Binding<'w>>,
    /// Clusters with an older version.
    pub(crate) update: Vec<Change<'w>>,
    /// Clusters with an older version that does not work.
    pub(crate) retry: Vec<Change<'w>>,
    /// Clusters with the newest version.
    pub(crate) current: Vec<Binding<'w>>,
    /// Being deleted.
    pub(crate) leaving: Vec<Binding<'w>>,
    /// Bound or de-selected bindings that are not ready, whichever group they are in.
    pub(crate) unready: Vec<(Binding<'w>, Readiness)>,
    pub(crate) counts: Counts,
}

/// A binding to be written, and the overrides it gets.
#[derive(Debug)]
pub(crate) struct Change<'w> {
    pub(crate) binding: Binding<'w>,
    pub(crate) overrides: Applicable,
}

/// What bindings are measured against.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a, 'w> {
    pub(crate) placement: &'a Placement<'w>,
    /// How many clusters get a binding in this step.
    pub(crate) coming: u32,
    pub(crate) rolling: &'a RollingUpdate,
    /// The name of the newest master resource snapshot.
    pub(crate) resource_snapshot: &'a str,
    pub(crate) overrides: &'a Overrides<'w>,
}

impl<'w> Groups<'w> {
    pub(crate) fn sort(
        snapshot: &Snapshot<'w>,
        bindings: &[Binding<'w>],
        wanted: Wanted<'_, '_>,
        now: Timestamp,
    ) -> Result<Self, UnknownCluster> {
        let period = SignedDuration::from_secs(wanted.rolling.unavailable_period_secs);
        let mut groups = Self::default();
        let mut picked = wanted.coming;
        for binding in bindings.iter().copied() {
            picked += u32::from(binding.state != State::Unscheduled);
            if binding.state == State::Scheduled {
                groups.bind.push(change(snapshot, binding, wanted.overrides)?);
                continue;
            }
            let burden = Burden::of(snapshot, binding);
            let ready = groups.note(binding, binding.readiness(period, now), burden);
            if binding.is_deleting() {
                groups.counts.leaving += u32::from(ready);
                groups.leaving.push(binding);
            } else if binding.state == State::Unscheduled && burden != Burden::Full {
                groups.discard.push(binding);
            } else if binding.state == State::Unscheduled {
                groups.remove.push(binding);
            } else {
                let change = change(snapshot, binding, wanted.overrides)?;
                groups.sort_in(change, wanted.resource_snapshot);
            }
        }
        let target = wanted.placement.target(picked);
        groups.counts.target = target;
        groups.counts.max_unavailable = wanted.rolling.unavailable(target);
        groups.counts.max_surge = wanted.rolling.surge(target);
        Ok(groups)
    }

    /// Whether any binding is not as it should be.
    pub(crate) fn is_out_of_date(&self) -> bool {
        let going = self.remove.len() + self.discard.len();
        going + self.bind.len() + self.update.len() + self.retry.len() > 0
    }

    /// Counts a binding that has, or had, resources on its cluster; says whether it is ready.
    fn note(&mut self, binding: Binding<'w>, readiness: Readiness, burden: Burden) -> bool {
        let ready = readiness == Readiness::Ready && burden != Burden::Nothing;
        self.counts.ready += u32::from(ready);
        if !ready {
            self.unready.push((binding, readiness));
        }
        let can_be_ready = !binding.has_failed() && !binding.is_diff_reported();
        match burden {
            Burden::Full => self.counts.can_be_ready += u32::from(can_be_ready),
            Burden::Failed => self.counts.failed += 1,
            Burden::Nothing => {}
        }
        ready
    }

    fn sort_in(&mut self, change: Change<'w>, resource_snapshot: &str) {
        let binding = change.binding;
        let current = binding.resource_snapshot() == resource_snapshot
            && change.overrides == Applicable::of_binding(binding.object);
        if current {
            self.current.push(binding);
        } else if binding.has_failed() {
            self.retry.push(change);
        } else {
            self.update.push(change);
        }
    }
}

/// What is lost with the resources of a cluster of the fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Burden {
    /// They work, or may come to, or the cluster has left the fleet and nobody knows.
    Full,
    /// They do not work.
    Failed,
    /// It was de-selected before it got any, or its cluster is no longer in the fleet.
    Nothing,
}

impl Burden {
    fn of(snapshot: &Snapshot<'_>, binding: Binding<'_>) -> Self {
        let is_unscheduled = binding.state == State::Unscheduled;
        let is_empty = is_unscheduled && previous_state(binding.object) == "Scheduled";
        let is_member = snapshot.find(&MEMBER_CLUSTER, "", binding.cluster()).is_some();
        // What is on a cluster that left stays there, and nobody takes it off.
        let has_left = is_unscheduled && !is_member && snapshot.knows(&MEMBER_CLUSTER);
        let burden = match () {
            () if has_left => return Self::Nothing,
            () if is_empty => Self::Nothing,
            () if binding.has_failed() => Self::Failed,
            () => return Self::Full,
        };
        if is_member { burden } else { Self::Full }
    }
}

fn change<'w>(
    snapshot: &Snapshot<'w>,
    binding: Binding<'w>,
    overrides: &Overrides<'_>,
) -> Result<Change<'w>, UnknownCluster> {
    if overrides.is_empty() {
        return Ok(Change { binding, overrides: Applicable::default() });
    }
    let cluster = binding.cluster();
    let member = snapshot.find(&MEMBER_CLUSTER, "", cluster);
    Ok(Change { binding, overrides: overrides.concerning(cluster, member)? })
}

#[cfg(test)]
mod tests {
    use convoy_api::Object;
    use convoy_testkit::{NOW, fleet};
    use serde_json::{Value, json};

    use crate::dialect::Dialect;
    use crate::dialect::fleet::Fleet;
    use crate::snapshot::Snapshot;

    /// A move of two clusters without surge. The old ones do not work.
    fn decided(has_members: bool) -> [Value; 3] {
        let policy = json!({"placementType": "PickN", "numberOfClusters": 2});
        let rolling = json!({"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 0}});
        let failed = |cluster: &str| {
            let condition =
                fleet::condition("Available", "False", "NotAllWorkAreAvailable", 1, NOW);
            fleet::binding("web", cluster, "Unscheduled", "web-0-snapshot")
                .annotation("kubernetes-fleet.io/previous-binding-state", "Bound")
                .with("/metadata/generation", json!(1))
                .status(json!({"conditions": [condition]}))
                .build()
        };
        let mut objects = vec![
            fleet::placement("web", policy).with("/spec/strategy", rolling).build(),
            fleet::resource_snapshot("web", 0, true, &[]).build(),
            failed("c1"),
            failed("c2"),
            fleet::binding("web", "c3", "Scheduled", "").build(),
            fleet::binding("web", "c4", "Scheduled", "").build(),
        ];
        if has_members {
            objects.extend(["c1", "c2", "c3", "c4"].map(|name| fleet::member(name, NOW).build()));
        }
        let rollout: &Object = &objects[0];
        let step = Fleet.step(&Snapshot::new(rollout, objects.iter()), NOW.parse().unwrap());
        ["remove", "roll", "blocked"].map(|field| step.decision[field].clone())
    }

    #[test]
    fn a_cluster_that_was_de_selected_before_it_got_anything_is_in_nobodys_way() {
        let policy = json!({"placementType": "PickN", "numberOfClusters": 1});
        let rolling = json!({"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 0}});
        let mut objects = vec![
            fleet::placement("web", policy).with("/spec/strategy", rolling).build(),
            fleet::resource_snapshot("web", 0, true, &[]).build(),
            fleet::binding("web", "c1", "Unscheduled", "")
                .annotation("kubernetes-fleet.io/previous-binding-state", "Scheduled")
                .build(),
            fleet::binding("web", "c2", "Scheduled", "").build(),
        ];
        objects.extend(["c1", "c2"].map(|name| fleet::member(name, NOW).build()));
        let step = Fleet.step(&Snapshot::new(&objects[0], objects.iter()), NOW.parse().unwrap());
        assert_eq!(step.decision["remove"], json!(["web-c1"]));
        assert_eq!(step.decision["roll"], json!(["web-c2"]));
    }

    #[test]
    fn the_binding_of_a_cluster_that_left_goes_and_counts_nowhere() {
        let policy = json!({"placementType": "PickN", "numberOfClusters": 2});
        let rolling = json!({"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 0}});
        let works = |cluster: &str, state: &str| {
            let condition = fleet::condition("Available", "True", "AllWorkAreAvailable", 1, NOW);
            fleet::binding("web", cluster, state, "web-0-snapshot")
                .annotation("kubernetes-fleet.io/previous-binding-state", "Bound")
                .with("/metadata/generation", json!(1))
                .status(json!({"conditions": [condition]}))
                .build()
        };
        let mut objects = vec![
            fleet::placement("web", policy).with("/spec/strategy", rolling).build(),
            fleet::resource_snapshot("web", 0, true, &[]).build(),
            works("c1", "Unscheduled"),
            works("c2", "Bound"),
            fleet::binding("web", "c3", "Scheduled", "").build(),
        ];
        let decided = |objects: &[Object]| {
            let step =
                Fleet.step(&Snapshot::new(&objects[0], objects.iter()), NOW.parse().unwrap());
            ["remove", "roll"].map(|field| step.decision[field].clone())
        };
        objects.extend(["c2", "c3"].map(|name| fleet::member(name, NOW).build()));
        assert_eq!(decided(&objects), [json!(["web-c1"]), json!(["web-c3"])]);
        objects.push(fleet::member("c1", NOW).build());
        assert_eq!(decided(&objects), [json!([]), json!([])], "it works and has to stay");
    }

    #[test]
    fn clusters_that_do_not_work_and_are_not_wanted_go_first() {
        let (old, new) = (json!(["web-c1", "web-c2"]), json!(["web-c3", "web-c4"]));
        assert_eq!(decided(true), [old, json!([]), new.clone()]);
        // Nobody takes the resources off clusters that have left the fleet.
        assert_eq!(decided(false), [json!([]), new, json!([])]);
    }
}
