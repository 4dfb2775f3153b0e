//! The binary where nothing else is: in an empty root it plans a rollout, and serves an API.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use convoy_kubernetes::Running;

use crate::kubernetes::root;

/// Runs a binary in a root that holds it, an example and an empty `/tmp`.
pub(super) fn check(binary: &str) -> Result<()> {
    let running = Running::new("dist")?;
    let place = running.directory.join("root");
    fs::create_dir_all(place.join("tmp"))?;
    fs::copy(binary, place.join("convoy")).with_context(|| format!("could not copy {binary}"))?;
    fs::copy(root().join("examples/skyhook.yaml"), place.join("skyhook.yaml"))?;
    let output = alone(&place, &["plan", "-f", "/skyhook.yaml"]).output();
    let output = output.context("could not run unshare, which gives the binary its own root")?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "plan failed: {complaint}");
    let mut up = alone(&place, &["up", "--ephemeral", "--listen=127.0.0.1:0"]);
    let ready = running.start_as(up.stdout(Stdio::piped()))?.first_line()?;
    ensure!(ready.contains("is ready"), "up printed {ready:?}");
    Ok(())
}

/// A command of the binary, whose root is `place`; a user namespace allows that without privileges.
fn alone(place: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "chroot"]).arg(place).arg("/convoy");
    command.args(arguments).env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    command
}
