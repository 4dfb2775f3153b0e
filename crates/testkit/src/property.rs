//! Configuration of property tests: the same cases on every run, unless the environment asks for
//! others or for more. A failure prints the command that reproduces it instead of writing a file;
//! a failure worth keeping becomes a test with a name.

use std::any::Any;
use std::env;
use std::fmt::Debug;
use std::hash::{BuildHasher, RandomState};
use std::thread;

use proptest::test_runner::{Config, FailurePersistence, PersistedSeed, RngSeed};

/// Number of cases: a number, or `10x` for ten times the number in the test.
const CASES: &str = "CONVOY_CASES";

/// Seed of the cases: a number, or `random`.
const SEED: &str = "CONVOY_SEED";

/// The default seed. Any number works; a fixed one makes every run the same.
const USUAL_SEED: u64 = 1;

/// A configuration that runs `cases` cases, from the same seed every time. The environment may
/// ask for more with `CONVOY_CASES=10x`, and for others with `CONVOY_SEED=7`.
pub fn config(cases: u32) -> Config {
    let cases = variable(CASES).map_or(cases, |text| asked_cases(&text, cases));
    let seed = variable(SEED).map_or(USUAL_SEED, |text| asked_seed(&text));
    Config {
        cases,
        // More cases also reject more inputs by assumptions.
        max_global_rejects: cases.saturating_mul(16).max(1024),
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: Some(Box::new(Replay { cases, seed })),
        ..Config::default()
    }
}

/// The seeds of a simulation that usually runs `cases` of them, one after the other from 1 or
/// from where the environment says.
pub fn seeds(cases: u32) -> std::ops::Range<u64> {
    let cases = variable(CASES).map_or(cases, |text| asked_cases(&text, cases));
    let first = variable(SEED).map_or(USUAL_SEED, |text| asked_seed(&text));
    first..first.saturating_add(u64::from(cases))
}

/// The command that runs one seed of a simulation again.
pub fn replay(package: &str, test: &str, seed: u64) -> String {
    Replay { cases: 1, seed }.command(Some(package), Some(test))
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|text| !text.is_empty())
}

fn asked_cases(text: &str, usual: u32) -> u32 {
    let (number, times) = match text.strip_suffix('x') {
        Some(factor) => (factor, usual),
        None => (text, 1),
    };
    let number: u32 = number
        .parse()
        .unwrap_or_else(|_| panic!("{CASES}={text}: want a number such as 500 or 10x"));
    number.saturating_mul(times)
}

fn asked_seed(text: &str) -> u64 {
    if text == "random" {
        return RandomState::new().hash_one(text); // keyed afresh in every process
    }
    text.parse().unwrap_or_else(|_| panic!("{SEED}={text}: want a number or random"))
}

/// Prints the command that runs the failing test again, instead of persisting failures in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Replay {
    cases: u32,
    seed: u64,
}

impl Replay {
    fn command(self, package: Option<&str>, test: Option<&str>) -> String {
        let Self { cases, seed } = self;
        let package = package.map(|name| format!(" -p {name}")).unwrap_or_default();
        let test = test.map(|name| format!(" {name}")).unwrap_or_default();
        format!("{SEED}={seed} {CASES}={cases} cargo test{package}{test}")
    }
}

impl FailurePersistence for Replay {
    fn load_persisted_failures2(&self, _source: Option<&'static str>) -> Vec<PersistedSeed> {
        Vec::new()
    }

    fn save_persisted_failure2(
        &mut self,
        _source: Option<&'static str>,
        _seed: PersistedSeed,
        _value: &dyn Debug,
    ) {
        // Cargo names the package, and the test runs on a thread that bears its name.
        let package = env::var("CARGO_PKG_NAME").ok();
        eprintln!("replay: {}", self.command(package.as_deref(), thread::current().name()));
    }

    fn box_clone(&self) -> Box<dyn FailurePersistence> {
        Box::new(*self)
    }

    fn eq(&self, other: &dyn FailurePersistence) -> bool {
        other.as_any().downcast_ref() == Some(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use proptest::prelude::*;
    use proptest::test_runner::TestRunner;

    use super::*;

    #[test]
    fn cases_are_a_number_or_a_multiple() {
        assert_eq!(asked_cases("500", 32), 500);
        assert_eq!(asked_cases("10x", 32), 320);
        assert_eq!(asked_cases("4294967295x", 2), u32::MAX);
        assert_eq!(asked_seed("7"), 7);
    }

    #[test]
    fn a_failure_can_be_run_again() {
        let replay = Replay { cases: 320, seed: 7 };
        let command = replay.command(Some("convoy-check"), Some("rollouts_end"));
        let expected = "CONVOY_SEED=7 CONVOY_CASES=320 cargo test -p convoy-check rollouts_end";
        assert_eq!(command, expected);
    }

    #[test]
    fn the_same_seed_draws_the_same_cases() {
        let drawn = |seed| {
            let values = RefCell::new(Vec::new());
            let config = Config { rng_seed: RngSeed::Fixed(seed), ..config(8) };
            let run = TestRunner::new(config).run(&any::<u64>(), |value| {
                values.borrow_mut().push(value);
                Ok(())
            });
            run.expect("nothing fails");
            values.into_inner()
        };
        assert_eq!(drawn(3), drawn(3));
        assert_ne!(drawn(3), drawn(4));
    }
}
