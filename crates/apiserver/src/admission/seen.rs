//! A request as somebody sees it who knows its resource by another version.

use std::sync::Arc;

use serde_json::{Value, json};

use super::audience::Subject;
use crate::convert::webhook::between;
use crate::registry::Resource;
use crate::status::Answer;

/// The objects of a request in another version, and the request about them.
#[derive(Debug)]
pub(super) struct Seen {
    object: Option<Value>,
    old: Option<Value>,
    request: Value,
}

impl Seen {
    /// Converts what a request is about; none where it is in that version already.
    pub(super) async fn through(
        subject: &Subject<'_>,
        row: &Arc<Resource>,
    ) -> Answer<Option<Self>> {
        let ask = subject.ask;
        if Arc::ptr_eq(row, &ask.resource) {
            return Ok(None);
        }
        let converted = async |object: Option<&Value>| match object {
            None => Ok(None),
            Some(object) => between(ask, &ask.resource, row, object).await.map(Some),
        };
        let (object, old) = (converted(subject.object).await?, converted(subject.old).await?);
        let mut request = subject.request.clone();
        let (group, version) = (&row.group, &row.version);
        request["kind"] = json!({"group": group, "version": version, "kind": row.kind});
        request["resource"] = json!({"group": group, "version": version, "resource": row.plural});
        request["object"] = json!(object);
        request["oldObject"] = json!(old);
        Ok(Some(Self { object, old, request }))
    }

    /// The request, seen so.
    pub(super) fn subject<'s>(&'s self, subject: &Subject<'s>) -> Subject<'s> {
        Subject {
            ask: subject.ask,
            operation: subject.operation,
            object: self.object.as_ref(),
            old: self.old.as_ref(),
            request: &self.request,
        }
    }

    pub(super) fn into_object(self) -> Option<Value> {
        self.object
    }
}
