//! The `convoy` binary: calls the library of the same package.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc; // a third faster on JSON trees

fn main() -> ExitCode {
    convoy_cli::main()
}
