//! Works, what was recorded about them, and the objects on the member as domain types.

pub(crate) mod config;
pub(crate) mod desired;
pub(crate) mod executor;
pub(crate) mod feedback;
pub(crate) mod kinds;
pub(crate) mod manifest;
pub(crate) mod owner;
pub(crate) mod record;
pub(crate) mod recorded;
pub(crate) mod rule;
pub(crate) mod server_side;
pub(crate) mod work;
