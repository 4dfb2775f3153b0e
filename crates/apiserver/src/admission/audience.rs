//! The requests that a webhook or an admission policy applies to.

use std::sync::Arc;

use convoy_plan::selector::Selector;
use serde_json::Value;

use super::Operation;
use super::review::{admission_request, name};
use crate::kinds;
use crate::options::Options;
use crate::registry::Resource;
use crate::resource_request::ResourceRequest;

/// Requests by resource, namespace and labels.
#[derive(Debug)]
pub(super) struct Audience {
    rules: Vec<Rule>,
    /// What these match is left out all the same.
    excluded: Vec<Rule>,
    /// Asked about the versions that its rules name, not about others of the same resource.
    is_exact: bool,
    namespace_selector: Selector,
    object_selector: Selector,
}

#[derive(Debug)]
struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    resources: Vec<String>,
    /// Empty: whatever the name.
    names: Vec<String>,
    scope: String,
}

/// What a request is about, in the terms of webhooks and policies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subject<'s> {
    pub request: &'s ResourceRequest,
    pub operation: Operation,
    pub object: Option<&'s Value>,
    pub old: Option<&'s Value>,
    /// The request as webhooks and conditions see it.
    pub admission_request: &'s Value,
}

impl<'s> Subject<'s> {
    /// The same request about another state of the object.
    pub(super) fn showing<'o>(&self, object: &'o Value) -> Subject<'o>
    where
        's: 'o,
    {
        Subject { object: Some(object), ..*self }
    }
}

/// A write that admission may change: what it is about apart from the object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Write<'w> {
    pub request: &'w ResourceRequest,
    pub operation: Operation,
    pub old: Option<&'w Value>,
    pub options: &'w Options,
}

impl<'w> Write<'w> {
    /// The write of this object, as webhooks and conditions see it.
    pub(super) fn admission_request(&self, object: &Value) -> Value {
        let dry_run = self.options.dry_run;
        admission_request(self.request, self.operation, Some(object), self.old, dry_run)
    }

    pub(super) fn subject<'s>(&self, object: &'s Value, admission_request: &'s Value) -> Subject<'s>
    where
        'w: 's,
    {
        let Self { request, operation, old, .. } = *self;
        Subject { request, operation, object: Some(object), old, admission_request }
    }
}

impl Audience {
    /// As webhooks describe it.
    pub(super) fn of_hook(hook: &Value) -> Option<Self> {
        Self::read(hook, &hook["rules"], &Value::Null)
    }

    /// As policies describe it, and their bindings.
    pub(super) fn of_policy(constraints: &Value) -> Option<Self> {
        Self::read(constraints, &constraints["resourceRules"], &constraints["excludeResourceRules"])
    }

    /// None where a selector cannot be read, which validation refuses.
    fn read(from: &Value, rules: &Value, excluded: &Value) -> Option<Self> {
        let selector = |field: &str| Selector::from_value(&from[field]).ok();
        let list = |rules: &Value| -> Vec<Rule> {
            rules.as_array().into_iter().flatten().map(Rule::read).collect()
        };
        Some(Self {
            rules: list(rules),
            excluded: list(excluded),
            is_exact: from["matchPolicy"] == "Exact",
            namespace_selector: selector("namespaceSelector")?,
            object_selector: selector("objectSelector")?,
        })
    }

    /// Whether no resource is named.
    pub(super) fn names_nothing(&self) -> bool {
        self.rules.is_empty()
    }

    pub(super) fn includes(&self, subject: &Subject<'_>) -> bool {
        self.row(subject).is_some()
    }

    /// The resource of the request as its rules name it: in its own version, or else in another
    /// one of the same objects. `None`: it does not apply.
    pub(super) fn row(&self, subject: &Subject<'_>) -> Option<Arc<Resource>> {
        let request = subject.request;
        let has =
            |rules: &[Rule], row: &Resource| rules.iter().any(|rule| rule.matches(subject, row));
        let others = if self.is_exact {
            Vec::new()
        } else {
            request.registry.other_versions(&request.resource)
        };
        let mut rows = std::iter::once(&request.resource).chain(others);
        let is_excluded = || rows.clone().any(|row| has(&self.excluded, row));
        if !self.excluded.is_empty() && is_excluded() {
            return None;
        }
        let row = rows.find(|row| has(&self.rules, row))?;
        self.selects(subject).then(|| Arc::clone(row))
    }

    /// Whether its selectors select the request.
    pub(super) fn selects(&self, subject: &Subject<'_>) -> bool {
        self.selects_namespace(subject) && self.selects_object(subject)
    }

    fn selects_namespace(&self, subject: &Subject<'_>) -> bool {
        if self.namespace_selector.is_empty() {
            return true;
        }
        let request = subject.request;
        if kinds::of(&request.resource).is_namespace() {
            let object = subject.object.or(subject.old);
            return object.is_some_and(|object| selects(&self.namespace_selector, object));
        }
        if request.namespace().is_empty() {
            return true;
        }
        let Some(namespaces) = request.registry.get("", "v1", "namespaces") else { return false };
        let key = request.cluster.shelf(namespaces).key("", request.namespace());
        let snapshot = request.server.store.snapshot();
        let entry = snapshot.get(&key);
        entry.is_some_and(|entry| {
            self.namespace_selector.matches_with(|label| entry.meta.label(label))
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
            names: texts("resourceNames"),
            scope: rule["scope"].as_str().unwrap_or("*").to_owned(),
        }
    }

    /// Whether it names a request on a resource, which may be known by another version.
    fn matches(&self, subject: &Subject<'_>, resource: &Resource) -> bool {
        let request = subject.request;
        let has = |list: &[String], wanted: &str| {
            list.iter().any(|known| known == "*" || known == wanted)
        };
        let scope = match self.scope.as_str() {
            "Namespaced" => resource.namespaced,
            "Cluster" => !resource.namespaced,
            _ => true,
        };
        let resource_matches = self.resources.iter().any(|pattern| {
            resource_matches(pattern, &resource.plural, &request.target.subresource)
        });
        has(&self.operations, subject.operation.word())
            && has(&self.groups, &resource.group)
            && has(&self.versions, &resource.version)
            && scope
            && resource_matches
            && (self.names.is_empty() || has(&self.names, name(request, subject.object)))
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
