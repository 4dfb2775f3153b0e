//! The verb, resource and name of a request, from its method, path and query.

use std::fmt;

use smol_str::SmolStr;

use crate::query::Query;

/// What a request does with a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
    Proxy,
    /// Another method, in lower case, on a path that names no resource; empty if one is named.
    Method(SmolStr),
}

/// A request in the terms of authorization and the audit log, as `RequestInfo` of
/// k8s.io/apiserver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestInfo {
    /// The logical cluster; empty for the first one.
    pub cluster: SmolStr,
    /// The path without the cluster's prefix.
    pub path: String,
    pub verb: Verb,
    /// Absent for paths such as `/healthz`.
    pub target: Option<Target>,
}

/// The resource that a path names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    pub group: SmolStr,
    pub version: SmolStr,
    pub namespace: SmolStr,
    pub resource: SmolStr,
    pub subresource: SmolStr,
    pub name: SmolStr,
    /// What follows a sub-resource: the path of a proxy.
    pub rest: String,
}

impl Default for Verb {
    fn default() -> Self {
        Self::Method(SmolStr::default())
    }
}

impl Verb {
    /// As rules of access and the audit log spell it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Proxy => "proxy",
            Self::Method(name) => name,
        }
    }

    /// On a path that names no resource.
    fn of_path(method: &str) -> Self {
        match &*method.to_ascii_lowercase() {
            "get" => Self::Get,
            "patch" => Self::Patch,
            "delete" => Self::Delete,
            other => Self::Method(SmolStr::new(other)),
        }
    }

    /// On a resource.
    fn of_resource(method: &str) -> Self {
        match method {
            "POST" => Self::Create,
            "GET" | "HEAD" => Self::Get,
            "PUT" => Self::Update,
            "PATCH" => Self::Patch,
            "DELETE" => Self::Delete,
            _ => Self::default(),
        }
    }

    /// Whether nothing is changed by it.
    pub fn reads(&self) -> bool {
        match self {
            Self::Get | Self::List | Self::Watch => true,
            Self::Method(name) => name == "head",
            _ => false,
        }
    }

    /// Whether it is about many objects.
    pub fn is_of_many(&self) -> bool {
        matches!(self, Self::List | Self::Watch | Self::DeleteCollection)
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl RequestInfo {
    /// Reads method, (percent-decoded) path and query as an API server does.
    pub fn read(method: &str, path: &str, query: &Query) -> Self {
        let (cluster, path) = split_cluster(path);
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let mut info = Self {
            cluster: SmolStr::new(cluster),
            path: path.to_owned(),
            verb: Verb::of_path(method),
            target: None,
        };
        let Some((group, version, rest)) = split_group(&segments) else {
            return info;
        };
        let (verb, rest) = read_verb(method, rest);
        let mut target = read_target(rest);
        target.group = SmolStr::new(group);
        target.version = SmolStr::new(version);
        info.verb = match verb {
            Verb::Get if target.name.is_empty() && query.flag("watch") => Verb::Watch,
            Verb::Get if target.name.is_empty() => Verb::List,
            Verb::Delete if target.name.is_empty() => Verb::DeleteCollection,
            verb => verb,
        };
        if target.name.is_empty() && matches!(info.verb, Verb::List | Verb::Watch) {
            target.name = SmolStr::new(query.required_name().unwrap_or_default());
        }
        info.target = Some(target);
        info
    }

    pub fn is_long_running(&self) -> bool {
        let long = ["log", "exec", "attach", "portforward", "proxy"];
        self.verb == Verb::Watch
            || self.target.as_ref().is_some_and(|target| long.contains(&&*target.subresource))
    }
}

/// The logical cluster that a path names, and the path inside it.
pub fn split_cluster(path: &str) -> (&str, &str) {
    let Some(rest) = path.strip_prefix("/clusters/") else {
        return ("", path);
    };
    match rest.find('/') {
        Some(end) => (&rest[..end], &rest[end..]),
        None => (rest, "/"),
    }
}

/// Group, version and what follows; none for paths that name no resource.
fn split_group<'p, 's>(segments: &'s [&'p str]) -> Option<(&'p str, &'p str, &'s [&'p str])> {
    match segments {
        ["api", version, rest @ ..] if !rest.is_empty() => Some(("", version, rest)),
        ["apis", group, version, rest @ ..] if !rest.is_empty() => Some((group, version, rest)),
        _ => None,
    }
}

