//! How far a simulation has come, on standard error of a terminal: a long one looks stuck otherwise.

use std::io::{IsTerminal, Write, stderr};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// What takes less says nothing.
const QUIET: Duration = Duration::from_secs(1);
const INTERVAL: Duration = Duration::from_millis(200);

/// Does `work`, which counts seeds, and shows the count if it takes longer than a second.
pub(super) fn shown<T>(seeds: u32, work: impl FnOnce(&AtomicU32) -> T) -> T {
    let played = AtomicU32::new(0);
    if !stderr().is_terminal() {
        return work(&played);
    }
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let ticker = scope.spawn(|| tick(seeds, &played, &is_over));
        let result = work(&played);
        is_over.store(true, Ordering::Release);
        ticker.thread().unpark();
        result
    })
}

fn tick(seeds: u32, played: &AtomicU32, is_over: &AtomicBool) {
    let begun = Instant::now();
    let mut is_drawn = false;
    while !is_over.load(Ordering::Acquire) {
        thread::park_timeout(INTERVAL);
        if begun.elapsed() > QUIET && !is_over.load(Ordering::Acquire) {
            draw(&line(played.load(Ordering::Relaxed), seeds, begun.elapsed()));
            is_drawn = true;
        }
    }
    if is_drawn {
        draw("");
    }
}

fn line(played: u32, seeds: u32, elapsed: Duration) -> String {
    format!("simulating: {played} of {seeds} seeds, {} s", elapsed.as_secs())
}

/// In place of the line before. That it cannot be shown is no reason to stop.
fn draw(text: &str) {
    let mut err = stderr().lock();
    _ = write!(err, "\r\x1b[K{text}").and_then(|()| err.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_counts_seeds_and_seconds() {
        assert_eq!(line(2, 5, Duration::from_millis(3_400)), "simulating: 2 of 5 seeds, 3 s");
    }

    #[test]
    fn the_result_is_that_of_the_work() {
        assert_eq!(shown(1, |played| played.fetch_add(1, Ordering::Relaxed) + 41), 41);
    }
}
