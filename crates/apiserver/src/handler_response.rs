//! What handlers answer with: a value or a stored object, in the form that the client accepts.

use std::sync::Arc;

use http::Response;
use serde_json::Value;

use crate::accept::{Accept, Form};
use crate::body::Body;
use crate::encoding::write_entry;
use crate::object_meta::Entry;
use crate::resource_request::ResourceRequest;
use crate::response::{bytes, encoded, partial};
use crate::status::ApiResult;
use crate::table;

/// The result of a handler, before it is encoded.
#[derive(Debug)]
pub enum HandlerResponse {
    /// An object as it is stored.
    Entry(u16, Arc<Entry>),
    /// An object that is not stored, or not in this form.
    Object(u16, Value),
    /// A `Status`, or another object that has only one form.
    Plain(u16, Value),
    /// A complete response.
    Raw(Response<Body>),
}

impl HandlerResponse {
    /// Encodes the result in the form that the client accepts.
    pub fn respond(self, request: &ResourceRequest) -> ApiResult<Response<Body>> {
        let (code, value) = match self {
            Self::Raw(response) => return Ok(response),
            Self::Plain(code, value) => (code, value),
            Self::Entry(code, entry)
                if request.accept == Accept::default() && request.shows_as_stored(&entry) =>
            {
                let mut out = Vec::with_capacity(entry.value.len() + 64);
                write_entry(&mut out, &entry, entry.modified.0, request.view());
                out.push(b'\n');
                return Ok(bytes(code, "application/json", out.into()));
            }
            Self::Entry(code, entry) => (code, form(request, request.read(&entry))?),
            Self::Object(code, object) => (code, form(request, object)?),
        };
        Ok(encoded(code, &value, request.accept))
    }
}

fn form(request: &ResourceRequest, object: Value) -> ApiResult<Value> {
    match request.accept.form {
        Form::Object | Form::GroupDiscovery => Ok(object),
        Form::Metadata => Ok(partial(&object)),
        Form::Table => {
            let revision = object.pointer("/metadata/resourceVersion").cloned();
            let mut table = table::of(request, &[object], true)?;
            table["metadata"]["resourceVersion"] = revision.unwrap_or_default();
            Ok(table)
        }
    }
}
