//! Who owns which fields: server-side apply, and what other writes mean for it.

use serde_json::Value;

use crate::ask::Ask;
use crate::reply::Reply;
use crate::status::{Answer, Status};
use crate::write::Options;

pub(crate) fn track_create(_ask: &Ask, _object: &mut Value, _options: &Options) {}

pub(crate) fn track_update(_ask: &Ask, _current: &Value, _object: &mut Value, _options: &Options) {}

/// Restores old times of ownership where nothing else changed.
pub(crate) fn revert_if_quiet(_object: &mut Value, _current: &Value) {}

pub(crate) async fn apply(_ask: &Ask, _options: &Options) -> Answer<Reply> {
    Err(Status::method_not_allowed())
}
