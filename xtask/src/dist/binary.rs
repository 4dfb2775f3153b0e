//! The binary: which target it is built for, how, and that it is what a release promises: static,
//! at random addresses, from the commit that it names, and without paths of the machine.

mod elf;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::alone;
use super::source::Source;
use crate::cargo_command;
use crate::kubernetes::root;

/// Random numbers come from the system call. A static binary cannot look up whether its libc has
/// it, and would read devices instead, which are not there where nothing is.
const RANDOM: &str = "getrandom_backend=\"linux_getrandom\"";

/// What a released binary has beside what everyone who builds one gets: somebody who finds a process
/// slow or large in production cannot start another binary in its place first.
pub(super) const FEATURES: &str = "--features=profiles";

/// What jemalloc's `configure` finds out about the function that tells where an allocation comes from:
/// it looks for it in a library that musl has not, while Rust links an unwinder that has it. Without,
/// jemalloc follows frame pointers that are not there, and the process ends at its first sample.
const UNWINDER: &str = "ac_cv_lib_gcc__Unwind_Backtrace";

/// What jemalloc's `configure` would otherwise ask the machine that builds, so that two machines
/// would build two binaries: how many bits an address has (processors with five levels of pages
/// have 57, of which Linux uses 47 unless a program asks for more), and the size of huge pages.
const ALLOCATOR: [(&str, &str); 2] =
    [("JEMALLOC_SYS_WITH_LG_VADDR", "48"), ("JEMALLOC_SYS_WITH_LG_HUGEPAGE", "21")];

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Architecture {
    Amd64,
    Arm64,
}

impl Architecture {
    /// The name in images and in the names of files.
    pub(super) fn oci(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    /// Rust's targets, the better one first: musl is made for static binaries. A static glibc works
    /// as well for what Convoy does, and is there wherever Rust is.
    fn triples(self) -> [&'static str; 2] {
        match self {
            Self::Amd64 => ["x86_64-unknown-linux-musl", "x86_64-unknown-linux-gnu"],
            Self::Arm64 => ["aarch64-unknown-linux-musl", "aarch64-unknown-linux-gnu"],
        }
    }

    fn is_host(self) -> bool {
        cfg!(target_os = "linux")
            && match self {
                Self::Amd64 => cfg!(target_arch = "x86_64"),
                Self::Arm64 => cfg!(target_arch = "aarch64"),
            }
    }
}

#[derive(Debug)]
pub(super) struct Target {
    pub(super) architecture: Architecture,
    pub(super) triple: &'static str,
}

/// The targets to build for. Says which are left out, and why.
pub(super) fn targets(wanted: &[Architecture]) -> Result<Vec<Target>> {
    let installed = installed()?;
    let is_installed = |triple: &&str| installed.join(triple).join("lib").is_dir();
    let mut found = Vec::new();
    for architecture in [Architecture::Amd64, Architecture::Arm64] {
        if !wanted.is_empty() && !wanted.contains(&architecture) {
            continue;
        }
        let triples = architecture.triples();
        let [musl, _] = triples;
        let name = architecture.oci();
        match triples.into_iter().find(is_installed) {
            Some(triple) => {
                if triple != musl {
                    eprintln!("{name}: {musl} is not installed; building {triple}, static");
                }
                found.push(Target { architecture, triple });
            }
            None if wanted.is_empty() => {
                eprintln!("{name}: left out; `rustup target add {musl}` installs its target");
            }
            None => bail!("{name} has no target; run `rustup target add {musl}`"),
        }
    }
    ensure!(!found.is_empty(), "no target is installed; run `rustup target add TARGET`");
    Ok(found)
}

/// Where the standard libraries of the toolchain are, in a directory for each target.
fn installed() -> Result<PathBuf> {
    let mut command = Command::new("rustc");
    command.args(["--print", "sysroot"]).current_dir(root());
    let output = command.output().context("could not run rustc")?;
    ensure!(output.status.success(), "rustc --print sysroot failed");
    Ok(Path::new(String::from_utf8(output.stdout)?.trim()).join("lib/rustlib"))
}

/// The directories that a compiler sees, and would name in messages of panics.
#[derive(Debug)]
pub(super) struct Workspace {
    root: PathBuf,
    /// Where sources of dependencies are. The names of these directories tell of a registry.
    sources: Vec<PathBuf>,
    target_directory: PathBuf,
}

impl Workspace {
    pub(super) fn load() -> Result<Self> {
        let mut command = cargo_command();
        command.args(["metadata", "--format-version", "1", "--locked"]).current_dir(root());
        let output = command.stderr(Stdio::inherit()).output().context("could not run cargo")?;
        ensure!(output.status.success(), "cargo metadata failed");
        Self::read(&serde_json::from_slice(&output.stdout)?)
    }

