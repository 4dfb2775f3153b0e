//! Results to standard output, everything else to standard error.

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

/// Prints to standard output. Styles are kept on terminals only, and `NO_COLOR` is respected.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut stdout = anstream::AutoStream::auto(io::stdout().lock());
    let done = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    done.context("could not write to standard output")
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
