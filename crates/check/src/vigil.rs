//! Observes Deployments during a rollout: checks after every write that a Deployment has enough pods
//! and not too many.
//!
//! It counts pods, and ignores what ReplicaSets request or report. A control loop can only respect
//! what it knows. So until the loops have processed all events and settled, pods that others remove
//! (a node that dies, a user who deletes a pod) are tolerated, the weaker of two bounds applies when
//! a bound changes, and only pods that were available all along count.

mod batches;
mod compartments;
mod placements;
mod replica_sets;
mod staged_runs;

use std::collections::BTreeMap;

use convoy_api::apps::{DEPLOYMENT, POD, REPLICA_SET, annotation};
use convoy_api::object::meta::timestamp;
use convoy_api::{Object, ObjectKey};
use convoy_plan::selector::Selector;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::guarantee::budget::apps::{Promise, promise};

pub use compartments::Compartments;
pub use placements::Placements;
pub use replica_sets::ReplicaSets;
pub use staged_runs::StagedRuns;

/// Who made a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hand {
    /// Those whose promise it is.
    Loop,
    Other,
}

/// The observed Deployments and their pods.
#[derive(Clone, Debug, Default)]
pub struct Vigil {
    deployments: BTreeMap<ObjectKey, Watched>,
    pods: BTreeMap<ObjectKey, Pod>,
    /// The highest revision each object has carried, by uid.
    revisions: BTreeMap<String, i64>,
}

#[derive(Clone, Debug)]
struct Watched {
    uid: String,
    selector: Selector,
    min_ready: SignedDuration,
    /// Absent for the strategy Recreate.
    promise: Option<Promise>,
    /// The weakest bounds since the loops last settled.
    weakest: Promise,
    /// Available pods that others have removed since then.
    lost: usize,
    /// The lowest number of available pods since then.
    fewest: usize,
}

#[derive(Clone, Debug)]
struct Pod {
    object: Object,
    ready_since: Option<Timestamp>,
    /// Neither finished nor terminating.
    is_active: bool,
    is_over: bool,
}

impl Vigil {
    /// Records a write or a deletion. Returns an error if a bound is violated.
    pub fn see(
        &mut self,
        object: &Object,
        is_gone: bool,
        by: Hand,
        now: Timestamp,
    ) -> Result<(), String> {
        match object.kind() {
            kind if *kind == DEPLOYMENT => {
                self.see_deployment(object, is_gone);
                self.see_revision(object)
            }
            kind if *kind == REPLICA_SET => self.see_revision(object),
            kind if *kind == POD => self.see_pod(object, is_gone, by, now),
            _ => Ok(()),
        }
    }

    /// Called when the loops have processed all events and have nothing to do: from here on the
    /// current bounds apply.
    pub fn rest(&mut self, now: Timestamp) {
        let count = |of: &Watched| (self.active(of), self.available(of, now));
        let counts: Vec<(usize, usize)> = self.deployments.values().map(count).collect();
        for (watched, (pods, available)) in self.deployments.values_mut().zip(counts) {
            (watched.lost, watched.fewest) = (0, available);
            if let Some(promise) = watched.promise {
                // A Deployment whose bound was lowered below its pods must only not add any.
                let most = promise.most.max(u32::try_from(pods).unwrap_or(u32::MAX));
                watched.weakest = Promise { most, ..promise };
            }
        }
    }

    fn see_deployment(&mut self, object: &Object, is_gone: bool) {
        if is_gone || object.is_deleting() {
            self.deployments.remove(object.key());
            return;
        }
        let spec = object.spec();
        let strategy = spec.get("strategy").unwrap_or(&Value::Null);
        let replicas = spec.get("replicas").and_then(Value::as_u64).unwrap_or(1);
        let current = promise(strategy, u32::try_from(replicas).unwrap_or(u32::MAX));
        let recreates = strategy.get("type").and_then(Value::as_str) == Some("Recreate");
        let uid = object.uid().unwrap_or_default().to_owned();
        let selector = spec.get("selector").unwrap_or(&Value::Null);
        let secs = spec.get("minReadySeconds").and_then(Value::as_i64).unwrap_or(0);
        let before = self.deployments.get(object.key()).filter(|before| before.uid == uid);
        let weakest = before.map_or(current, |before| Promise {
            most: before.weakest.most.max(current.most),
            least: before.weakest.least.min(current.least),
        });
        let watched = Watched {
            uid,
            selector: Selector::from_value(selector).unwrap_or_default(),
            min_ready: SignedDuration::from_secs(secs),
            promise: (!recreates).then_some(current),
            weakest,
            lost: before.map_or(0, |before| before.lost),
            fewest: before.map_or(0, |before| before.fewest),
        };
        self.deployments.insert(object.key().clone(), watched);
    }

