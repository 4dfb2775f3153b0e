//! The columns of what sub-resources answer with.

use crate::column::Cell::{Name, Text};
use crate::column::{AGE, Column, number, string};

/// The columns of an answer by its kind; none for what is not printed.
pub(super) fn columns(kind: &str) -> Option<&'static [Column]> {
    match kind {
        "Scale" => Some(SCALE),
        "Status" => Some(STATUS),
        _ => None,
    }
}

const SCALE: &[Column] = &[
    string("Name", Name),
    number("Desired", "/spec/replicas"),
    number("Available", "/status/replicas"),
    AGE,
];
const STATUS: &[Column] = &[
    string("Status", Text("/status", "")),
    string("Reason", Text("/reason", "")),
    string("Message", Text("/message", "")),
];
