//! Evictions: deletions of pods that respect disruption budgets.

use std::sync::Arc;

use convoy_store::{Expect, Write};
use serde_json::{Value, json};

use super::{conditions, done, plain};
use crate::convert::stored_form;
use crate::handler_response::HandlerResponse;
use crate::kinds::selects;
use crate::object_meta::Entry;
use crate::object_name;
use crate::resource_request::ResourceRequest;
use crate::status::{ApiResult, Status};
use crate::surroundings::seconds;
use crate::verb::delete::{DeleteOptions, delete_named};
use crate::write::together;
use crate::{metadata, reading};

/// Disruptions that nobody has confirmed yet, beyond which a budget takes no more.
const DISRUPTED_MAX: usize = 2000;

const VIOLATES: &str = "Cannot evict pod as it would violate the pod's disruption budget.";
const CAUSE: &str = "DisruptionBudget";

/// What a budget says to an eviction.
enum Verdict {
    /// Nobody minds.
    Free,
    /// Allowed for the pod as it is now: unhealthy.
    FreeAtThisVersion,
    /// Allowed, and counted: the budget as it has to become.
    Counted(Value),
}

pub(super) async fn create(request: &ResourceRequest) -> ApiResult<HandlerResponse> {
    let mut eviction = reading::other(request, "policy/v1", "Eviction")?;
    let name = &request.target.name;
    if metadata::text(&eviction, "name") != *name {
        return Err(Status::bad_request("name in URL does not match name in Eviction object"));
    }
    object_name::settle(request, &mut eviction)?;
    let mut options = DeleteOptions::from_value(&eviction["deleteOptions"])?;
    options.dry_run |= request.query.dry_run("CreateOptions.meta.k8s.io")?;
    let pods = plain(request, "", "pods", name);
    let budgets = plain(request, "policy", "poddisruptionbudgets", "");
    loop {
        let snapshot = request.server.store.snapshot();
        let Some(entry) = snapshot.get(&pods.key(name)) else {
            return Err(Status::not_found(&pods.resource, name));
        };
        let pod = pods.read(entry);
        let standing = if is_exempt(&pod) { Vec::new() } else { budgets_of(&budgets, &pod) };
        if standing.len() > 1 {
            return Ok(several_budgets());
        }
        let verdict = match standing.first() {
            None => Verdict::Free,
            Some(budget) => judge(request, &pod, &budgets.read(budget))?,
        };
        let budget = standing.first().map(|budget| &**budget);
        if carry_out(&pods, &budgets, (entry, &pod), (verdict, budget), &options).await? {
            return Ok(done());
        }
    }
}

/// Pods that serve nobody are not protected.
fn is_exempt(pod: &Value) -> bool {
    let phase = pod["status"]["phase"].as_str().unwrap_or_default();
    matches!(phase, "Pending" | "Succeeded" | "Failed")
        || !metadata::text(pod, "deletionTimestamp").is_empty()
}

fn budgets_of(budgets: &ResourceRequest, pod: &Value) -> Vec<Arc<Entry>> {
    let labels = &pod["metadata"]["labels"];
    let shelf = budgets.cluster.shelf(&budgets.resource);
    let snapshot = budgets.server.store.snapshot();
    let in_namespace = snapshot.list_namespace(&shelf, &budgets.target.namespace);
    let protecting = in_namespace.filter(|entry| {
        let selector = &budgets.read(entry)["spec"]["selector"];
        selector.is_object() && selects(selector, labels)
    });
    protecting.cloned().collect()
}

/// A success in form, since that is how the real one answers; only its code tells.
fn several_budgets() -> HandlerResponse {
    let message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "code": 500,
    });
    HandlerResponse::Plain(500, status)
}

fn judge(request: &ResourceRequest, pod: &Value, budget: &Value) -> ApiResult<Verdict> {
    let status = &budget["status"];
    let count = |field: &str| status[field].as_i64().unwrap_or(0);
    if !is_ready(pod) {
        let always = budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow";
        let enough =
            count("currentHealthy") >= count("desiredHealthy") && count("desiredHealthy") > 0;
        if always || enough {
            return Ok(Verdict::FreeAtThisVersion);
        }
    }
    let name = metadata::text(budget, "name");
    let generation = budget["metadata"]["generation"].as_i64().unwrap_or(0);
    if count("observedGeneration") < generation {
        return Err(unsettled(name));
    }
    let budgets = request.registry.get("policy", "v1", "poddisruptionbudgets");
    let budgets = budgets.expect("a built-in resource");
    if count("disruptionsAllowed") < 0 {
        let why = "pdb disruptions allowed is negative";
        return Err(Status::forbidden(budgets, name, why));
    }
    if status["disruptedPods"].as_object().is_some_and(|pods| pods.len() > DISRUPTED_MAX) {
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(Status::forbidden(budgets, name, why));
    }
    if count("disruptionsAllowed") == 0 {
        let why = exhausted(name, status);
        return Err(Status::too_many_requests(VIOLATES, 0).with_cause(CAUSE, &why, ""));
    }
    let mut counted = budget.clone();
    let left = count("disruptionsAllowed") - 1;
    counted["status"]["disruptionsAllowed"] = json!(left);
    let now = json!(seconds(request.server.now()));
    if !counted["status"]["disruptedPods"].is_object() {
        counted["status"]["disruptedPods"] = json!({});
    }
    counted["status"]["disruptedPods"][metadata::text(pod, "name")] = now;
    if left == 0 {
        let observed = counted["metadata"]["generation"].clone();
        let condition = json!({"type": "DisruptionAllowed", "status": "False",
            "reason": "InsufficientPods", "message": "", "observedGeneration": observed});
        conditions::set(request, &mut counted, &condition);
    }
    Ok(Verdict::Counted(counted))
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|one| one["type"] == "Ready" && one["status"] == "True")
}

