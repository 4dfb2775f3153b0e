//! Images of a few bytes, read as a runtime reads them: from `index.json` down.

use std::io::Read;

use flate2::read::GzDecoder;

use super::*;
use crate::dist::source::example;

fn platforms() -> [Platform; 2] {
    [Architecture::Amd64, Architecture::Arm64].map(|architecture| Platform {
        architecture,
        binary: format!("binary for {}", architecture.oci()).into_bytes(),
    })
}

/// The content that a descriptor names, whose digest and size it has to have.
fn follow(layout: &Layout, descriptor: &Value) -> Vec<u8> {
    let content = layout.files[&path_of(descriptor).unwrap()].clone();
    assert_eq!(descriptor["digest"], format!("sha256:{}", sha256(&content)));
    assert_eq!(descriptor["size"], content.len());
    content
}

fn json_at(layout: &Layout, descriptor: &Value) -> Value {
    serde_json::from_slice(&follow(layout, descriptor)).unwrap()
}

fn index(layout: &Layout) -> Value {
    let entry: Value = serde_json::from_slice(&layout.files["index.json"]).unwrap();
    let [descriptor] = entry["manifests"].as_array().unwrap().as_slice() else {
        panic!("one image has one reference: {entry}")
    };
    assert_eq!(descriptor["annotations"]["org.opencontainers.image.ref.name"], "1.2.3");
    assert_eq!(descriptor["digest"], layout.digest);
    json_at(layout, descriptor)
}

#[test]
fn a_runtime_finds_the_binary_of_each_platform() {
    let layout = layout(&platforms(), &example()).unwrap();
    let index = index(&layout);
    for platform in platforms() {
        let architecture = platform.architecture.oci();
        let manifests = index["manifests"].as_array().unwrap();
        let is_ours = |it: &&Value| it["platform"]["architecture"] == architecture;
        let manifest = json_at(&layout, manifests.iter().find(is_ours).unwrap());
        let config = json_at(&layout, &manifest["config"]);
        assert_eq!(
            (&config["architecture"], &config["os"]),
            (&json!(architecture), &json!("linux"))
        );

        let mut tar = Vec::new();
        let layer = follow(&layout, &manifest["layers"][0]);
        GzDecoder::new(layer.as_slice()).read_to_end(&mut tar).unwrap();
        assert_eq!(config["rootfs"]["diff_ids"], json!([format!("sha256:{}", sha256(&tar))]));
        let mut archive = tar::Archive::new(tar.as_slice());
        let mut names = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let name = entry.path().unwrap().display().to_string();
            if name == "convoy" {
                let mut content = Vec::new();
                entry.read_to_end(&mut content).unwrap();
                assert_eq!(content, platform.binary);
            }
            names.push((name, entry.header().mode().unwrap()));
        }
        assert_eq!(names, [("convoy".to_owned(), 0o755), ("tmp/".to_owned(), 0o1777)]);
    }
}

#[test]
fn the_process_is_nobody_in_particular() {
    let layout = layout(&platforms(), &example()).unwrap();
    let manifest = json_at(&layout, &index(&layout)["manifests"][0]);
    let config = json_at(&layout, &manifest["config"])["config"].clone();
    let user = config["User"].as_str().unwrap();
    let ids: Vec<u32> = user.split(':').map(|id| id.parse().unwrap()).collect();
    assert!(ids.len() == 2 && !ids.contains(&0), "{user} is not root, and a number");
    assert_eq!(config["Entrypoint"], json!(["/convoy"]));
    assert_eq!(config["Labels"]["org.opencontainers.image.version"], "1.2.3");
    assert_eq!(config["Labels"]["org.opencontainers.image.revision"], "0123abcd");
}

#[test]
fn the_same_binary_makes_the_same_image_and_another_one_another() {
    let digest = |platforms: &[Platform]| {
        let layout = layout(platforms, &example()).unwrap();
        (layout.digest.clone(), sha256(&layout.archive(&example()).unwrap()))
    };
    let first = digest(&platforms());
    assert_eq!(first, digest(&platforms()));
    let mut changed = platforms();
    changed[0].binary.push(b'!');
    let changed = digest(&changed);
    assert_ne!(first.0, changed.0);
    assert_ne!(first.1, changed.1);
}

#[test]
fn a_layout_replaces_an_earlier_one_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("image");
    let layout = layout(&platforms(), &example()).unwrap();
    fs::create_dir_all(path.join("blobs/sha256")).unwrap();
    fs::write(path.join("oci-layout"), "{}").unwrap();
    fs::write(path.join("blobs/sha256/old"), "old").unwrap();
    layout.write(&path).unwrap();
    assert!(!path.join("blobs/sha256/old").exists());
    for (name, content) in &layout.files {
        assert_eq!(&fs::read(path.join(name)).unwrap(), content, "{name}");
    }
}

#[test]
fn the_containerfile_makes_the_same_image() {
    let path = crate::kubernetes::root().join("Containerfile");
    let text = fs::read_to_string(path).unwrap();
    let instruction = |name: &str| {
        let mut found = text.lines().rev().filter_map(|line| line.strip_prefix(name));
        found.next().map(str::trim).map(str::to_owned)
    };
    assert_eq!(instruction("FROM ").as_deref(), Some("scratch"));
    assert_eq!(instruction("USER ").as_deref(), Some(USER));
    assert_eq!(instruction("ENTRYPOINT "), Some(format!("[\"{ENTRYPOINT}\"]")));
    // A directory is copied with the modes of what is in it.
    assert_eq!(instruction("COPY ").as_deref(), Some("dist/linux-${TARGETARCH}/ /"));
}

/// What the Containerfile copies.
#[cfg(unix)]
#[test]
fn the_root_for_the_containerfile_has_what_the_image_has() {
    use std::os::unix::fs::PermissionsExt;

    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("linux-amd64");
    let binary = ("linux-amd64/convoy".to_owned(), b"binary".to_vec());
    crate::dist::write(directory.path(), &[binary].into()).unwrap();
    // As often as it is built.
    for _ in 0..2 {
        crate::dist::make_temporary_directory(&root).unwrap();
    }
    let mut found: Vec<(String, u32)> = Vec::new();
    for entry in fs::read_dir(&root).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode() & 0o7777;
        found.push((entry.file_name().into_string().unwrap(), mode));
    }
    found.sort();
    assert_eq!(found, [("convoy".to_owned(), 0o755), ("tmp".to_owned(), 0o1777)]);
}
