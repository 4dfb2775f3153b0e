//! Places in files, and what could not be read there.

use std::fmt;
use std::sync::Arc;

use convoy_plan::Severity;

/// Where an object was read: the first line of its document or list item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    pub file: Arc<str>,
    /// Counts from 1.
    pub line: usize,
}

/// A place to point at in a message, as exact as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub file: Arc<str>,
    /// Counts from 1.
    pub line: Option<usize>,
    /// Counts from 1.
    pub column: Option<usize>,
}

/// Something about the input itself, rather than about a sound object's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub severity: Severity,
    /// Absent when it is about the input as a whole.
    pub place: Option<Place>,
    /// The object it is about, as `apiVersion/Kind/namespace/name`, where it has a name.
    pub object: String,
    pub message: String,
}

/// A name of a hundred megabytes is not worth repeating.
const MESSAGE_CHARS_MAX: usize = 1_000;

impl Place {
    /// A file as a whole.
    pub fn file(name: &str) -> Self {
        Self { file: Arc::from(name), line: None, column: None }
    }
}

impl From<&Origin> for Place {
    fn from(origin: &Origin) -> Self {
        Self { file: Arc::clone(&origin.file), line: Some(origin.line), column: None }
    }
}

impl Problem {
    /// The message is cut where it quotes too much of the input.
    pub fn error(place: Place, message: impl Into<String>) -> Self {
        let mut message = message.into();
        if let Some((end, _)) = message.char_indices().nth(MESSAGE_CHARS_MAX) {
            message.truncate(end);
            message.push('…');
        }
        Self { severity: Severity::Error, place: Some(place), object: String::new(), message }
    }

    pub fn warning(place: Option<Place>, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { severity: Severity::Warning, place, object: String::new(), message }
    }

    #[must_use]
    pub fn about(mut self, object: impl Into<String>) -> Self {
        self.object = object.into();
        self
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// `file:line:column`, the form that editors and terminals make clickable.
impl fmt::Display for Place {
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
