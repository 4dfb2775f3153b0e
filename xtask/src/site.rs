//! `cargo xtask site`: the documents as a site, in `target/site`. mdBook builds it from a copy of
//! the pages, and afterwards every link of the site is followed. A part of `cargo xtask ci`; tests
//! follow the links between the pages themselves, which takes no mdBook.

mod html;
mod pages;
mod stage;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::cargo_command;
use crate::kubernetes::root;

/// The version that the site was tried with.
const MDBOOK: &str = "0.5.4";

pub(crate) fn run() -> Result<()> {
    let broken = pages::broken_links(&root())?;
    ensure!(broken.is_empty(), "links lead nowhere:\n{}", broken.join("\n"));
    let target = root().join("target");
    let mdbook = installed(&target.join("tools"))?;
    let stage = target.join("site-pages");
    if stage.exists() {
        fs::remove_dir_all(&stage)?;
    }
    stage::write(&root(), &stage)?;
    let site = target.join("site");
    eprintln!("$ mdbook build");
    let mut command = Command::new(mdbook);
    command.arg("build").arg(&stage).arg("--dest-dir").arg(&site);
    let status = command.status().context("could not run mdbook")?;
    ensure!(status.success(), "mdbook failed");
    let links = html::check(&site)?;
    let first = site.join("index.html").canonicalize()?;
    eprintln!("{}: all of {links} links lead somewhere", first.display());
    Ok(())
}

/// The path of mdBook, which is compiled if it is not there. Without optimization that takes a third
/// of the time, and the site a few seconds more.
fn installed(tools: &Path) -> Result<PathBuf> {
    let path = tools.join("bin").join(format!("mdbook{}", std::env::consts::EXE_SUFFIX));
    let version = Command::new(&path).arg("--version").output();
    if version.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(MDBOOK)) {
        return Ok(path);
    }
    let version = format!("={MDBOOK}");
    // Without its own server and its watcher, which nobody needs here and many crates are for.
    let mut arguments = vec!["install", "mdbook", "--version", &version, "--locked", "--debug"];
    arguments.extend(["--no-default-features", "--features", "search"]);
    eprintln!("$ cargo {}", arguments.join(" "));
    let mut command = cargo_command();
    command.args(arguments).arg("--force").arg("--root").arg(tools);
    let status = command.status().context("could not run cargo")?;
    ensure!(status.success(), "could not install mdbook");
    Ok(path)
}