fn read_verb<'s, 'p>(method: &str, segments: &'s [&'p str]) -> (Verb, &'s [&'p str]) {
    match segments.split_first() {
        Some((&"watch", rest)) => (Verb::Watch, rest),
        Some((&"proxy", rest)) => (Verb::Proxy, rest),
        _ => (Verb::of_resource(method), segments),
    }
}

fn read_target(segments: &[&str]) -> Target {
    let mut target = Target::default();
    let mut rest = segments;
    if let ["namespaces", namespace, following @ ..] = segments {
        target.namespace = SmolStr::new(namespace);
        if following.first().is_some_and(|next| !matches!(*next, "status" | "finalize")) {
            rest = following;
        }
    }
    target.resource = SmolStr::new(rest.first().unwrap_or(&""));
    target.name = SmolStr::new(rest.get(1).unwrap_or(&""));
    target.subresource = SmolStr::new(rest.get(2).unwrap_or(&""));
    target.rest = rest.get(3..).unwrap_or_default().join("/");
    target
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(method: &str, path: &str, query: &str) -> (String, Target) {
        let info = RequestInfo::read(method, path, &Query::parse(query));
        (info.verb.to_string(), info.target.unwrap_or_default())
    }

    #[test]
    fn paths_name_resources() {
        let cases = [
            ("GET", "/api/v1/pods", "", "list", ["", "v1", "", "pods", "", ""]),
            ("GET", "/api/v1/pods", "watch=True", "watch", ["", "v1", "", "pods", "", ""]),
            ("GET", "/api/v1/watch/pods", "", "watch", ["", "v1", "", "pods", "", ""]),
            ("POST", "/api/v1/namespaces/a/pods", "", "create", ["", "v1", "a", "pods", "", ""]),
            (
                "PUT",
                "/apis/apps/v1/namespaces/a/deployments/d/scale",
                "",
                "update",
                ["apps", "v1", "a", "deployments", "d", "scale"],
            ),
            ("GET", "/api/v1/namespaces/a", "", "get", ["", "v1", "a", "namespaces", "a", ""]),
            (
                "PUT",
                "/api/v1/namespaces/a/finalize",
                "",
                "update",
                ["", "v1", "a", "namespaces", "a", "finalize"],
            ),
            (
                "DELETE",
                "/api/v1/namespaces/a/pods",
                "",
                "deletecollection",
                ["", "v1", "a", "pods", "", ""],
            ),
            (
                "GET",
                "/api/v1/nodes",
                "fieldSelector=metadata.name%3Dn1",
                "list",
                ["", "v1", "", "nodes", "n1", ""],
            ),
        ];
        for (method, path, query, verb, [group, version, namespace, resource, name, sub]) in cases {
            let (found, target) = read(method, path, query);
            assert_eq!(found, verb, "{path}");
            let parts = [&target.group, &target.version, &target.namespace, &target.resource];
            assert_eq!(parts, [group, version, namespace, resource], "{path}");
            assert_eq!([&target.name, &target.subresource], [name, sub], "{path}");
        }
    }

    #[test]
    fn other_paths_are_asked_for_by_method() {
        for path in ["/healthz", "/apis/apps/v1", "/api/v1", "/"] {
            let info = RequestInfo::read("GET", path, &Query::default());
            assert_eq!((info.verb.as_str(), info.target), ("get", None), "{path}");
        }
    }

    #[test]
    fn a_prefix_names_the_logical_cluster() {
        let info = RequestInfo::read("GET", "/clusters/east/api/v1/nodes", &Query::default());
        assert_eq!((&*info.cluster, &*info.path), ("east", "/api/v1/nodes"));
        assert_eq!(split_cluster("/clusters/east"), ("east", "/"));
    }
}
