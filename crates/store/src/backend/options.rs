//! How a durable backend is opened.

use std::time::Duration;

/// When a write counts as safe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// It would survive power loss. The default.
    #[default]
    Sync,
    /// It would survive the process; power loss may take what came within this time.
    Interval(Duration),
    /// Nothing is promised beyond the life of the process.
    None,
}

/// What happens when less is found than was durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLoss {
    /// It is an error, and nothing is changed. The default.
    #[default]
    Refuse,
    /// What is lost is said, and the store goes on with the rest.
    Accept,
}
