//! Label selectors and labels as text.

use serde_json::Value;

use super::text::plain;

/// `app=web,tier in (a,b),!old`, sorted by key.
pub(crate) fn text(selector: &Value) -> String {
    let mut terms: Vec<(String, String)> = Vec::new();
    for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
        terms.push((key.clone(), format!("{key}={}", plain(value))));
    }
    for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
        let key = plain(&expression["key"]);
        let mut values: Vec<String> =
            expression["values"].as_array().into_iter().flatten().map(plain).collect();
        values.sort();
        let values = values.join(",");
        let term = match expression["operator"].as_str() {
            Some("In") => format!("{key} in ({values})"),
            Some("NotIn") => format!("{key} notin ({values})"),
            Some("Exists") => key.clone(),
            Some("DoesNotExist") => format!("!{key}"),
            _ => "<error>".to_owned(),
        };
        terms.push((key, term));
    }
    terms.sort_by(|(a, _), (b, _)| a.cmp(b));
    terms.into_iter().map(|(_, term)| term).collect::<Vec<_>>().join(",")
}

/// `a=1,b=2`, or that there are none.
pub(crate) fn labels(map: Option<&Value>) -> String {
    let fields = map.and_then(Value::as_object).into_iter().flatten();
    let mut terms: Vec<String> =
        fields.map(|(key, value)| format!("{key}={}", plain(value))).collect();
    terms.sort();
    if terms.is_empty() { "<none>".to_owned() } else { terms.join(",") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_are_written_as_queries_are() {
        let selector = json!({
            "matchLabels": {"b": "2", "a": "1"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["y", "x"]},
                {"key": "env", "operator": "NotIn", "values": ["dev"]},
                {"key": "c", "operator": "Exists"},
                {"key": "old", "operator": "DoesNotExist"},
            ],
        });
        assert_eq!(text(&selector), "a=1,b=2,c,env notin (dev),!old,tier in (x,y)");
        assert_eq!(labels(None), "<none>");
    }
}
