//! The `serviceaccounts/NAME/token` subresource: issues a token for a service account, optionally
//! bound to the lifetime of an object.

use std::sync::Arc;

use convoy_api::schema::{FieldError, Reason};
use convoy_store::Key;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use smol_str::SmolStr;

use crate::access::account::{Claims, KubernetesClaims, Named, named, user_name};
use crate::form;
use crate::handler_response::HandlerResponse;
use crate::object_meta::{Entry, Snapshot};
use crate::reading;
use crate::resource_request::ResourceRequest;
use crate::status::{ApiResult, Status};
use crate::surroundings::{new_uid, seconds};

const API_VERSION: &str = "authentication.k8s.io/v1";
const KIND: &str = "TokenRequest.authentication.k8s.io";

/// The default lifetime of a token.
const LIFETIME_SECS: i64 = 3_600;
const LIFETIME_SECS_MIN: i64 = 600;
const LIFETIME_SECS_MAX: i64 = 1 << 32;

pub(crate) fn create(request: &ResourceRequest) -> ApiResult<HandlerResponse> {
    let mut token_request = reading::other(request, API_VERSION, "TokenRequest")?;
    let snapshot = request.server.store.snapshot();
    let account =
        find(request, &snapshot, "serviceaccounts", request.namespace(), &request.target.name)?;
    check_account(request, &token_request, account)?;
    let access = &request.server.access;
    let issuer = access.issuer(&request.cluster.name);
    let audiences = audiences(&token_request, &issuer);
    let lifetime = lifetime(&token_request)?;
    let kubernetes = claims(request, &snapshot, &token_request["spec"]["boundObjectRef"], account)?;
    let now = request.server.now();
    let claims = Claims {
        aud: audiences.clone(),
        exp: now.as_second().saturating_add(lifetime),
        iat: now.as_second(),
        iss: issuer,
        jti: new_uid(&*request.server.surroundings),
        nbf: now.as_second(),
        sub: user_name(request.namespace(), &request.target.name),
        kubernetes,
    };
    let token = claims.token(&access.signer);
    let token = token.ok_or_else(|| Status::internal("the token could not be signed"))?;
    token_request["metadata"] = json!({
        "name": request.target.name, "namespace": request.namespace(), "uid": account.meta.uid,
        "creationTimestamp": seconds(now),
    });
    token_request["spec"]["audiences"] = json!(audiences);
    token_request["spec"]["expirationSeconds"] = json!(lifetime);
    token_request["status"] =
        json!({"token": token, "expirationTimestamp": seconds(end(now, lifetime))});
    crate::canonical::canonicalise(form::builtin(API_VERSION, "TokenRequest"), &mut token_request);
    Ok(HandlerResponse::Plain(201, token_request))
}

fn end(now: Timestamp, lifetime: i64) -> Timestamp {
    now.checked_add(SignedDuration::from_secs(lifetime)).unwrap_or(Timestamp::MAX)
}

/// The body may repeat which account it is about, but not name another.
fn check_account(
    request: &ResourceRequest,
    token_request: &Value,
    account: &Entry,
) -> ApiResult<()> {
    let metadata = &token_request["metadata"];
    for (field, ours) in [("name", &*request.target.name), ("namespace", request.namespace())] {
        let given = metadata[field].as_str().unwrap_or_default();
        if !given.is_empty() && given != ours {
            let detail = format!("must match the service account {field} if specified");
            let path = format!("metadata.{field}");
            let error = FieldError::about(Reason::Invalid, &path, &json!(given), &detail);
            return Err(Status::invalid_thing(KIND, &request.target.name, &[error]));
        }
    }
    let uid = metadata["uid"].as_str().unwrap_or_default();
    if !uid.is_empty() && uid != account.meta.uid {
        let why = format!(
            "the UID in the token request ({uid}) does not match the UID of the service account ({})",
            account.meta.uid
        );
        return Err(Status::conflict(&request.resource, &request.target.name, &why));
    }
    Ok(())
}

