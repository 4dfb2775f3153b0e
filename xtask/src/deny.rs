//! `cargo xtask deny`: checks the licences, bans and sources of all dependencies with cargo-deny,
//! as `deny.toml` says. Run it before a release. Advisories are left out: they need the network.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::kubernetes::root;

pub(crate) fn run() -> Result<()> {
    let version = Command::new("cargo-deny")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let is_installed = version.is_ok_and(|status| status.success());
    ensure!(
        is_installed,
        "cargo-deny is not installed; install it with `cargo install cargo-deny --locked`"
    );
    let arguments = ["--locked", "check", "licenses", "bans", "sources"];
    eprintln!("$ cargo deny {}", arguments.join(" "));
    let status = Command::new("cargo-deny")
        .args(arguments)
        .current_dir(root())
        .status()
        .context("could not run cargo-deny")?;
    ensure!(status.success(), "cargo-deny found dependencies that deny.toml does not allow");
    Ok(())
}
