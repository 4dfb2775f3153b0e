//! The control loop on an API server in this process: Deployments and ReplicaSets, for which the
//! tests play the user and the kubelet, and rollouts that span logical clusters.

#![expect(clippy::unwrap_used, reason = "a test stops where its own setup is wrong")]
#![expect(clippy::disallowed_methods, reason = "tests play users, who need no fence")]

mod cluster;
mod copies;
mod faults;
mod leading;
mod rollouts;
mod spanning;
mod stage;
mod standing;
mod transport;
