//! Running `convoy` and looking at what it says.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// What a run left behind.
#[derive(Debug)]
pub(crate) struct Run {
    /// Absent if a signal ended it, as after a stack overflow.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The binary, with nothing of the caller's environment that it listens to.
pub(crate) fn convoy() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_convoy"));
    for variable in ["NOW", "OUTPUT", "DIALECT", "CHECK"] {
        command.env_remove(format!("CONVOY_{variable}"));
    }
    command.env_remove("CLICOLOR_FORCE").env("COLUMNS", "100");
    command
}

/// Runs it in `directory` with these arguments.
pub(crate) fn run_in(directory: &Path, arguments: &[&str]) -> Run {
    let output = convoy().current_dir(directory).args(arguments).output().unwrap();
    Run {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs it with `input` on standard input.
pub(crate) fn run_with(input: &[u8], arguments: &[&str]) -> Run {
    let mut child = convoy()
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || {
            let _ = stdin.write_all(input); // a command that refuses its arguments reads nothing
        });
        child.wait_with_output().unwrap()
    });
    Run {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}
