//! Process metrics: CPU time, memory and file descriptors.

use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::published;

#[derive(Debug)]
pub(super) struct Process {
    cpu_seconds: Counter<f64, AtomicU64>,
    resident_bytes: Gauge,
    virtual_bytes: Gauge,
    open_files: Gauge,
    open_files_max: Gauge,
    threads: Gauge,
    /// In seconds since 1970.
    started: Gauge<f64, AtomicU64>,
}

/// Clock ticks a second in `/proc`, which Linux fixes for programs on every platform.
const TICKS: f64 = 100.0;
const PAGE_BYTES: i64 = 4_096;

impl Process {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let name = "process_cpu_seconds";
        let cpu_seconds = published(registry, name, "Time on processors", Counter::default());
        let name = "process_start_time_seconds";
        let started = published(registry, name, "When the process began", Gauge::default());
        let mut held = |name: &str, help: &str| published(registry, name, help, Gauge::default());
        Self {
            cpu_seconds,
            resident_bytes: held("process_resident_memory_bytes", "Memory in use"),
            virtual_bytes: held("process_virtual_memory_bytes", "Addresses in use"),
            started,
            open_files: held("process_open_fds", "Open files and connections"),
            open_files_max: held("process_max_fds", "Files that may be open"),
            threads: held("process_threads", "Threads of the system"),
        }
    }

    /// Reads it off. Where the system does not tell it in this way, everything stays zero.
    pub(super) fn look(&self) {
        let Ok(text) = std::fs::read_to_string("/proc/self/stat") else { return };
        // The name of the program, in parentheses, may hold anything.
        let Some((_, rest)) = text.rsplit_once(')') else { return };
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let number = |index: usize| -> i64 {
            fields.get(index).and_then(|field| field.parse().ok()).unwrap_or(0)
        };
        // Numbered from 3 on in the manual, from 0 on here.
        let ticks = u32::try_from(number(11) + number(12)).unwrap_or(u32::MAX);
        let seconds = f64::from(ticks) / TICKS;
        self.cpu_seconds.inner().store(seconds.to_bits(), std::sync::atomic::Ordering::Relaxed);
        self.threads.set(number(17));
        self.virtual_bytes.set(number(20));
        self.resident_bytes.set(number(21) * PAGE_BYTES);
        // Counted from when the machine began.
        if let Some(machine) = number_after("/proc/stat", "btime ") {
            let ticks = u32::try_from(number(19)).unwrap_or(u32::MAX);
            self.started.set(machine + f64::from(ticks) / TICKS);
        }
        if let Some(most) = number_after("/proc/self/limits", "Max open files") {
            #[expect(clippy::cast_possible_truncation, reason = "it is a whole number, and small")]
            self.open_files_max.set(most as i64);
        }
        let open = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        self.open_files.set(i64::try_from(open).unwrap_or(i64::MAX));
    }
}

/// The number that follows a name at the beginning of a line of a file.
fn number_after(path: &str, name: &str) -> Option<f64> {
    let text = std::fs::read_to_string(path).ok()?;
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}
