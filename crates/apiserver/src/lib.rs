//! Kubernetes' HTTP contract over the store: one registry of kinds, generic verbs, many
//! logical clusters, one process.

pub mod accept;
pub mod access;
mod admission;
pub mod ask;
pub mod authority;
pub mod body;
pub mod caller;
pub mod canonical;
mod convert;
pub mod custom;
pub mod decode;
pub mod discovery;
pub mod encoding;
pub mod fields;
pub mod form;
pub mod handler;
pub mod head;
mod health;
pub mod home;
mod kinds;
pub mod kubeconfig;
pub mod listener;
mod managed;
pub mod metadata;
mod openapi;
pub mod patch;
mod paths;
pub mod protobuf;
mod published;
pub mod query;
mod reading;
pub mod registry;
pub mod reply;
pub mod request;
mod selection;
pub mod server;
pub mod shape;
pub mod status;
mod subresource;
pub mod surroundings;
pub mod table;
#[cfg(test)]
mod testing;
pub mod types;
pub mod verb;
mod write;
