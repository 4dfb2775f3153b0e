//! What the benches of rehearsals share: numbers on the command line, and what is printed about a
//! rollout to its end and a new start after it.

use std::fs;
use std::time::Instant;

use convoy_sim::seed::Seed;
use convoy_sim::simulation::{RunSettings, Simulation, Trial};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc; // as the binary has

/// The numbers on the command line, with what counts where one is missing.
pub(crate) fn numbers<const N: usize>(usual: [u32; N]) -> [u32; N] {
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with('-'));
    usual.map(|usual| words.next().and_then(|word| word.parse().ok()).unwrap_or(usual))
}

/// Rolls out, starts again without a write, and prints what both took.
pub(crate) fn rehearse<T: Trial>((trial, settings): (T, RunSettings)) {
    let mut simulation = Simulation::new(Seed::new(1), settings, trial);
    let begun = Stopwatch::start();
    let summary = simulation.roll_out().unwrap_or_else(|failure| panic!("{failure}"));
    println!("virtual time: {:#}", summary.took);
    println!("writes: {}, events: {}", summary.writes, summary.events);
    println!("took: {}, memory: {}", begun.read(), memory("VmRSS:"));
    let begun = Stopwatch::start();
    simulation.restart().unwrap_or_else(|failure| panic!("{failure}"));
    println!("restart to rest without a write: {}, memory: {}", begun.read(), memory("VmRSS:"));
    println!("peak memory, with the simulated API server: {}", memory("VmHWM:"));
}

/// The time that passes, and the processor time that is used of it: others use the machine too.
struct Stopwatch {
    begun: Instant,
    used: f64,
}

impl Stopwatch {
    fn start() -> Self {
        Self { begun: Instant::now(), used: processor_seconds() }
    }

    fn read(&self) -> String {
        let used = processor_seconds() - self.used;
        format!("{:.1} s, processor time: {used:.1} s", self.begun.elapsed().as_secs_f64())
    }
}

/// The processor time of this process, in the kernel's hundredths of a second.
pub(crate) fn processor_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let times = fields.split(' ').skip(11).take(2).filter_map(|time| time.parse::<f64>().ok());
    times.sum::<f64>() / 100.0
}

/// The memory of this process, as the kernel gives it: `VmRSS:` now, `VmHWM:` at its peak.
fn memory(field: &str) -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    line.map_or_else(|| "unknown".to_owned(), |size| size.trim().to_owned())
}