    fn read(metadata: &Value) -> Result<Self> {
        let path = |name: &str| {
            let path = metadata[name].as_str().map(PathBuf::from);
            path.with_context(|| format!("cargo metadata has no {name}"))
        };
        let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
        let foreign = packages.iter().filter(|package| package["source"].is_string());
        let manifests = foreign.filter_map(|package| package["manifest_path"].as_str());
        // A registry's directory, below that the crate's, and in it the manifest.
        let mut sources: Vec<PathBuf> = manifests
            .filter_map(|it| Path::new(it).ancestors().nth(2))
            .map(Path::to_owned)
            .collect();
        sources.sort();
        sources.dedup();
        Ok(Self {
            root: path("workspace_root")?,
            sources,
            target_directory: path("target_directory")?,
        })
    }

    /// What compilers write instead of each directory. Of several that match, the last one counts.
    fn renamed(&self) -> Vec<(&Path, &'static str)> {
        let ours = [(self.root.as_path(), "convoy"), (self.target_directory.as_path(), "target")];
        let sources = self.sources.iter().map(|path| (path.as_path(), "registry"));
        ours.into_iter().chain(sources).collect()
    }

    fn rust_flags(&self) -> String {
        let remap =
            |(from, to): (&Path, &str)| format!("--remap-path-prefix={}={to}", from.display());
        let fixed = ["-C", "target-feature=+crt-static", "--cfg", RANDOM].map(str::to_owned);
        let flags: Vec<String> =
            fixed.into_iter().chain(self.renamed().into_iter().map(remap)).collect();
        flags.join("\u{1f}")
    }

    fn c_flags(&self) -> String {
        let remap =
            |(from, to): (&Path, &str)| format!("-ffile-prefix-map={}={to}", from.display());
        self.renamed().into_iter().map(remap).collect::<Vec<_>>().join(" ")
    }
}

/// Builds the binary, and looks whether it is what it should be.
pub(super) fn build(target: &Target, source: &Source, workspace: &Workspace) -> Result<Vec<u8>> {
    let arguments = [
        "build",
        "--package=convoy",
        FEATURES,
        "--profile=dist",
        "--locked",
        "--message-format=json-render-diagnostics",
        "--target",
        target.triple,
    ];
    eprintln!("$ cargo {}", arguments.join(" "));
    let mut command = cargo_command();
    command.args(arguments).current_dir(root());
    command.env("CARGO_ENCODED_RUSTFLAGS", workspace.rust_flags()).env_remove("RUSTFLAGS");
    command.env("CFLAGS", workspace.c_flags());
    command.env("SOURCE_DATE_EPOCH", source.epoch_secs.to_string());
    command.env("CONVOY_COMMIT", &source.commit);
    command.envs(ALLOCATOR);
    if target.triple.ends_with("musl") {
        command.env(UNWINDER, "yes");
    }
    let output = command.stderr(Stdio::inherit()).output().context("could not run cargo")?;
    ensure!(output.status.success(), "cargo {} failed", arguments.join(" "));
    let path = executable(&String::from_utf8(output.stdout)?)?;
    let binary = std::fs::read(&path).with_context(|| format!("could not read {path}"))?;
    check(&binary, workspace).with_context(|| format!("{path} is not fit for a release"))?;
    if target.architecture.is_host() {
        check_version(&path, source)?;
        alone::check(&path).context("the binary does not run with nothing around it")?;
    }
    Ok(binary)
}

/// The path of the binary, in the messages of cargo.
fn executable(messages: &str) -> Result<String> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut paths = messages.filter_map(|it| it["executable"].as_str().map(str::to_owned));
    paths.next_back().context("cargo has built no binary")
}

