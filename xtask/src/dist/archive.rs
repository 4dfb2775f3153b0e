//! Archives that depend on their content alone: entries in the given order, owned by root, with
//! the time of the commit, and compressed without a name or a time.

use std::io::Write;

use anyhow::Result;
use flate2::{Compression, GzBuilder};

/// One entry of an archive.
#[derive(Debug)]
pub(super) struct Entry {
    path: String,
    mode: u32,
    /// None for a directory.
    content: Option<Vec<u8>>,
}

impl Entry {
    pub(super) fn file(path: &str, mode: u32, content: Vec<u8>) -> Self {
        Self { path: path.to_owned(), mode, content: Some(content) }
    }

    pub(super) fn directory(path: &str, mode: u32) -> Self {
        Self { path: format!("{path}/"), mode, content: None }
    }
}

pub(super) fn tar(entries: &[Entry], epoch_secs: u64) -> Result<Vec<u8>> {
    let mut builder = tar::Builder::new(Vec::new());
    for Entry { path, mode, content } in entries {
        let mut header = tar::Header::new_ustar();
        let bytes = content.as_deref().unwrap_or_default();
        let is_file = content.is_some();
        header.set_entry_type(if is_file {
            tar::EntryType::Regular
        } else {
            tar::EntryType::Directory
        });
        header.set_path(path)?;
        header.set_mode(*mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(epoch_secs);
        header.set_size(bytes.len() as u64);
        header.set_cksum();
        builder.append(&header, bytes)?;
    }
    Ok(builder.into_inner()?)
}

pub(super) fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_nothing_of_the_machine_that_made_it() {
        let entries =
            [Entry::directory("tmp", 0o1777), Entry::file("convoy", 0o755, b"binary".to_vec())];
        let bytes = tar(&entries, 1_767_225_600).unwrap();
        let mut read = tar::Archive::new(bytes.as_slice());
        let mut seen = Vec::new();
        for entry in read.entries().unwrap() {
            let entry = entry.unwrap();
            let header = entry.header();
            assert_eq!((header.uid().unwrap(), header.gid().unwrap()), (0, 0));
            assert_eq!(header.mtime().unwrap(), 1_767_225_600);
            assert_eq!(header.username().unwrap(), Some(""));
            let path = entry.path().unwrap().display().to_string();
            seen.push((path, header.mode().unwrap(), header.size().unwrap()));
        }
        assert_eq!(seen, [("tmp/".to_owned(), 0o1777, 0), ("convoy".to_owned(), 0o755, 6)]);
        let packed = gzip(&bytes).unwrap();
        assert_eq!(packed[4..8], [0; 4], "gzip's own field for a time is empty");
        assert_eq!(packed, gzip(&bytes).unwrap());
    }
}
