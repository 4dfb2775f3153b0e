//! Slices: each decision group as `PlacementDecision` objects of at most a hundred clusters.

use convoy_api::ocm::names::CLUSTERS_PER_DECISION;
use smol_str::SmolStr;

use super::group::Group;

/// One `PlacementDecision` as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slice<'w> {
    /// Name of the object.
    pub(crate) name: String,
    pub(crate) group: usize,
    pub(crate) group_name: SmolStr,
    pub(crate) clusters: Vec<&'w str>,
}

/// Cuts every group into slices. Slices never mix groups, and their numbers run through.
pub(crate) fn slices<'w>(placement: &str, groups: &[Group<'w>]) -> Vec<Slice<'w>> {
    let mut slices = Vec::new();
    for (index, group) in groups.iter().enumerate() {
        let mut cut: Vec<&[&'w str]> = group.clusters.chunks(CLUSTERS_PER_DECISION).collect();
        if cut.is_empty() {
            cut.push(&[]);
        }
        for clusters in cut {
            slices.push(Slice {
                name: format!("{placement}-decision-{}", slices.len() + 1),
                group: index,
                group_name: group.name.clone(),
                clusters: clusters.to_vec(),
            });
        }
    }
    slices
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_10_10_150_and_140_need_six_slices() {
        let names: Vec<String> = (0..150).map(|number| format!("c{number:03}")).collect();
        let group = |size: usize| Group {
            name: SmolStr::default(),
            clusters: names.iter().take(size).map(String::as_str).collect(),
        };
        let slices = slices("p", &[group(10), group(10), group(150), group(140), group(0)]);
        let found: Vec<(usize, usize)> =
            slices.iter().map(|s| (s.group, s.clusters.len())).collect();
        assert_eq!(found, [(0, 10), (1, 10), (2, 100), (2, 50), (3, 100), (3, 40), (4, 0)]);
        assert_eq!(slices[6].name, "p-decision-7");
    }
}
