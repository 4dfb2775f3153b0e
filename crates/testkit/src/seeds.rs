//! Simulations of many seeds, on all cores.

use std::fmt::Write;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::property;

/// A simulation has found so much when it stops that more would not be read.
const FAILURES: usize = 5;

/// Runs a world per seed on all cores: `cases` of them, unless the environment asks for others.
/// Gives what the worlds gave, and fails with the smallest seed that does. `test` is what cargo
/// runs it by: its target and name.
pub fn every_seed<T: Send>(
    package: &str,
    test: &str,
    cases: u32,
    run: impl Fn(u64) -> Result<T, String> + Sync,
) -> Vec<T> {
    each(property::seeds(cases), run).unwrap_or_else(|(seed, why)| {
        panic!("{why}\nto see it again: {}", property::replay(package, test, seed))
    })
}

/// What the worlds of some seeds gave, or the smallest seed that fails and what is to be told.
fn each<T: Send>(
    seeds: Range<u64>,
    run: impl Fn(u64) -> Result<T, String> + Sync,
) -> Result<Vec<T>, (u64, String)> {
    let next = AtomicU64::new(seeds.start);
    let (given, failures) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end || held(&failures).len() >= FAILURES {
                return;
            }
            let done = catch_unwind(AssertUnwindSafe(|| run(seed)));
            match done.unwrap_or_else(|_| Err("a panic, told above".to_owned())) {
                Ok(summary) => held(&given).push(summary),
                Err(message) => held(&failures).push((seed, message)),
            }
        }
    };
    let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(work);
        }
    });
    let mut failures = std::mem::take(&mut *held(&failures));
    failures.sort();
    let Some(((seed, message), others)) = failures.split_first() else {
        return Ok(std::mem::take(&mut *held(&given)));
    };
    let mut why = format!("seed {seed}: {message}");
    for (seed, message) in others {
        _ = write!(why, "\nseed {seed}: {}", message.lines().next().unwrap_or_default());
    }
    Err((*seed, why))
}

fn held<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().expect("no panic while held")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seed_runs_once() {
        let mut seen = each(1..51, Ok).expect("all are well");
        seen.sort_unstable();
        assert_eq!(seen, (1..51).collect::<Vec<u64>>());
    }

    #[test]
    fn the_smallest_seed_that_fails_is_told_first() {
        let run = |seed: u64| match seed % 2 {
            0 => Err(format!("{seed} is even\nand more")),
            _ => Ok(seed),
        };
        let (seed, why) = each(1..51, run).expect_err("half of them fail");
        assert_eq!(seed, 2);
        assert!(why.starts_with("seed 2: 2 is even\nand more\nseed 4: 4 is even\nseed 6"), "{why}");
    }
}
