//! `APIServices`: which server serves a group and version.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::kind::{Kind, OWNERSHIP_ALONE};
use crate::column::Cell::Made;
use crate::column::{AGE, Column, NAME, Row, condition, plain, string};
use crate::conditions::{self, Condition};
use crate::resource_request::ResourceRequest;
use crate::status::ApiResult;
use crate::surroundings::seconds;

pub(crate) const AVAILABLE: &str = "Available";

/// Says whether what an `APIService` stands for can be reached: what this server serves itself
/// always is, and what another one would serve is not, since nothing is forwarded.
pub(crate) fn settle(object: &mut Value, now: Timestamp) {
    let service = &object["spec"]["service"];
    let text = |field: &str| service[field].as_str().unwrap_or_default().to_owned();
    let message = format!("service/{} in {:?} is not present", text("name"), text("namespace"));
    let condition = if service.is_null() {
        let message = "Local APIServices are always available";
        Condition { kind: AVAILABLE, is_true: true, reason: "Local", message }
    } else {
        Condition { kind: AVAILABLE, is_true: false, reason: "ServiceNotFound", message: &message }
    };
    conditions::set(&mut object["status"], &condition, &seconds(now));
}

pub(super) struct ApiService;

impl Kind for ApiService {
    fn prepare_create(&self, request: &ResourceRequest, object: &mut Value) -> ApiResult<()> {
        settle(object, request.server.now());
        Ok(())
    }

    fn prepare_update(
        &self,
        request: &ResourceRequest,
        object: &mut Value,
        _current: &Value,
    ) -> ApiResult<()> {
        settle(object, request.server.now());
        Ok(())
    }

    fn status_metadata(&self) -> &'static [&'static str] {
        OWNERSHIP_ALONE
    }

    fn columns(&self) -> &'static [Column] {
        const { &[NAME, string("Service", Made(service)), string("Available", Made(available)), AGE] }
    }
}

/// Who serves a group: this server, or a service.
fn service(row: &Row<'_>) -> Value {
    let service = &row.object["spec"]["service"];
    if !service.is_object() {
        return json!("Local");
    }
    json!(format!("{}/{}", plain(&service["namespace"]), plain(&service["name"])))
}

fn available(row: &Row<'_>) -> Value {
    let Some(available) = condition(&row.object["status"]["conditions"], "Available") else {
        return json!("Unknown");
    };
    let (status, reason) = (plain(&available["status"]), plain(&available["reason"]));
    json!(if status == "True" || reason.is_empty() {
        status
    } else {
        format!("{status} ({reason})")
    })
}
