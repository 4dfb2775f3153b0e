//! The order in which the decisions of a placement are rewritten.
//!
//! A process may end between any two writes, and its successor knows nothing but what is written
//! by then. At every moment each cluster is in a decision, and the groups of one name are in the
//! order that they had before, so that the successor keeps them in it.

use std::collections::BTreeSet;

use crate::dialect::ocm::read::decisions::GroupLabel;

/// One decision that is rewritten.
#[derive(Clone, Debug, Default)]
pub(crate) struct Change<'a> {
    /// The group that its labels name now, and the one that it belongs to in the end.
    pub(crate) labelled: GroupLabel<'a>,
    pub(crate) group: GroupLabel<'a>,
    /// What it lists now.
    pub(crate) before: Vec<Listed<'a>>,
    /// What it lists in the end.
    pub(crate) after: Vec<&'a str>,
}

/// A cluster that a decision lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listed<'a> {
    pub(crate) cluster: &'a str,
    /// The group that it counts in while it moves; otherwise the labels of the decision say so.
    pub(crate) moves_to: Option<GroupLabel<'a>>,
}

/// One write to a decision, which is named by its place in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Rewrite<'a> {
    /// The clusters that it lists.
    Clusters(usize, Vec<Listed<'a>>),
    /// The labels with number and name of its group.
    Labels(usize),
}

/// The writes that bring the decisions where they should be. `surplus` are the clusters of the
/// decisions that go afterwards.
///
/// While a cluster is in two groups, the later counts. Where groups move back, their clusters are
/// therefore taken in from the last on; where they move forward, they are let go from the first
/// on. So everybody is taken in first, from the back, and let go after that, from the front:
///
/// | now         | then        | clusters written                              |
/// |-------------|-------------|-----------------------------------------------|
/// | a           | a b         | 0: a b                                        |
/// | a, b        | b           | 0: a b*; 0: b (1 goes afterwards)             |
/// | a, b        | n, a, b     | 2: b*; 1: b a*; 0: n; 1: a; 2: b              |
/// | a, b        | b, a        | 1: b a*; 0: a b*; 0: b; 1: a                  |
///
/// The star is a cluster that is moving. One that nobody has yet is added last: until then it would
/// take the room of another.
pub(crate) fn order<'a>(changes: &[Change<'a>], surplus: &BTreeSet<&'a str>) -> Vec<Rewrite<'a>> {
    let present = changes.iter().flat_map(|change| &change.before).map(|it| it.cluster);
    let known: BTreeSet<&str> = present.chain(surplus.iter().copied()).collect();
    let mut written: Vec<Vec<Listed<'a>>> =
        changes.iter().map(|change| change.before.clone()).collect();
    let mut rewrites = Vec::new();
    let mut write = |at: usize, clusters: Vec<Listed<'a>>, rewrites: &mut Vec<Rewrite<'a>>| {
        if written[at] != clusters {
            written[at].clone_from(&clusters);
            rewrites.push(Rewrite::Clusters(at, clusters));
        }
    };
    for (at, change) in changes.iter().enumerate().rev() {
        write(at, change.widened(&known), &mut rewrites);
    }
    for (at, change) in changes.iter().enumerate() {
        if change.is_relabelled() {
            if !change.keeps_all() {
                write(at, change.narrowed(&known), &mut rewrites);
            }
            rewrites.push(Rewrite::Labels(at));
        }
        write(at, change.settled(), &mut rewrites);
    }
    rewrites
}

impl<'a> Change<'a> {
    /// Whether number or name of its group change.
    pub(crate) fn is_relabelled(&self) -> bool {
        self.labelled != self.group
    }

