//! The bytes that a write stores.

use serde_json::Value;

use super::Options;
use crate::ask::Ask;
use crate::registry::Resource;
use crate::status::{Answer, Status};
use crate::{convert, encoding, metadata};

/// The bytes to store, if they are not too many. Who owns what is the first to go, unless it is
/// what the request is about.
pub(super) async fn fitting(ask: &Ask, object: &Value, options: &Options) -> Answer<bytes::Bytes> {
    let converted = convert::webhook::to_storage(ask, object).await?;
    let object = converted.as_ref().unwrap_or(object);
    let most = ask.server.limits.body_bytes_max;
    let value = stored_form(&ask.resource, object);
    if value.len() <= most {
        return Ok(value);
    }
    if options.tracks {
        let mut without = object.clone();
        metadata::of(&mut without).shift_remove("managedFields");
        let value = stored_form(&ask.resource, &without);
        if value.len() <= most {
            return Ok(value);
        }
    }
    Err(Status::too_large(most))
}

/// The bytes of an object in its stored version.
pub(crate) fn stored_form(resource: &Resource, object: &Value) -> bytes::Bytes {
    let is_empty_list = |value: &Value| value.as_array().is_some_and(Vec::is_empty);
    let has_empty_list = resource.custom.is_none()
        && object.as_object().is_some_and(|fields| fields.values().any(is_empty_list));
    if resource.custom.is_none() && !convert::differs_from_stored(resource) && !has_empty_list {
        return encoding::stored(object);
    }
    let mut object = object.clone();
    if has_empty_list && let Value::Object(fields) = &mut object {
        // Lists that are always shown come out of the store without being told from none.
        fields.values_mut().filter(|value| is_empty_list(value)).for_each(|value| {
            value.take();
        });
    }
    convert::to_stored(resource, &mut object);
    encoding::stored(&object)
}
