//! Admission: what a dialect says about objects before they are stored, in the form of the
//! webhooks that clients of its API know.
//!
//! An answer is a function of the review and of the objects that stand beside the one under
//! review. A server of webhooks, or an API server that has the rules built in, only carries both.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use convoy_api::Object;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::dialect::Dialect;
pub use crate::webhook::{
    Circumstances, Guarded, GuardedKinds, NeededRight, Operation, Request, Role, Served, Verdict,
    Webhook,
};
use crate::world::World;

/// How long an API server waits for an answer.
const TIMEOUT_SECS: u32 = 10;

/// What `webhook` answers to an `AdmissionReview`; none if it is no review. `world` holds the
/// objects of the kinds that the webhook looks at.
#[must_use = "an answer is of use to whoever asked"]
pub fn answer(
    dialect: &dyn Dialect,
    webhook: &Webhook,
    world: &World,
    review: &Value,
    circumstances: Circumstances<'_>,
) -> Option<Value> {
    let request = review.get("request").filter(|request| request.is_object())?;
    let uid = request.get("uid").filter(|uid| uid.is_string())?;
    let verdict = if let Role::Guards(_) = webhook.role {
        dialect.guard(world, request)
    } else {
        let asked = asked(webhook, request, circumstances);
        asked.map_or_else(Verdict::allowed, |asked| dialect.admit(webhook, world, &asked))
    };
    Some(json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
        "response": response(&verdict, uid)}))
}

/// Why the webhooks of a dialect would refuse to create `object` beside the others of `world`; none
/// if they would not. Rights of users are not looked at.
pub fn refusal(
    dialect: &dyn Dialect,
    world: &World,
    object: &Object,
    now: Timestamp,
) -> Option<String> {
    let concerned = |webhook: &&Webhook| {
        webhook.about.kind == *object.kind()
            && webhook.about.version == object.version()
            && webhook.operations.contains(&Operation::Create)
    };
    let (operation, name) = (Operation::Create, object.name().as_str());
    let circumstances = Circumstances { now, ..Circumstances::default() };
    let mut raw = object.raw().clone();
    // As in a server, those that fill in come before those that refuse.
    for mutates in [true, false] {
        let roles = dialect.webhooks().iter().filter(concerned);
        for webhook in roles.filter(|it| match it.role {
            Role::Mutates => mutates,
            Role::Validates => !mutates,
            Role::Warns | Role::Guards(_) => false,
        }) {
            let object = Some(&raw);
            let request = Request { operation, name, object, old: None, user: "", circumstances };
            match dialect.admit(webhook, world, &request) {
                Verdict::Refused(message) | Verdict::Invalid(message) => return Some(message),
                Verdict::Allowed { changes, .. } => raw = changed(raw, changes),
            }
        }
    }
    None
}

/// The object with the operations of a JSON patch carried out.
fn changed(object: Value, changes: Vec<Value>) -> Value {
    let Ok(patch) = serde_json::from_value::<json_patch::Patch>(Value::Array(changes)) else {
        return object;
    };
    let mut changed = object.clone();
    match json_patch::patch(&mut changed, &patch) {
        Ok(()) => changed,
        Err(_) => object,
    }
}

/// The rights that the user of a review needs, and that whoever carries it has to ask for.
pub fn rights(dialect: &dyn Dialect, webhook: &Webhook, review: &Value) -> Vec<NeededRight> {
    let request = review.get("request").and_then(|it| asked(webhook, it, Circumstances::default()));
    request.map_or_else(Vec::new, |request| dialect.rights(webhook, &request))
}

/// The `SubjectAccessReview` that asks whether the user of a review has a right.
pub fn access_review(right: &NeededRight, review: &Value) -> Value {
    let NeededRight { verb, group, resource, subresource, namespace, name } = right;
    let mut spec = Map::new();
    let attributes = json!({"verb": verb, "group": group, "resource": resource,
        "subresource": subresource, "namespace": namespace, "name": name});
    spec.insert("resourceAttributes".into(), attributes);
    for (part, from) in
        [("user", "username"), ("uid", "uid"), ("groups", "groups"), ("extra", "extra")]
    {
        let value = review.pointer(&format!("/request/userInfo/{from}"));
        spec.extend(value.map(|value| (part.to_owned(), value.clone())));
    }
    json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec})
}

/// What is asked. What is done to a part of the object, and what the webhook is not registered
/// for, is not its matter.
fn asked<'r>(
    webhook: &Webhook,
    request: &'r Value,
    circumstances: Circumstances<'r>,
) -> Option<Request<'r>> {
    let part = request.get("subResource").and_then(Value::as_str).unwrap_or_default();
    let asked = self::request(request, circumstances)?;
    (part.is_empty() && webhook.operations.contains(&asked.operation)).then_some(asked)
}

/// The objects that register `webhooks`, by configuration in the order of the first webhook of
/// each. `client` says how an API server reaches one.
pub fn configurations(webhooks: &[Webhook], client: impl Fn(&Webhook) -> Value) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    for webhook in webhooks {
        let entry = registration(webhook, client(webhook));
        let of_same =
            |one: &&mut Value| one["metadata"]["name"].as_str() == Some(webhook.configuration);
        match all.iter_mut().find(of_same) {
            Some(known) => {
                if let Some(list) = known["webhooks"].as_array_mut() {
                    list.push(entry);
                }
            }
            None => all.push(json!({
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": webhook.role.configuration_kind(),
                "metadata": {"name": webhook.configuration},
                "webhooks": [entry],
            })),
        }
    }
    all
}

