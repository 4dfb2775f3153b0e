//! Bindings of roles, webhooks and policies of admission, priority levels of requests.

use serde_json::{Value, json};

use crate::kinds::fill::{self, Fields};

const RBAC: &str = "rbac.authorization.k8s.io";

pub(in crate::kinds) fn binding(object: &mut Value) {
    let Value::Object(binding) = object else { return };
    if let Some(role) = fill::make(binding, "roleRef") {
        fill::text(role, "apiGroup", RBAC);
    }
    fill::each(binding.get_mut("subjects"), |subject| {
        if matches!(fill::given(subject, "kind"), "User" | "Group") {
            fill::text(subject, "apiGroup", RBAC);
        }
    });
}

pub(in crate::kinds) fn validating_webhooks(object: &mut Value) {
    fill::each(object.get_mut("webhooks"), webhook);
}

pub(in crate::kinds) fn mutating_webhooks(object: &mut Value) {
    fill::each(object.get_mut("webhooks"), |hook| {
        webhook(hook);
        fill::absent(hook, "reinvocationPolicy", || json!("Never"));
    });
}

pub(in crate::kinds) fn policy(object: &mut Value) {
    let Some(spec) = fill::spec(object) else { return };
    fill::absent(spec, "failurePolicy", || json!("Fail"));
    constraints(spec, "matchConstraints");
}

pub(in crate::kinds) fn policy_binding(object: &mut Value) {
    if let Some(spec) = fill::spec(object) {
        constraints(spec, "matchResources");
    }
}

fn webhook(hook: &mut Fields) {
    fill::absent(hook, "failurePolicy", || json!("Fail"));
    matching(hook);
    fill::absent(hook, "timeoutSeconds", || json!(10));
    fill::each(hook.get_mut("rules"), scope);
    let client = fill::fields(hook.get_mut("clientConfig"));
    if let Some(service) = client.and_then(|client| fill::fields(client.get_mut("service"))) {
        fill::absent(service, "port", || json!(443));
    }
}

fn matching(part: &mut Fields) {
    fill::absent(part, "matchPolicy", || json!("Equivalent"));
    fill::absent(part, "namespaceSelector", || json!({}));
    fill::absent(part, "objectSelector", || json!({}));
}

fn scope(rule: &mut Fields) {
    fill::absent(rule, "scope", || json!("*"));
}

fn constraints(spec: &mut Fields, key: &str) {
    let Some(part) = fill::fields(spec.get_mut(key)) else { return };
    matching(part);
    fill::each(part.get_mut("resourceRules"), scope);
    fill::each(part.get_mut("excludeResourceRules"), scope);
}

pub(in crate::kinds) fn priority_level(object: &mut Value) {
    let Some(spec) = fill::spec(object) else { return };
    if let Some(exempt) = fill::fields(spec.get_mut("exempt")) {
        fill::absent(exempt, "nominalConcurrencyShares", || json!(0));
        fill::absent(exempt, "lendablePercent", || json!(0));
    }
    let Some(limited) = fill::fields(spec.get_mut("limited")) else { return };
    fill::absent(limited, "nominalConcurrencyShares", || json!(30));
    fill::absent(limited, "lendablePercent", || json!(0));
    let response = fill::fields(limited.get_mut("limitResponse"));
    if let Some(queuing) = response.and_then(|given| fill::fields(given.get_mut("queuing"))) {
        fill::number(queuing, "queues", 64);
        fill::number(queuing, "handSize", 8);
        fill::number(queuing, "queueLengthLimit", 50);
    }
}
