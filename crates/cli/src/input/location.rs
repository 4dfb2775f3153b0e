//! Locations in input files, and problems found there.

use std::fmt;
use std::sync::Arc;

use convoy_plan::Severity;

/// The origin of an object: the first line of its document or list item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    pub file: Arc<str>,
    /// Counts from 1.
    pub line: usize,
    /// Counts from 1.
    pub column: usize,
}

/// A location in an input file, as exact as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLocation {
    pub file: Arc<str>,
    /// Counts from 1.
    pub line: Option<usize>,
    /// Counts from 1.
    pub column: Option<usize>,
}

/// A problem of the input itself, not of the content of a valid object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub severity: Severity,
    /// Absent if the problem concerns the input as a whole.
    pub location: Option<SourceLocation>,
    /// The object, as `apiVersion/Kind/namespace/name`; empty if it has no name.
    pub object: String,
    /// Dotted path; empty for the whole object.
    pub field: Box<str>,
    pub message: String,
}

/// Longest message; messages quote input, which can be very long.
const MESSAGE_CHARS_MAX: usize = 1_000;

impl SourceLocation {
    /// A whole file.
    pub fn file(name: &str) -> Self {
        Self { file: Arc::from(name), line: None, column: None }
    }
}

impl From<&Origin> for SourceLocation {
    fn from(origin: &Origin) -> Self {
        Self { file: Arc::clone(&origin.file), line: Some(origin.line), column: None }
    }
}

impl Problem {
    /// An error. Truncates a message that quotes too much of the input.
    pub fn error(location: SourceLocation, message: impl Into<String>) -> Self {
        let mut message = message.into();
        if let Some((end, _)) = message.char_indices().nth(MESSAGE_CHARS_MAX) {
            message.truncate(end);
            message.push('…');
        }
        Self { location: Some(location), ..Self::new(Severity::Error, message) }
    }

    pub fn warning(location: Option<SourceLocation>, message: impl Into<String>) -> Self {
        Self { location, ..Self::new(Severity::Warning, message.into()) }
    }

    pub fn note(location: SourceLocation, message: impl Into<String>) -> Self {
        Self { location: Some(location), ..Self::new(Severity::Note, message.into()) }
    }

    fn new(severity: Severity, message: String) -> Self {
        Self { severity, location: None, object: String::new(), field: Box::default(), message }
    }

    #[must_use]
    pub fn about(mut self, object: impl Into<String>) -> Self {
        self.object = object.into();
        self
    }

    #[must_use]
    pub(super) fn at(mut self, field: &str) -> Self {
        self.field = field.into();
        self
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// `file:line:column`, the form that editors and terminals make clickable.
impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(column) = self.column {
            write!(f, ":{column}")?;
        }
        Ok(())
    }
}
