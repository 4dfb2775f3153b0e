//! Finds Kubernetes' programs in `KUBEBUILDER_ASSETS`, and builds missing ones once per pinned version
//! into the user's cache.
//!
//! `programs/go.mod` pins the versions in one module, so that shared packages are compiled once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

/// Names of the programs and their Go packages.
const PACKAGES: [(&str, &str); 4] = [
    ("etcd", "go.etcd.io/etcd/server/v3"),
    ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
    ("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    ("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
];

/// Flags for builds without debug information: compiling and linking are faster.
pub(crate) const LEAN: [&str; 2] = ["-gcflags=all=-dwarf=false", "-ldflags=-s -w"];

const MODULE: &str = include_str!("../programs/go.mod");

/// Paths of the programs.
#[derive(Clone, Debug)]
pub struct Programs {
    pub etcd: PathBuf,
    pub apiserver: PathBuf,
    pub controller_manager: PathBuf,
    /// The installed kubectl if there is one, otherwise one that was built.
    pub kubectl: PathBuf,
}

impl Programs {
    /// Finds the programs and builds missing ones, which takes minutes.
    pub fn bring() -> Result<Self> {
        let has_kubectl = own_kubectl().is_some();
        let wanted = PACKAGES.iter().filter(|(name, _)| *name != "kubectl" || !has_kubectl);
        let missing: Vec<_> = wanted.filter(|(name, _)| find(name).is_none()).copied().collect();
        if !missing.is_empty() {
            build(&missing).context("could not build Kubernetes' programs")?;
        }
        Self::find()
    }

    /// Finds programs that were built before.
    pub fn find() -> Result<Self> {
        let there = |name: &str| {
            let Some(found) = find(name) else {
                bail!("{name} not found; run `cargo xtask kubernetes --bring` to build it");
            };
            Ok(found)
        };
        Ok(Self {
            etcd: there("etcd")?,
            apiserver: there("kube-apiserver")?,
            controller_manager: there("kube-controller-manager")?,
            kubectl: own_kubectl().map_or_else(|| there("kubectl"), Ok)?,
        })
    }
}

/// The installed kubectl, if it works.
pub fn own_kubectl() -> Option<PathBuf> {
    let asked = Command::new("kubectl").args(["version", "--client"]).output();
    asked.is_ok_and(|output| output.status.success()).then(|| PathBuf::from("kubectl"))
}

fn find(name: &str) -> Option<PathBuf> {
    let assets = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from);
    let places = assets.into_iter().chain(cache().ok());
    places.map(|place| place.join(name)).find(|program| program.exists())
}

/// The cache directory for programs of the pinned versions.
pub(crate) fn cache() -> Result<PathBuf> {
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home);
    let cache = cache.context("XDG_CACHE_HOME and HOME are not set")?.join("convoy");
    let [kubernetes, etcd] = ["k8s.io/kubernetes", "go.etcd.io/etcd/server/v3"].map(pinned);
    Ok(cache.join(format!("kubernetes-{kubernetes}-etcd-{etcd}")))
}

/// The pinned version of a module.
fn pinned(module: &str) -> &'static str {
    let lines = MODULE.lines().map(|line| line.trim().trim_start_matches("require "));
    let mut versions = lines.filter_map(|line| line.strip_prefix(module)?.trim().split(' ').next());
    versions.find(|word| word.starts_with('v')).expect("go.mod requires what it pins")
}

/// Builds programs in a temporary directory and renames them, so that none is incomplete.
fn build(missing: &[(&str, &str)]) -> Result<()> {
    let names: Vec<&str> = missing.iter().map(|(name, _)| *name).collect();
    eprintln!("building {}; this takes several minutes, once", names.join(", "));
    let cache = cache()?;
    let scratch = cache.join(format!("new-{}", std::process::id()));
    fs::create_dir_all(&scratch)?;
    let mut command = Command::new("go");
    command.args(["build", "-buildvcs=false"]).args(LEAN).arg("-o").arg(&scratch);
    command.args(missing.iter().map(|(_, package)| package));
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("programs"));
    let status = command.status().context("could not run go")?;
    ensure!(status.success(), "go build failed");
    for (name, package) in missing {
        // Go names a program after its directory.
        let built = package.trim_end_matches("/v3").rsplit('/').next().unwrap_or(package);
        fs::rename(scratch.join(built), cache.join(name))?;
    }
    fs::remove_dir(&scratch)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_the_module() {
        let versions = ["k8s.io/kubernetes", "go.etcd.io/etcd/server/v3"].map(pinned);
        for version in versions {
            assert!(version.split('.').count() == 3 && version.starts_with('v'), "{version}");
        }
    }
}
