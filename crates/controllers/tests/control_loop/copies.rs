//! A dialect for tests that spans clusters: a ConfigMap of the home cluster is copied to the member
//! clusters that it names, and notes in an annotation how many have it.

use convoy_api::kinds::{CONFIG_MAP, NAMESPACE};
use convoy_api::{GroupKind, Object, ObjectKey};
use convoy_plan::{Action, Dialect, Keep, Need, Snapshot, Step, Verb, Verdict, Watch, Why, World};
use jiff::Timestamp;
use serde_json::json;
use smol_str::SmolStr;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Copies;

/// The text of a field of the ConfigMap.
fn data<'o>(object: &'o Object, field: &str) -> &'o str {
    object.raw()["data"][field].as_str().unwrap_or_default()
}

/// The clusters that a rollout names in `data.to`.
fn clusters(rollout: &Object) -> impl Iterator<Item = &str> {
    data(rollout, "to").split(',').filter(|name| !name.is_empty())
}

fn is_rollout(object: &Object) -> bool {
    object.key().cluster.is_empty() && !object.raw()["data"]["to"].is_null()
}

static WATCHES: [Watch; 1] = [Watch { kind: CONFIG_MAP, keep: Keep::Whole }];
static MEMBER_WATCHES: [Watch; 1] = [Watch { kind: NAMESPACE, keep: Keep::Fields(&[]) }];

impl Dialect for Copies {
    fn name(&self) -> &'static str {
        "copies"
    }

    fn watches(&self) -> &'static [Watch] {
        &WATCHES
    }

    fn member_watches(&self) -> &'static [Watch] {
        &MEMBER_WATCHES
    }

    fn needs(&self, _world: &World, rollout: &Object) -> Vec<Need> {
        let version = SmolStr::default();
        let in_member = |cluster: &str| Need::Kind {
            collection: CONFIG_MAP.in_cluster(cluster),
            version: version.clone(),
        };
        let mut needs: Vec<Need> = clusters(rollout).map(in_member).collect();
        if let Some((group, kind)) = data(rollout, "reads").split_once('/') {
            let kind = GroupKind { group: SmolStr::new(group), kind: SmolStr::new(kind) };
            needs.push(Need::of_home(&kind));
        }
        if data(rollout, "all") == "true" {
            needs.push(Need::NamespacedKinds { cluster: SmolStr::default() });
        }
        needs
    }

    fn takes_along(&self, kind: &GroupKind) -> bool {
        kind.kind != "Event" && kind.kind != "Lease"
    }

    fn rollouts<'w>(&self, world: &'w World) -> Vec<&'w Object> {
        world.of(&CONFIG_MAP).filter(|object| is_rollout(object)).collect()
    }

    /// Copies have the name of the original. Objects of other kinds concern everyone.
    fn affected(&self, world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
        let all = self.rollouts(world).into_iter().map(Object::key).cloned();
        if changed.kind != CONFIG_MAP {
            return all.collect();
        }
        all.filter(|key| key.name == changed.name && key.namespace == changed.namespace).collect()
    }

    fn snapshot<'w>(&self, world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
        let copy = |cluster: &str| {
            let key = ObjectKey { cluster: SmolStr::new(cluster), ..rollout.key().clone() };
            world.get(&key)
        };
        let copies: Vec<&Object> = clusters(rollout).filter_map(copy).collect();
        let others = world.kinds().filter(|kind| **kind != CONFIG_MAP);
        let others = others.flat_map(|kind| world.in_namespace(kind, rollout.namespace()));
        Snapshot::new(rollout, copies.into_iter().chain(others))
    }

    fn step(&self, snapshot: &Snapshot<'_>, _now: Timestamp) -> Step {
        let rollout = snapshot.rollout();
        let mut step = Step::new(self.name(), rollout, Verdict::Done);
        let wanted = json!({"text": data(rollout, "text")});
        let why = || Why::new("Copy", "a test");
        let mut copied = 0;
        for cluster in clusters(rollout) {
            let key = ObjectKey { cluster: SmolStr::new(cluster), ..rollout.key().clone() };
            match snapshot.get(&key) {
                None => {
                    let copy = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": wanted,
                        "metadata": {"namespace": key.namespace, "name": key.name}});
                    step.actions.push(Action::create(Verb::Create, key, copy, why()));
                }
                Some(copy) if copy.raw()["data"] != wanted => {
                    let patch = json!({"data": wanted});
                    step.actions.push(Action::patch(Verb::Record, copy, patch, why()));
                }
                Some(_) => copied += 1,
            }
        }
        let others = snapshot.iter().filter(|object| *object.kind() != CONFIG_MAP).count();
        let notes = json!({"copied": copied.to_string(), "beside": others.to_string()});
        if rollout.metadata()["annotations"] != notes {
            let patch = json!({"metadata": {"annotations": notes}});
            step.actions.push(Action::patch(Verb::Record, rollout, patch, why()));
        }
        if !step.actions.is_empty() {
            step.verdict = Verdict::Moving;
        }
        step
    }
}
