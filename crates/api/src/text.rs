//! The small languages inside string fields: Go durations and Kubernetes quantities.

pub mod duration;
pub mod quantity;

pub use duration::GoDuration;
pub use quantity::Quantity;
