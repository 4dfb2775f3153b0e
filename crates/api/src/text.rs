//! The small languages inside string fields: Go durations, Kubernetes names and quantities.

pub mod duration;
pub(crate) mod format;
pub mod name;
pub mod quantity;

pub use duration::GoDuration;
pub use name::Name;
pub use quantity::Quantity;
