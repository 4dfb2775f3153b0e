//! Defaults of admission webhooks, and of what admission policies have in common with them.

use serde_json::{Value, json};

use crate::kinds::fill::{self, Fields};

pub(super) fn validating(object: &mut Value) {
    fill::each(object.get_mut("webhooks"), webhook);
}

pub(super) fn mutating(object: &mut Value) {
    fill::each(object.get_mut("webhooks"), |hook| {
        webhook(hook);
        fill::absent(hook, "reinvocationPolicy", || json!("Never"));
    });
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

pub(in crate::kinds) fn matching(part: &mut Fields) {
    fill::absent(part, "matchPolicy", || json!("Equivalent"));
    fill::absent(part, "namespaceSelector", || json!({}));
    fill::absent(part, "objectSelector", || json!({}));
}

pub(in crate::kinds) fn scope(rule: &mut Fields) {
    fill::absent(rule, "scope", || json!("*"));
}
