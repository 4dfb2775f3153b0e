//! A simulated fleet: nodes that register, renew leases and misbehave, and pods that start,
//! become ready, crash and end on them, as a seed and a scenario say.
//!
//! Everything that decides is pure and synchronous: a [`Component`](component::Component) receives
//! watch events and the time, and returns writes and the next instant at which it is due.
//! [`fleet`] runs components against an API server in real time, and is the only module with a
//! clock.

pub mod component;
pub mod fleet;
pub mod forecast;
pub mod kubelet;
pub mod kubelets;
pub mod lifecycle;
pub mod node;
pub mod registration;
pub mod reporter;
pub mod scenario;
pub mod scheduler;
pub mod seed;
pub mod shared_object;
pub mod simulation;
mod timers;
