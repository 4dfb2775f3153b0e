//! How fast a DaemonSet replaces its pods.

use convoy_api::Object;
use convoy_api::object::member::{field, member, text};
use serde_json::Value;

use super::super::kept::Health;
use super::nodes::Place;
use crate::budget::{IntOrPercent, Rounding};
use crate::hold::HoldReason;

/// How many members a hold names.
const NAMED: usize = 3;

/// The update strategy.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pace {
    /// Whoever deletes a pod gets a new one.
    OnDelete,
    Rolling {
        unavailable: IntOrPercent,
        surge: IntOrPercent,
    },
}

impl Pace {
    /// The field at fault where it cannot be read.
    pub(super) fn read(owner: &Object) -> Result<Self, &'static str> {
        let strategy = field(owner.spec(), "updateStrategy");
        if text(strategy, "type") == "OnDelete" {
            return Ok(Self::OnDelete);
        }
        let rolling = field(strategy, "rollingUpdate");
        let amount = |name: &str, absent: i64| match member(rolling, name) {
            None | Some(Value::Null) => Some(IntOrPercent::Int(absent)),
            Some(given) => IntOrPercent::from_value(given).ok(),
        };
        let unavailable = amount("maxUnavailable", 1)
            .ok_or("spec.updateStrategy.rollingUpdate.maxUnavailable")?;
        let surge = amount("maxSurge", 0).ok_or("spec.updateStrategy.rollingUpdate.maxSurge")?;
        Ok(Self::Rolling { unavailable, surge })
    }

    /// The most nodes without an available pod, and the most with two.
    fn limits(self, places: &[Place<'_>]) -> Option<(usize, usize)> {
        let Self::Rolling { unavailable, surge } = self else { return None };
        let desired = places.iter().filter(|place| place.fit.should_run()).count();
        let desired = u32::try_from(desired).unwrap_or(u32::MAX);
        let whole = |amount: IntOrPercent| {
            usize::try_from(amount.resolve(desired, Rounding::Up)).unwrap_or(0)
        };
        match (whole(unavailable), whole(surge)) {
            (0, 0) => Some((1, 0)),
            both => Some(both),
        }
    }

    pub(super) fn ceiling(self, places: &[Place<'_>]) -> Option<u32> {
        let (unavailable, surge) = self.limits(places)?;
        u32::try_from(unavailable.max(surge)).ok()
    }

    /// What an old pod that is not replaced yet waits for.
    pub(super) fn no_room(self, places: &[Place<'_>]) -> HoldReason {
        let Some((unavailable, surge)) = self.limits(places) else {
            let on = "somebody to delete it: the update strategy is OnDelete".to_owned();
            return HoldReason::Depends { on };
        };
        let (limit, ceiling, mut by): (_, _, Vec<_>) = if surge > 0 {
            ("maxSurge", surge, places.iter().filter(|place| surged(place)).collect())
        } else {
            ("maxUnavailable", unavailable, places.iter().filter(|place| is_down(place)).collect())
        };
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let in_flight = count(by.len());
        by.truncate(NAMED);
        let by = by.into_iter().map(|place| place.node.into()).collect();
        HoldReason::BudgetSpent { limit, in_flight, ceiling: count(ceiling), by }
    }

    /// Marks what is deleted, and where a second pod is made.
    pub(super) fn decide(self, places: &mut [Place<'_>]) {
        let limits = self.limits(places);
        let surge = limits.map_or(0, |(_, surge)| surge);
        for place in places.iter_mut() {
            tidy(place, surge > 0);
        }
        match limits {
            None => {}
            Some((unavailable, 0)) => replace(places, unavailable),
            Some((_, surge)) => second(places, surge),
        }
    }
}

/// Deletes what should not be on a node whatever the pace: pods that are over, those on nodes
/// that do not suit, and all but the oldest.
fn tidy(place: &mut Place<'_>, surges: bool) {
    let stays = place.fit.may_stay();
    let gone = |health: Health| health == Health::Over || !stays && health != Health::Leaving;
    let mut deleted: Vec<&Object> =
        place.pods.iter().filter(|(.., health)| gone(*health)).map(|(pod, ..)| *pod).collect();
    let mut alive = place.alive().filter(|_| stays);
    let first = alive.next();
    for (pod, updated, _) in alive {
        // While it surges a node has an old and a new pod.
        let is_pair = surges && first.is_some_and(|(_, first, _)| first != updated);
        if !is_pair {
            deleted.push(pod);
        }
    }
    place.deleted = deleted;
}

/// Whether a node that should have an available pod has none.
fn is_down(place: &Place<'_>) -> bool {
    let available = place.alive().any(|(pod, _, health)| {
        *health == Health::Available && !place.deleted.iter().any(|gone| gone.key() == pod.key())
    });
    place.fit.should_run() && !available
}

fn surged(place: &Place<'_>) -> bool {
    place.surges || place.alive().count() > 1
}

/// Deletes old pods: the unavailable at once, others while the budget lasts.
fn replace(places: &mut [Place<'_>], unavailable: usize) {
    let old = |place: &Place<'_>| -> Option<Health> {
        let alone = place.fit.may_stay() && place.deleted.is_empty() && !place.is_leaving();
        let current = place.alive().next().filter(|(_, updated, _)| alone && !updated)?;
        Some(current.2)
    };
    let mut room = unavailable.saturating_sub(places.iter().filter(|place| is_down(place)).count());
    for place in places.iter_mut() {
        let goes = match old(place) {
            None => false,
            Some(Health::Available) if place.fit.should_run() => {
                let goes = room > 0;
                room = room.saturating_sub(1);
                goes
            }
            Some(_) => true,
        };
        if goes {
            place.deleted = place.alive().map(|(pod, ..)| *pod).collect();
        }
    }
}

/// Makes new pods beside old ones, and deletes an old one when the new is available.
fn second(places: &mut [Place<'_>], surge: usize) {
    let fresh = |place: &Place<'_>| {
        place.alive().filter(|(_, updated, _)| *updated).map(|(.., health)| *health).next()
    };
    let mut surging = 0;
    for place in places.iter_mut() {
        let old: Vec<&Object> =
            place.alive().filter(|(_, updated, _)| !updated).map(|(pod, ..)| *pod).collect();
        match fresh(place) {
            _ if old.is_empty() || !place.fit.may_stay() => {}
            Some(Health::Available) => place.deleted.extend(old),
            Some(_) => surging += 1,
            None => {}
        }
    }
    let mut room = surge.saturating_sub(surging);
    for place in places.iter_mut().filter(|place| place.fit.should_run()) {
        let old = place.alive().find(|(_, updated, _)| !updated).map(|(.., health)| *health);
        let (Some(health), None, true) = (old, fresh(place), place.deleted.is_empty()) else {
            continue;
        };
        // Beside a pod that does not work another costs nothing.
        if health != Health::Available {
            place.surges = true;
        } else if room > 0 {
            room -= 1;
            place.surges = true;
        }
    }
}
