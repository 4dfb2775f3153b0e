//! A Deployment as the engine sees it: defaults filled in, numbers resolved, once.

use convoy_api::apps::UNLIMITED;
use convoy_api::apps::equality::Template;
use convoy_api::object::member::{field, member};
use convoy_api::{Object, apps::annotation};
use serde_json::Value;

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
}

impl<'o> Deployment<'o> {
    /// Reads a Deployment; the names of the fields that cannot be understood otherwise.
    pub(crate) fn read(object: &'o Object) -> Result<Self, Vec<String>> {
        let spec = object.spec();
        let mut wrong = Vec::new();
        let mut count = |field: &str, otherwise: i64| match member(spec, field) {
            None | Some(Value::Null) => otherwise,
            Some(value) => {
                value.as_i64().filter(|n| (0..=UNLIMITED).contains(n)).unwrap_or_else(|| {
                    wrong.push(format!("spec.{field}"));
                    otherwise
                })
            }
        };
        let replicas = count("replicas", 1);
        let min_ready_secs = count("minReadySeconds", 0);
        let history = count("revisionHistoryLimit", 10);
        let deadline = count("progressDeadlineSeconds", 600);
        let selector = Selector::from_value(field(spec, "selector"));
        let selector = selector.unwrap_or_else(|_| {
            wrong.push("spec.selector".to_owned());
            Selector::default()
        });
        let strategy = Strategy::read(field(spec, "strategy"), replicas);
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
            paused: spec.get("paused").and_then(Value::as_bool).unwrap_or(false),
            history_limit: usize::try_from(history).ok().filter(|_| history != UNLIMITED),
            deadline_secs: Some(deadline).filter(|secs| *secs != UNLIMITED),
            template: Template::new(field(spec, "template")),
        })
    }

    pub(crate) fn raw_template(&self) -> &'o Value {
        field(self.object.spec(), "template")
    }

    /// How many replicas may be asked for at once.
    pub(crate) fn most(&self) -> i64 {
        self.replicas + self.surge
    }

    /// How many may be missing while the Deployment still counts as available.
    pub(crate) fn may_be_missing(&self) -> i64 {
        if self.recreate { 0 } else { self.unavailable.min(self.replicas) }
    }

    /// A number of `status`, 0 where it is absent.
    pub(crate) fn stored(&self, field: &str) -> i64 {
        member(self.object.status(), field).and_then(Value::as_i64).unwrap_or(0)
    }

    pub(crate) fn collision_count(&self) -> Option<i64> {
        self.object.status().get("collisionCount").and_then(Value::as_i64)
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
    fn read(strategy: &Value, replicas: i64) -> Result<Self, String> {
        match strategy.get("type").and_then(Value::as_str) {
            None | Some("" | "RollingUpdate") => {}
            Some("Recreate") => return Ok(Self { recreate: true, ..Self::default() }),
            Some(_) => return Err("spec.strategy.type".to_owned()),
        }
        let total = u32::try_from(replicas).unwrap_or(u32::MAX);
        let number = |field: &str, rounding| match strategy
            .get("rollingUpdate")
            .and_then(|rolling| rolling.get(field))
            .filter(|value| !value.is_null())
        {
            None => Ok(IntOrPercent::Percent(25).resolve(total, rounding)),
            Some(value) => IntOrPercent::from_value(value)
                .map(|share| share.resolve(total, rounding))
                .map_err(|_| format!("spec.strategy.rollingUpdate.{field}")),
        };
        let surge = i64::from(number("maxSurge", Rounding::Up)?);
        let unavailable = i64::from(number("maxUnavailable", Rounding::Down { at_least: 0 })?);
        let stuck = surge == 0 && unavailable == 0;
        Ok(Self { recreate: false, surge, unavailable: if stuck { 1 } else { unavailable } })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
            let strategy = Strategy::read(&json!({"rollingUpdate": rolling}), replicas).unwrap();
            assert_eq!((strategy.surge, strategy.unavailable), expected, "{replicas} {rolling}");
        }
        assert!(Strategy::read(&json!({"type": "Blue"}), 1).is_err());
        assert!(Strategy::read(&json!({"rollingUpdate": {"maxSurge": "x"}}), 1).is_err());
    }
}
