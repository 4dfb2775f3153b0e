//! The mark of a picked node: the batch of a compartment that it was picked for, and when.
//!
//! The Skyhook's status lists picked nodes with the instant of the pick, beside the batch state. A
//! mark counts for as long as the status lists its instant, so both are read together: a reset
//! renames or removes the instants in the same write that clears the batch state, and with them all
//! marks of the run that ended. Nothing else has to be stored, in particular no field that the CRD of
//! upstream would prune.

use std::borrow::Cow;

use convoy_api::Object;
use jiff::{Timestamp, Unit};
use serde::{Deserialize, Serialize};

/// The batch that a node was picked for, as its annotation has it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Mark<'m> {
    #[serde(borrow)]
    pub(crate) compartment: Cow<'m, str>,
    /// 0 for no batch: the compartment has no strategy, or the node was picked before a reset.
    pub(crate) batch: u32,
    /// The instant under which the status lists the nodes of this batch.
    #[serde(borrow)]
    pub(crate) picked: Cow<'m, str>,
}

impl<'m> Mark<'m> {
    /// Reads an annotation; none if it cannot be understood.
    pub(crate) fn parse(text: &'m str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The annotation. Equal marks have equal texts, so that marks are compared without reading.
    pub(crate) fn text(&self) -> String {
        serde_json::to_string(self).expect("strings and numbers always serialise")
    }
}

/// The instant of a pick as the status has it. Batches can follow each other within a second, so it
/// has a fraction where there is one.
pub(crate) fn pick_text(at: Timestamp) -> String {
    let at = at.round(Unit::Microsecond).unwrap_or(at);
    if at.subsec_nanosecond() == 0 { format!("{at:.0}") } else { format!("{at:.6}") }
}

/// The instant under which the status lists a node that holds a slot and belongs to no batch of this
/// run: it was picked before a reset, or in another compartment. No pick is made at that instant.
pub(crate) fn outside_batches(skyhook: &Object) -> String {
    pick_text(skyhook.created_at().unwrap_or(Timestamp::UNIX_EPOCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_read_as_they_were_written() {
        let mark = Mark { compartment: "a \"b\"".into(), batch: 3, picked: "t".into() };
        let text = mark.text();
        assert_eq!(text, r#"{"compartment":"a \"b\"","batch":3,"picked":"t"}"#);
        assert_eq!(Mark::parse(&text), Some(mark));
        assert_eq!(Mark::parse("x"), None);
    }

    #[test]
    fn picks_of_one_second_are_told_apart() {
        let text = |at: &str| pick_text(at.parse().expect("an instant"));
        assert_eq!(text("2026-01-01T00:00:00Z"), "2026-01-01T00:00:00Z");
        assert_eq!(text("2026-01-01T00:00:00.1234561Z"), "2026-01-01T00:00:00.123456Z");
    }
}