    fn see_pod(
        &mut self,
        object: &Object,
        is_gone: bool,
        by: Hand,
        now: Timestamp,
    ) -> Result<(), String> {
        let owner = self.deployments.iter().find(|(key, watched)| {
            key.namespace == *object.namespace() && watched.selector.matches(object)
        });
        let owner = owner.map(|(key, _)| key.clone());
        let count = |vigil: &Self| {
            let watched = owner.as_ref().and_then(|key| vigil.deployments.get(key));
            watched.map_or((0, 0), |watched| (vigil.ready(watched), vigil.available(watched, now)))
        };
        let (served, before) = count(self);
        let is_new = !self.pods.contains_key(object.key());
        if is_gone {
            self.pods.remove(object.key());
        } else {
            self.pods.insert(object.key().clone(), Pod::read(object));
        }
        let (serve, after) = count(self);
        let Some(key) = owner else { return Ok(()) };
        let Some(watched) = self.deployments.get_mut(&key) else { return Ok(()) };
        if by == Hand::Other {
            watched.lost += served.saturating_sub(serve);
        }
        let fewest = watched.fewest;
        watched.fewest = fewest.min(after);
        let watched = &self.deployments[&key];
        if watched.promise.is_none() {
            return if is_new { self.is_alone(&key, object) } else { Ok(()) };
        }
        let Promise { most, least } = watched.weakest;
        let pods = self.active(watched);
        if is_new && pods > most as usize {
            return Err(format!("{key} has {pods} pods, more than {most}"));
        }
        let (lost, needed) = (watched.lost, fewest.min(least as usize));
        if by == Hand::Loop && after < before && after + lost < needed {
            return Err(format!(
                "{key} keeps {after} of {before} available pods, where {least} are promised, {fewest} were there all along and {lost} were lost"
            ));
        }
        Ok(())
    }

    /// Whether no pod of another template is left.
    fn is_alone(&self, key: &ObjectKey, made: &Object) -> Result<(), String> {
        let watched = &self.deployments[key];
        let hash = |pod: &Object| pod.label("pod-template-hash").map(str::to_owned);
        let other = self.of(watched).find(|pod| !pod.is_over && hash(&pod.object) != hash(made));
        other.map_or(Ok(()), |other| {
            Err(format!("{} was created while {} still exists", made.key(), other.object.key()))
        })
    }

    fn see_revision(&mut self, object: &Object) -> Result<(), String> {
        let revision = object.annotation(annotation::REVISION).and_then(|text| text.parse().ok());
        let (Some(revision), Some(uid)) = (revision, object.uid()) else { return Ok(()) };
        let highest = self.revisions.entry(uid.to_owned()).or_insert(revision);
        if revision < *highest {
            return Err(format!("{} goes from revision {highest} to {revision}", object.key()));
        }
        *highest = revision;
        Ok(())
    }

    fn of<'v>(&'v self, watched: &'v Watched) -> impl Iterator<Item = &'v Pod> {
        self.pods.values().filter(|pod| watched.selector.matches(&pod.object))
    }

    fn active(&self, watched: &Watched) -> usize {
        self.of(watched).filter(|pod| pod.is_active).count()
    }

    fn ready(&self, watched: &Watched) -> usize {
        self.of(watched).filter(|pod| pod.is_active && pod.ready_since.is_some()).count()
    }

    fn available(&self, watched: &Watched, now: Timestamp) -> usize {
        let is_available = |pod: &&Pod| {
            let since = pod.ready_since.and_then(|since| watched.available_at(since));
            pod.is_active && since.is_some_and(|since| since <= now)
        };
        self.of(watched).filter(is_available).count()
    }
}

impl Watched {
    /// When a pod that is ready since then counts. The instant has whole seconds: the pod may have
    /// become ready up to a second later, and never counts before it has been ready for long enough.
    fn available_at(&self, since: Timestamp) -> Option<Timestamp> {
        let is_cut = since.subsec_nanosecond() == 0 && !self.min_ready.is_zero();
        let cut_off = SignedDuration::from_secs(i64::from(is_cut));
        since.checked_add(self.min_ready).and_then(|at| at.checked_add(cut_off)).ok()
    }
}

