//! New objects.

use crate::ask::Ask;
use crate::reading;
use crate::reply::Reply;
use crate::status::Answer;
use crate::write::{self, Options};

pub async fn create(ask: &Ask) -> Answer<Reply> {
    let options = Options::of(ask)?;
    let object = reading::object(ask, options.validation)?;
    Ok(write::create(ask, object, &options).await?.reply(201))
}
