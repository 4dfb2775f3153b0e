//! Requests in the terms of role-based access control.

pub(crate) use convoy_api::rbac::{AccessTarget, Attributes, Rule, missing};

use smol_str::SmolStr;

use crate::request_info::RequestInfo;

impl<'d> From<&'d RequestInfo> for Attributes<'d> {
    fn from(info: &'d RequestInfo) -> Self {
        let verb = info.verb.as_str();
        match &info.target {
            None => Self { verb, namespace: "", target: AccessTarget::Path(&info.path) },
            Some(target) => Self {
                verb,
                namespace: &target.namespace,
                target: AccessTarget::Resource {
                    group: &target.group,
                    resource: &target.resource,
                    subresource: &target.subresource,
                    name: &target.name,
                },
            },
        }
    }
}

/// `VERBS | GROUPS | RESOURCES [| NAMES]`, or `VERBS | PATHS`.
pub(crate) fn read_rule(line: &str) -> Option<Rule> {
    let words = |part: &str| -> Vec<SmolStr> {
        let words = part.split_whitespace();
        words.map(|word| SmolStr::new(if word == "core" { "" } else { word })).collect()
    };
    let parts: Vec<Vec<SmolStr>> = line.split('|').map(words).collect();
    let mut parts = parts.into_iter();
    let verbs = parts.next()?;
    let second = parts.next()?;
    let Some(resources) = parts.next() else {
        return Some(Rule { verbs, non_resource_urls: second, ..Rule::default() });
    };
    let resource_names = parts.next().unwrap_or_default();
    Some(Rule { verbs, api_groups: second, resources, resource_names, ..Rule::default() })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// `get list | core apps | pods deployments | a b`, or `get | /healthz`.
    pub(crate) fn rule(text: &str) -> Rule {
        read_rule(text).expect("a rule in the table's own form")
    }

    fn attributes<'d>(
        verb: &'d str,
        group: &'d str,
        full: &'d str,
        name: &'d str,
    ) -> Attributes<'d> {
        let (resource, subresource) = full.split_once('/').unwrap_or((full, ""));
        Attributes {
            verb,
            namespace: "",
            target: AccessTarget::Resource { group, resource, subresource, name },
        }
    }

    #[test]
    fn a_rule_allows_what_it_names() {
        let cases = [
            ("get | core | pods", ("get", "", "pods", "a"), true),
            ("get | core | pods", ("list", "", "pods", ""), false),
            ("get | core | pods", ("get", "apps", "pods", ""), false),
            ("get | core | pods", ("get", "", "pods/log", "a"), false),
            ("get | core | pods/log", ("get", "", "pods/log", "a"), true),
            ("get | core | pods/log", ("get", "", "pods", "a"), false),
            ("get | core | */log", ("get", "", "pods/log", "a"), true),
            ("get | core | */log", ("get", "", "pods/exec", "a"), false),
            ("get | core | */log", ("get", "", "pods", "a"), false),
            ("get | core | pods/*", ("get", "", "pods/log", "a"), false),
            ("* | * | *", ("delete", "x.io", "things/scale", ""), true),
            ("get | core | pods | a b", ("get", "", "pods", "b"), true),
            ("get | core | pods | a b", ("get", "", "pods", "c"), false),
            ("create | core | pods | a", ("create", "", "pods", ""), false),
            ("deletecollection | core | pods | a", ("deletecollection", "", "pods", ""), false),
            ("list | core | pods | a", ("list", "", "pods", "a"), true),
            ("get | /healthz", ("get", "", "pods", ""), false),
        ];
        for (text, (verb, group, full, name), expected) in cases {
            assert_eq!(
                rule(text).allows(&attributes(verb, group, full, name)),
                expected,
                "{text}: {full}"
            );
        }
    }

    #[test]
    fn a_rule_allows_paths() {
        let cases = [
            ("get | /healthz", "/healthz", true),
            ("get | /healthz", "/healthz/ping", false),
            ("get | /healthz/*", "/healthz/ping", true),
            ("get | /healthz/*", "/healthz", false),
            ("get | /api*", "/apis/apps", true),
            ("get | *", "/metrics", true),
            ("* | * | *", "/metrics", false),
        ];
        for (text, path, expected) in cases {
            let attributes =
                Attributes { verb: "get", namespace: "", target: AccessTarget::Path(path) };
            assert_eq!(rule(text).allows(&attributes), expected, "{text}: {path}");
        }
    }

    #[test]
    fn what_is_not_held_is_told_in_pieces() {
        let cases: [(&[&str], &str, &[&str]); 9] = [
            (&["* | * | *"], "get list | core apps | pods secrets", &[]),
            (&["get | core | pods", "list | core | pods"], "get list | core | pods", &[]),
            (&["get | core | pods"], "get list | core | pods", &["list | core | pods"]),
            (&["get | core | pods | a"], "get | core | pods", &["get | core | pods"]),
            (&["get | core | pods | a"], "get | core | pods | a b", &["get | core | pods | b"]),
            (&["get | core | */scale"], "get | core | pods/scale", &[]),
            (&["get | core | pods"], "get | core | *", &["get | core | *"]),
            (&["get | /api/*"], "get | /api/v1 /healthz", &["get | /healthz"]),
            (&["get | /api/*"], "get | *", &["get | *"]),
        ];
        for (held, wanted, expected) in cases {
            let held: Vec<Rule> = held.iter().map(|text| rule(text)).collect();
            let expected: Vec<Rule> = expected.iter().map(|text| rule(text)).collect();
            assert_eq!(missing(&held, &[rule(wanted)]), expected, "{wanted}");
        }
    }

    #[test]
    fn refusals_name_the_place() {
        assert_eq!(
            Attributes { namespace: "a", ..attributes("update", "apps", "deployments/scale", "d") }
                .to_string(),
            "update resource \"deployments/scale\" in API group \"apps\" in the namespace \"a\""
        );
        assert_eq!(
            attributes("list", "", "nodes", "").to_string(),
            "list resource \"nodes\" in API group \"\" at the cluster scope"
        );
        assert_eq!(
            rule("get | core | pods | x").to_string(),
            r#"{APIGroups:[""], Resources:["pods"], ResourceNames:["x"], Verbs:["get"]}"#
        );
    }
}
