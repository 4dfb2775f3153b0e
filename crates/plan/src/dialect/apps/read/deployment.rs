//! A Deployment as the engine sees it: defaults filled in, numbers resolved, once.

use convoy_api::apps::UNLIMITED;
use convoy_api::apps::equality::Template;
use convoy_api::apps::spec::{DeploymentSpec, UpdateStrategy};
use convoy_api::object::member::{field, member};
use convoy_api::text::CountOrPercent;
use convoy_api::{Object, apps::annotation};
use serde_json::Value;

use super::template;
use crate::budget::{IntOrPercent, Rounding};
use crate::selector::Selector;

/// A sound Deployment.
#[derive(Debug)]
pub(crate) struct Deployment<'o> {
    pub(crate) object: &'o Object,
    pub(crate) selector: Selector,
    /// How many replicas are wanted.
    pub(crate) replicas: i64,
    pub(crate) recreate: bool,
    /// How many more than `replicas` may be asked for at once.
    pub(crate) surge: i64,
    /// How many of `replicas` may be missing, before it is capped at their number.
    pub(crate) unavailable: i64,
    pub(crate) min_ready_secs: i64,
    pub(crate) paused: bool,
    /// How many old ReplicaSets are kept; absent: all.
    pub(crate) history_limit: Option<usize>,
    /// Absent: a rollout may take for ever.
    pub(crate) deadline_secs: Option<i64>,
    pub(crate) template: Template<'o>,
    pub(crate) stored: Stored,
}

/// What the status of a Deployment says before this step; 0 where it says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) replicas: i64,
    pub(crate) updated: i64,
    pub(crate) ready: i64,
    pub(crate) available: i64,
    pub(crate) observed_generation: i64,
    pub(crate) collision_count: Option<i64>,
}

impl Stored {
    /// Whether all replicas that `deployment` asks for are there, new and available.
    pub(crate) fn is_complete(&self, replicas: i64, deployment: &Object) -> bool {
        let is_current = self.observed_generation >= deployment.generation();
        is_current && [self.replicas, self.updated, self.available].iter().all(|it| *it == replicas)
    }

    fn of(object: &Object) -> Self {
        let number = |name: &str| member(object.status(), name).and_then(Value::as_i64);
        Self {
            replicas: number("replicas").unwrap_or(0),
            updated: number("updatedReplicas").unwrap_or(0),
            ready: number("readyReplicas").unwrap_or(0),
            available: number("availableReplicas").unwrap_or(0),
            observed_generation: number("observedGeneration").unwrap_or(0),
            collision_count: number("collisionCount"),
        }
    }
}

impl<'o> Deployment<'o> {
    /// Reads a Deployment; the names of the fields that cannot be understood otherwise.
    pub(crate) fn read(object: &'o Object) -> Result<Self, Vec<String>> {
        let spec: DeploymentSpec = object.spec_view().map_err(|error| vec![error.field])?;
        let mut wrong = Vec::new();
        let mut count = |name: &str, given: Option<i64>, otherwise: i64| match given {
            None => otherwise,
            Some(number) if (0..=UNLIMITED).contains(&number) => number,
            Some(_) => {
                wrong.push(format!("spec.{name}"));
                otherwise
            }
        };
        let replicas = count("replicas", spec.replicas, 1);
        let min_ready_secs = count("minReadySeconds", spec.min_ready_seconds, 0);
        let history = count("revisionHistoryLimit", spec.revision_history_limit, 10);
        let deadline = count("progressDeadlineSeconds", spec.progress_deadline_seconds, 600);
        let selector = Selector::from_value(field(object.spec(), "selector"));
        let selector = selector.unwrap_or_else(|_| {
            wrong.push("spec.selector".to_owned());
            Selector::default()
        });
        let strategy = Strategy::read(&spec.strategy.unwrap_or_default(), replicas);
        let strategy = strategy.unwrap_or_else(|field| {
            wrong.push(field);
            Strategy::default()
        });
        if !wrong.is_empty() {
            return Err(wrong);
        }
        Ok(Self {
            object,
            selector,
            replicas,
            recreate: strategy.recreate,
            surge: strategy.surge,
            unavailable: strategy.unavailable,
            min_ready_secs,
            paused: spec.paused.unwrap_or(false),
            history_limit: usize::try_from(history).ok().filter(|_| history != UNLIMITED),
            deadline_secs: Some(deadline).filter(|secs| *secs != UNLIMITED),
            template: Template::new(template(object)),
            stored: Stored::of(object),
        })
    }

