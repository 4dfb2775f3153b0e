//! Staged update strategies, as a run has recorded them. Stages are read one by one: one that does
//! not fit its type has no settings, and so no clusters, which aborts the run with the reason.

use convoy_api::Object;
use convoy_api::fleet::staged;
use convoy_api::object::view::view_of;
use convoy_api::text::GoDuration;
use serde_json::{Map, Value, json};

use crate::budget::{IntOrPercent, Rounding};
use crate::dialect::fleet::read::placement::list;
use crate::selector::{Selector, SelectorError};

/// One stage of a strategy.
#[derive(Clone, Debug)]
pub(crate) struct StageConfig {
    stage: staged::StageConfig,
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

impl StageConfig {
    /// The stages of a strategy's spec, in order.
    pub(crate) fn all(strategy: &Value) -> impl Iterator<Item = Self> {
        list(strategy, "stages").iter().map(Self::read)
    }

    /// The stage at `index`; one that is not there has no settings.
    pub(crate) fn nth(strategy: &Value, index: usize) -> Self {
        Self::read(list(strategy, "stages").get(index).unwrap_or(&Value::Null))
    }

    fn read(stage: &Value) -> Self {
        Self { stage: view_of(stage).unwrap_or_default() }
    }

    pub(crate) fn name(&self) -> &str {
        &self.stage.name
    }

    /// Which clusters are in the stage; None: none.
    pub(crate) fn selector(&self) -> Option<Result<Selector, SelectorError>> {
        let selector = self.stage.label_selector.as_ref();
        selector.map(|selector| Selector::from_view(Some(selector)))
    }

    pub(crate) fn sorting_label_key(&self) -> Option<&str> {
        self.stage.sorting_label_key.as_deref().filter(|key| !key.is_empty())
    }

    /// The most clusters of a stage that may be in progress: shares round down, at least one.
    ///
    /// | clusters | maxConcurrency | limit | because                  |
    /// |---------:|----------------|------:|--------------------------|
    /// |        4 | 50%            |     2 |                          |
    /// |        5 | 70%            |     3 | 3.5 rounds down          |
    /// |        2 | 10%            |     1 | 0.2 would never begin    |
    /// |        9 | (absent)       |     1 | one at a time by default |
    pub(crate) fn max_concurrency(&self, clusters: usize) -> u32 {
        let share = self.stage.max_concurrency.as_ref();
        let share = share.and_then(|share| IntOrPercent::from_view(share).ok());
        let rounding = Rounding::Down { at_least: 1 };
        share.map_or(1, |share| share.resolve(crate::count(clusters), rounding)).max(1)
    }

    pub(crate) fn tasks(&self, when: When) -> impl Iterator<Item = TaskConfig<'_>> {
        let tasks = match when {
            When::Before => &self.stage.before_stage_tasks,
            When::After => &self.stage.after_stage_tasks,
        };
        tasks.iter().flatten().map(|task| TaskConfig {
            kind: &task.r#type,
            wait: task.wait_time.as_deref().and_then(|wait| wait.parse().ok()),
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
            let strategy = json!({"stages": [{"name": "all", "maxConcurrency": share}]});
            let stage = StageConfig::all(&strategy).next().unwrap();
            assert_eq!(stage.max_concurrency(clusters), want, "{share} of {clusters}");
        }
    }
}
