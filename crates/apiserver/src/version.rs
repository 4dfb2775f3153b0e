//! The release of Kubernetes whose API this is.

pub(crate) const MINOR: &str = "37";

/// The release as clients parse it.
pub fn git_version() -> String {
    format!("v1.{MINOR}.0+convoy-{}", env!("CARGO_PKG_VERSION"))
}
