//! Package pods of Skyhooks that are not there: made by hand, or left behind. What such a pod
//! did to its node is a fact all the same, so its result goes on the node's record, under the
//! name that it gives, and the pod may go. Each is a rollout of its own, as long as it has
//! something to say.

use convoy_api::skyhook::{PackageState, StatusWord};
use convoy_api::{Object, ObjectKey};

use crate::dialect::skyhook::decide::{NODE, POD, SKYHOOK};
use crate::dialect::skyhook::names::{Keys, NAME};
use crate::dialect::skyhook::read::observe::complete;
use crate::dialect::skyhook::read::options::Options;
use crate::dialect::skyhook::read::pod::{Outcome, Tag, node_of, outcome};
use crate::dialect::skyhook::read::state::{Entry, NodeState};
use crate::dialect::skyhook::report;
use crate::dialect::skyhook::write::node::NodeWrite;
use crate::snapshot::Snapshot;
use crate::step::{Action, Event, EventType, Propagation, Step, Verb, Verdict, Why};
use crate::world::World;

/// Whether an object is such a pod, with a result that its node does not tell yet.
pub(crate) fn is_one(world: &World, object: &Object) -> bool {
    let is_there = |skyhook: &str| world.find(&SKYHOOK, "", skyhook).is_some();
    if *object.kind() != POD || object.label(NAME).is_none_or(is_there) {
        return false;
    }
    let Some(tag) = Tag::of(object).filter(|tag| !tag.invalid && !is_there(&tag.skyhook)) else {
        return false;
    };
    let node = node(world, object);
    !object.is_deleting() && node.is_some_and(|node| Recorded::of(object, &tag, node).is_some())
}

/// The pods to look at again after `changed` changed: itself, or those that lost their Skyhook.
pub(crate) fn affected(world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
    let object = world.get(changed);
    let pods: Vec<&Object> = match object {
        Some(object) if changed.kind == POD => vec![object],
        None if changed.kind == SKYHOOK => {
            world.of(&POD).filter(|pod| pod.label(NAME) == Some(&changed.name)).collect()
        }
        _ => Vec::new(),
    };
    let orphans = pods.into_iter().filter(|pod| is_one(world, pod));
    orphans.map(|pod| pod.key().clone()).collect()
}

/// The node that a pod ran on.
pub(crate) fn node<'w>(world: &'w World, pod: &Object) -> Option<&'w Object> {
    node_of(pod).and_then(|name| world.find(&NODE, "", name))
}

pub(crate) fn step(
    pod: &Object,
    options: &Options,
    snapshot: &Snapshot<'_>,
    mut step: Step,
) -> Step {
    let node = node_of(pod).and_then(|name| snapshot.find(&NODE, "", name));
    let recorded = node.zip(Tag::of(pod)).and_then(|(node, tag)| {
        let recorded = Recorded::of(pod, &tag, node)?;
        Some((node, tag, recorded))
    });
    let Some((node, tag, recorded)) = recorded else { return step };
    let keys = Keys::of(&tag.skyhook);
    let mut write = NodeWrite::new(node);
    write.node_state(&keys, &recorded.state.text());
    if recorded.result == PackageState::Erroring {
        write.word(&keys, StatusWord::Erroring, &options.version);
    }
    let why = Why::new("ResultOfPod", format!("a pod of {} tells it", tag.skyhook));
    step.actions.extend(write.action(Verb::Record, why));
    if recorded.result == PackageState::Complete {
        let why = Why::new("StageRecorded", "its result is kept");
        step.actions.push(Action::delete(Verb::Delete, pod, Propagation::Background, why));
    }
    step.events.push(Event {
        regarding: node.key().clone(),
        kind: EventType::Normal,
        reason: "Apply".to_owned(),
        message: report::result(&tag.skyhook, &tag.name, &tag.version, recorded.result),
        reports: None,
    });
    step.verdict = Verdict::Moving;
    step
}

/// What a node has to tell of a pod.
struct Recorded {
    state: NodeState,
    result: PackageState,
}

impl Recorded {
    /// None while the pod runs, where its failure is told already, and where what the node says
    /// cannot be read, which nobody may overwrite.
    fn of(pod: &Object, tag: &Tag, node: &Object) -> Option<Self> {
        let told = node.annotation(&Keys::of(&tag.skyhook).node_state);
        let told = told.map_or(Some(NodeState::default()), |text| NodeState::parse(text).ok())?;
        let entry = |state, restarts| Entry {
            name: tag.name.clone(),
            version: tag.version.clone(),
            image: tag.image.clone(),
            container_sha: tag.container_sha.clone(),
            stage: tag.stage,
            state,
            restarts,
        };
        let mut state = told.clone();
        let result = match outcome(pod, tag.stage) {
            Outcome::Running => return None,
            Outcome::Complete => {
                complete(&mut state, entry(PackageState::Complete, 0), None);
                PackageState::Complete
            }
            Outcome::Failed { restarts } => {
                state.put(entry(PackageState::Erroring, restarts));
                PackageState::Erroring
            }
        };
        let is_news = state != told || result == PackageState::Complete;
        is_news.then_some(Self { state, result })
    }
}

