//! Sub-resources that are more than a part of the object, and kinds that are never stored.

use crate::access::{review, token_request};
use crate::ask::Ask;
use crate::reply::Reply;
use crate::status::{Answer, Status};
use crate::verb;

/// A create on a resource: for most kinds a new object, for some an action.
pub(crate) async fn create(ask: &Ask) -> Answer<Reply> {
    if let Some(answer) = review::answer(ask) {
        return answer;
    }
    verb::create::create(ask).await
}

/// A request on a sub-resource of a kind of its own.
pub(crate) async fn carry_out(ask: &Ask) -> Answer<Reply> {
    match (ask.target.subresource.as_str(), ask.verb.as_str()) {
        ("token", "create") => token_request::create(ask),
        ("finalize", "update") => verb::update::update(ask).await,
        _ => Err(Status::method_not_allowed()),
    }
}
