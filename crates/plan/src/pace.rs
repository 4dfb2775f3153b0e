//! Pacing: how large the next batch is, given how the last one went.

/// How batches grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    Fixed { initial: u32 },
    Linear { initial: u32, delta: u32 },
    Exponential { initial: u32, factor: u32 },
}

/// How the last batch went. A size of 0 means that there was none yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LastBatch {
    pub size: u32,
    /// It failed early enough in the rollout that the next one should be smaller.
    pub slow_down: bool,
}

impl Pace {
    /// The size the pace asks for; remaining members and ceilings are the caller's limits.
    ///
    /// | pace                  | last           | next | because                   |
    /// |-----------------------|----------------|-----:|---------------------------|
    /// | fixed 3               | 3, failed      |    3 | fixed never changes       |
    /// | linear 2, delta 2     | none           |    2 | the first is the initial  |
    /// | linear 2, delta 2     | 4              |    6 | it grows by delta         |
    /// | linear 2, delta 2     | 2, failed      |    1 | it shrinks, but not below 1 |
    /// | exponential 1, times 2 | 4             |    8 | it doubles                |
    /// | exponential 1, times 2 | 5, failed     |    2 | 2.5 rounds down           |
    pub fn next_size(self, last: LastBatch) -> u32 {
        let first = last.size == 0;
        match self {
            Self::Fixed { initial } => initial,
            Self::Linear { initial, .. } | Self::Exponential { initial, .. } if first => initial,
            Self::Linear { delta, .. } if last.slow_down => last.size.saturating_sub(delta).max(1),
            Self::Linear { delta, .. } => last.size.saturating_add(delta),
            Self::Exponential { factor, .. } if last.slow_down => {
                last.size.checked_div(factor).unwrap_or(last.size).max(1)
            }
            Self::Exponential { factor, .. } => last.size.saturating_mul(factor),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_grow_and_shrink_by_their_pace() {
        let linear = Pace::Linear { initial: 2, delta: 2 };
        let doubling = Pace::Exponential { initial: 1, factor: 2 };
        let cases = [
            (Pace::Fixed { initial: 3 }, 3, true, 3),
            (linear, 0, false, 2),
            (linear, 4, false, 6),
            (linear, 2, true, 1),
            (doubling, 0, true, 1),
            (doubling, 4, false, 8),
            (doubling, 5, true, 2),
            (doubling, u32::MAX, false, u32::MAX),
        ];
        for (pace, size, slow_down, next) in cases {
            assert_eq!(
                pace.next_size(LastBatch { size, slow_down }),
                next,
                "{pace:?} after {size}"
            );
        }
    }
}
