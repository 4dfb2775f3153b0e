//! New objects.

use crate::reading;
use crate::resource_request::ResourceRequest;
use crate::response::HandlerResponse;
use crate::status::ApiResult;
use crate::write::{self, Options};

pub async fn create(request: &ResourceRequest) -> ApiResult<HandlerResponse> {
    let options = Options::of(request)?;
    let object = reading::object(request, options.validation)?;
    Ok(write::create(request, object, &options).await?.into_response(201))
}
