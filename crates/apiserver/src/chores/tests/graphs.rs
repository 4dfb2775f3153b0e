//! Random graphs of owners: what remains is what a naive reading of the rules says.

use std::collections::{BTreeMap, BTreeSet};

use convoy_testkit::property;
use proptest::prelude::*;

use super::super::Chores;
use super::*;

const OBJECTS: usize = 7;

/// Whom an object refers to, and whether it blocks; the last index is nobody.
type Owners = BTreeMap<usize, bool>;

#[derive(Clone, Copy, Debug)]
struct Deletion {
    object: usize,
    policy: &'static str,
    /// The collector is started anew after so many steps.
    dies_after: usize,
}

fn deletion() -> impl Strategy<Value = Deletion> {
    let policy = prop::sample::select(vec!["Background", "Foreground", "Orphan"]);
    (0..OBJECTS, policy, 0..6_usize).prop_map(|(object, policy, dies_after)| Deletion {
        object,
        policy,
        dies_after,
    })
}

/// The objects that are left, by the rules taken word for word.
fn expected(graph: &[Owners], deletions: &[Deletion]) -> BTreeSet<usize> {
    let mut left: BTreeMap<usize, BTreeSet<usize>> =
        graph.iter().map(|owners| owners.keys().copied().collect()).enumerate().collect();
    collect(&mut left);
    for deletion in deletions.iter().copied() {
        if left.remove(&deletion.object).is_some() && deletion.policy == "Orphan" {
            for owners in left.values_mut() {
                owners.remove(&deletion.object);
            }
        }
        collect(&mut left);
    }
    left.into_keys().collect()
}

fn collect(left: &mut BTreeMap<usize, BTreeSet<usize>>) {
    loop {
        let names: BTreeSet<usize> = left.keys().copied().collect();
        let garbage = left.iter().find(|(_, owners)| {
            !owners.is_empty() && owners.iter().all(|owner| !names.contains(owner))
        });
        let Some(garbage) = garbage.map(|(name, _)| *name) else { break };
        left.remove(&garbage);
    }
    let names: BTreeSet<usize> = left.keys().copied().collect();
    for owners in left.values_mut() {
        owners.retain(|owner| names.contains(owner));
    }
}

fn name(object: usize) -> String {
    format!("m{object}")
}

fn build(server: &TestServer, graph: &[Owners]) {
    let made: Vec<Value> = (0..graph.len()).map(|index| make(server, &name(index), &[])).collect();
    let nobody = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "nobody", "uid": "nobody"}});
    for (index, owners) in graph.iter().enumerate() {
        let references: Vec<Value> = owners
            .iter()
            .map(|(of, blocks)| owner(made.get(*of).unwrap_or(&nobody), *blocks))
            .collect();
        let patch = json!({"metadata": {"ownerReferences": references}});
        let (code, answer) = server.call("PATCH", &format!("{MAPS}/{}", name(index)), &patch);
        assert_eq!(code, 200, "{answer}");
    }
}

proptest! {
    #![proptest_config(property::config(96))]

    #[test]
    fn what_remains_is_what_the_rules_say(
        graph in prop::collection::vec(
            prop::collection::btree_map(0..=OBJECTS, any::<bool>(), 0..3), OBJECTS),
        deletions in prop::collection::vec(deletion(), 0..4),
    ) {
        // Nothing owns itself.
        let graph: Vec<Owners> = graph.into_iter().enumerate().map(|(index, mut owners)| {
            owners.remove(&index);
            owners
        }).collect();
        let server = server();
        build(&server, &graph);
        settle(&server);
        let mut chores = Chores::new(&server.server);
        for deletion in &deletions {
            let body = json!({"propagationPolicy": deletion.policy});
            server.call("DELETE", &format!("{MAPS}/{}", name(deletion.object)), &body);
            server.run(async {
                for _ in 0..deletion.dies_after {
                    chores.step().await;
                }
                if deletion.dies_after % 2 == 0 {
                    chores = Chores::new(&server.server);
                }
                chores.settle().await;
            });
        }
        let names: Vec<String> = expected(&graph, &deletions).into_iter().map(name).collect();
        prop_assert_eq!(maps(&server), names);
        let revision = server.server.store.revision();
        settle(&server);
        prop_assert_eq!(server.server.store.revision(), revision, "settled is quiet");
    }
}
