//! Randomness that does not depend on order: every number is a function of the seed, of the object
//! and of the purpose, so one more pod leaves the numbers of all others unchanged.

/// A random seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(u64);

impl Seed {
    pub const fn new(seed: u64) -> Self {
        Self(mixed(seed))
    }

    /// The seed of one thing of a kind: `seed.child("pod", uid)`.
    #[must_use]
    pub fn child(self, kind: &str, name: &str) -> Self {
        // The zero byte keeps ("ab", "c") and ("a", "bc") apart.
        let bytes = kind.bytes().chain([0]).chain(name.bytes());
        let hash = bytes.fold(self.0 ^ FNV_OFFSET, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME)
        });
        Self(mixed(hash))
    }

    /// The same for the n-th of its kind.
    #[must_use]
    pub const fn nth(self, index: u32) -> Self {
        Self(mixed(self.0 ^ (index as u64 + 1).wrapping_mul(GOLDEN)))
    }

    pub const fn number(self) -> u64 {
        self.0
    }

    /// A whole number below one million, for comparing with rates.
    pub const fn millionths(self) -> u32 {
        (self.0 % 1_000_000) as u32
    }

    /// A number from `low` to `high`, both included.
    pub fn between(self, low: i64, high: i64) -> i64 {
        let width = u128::from(high.saturating_sub(low).max(0).unsigned_abs()) + 1;
        let offset = (u128::from(self.0) * width) >> 64;
        i64::try_from(offset).map_or(high, |offset| low.saturating_add(offset))
    }
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Spreads every bit over all others (the finisher of `SplitMix64`).
const fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(GOLDEN);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_depend_on_whom_they_are_about_and_on_nothing_else() {
        let seed = Seed::new(7);
        assert_eq!(seed.child("pod", "a"), seed.child("pod", "a"));
        assert_ne!(seed.child("pod", "a"), seed.child("pod", "b"));
        assert_ne!(seed.child("po", "da"), seed.child("pod", "a"));
        assert_ne!(seed.nth(0), seed.nth(1));
        assert_ne!(Seed::new(7), Seed::new(8));
    }

    #[test]
    fn numbers_fill_their_range() {
        let seed = Seed::new(1);
        let drawn: Vec<i64> = (0..1_000).map(|index| seed.nth(index).between(3, 6)).collect();
        for value in 3..=6 {
            let count = drawn.iter().filter(|drawn| **drawn == value).count();
            assert!((150..350).contains(&count), "{value} was drawn {count} times");
        }
        assert_eq!(seed.between(5, 5), 5);
    }
}
