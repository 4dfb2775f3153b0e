//! A sequential random number generator: which event is next, which request fails, how long a
//! request takes. Unlike the numbers of a [`Seed`], these depend on the order of the calls.

use jiff::SignedDuration;

use crate::seed::Seed;

/// A sequence of random numbers.
#[derive(Clone, Debug)]
pub struct Random {
    seed: Seed,
    drawn: u32,
}

impl Random {
    pub fn new(seed: Seed) -> Self {
        Self { seed, drawn: 0 }
    }

    pub fn number(&mut self) -> u64 {
        self.next().number()
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        self.next().between(low, high)
    }

    /// True in so many of a thousand cases.
    pub fn happens(&mut self, thousandths: u32) -> bool {
        self.next().millionths() / 1_000 < thousandths
    }

    pub fn millis(&mut self, low: i64, high: i64) -> SignedDuration {
        SignedDuration::from_micros(self.between(low * 1_000, high * 1_000))
    }

    /// One of several.
    pub fn pick<'i, T>(&mut self, items: &'i [T]) -> Option<&'i T> {
        let last = i64::try_from(items.len()).ok()?.checked_sub(1).filter(|last| *last >= 0)?;
        items.get(usize::try_from(self.between(0, last)).ok()?)
    }

    fn next(&mut self) -> Seed {
        self.drawn = self.drawn.wrapping_add(1);
        self.seed.nth(self.drawn)
    }
}
