//! What Convoy reads and writes, as it stands on the wire.
//!
//! [`object`] holds the raw objects and their names; [`text`] the small languages inside
//! fields (quantities, durations); one module per API group holds typed views and CRDs.
//! Deciding anything is left to `convoy-plan`.

pub mod apps;
pub mod cel;
pub mod clock;
mod definition;
mod derive;
pub mod fleet;
pub mod json_path;
pub mod karpenter;
pub mod kinds;
pub mod object;
pub mod ocm;
pub mod rbac;
pub mod schema;
pub mod size;
pub mod skyhook;
pub mod text;
pub mod well_known;

pub use k8s_openapi;
pub use object::{CollectionKey, GroupKind, Object, ObjectKey};
