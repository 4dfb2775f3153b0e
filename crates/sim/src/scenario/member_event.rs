//! What happens to the connections of member clusters, and when: as a file says it, and as the
//! state of one connection at an instant.

use http::Method;
use jiff::SignedDuration;
use serde::Deserialize;

use super::{Latency, Pattern, Scenario, ScenarioError, refused};
use crate::seed::Seed;

/// How long a flapping member is offline, and then online, if nothing is given.
const FLAPPING: Latency = Latency::from_millis(10_000, 10_000);
/// What a request of a slow member takes longer if nothing is given.
const SLOW: Latency = Latency::from_millis(1_000, 5_000);

/// One thing that befalls the connections of member clusters.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MemberClusterEvent {
    pub cluster: Pattern,
    /// After the start of the members.
    pub at: Latency,
    pub event: MemberClusterEventKind,
    /// For how long; absent: for good.
    #[serde(default, rename = "for")]
    pub lasts: Option<Latency>,
    /// What a request of a slow member takes longer.
    #[serde(default)]
    pub delay: Option<Latency>,
    /// How long a flapping member is offline, and then online, in turn.
    #[serde(default)]
    pub every: Option<Latency>,
    /// The resources of which writes are forbidden, such as `configmaps`; absent: all.
    #[serde(default)]
    pub resource: Option<Pattern>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum MemberClusterEventKind {
    /// The API server of the member does not answer its agent.
    Offline,
    /// The hub does not answer the agent of the member.
    HubUnreachable,
    /// Every request of the agent to the member takes longer.
    Slow,
    /// Offline and online in turn.
    Flapping,
    /// The member refuses what its agent writes.
    Forbidden,
}

/// The API server at the other end of an agent's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Towards {
    Hub,
    Member,
}

/// A connection at an instant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkState {
    /// Nothing gets through.
    pub is_silent: bool,
    /// Every request takes longer by this.
    pub delay: Option<Latency>,
    /// Writes of these resources are refused.
    pub forbidden: Vec<Pattern>,
}

/// What befalls one connection over time, counted from its start.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSchedule {
    seed: Seed,
    faults: Vec<Fault>,
}

#[derive(Clone, Debug, PartialEq)]
struct Fault {
    from: SignedDuration,
    /// `None`: for good.
    until: Option<SignedDuration>,
    effect: Effect,
}

#[derive(Clone, Debug, PartialEq)]
enum Effect {
    Silent,
    Flapping(SignedDuration),
    Slow(Latency),
    Forbidden(Pattern),
}

impl Scenario {
    /// What befalls the connection of a member's agent to one of its two API servers.
    pub fn link_of_member(&self, name: &str, towards: Towards) -> LinkSchedule {
        let seed = Seed::new(self.seed).child("member", name);
        let events = self.member_cluster_events.iter().enumerate();
        let faults = events.filter(|(_, event)| event.cluster.matches(name));
        let faults = faults.filter_map(|(index, event)| {
            event.fault(seed.nth(u32::try_from(index).unwrap_or(u32::MAX)), towards)
        });
        LinkSchedule { seed, faults: faults.collect() }
    }

    pub(super) fn check_member_events(&self) -> Result<(), ScenarioError> {
        for (index, event) in self.member_cluster_events.iter().enumerate() {
            event.check(&format!("memberClusterEvents[{index}]"))?;
        }
        Ok(())
    }
}

impl MemberClusterEvent {
    fn check(&self, at: &str) -> Result<(), ScenarioError> {
        use MemberClusterEventKind::{Flapping, Forbidden, Slow};
        let only = [
            ("delay", self.delay.is_some(), Slow, "slow"),
            ("every", self.every.is_some(), Flapping, "flapping"),
            ("resource", self.resource.is_some(), Forbidden, "forbidden"),
        ];
        for (field, is_given, kind, word) in only {
            if is_given && self.event != kind {
                let want = format!("want it only with the event {word}");
                return Err(refused(&format!("{at}.{field}"), &self.event, &want));
            }
        }
        match self.every {
            Some(every) if every.shortest().is_zero() => {
                Err(refused(&format!("{at}.every"), &"0s", "want a positive duration"))
            }
            _ => Ok(()),
        }
    }

