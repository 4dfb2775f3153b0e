//! Links the program at a fixed address on Linux.
//!
//! A position-independent executable has a relocation for every pointer in its constants. The loader
//! writes all of them at startup, which costs 4 MiB of memory per process. The price of a fixed
//! address is that the program's own code is not randomized, which makes memory corruption easier to
//! exploit; libraries, stacks and heaps are still randomized.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let target = |name| env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    let is_static = target("FEATURE").split(',').any(|feature| feature == "crt-static");
    if target("OS") == "linux" && target("ENV") == "gnu" && !is_static {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
