//! Options of a write, from the query of a request.

use smol_str::SmolStr;

use crate::query::{FieldValidation, options_kind};
use crate::resource_request::ResourceRequest;
use crate::status::ApiResult;

/// How a write is carried out.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub dry_run: bool,
    pub validation: FieldValidation,
    pub manager: SmolStr,
    /// Whether the write updates `managedFields`; an apply has done so already.
    pub tracks: bool,
}

impl Options {
    /// Options of the server's own writes.
    pub(crate) fn internal() -> Self {
        let manager = SmolStr::new("convoy");
        Self { dry_run: false, validation: FieldValidation::Ignore, manager, tracks: true }
    }

    pub(crate) fn of(request: &ResourceRequest) -> ApiResult<Self> {
        let kind = options_kind(request.verb.as_str());
        Ok(Self {
            dry_run: request.query.dry_run(kind)?,
            validation: request.query.field_validation(kind)?,
            manager: request.query.field_manager(&request.user_agent, kind)?,
            tracks: true,
        })
    }
}
