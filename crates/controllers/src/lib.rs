//! The control loop: observe, plan, apply, report, for any dialect and any API server.
//!
//! Nothing here knows what a rollout is. What to do is decided by `convoy-plan`; this crate
//! knows objects, patches, preconditions and time. The first group of modules is synchronous
//! and pure, and [`brain`] joins it; the second carries bytes to and from an API server, which
//! [`run`] does in real time.

pub mod brain;
pub mod cache;
pub mod errand;
pub mod follower;
pub mod outcome;
mod page;
pub mod projection;
pub mod queue;
mod refused;
pub mod request;

mod api;
pub mod connect;
pub mod discovery;
pub mod events;
mod executor;
pub mod lease;
pub mod log;
pub mod metrics;
pub mod run;
pub mod serve;
mod trimmed;
mod watch;
pub mod webhooks;

pub use brain::Settings;
pub use run::run;
