//! How long it takes to rehearse a Skyhook on a large fleet in virtual time:
//! `cargo bench -p convoy-sim --bench rehearsal -- NODES PACKAGES`.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench looks at the clock, and says what it measured"
)]

use std::fs;
use std::time::Instant;

use convoy_sim::seed::Seed;
use convoy_sim::simulation::Simulation;
use convoy_sim::simulation::rehearsal::Rehearsal;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc; // as the binary has

fn main() {
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with('-'));
    let mut number = |usual: u32| words.next().and_then(|word| word.parse().ok()).unwrap_or(usual);
    let (nodes, packages) = (number(10_000), number(1));
    let (trial, settings) = Rehearsal::new(nodes, packages as usize);
    let begun = Instant::now();
    let summary = match Simulation::new(Seed::new(1), settings, trial).run() {
        Ok(summary) => summary,
        Err(failure) => panic!("{failure}"),
    };
    let seconds = begun.elapsed().as_secs_f64();
    println!("{nodes} nodes, packages: {packages}");
    println!("virtual time: {:#}", summary.took);
    println!("writes: {}, events: {}", summary.writes, summary.events);
    println!("took: {seconds:.1} s, peak memory: {}", peak());
}

/// The most memory that this process has had, as the kernel says.
fn peak() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or_else(|| "unknown".to_owned(), |size| size.trim().to_owned())
}
