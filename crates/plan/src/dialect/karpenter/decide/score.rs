//! How much a move is worth to a pool with the policy Balanced.

/// How a pool with the policy Balanced judges a move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Score {
    /// Index of the pool.
    pub(crate) pool: usize,
    /// The share of the savings over the share of the disturbance.
    pub(crate) ratio: f64,
    /// The share of the pool's cost that is saved.
    pub(crate) savings: f64,
    /// The share of the pool's pods that is disturbed.
    pub(crate) disturbance: f64,
}
