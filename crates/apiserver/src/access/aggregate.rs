//! Cluster roles that are the sum of others, by label. Their rules are computed here, at once
//! with every change of a cluster role, so nobody ever sees them out of date.

use std::collections::BTreeMap;

use serde_json::Value;
use smol_str::SmolStr;

use super::index::{Index, Role};
use super::rule::Rule;

/// Whether a cluster role is the sum of others.
pub(crate) fn is_sum(role: &Value) -> bool {
    !role["aggregationRule"].is_null()
}

/// The sums whose rules are not what their parts make them.
pub(crate) fn changed_sums(index: &Index) -> Vec<(SmolStr, Vec<Rule>)> {
    let roles: BTreeMap<&SmolStr, &Role> =
        index.cluster_roles().map(|(name, role)| (name, &**role)).collect();
    let sums = sums(&roles);
    sums.into_iter().filter(|(name, rules)| roles[name].rules != *rules).collect()
}

/// What each sum consists of. Sums of sums settle after as many rounds as they are deep.
pub(crate) fn sums(roles: &BTreeMap<&SmolStr, &Role>) -> BTreeMap<SmolStr, Vec<Rule>> {
    let aggregating =
        roles.iter().filter_map(|(name, role)| Some((*name, role.selectors.as_ref()?)));
    let aggregating: Vec<_> = aggregating.collect();
    let current = aggregating.iter().map(|(name, _)| ((*name).clone(), roles[name].rules.clone()));
    let mut sums: BTreeMap<SmolStr, Vec<Rule>> = current.collect();
    for _ in 0..=aggregating.len() {
        let mut next = sums.clone();
        for (name, selectors) in &aggregating {
            let mut total: Vec<Rule> = Vec::new();
            for (part, role) in roles.iter().filter(|(part, _)| *part != name) {
                if selectors.iter().any(|selector| selector.matches(&role.labels)) {
                    let rules = sums.get(*part).unwrap_or(&role.rules);
                    let new: Vec<Rule> =
                        rules.iter().filter(|rule| !total.contains(rule)).cloned().collect();
                    total.extend(new);
                }
            }
            next.insert((*name).clone(), total);
        }
        if next == sums {
            break;
        }
        sums = next;
    }
    sums
}
