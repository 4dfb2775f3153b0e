//! The derives on wire types from which CRDs are generated.
//!
//! The tests of this crate generate the CRDs ([`definition`](crate::definition)), so only they
//! need the real derives. Everywhere else stand-ins of the same names accept the same attributes
//! and expand to nothing; the schemas are half of this crate's code otherwise.

#[cfg(not(test))]
pub(crate) use convoy_derive::{CustomResource, JsonSchema};
#[cfg(test)]
pub(crate) use {kube::CustomResource, schemars::JsonSchema};
