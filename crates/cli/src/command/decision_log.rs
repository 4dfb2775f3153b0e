//! The decision log of the commands that run controllers.

use std::path::PathBuf;

use anyhow::{Context, Result};
use convoy_controllers::log::DecisionLog;

/// Opens the file that `--decision-log` names, if there is one.
pub(super) fn open(path: Option<PathBuf>) -> Result<Option<DecisionLog>> {
    let log = path.map(|path| {
        let log = DecisionLog::open(&path);
        log.with_context(|| format!("could not open the decision log {}", path.display()))
    });
    log.transpose()
}
