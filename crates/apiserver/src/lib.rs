//! Kubernetes' HTTP contract over the store: one registry of kinds, generic verbs, many
//! logical clusters, one process.

pub mod accept;
pub mod access;
mod admission;
pub mod ask;
pub mod body;
pub mod caller;
pub mod canonical;
mod convert;
pub mod custom;
pub mod decode;
pub mod encoding;
pub mod fields;
pub mod form;
pub mod handler;
pub mod head;
mod kinds;
mod managed;
pub mod metadata;
pub mod patch;
mod paths;
pub mod protobuf;
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
pub mod types;
pub mod verb;
mod write;
