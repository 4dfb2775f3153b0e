//! The `convoy` binary. What it does is in the library beside it.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc; // a third faster on JSON trees

fn main() -> ExitCode {
    convoy_cli::main()
}
