//! A real Kubernetes control plane on loopback, at pinned versions, that stops when the value is
//! dropped. Tests and benchmarks compare Convoy with it; nothing that ships depends on this crate.

mod control_plane;
mod programs;
mod running;
mod suite;

pub use control_plane::{ControlPlane, WITHOUT_DEPLOYMENTS, start_etcd};
pub use programs::{Programs, own_kubectl};
pub use running::{Process, Running, flags, free_ports};
pub use suite::bring_suite;
