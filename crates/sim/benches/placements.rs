//! How long the hub of a large fleet takes to place resources, in virtual time, and to start again:
//! `cargo bench --profile release -p convoy-sim --bench placements -- MEMBERS PLACEMENTS CLUSTERS`,
//! where each placement is on CLUSTERS of the members.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench looks at the clock, and says what it measured"
)]

use std::fs;
use std::time::Instant;

use convoy_sim::seed::Seed;
use convoy_sim::simulation::Simulation;
use convoy_sim::simulation::placements::PlacementRehearsal;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc; // as the binary has

fn main() {
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with('-'));
    let mut number = |usual: u32| words.next().and_then(|word| word.parse().ok()).unwrap_or(usual);
    let (members, placements, clusters) = (number(1_000), number(1_000), number(10));
    let (trial, settings) = PlacementRehearsal::new(members, placements, clusters);
    let mut simulation = Simulation::new(Seed::new(1), settings, trial);
    println!("{members} members, {placements} placements on {clusters} of them each");
    let begun = Instant::now();
    let summary = simulation.roll_out().unwrap_or_else(|failure| panic!("{failure}"));
    println!("virtual time: {:#}", summary.took);
    println!("writes: {}, events: {}", summary.writes, summary.events);
    println!("took: {:.1} s, memory: {}", begun.elapsed().as_secs_f64(), memory("VmRSS:"));
    let begun = Instant::now();
    simulation.restart().unwrap_or_else(|failure| panic!("{failure}"));
    let seconds = begun.elapsed().as_secs_f64();
    println!("restart to rest without a write: {seconds:.1} s, memory: {}", memory("VmRSS:"));
    println!("peak memory, with the simulated API server: {}", memory("VmHWM:"));
}

/// The memory of this process, as the kernel says.
fn memory(field: &str) -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    line.map_or_else(|| "unknown".to_owned(), |size| size.trim().to_owned())
}
