//! `cargo xtask types`: writes the table of Kubernetes' own types anew.
//!
//! The generator in `xtask/types` is a Go program, because the facts are tags and comments of
//! Go structs. It is run by hand after a change of the versions in its `go.mod` or of the
//! registry of kinds; needs go, and nothing else of the gate does.

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
