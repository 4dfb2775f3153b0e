//! Member clusters: their taints.

use std::collections::BTreeSet;

use convoy_api::Object;
use serde_json::json;

use crate::diagnostic::Diagnostic;
use crate::dialect::fleet::read::placement::{list, text};
use crate::dialect::fleet::validate::QUALIFIED_NAME;
use crate::selector::{is_label_value, is_qualified_name};

pub(crate) fn validate(object: &Object) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, taint) in list(object.spec(), "taints").iter().enumerate() {
        let at = |field: &str| format!("spec.taints[{index}]{field}");
        let [key, value, effect] = ["key", "value", "effect"].map(|field| text(taint, field));
        if !is_qualified_name(key) {
            let right = QUALIFIED_NAME;
            found.push(Diagnostic::invalid(object, at(".key"), &json!(key), right));
        }
        if !is_label_value(value) {
            let right = "want a label value: at most 63 letters, digits, '-', '_' or '.'";
            found.push(Diagnostic::invalid(object, at(".value"), &json!(value), right));
        }
        if !seen.insert((key, value, effect)) {
            let message = format!("Duplicate value: {taint}: taints must be unique");
            found.push(Diagnostic::error(object, at(""), message));
        }
    }
    found
}
