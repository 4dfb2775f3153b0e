//! Webhooks as configurations describe them, and which requests they are asked about.

use convoy_api::cel::{Program, Scope};
use convoy_plan::selector::Selector;
use serde_json::Value;

use super::Operation;
use super::call::Client;
use crate::ask::Ask;

/// One webhook of a configuration.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "the choices of upstream, each on its own")]
pub(super) struct Hook {
    pub name: String,
    pub client: Client,
    rules: Vec<Rule>,
    /// Asked about the versions that its rules name, not about others of the same resource.
    is_exact: bool,
    pub ignores_failure: bool,
    pub is_reinvoked: bool,
    pub timeout_seconds: u64,
    pub has_side_effects: bool,
    namespace_selector: Selector,
    object_selector: Selector,
    conditions: Vec<Condition>,
}

#[derive(Debug)]
struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    resources: Vec<String>,
    scope: String,
}

#[derive(Debug)]
struct Condition {
    name: String,
    program: Result<Program, String>,
}

/// Whether a webhook is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Match {
    Yes,
    No,
    /// A condition could not be told, and the webhook does not want that ignored.
    Unknown(String),
}

/// What a request is about, in the terms of webhooks.
#[derive(Debug)]
pub(super) struct Subject<'s> {
    pub ask: &'s Ask,
    pub operation: Operation,
    pub object: Option<&'s Value>,
    pub old: Option<&'s Value>,
    /// The request as webhooks and conditions see it.
    pub request: &'s Value,
}

impl Hook {
    /// The webhooks of a configuration, in order.
    pub(super) fn of(configuration: &Value) -> Vec<Self> {
        let hooks = configuration["webhooks"].as_array().into_iter().flatten();
        hooks.filter_map(Self::read).collect()
    }

    fn read(hook: &Value) -> Option<Self> {
        let selector = |field: &str| Selector::from_value(&hook[field]).ok();
        let conditions = hook["matchConditions"].as_array().into_iter().flatten();
        let rules = hook["rules"].as_array().into_iter().flatten();
        Some(Self {
            name: hook["name"].as_str()?.to_owned(),
            client: Client::new(&hook["clientConfig"]),
            rules: rules.map(Rule::read).collect(),
            is_exact: hook["matchPolicy"] == "Exact",
            ignores_failure: hook["failurePolicy"] == "Ignore",
            is_reinvoked: hook["reinvocationPolicy"] == "IfNeeded",
            timeout_seconds: hook["timeoutSeconds"].as_u64().unwrap_or(10).clamp(1, 30),
            has_side_effects: !matches!(
                hook["sideEffects"].as_str(),
                Some("None" | "NoneOnDryRun")
            ),
            namespace_selector: selector("namespaceSelector")?,
            object_selector: selector("objectSelector")?,
            conditions: conditions.map(Condition::read).collect(),
        })
    }

    pub(super) fn matches(&self, subject: &Subject<'_>) -> Match {
        let ask = subject.ask;
        let versions = if self.is_exact {
            vec![ask.resource.version.as_str()]
        } else {
            ask.registry.versions(&ask.resource.group)
        };
        let mut rules = self.rules.iter();
        let by_rules = rules.any(|rule| rule.matches(ask, subject.operation, &versions));
        if !by_rules || !self.selects_namespace(subject) || !self.selects_object(subject) {
            return Match::No;
        }
        let mut unknown = None;
        for condition in &self.conditions {
            match condition.holds(subject) {
                Ok(true) => {}
                Ok(false) => return Match::No,
                Err(why) => unknown = Some(why),
            }
        }
        match unknown {
            None => Match::Yes,
            Some(_) if self.ignores_failure => Match::No,
            Some(why) => Match::Unknown(why),
        }
    }