    /// The event on a connection, unless it is about the other one.
    fn fault(&self, seed: Seed, towards: Towards) -> Option<Fault> {
        let of = match self.event {
            MemberClusterEventKind::HubUnreachable => Towards::Hub,
            _ => Towards::Member,
        };
        let effect = match self.event {
            MemberClusterEventKind::Offline | MemberClusterEventKind::HubUnreachable => {
                Effect::Silent
            }
            MemberClusterEventKind::Flapping => {
                Effect::Flapping(self.every.unwrap_or(FLAPPING).draw(seed.child("every", "")))
            }
            MemberClusterEventKind::Slow => Effect::Slow(self.delay.unwrap_or(SLOW)),
            MemberClusterEventKind::Forbidden => {
                let all = || Pattern::from("*");
                Effect::Forbidden(self.resource.clone().unwrap_or_else(all))
            }
        };
        let from = self.at.draw(seed.child("at", ""));
        let until = self.lasts.map(|it| from.saturating_add(it.draw(seed.child("for", ""))));
        (of == towards).then_some(Fault { from, until, effect })
    }
}

impl LinkState {
    /// The resource of a request, such as `configmaps`, if writing it is refused.
    pub fn forbids<'p>(&self, method: &Method, path: &'p str) -> Option<&'p str> {
        if [Method::GET, Method::HEAD].contains(method) {
            return None;
        }
        let resource = resource(path)?;
        self.forbidden.iter().any(|pattern| pattern.matches(resource)).then_some(resource)
    }
}

/// The resource of an API path, such as `configmaps`.
fn resource(path: &str) -> Option<&str> {
    let mut parts = path.split('?').next()?.split('/').filter(|part| !part.is_empty());
    let first = parts.next()?;
    // The simulation has all clusters on one server.
    match if first == "clusters" { parts.nth(1)? } else { first } {
        "api" => parts.next()?,
        "apis" => parts.nth(1)?,
        _ => return None,
    };
    let first = parts.next()?;
    let in_namespace = parts.nth(1).filter(|_| first == "namespaces");
    Some(in_namespace.unwrap_or(first))
}

impl LinkSchedule {
    /// Whether nothing ever befalls the connection.
    pub fn is_empty(&self) -> bool {
        self.faults.is_empty()
    }

    /// A random number for one request.
    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// The connection after so long.
    pub fn at(&self, elapsed: SignedDuration) -> LinkState {
        let mut state = LinkState::default();
        for fault in self.faults.iter().filter(|fault| fault.is_on(elapsed)) {
            match &fault.effect {
                Effect::Silent => state.is_silent = true,
                Effect::Flapping(every) => state.is_silent |= fault.turn(elapsed, *every) % 2 == 0,
                Effect::Slow(delay) => state.delay = Some(*delay),
                Effect::Forbidden(resources) => state.forbidden.push(resources.clone()),
            }
        }
        state
    }

    /// When the connection may change next.
    pub fn next_change(&self, elapsed: SignedDuration) -> Option<SignedDuration> {
        let changes = self.faults.iter().filter_map(|fault| fault.next_change(elapsed));
        changes.min()
    }
}

impl Fault {
    fn is_on(&self, elapsed: SignedDuration) -> bool {
        self.from <= elapsed && self.until.is_none_or(|until| elapsed < until)
    }

    /// How often it has changed sides before.
    fn turn(&self, elapsed: SignedDuration, every: SignedDuration) -> i128 {
        elapsed.saturating_sub(self.from).as_nanos() / every.as_nanos().max(1)
    }

