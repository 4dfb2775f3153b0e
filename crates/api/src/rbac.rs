//! Role-based access control: the requests that a rule of a role allows, and whether it covers
//! another rule.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};
use smol_str::SmolStr;

/// What a role allows: verbs on resources, or methods on paths.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rule {
    #[serde(deserialize_with = "list")]
    pub verbs: Vec<SmolStr>,
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub api_groups: Vec<SmolStr>,
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<SmolStr>,
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<SmolStr>,
    #[serde(rename = "nonResourceURLs", deserialize_with = "list")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub non_resource_urls: Vec<SmolStr>,
}

/// A request in the terms of an authorizer, as `authorizer.Attributes` of k8s.io/apiserver.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'d> {
    pub verb: &'d str,
    /// Empty: cluster-wide.
    pub namespace: &'d str,
    pub target: AccessTarget<'d>,
}

#[derive(Clone, Copy, Debug)]
pub enum AccessTarget<'d> {
    Resource { group: &'d str, resource: &'d str, subresource: &'d str, name: &'d str },
    Path(&'d str),
}

const ALL: &str = "*";

impl<'d> Attributes<'d> {
    /// A verb on a named object.
    pub fn on(
        verb: &'d str,
        group: &'d str,
        resource: &'d str,
        namespace: &'d str,
        name: &'d str,
    ) -> Self {
        Self {
            verb,
            namespace,
            target: AccessTarget::Resource { group, resource, subresource: "", name },
        }
    }
}

/// As in the message of a `Forbidden` error: the verb, the resource and the namespace.
impl fmt::Display for Attributes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.target {
            AccessTarget::Path(path) => write!(f, "{} path {path:?}", self.verb),
            AccessTarget::Resource { group, resource, subresource, .. } => {
                let slash = if subresource.is_empty() { "" } else { "/" };
                let full = format!("{resource}{slash}{subresource}");
                write!(f, "{} resource {full:?} in API group {group:?} ", self.verb)?;
                match self.namespace {
                    "" => f.write_str("at the cluster scope"),
                    namespace => write!(f, "in the namespace {namespace:?}"),
                }
            }
        }
    }
}

impl Rule {
    /// Everything there is: on resources, and on paths.
    pub fn everything() -> [Self; 2] {
        let all = || vec![SmolStr::new_static(ALL)];
        let resources =
            Self { verbs: all(), api_groups: all(), resources: all(), ..Self::default() };
        [resources, Self { verbs: all(), non_resource_urls: all(), ..Self::default() }]
    }

    pub fn allows(&self, attributes: &Attributes<'_>) -> bool {
        if !has(&self.verbs, attributes.verb) {
            return false;
        }
        match attributes.target {
            AccessTarget::Path(path) => {
                self.non_resource_urls.iter().any(|url| url_covers(url, path))
            }
            AccessTarget::Resource { group, resource, subresource, name } => {
                has(&self.api_groups, group)
                    && self.resources.iter().any(|known| resource_is(known, resource, subresource))
                    && self.has_name(name)
            }
        }
    }

    /// Requests without a name, such as create and deletecollection, are never allowed by name.
    fn has_name(&self, name: &str) -> bool {
        self.resource_names.is_empty()
            || !name.is_empty() && self.resource_names.iter().any(|known| known == name)
    }

    /// Whether this rule alone allows all that an atomic rule does.
    fn covers(&self, atom: &Self) -> bool {
        let names = self.resource_names.is_empty()
            || !atom.resource_names.is_empty()
                && all_in(&self.resource_names, &atom.resource_names);
        let resources = self.resources.iter().any(|resource| resource == ALL)
            || atom.resources.iter().all(|wanted| {
                let sub = wanted.split_once('/').map_or("", |(_, sub)| sub);
                self.resources.iter().any(|known| {
                    known == wanted
                        || !sub.is_empty() && known.strip_prefix("*/").is_some_and(|it| it == sub)
                })
            });
        let urls = atom
            .non_resource_urls
            .iter()
            .all(|wanted| self.non_resource_urls.iter().any(|known| url_covers(known, wanted)));
        let groups = atom.api_groups.iter().all(|group| has(&self.api_groups, group));
        atom.verbs.iter().all(|verb| has(&self.verbs, verb)) && groups && resources && names && urls
    }

    /// The rule as rules of one verb on one thing each.
    fn atoms(&self) -> Vec<Self> {
        let mut atoms = Vec::new();
        for verb in &self.verbs {
            let verbs = vec![verb.clone()];
            for group in &self.api_groups {
                for resource in &self.resources {
                    let atom = Self {
                        verbs: verbs.clone(),
                        api_groups: vec![group.clone()],
                        resources: vec![resource.clone()],
                        ..Self::default()
                    };
                    if self.resource_names.is_empty() {
                        atoms.push(atom);
                        continue;
                    }
                    atoms.extend(
                        self.resource_names.iter().map(|name| Self {
                            resource_names: vec![name.clone()],
                            ..atom.clone()
                        }),
                    );
                }
            }
            atoms.extend(self.non_resource_urls.iter().map(|url| Self {
                verbs: verbs.clone(),
                non_resource_urls: vec![url.clone()],
                ..Self::default()
            }));
        }
        atoms
    }
}

/// What `wanted` allows and `held` does not, in the smallest pieces; empty: nothing.
pub fn missing(held: &[Rule], wanted: &[Rule]) -> Vec<Rule> {
    let mut missing: Vec<Rule> = Vec::new();
    // A rule that is held as it stands need not be taken apart.
    for rule in wanted.iter().filter(|rule| !held.contains(rule)) {
        let atoms = rule.atoms();
        missing.extend(atoms.into_iter().filter(|atom| !held.iter().any(|rule| rule.covers(atom))));
    }
    missing
}

/// As refusals tell it.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ];
        let mut texts = Vec::new();
        for (label, list) in parts {
            if !list.is_empty() {
                let quoted: Vec<String> = list.iter().map(|one| format!("{one:?}")).collect();
                texts.push(format!("{label}:[{}]", quoted.join(" ")));
            }
        }
        write!(f, "{{{}}}", texts.join(", "))
    }
}

fn has(list: &[SmolStr], wanted: &str) -> bool {
    list.iter().any(|known| known == ALL || known == wanted)
}

fn all_in(list: &[SmolStr], wanted: &[SmolStr]) -> bool {
    wanted.iter().all(|one| list.contains(one))
}

/// `*`, `pods`, `pods/status`, `*/status`.
fn resource_is(known: &str, resource: &str, subresource: &str) -> bool {
    if known == ALL {
        return true;
    }
    match known.split_once('/') {
        None => subresource.is_empty() && known == resource,
        Some((left, right)) => {
            right == subresource && !right.is_empty() && (left == ALL || left == resource)
        }
    }
}

/// The path itself, or a beginning of it before a trailing `*`.
fn url_covers(url: &str, path: &str) -> bool {
    url == ALL || url == path || url.ends_with('*') && path.starts_with(url.trim_end_matches('*'))
}

fn list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<SmolStr>, D::Error> {
    Ok(Option::<Vec<SmolStr>>::deserialize(deserializer)?.unwrap_or_default())
}
