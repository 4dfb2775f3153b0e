//! Files that are their owner's alone: keys, tokens, kubeconfigs, audit logs, stored objects.
//!
//! New ones are made so. Those of earlier starts, or of a copy that lost its permissions, are
//! mended at start, and the log says so.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// What others are allowed: nothing.
const OTHERS: u32 = 0o077;

/// Set on directories that many users share, such as `/tmp`.
const STICKY: u32 = 0o1000;

/// Makes a data directory, or takes its content back from everybody else: what is `ours` in it,
/// and the directory itself unless it holds other things.
pub(crate) fn take_over(directory: &Path, ours: &[&Path]) -> io::Result<()> {
    make_directory(directory)?;
    let entries: Vec<_> = fs::read_dir(directory)?.collect::<Result<_, _>>()?;
    let is_known = entries.iter().any(|entry| ours.contains(&&*entry.path()));
    let is_shared = fs::metadata(directory)?.permissions().mode() & STICKY != 0;
    if (is_known || entries.is_empty()) && !is_shared {
        // In an empty one nobody has seen anything: nothing to report.
        let restricted = restrict(directory).map(|count| if is_known { count } else { 0 });
        report(directory, restricted);
    }
    for path in ours.iter().filter(|path| path.starts_with(directory)) {
        report(path, restrict_all(path));
    }
    Ok(())
}

/// Makes a directory and those above it that are missing.
pub(crate) fn make_directory(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(directory)
}

/// Writes a file that only its owner can read, whole or not at all.
pub(crate) fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.new"));
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(FILE_MODE).open(&beside)?;
    // One that was there already has the mode it had.
    file.set_permissions(Permissions::from_mode(FILE_MODE))?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&beside, path)
}

/// Takes a file or a directory from everybody but its owner; whether somebody had it.
fn restrict(path: &Path) -> io::Result<usize> {
    let mode = fs::symlink_metadata(path)?.permissions().mode();
    if mode & OTHERS == 0 {
        return Ok(0);
    }
    fs::set_permissions(path, Permissions::from_mode(mode & 0o7777 & !OTHERS))?;
    Ok(1)
}

/// The same with everything below; how many there were. Links are not followed.
fn restrict_all(path: &Path) -> io::Result<usize> {
    let kind = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        found => found?.file_type(),
    };
    if kind.is_symlink() {
        return Ok(0);
    }
    let mut count = restrict(path)?;
    if kind.is_dir() {
        for entry in fs::read_dir(path)? {
            count += restrict_all(&entry?.path())?;
        }
    }
    Ok(count)
}

/// A directory of somebody else, such as a mounted volume, cannot be restricted; what is made in
/// it is private all the same.
fn report(path: &Path, restricted: io::Result<usize>) {
    let path = path.display();
    match restricted {
        Ok(0) => {}
        Ok(files) => {
            tracing::warn!(%path, files, "removed the permissions of other users");
        }
        Err(error) => {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(%path, error, "could not remove the permissions of other users");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("it is there").permissions().mode() & 0o7777
    }

    #[test]
    fn what_is_ours_is_taken_back_and_the_rest_left_alone() {
        let directory = tempfile::tempdir().expect("a directory");
        let open = |path: &Path, mode| {
            fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
        };
        let [data, other] = ["data", "other"].map(|name| directory.path().join(name));
        let [store, table, theirs] = ["store", "store/table", "theirs"].map(|name| data.join(name));
        fs::create_dir_all(&store).expect("it is made");
        fs::write(&table, "").expect("it is written");
        fs::write(&theirs, "").expect("it is written");
        fs::write(&other, "").expect("it is written");
        open(&data, 0o755);
        open(&store, 0o777);
        for path in [&table, &theirs, &other] {
            open(path, 0o644);
        }
        std::os::unix::fs::symlink(&other, store.join("link")).expect("it is made");
        take_over(&data, &[&store, &data.join("absent"), &other]).expect("it is ours");
        assert_eq!([mode(&data), mode(&store), mode(&table)], [0o700, 0o700, 0o600]);
        assert_eq!([mode(&theirs), mode(&other)], [0o644, 0o644]);
        // A directory with other things alone, or one that is shared, keeps its mode.
        fs::remove_dir_all(&store).expect("it goes");
        open(&data, 0o755);
        take_over(&data, &[&store]).expect("it is ours");
        assert_eq!(mode(&data), 0o755);
        fs::remove_file(&theirs).expect("it goes");
        open(&data, 0o1777);
        take_over(&data, &[&store]).expect("it is ours");
        assert_eq!(mode(&data), 0o1777);
        open(&data, 0o755);
        take_over(&data, &[&store]).expect("it is ours");
        assert_eq!(mode(&data), 0o700);
    }

    #[test]
    fn a_private_file_is_private_whatever_was_there() {
        let directory = tempfile::tempdir().expect("a directory");
        let left = directory.path().join(".key.new");
        fs::write(&left, "left by a crash").expect("it is written");
        fs::set_permissions(&left, Permissions::from_mode(0o644)).expect("it is ours");
        let key = directory.path().join("key");
        write_private(&key, b"secret").expect("it is written");
        assert_eq!(mode(&key), 0o600);
    }
}
