//! Deployments and ReplicaSets on an API server in this process, rolled by the loop. The tests
//! play the user and the kubelet.

#![expect(clippy::unwrap_used, reason = "a test stops where its own setup is wrong")]
#![expect(clippy::disallowed_methods, reason = "tests play users, who need no fence")]

mod cluster;
mod faults;
mod leading;
mod rollouts;
mod standing;
mod transport;
