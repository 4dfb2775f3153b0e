//! Migrations of stored objects to the newest version: requests that a controller carries out.

use convoy_api::text::Name;
use serde_json::{Value, json};

use super::at::{At, Errors};
use super::kind::{Change, Kind, OWNERSHIP_ALONE};
use crate::column::Cell::{Made, Name as ObjectName};
use crate::column::{Column, Row, string};

pub(super) fn validate(object: &Value, old: Option<&Value>) -> Errors {
    let spec = At::root(object).get("spec");
    let mut errors = Errors::new();
    let (group, resource) = (spec.get("resource.group"), spec.get("resource.resource"));
    if resource.is_empty() {
        errors.push(resource.required("resource is required to be set"));
    }
    resource.name(Name::Dns1035Label, &mut errors);
    group.name(Name::Dns1123Subdomain, &mut errors);
    if let Some(old) = old {
        spec.immutable(&At::root(old).get("spec"), &mut errors);
    }
    errors
}

pub(super) struct Migration;

impl Kind for Migration {
    fn validate(&self, change: &Change<'_>) -> Errors {
        validate(change.object, change.old)
    }

    fn status_metadata(&self) -> &'static [&'static str] {
        OWNERSHIP_ALONE
    }

    fn columns(&self) -> &'static [Column] {
        const {
            &[
                string("Name", ObjectName),
                string("Resource", Made(resource)),
                string("Status", Made(state)),
            ]
        }
    }
}

fn resource(row: &Row<'_>) -> Value {
    let (resource, group) = (row.text("/spec/resource/resource"), row.text("/spec/resource/group"));
    json!(if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") })
}

/// The last of the conditions that hold and say how far a migration is.
fn state(row: &Row<'_>) -> Value {
    let states = ["Running", "Failed", "Succeeded"];
    let holding = row.items("/status/conditions").filter(|one| one["status"] == "True");
    let kinds = holding.filter_map(|one| one["type"].as_str());
    json!(kinds.filter(|kind| states.contains(kind)).last().unwrap_or("Unknown"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::TestServer;

    #[test]
    fn a_migration_is_asked_for_once_and_reports_its_state() {
        let test = TestServer::new();
        let path = "/apis/storagemigration.k8s.io/v1/storageversionmigrations";
        let (code, refused) = test.call("POST", path, &json!({"metadata": {"name": "m"}}));
        assert_eq!((code, &refused["reason"]), (422, &json!("Invalid")));
        let resource = json!({"group": "example.com", "resource": "widgets"});
        test.create(path, &json!({"metadata": {"name": "m"}, "spec": {"resource": resource}}));
        let other = json!({"spec": {"resource": {"resource": "others"}}});
        assert_eq!(test.call("PATCH", &format!("{path}/m"), &other).0, 422);
        let running = json!({"status": {"resourceVersion": "7", "conditions": [{"type": "Running",
            "status": "True", "reason": "R", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
        assert_eq!(test.call("PATCH", &format!("{path}/m/status"), &running).0, 200);
        let accept = ("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
        let table = test.send("GET", path, &[accept], "").json();
        assert_eq!(table["rows"][0]["cells"], json!(["m", "widgets.example.com", "Running"]));
    }
}
