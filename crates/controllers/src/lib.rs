//! The control loop: observe, plan, apply, report, for any dialect and any API server.
//!
//! Nothing here knows what a rollout is: `convoy-plan` decides, this crate knows objects,
//! patches, preconditions and time. The first group of modules is synchronous and pure, and
//! [`reconciler`] is its entry point; the second talks to an API server, and [`run`] drives it in
//! real time.

pub mod cache;
pub mod execution;
pub mod lease;
mod list_page;
pub mod projection;
pub mod reconciler;
pub mod reflector;
pub mod request;
pub mod response;
pub mod tenure;
mod validation;
pub mod work_queue;
pub mod write_result;

pub mod connect;
mod connection;
pub mod discovery;
pub mod events;
mod executor;
pub mod fence;
pub mod leader;
pub mod log;
mod message;
pub mod metrics;
pub mod run;
pub mod serve;
mod transport;
mod trimmed;
mod watch;
pub mod webhooks;

pub use reconciler::Settings;
pub use run::run;