    fn moving(&self, cluster: &'a str) -> Listed<'a> {
        Listed { cluster, moves_to: Some(self.group) }
    }

    /// Everybody who is there, and those who come from other decisions.
    fn widened(&self, known: &BTreeSet<&str>) -> Vec<Listed<'a>> {
        let after: BTreeSet<&str> = self.after.iter().copied().collect();
        let before: BTreeSet<&str> = self.before.iter().map(|it| it.cluster).collect();
        let present = self.before.iter().map(|it| {
            let (index, _) = it.moves_to.unwrap_or(self.labelled);
            let goes_back = after.contains(it.cluster) && index < self.group.0;
            if goes_back { self.moving(it.cluster) } else { *it }
        });
        let comes = |cluster: &&str| known.contains(cluster) && !before.contains(cluster);
        let coming = self.after.iter().copied().filter(comes);
        present.chain(coming.map(|cluster| self.moving(cluster))).collect()
    }

    /// Whether nobody comes or goes.
    fn keeps_all(&self) -> bool {
        self.before.iter().map(|it| it.cluster).eq(self.after.iter().copied())
    }

    /// Those who are there in the end and have been somewhere before.
    fn narrowed(&self, known: &BTreeSet<&str>) -> Vec<Listed<'a>> {
        let kept = self.after.iter().copied().filter(|cluster| known.contains(cluster));
        kept.map(|cluster| self.moving(cluster)).collect()
    }

    fn settled(&self) -> Vec<Listed<'a>> {
        self.after.iter().map(|cluster| Listed { cluster, moves_to: None }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decisions of one cluster each; a star marks one that moves.
    fn shown(now: &[&'static str], then: &[&'static str]) -> Vec<String> {
        let words = |text: &'static str| text.split_whitespace().collect::<Vec<&str>>();
        let listed = |cluster| Listed { cluster, moves_to: None };
        let change = |(index, after): (i64, &&'static str)| Change {
            labelled: (index, ""),
            group: (index, ""),
            before: now
                .get(usize::try_from(index).expect("small"))
                .map_or_else(Vec::new, |it| words(it).into_iter().map(listed).collect()),
            after: words(after),
        };
        let changes: Vec<Change<'_>> = (0..).zip(then).map(change).collect();
        let surplus = now.iter().skip(then.len()).flat_map(|text| words(text)).collect();
        let name = |it: &Listed<'_>| match it.moves_to {
            Some(_) => format!("{}*", it.cluster),
            None => it.cluster.to_owned(),
        };
        let text = |rewrite| match rewrite {
            Rewrite::Clusters(at, clusters) => {
                let names: Vec<String> = clusters.iter().map(name).collect();
                format!("{at}: {}", names.join(" "))
            }
            Rewrite::Labels(at) => format!("{at}"),
        };
        order(&changes, &surplus).into_iter().map(text).collect()
    }

    #[test]
    fn a_cluster_that_moves_is_taken_in_before_it_is_let_go() {
        let cases: [(&[&str], &[&str], &[&str]); 6] = [
            (&["a", "b"], &["a", "b"], &[]),
            (&["a"], &["a b"], &["0: a b"]),
            (&["a", "b"], &["b"], &["0: a b*", "0: b"]),
            (&["a b", ""], &["a", "b"], &["1: b*", "0: a", "1: b"]),
            (&["a", "b"], &["n", "a", "b"], &["2: b*", "1: b a*", "0: n", "1: a", "2: b"]),
            (&["a", "b"], &["b", "a"], &["1: b a*", "0: a b*", "0: b", "1: a"]),
        ];
        for (now, then, expected) in cases {
            assert_eq!(shown(now, then), expected, "{now:?} to {then:?}");
        }
    }

    #[test]
    fn a_decision_of_another_group_lists_who_stays_before_it_is_labelled() {
        let listed = |cluster| Listed { cluster, moves_to: None };
        let moving = |cluster| Listed { cluster, moves_to: Some((0, "")) };
        let change = Change {
            labelled: (0, "canary"),
            group: (0, ""),
            before: vec![listed("a")],
            after: vec!["b"],
        };
        let surplus = BTreeSet::from(["b"]);
        let expected = [
            Rewrite::Clusters(0, vec![listed("a"), moving("b")]),
            Rewrite::Clusters(0, vec![moving("b")]),
            Rewrite::Labels(0),
            Rewrite::Clusters(0, vec![listed("b")]),
        ];
        assert_eq!(order(&[change], &surplus), expected);
    }
}
