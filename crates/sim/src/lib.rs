//! A simulated fleet: nodes that register, renew leases and misbehave, and pods that start,
//! become ready, crash and end on them, as a seed and a scenario say.
//!
//! Everything that decides is pure and synchronous: a [`Part`](part::Part) is told what changed
//! and what time it is, and says what to write and when to be asked again. [`fleet`] carries
//! that out on an API server in real time, and is the only place with a clock.

pub mod fleet;
pub mod known;
pub mod kubelet;
pub mod kubelets;
pub mod lifecycle;
pub mod node;
pub mod part;
pub mod scenario;
pub mod scheduler;
pub mod seed;
pub mod simulation;
mod wheel;
