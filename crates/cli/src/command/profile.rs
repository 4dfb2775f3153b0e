//! Profiles of this process, in the format that `go tool pprof` and others read.

use std::time::Duration;

use convoy_controllers::serve::{Profile, Profiles};
use futures_util::future::BoxFuture;
use pprof::ProfilerGuardBuilder;
use pprof::protos::Message as _;

/// Samples in a second: a prime, so that work at regular intervals is not missed.
const FREQUENCY: i32 = 97;

/// Libraries in whose midst a stack cannot be walked.
const BLOCKED: [&str; 4] = ["libc", "libgcc", "pthread", "vdso"];

/// The build sets it; see `.cargo/config.toml`.
const HEAP_IS_OFF: &str = "no profile: the allocator was built, or told by _RJEM_MALLOC_CONF, not to \
                           record; start with _RJEM_MALLOC_CONF=prof:true";

#[derive(Debug)]
pub(crate) struct Sampler;

impl Profiles for Sampler {
    fn cpu(&self, time: Duration) -> BoxFuture<'static, Profile> {
        Box::pin(async move {
            let guard = ProfilerGuardBuilder::default().frequency(FREQUENCY).blocklist(&BLOCKED);
            let guard = guard.build().map_err(|error| format!("no profile: {error}"))?;
            tokio::time::sleep(time).await;
            let profile = guard.report().build().and_then(|report| report.pprof());
            let profile = profile.map_err(|error| format!("no profile: {error}"))?;
            Ok(profile.encode_to_vec())
        })
    }

    /// The allocator notes one allocation in 512 KiB, from the start.
    fn heap(&self) -> BoxFuture<'static, Profile> {
        Box::pin(async {
            let allocator = jemalloc_pprof::PROF_CTL.as_ref();
            let mut allocator = allocator.ok_or(HEAP_IS_OFF)?.clone().lock_owned().await;
            // It writes a file, and looks up the names of functions.
            let taking = tokio::task::spawn_blocking(move || allocator.dump_pprof());
            let profile = taking.await.map_err(|error| format!("no profile: {error}"))?;
            profile.map_err(|error| format!("no profile: {error:#}"))
        })
    }
}
