//! What the checks of one value found.

use super::error::FieldError;

/// What checking one value found.
#[derive(Debug, Default)]
pub(super) struct Checked {
    pub(super) errors: Vec<FieldError>,
    /// How much of the schema was looked at; of several branches that fail, the one with most
    /// is the one reported.
    pub(super) matches: usize,
}

impl Checked {
    pub(super) fn error(&mut self, error: FieldError) {
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }

    pub(super) fn looked_at(&mut self, checks: usize) {
        self.matches += checks;
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.matches += other.matches;
        other.errors.into_iter().for_each(|error| self.error(error));
    }

    pub(super) fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }
}