#[cfg(test)]
mod tests {
    use convoy_testkit::{Builder, NOW, object};
    use serde_json::json;

    use super::*;
    use crate::dialect::Dialect;
    use crate::dialect::skyhook::Skyhook;
    use crate::step::Write;

    const STATE: &str = "skyhook.nvidia.com/nodeState_foobar";

    fn pod(stage: &str, exit_code: i64) -> Builder {
        let tag =
            json!({"name": "foobar", "version": "1.2.3", "stage": stage, "skyhook": "foobar"});
        let ended = json!({"state": {"terminated": {"exitCode": exit_code}}, "restartCount": 2});
        object("v1", "Pod", "by-hand")
            .namespace("shop")
            .label(NAME, "foobar")
            .annotation("skyhook.nvidia.com/package", &tag.to_string())
            .spec(json!({"nodeName": "worker", "initContainers": [{"name": "only"}]}))
            .status(json!({"initContainerStatuses": [ended]}))
    }

    /// What is done about the pod where the node says this.
    fn decided(pod: Builder, state: Option<&str>, others: Vec<Object>) -> Option<Step> {
        let mut node = object("v1", "Node", "worker");
        if let Some(state) = state {
            node = node.annotation(STATE, state);
        }
        let pod = pod.build();
        let key = pod.key().clone();
        let mut world = World::new();
        for object in others.into_iter().chain([pod, node.build()]) {
            world.insert(object);
        }
        let now = NOW.parse().unwrap();
        let step = crate::decide(&Skyhook::new(), &world, &[], &key, now);
        assert_eq!(step.is_some(), Skyhook::new().affected(&world, &key).contains(&key));
        step
    }

    /// The state that a step writes, and how many writes there are.
    fn written(step: &Step) -> (String, usize) {
        let Write::Patch { patch, .. } = &step.actions[0].write else { panic!("{step:?}") };
        let text = patch["metadata"]["annotations"][STATE].as_str().unwrap();
        (text.to_owned(), step.actions.len())
    }

    fn entry(stage: &str, state: &str, more: &str) -> String {
        format!(
            r#"{{"foobar|1.2.3":{{"name":"foobar","version":"1.2.3","image":"","stage":"{stage}","state":"{state}"{more}}}}}"#
        )
    }

    #[test]
    fn what_it_did_is_recorded_and_it_goes() {
        let step = decided(pod("apply", 0), None, Vec::new()).unwrap();
        assert_eq!(written(&step), (entry("apply", "complete", ""), 2));
        assert!(matches!(step.actions[1].write, Write::Delete { .. }));
        let message = "Package [foobar:1.2.3] state complete on [skyhook:foobar]";
        assert_eq!(
            (step.events[0].reason.as_str(), step.events[0].message.as_str()),
            ("Apply", message)
        );
        // Recorded, and still there: it goes.
        let step = decided(pod("apply", 0), Some(&entry("apply", "complete", "")), Vec::new());
        let step = step.unwrap();
        assert!(matches!(step.actions[..], [Action { write: Write::Delete { .. }, .. }]));
    }

    #[test]
    fn a_failure_is_recorded_once() {
        let step = decided(pod("config", 1), None, Vec::new()).unwrap();
        let told = entry("config", "erroring", r#","restarts":2"#);
        assert_eq!(written(&step), (told.clone(), 1));
        let Write::Patch { patch, .. } = &step.actions[0].write else { panic!() };
        assert_eq!(patch["metadata"]["labels"]["skyhook.nvidia.com/status_foobar"], "erroring");
        assert!(decided(pod("config", 1), Some(&told), Vec::new()).is_none());
    }

    #[test]
    fn an_uninstalled_package_is_forgotten() {
        let told = entry("uninstall", "in_progress", "");
        let step = decided(pod("uninstall", 0), Some(&told), Vec::new()).unwrap();
        assert_eq!(written(&step), ("{}".to_owned(), 2));
    }

    #[test]
    fn what_is_not_an_orphan_or_tells_nothing_is_left_alone() {
        let skyhook = object("skyhook.nvidia.com/v1alpha1", "Skyhook", "foobar").build();
        assert!(decided(pod("apply", 0), None, vec![skyhook]).is_none());
        assert!(decided(pod("apply", 0), Some("not JSON"), Vec::new()).is_none());
        let running = pod("apply", 0).with("/status/initContainerStatuses", json!([]));
        assert!(decided(running, None, Vec::new()).is_none());
        let elsewhere = pod("apply", 0).with("/spec/nodeName", json!("gone"));
        assert!(decided(elsewhere, None, Vec::new()).is_none());
        let untold = pod("apply", 0).with("/metadata/annotations", json!({}));
        assert!(decided(untold, None, Vec::new()).is_none());
    }
}
