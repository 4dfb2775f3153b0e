//! Handlers of resource requests, one file per verb.

mod apply;
pub mod create;
pub mod delete;
pub mod get;
pub mod list;
pub mod patch;
pub mod update;
pub mod watch;
