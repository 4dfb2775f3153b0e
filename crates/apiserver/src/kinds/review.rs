//! Kinds that are never stored: questions, and bindings of pods to nodes.

use serde_json::{Value, json};

use super::kind::{Kind, NewObject, Question};
use crate::column::Cell::Made;
use crate::column::{Column, NAME, Row, condition, plain, string};

/// A review, and what it asks.
pub(super) struct Review(pub(super) Question);

impl Kind for Review {
    fn use_of_new(&self) -> NewObject {
        NewObject::Question(self.0)
    }
}

pub(super) struct Binding;

impl Kind for Binding {
    fn use_of_new(&self) -> NewObject {
        NewObject::Binding
    }
}

/// The parts of the control plane, which are all in this process.
pub(super) struct ComponentStatus;

impl Kind for ComponentStatus {
    fn is_made_up(&self) -> bool {
        true
    }

    fn columns(&self) -> &'static [Column] {
        const {
            &[
                NAME,
                string("Status", Made(status)),
                string("Message", Made(message)),
                string("Error", Made(error)),
            ]
        }
    }
}

fn status(row: &Row<'_>) -> Value {
    let healthy = condition(&row.object["conditions"], "Healthy").map(|one| &one["status"]);
    json!(match healthy {
        None => "Unknown",
        Some(status) if status == "True" => "Healthy",
        Some(_) => "Unhealthy",
    })
}

fn message(row: &Row<'_>) -> Value {
    json!(
        condition(&row.object["conditions"], "Healthy")
            .map(|one| plain(&one["message"]))
            .unwrap_or_default()
    )
}

fn error(row: &Row<'_>) -> Value {
    json!(
        condition(&row.object["conditions"], "Healthy")
            .map(|one| plain(&one["error"]))
            .unwrap_or_default()
    )
}
