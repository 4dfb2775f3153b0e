//! Staged update strategies, as a run has recorded them. Read from the JSON: the record is
//! written back as it came, and a run whose record does not fit the wire type has to be aborted
//! with the reason rather than refused.

use convoy_api::Object;
use convoy_api::text::GoDuration;
use serde_json::{Map, Value, json};

use crate::budget::{IntOrPercent, Rounding};
use crate::dialect::fleet::read::placement::{field, list, text};
use crate::selector::{Selector, SelectorError};

/// One stage of a strategy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StageConfig<'a> {
    raw: &'a Value,
}

/// Whether a task comes before the clusters of a stage or after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Before,
    After,
}

/// A task before or after a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskConfig<'a> {
    /// `TimedWait` or `Approval`.
    pub(crate) kind: &'a str,
    pub(crate) wait: Option<GoDuration>,
}

impl When {
    /// How approval requests are labelled.
    pub(crate) fn task_type(self) -> &'static str {
        match self {
            Self::Before => "beforeStage",
            Self::After => "afterStage",
        }
    }

    fn field(self) -> &'static str {
        match self {
            Self::Before => "beforeStageTasks",
            Self::After => "afterStageTasks",
        }
    }
}

impl<'a> StageConfig<'a> {
    /// The stages of a strategy's spec, in order.
    pub(crate) fn all(strategy: &'a Value) -> impl Iterator<Item = Self> {
        list(strategy, "stages").iter().map(|raw| Self { raw })
    }

    /// The stage at `index`; one that is not there has no settings.
    pub(crate) fn nth(strategy: &'a Value, index: usize) -> Self {
        Self { raw: list(strategy, "stages").get(index).unwrap_or(&Value::Null) }
    }

    pub(crate) fn name(self) -> &'a str {
        text(self.raw, "name")
    }

    /// Which clusters are in the stage; None: none.
    pub(crate) fn selector(self) -> Option<Result<Selector, SelectorError>> {
        let selector = field(self.raw, "labelSelector");
        (!selector.is_null()).then(|| Selector::from_value(selector))
    }

    pub(crate) fn sorting_label_key(self) -> Option<&'a str> {
        Some(text(self.raw, "sortingLabelKey")).filter(|key| !key.is_empty())
    }

    /// The most clusters of a stage that may be in progress: shares round down, at least one.
    ///
    /// | clusters | maxConcurrency | limit | because                  |
    /// |---------:|----------------|------:|--------------------------|
    /// |        4 | 50%            |     2 |                          |
    /// |        5 | 70%            |     3 | 3.5 rounds down          |
    /// |        2 | 10%            |     1 | 0.2 would never begin    |
    /// |        9 | (absent)       |     1 | one at a time by default |
    pub(crate) fn max_concurrency(self, clusters: usize) -> u32 {
        let share = self.raw.get("maxConcurrency").filter(|share| !share.is_null());
        let share = share.and_then(|share| IntOrPercent::from_value(share).ok());
        let rounding = Rounding::Down { at_least: 1 };
        share.map_or(1, |share| share.resolve(crate::count(clusters), rounding)).max(1)
    }

    pub(crate) fn tasks(self, when: When) -> impl Iterator<Item = TaskConfig<'a>> {
        list(self.raw, when.field()).iter().map(|task| TaskConfig {
            kind: text(task, "type"),
            wait: text(task, "waitTime").parse().ok(),
        })
    }
}

/// The strategy's stages as a run records them: an approval has no wait time.
pub(crate) fn strategy_snapshot(strategy: &Object) -> Value {
    let mut spec = strategy.spec().as_object().cloned().unwrap_or_else(Map::new);
    let mut stages = list(strategy.spec(), "stages").to_vec();
    for stage in stages.iter_mut().filter_map(Value::as_object_mut) {
        for when in [When::Before, When::After] {
            let tasks = stage.get_mut(when.field()).and_then(Value::as_array_mut);
            for task in tasks.into_iter().flatten().filter_map(Value::as_object_mut) {
                if task.get("type").and_then(Value::as_str) == Some("Approval") {
                    task.shift_remove("waitTime");
                }
            }
        }
    }
    spec.insert("stages".into(), json!(stages));
    Value::Object(spec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_stage_rounds_down_to_at_least_one() {
        let cases = [
            (4, json!("50%"), 2),
            (5, json!("70%"), 3),
            (2, json!("10%"), 1),
            (9, json!(null), 1),
            (9, json!(3), 3),
            (9, json!(0), 1),
            (0, json!("50%"), 1),
        ];
        for (clusters, share, want) in cases {
            let strategy = json!({"stages": [{"maxConcurrency": share}]});
            let stage = StageConfig::all(&strategy).next().unwrap();
            assert_eq!(stage.max_concurrency(clusters), want, "{share} of {clusters}");
        }
    }
}