/// A webhook that cannot be asked refuses: nothing unchecked gets in. One that only warns does
/// not, and neither does a guard, which would lock out whoever repairs it.
fn registration(webhook: &Webhook, client: Value) -> Value {
    let Webhook { name, about, operations, role, .. } = webhook;
    let fails_open = matches!(role, Role::Warns | Role::Guards(_));
    let rules = match role {
        Role::Guards(guarded) => guarded.kinds.iter().map(guard_rule).collect(),
        _ => vec![json!({"apiGroups": [about.kind.group], "apiVersions": [about.version],
            "operations": words(operations), "resources": [about.plural], "scope": "*"})],
    };
    let mut registration = json!({
        "name": name,
        "clientConfig": client,
        "rules": rules,
        "failurePolicy": if fails_open { "Ignore" } else { "Fail" },
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT_SECS,
        "admissionReviewVersions": ["v1"],
    });
    if let Role::Guards(Guarded { namespaces: Some((label, values)), .. }) = role {
        let requirement = json!({"key": label, "operator": "In", "values": values});
        registration["namespaceSelector"] = json!({"matchExpressions": [requirement]});
    }
    registration
}

fn guard_rule(kinds: &GuardedKinds) -> Value {
    let GuardedKinds { operations, group, version, resources, scope } = kinds;
    json!({"apiGroups": [group], "apiVersions": [version], "operations": words(operations),
        "resources": resources, "scope": scope})
}

fn words(operations: &[Operation]) -> Vec<&'static str> {
    operations.iter().map(|operation| operation.word()).collect()
}

/// Reads the request of an `AdmissionReview`; none if it is about something else than
/// objects.
fn request<'r>(request: &'r Value, circumstances: Circumstances<'r>) -> Option<Request<'r>> {
    Some(Request {
        operation: operation(request.get("operation")?.as_str()?)?,
        name: request.get("name").and_then(Value::as_str).unwrap_or_default(),
        object: request.get("object").filter(|object| object.is_object()),
        old: request.get("oldObject").filter(|object| object.is_object()),
        user: request.pointer("/userInfo/username").and_then(Value::as_str).unwrap_or_default(),
        circumstances,
    })
}

fn operation(word: &str) -> Option<Operation> {
    let all = [Operation::Create, Operation::Update, Operation::Delete];
    all.into_iter().find(|one| one.word() == word)
}

/// As a webhook answers: `uid` is the request's.
fn response(verdict: &Verdict, uid: &Value) -> Value {
    match verdict {
        Verdict::Refused(message) => json!({"uid": uid, "allowed": false,
            "status": {"code": 403, "reason": "Forbidden", "message": message}}),
        Verdict::Invalid(message) => json!({"uid": uid, "allowed": false,
            "status": {"code": 400, "reason": "BadRequest", "message": message}}),
        Verdict::Allowed { changes, warnings } => {
            let mut response = json!({"uid": uid, "allowed": true});
            if !changes.is_empty() {
                response["patchType"] = json!("JSONPatch");
                response["patch"] = json!(STANDARD.encode(json!(changes).to_string()));
            }
            if !warnings.is_empty() {
                response["warnings"] = json!(warnings);
            }
            response
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::skyhook::Skyhook;

    fn webhooks() -> &'static [Webhook] {
        Skyhook::new().webhooks()
    }

    #[test]
    fn webhooks_of_one_configuration_are_registered_together() {
        let all = configurations(webhooks(), |webhook| json!({"url": webhook.path}));
        let told: Vec<(&str, &str, usize)> = all
            .iter()
            .map(|one| {
                let list = one["webhooks"].as_array().map_or(0, Vec::len);
                (one["kind"].as_str().unwrap(), one["metadata"]["name"].as_str().unwrap(), list)
            })
            .collect();
        assert_eq!(
            told,
            [
                ("MutatingWebhookConfiguration", "skyhook-operator-mutating-webhook", 2),
                ("ValidatingWebhookConfiguration", "skyhook-operator-validating-webhook", 2)
            ]
        );
        let policies = &all[1]["webhooks"][1];
        assert_eq!(policies["name"], "validate-deploymentpolicy.nvidia.com");
        assert_eq!(policies["rules"][0]["operations"], json!(["CREATE", "UPDATE", "DELETE"]));
        assert_eq!(policies["failurePolicy"], "Fail");
    }

    #[test]
    fn a_right_is_asked_for_in_the_words_of_an_authorizer() {
        let right = NeededRight {
            verb: "create",
            group: "example.com",
            resource: "sets",
            subresource: "join",
            namespace: String::new(),
            name: "a".to_owned(),
        };
        let who = json!({"username": "ann", "groups": ["ops"]});
        let asked = access_review(&right, &json!({"request": {"userInfo": who}}));
        assert_eq!(
            asked["spec"],
            json!({"user": "ann", "groups": ["ops"], "resourceAttributes": {"verb": "create",
                "group": "example.com", "resource": "sets", "subresource": "join",
                "namespace": "", "name": "a"}})
        );
    }

    #[test]
    fn what_is_no_review_gets_no_answer() {
        let ask = |review: Value| {
            let (dialect, world) = (Skyhook::new(), World::new());
            answer(&dialect, &webhooks()[0], &world, &review, Circumstances::default())
        };
        assert_eq!(ask(json!({})), None);
        assert_eq!(ask(json!({"request": {"operation": "CREATE"}})), None);
        // What a webhook is not registered for passes.
        for request in [
            json!({"uid": "u", "operation": "CONNECT"}),
            json!({"uid": "u", "operation": "UPDATE", "subResource": "status", "object": {}}),
        ] {
            let answer = ask(json!({"request": request})).unwrap();
            assert_eq!(answer["response"], json!({"uid": "u", "allowed": true}));
        }
    }
}