impl Pod {
    fn read(object: &Object) -> Self {
        let word = |value: &Value, field: &str| {
            value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let ready = object.condition("Ready").filter(|ready| word(ready, "status") == "True");
        // A pod without a transition time counts as ready since ever.
        let since = |ready: &Value| {
            timestamp(ready.get("lastTransitionTime")).unwrap_or(Timestamp::UNIX_EPOCH)
        };
        let is_over = ["Failed", "Succeeded"].contains(&word(object.status(), "phase").as_str());
        Self {
            ready_since: ready.map(since),
            is_active: !is_over && !object.is_deleting(),
            is_over,
            object: object.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use convoy_testkit::{Builder, NOW, apps};
    use serde_json::json;

    use super::*;

    fn now() -> Timestamp {
        NOW.parse().unwrap()
    }

    /// Four replicas with maxUnavailable 1 and maxSurge 1.
    fn vigil() -> Vigil {
        let mut vigil = Vigil::default();
        let rolling = json!({"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}});
        let deployment = apps::deployment(4, "web:v1").with("/spec/strategy", rolling).build();
        vigil.see(&deployment, false, Hand::Other, now()).unwrap();
        vigil
    }

    fn pod(name: &str) -> Builder {
        apps::replica(name, "web-1", NOW)
    }

    fn going(name: &str) -> Object {
        pod(name).with("/metadata/deletionTimestamp", json!(NOW)).build()
    }

    fn filled(names: &[&str]) -> Vigil {
        let mut vigil = vigil();
        for name in names {
            vigil.see(&pod(name).build(), false, Hand::Loop, now()).unwrap();
        }
        vigil.rest(now());
        vigil
    }

    #[test]
    fn one_pod_too_many_is_seen() {
        let mut vigil = filled(&["a", "b", "c", "d", "e"]);
        vigil.see(&pod("f").build(), false, Hand::Loop, now()).unwrap_err();
        let mut vigil = filled(&["a", "b", "c", "d", "e"]);
        vigil.see(&going("a"), false, Hand::Loop, now()).unwrap();
        vigil.see(&pod("f").build(), false, Hand::Loop, now()).unwrap();
    }

    #[test]
    fn one_pod_too_few_is_seen_unless_others_took_it() {
        let mut vigil = filled(&["a", "b", "c", "d"]);
        vigil.see(&going("a"), false, Hand::Loop, now()).unwrap();
        vigil.see(&going("b"), false, Hand::Loop, now()).unwrap_err();
        let mut vigil = filled(&["a", "b", "c", "d"]);
        vigil.see(&going("a"), false, Hand::Other, now()).unwrap();
        vigil.see(&going("b"), false, Hand::Loop, now()).unwrap();
        vigil.rest(now());
        vigil.see(&going("c"), false, Hand::Loop, now()).unwrap_err();
    }

    #[test]
    fn what_nobody_can_have_seen_is_not_missed() {
        let unready = |name| pod(name).with("/status/conditions", json!([])).build();
        let mut vigil = vigil();
        for name in ["a", "b", "c", "d"] {
            vigil.see(&unready(name), false, Hand::Loop, now()).unwrap();
        }
        vigil.rest(now());
        for name in ["a", "b", "c", "d"] {
            vigil.see(&pod(name).build(), false, Hand::Other, now()).unwrap();
        }
        vigil.see(&going("a"), false, Hand::Loop, now()).unwrap();
        vigil.see(&going("b"), false, Hand::Loop, now()).unwrap();
        vigil.rest(now());
        vigil.see(&going("c"), false, Hand::Loop, now()).unwrap_err();
    }

    #[test]
    fn a_pod_counts_when_its_seconds_have_surely_passed() {
        let removed = |secs: i64| {
            let at = now() + SignedDuration::from_secs(secs);
            let mut vigil = Vigil::default();
            let deployment = apps::deployment(1, "web:v1").with("/spec/minReadySeconds", json!(1));
            vigil.see(&deployment.build(), false, Hand::Other, at).unwrap();
            vigil.see(&pod("a").build(), false, Hand::Other, at).unwrap();
            vigil.rest(at);
            vigil.see(&going("a"), false, Hand::Loop, at)
        };
        removed(1).unwrap();
        removed(2).unwrap_err();
    }

    #[test]
    fn of_two_promises_the_weaker_holds_until_rest() {
        let mut vigil = filled(&["a", "b", "c", "d"]);
        vigil.see(&apps::deployment(2, "web:v1").build(), false, Hand::Other, now()).unwrap();
        vigil.see(&pod("e").build(), false, Hand::Loop, now()).unwrap();
        for name in ["e", "d", "c"] {
            vigil.see(&going(name), false, Hand::Loop, now()).unwrap();
        }
        vigil.rest(now());
        vigil.see(&pod("f").build(), false, Hand::Loop, now()).unwrap();
        vigil.see(&pod("g").build(), false, Hand::Loop, now()).unwrap_err();
    }

    #[test]
    fn revisions_do_not_fall() {
        let set = |revision: &str| {
            apps::replica_set("web-1", "web:v1", 1, 1)
                .with("/metadata/annotations/deployment.kubernetes.io~1revision", json!(revision))
                .build()
        };
        let mut vigil = vigil();
        vigil.see(&set("3"), false, Hand::Loop, now()).unwrap();
        vigil.see(&set("4"), false, Hand::Loop, now()).unwrap();
        vigil.see(&set("3"), false, Hand::Loop, now()).unwrap_err();
    }
}
