//! Groups of members, and where the members stand. Groups report counts and a few names,
//! never the whole fleet.

use serde::Serialize;
use smol_str::SmolStr;

/// How many members in flight a group names. A budget keeps most groups far below it.
const NAMED_MAX: usize = 100;

/// Where a member stands. A member is in exactly one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum MemberState {
    /// Has not begun; a hold says why.
    Waiting,
    /// In flight: it takes a slot of its group.
    Moving,
    /// Has the new revision and is being watched before it counts.
    Settling,
    Done,
    /// Did not get there; what happens next is the dialect's rule.
    Failed,
    /// On its way out of the rollout.
    Gone,
}

/// How far a group of members has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GroupReport {
    pub name: String,
    pub total: u32,
    pub waiting: u32,
    pub moving: u32,
    pub settling: u32,
    pub done: u32,
    pub failed: u32,
    pub gone: u32,
    /// The most members that may be in flight, where the group has such a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<BatchReport>,
    /// Whether its members are to be replaced by those of other groups: nobody asked for them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub outgoing: bool,
    /// Members that move or settle, in the order of the group: the first of them. For people; a plan
    /// has them among its actions and in the dialect's summary.
    #[serde(skip)]
    pub in_flight: Vec<SmolStr>,
}

/// The batch a group is at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchReport {
    /// Counts from 1.
    pub number: u32,
    /// How many members it may hold.
    pub size: u32,
    pub consecutive_failures: u32,
    pub stopped: bool,
}

impl GroupReport {
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Counts one more member.
    pub fn count(&mut self, state: MemberState) {
        self.count_many(state, 1);
    }

    /// Counts a member, and names it while it is in flight.
    pub fn count_member(&mut self, state: MemberState, name: impl Into<SmolStr>) {
        let is_in_flight = matches!(state, MemberState::Moving | MemberState::Settling);
        if is_in_flight && self.in_flight.len() < NAMED_MAX {
            self.in_flight.push(name.into());
        }
        self.count(state);
    }

    /// Counts members in one state, as far as the total can hold them.
    pub fn count_many(&mut self, state: MemberState, count: u32) {
        let count = count.min(u32::MAX - self.total);
        self.total += count;
        *match state {
            MemberState::Waiting => &mut self.waiting,
            MemberState::Moving => &mut self.moving,
            MemberState::Settling => &mut self.settling,
            MemberState::Done => &mut self.done,
            MemberState::Failed => &mut self.failed,
            MemberState::Gone => &mut self.gone,
        } += count;
    }

    /// Whether the states add up to the members (G4).
    pub fn is_partition(&self) -> bool {
        let by_state =
            [self.waiting, self.moving, self.settling, self.done, self.failed, self.gone];
        by_state.iter().sum::<u32>() == self.total
    }
}
