//! Fairness between requests, which is not enforced here.

use serde_json::{Value, json};

use super::kind::{Kind, OWNERSHIP_ALONE};
use super::{defaults, fill};
use crate::column::Cell::{Made, Number, NumberOr, Text};
use crate::column::{AGE, Column, NAME, Row, condition, plain, string};
use crate::registry::Resource;

pub(super) struct FlowSchema;

impl Kind for FlowSchema {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        if let Some(spec) = fill::spec(object) {
            fill::number(spec, "matchingPrecedence", 1000);
        }
    }

    fn status_metadata(&self) -> &'static [&'static str] {
        OWNERSHIP_ALONE
    }

    fn columns(&self) -> &'static [Column] {
        const {
            &[
                NAME,
                string("PriorityLevel", Text("/spec/priorityLevelConfiguration/name", "")),
                string("MatchingPrecedence", Number("/spec/matchingPrecedence")),
                string("DistinguisherMethod", Text("/spec/distinguisherMethod/type", "<none>")),
                AGE,
                string("MissingPL", Made(missing_level)),
            ]
        }
    }
}

fn missing_level(row: &Row<'_>) -> Value {
    let dangling = condition(&row.object["status"]["conditions"], "Dangling");
    json!(dangling.map_or_else(|| "?".to_owned(), |one| plain(&one["status"])))
}

pub(super) struct PriorityLevel;

impl Kind for PriorityLevel {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        defaults::access::priority_level(object);
    }

    fn status_metadata(&self) -> &'static [&'static str] {
        OWNERSHIP_ALONE
    }

    fn columns(&self) -> &'static [Column] {
        const {
            &[
                NAME,
                string("Type", Text("/spec/type", "")),
                string(
                    "NominalConcurrencyShares",
                    NumberOr("/spec/limited/nominalConcurrencyShares", "<none>"),
                ),
                string("Queues", NumberOr("/spec/limited/limitResponse/queuing/queues", "<none>")),
                string(
                    "HandSize",
                    NumberOr("/spec/limited/limitResponse/queuing/handSize", "<none>"),
                ),
                string(
                    "QueueLengthLimit",
                    NumberOr("/spec/limited/limitResponse/queuing/queueLengthLimit", "<none>"),
                ),
                AGE,
            ]
        }
    }
}
