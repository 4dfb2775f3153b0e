//! Kubernetes' HTTP contract over the store.

pub mod custom;
pub mod registry;
pub mod shape;
