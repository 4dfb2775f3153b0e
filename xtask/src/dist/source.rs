//! What is built: a version, a commit and its time.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;

/// The sources of a release.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) version: String,
    pub(super) commit: String,
    /// When the commit was made: the time that everything in the release has.
    pub(super) epoch_secs: u64,
}

impl Source {
    /// The commit that is checked out in a directory.
    pub(super) fn of(root: &Path, allow_dirty: bool) -> Result<Self> {
        let changes = git(root, &["status", "--porcelain"])?;
        ensure!(
            allow_dirty || changes.is_empty(),
            "uncommitted changes, which the commit in the binary would not tell of; commit them, \
             or pass --allow-dirty:\n{changes}"
        );
        let mut commit = git(root, &["rev-parse", "HEAD"])?;
        if !changes.is_empty() {
            commit += "-dirty";
        }
        let time = git(root, &["log", "-1", "--format=%ct"])?;
        Ok(Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit,
            epoch_secs: time.parse().context("the time of the commit is a number")?,
        })
    }

    /// The time of the commit, as JSON documents have it.
    pub(super) fn timestamp(&self) -> Result<String> {
        Ok(Timestamp::from_second(i64::try_from(self.epoch_secs)?)?.to_string())
    }
}

fn git(root: &Path, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new("git");
    command.args(arguments).current_dir(root);
    let output = command.output().context("could not run git, which knows the commit")?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "git {} failed: {complaint}", arguments.join(" "));
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

#[cfg(test)]
pub(super) fn example() -> Source {
    Source { version: "1.2.3".to_owned(), commit: "0123abcd".to_owned(), epoch_secs: 1_767_225_600 }
}

#[cfg(test)]
mod tests {
    #[test]
    fn times_are_written_in_universal_time() {
        assert_eq!(super::example().timestamp().unwrap(), "2026-01-01T00:00:00Z");
    }
}
