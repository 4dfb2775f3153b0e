//! The time, as commands tell it to the engine.

use jiff::Timestamp;

/// The current time in whole seconds, the resolution of Kubernetes timestamps.
pub(crate) fn this_second() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}
