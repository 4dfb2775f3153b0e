//! The promises of rollouts, watched from outside: `convoy up` with simulated nodes, `convoy run`
//! that is killed and started again at random, a connection between them that refuses writes,
//! loses answers and breaks off watches, and a client of its own that counts after every write.

#![expect(clippy::unwrap_used, reason = "a test stops where its own setup is wrong")]

mod deployments;
mod proxy;
mod skyhooks;
mod stage;
mod torture;
mod watcher;
