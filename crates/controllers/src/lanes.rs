//! How many steps are executed at once, cluster by cluster. A step whose cluster does not answer
//! stays in flight for long; were there one limit for all, a silent cluster would use it up and
//! hold up the others.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use smol_str::SmolStr;

use crate::rollout::Rollout;

/// The steps in flight, and the rollouts that wait until there are fewer. A rollout that needs
/// member clusters counts for each of them, any other one for the home cluster, whose name is
/// empty.
#[derive(Debug)]
pub(crate) struct Lanes {
    width: usize,
    busy: BTreeMap<SmolStr, usize>,
    entered: BTreeMap<Rollout, BTreeSet<SmolStr>>,
    parked: BTreeMap<SmolStr, VecDeque<Rollout>>,
    is_parked: BTreeSet<Rollout>,
}

impl Lanes {
    pub(crate) fn new(width: usize) -> Self {
        Self {
            width: width.max(1),
            busy: BTreeMap::new(),
            entered: BTreeMap::new(),
            parked: BTreeMap::new(),
            is_parked: BTreeSet::new(),
        }
    }

    pub(crate) fn is_full(&self, cluster: &str) -> bool {
        self.room(cluster) == 0
    }

    /// Parks a rollout that has to wait for one of its clusters. False if it may start.
    pub(crate) fn park(&mut self, rollout: &Rollout, members: &BTreeSet<SmolStr>) -> bool {
        let home = SmolStr::default();
        let lanes = members.iter().chain(members.is_empty().then_some(&home));
        let Some(full) = lanes.into_iter().find(|lane| self.is_full(lane)).cloned() else {
            return false;
        };
        if self.is_parked.insert(rollout.clone()) {
            self.parked.entry(full).or_default().push_back(rollout.clone());
        }
        true
    }

    /// The parked rollouts for which there is room now, first come, first served.
    pub(crate) fn unpark(&mut self) -> Vec<Rollout> {
        let mut free = Vec::new();
        let lanes: Vec<SmolStr> = self.parked.keys().cloned().collect();
        for lane in lanes {
            let room = self.room(&lane);
            let Some(parked) = self.parked.get_mut(&lane) else { continue };
            free.extend(parked.drain(..room.min(parked.len())));
            if parked.is_empty() {
                self.parked.remove(&lane);
            }
        }
        for rollout in &free {
            self.is_parked.remove(rollout);
        }
        free
    }

    /// Whether [`Lanes::unpark`] would return any.
    pub(crate) fn has_room_for_parked(&self) -> bool {
        self.parked.keys().any(|lane| !self.is_full(lane))
    }

    pub(crate) fn parked(&self) -> usize {
        self.is_parked.len()
    }

    pub(crate) fn enter(&mut self, rollout: &Rollout, members: BTreeSet<SmolStr>) {
        let lanes = if members.is_empty() { BTreeSet::from([SmolStr::default()]) } else { members };
        for lane in &lanes {
            *self.busy.entry(lane.clone()).or_default() += 1;
        }
        self.entered.insert(rollout.clone(), lanes);
    }

    pub(crate) fn leave(&mut self, rollout: &Rollout) {
        for lane in self.entered.remove(rollout).unwrap_or_default() {
            if let Some(busy) = self.busy.get_mut(&lane) {
                *busy = busy.saturating_sub(1);
                if *busy == 0 {
                    self.busy.remove(&lane);
                }
            }
        }
    }

    fn room(&self, cluster: &str) -> usize {
        self.width.saturating_sub(self.busy.get(cluster).copied().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use convoy_api::apps::DEPLOYMENT;

    use super::*;

    fn rollout(name: &str) -> Rollout {
        Rollout { dialect: 0, key: DEPLOYMENT.key("shop", name) }
    }

    fn clusters(names: &[&str]) -> BTreeSet<SmolStr> {
        names.iter().map(SmolStr::new).collect()
    }

    #[test]
    fn a_full_cluster_holds_up_its_own_rollouts_only() {
        let mut lanes = Lanes::new(2);
        let (silent, other) = (clusters(&["silent"]), clusters(&["other"]));
        for name in ["a", "b"] {
            assert!(!lanes.park(&rollout(name), &silent));
            lanes.enter(&rollout(name), silent.clone());
        }
        assert!(lanes.park(&rollout("c"), &silent) && lanes.park(&rollout("d"), &silent));
        assert!(lanes.park(&rollout("c"), &silent), "it is parked once");
        assert!(!lanes.park(&rollout("e"), &other) && !lanes.park(&rollout("f"), &clusters(&[])));
        assert!(lanes.park(&rollout("g"), &clusters(&["other", "silent"])));
        assert_eq!((lanes.parked(), lanes.unpark()), (3, vec![]));
        lanes.leave(&rollout("a"));
        assert!(lanes.has_room_for_parked());
        assert_eq!(lanes.unpark(), [rollout("c")]);
        lanes.leave(&rollout("b"));
        assert_eq!(lanes.unpark(), [rollout("d"), rollout("g")]);
    }
}
