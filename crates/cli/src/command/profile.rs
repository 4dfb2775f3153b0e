//! CPU profiles of this process, in the format that `go tool pprof` and others read.

use std::time::Duration;

use convoy_controllers::serve::Profiles;
use futures_util::future::BoxFuture;
use pprof::ProfilerGuardBuilder;
use pprof::protos::Message as _;

/// Samples in a second: a prime, so that work at regular intervals is not missed.
const FREQUENCY: i32 = 97;

/// Libraries in whose midst a stack cannot be walked.
const BLOCKED: [&str; 4] = ["libc", "libgcc", "pthread", "vdso"];

#[derive(Debug)]
pub(crate) struct Sampler;

impl Profiles for Sampler {
    fn cpu(&self, time: Duration) -> BoxFuture<'static, Result<Vec<u8>, String>> {
        Box::pin(async move {
            let guard = ProfilerGuardBuilder::default().frequency(FREQUENCY).blocklist(&BLOCKED);
            let guard = guard.build().map_err(|error| format!("no profile: {error}"))?;
            tokio::time::sleep(time).await;
            let profile = guard.report().build().and_then(|report| report.pprof());
            let profile = profile.map_err(|error| format!("no profile: {error}"))?;
            Ok(profile.encode_to_vec())
        })
    }
}
