//! etcd's contract in one process: one revision counter, compare-and-swap writes, snapshot
//! reads, an ordered watch from any retained revision, compaction.
//!
//! Everything live is in memory, shared and never copied; a [`Backend`] below makes it durable.
//! A write is acknowledged only when it is published, and published only when the backend says
//! that it would survive. There is no clock and no runtime here: what has to happen by time is
//! asked for by the caller, and waiting works from threads and from futures alike.

mod commit;
mod entry;
mod key;
mod log;
mod memory;
mod published;
mod settings;
mod snapshot;
mod store;
mod ticket;
mod topic;
mod watch;
mod writer;

pub mod backend;

pub use backend::{Backend, BackendError};
pub use commit::{Conflict, Expect, Transaction, Write, WriteError, Written};
pub use entry::{Change, Entry, Event, Metadata, Revision};
pub use key::{Key, KeyError, Shelf};
pub use memory::MemoryBackend;
pub use settings::Settings;
pub use snapshot::Snapshot;
pub use store::Store;
pub use ticket::Ticket;
pub use topic::Topic;
pub use watch::{Compacted, Events, Watch};
