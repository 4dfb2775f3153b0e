//! Builders of wire objects for tests. They read like the object they build:
//! `node("gpu-1").label("env", "prod").build()`.

pub mod apps;
mod builder;
pub mod fleet;
pub mod history;
pub mod karpenter;
pub mod mutate;
pub mod ocm;
pub mod property;
pub mod seeds;

pub use builder::{Builder, NOW, node, object, parsed};
