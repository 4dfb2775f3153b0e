//! New objects.

use crate::handler_response::HandlerResponse;
use crate::options::Options;
use crate::reading;
use crate::resource_request::ResourceRequest;
use crate::status::ApiResult;
use crate::write;

pub async fn create(request: &ResourceRequest) -> ApiResult<HandlerResponse> {
    let options = Options::of(request)?;
    let object = reading::object(request, options.validation)?;
    Ok(write::create(request, object, &options).await?.into_response(201))
}
