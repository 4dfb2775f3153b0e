//! The control loop: observe, plan, apply, report, for any dialect and any API server.
//!
//! Nothing here knows what a rollout is: `convoy-plan` decides, this crate knows objects,
//! patches, preconditions and time. The first group of modules is synchronous and pure, and
//! [`reconciler`] is its entry point; the second talks to an API server, and [`run`] drives it in
//! real time.
//!
//! Functions that other crates await return boxed futures: an `async fn` is compiled where it is
//! awaited, again in every crate that does, with everything that it awaits.

pub mod cache;
pub mod execution;
mod lanes;
pub mod lease;
mod list_page;
pub mod projection;
pub mod reconciler;
pub mod reflector;
pub mod request;
pub mod response;
pub mod rollout;
pub mod tenure;
mod validation;
pub mod watches;
pub mod work_queue;
pub mod write_result;

mod api_resources;
pub mod clusters;
mod complaints;
pub mod connect;
mod connection;
pub mod discovery;
mod distrust;
pub mod events;
mod executor;
mod failures;
pub mod fence;
pub mod leader;
mod lease_watch;
mod link;
pub mod live_objects;
pub mod log;
mod message;
pub mod metrics;
mod rotation;
pub mod run;
pub mod serve;
mod transport;
mod trimmed;
mod watch;
mod watchers;
pub mod webhooks;

pub use clusters::{Cluster, Clusters, Members};
pub use reconciler::Settings;
pub use reflector::Scope;
pub use run::run;

/// A dialect that spans clusters, shared with the integration tests.
#[cfg(test)]
#[path = "../tests/control_loop/copies.rs"]
mod copies;
