//! How messages print selectors: as Go prints the structs, because clients of upstream's webhooks
//! look for these texts.

use std::fmt::Write;

use serde_json::Value;

use crate::dialect::fleet::read::placement::{field, list, text};

/// A selector of one resource by name.
pub(crate) fn resource(term: &Value) -> String {
    format!("{{{}}}", identity(term))
}

/// A selector of resources by name or labels.
pub(crate) fn resource_term(term: &Value) -> String {
    let labels = label_selector(field(term, "labelSelector"));
    let scope = text(term, "selectionScope");
    format!("{{{} LabelSelector:{labels} SelectionScope:{scope}}}", identity(term))
}

fn identity(term: &Value) -> String {
    let [group, version, kind, name] =
        ["group", "version", "kind", "name"].map(|name| text(term, name));
    format!("Group:{group} Version:{version} Kind:{kind} Name:{name}")
}

pub(crate) fn label_selector(selector: &Value) -> String {
    if selector.is_null() {
        return "nil".to_owned();
    }
    let mut printed = "&LabelSelector{MatchLabels:map[string]string{".to_owned();
    for (key, value) in field(selector, "matchLabels").as_object().into_iter().flatten() {
        // Writing to a string cannot fail.
        _ = write!(printed, "{key}: {},", value.as_str().unwrap_or_default());
    }
    printed.push_str("},MatchExpressions:[]LabelSelectorRequirement{");
    for expression in list(selector, "matchExpressions") {
        let [key, operator] = ["key", "operator"].map(|name| text(expression, name));
        let values: Vec<&str> =
            list(expression, "values").iter().filter_map(Value::as_str).collect();
        _ = write!(
            printed,
            "LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{}],}},",
            values.join(" ")
        );
    }
    printed.push_str("},}");
    printed
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_read_as_go_prints_them() {
        let term = json!({"group": "apps", "version": "v1", "kind": "Deployment", "name": "web"});
        assert_eq!(resource(&term), "{Group:apps Version:v1 Kind:Deployment Name:web}");
        assert_eq!(
            resource_term(&term),
            "{Group:apps Version:v1 Kind:Deployment Name:web LabelSelector:nil SelectionScope:}"
        );
        let selector = json!({"matchLabels": {"a": "b"},
            "matchExpressions": [{"key": "c", "operator": "In"}]});
        assert_eq!(
            label_selector(&selector),
            "&LabelSelector{MatchLabels:map[string]string{a: b,},MatchExpressions:\
             []LabelSelectorRequirement{LabelSelectorRequirement{Key:c,Operator:In,Values:[],},},}"
        );
    }
}
