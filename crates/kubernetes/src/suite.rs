//! Builds Kubernetes' own end-to-end suite, `e2e.test`, once per pinned version into the user's cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::programs::{LEAN, cache};

const PROGRAM: &str = "e2e.test";
const PACKAGE: &str = "k8s.io/kubernetes/test/e2e";

/// Finds `e2e.test`, and builds it if it is missing, which takes many minutes.
pub fn bring_suite() -> Result<PathBuf> {
    let cache = cache()?;
    let program = cache.join(PROGRAM);
    if program.exists() {
        return Ok(program);
    }
    eprintln!("building {PROGRAM}; this takes many minutes, once");
    fs::create_dir_all(&cache)?;
    let incomplete = cache.join(format!("{PROGRAM}.new-{}", std::process::id()));
    let mut command = Command::new("go");
    // Without go vet, which would compile everything once more.
    command.args(["test", "-c", "-vet=off", "-buildvcs=false"]).args(LEAN);
    command.arg("-o").arg(&incomplete).arg(PACKAGE);
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("programs"));
    let status = command.status().context("could not run go")?;
    ensure!(status.success(), "could not build {PROGRAM}");
    fs::rename(&incomplete, &program)?;
    Ok(program)
}
