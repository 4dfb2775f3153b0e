//! `serviceaccounts/NAME/token`: a token for a service account, bound if asked to an object
//! that it lives and dies with.

use std::sync::Arc;

use convoy_api::schema::{FieldError, Reason};
use convoy_store::Key;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use smol_str::SmolStr;

use super::account::{Claims, Named, Place, named, user_name};
use crate::ask::Ask;
use crate::form;
use crate::head::{Entry, Snapshot};
use crate::reading;
use crate::reply::Reply;
use crate::status::{Answer, Status};
use crate::surroundings::{new_uid, seconds};

const API_VERSION: &str = "authentication.k8s.io/v1";
const KIND: &str = "TokenRequest.authentication.k8s.io";

/// As long as nobody asks for another length.
const LIFETIME_SECS: i64 = 3_600;
const LIFETIME_SECS_MIN: i64 = 600;
const LIFETIME_SECS_MAX: i64 = 1 << 32;

pub(crate) fn create(ask: &Ask) -> Answer<Reply> {
    let mut request = reading::other(ask, API_VERSION, "TokenRequest")?;
    let snapshot = ask.server.store.snapshot();
    let account = find(ask, &snapshot, "serviceaccounts", ask.namespace(), &ask.target.name)?;
    check_place(ask, &request, account)?;
    let access = &ask.server.access;
    let issuer = access.issuer(&ask.cluster.name);
    let audiences = audiences(&request, &issuer);
    let lifetime = lifetime(&request)?;
    let place = place(ask, &snapshot, &request["spec"]["boundObjectRef"], account)?;
    let now = ask.server.now();
    let claims = Claims {
        aud: audiences.clone(),
        exp: now.as_second().saturating_add(lifetime),
        iat: now.as_second(),
        iss: issuer,
        jti: new_uid(&*ask.server.surroundings),
        nbf: now.as_second(),
        sub: user_name(ask.namespace(), &ask.target.name),
        place,
    };
    let token = claims.token(&access.signer);
    let token = token.ok_or_else(|| Status::internal("the token could not be signed"))?;
    request["metadata"] = json!({
        "name": ask.target.name, "namespace": ask.namespace(), "uid": account.head.uid,
        "creationTimestamp": seconds(now),
    });
    request["spec"]["audiences"] = json!(audiences);
    request["spec"]["expirationSeconds"] = json!(lifetime);
    request["status"] = json!({"token": token, "expirationTimestamp": seconds(end(now, lifetime))});
    crate::canonical::canonicalise(form::builtin(API_VERSION, "TokenRequest"), &mut request);
    Ok(Reply::Plain(201, request))
}

fn end(now: Timestamp, lifetime: i64) -> Timestamp {
    now.checked_add(SignedDuration::from_secs(lifetime)).unwrap_or(Timestamp::MAX)
}

/// The body may repeat which account it is about, but not name another.
fn check_place(ask: &Ask, request: &Value, account: &Entry) -> Answer<()> {
    let metadata = &request["metadata"];
    for (field, ours) in [("name", &*ask.target.name), ("namespace", ask.namespace())] {
        let given = metadata[field].as_str().unwrap_or_default();
        if !given.is_empty() && given != ours {
            let detail = format!("must match the service account {field} if specified");
            let path = format!("metadata.{field}");
            let error = FieldError::about(Reason::Invalid, &path, &json!(given), &detail);
            return Err(Status::invalid_thing(KIND, &ask.target.name, &[error]));
        }
    }
    let uid = metadata["uid"].as_str().unwrap_or_default();
    if !uid.is_empty() && uid != account.head.uid {
        let why = format!(
            "the UID in the token request ({uid}) does not match the UID of the service account ({})",
            account.head.uid
        );
        return Err(Status::conflict(&ask.resource, &ask.target.name, &why));
    }
    Ok(())
}

fn audiences(request: &Value, issuer: &str) -> Vec<String> {
    let given = request["spec"]["audiences"].as_array().into_iter().flatten();
    let given: Vec<String> = given.filter_map(Value::as_str).map(str::to_owned).collect();
    if given.is_empty() { vec![issuer.to_owned()] } else { given }
}

fn lifetime(request: &Value) -> Answer<i64> {
    let given = request["spec"]["expirationSeconds"].as_i64();
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
fn place(ask: &Ask, snapshot: &Snapshot, bound: &Value, account: &Entry) -> Answer<Place> {
    let mut place = Place {
        namespace: SmolStr::new(ask.namespace()),
        serviceaccount: named(account),
        ..Place::default()
    };
    if bound.is_null() {
        return Ok(place);
    }
    let text = |field: &str| bound[field].as_str().unwrap_or_default();
    let (kind, name) = (text("kind"), text("name"));
    let (plural, namespace) = match (text("apiVersion"), kind) {
        ("" | "v1", "Pod") => ("pods", ask.namespace()),
        ("" | "v1", "Secret") => ("secrets", ask.namespace()),
        ("" | "v1", "Node") => ("nodes", ""),
        (version, _) => {
            let message = format!("cannot bind token to object of type {version}, Kind={kind}");
            return Err(Status::bad_request(message));
        }
    };
    let object = find(ask, snapshot, plural, namespace, name)?;
    if !text("uid").is_empty() && text("uid") != object.head.uid {
        let why = format!(
            "the UID in the bound object reference ({}) does not match the UID in record. The object might have been deleted and then recreated",
            text("uid")
        );
        let resource = ask.registry.get("", "v1", plural).expect("a built-in resource");
        return Err(Status::conflict(resource, name, &why));
    }
    let reference = Some(named(object));
    match kind {
        "Pod" => {
            place.node = node_of(ask, snapshot, object)?;
            place.pod = reference;
        }
        "Secret" => place.secret = reference,
        _ => place.node = reference,
    }
    Ok(place)
}

/// The node that a pod runs on, if the pod runs as the account at all.
fn node_of(ask: &Ask, snapshot: &Snapshot, pod: &Entry) -> Answer<Option<Named>> {
    let object = crate::encoding::read_entry(pod);
    let account = object["spec"]["serviceAccountName"].as_str().unwrap_or_default();
    if account != ask.target.name {
        return Err(Status::bad_request(format!(
            "cannot bind token for serviceaccount {:?} to pod running with different serviceaccount name.",
            ask.target.name
        )));
    }
    let node = &pod.head.node_name;
    if node.is_empty() {
        return Ok(None);
    }
    let uid = snapshot.get(&key(ask, "nodes", "", node)).map(|node| node.head.uid.clone());
    Ok(Some(Named { name: node.clone(), uid: uid.unwrap_or_default() }))
}

fn find<'s>(
    ask: &Ask,
    snapshot: &'s Snapshot,
    plural: &str,
    namespace: &str,
    name: &str,
) -> Answer<&'s Arc<Entry>> {
    let resource = ask.registry.get("", "v1", plural).expect("a built-in resource");
    let found = snapshot.get(&key(ask, plural, namespace, name));
    found.ok_or_else(|| Status::not_found(resource, name))
}

fn key(ask: &Ask, plural: &str, namespace: &str, name: &str) -> Key {
    let resource = ask.registry.get("", "v1", plural).expect("a built-in resource");
    ask.cluster.shelf(resource).key(namespace, name)
}