    pub(crate) fn raw_template(&self) -> &'o Value {
        template(self.object)
    }

    /// How many replicas may be asked for at once.
    pub(crate) fn most(&self) -> i64 {
        self.replicas + self.surge
    }

    /// How many may be missing while the Deployment still counts as available.
    pub(crate) fn may_be_missing(&self) -> i64 {
        if self.recreate { 0 } else { self.unavailable.min(self.replicas) }
    }

    /// The revision to go back to, 0 for the previous one, if someone asked.
    pub(crate) fn rollback_request(&self) -> Option<i64> {
        self.object.annotation(annotation::ROLLBACK_TO)?.parse().ok()
    }
}

/// `spec.strategy`, resolved for a number of replicas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Strategy {
    recreate: bool,
    surge: i64,
    unavailable: i64,
}

impl Strategy {
    /// | replicas | maxSurge, maxUnavailable | surge | unavailable | because                       |
    /// |---------:|--------------------------|------:|------------:|-------------------------------|
    /// |       10 | 25%, 25%                 |     3 |           2 | surge rounds up, the other down |
    /// |        1 | 0%, 1%                   |     0 |           1 | both 0: nothing could ever move |
    /// |        5 | 0, 10                    |     0 |          10 | a count is taken as it is     |
    fn read(strategy: &UpdateStrategy, replicas: i64) -> Result<Self, String> {
        match strategy.kind.as_deref() {
            None | Some("" | "RollingUpdate") => {}
            Some("Recreate") => return Ok(Self { recreate: true, ..Self::default() }),
            Some(_) => return Err("spec.strategy.type".to_owned()),
        }
        let rolling = strategy.rolling_update.as_ref();
        let total = u32::try_from(replicas).unwrap_or(u32::MAX);
        let number = |name: &str, given: Option<&CountOrPercent>, rounding| match given {
            None => Ok(IntOrPercent::Percent(25).resolve(total, rounding)),
            Some(given) => IntOrPercent::from_view(given)
                .map(|share| share.resolve(total, rounding))
                .map_err(|_| format!("spec.strategy.rollingUpdate.{name}")),
        };
        let surge = rolling.and_then(|rolling| rolling.max_surge.as_ref());
        let surge = number("maxSurge", surge, Rounding::Up)?;
        let unavailable = rolling.and_then(|rolling| rolling.max_unavailable.as_ref());
        let unavailable = number("maxUnavailable", unavailable, Rounding::Down { at_least: 0 })?;
        let (surge, unavailable) = (i64::from(surge), i64::from(unavailable));
        let stuck = surge == 0 && unavailable == 0;
        Ok(Self { recreate: false, surge, unavailable: if stuck { 1 } else { unavailable } })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(strategy: Value, replicas: i64) -> Result<Strategy, String> {
        Strategy::read(&serde_json::from_value(strategy).unwrap(), replicas)
    }

    #[test]
    fn shares_become_numbers() {
        let cases = [
            (10, json!({}), (3, 2)),
            (1, json!({"maxSurge": "0%", "maxUnavailable": "1%"}), (0, 1)),
            (5, json!({"maxSurge": 0, "maxUnavailable": 10}), (0, 10)),
            (10, json!({"maxSurge": "39%", "maxUnavailable": "39%"}), (4, 3)),
            (0, json!({}), (0, 1)),
        ];
        for (replicas, rolling, expected) in cases {
            let strategy = read(json!({"rollingUpdate": rolling}), replicas).unwrap();
            assert_eq!((strategy.surge, strategy.unavailable), expected, "{replicas} {rolling}");
        }
        assert!(read(json!({"type": "Blue"}), 1).is_err());
        assert!(read(json!({"rollingUpdate": {"maxSurge": "x"}}), 1).is_err());
    }
}
