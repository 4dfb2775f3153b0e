//! The ReplicaSet that a Deployment asks for when none has its template.

use convoy_api::apps::hash::template_hash;
use convoy_api::apps::types::Release;
use convoy_api::apps::{REPLICA_SET, annotation};
use serde_json::{Map, Value};

use super::DeploymentDecision;
use crate::gate::{Grant, Permit};
use crate::step::{Event, EventType};

/// The longest name of an object.
const NAME_CHARS_MAX: usize = 253;

/// A ReplicaSet that this step creates.
#[derive(Debug)]
pub(crate) struct NewSet {
    pub(crate) name: String,
    pub(crate) hash: String,
    pub(crate) replicas: i64,
    /// The gate's leave for these replicas; absent if there are none.
    pub(crate) permit: Option<Permit>,
    pub(crate) revision: i64,
    pub(crate) annotations: Map<String, Value>,
}

/// The name computed for a new ReplicaSet belongs to another template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Collision;

impl DeploymentDecision<'_> {
    /// Creates the new set with the replicas that are granted, if it does not exist.
    ///
    /// A name that is taken counts a collision, and the next step computes another.
    pub(super) fn ensure_new(&mut self, growth: &Grant) -> Result<(), Collision> {
        if self.new.is_some() || self.created.is_some() {
            return Ok(());
        }
        let deployment = &self.deployment;
        let hash =
            template_hash(deployment.raw_template(), self.collision_count, Release::default());
        let name = set_name(deployment.object.name(), &hash);
        if self.neighbours.iter().any(|set| *set.name() == name) {
            self.collision_count = Some(self.collision_count.unwrap_or(0).saturating_add(1));
            return Err(Collision);
        }
        let revision = self.next_revision();
        let replicas = i64::from(growth.count);
        let annotations = self.new_annotations(revision);
        if replicas > 0 {
            let message = format!("Scaled up replica set {name} from 0 to {replicas}");
            let owner = self.deployment.object.key();
            let set = owner.sibling(&REPLICA_SET, &owner.namespace, &name);
            let event = Event::new(owner, EventType::Normal, "ScalingReplicaSet", message);
            self.events.push(event.reporting(&set));
        }
        if self.deployment.deadline_secs.is_some() {
            let message = format!("Created new replica set {name:?}");
            self.set_progressing("True", "NewReplicaSetCreated", &message);
        }
        self.take_revision(revision.to_string());
        let permit = growth.permit();
        self.created = Some(NewSet { name, hash, replicas, permit, revision, annotations });
        Ok(())
    }

    fn new_annotations(&self, revision: i64) -> Map<String, Value> {
        let copied = self.copied_annotations().map(|(key, text)| (key.to_owned(), text.to_owned()));
        let numbers = [
            (annotation::REVISION, revision),
            (annotation::DESIRED_REPLICAS, self.deployment.replicas),
            (annotation::MAX_REPLICAS, self.deployment.most()),
        ];
        let numbers = numbers.map(|(key, number)| (key.to_owned(), number.to_string()));
        copied.chain(numbers).map(|(key, text)| (key, Value::String(text))).collect()
    }
}

/// `<deployment>-<hash>`; of a name that gets too long the Deployment's part is cut.
fn set_name(deployment: &str, hash: &str) -> String {
    let room = NAME_CHARS_MAX.saturating_sub(hash.len() + 1);
    let mut end = deployment.len().min(room);
    while !deployment.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}-{hash}", &deployment[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_before_the_hash() {
        assert_eq!(set_name("web", "abc"), "web-abc");
        let long = "x".repeat(260);
        let name = set_name(&long, "0123456789");
        assert_eq!(name.len(), NAME_CHARS_MAX);
        assert!(name.ends_with("x-0123456789"));
        set_name(&"\u{e9}".repeat(200), "abc"); // cut between characters
    }
}
