//! `cargo xtask dist`: everything that a release consists of, made from the commit that is checked
//! out. Nothing in it depends on paths, on the time of the build or on chance, so that two runs give
//! the same bytes, on other machines and in other directories too, as long as the compilers are the
//! same.
//!
//! | file in `dist/`                    | content                                              |
//! |------------------------------------|------------------------------------------------------|
//! | `linux-ARCH/`                      | the root of the image for `Containerfile`: the static binary, an empty `/tmp` |
//! | `convoy-VERSION-linux-ARCH.tar.gz` | the binary and its licence                           |
//! | `convoy-VERSION-linux-ARCH.cdx.json` | what is linked into it: a bill of materials        |
//! | `image/`, `convoy-VERSION-image.tar` | the image, as a directory and packed; all platforms |
//! | `SHA256SUMS`                       | checksums of the above                               |

mod alone;
mod archive;
mod bill_of_materials;
mod binary;
mod image;
mod source;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use archive::Entry;
use source::Source;

use crate::kubernetes::root;

#[derive(Debug, clap::Args)]
pub(crate) struct Settings {
    /// Directory for the artefacts
    #[arg(long, value_name = "DIR", default_value = "dist")]
    output: PathBuf,
    /// Architectures to build for; default: every one whose Rust target is installed
    #[arg(long, value_enum, value_delimiter = ',')]
    arch: Vec<binary::Architecture>,
    /// Build from a tree with uncommitted changes; the version then says so
    #[arg(long)]
    allow_dirty: bool,
}

pub(crate) fn run(settings: &Settings) -> Result<()> {
    let source = Source::of(&root(), settings.allow_dirty)?;
    let targets = binary::targets(&settings.arch)?;
    let workspace = binary::Workspace::load()?;
    let output = root().join(&settings.output);
    let mut artefacts = BTreeMap::new();
    let mut platforms = Vec::new();
    for target in targets {
        let built = binary::build(&target, &source, &workspace)?;
        let name = format!("convoy-{}-linux-{}", source.version, target.architecture.oci());
        artefacts.insert(format!("{name}.tar.gz"), packed(&built, &source)?);
        let bill = bill_of_materials::of_target(target.triple, &source)?;
        artefacts.insert(format!("{name}.cdx.json"), bill);
        let folder = format!("linux-{}", target.architecture.oci());
        artefacts.insert(format!("{folder}/convoy"), built.clone());
        platforms.push(image::Platform { architecture: target.architecture, binary: built });
    }
    let layout = image::layout(&platforms, &source)?;
    artefacts.insert(format!("convoy-{}-image.tar", source.version), layout.archive(&source)?);
    write(&output, &artefacts)?;
    for platform in &platforms {
        let folder = format!("linux-{}", platform.architecture.oci());
        make_temporary_directory(&output.join(folder))?;
    }
    layout.write(&output.join("image"))?;
    Ok(writeln!(std::io::stdout(), "image {}", layout.digest)?)
}

/// What somebody unpacks who wants the binary.
fn packed(binary: &[u8], source: &Source) -> Result<Vec<u8>> {
    let licence = fs::read(root().join("LICENSE")).context("could not read LICENSE")?;
    let entries =
        [Entry::file("LICENSE", 0o644, licence), Entry::file("convoy", 0o755, binary.to_vec())];
    archive::gzip(&archive::tar(&entries, source.epoch_secs)?)
}

/// Writes the files and their checksums, and tells both.
fn write(output: &Path, artefacts: &BTreeMap<String, Vec<u8>>) -> Result<()> {
    let mut checksums = String::new();
    for (name, content) in artefacts {
        let path = output.join(name);
        fs::create_dir_all(path.parent().context("a file lies in a directory")?)?;
        fs::write(&path, content).with_context(|| format!("could not write {}", path.display()))?;
        if name.ends_with("/convoy") {
            make_executable(&path)?;
        }
        checksums.extend([&sha256(content), "  ", name, "\n"]);
    }
    fs::write(output.join("SHA256SUMS"), &checksums)?;
    Ok(write!(std::io::stdout(), "{checksums}")?)
}

/// Makes the `/tmp` of a root, as [`image`] has it.
fn make_temporary_directory(root: &Path) -> Result<()> {
    let path = root.join(image::TEMPORARY);
    fs::create_dir_all(&path)?;
    set_mode(&path, image::TEMPORARY_MODE)
}

fn make_executable(path: &Path) -> Result<()> {
    set_mode(path, 0o755)
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(mode))?)
}

#[cfg(not(unix))]
fn set_mode(_: &Path, _: u32) -> Result<()> {
    Ok(())
}

/// In lower-case hexadecimal digits.
fn sha256(content: &[u8]) -> String {
    format!("{:x}", Sha256::digest(content))
}
