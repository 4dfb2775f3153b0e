//! Results to standard output, everything else to standard error.

#[cfg(feature = "server")]
use std::io::BufRead;
use std::io::{self, Write};

use anyhow::{Context, Result};
use convoy_plan::Severity;
use serde_json::Value;

use crate::finding::Finding;
use crate::text;

/// Output format of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people
    Text,
    /// For programs; the format is stable
    Json,
    /// Same content as JSON, in YAML
    Yaml,
}

/// Output format of a command that lists, as kubectl has them.
#[cfg(feature = "server")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum TableFormat {
    /// For people
    Table,
    /// The same with more columns, and nothing cut
    Wide,
    /// For programs; the format is stable
    Json,
    /// Same content as JSON, in YAML
    Yaml,
    /// Only the names
    Name,
}

#[cfg(feature = "server")]
impl TableFormat {
    /// The format of a document; none for text.
    pub(crate) fn document(self) -> Option<Format> {
        match self {
            Self::Json => Some(Format::Json),
            Self::Yaml => Some(Format::Yaml),
            Self::Table | Self::Wide | Self::Name => None,
        }
    }
}

/// Prints to standard output. Styles are kept on terminals only, and `NO_COLOR` is respected.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut stdout = anstream::AutoStream::auto(io::stdout().lock());
    let done = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    done.context("could not write to standard output")
}

/// Each of these on a line of its own.
pub(crate) fn lines<S: AsRef<str>>(all: &[S]) -> String {
    all.iter().flat_map(|line| [line.as_ref(), "\n"]).collect()
}

/// Prints a JSON or YAML document.
pub(crate) fn print_value(value: &Value, format: Format) -> Result<()> {
    let mut stdout = io::BufWriter::new(io::stdout().lock());
    let written = match format {
        Format::Yaml => {
            let text = serde_saphyr::to_string(value).context("could not write YAML")?;
            stdout.write_all(text.as_bytes())
        }
        Format::Json | Format::Text => serde_json::to_writer_pretty(&mut stdout, value)
            .map_err(io::Error::from)
            .and_then(|()| stdout.write_all(b"\n")),
    };
    written.and_then(|()| stdout.flush()).context("could not write to standard output")
}

/// Prints the errors among `findings` to standard error, for commands whose standard output is
/// read by a program.
pub(crate) fn print_errors(findings: &[Finding]) {
    let mut stderr = anstream::AutoStream::auto(io::stderr().lock());
    for finding in findings.iter().filter(|finding| finding.severity == Severity::Error) {
        // Nothing can be reported if standard error is closed.
        let _ = stderr.write_all(text::finding(finding).as_bytes());
    }
}

/// Whether the reader closed standard output, as `head` does. That is not a failure.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

/// Asks for confirmation on the terminal, unless `skip` is set.
#[cfg(feature = "server")]
pub(crate) fn confirmed(question: &str, skip: bool) -> Result<bool> {
    if skip {
        return Ok(true);
    }
    print(&format!("{question} Continue? [y/N]: "))?;
    io::stdout().flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    if matches!(answer.trim().to_lowercase().as_str(), "y" | "yes") {
        return Ok(true);
    }
    print("Aborted.\n")?;
    Ok(false)
}
