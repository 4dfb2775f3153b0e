//! Settings of authentication and authorization, from flags and files.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::{Access, Authorization, Signer, TokenFile, TokenFileError};
use crate::audit::{Auditor, Policy, PolicyError};

/// Where the parts of [`Access`] come from.
#[derive(Clone, Debug, Default)]
pub struct AccessSettings {
    pub authorization: Authorization,
    pub token_file: Option<PathBuf>,
    /// Lines are added to it; none: nothing is logged.
    pub audit_log: Option<PathBuf>,
    /// What is logged; by default every request, without bodies.
    pub audit_policy: Option<PathBuf>,
}

/// Why access cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    #[error("could not open {path}")]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("could not use the token file {path}")]
    Tokens {
        path: PathBuf,
        #[source]
        source: TokenFileError,
    },
    #[error("could not use the audit policy {path}")]
    Policy {
        path: PathBuf,
        #[source]
        source: PolicyError,
    },
}

/// Lines of the audit log that may wait to be written: some seconds of a busy server.
const AUDIT_QUEUE_MAX: usize = 10_000;

impl AccessSettings {
    pub fn open(&self, signer: Signer) -> Result<Access, AccessError> {
        let tokens = match &self.token_file {
            None => TokenFile::default(),
            Some(path) => TokenFile::parse(&read(path)?)
                .map_err(|source| AccessError::Tokens { path: path.clone(), source })?,
        };
        let policy = match &self.audit_policy {
            None => Policy::metadata(),
            Some(path) => Policy::parse(&read(path)?)
                .map_err(|source| AccessError::Policy { path: path.clone(), source })?,
        };
        let mut access = Access::new(self.authorization, tokens, signer);
        if let Some(path) = &self.audit_log {
            // The log tells who does what, which is for its owner to know.
            let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
            let started =
                file.and_then(|file| Auditor::start(policy, Box::new(file), AUDIT_QUEUE_MAX));
            let failed = |source| AccessError::File { path: path.clone(), source };
            access.audit = Some(started.map_err(failed)?);
        }
        Ok(access)
    }
}

fn read(path: &Path) -> Result<String, AccessError> {
    let failed = |source| AccessError::File { path: path.to_owned(), source };
    std::fs::read_to_string(path).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_or_named_in_the_error() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            Some(path)
        };
        let good = AccessSettings {
            token_file: file("tokens", "t,ada,1\n"),
            audit_log: Some(directory.path().join("log")),
            ..AccessSettings::default()
        };
        let access = good.open(Signer::generate().unwrap()).unwrap();
        assert!(access.tokens.find("t").is_some() && access.audit.is_some());
        let bad = [
            AccessSettings { token_file: file("bad", "hidden,ada"), ..AccessSettings::default() },
            AccessSettings { audit_policy: file("odd", "{}"), ..AccessSettings::default() },
            AccessSettings {
                token_file: Some(directory.path().join("none")),
                ..AccessSettings::default()
            },
        ];
        for settings in bad {
            let error = settings.open(Signer::generate().unwrap()).unwrap_err().to_string();
            assert!(error.contains(directory.path().to_str().unwrap()), "{error}");
            assert!(!error.contains("hidden"));
        }
    }
}
