//! Objects changed in part.

use serde_json::Value;

use crate::ask::Ask;
use crate::reading;
use crate::reply::Reply;
use crate::status::{Answer, Status};
use crate::write::{self, Options, Wanted};
use crate::{managed, metadata};

/// What the body of a patch says, by its content type.
#[derive(Debug)]
enum Patch {
    Json(json_patch::Patch),
    Merge(Value),
    Apply(Value),
}

pub async fn patch(ask: &Ask) -> Answer<Reply> {
    let options = Options::of(ask)?;
    let patch = Patch::read(ask)?;
    if let Patch::Apply(config) = patch {
        return managed::apply(ask, config, &options).await;
    }
    let name = &ask.target.name;
    let is_pinned = patch.names_version();
    let change = |current: &Value| {
        let object = patch.carry_out(ask, current)?;
        check_place(ask, &object)?;
        let object = reading::patched(ask, object, options.validation)?;
        Ok(Wanted { object, is_pinned })
    };
    Ok(write::modify(ask, name, &options, change).await?.reply(200))
}

impl Patch {
    fn read(ask: &Ask) -> Answer<Self> {
        let media = ask.content_type.split(';').next().unwrap_or_default().trim();
        let undecodable = |error| Status::bad_request(format!("error decoding patch: {error}"));
        match media {
            "application/json-patch+json" => {
                serde_json::from_slice(&ask.body).map(Self::Json).map_err(undecodable)
            }
            "application/merge-patch+json" => {
                serde_json::from_slice(&ask.body).map(Self::Merge).map_err(undecodable)
            }
            "application/apply-patch+yaml" => Ok(Self::Apply(Value::Null)),
            _ => Err(Status::unsupported_media(&[
                "application/json-patch+json",
                "application/merge-patch+json",
                "application/apply-patch+yaml",
            ])),
        }
    }

    fn names_version(&self) -> bool {
        match self {
            Self::Merge(patch) => !patch["metadata"]["resourceVersion"].is_null(),
            Self::Json(_) | Self::Apply(_) => false,
        }
    }

    fn carry_out(&self, ask: &Ask, current: &Value) -> Answer<Value> {
        let mut object = current.clone();
        match self {
            Self::Json(patch) => json_patch::patch(&mut object, patch)
                .map_err(|_| Status::patch_failed(&ask.resource, &ask.target.name))?,
            Self::Merge(patch) => json_patch::merge(&mut object, patch),
            Self::Apply(_) => {}
        }
        Ok(object)
    }
}

/// A patch moves nothing.
fn check_place(ask: &Ask, object: &Value) -> Answer<()> {
    let name = metadata::text(object, "name");
    if name != ask.target.name {
        let url_name = &ask.target.name;
        return Err(Status::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({url_name})"
        )));
    }
    if ask.resource.namespaced && metadata::text(object, "namespace") != ask.namespace() {
        let message = "the namespace of the provided object does not match the namespace sent on \
                       the request";
        return Err(Status::bad_request(message));
    }
    Ok(())
}
