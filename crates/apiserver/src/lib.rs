//! Kubernetes' HTTP contract over the store.

pub mod canonical;
pub mod custom;
pub mod decode;
pub mod patch;
pub mod protobuf;
pub mod registry;
pub mod shape;
pub mod types;
