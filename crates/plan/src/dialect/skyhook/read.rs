//! Reading: Kubernetes objects become the types that decisions are made from. JSON paths of
//! Skyhooks, policies, nodes, pods and ConfigMaps are known here and where they are written.

pub(crate) mod batch;
pub(crate) mod config;
pub(crate) mod hook;
pub(crate) mod mark;
pub(crate) mod node;
pub(crate) mod observe;
pub(crate) mod options;
pub(crate) mod pod;
pub(crate) mod policy;
pub(crate) mod state;
