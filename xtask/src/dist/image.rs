//! The image: a binary and an empty `/tmp`, without a shell, a libc or a user database, as an OCI
//! image layout. It is written by hand because that takes no daemon and no privileges, and because
//! tools that build images put the time of the build into them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::archive::{self, Entry};
use super::binary::Architecture;
use super::sha256;
use super::source::Source;

/// `nonroot` of the usual minimal images. A number, so that `runAsNonRoot` can be checked.
pub(super) const USER: &str = "65532:65532";
pub(super) const ENTRYPOINT: &str = "/convoy";
/// The directory for temporary files, in the root of the image.
pub(super) const TEMPORARY: &str = "tmp";
/// Everybody may write there, and nobody removes what others wrote.
pub(super) const TEMPORARY_MODE: u32 = 0o1777;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// The binary of one architecture.
#[derive(Debug)]
pub(super) struct Platform {
    pub(super) architecture: Architecture,
    pub(super) binary: Vec<u8>,
}

/// The files of an image layout.
#[derive(Debug)]
pub(super) struct Layout {
    files: BTreeMap<String, Vec<u8>>,
    /// Of the index of all platforms: what a registry says the image is.
    pub(super) digest: String,
}

pub(super) fn layout(platforms: &[Platform], source: &Source) -> Result<Layout> {
    ensure!(!platforms.is_empty(), "an image has a platform");
    let mut layout = Layout { files: BTreeMap::new(), digest: String::new() };
    let mut manifests = Vec::new();
    let mut loadable = Vec::new();
    for platform in platforms {
        let (manifest, entry) = layout.platform(platform, source)?;
        manifests.push(manifest);
        loadable.push(entry);
    }
    let index = json!({
        "schemaVersion": 2,
        "mediaType": INDEX,
        "manifests": manifests,
        "annotations": labels(source)?,
    });
    let mut index = layout.blob(INDEX, serde_json::to_vec(&index)?);
    layout.digest = digest(&index)?;
    index["annotations"] = json!({ "org.opencontainers.image.ref.name": source.version });
    let entry = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [index] });
    layout.put("index.json", serde_json::to_vec(&entry)?);
    layout.put("oci-layout", serde_json::to_vec(&json!({ "imageLayoutVersion": "1.0.0" }))?);
    // What `docker load` before its version 25 looks for. It knows one platform, the first.
    loadable.truncate(1);
    layout.put("manifest.json", serde_json::to_vec(&loadable)?);
    Ok(layout)
}

fn labels(source: &Source) -> Result<Value> {
    Ok(json!({
        "org.opencontainers.image.created": source.timestamp()?,
        "org.opencontainers.image.description": "Progressive rollouts for Kubernetes fleets",
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.revision": source.commit,
        "org.opencontainers.image.title": "convoy",
        "org.opencontainers.image.version": source.version,
    }))
}

impl Layout {
    fn put(&mut self, path: &str, content: Vec<u8>) {
        self.files.insert(path.to_owned(), content);
    }

    /// Stores content under its digest; the descriptor of it.
    fn blob(&mut self, media_type: &str, content: Vec<u8>) -> Value {
        let (digest, size) = (sha256(&content), content.len());
        self.put(&format!("blobs/sha256/{digest}"), content);
        json!({ "mediaType": media_type, "digest": format!("sha256:{digest}"), "size": size })
    }

    /// The descriptor of one platform's image, and the entry for old versions of `docker load`.
    fn platform(&mut self, platform: &Platform, source: &Source) -> Result<(Value, Value)> {
        // `/tmp` is for heap profiles, and for `convoy demo` and `convoy up --ephemeral`, which put a
        // kubeconfig there.
        let entries = [
            Entry::file("convoy", 0o755, platform.binary.clone()),
            Entry::directory(TEMPORARY, TEMPORARY_MODE),
        ];
        let tar = archive::tar(&entries, source.epoch_secs)?;
        let architecture = platform.architecture.oci();
        let config = json!({
            "created": source.timestamp()?,
            "architecture": architecture,
            "os": "linux",
            "config": {
                "User": USER,
                "Entrypoint": [ENTRYPOINT],
                "WorkingDir": "/",
                "Labels": labels(source)?,
            },
            "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{}", sha256(&tar))] },
            "history": [{ "created": source.timestamp()?, "created_by": "cargo xtask dist" }],
        });
        let layer = self.blob(LAYER, archive::gzip(&tar)?);
        let config = self.blob(CONFIG, serde_json::to_vec(&config)?);
        let loadable = json!({
            "Config": path_of(&config)?,
            "RepoTags": [format!("convoy:{}", source.version)],
            "Layers": [path_of(&layer)?],
        });
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": config,
            "layers": [layer],
        });
        let mut descriptor = self.blob(MANIFEST, serde_json::to_vec(&manifest)?);
        descriptor["platform"] = json!({ "architecture": architecture, "os": "linux" });
        Ok((descriptor, loadable))
    }

    /// The layout in one file.
    pub(super) fn archive(&self, source: &Source) -> Result<Vec<u8>> {
        let folders = ["blobs", "blobs/sha256"].map(|path| Entry::directory(path, 0o755));
        let files = self.files.iter();
        let files = files.map(|(path, content)| Entry::file(path, 0o644, content.clone()));
        let entries: Vec<Entry> = folders.into_iter().chain(files).collect();
        archive::tar(&entries, source.epoch_secs)
    }

    /// Writes the layout into a directory, in the place of an earlier one.
    pub(super) fn write(&self, directory: &Path) -> Result<()> {
        if directory.join("oci-layout").exists() {
            fs::remove_dir_all(directory)?;
        }
        for (path, content) in &self.files {
            let path = directory.join(path);
            fs::create_dir_all(path.parent().context("a file lies in a directory")?)?;
            fs::write(&path, content)
                .with_context(|| format!("could not write {}", path.display()))?;
        }
        Ok(())
    }
}

fn digest(descriptor: &Value) -> Result<String> {
    descriptor["digest"].as_str().map(str::to_owned).context("a descriptor has a digest")
}

fn path_of(descriptor: &Value) -> Result<String> {
    Ok(format!("blobs/{}", digest(descriptor)?.replace(':', "/")))
}

#[cfg(test)]
mod tests;
