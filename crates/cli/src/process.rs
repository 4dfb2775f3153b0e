//! What the process asks of the system before it starts: files for its owner alone, and as many of
//! them as it may have.

use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit, umask};

/// Keeps everything that the process creates from everybody but its owner, whatever the umask was.
pub(crate) fn keep_files_private() {
    umask(Mode::RWXG | Mode::RWXO);
}

/// Raises the limit of open files to the highest allowed. The usual limit of 1,024 is kept low for
/// programs that use `select`; connections alone exceed it.
pub(crate) fn raise_file_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return;
    }
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        let error = &error as &dyn std::error::Error;
        tracing::warn!(current, maximum, error, "could not raise the limit of open files");
    }
}
