//! How one manifest is applied and watched, from the entries of `manifestConfigs` that match it.

use convoy_api::Object;
use convoy_api::object::member::{field, list, text};
use serde_json::Value;

use super::manifest::Item;

/// The merged entries: the first that has feedback rules, condition rules or a strategy gives
/// each of these.
#[derive(Clone, Debug)]
pub(crate) struct Config<'w> {
    pub(crate) feedback: &'w [Value],
    pub(crate) conditions: &'w [Value],
    pub(crate) strategy: Strategy<'w>,
    /// Whether feedback is reported at once, and not only now and then.
    pub(crate) is_watched: bool,
}

/// How an object is brought in line with its manifest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Strategy<'w> {
    /// Created or overwritten.
    Update,
    /// Created; from then on only its owners are looked after.
    CreateOnly,
    /// By the API server, which knows who set which field.
    ServerSideApply(&'w Value),
    /// Only looked at.
    ReadOnly,
}

pub(crate) fn config<'w>(work: &'w Object, item: &Item<'_>) -> Config<'w> {
    let mut config =
        Config { feedback: &[], conditions: &[], strategy: Strategy::Update, is_watched: false };
    let mut has_strategy = false;
    let entries = list(work.spec(), "manifestConfigs").iter();
    for entry in entries.filter(|entry| is_about(field(entry, "resourceIdentifier"), item)) {
        if config.feedback.is_empty() {
            config.feedback = list(entry, "feedbackRules");
        }
        if config.conditions.is_empty() {
            config.conditions = list(entry, "conditionRules");
        }
        let strategy = field(entry, "updateStrategy");
        if !has_strategy && strategy.is_object() {
            has_strategy = true;
            config.strategy = match text(strategy, "type") {
                "CreateOnly" => Strategy::CreateOnly,
                "ReadOnly" => Strategy::ReadOnly,
                "ServerSideApply" => Strategy::ServerSideApply(field(strategy, "serverSideApply")),
                _ => Strategy::Update,
            };
        }
        config.is_watched = text(entry, "feedbackScrapeType") == "Watch";
    }
    config
}

fn is_about(identifier: &Value, item: &Item<'_>) -> bool {
    let meta = &item.identifier;
    text(identifier, "group") == meta.kind.group
        && text(identifier, "resource") == item.resource
        && matches(text(identifier, "namespace"), &meta.namespace)
        && matches(text(identifier, "name"), &meta.name)
}

/// Whether a text matches a pattern, in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = text.find(part) else { return false };
        text = &text[at + part.len()..];
    }
    text.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text, expected) in [
            ("web", "web", true),
            ("web", "web-1", false),
            ("*", "", true),
            ("web-*", "web-1", true),
            ("web-*", "web", false),
            ("*-db", "shop-db", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("a*a", "a", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