fn audiences(token_request: &Value, issuer: &str) -> Vec<String> {
    let given = token_request["spec"]["audiences"].as_array().into_iter().flatten();
    let given: Vec<String> = given.filter_map(Value::as_str).map(str::to_owned).collect();
    if given.is_empty() { vec![issuer.to_owned()] } else { given }
}

fn lifetime(token_request: &Value) -> ApiResult<i64> {
    let given = token_request["spec"]["expirationSeconds"].as_i64();
    let lifetime = given.unwrap_or(LIFETIME_SECS);
    let detail = if lifetime < LIFETIME_SECS_MIN {
        "may not specify a duration less than 10 minutes"
    } else if lifetime > LIFETIME_SECS_MAX {
        "may not specify a duration larger than 2^32 seconds"
    } else {
        return Ok(lifetime);
    };
    let path = "spec.expirationSeconds";
    let error = FieldError::about(Reason::Invalid, path, &json!(lifetime), detail);
    Err(Status::invalid_thing(KIND, "", &[error]))
}

/// The account, and what the token is bound to.
fn claims(
    request: &ResourceRequest,
    snapshot: &Snapshot,
    bound: &Value,
    account: &Entry,
) -> ApiResult<KubernetesClaims> {
    let mut kubernetes = KubernetesClaims {
        namespace: SmolStr::new(request.namespace()),
        serviceaccount: named(account),
        ..KubernetesClaims::default()
    };
    if bound.is_null() {
        return Ok(kubernetes);
    }
    let text = |field: &str| bound[field].as_str().unwrap_or_default();
    let (kind, name) = (text("kind"), text("name"));
    let (plural, namespace) = match (text("apiVersion"), kind) {
        ("" | "v1", "Pod") => ("pods", request.namespace()),
        ("" | "v1", "Secret") => ("secrets", request.namespace()),
        ("" | "v1", "Node") => ("nodes", ""),
        (version, _) => {
            let message = format!("cannot bind token to object of type {version}, Kind={kind}");
            return Err(Status::bad_request(message));
        }
    };
    let object = find(request, snapshot, plural, namespace, name)?;
    if !text("uid").is_empty() && text("uid") != object.meta.uid {
        let why = format!(
            "the UID in the bound object reference ({}) does not match the UID in record. The object might have been deleted and then recreated",
            text("uid")
        );
        let resource = request.registry.get("", "v1", plural).expect("a built-in resource");
        return Err(Status::conflict(resource, name, &why));
    }
    let reference = Some(named(object));
    match kind {
        "Pod" => {
            kubernetes.node = node_of(request, snapshot, object)?;
            kubernetes.pod = reference;
        }
        "Secret" => kubernetes.secret = reference,
        _ => kubernetes.node = reference,
    }
    Ok(kubernetes)
}

/// The node that a pod runs on, if the pod runs as the account at all.
fn node_of(
    request: &ResourceRequest,
    snapshot: &Snapshot,
    pod: &Entry,
) -> ApiResult<Option<Named>> {
    let object = crate::encoding::read_entry(pod);
    let account = object["spec"]["serviceAccountName"].as_str().unwrap_or_default();
    if account != request.target.name {
        return Err(Status::bad_request(format!(
            "cannot bind token for serviceaccount {:?} to pod running with different serviceaccount name.",
            request.target.name
        )));
    }
    let node = &pod.meta.node_name;
    if node.is_empty() {
        return Ok(None);
    }
    let uid = snapshot.get(&key(request, "nodes", "", node)).map(|node| node.meta.uid.clone());
    Ok(Some(Named { name: node.clone(), uid: uid.unwrap_or_default() }))
}

fn find<'s>(
    request: &ResourceRequest,
    snapshot: &'s Snapshot,
    plural: &str,
    namespace: &str,
    name: &str,
) -> ApiResult<&'s Arc<Entry>> {
    let resource = request.registry.get("", "v1", plural).expect("a built-in resource");
    let found = snapshot.get(&key(request, plural, namespace, name));
    found.ok_or_else(|| Status::not_found(resource, name))
}

fn key(request: &ResourceRequest, plural: &str, namespace: &str, name: &str) -> Key {
    let resource = request.registry.get("", "v1", plural).expect("a built-in resource");
    request.cluster.shelf(resource).key(namespace, name)
}
