//! A real Kubernetes on loopback: its own programs at pinned versions, started with nothing in
//! them and gone with the value that started them. Tests and measurements hold Convoy against
//! it; nothing that ships depends on this crate.

mod control_plane;
mod programs;
mod running;

pub use control_plane::{ControlPlane, WITHOUT_DEPLOYMENTS, start_etcd};
pub use programs::{Programs, own_kubectl};
pub use running::{Process, Running, flags, free_ports};
