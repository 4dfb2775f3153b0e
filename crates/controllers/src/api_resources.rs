//! The API resources that a command looks at: each version of a group is asked for
//! once, all at the same time. A control loop, which lives longer, has
//! [`Discovery`](crate::discovery::Discovery).

use std::collections::BTreeSet;

use convoy_api::GroupKind;
use futures_util::future::join_all;
use kube::Client;
use serde_json::Value;

use crate::discovery::{find_resource, versions};
use crate::request::Resource;
use crate::transport::{self, TransportError};

/// The resource lists of some groups, each group's preferred version first.
#[derive(Clone, Debug, Default)]
pub(crate) struct ApiResources {
    /// The `APIGroupList` of the server.
    groups: Value,
    lists: Vec<(GroupVersion, Value)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct GroupVersion {
    group: String,
    version: String,
}

impl ApiResources {
    /// The groups of a server, and nothing of their content.
    pub(crate) async fn new(client: &Client) -> Result<Self, TransportError> {
        let response = transport::read(client, "/apis").await?;
        Ok(Self { groups: response.body, lists: Vec::new() })
    }

    /// Reads the versions of the groups of `kinds` that are not known yet.
    pub(crate) async fn extend<'k>(
        &mut self,
        client: &Client,
        kinds: impl Iterator<Item = &'k GroupKind>,
    ) -> Result<(), TransportError> {
        let groups: BTreeSet<&str> = kinds.map(|kind| kind.group.as_str()).collect();
        let known = |group: &str| self.lists.iter().any(|(known, _)| known.group == group);
        let wanted: Vec<GroupVersion> = groups
            .into_iter()
            .filter(|group| !known(group))
            .flat_map(|it| self.served(it))
            .collect();
        let answers = join_all(wanted.iter().map(|wanted| transport::read(client, wanted.path())));
        for (wanted, answer) in wanted.iter().zip(answers.await) {
            let answer = answer?;
            if answer.code == 200 {
                self.lists.push((wanted.clone(), answer.body));
            }
        }
        Ok(())
    }

    /// The versions in which the server has a group.
    fn served(&self, group: &str) -> Vec<GroupVersion> {
        if group.is_empty() {
            return vec![GroupVersion { group: String::new(), version: "v1".to_owned() }];
        }
        let groups = self.groups["groups"].as_array().into_iter().flatten();
        let found = groups.filter(|entry| entry["name"] == group).flat_map(versions);
        found.map(|version| GroupVersion { group: group.to_owned(), version }).collect()
    }

    /// The resource of a kind, in this version if the server has it; none if it has no such kind.
    pub(crate) fn find(&self, kind: &GroupKind, version: &str) -> Option<Resource> {
        let own = self.lists.iter().filter(|(list, _)| list.group == kind.group.as_str());
        let found = |wanted: bool| {
            let mut some = own.clone().filter(|(list, _)| (list.version == version) == wanted);
            some.find_map(|(list, body)| find_resource(body, kind, &list.version))
        };
        found(true).or_else(|| found(false))
    }
}

impl GroupVersion {
    fn path(&self) -> String {
        let Self { group, version } = self;
        if group.is_empty() {
            format!("/api/{version}")
        } else {
            format!("/apis/{group}/{version}")
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_kind_is_found_in_the_wanted_version_or_else_the_preferred_one() {
        let kind = GroupKind::new("x.dev", "Thing");
        let list = |version: &str| {
            let name = GroupVersion { group: "x.dev".to_owned(), version: version.to_owned() };
            (name, json!({"resources": [{"name": "things", "kind": "Thing"}]}))
        };
        let lists = vec![list("v1"), list("v1beta1")];
        let resources = ApiResources { groups: Value::Null, lists };
        let version = |wanted: &str| resources.find(&kind, wanted).map(|found| found.version);
        assert_eq!(version("").as_deref(), Some("v1"));
        assert_eq!(version("v1beta1").as_deref(), Some("v1beta1"));
        assert_eq!(resources.find(&GroupKind::new("x.dev", "Other"), ""), None);
    }
}
