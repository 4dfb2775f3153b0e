//! kube-apiserver and etcd, built once per pinned version into the user's cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// The API server whose words ours are. Its staging modules go by v0 instead of v1.
const KUBERNETES: &str = "v1.36.3";
const STAGING: &str = "v0.36.3";
const ETCD: &str = "v3.6.16";

/// Where the two programs are.
pub(crate) struct Binaries {
    pub(crate) apiserver: PathBuf,
    pub(crate) etcd: PathBuf,
}

pub(super) fn build() -> Result<Binaries> {
    let apiserver = program("kube-apiserver", KUBERNETES, |scratch| {
        let module = module_file(scratch)?;
        build_program(scratch, &module, "k8s.io/kubernetes/cmd/kube-apiserver", "kube-apiserver")
    })?;
    let etcd = program("etcd", ETCD, |scratch| {
        // Without the line on go, all that the dependencies ever depended on is loaded.
        let module =
            format!("module scratch\n\ngo 1.25\n\nrequire go.etcd.io/etcd/server/v3 {ETCD}\n");
        build_program(scratch, &module, "go.etcd.io/etcd/server/v3", "etcd")
    })?;
    Ok(Binaries { apiserver, etcd })
}

/// The two programs if they were built before.
pub(super) fn built() -> Option<Binaries> {
    let there = |name: &str, version: &str| {
        cache().ok().map(|cache| place(&cache, name, version)).filter(|path| path.exists())
    };
    Some(Binaries { apiserver: there("kube-apiserver", KUBERNETES)?, etcd: there("etcd", ETCD)? })
}

/// The machine's own kubectl, or one that is built here.
pub(super) fn kubectl() -> Result<PathBuf> {
    let asked = Command::new("kubectl").args(["version", "--client"]).output();
    if asked.is_ok_and(|output| output.status.success()) {
        return Ok(PathBuf::from("kubectl"));
    }
    program("kubectl", KUBERNETES, |scratch| {
        let module = module_file(scratch)?;
        build_program(scratch, &module, "k8s.io/kubernetes/cmd/kubectl", "kubectl")
    })
}

/// The cached program, made by `build` in its directory where it is not there yet.
fn program(name: &str, version: &str, build: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let program = place(&cache()?, name, version);
    if !program.exists() {
        let directory = program.parent().context("a program lies in a directory")?;
        eprintln!("building {name} {version}; this takes minutes, once");
        fs::create_dir_all(directory)?;
        build(directory).with_context(|| format!("could not build {name} {version}"))?;
    }
    Ok(program)
}

fn place(cache: &Path, name: &str, version: &str) -> PathBuf {
    cache.join(format!("{name}-{version}")).join(name)
}

fn cache() -> Result<PathBuf> {
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home);
    Ok(cache.context("neither XDG_CACHE_HOME nor HOME is set")?.join("convoy"))
}

/// A module that requires Kubernetes. Its own go.mod replaces the staging modules by
/// directories that are not part of the published module, so each gets its published version.
fn module_file(scratch: &Path) -> Result<String> {
    let download = format!("k8s.io/kubernetes@{KUBERNETES}");
    let answer: Value =
        serde_json::from_str(&go(scratch, &["mod", "download", "-json", &download])?)?;
    let file = answer["GoMod"].as_str().context("go names the go.mod it downloaded")?;
    let theirs = fs::read_to_string(file)?;
    let mut ours = format!("module scratch\n\nrequire k8s.io/kubernetes {KUBERNETES}\n");
    for line in theirs.lines() {
        if let Some((module, _)) = line.trim().split_once(" => ./staging/") {
            ours.extend(["replace ", module, " => ", module, " ", STAGING, "\n"]);
        } else if line.starts_with("go ") {
            ours.extend([line, "\n"]);
        }
    }
    Ok(ours)
}

fn build_program(scratch: &Path, module: &str, package: &str, name: &str) -> Result<()> {
    fs::write(scratch.join("go.mod"), module)?;
    let import = format!("//go:build tools\n\npackage scratch\n\nimport _ \"{package}\"\n");
    fs::write(scratch.join("tools.go"), import)?;
    go(scratch, &["mod", "tidy", "-e"])?;
    go(scratch, &["build", "-buildvcs=false", "-o", name, package])?;
    Ok(())
}

fn go(directory: &Path, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new("go");
    command.args(arguments).current_dir(directory).env("GOFLAGS", "-mod=mod");
    let output = command.output().context("could not run go")?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "go {}: {complaint}", arguments.join(" "));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