    fn selects_namespace(&self, subject: &Subject<'_>) -> bool {
        if self.namespace_selector.is_empty() {
            return true;
        }
        let ask = subject.ask;
        if ask.resource.is("", "namespaces") {
            let object = subject.object.or(subject.old);
            return object.is_some_and(|object| selects(&self.namespace_selector, object));
        }
        if ask.namespace().is_empty() {
            return true;
        }
        let Some(namespaces) = ask.registry.get("", "v1", "namespaces") else { return false };
        let key = ask.cluster.shelf(namespaces).key("", ask.namespace());
        let snapshot = ask.server.store.snapshot();
        let entry = snapshot.get(&key);
        entry.is_some_and(|entry| {
            self.namespace_selector.matches_with(|label| entry.head.label(label))
        })
    }

    fn selects_object(&self, subject: &Subject<'_>) -> bool {
        if self.object_selector.is_empty() {
            return true;
        }
        let mut objects = [subject.object, subject.old].into_iter().flatten();
        objects.any(|object| selects(&self.object_selector, object))
    }
}

fn selects(selector: &Selector, object: &Value) -> bool {
    selector.matches_with(|label| object["metadata"]["labels"][label].as_str())
}

impl Rule {
    fn read(rule: &Value) -> Self {
        let texts = |field: &str| -> Vec<String> {
            let list = rule[field].as_array().into_iter().flatten();
            list.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Self {
            operations: texts("operations"),
            groups: texts("apiGroups"),
            versions: texts("apiVersions"),
            resources: texts("resources"),
            scope: rule["scope"].as_str().unwrap_or("*").to_owned(),
        }
    }

    /// `versions` are those under which the request may be known: they differ by their name
    /// alone.
    fn matches(&self, ask: &Ask, operation: Operation, versions: &[&str]) -> bool {
        let has = |list: &[String], wanted: &str| {
            list.iter().any(|known| known == "*" || known == wanted)
        };
        let resource = &ask.resource;
        let version = versions.iter().any(|version| has(&self.versions, version));
        let scope = match self.scope.as_str() {
            "Namespaced" => resource.namespaced,
            "Cluster" => !resource.namespaced,
            _ => true,
        };
        let resource_matches = self
            .resources
            .iter()
            .any(|pattern| resource_matches(pattern, &resource.plural, &ask.target.subresource));
        has(&self.operations, operation.word())
            && has(&self.groups, &resource.group)
            && version
            && scope
            && resource_matches
    }
}

/// `pods`, `pods/status`, `pods/*`, `*/status`, `*`, `*/*`.
fn resource_matches(pattern: &str, plural: &str, subresource: &str) -> bool {
    let (wanted, part) = pattern.split_once('/').unwrap_or((pattern, ""));
    let whole = wanted == "*" || wanted == plural;
    let sub = match part {
        "*" => true,
        part => part == subresource,
    };
    whole && sub
}

impl Condition {
    fn read(condition: &Value) -> Self {
        let expression = condition["expression"].as_str().unwrap_or_default();
        Self {
            name: condition["name"].as_str().unwrap_or_default().to_owned(),
            program: Program::compile(expression).map_err(|error| error.to_string()),
        }
    }

    fn holds(&self, subject: &Subject<'_>) -> Result<bool, String> {
        let program = self.program.as_ref().map_err(Clone::clone)?;
        let scope = Scope::new()
            .variable("object", subject.object.unwrap_or(&Value::Null))
            .variable("oldObject", subject.old.unwrap_or(&Value::Null))
            .variable("request", subject.request);
        program.test(&scope).map_err(|error| format!("{}: {error}", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_matched_with_their_parts() {
        for (pattern, plural, part, expected) in [
            ("pods", "pods", "", true),
            ("pods", "pods", "status", false),
            ("pods/status", "pods", "status", true),
            ("pods/*", "pods", "status", true),
            ("pods/*", "pods", "", true),
            ("*", "nodes", "", true),
            ("*", "nodes", "status", false),
            ("*/*", "nodes", "status", true),
            ("*/scale", "nodes", "status", false),
        ] {
            assert_eq!(
                resource_matches(pattern, plural, part),
                expected,
                "{pattern} {plural}/{part}"
            );
        }
    }
}
