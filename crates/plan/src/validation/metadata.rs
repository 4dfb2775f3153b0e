//! Rules about names, labels, annotations and owners of any object, in Kubernetes' phrases.

use convoy_api::Object;
use serde_json::Value;

use super::findings::Findings;
use crate::selector::{is_dns_label, is_dns_subdomain, is_label_value, is_qualified_name};

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
    characters, '-' or '.', and must start and end with an alphanumeric character";
pub(crate) const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric \
    characters or '-', and must start and end with an alphanumeric character";

pub(crate) fn check(findings: &mut Findings<'_>, object: &Object) {
    let name = object.name().as_str();
    if !is_dns_subdomain(name) {
        findings.invalid("metadata.name", &Value::from(name), SUBDOMAIN);
    } else if !is_dns_label(name) {
        let message = format!(
            "{name:?} is not a DNS label (at most 63 of a-z, 0-9 and '-'): pods may get cut host names"
        );
        findings.warn("metadata.name", message);
    }
    let namespace = object.namespace().as_str();
    if !namespace.is_empty() && !is_dns_label(namespace) {
        findings.invalid("metadata.namespace", &Value::from(namespace), LABEL);
    }
    labels(findings, object.metadata().get("labels"), "metadata.labels");
    annotations(findings, object.metadata().get("annotations"), "metadata.annotations");
    let controllers = object.owners().filter(|owner| owner.controller).count();
    if controllers > 1 {
        let message = "Invalid value: only one reference can have Controller set to true";
        findings.error("metadata.ownerReferences", message.to_owned());
    }
}

pub(crate) fn labels(findings: &mut Findings<'_>, labels: Option<&Value>, path: &str) {
    for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        if !is_qualified_name(key) {
            findings.invalid(path, &Value::from(key.as_str()), QUALIFIED);
        }
        if !is_label_value(value.as_str().unwrap_or_default()) {
            findings.invalid(path, value, LABEL_VALUE);
        }
    }
}

pub(crate) fn annotations(findings: &mut Findings<'_>, annotations: Option<&Value>, path: &str) {
    let mut bytes = 0;
    for (key, value) in annotations.and_then(Value::as_object).into_iter().flatten() {
        bytes += key.len() + value.as_str().map_or(0, str::len);
        if !is_qualified_name(&key.to_lowercase()) {
            findings.invalid(path, &Value::from(key.as_str()), QUALIFIED);
        }
    }
    if bytes > ANNOTATION_BYTES_MAX {
        let message = format!("Too long: may not be more than {ANNOTATION_BYTES_MAX} bytes");
        findings.error(path, message);
    }
}

/// All annotations of an object together, keys and values.
const ANNOTATION_BYTES_MAX: usize = 256 * 1024;

const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and \
    must start and end with an alphanumeric character, after an optional DNS subdomain prefix and '/'";
const LABEL_VALUE: &str = "a valid label must be an empty string or at most 63 alphanumeric \
    characters, '-', '_' or '.', and must start and end with an alphanumeric character";
