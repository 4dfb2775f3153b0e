//! `cargo xtask types`: regenerates the table of Kubernetes' types.
//!
//! The generator in `xtask/types` is a Go program, because the facts are tags and comments of
//! Go structs. Run it by hand after changing the versions in its `go.mod` or the registry of kinds.
//! Needs Go.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

const REGISTRY: &str = "crates/apiserver/src/registry/builtin.txt";
const TABLE: &str = "crates/apiserver/src/types/table.txt";

pub(crate) fn run() -> Result<()> {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = xtask.parent().context("xtask lies in the workspace")?;
    let status = Command::new("go")
        .args(["run", "."])
        .args([root.join(REGISTRY), root.join(TABLE)])
        .current_dir(xtask.join("types"))
        .status()
        .context("could not run go")?;
    ensure!(status.success(), "the generator failed");
    Ok(())
}