    fn next_change(&self, elapsed: SignedDuration) -> Option<SignedDuration> {
        if elapsed < self.from {
            return Some(self.from);
        }
        if !self.is_on(elapsed) {
            return None;
        }
        let Effect::Flapping(every) = self.effect else { return self.until };
        let turns = i32::try_from(self.turn(elapsed, every) + 1).unwrap_or(i32::MAX);
        let next = self.from.saturating_add(every.saturating_mul(turns));
        Some(self.until.map_or(next, |until| until.min(next)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(secs: i64) -> SignedDuration {
        SignedDuration::from_secs(secs)
    }

    fn schedule(events: &str, member: &str, towards: Towards) -> LinkSchedule {
        let text = format!("memberClusterEvents:\n{events}");
        Scenario::from_yaml(&text).unwrap().link_of_member(member, towards)
    }

    #[test]
    fn the_resource_of_a_path() {
        for (path, wanted) in [
            ("/api/v1/namespaces/shop/configmaps/a", Some("configmaps")),
            ("/api/v1/namespaces/shop", Some("namespaces")),
            ("/apis/apps/v1/namespaces/shop/deployments", Some("deployments")),
            ("/apis/apps/v1/namespaces/shop/deployments/a/status", Some("deployments")),
            ("/apis/rbac.authorization.k8s.io/v1/clusterroles", Some("clusterroles")),
            ("/clusters/a/api/v1/namespaces/shop/secrets?dryRun=All", Some("secrets")),
            ("/version", None),
            ("/apis", None),
        ] {
            assert_eq!(resource(path), wanted, "{path}");
        }
    }

    #[test]
    fn a_connection_is_silent_for_as_long_as_the_event_lasts() {
        let events = "- {cluster: 'member-*', at: 10s, event: offline, for: 5s}\n\
                      - {cluster: member-2, at: 1s, event: hub-unreachable}";
        let member = schedule(events, "member-1", Towards::Member);
        let silent = |at: i64| member.at(secs(at)).is_silent;
        assert_eq!([9, 10, 14, 15].map(silent), [false, true, true, false]);
        let next = |at: i64| member.next_change(secs(at));
        assert_eq!([0, 12, 15].map(next), [Some(secs(10)), Some(secs(15)), None]);
        assert!(schedule(events, "member-1", Towards::Hub).is_empty());
        assert!(schedule(events, "other", Towards::Member).is_empty());
        let hub = schedule(events, "member-2", Towards::Hub);
        assert!(hub.at(secs(1_000_000)).is_silent, "for good");
    }

    #[test]
    fn a_flapping_member_comes_and_goes() {
        let event = "- {cluster: a, at: 5s, event: flapping, every: 10s, for: 25s}";
        let link = schedule(event, "a", Towards::Member);
        let silent = |at: i64| link.at(secs(at)).is_silent;
        assert_eq!(
            [4, 5, 14, 15, 24, 25, 30].map(silent),
            [false, true, true, false, false, true, false]
        );
        let next = |at: i64| link.next_change(secs(at)).map(|it| it.as_secs());
        assert_eq!([0, 5, 15, 25, 30].map(next), [Some(5), Some(15), Some(25), Some(30), None]);
    }

    #[test]
    fn a_member_can_be_slow_and_refuse() {
        let events = "- {cluster: a, at: 0s, event: slow, delay: 2s}\n\
                      - {cluster: a, at: 0s, event: forbidden, resource: 'config*'}";
        let state = schedule(events, "a", Towards::Member).at(secs(1));
        assert_eq!(state.delay, Some("2s".parse().unwrap()));
        assert!(state.forbidden[0].matches("configmaps") && !state.is_silent);
        assert!(!state.forbidden[0].matches("secrets"));
    }

    #[test]
    fn a_field_of_another_event_is_refused_by_name() {
        for (event, field) in [
            ("{cluster: a, at: 0s, event: offline, delay: 1s}", "memberClusterEvents[0].delay"),
            ("{cluster: a, at: 0s, event: slow, every: 1s}", "memberClusterEvents[0].every"),
            ("{cluster: a, at: 0s, event: flapping, every: 0s}", "memberClusterEvents[0].every"),
            ("{cluster: a, at: 0s, event: slow, resource: x}", "memberClusterEvents[0].resource"),
        ] {
            let text = format!("memberClusterEvents: [{event}]");
            let refused = Scenario::from_yaml(&text).unwrap_err().to_string();
            assert!(refused.starts_with(field), "{refused}");
        }
    }
}
