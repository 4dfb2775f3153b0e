//! How the program is linked.
//!
//! At a fixed address, where that is known to work. A program that may be loaded anywhere carries
//! a table of every pointer among its constants; the loader reads it and writes the pointers at
//! each start, and both stay with the process: 4 MiB, of which next to nothing is ever used. What
//! is given up is that the program's own code lies at another address each time, which stands in
//! the way of those who exploit broken memory; libraries, stacks and heaps still move.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let target = |name| env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    let is_static = target("FEATURE").split(',').any(|feature| feature == "crt-static");
    if target("OS") == "linux" && target("ENV") == "gnu" && !is_static {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
