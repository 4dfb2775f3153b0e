//! Fairness between requests, which is not enforced here.

use serde_json::{Value, json};

use super::fill;
use super::kind::{Kind, OWNERSHIP_ALONE};
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
        let Some(spec) = fill::spec(object) else { return };
        if let Some(exempt) = fill::fields(spec.get_mut("exempt")) {
            fill::absent(exempt, "nominalConcurrencyShares", || json!(0));
            fill::absent(exempt, "lendablePercent", || json!(0));
        }
        let Some(limited) = fill::fields(spec.get_mut("limited")) else { return };
        fill::absent(limited, "nominalConcurrencyShares", || json!(30));
        fill::absent(limited, "lendablePercent", || json!(0));
        let response = fill::fields(limited.get_mut("limitResponse"));
        if let Some(queuing) = response.and_then(|given| fill::fields(given.get_mut("queuing"))) {
            fill::number(queuing, "queues", 64);
            fill::number(queuing, "handSize", 8);
            fill::number(queuing, "queueLengthLimit", 50);
        }
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
