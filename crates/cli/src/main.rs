//! The `convoy` binary: calls the library of the same package.

use std::process::ExitCode;

/// Records what it allocates, for heap profiles.
#[cfg(feature = "profiles")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[cfg(not(feature = "profiles"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc; // a third faster on JSON trees

fn main() -> ExitCode {
    convoy_cli::main()
}
