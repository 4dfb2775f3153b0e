//! The nodes on which a pod fits, the best first, kept for its replicas. A fleet has thousands of
//! nodes and pods, and a pod that comes or goes makes a difference to one node only.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use smol_str::SmolStr;

use super::is_replica;
use super::room::Room;
use super::wants::Wants;
use crate::shared_object::SharedObject;

/// Kept for pods that have no preferences and to which other pods make no difference.
#[derive(Debug)]
pub(super) struct Shortlist {
    pod: SharedObject,
    ranked: BTreeSet<(Rank, SmolStr)>,
    ranks: BTreeMap<SmolStr, Rank>,
}

/// The score, then the number of pods.
type Rank = (Reverse<i64>, i64);

impl Shortlist {
    /// None for a pod that prefers some nodes, or that some nodes would rather not have.
    pub(super) fn of<'n>(
        pod: &SharedObject,
        nodes: impl Iterator<Item = (&'n SmolStr, &'n Room)>,
    ) -> Option<Self> {
        let wants = Wants::of(pod);
        if wants.has_preferences() {
            return None;
        }
        let (ranked, ranks) = (BTreeSet::new(), BTreeMap::new());
        let mut list = Self { pod: pod.clone(), ranked, ranks };
        for (name, room) in nodes {
            if !list.add(&wants, name, room) {
                return None;
            }
        }
        Some(list)
    }

    /// Whether it is also the list of another pod.
    pub(super) fn covers(&self, pod: &SharedObject) -> bool {
        is_replica(&self.pod, pod)
    }

    pub(super) fn best(&self) -> Option<&SmolStr> {
        self.ranked.first().map(|(_, name)| name)
    }

    /// A node is so now, or gone. False: the list is of no use any more.
    pub(super) fn update(&mut self, name: &SmolStr, room: Option<&Room>) -> bool {
        if let Some(rank) = self.ranks.remove(name) {
            self.ranked.remove(&(rank, name.clone()));
        }
        let pod = self.pod.clone();
        room.is_none_or(|room| self.add(&Wants::of(&pod), name, room))
    }

    /// Adds a node if the pod fits there. False: the list is of no use any more.
    fn add(&mut self, wants: &Wants<'_>, name: &SmolStr, room: &Room) -> bool {
        match Suitability::of(wants, name, room) {
            Suitability::Unfit => true,
            Suitability::Reluctant => false,
            Suitability::Fit(rank) => {
                self.ranked.insert((rank, name.clone()));
                self.ranks.insert(name.clone(), rank);
                true
            }
        }
    }
}

/// What a node is to a pod.
enum Suitability {
    /// The pod does not fit there.
    Unfit,
    Fit(Rank),
    /// It fits, and the node would rather not have it: how much that counts depends on the others.
    Reluctant,
}

impl Suitability {
    fn of(wants: &Wants<'_>, name: &str, room: &Room) -> Self {
        // Most nodes of a busy fleet have no room, which is quickly seen.
        if !wants.has_room(room) || !wants.refusals(name, room).is_empty() {
            Self::Unfit
        } else if wants.is_disliked_by(room) {
            Self::Reluctant
        } else {
            Self::Fit((Reverse(room.least_allocated(wants.takes())), room.used.pods))
        }
    }
}
