//! One object by name.

use std::time::Duration;

use convoy_store::Revision;

use crate::handler_response::HandlerResponse;
use crate::resource_request::ResourceRequest;
use crate::status::{ApiResult, Status};

/// How long a read waits for a revision that has not been written yet.
const WAIT_FOR_REVISION: Duration = Duration::from_secs(3);

pub async fn get(request: &ResourceRequest) -> ApiResult<HandlerResponse> {
    let wanted = read_revision(request.query.get("resourceVersion"))?;
    wait_for(request, wanted.unwrap_or(0)).await?;
    let name = &request.target.name;
    let snapshot = request.server.store.snapshot();
    match snapshot.get(&request.key(name)) {
        Some(entry) => Ok(HandlerResponse::Entry(200, entry.clone())),
        None => Err(Status::not_found(&request.resource, name)),
    }
}

/// A revision in a query; none where it is absent or empty.
pub(crate) fn read_revision(text: Option<&str>) -> ApiResult<Option<u64>> {
    match text {
        None | Some("") => Ok(None),
        Some(text) => text.parse().map(Some).map_err(|_| {
            Status::bad_request(format!(
                "invalid resource version: resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax"
            ))
        }),
    }
}

/// Waits, a little, until the state is not older than a revision.
pub(crate) async fn wait_for(request: &ResourceRequest, revision: u64) -> ApiResult<()> {
    let store = &request.server.store;
    if store.revision().0 >= revision {
        return Ok(());
    }
    let mut watch = store.watch_everything(store.revision());
    let reached = async {
        loop {
            let events = std::future::poll_fn(|context| watch.poll_read(context)).await;
            if !matches!(events, Ok(Some(_))) || store.revision() >= Revision(revision) {
                return;
            }
        }
    };
    // What counts is where the store is then, not why the waiting ended.
    drop(tokio::time::timeout(WAIT_FOR_REVISION, reached).await);
    let current = store.revision().0;
    if current >= revision { Ok(()) } else { Err(Status::revision_ahead(revision, current)) }
}