fn check(binary: &[u8], workspace: &Workspace) -> Result<()> {
    let elf = elf::Elf::read(binary).context("not a 64-bit ELF file")?;
    ensure!(!elf.has_interpreter, "it needs a dynamic linker: it is not static");
    ensure!(elf.is_position_independent, "it is loaded at a fixed address");
    for (path, _) in workspace.renamed() {
        let text = path.display().to_string();
        let found = memchr::memmem::find(binary, text.as_bytes());
        ensure!(found.is_none(), "it contains the path {text}");
    }
    Ok(())
}

/// The binary runs, and names the commit.
fn check_version(path: &str, source: &Source) -> Result<()> {
    let output = Command::new(path).args(["version", "-o", "json"]).env_clear().output()?;
    let (status, complaint) = (output.status, String::from_utf8_lossy(&output.stderr));
    ensure!(status.success(), "{path} version ended with {status}: {complaint}");
    let told: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("{path} version: {}", String::from_utf8_lossy(&output.stderr)))?;
    for (name, expected) in
        [("version", &*source.version), ("commit", &source.commit), ("profile", "dist")]
    {
        ensure!(told[name] == expected, "{path} version: {name} is {}, not {expected}", told[name]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn workspace() -> Workspace {
        let package =
            |source: Value, path: &str| json!({ "source": source, "manifest_path": path });
        let metadata = json!({
            "workspace_root": "/home/someone/convoy",
            "target_directory": "/home/someone/convoy/target",
            "packages": [
                package(json!(null), "/home/someone/convoy/crates/api/Cargo.toml"),
                package(json!("registry"), "/home/someone/.cargo/src/mirror/serde-1.0.0/Cargo.toml"),
                package(json!("registry"), "/home/someone/.cargo/src/mirror/tar-0.4.0/Cargo.toml"),
            ],
        });
        Workspace::read(&metadata).unwrap()
    }

    #[test]
    fn compilers_are_told_other_names_for_every_directory() {
        let workspace = workspace();
        let flags = workspace.rust_flags();
        let flags: Vec<&str> = flags.split('\u{1f}').collect();
        let expected = [
            "-C",
            "target-feature=+crt-static",
            "--cfg",
            "getrandom_backend=\"linux_getrandom\"",
            "--remap-path-prefix=/home/someone/convoy=convoy",
            "--remap-path-prefix=/home/someone/convoy/target=target",
            "--remap-path-prefix=/home/someone/.cargo/src/mirror=registry",
        ];
        assert_eq!(flags, expected);
        assert!(
            workspace
                .c_flags()
                .ends_with("-ffile-prefix-map=/home/someone/.cargo/src/mirror=registry")
        );
    }

    #[test]
    fn a_binary_with_a_path_of_the_machine_is_refused() {
        let clean = elf::example(&[1, 6], 3);
        check(&clean, &workspace()).unwrap();
        let path = b"/home/someone/.cargo/src/mirror/serde-1.0.0/src/lib.rs";
        let complaint = check(&[&clean, path.as_slice()].concat(), &workspace()).unwrap_err();
        assert!(complaint.to_string().contains("/home/someone/.cargo/src/mirror"), "{complaint}");
    }

    #[test]
    fn a_binary_that_is_not_static_is_refused() {
        let complaint = |headers: &[u32], kind| {
            check(&elf::example(headers, kind), &workspace()).unwrap_err().to_string()
        };
        assert!(complaint(&[6, 3, 1], 3).contains("dynamic linker"));
        assert!(complaint(&[1], 2).contains("fixed address"));
        assert!(check(b"#!/bin/sh\n", &workspace()).is_err());
    }

    #[test]
    fn the_last_executable_of_cargos_messages_is_the_binary() {
        let messages = "{\"reason\":\"compiler-artifact\",\"executable\":null}\n\
                        {\"reason\":\"compiler-artifact\",\"executable\":\"/target/dist/convoy\"}\n\
                        {\"reason\":\"build-finished\",\"success\":true}\n";
        assert_eq!(executable(messages).unwrap(), "/target/dist/convoy");
        assert!(executable("").is_err());
    }
}
