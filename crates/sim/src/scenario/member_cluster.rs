//! Member clusters of a scenario: their labels and how many nodes they have, by name.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Pattern, Scenario};

/// What the member clusters with a name are like.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MemberClusterRule {
    pub name: Pattern,
    /// Labels of the MemberCluster.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Number of simulated nodes; absent leaves it to other rules and to the command line.
    #[serde(default)]
    pub nodes: Option<u32>,
}

impl Scenario {
    /// The labels of a member cluster: those of all rules for it, the last one winning.
    pub fn labels_of_member(&self, name: &str) -> BTreeMap<String, String> {
        self.rules_of_member(name).flat_map(|rule| rule.labels.clone()).collect()
    }

    /// The number of nodes of a member cluster, if a rule gives one.
    pub fn nodes_of_member(&self, name: &str) -> Option<u32> {
        self.rules_of_member(name).filter_map(|rule| rule.nodes).last()
    }

    fn rules_of_member<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a MemberClusterRule> {
        self.member_clusters.iter().filter(move |rule| rule.name.matches(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_rules_for_a_member_cluster_win() {
        let scenario = Scenario::from_yaml(
            "memberClusters:
- {name: '*', labels: {env: prod, region: eu}, nodes: 2}
- {name: member-2, labels: {env: canary}}
",
        )
        .unwrap();
        let labels = |name: &str| {
            let labels = scenario.labels_of_member(name).into_iter();
            labels.map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>()
        };
        assert_eq!(labels("member-1"), ["env=prod", "region=eu"]);
        assert_eq!(labels("member-2"), ["env=canary", "region=eu"]);
        assert_eq!(scenario.nodes_of_member("member-2"), Some(2));
        assert_eq!(Scenario::default().nodes_of_member("member-2"), None);
        let refused = Scenario::from_yaml("memberClusters: [{name: a, zone: b}]").unwrap_err();
        assert!(refused.to_string().starts_with("memberClusters[0]"), "{refused}");
    }
}
