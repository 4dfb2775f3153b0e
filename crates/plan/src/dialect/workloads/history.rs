//! Revisions of a template, kept as ControllerRevisions: what `kubectl rollout history` lists and
//! `kubectl rollout undo` goes back to.

use std::collections::BTreeSet;

use convoy_api::Object;
use convoy_api::apps::equality::same_template;
use convoy_api::apps::hash::template_hash;
use convoy_api::apps::types::Release;
use convoy_api::object::member::field;
use serde_json::{Value, json};

use super::REVISION;
use super::kept::{HASH_LABEL, number};
use crate::ownership as claim;
use crate::snapshot::Snapshot;
use crate::step::{Action, Propagation, Verb, Why};

/// What a strategic merge patch is told so that the template is replaced whole.
const PATCH: &str = "$patch";

/// How many revisions are kept where the owner does not say.
const LIMIT: i64 = 10;

/// The revisions of one owner.
#[derive(Debug)]
pub(super) struct History<'o> {
    owner: &'o Object,
    /// Oldest first.
    revisions: Vec<&'o Object>,
    /// The hash of the template as it is now.
    pub(super) hash: String,
    /// The revision that stands for it.
    pub(super) name: String,
    /// How often a hash was taken already; none if it never was.
    pub(super) collisions: Option<i64>,
    /// Writes that make the newest revision the one of the template.
    pub(super) actions: Vec<Action>,
}

impl<'o> History<'o> {
    pub(super) fn new(snapshot: &Snapshot<'o>) -> Self {
        let owner = snapshot.rollout();
        let is_own = |revision: &&Object| {
            revision.controller().is_some_and(|by| Some(by.uid) == owner.uid())
        };
        let mut revisions: Vec<&Object> =
            snapshot.of(&REVISION).iter().copied().filter(is_own).collect();
        revisions.sort_by_key(|revision| (number_of(revision), revision.name()));
        let mut history = Self {
            owner,
            revisions,
            hash: String::new(),
            name: String::new(),
            collisions: number(owner.status(), "collisionCount"),
            actions: Vec::new(),
        };
        history.find(snapshot);
        history
    }

    /// Finds the revision of the template, or makes it.
    fn find(&mut self, snapshot: &Snapshot<'_>) {
        let template = field(self.owner.spec(), "template");
        let newest = self.revisions.last().map_or(0, |revision| number_of(revision));
        let same = |revision: &&&Object| same_template(&template_in(revision), template);
        if let Some(revision) = self.revisions.iter().rev().find(same) {
            self.name = revision.name().to_string();
            let hash = self.name.rsplit_once('-').map_or("", |(_, hash)| hash);
            self.hash = revision.label(HASH_LABEL).unwrap_or(hash).to_owned();
            if number_of(revision) < newest {
                let why = Why::new("WentBack", format!("{} is the template again", self.name));
                let patch = json!({"revision": newest + 1});
                self.actions.push(Action::patch(Verb::Record, revision, patch, why));
            }
            return;
        }
        loop {
            self.hash = template_hash(template, self.collisions, Release::default());
            self.name = format!("{}-{}", self.owner.name(), self.hash);
            let key = self.owner.key().sibling(&REVISION, self.owner.namespace(), &self.name);
            if snapshot.get(&key).is_none() {
                let why = Why::new("NewTemplate", format!("revision {}", newest + 1));
                let object = self.made(template, newest + 1);
                self.actions.push(Action::create(Verb::Record, key, object, why));
                return;
            }
            self.collisions = Some(self.collisions.unwrap_or(0) + 1);
        }
    }

    fn made(&self, template: &Value, revision: i64) -> Value {
        let mut labels = field(field(template, "metadata"), "labels").clone();
        if !labels.is_object() {
            labels = json!({});
        }
        labels[HASH_LABEL] = json!(self.hash);
        let mut whole = template.clone();
        whole[PATCH] = json!("replace");
        json!({
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {
                "name": self.name,
                "namespace": self.owner.namespace(),
                "labels": labels,
                "annotations": self.owner.metadata().get("annotations"),
                "ownerReferences": [claim::reference(self.owner)],
            },
            "data": {"spec": {"template": whole}},
            "revision": revision,
        })
    }

    /// The template of an earlier revision.
    pub(super) fn template_of(&self, name: &str) -> Option<Value> {
        let revision = self.revisions.iter().find(|revision| revision.name() == name)?;
        Some(template_in(revision))
    }

    /// Deletes the oldest revisions that no pod was made from, beyond as many as are kept. `live`
    /// are names and hashes.
    pub(super) fn trim(&self, live: &BTreeSet<&str>) -> Vec<Action> {
        let limit = number(self.owner.spec(), "revisionHistoryLimit").unwrap_or(LIMIT);
        let is_idle = |revision: &&&Object| {
            let hash = revision.label(HASH_LABEL).unwrap_or_default();
            *revision.name() != self.name
                && !live.contains(revision.name().as_str())
                && !live.contains(hash)
        };
        let idle: Vec<&&Object> = self.revisions.iter().filter(is_idle).collect();
        let excess = idle.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
        let gone = idle.into_iter().take(excess);
        gone.map(|revision| {
            let why = Why::new("HistoryLimit", format!("{limit} revisions are kept"));
            Action::delete(Verb::Delete, revision, Propagation::Background, why)
        })
        .collect()
    }
}

fn number_of(revision: &Object) -> i64 {
    number(revision.raw(), "revision").unwrap_or(0)
}

/// The template that a revision keeps.
fn template_in(revision: &Object) -> Value {
    let spec = field(field(revision.raw(), "data"), "spec");
    let mut template = field(spec, "template").clone();
    if let Some(members) = template.as_object_mut() {
        members.shift_remove(PATCH);
    }
    template
}
