//! Objects replaced as a whole.

use convoy_api::schema::FieldError;
use serde_json::{Value, json};

use crate::ask::Ask;
use crate::reply::Reply;
use crate::status::{Answer, Status};
use crate::write::{self, Options, Wanted};
use crate::{metadata, reading};

pub async fn update(ask: &Ask) -> Answer<Reply> {
    let options = Options::of(ask)?;
    let mut object = reading::object(ask, options.validation)?;
    write::settle_place(ask, &mut object)?;
    let name = &ask.target.name;
    let is_pinned = !metadata::text(&object, "resourceVersion").is_empty();
    let resource = &ask.resource;
    if ask.target.subresource.is_empty()
        && resource.put_creates
        && ask.server.store.snapshot().get(&ask.key(name)).is_none()
    {
        return create_by_put(ask, object, &options).await;
    }
    if !is_pinned && (resource.put_needs_version || resource.custom.is_some()) {
        let detail = "must be specified for an update";
        let error = FieldError::invalid("metadata.resourceVersion", &json!(0), detail);
        let mut status = Status::invalid(resource, name, &[error]);
        status.message =
            status.message.replacen(&*resource.qualified_kind(), &resource.qualified(), 1);
        status.details.kind = resource.plural.to_string();
        return Err(status);
    }
    let change = |_: &Value| Ok(Wanted { object: object.clone(), is_pinned });
    Ok(write::modify(ask, name, &options, change).await?.reply(200))
}

async fn create_by_put(ask: &Ask, mut object: Value, options: &Options) -> Answer<Reply> {
    if !metadata::text(&object, "uid").is_empty() {
        let why = "Precondition failed: UID in precondition, but the object does not exist";
        return Err(Status::conflict(&ask.resource, &ask.target.name, why));
    }
    metadata::of(&mut object).shift_remove("resourceVersion");
    Ok(write::create(ask, object, options).await?.reply(201))
}