fn unsettled(name: &str) -> Box<Status> {
    let why = format!("The disruption budget {name} is still being processed by the server.");
    Status::too_many_requests(VIOLATES, 10).with_cause(CAUSE, &why, "")
}

/// Why a budget that is used up allows nothing.
fn exhausted(name: &str, status: &Value) -> String {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let condition = conditions.into_iter().find(|one| {
        one["type"] == "DisruptionAllowed"
            && one["status"] == "False"
            && one["message"].as_str().is_some_and(|message| !message.is_empty())
    });
    let text = |field: &str| condition.and_then(|one| one[field].as_str()).unwrap_or_default();
    let (healthy, desired) = (
        status["currentHealthy"].as_i64().unwrap_or(0),
        status["desiredHealthy"].as_i64().unwrap_or(0),
    );
    if text("reason") == "SyncFailed" {
        let message = text("message");
        format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
        )
    } else if healthy <= desired {
        format!(
            "The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
        )
    } else if condition.is_some() {
        let (reason, message) = (text("reason"), text("message"));
        format!(
            "The disruption budget {name} does not allow evicting pods currently ({reason}): {message}"
        )
    } else {
        format!("The disruption budget {name} does not allow evicting pods currently")
    }
}

/// Counts the disruption, says on the pod why it goes, and deletes it. Not done if somebody was
/// faster with the pod or its budget.
async fn carry_out(
    pods: &ResourceRequest,
    budgets: &ResourceRequest,
    (entry, pod): (&Arc<Entry>, &Value),
    (verdict, budget): (Verdict, Option<&Entry>),
    options: &DeleteOptions,
) -> ApiResult<bool> {
    let name = metadata::text(pod, "name");
    check_preconditions(pods, name, pod, options)?;
    let mut options = options.clone();
    if !options.dry_run {
        let mut marked = pod.clone();
        let reason = json!({"type": "DisruptionTarget", "status": "True",
            "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"});
        conditions::set(pods, &mut marked, &reason);
        let write = |request: &ResourceRequest, entry: &Entry, mut object: Value| {
            crate::canonical::canonicalise(crate::form::shape_of(&request.resource), &mut object);
            let value = stored_form(&request.resource, &object);
            Write::put(entry.key.clone(), Expect::At(entry.modified), value)
        };
        let counted = match (verdict, budget) {
            (Verdict::Counted(counted), Some(budget)) => vec![write(budgets, budget, counted)],
            _ => Vec::new(),
        };
        let marking = together(write(pods, entry, marked), counted);
        let Some(entries) = pods.server.commit(marking).await? else { return Ok(false) };
        if options.resource_version.is_some() {
            options.resource_version = entries.first().map(|entry| entry.modified.0.to_string());
        }
    }
    // Somebody else may have finished what this began; the pod is gone as it was asked for.
    match delete_named(pods, name, &options).await {
        Ok(_) => Ok(true),
        Err(status) if status.code == 404 && !options.dry_run => Ok(true),
        Err(status) => Err(status),
    }
}

fn check_preconditions(
    pods: &ResourceRequest,
    name: &str,
    pod: &Value,
    options: &DeleteOptions,
) -> ApiResult<()> {
    let checks = [
        ("UID", "uid", &options.uid),
        ("ResourceVersion", "resourceVersion", &options.resource_version),
    ];
    for (shown, field, wanted) in checks {
        let actual = metadata::text(pod, field);
        if let Some(wanted) = wanted.as_ref().filter(|wanted| *wanted != actual) {
            let why = format!(
                "the {shown} in the precondition ({wanted}) does not match the {shown} in record ({actual}). The object might have been deleted and then recreated"
            );
            return Err(Status::conflict(&pods.resource, name, &why));
        }
    }
    Ok(())
}
