//! A request converted to the version of the resource that a webhook or a policy asks for.

use std::sync::Arc;

use serde_json::{Value, json};

use super::audience::Subject;
use crate::conversion::between;
use crate::registry::Resource;
use crate::status::ApiResult;

/// The objects of a request in another version, and the request about them.
#[derive(Debug)]
pub(super) struct Seen {
    object: Option<Value>,
    old: Option<Value>,
    admission_request: Value,
}

impl Seen {
    /// Converts what a request is about; none where it is in that version already.
    pub(super) async fn through(
        subject: &Subject<'_>,
        row: &Arc<Resource>,
    ) -> ApiResult<Option<Self>> {
        let request = subject.request;
        if Arc::ptr_eq(row, &request.resource) {
            return Ok(None);
        }
        let converted = async |object: Option<&Value>| match object {
            None => Ok(None),
            Some(object) => between(request, &request.resource, row, object).await.map(Some),
        };
        let (object, old) = (converted(subject.object).await?, converted(subject.old).await?);
        let mut admission_request = subject.admission_request.clone();
        let (group, version) = (&row.group, &row.version);
        admission_request["kind"] = json!({"group": group, "version": version, "kind": row.kind});
        admission_request["resource"] =
            json!({"group": group, "version": version, "resource": row.plural});
        admission_request["object"] = json!(object);
        admission_request["oldObject"] = json!(old);
        Ok(Some(Self { object, old, admission_request }))
    }

    /// The request, seen so.
    pub(super) fn subject<'s>(&'s self, subject: &Subject<'s>) -> Subject<'s> {
        Subject {
            request: subject.request,
            operation: subject.operation,
            object: self.object.as_ref(),
            old: self.old.as_ref(),
            admission_request: &self.admission_request,
        }
    }

    pub(super) fn into_object(self) -> Option<Value> {
        self.object
    }
}
