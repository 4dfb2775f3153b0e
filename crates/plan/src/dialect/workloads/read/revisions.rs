//! Revisions of a template, kept as ControllerRevisions: `kubectl rollout history` lists them and
//! `kubectl rollout undo` goes back to one.

use convoy_api::Object;
use convoy_api::apps::equality::same_template;
use convoy_api::apps::hash::template_hash;
use convoy_api::apps::types::Release;
use convoy_api::kinds::CONTROLLER_REVISION;
use convoy_api::object::member::field;
use serde_json::Value;

use super::{number, template};
use crate::dialect::workloads::names::REVISION_HASH;
use crate::ownership::is_controlled_by;
use crate::snapshot::Snapshot;

/// Tells a strategic merge patch to replace the template whole.
pub(crate) const PATCH: &str = "$patch";

/// How many revisions are kept where the owner does not say.
const LIMIT: i64 = 10;

/// The revisions of one owner.
#[derive(Debug)]
pub(crate) struct Revisions<'o> {
    pub(crate) owner: &'o Object,
    /// Oldest first.
    pub(crate) all: Vec<&'o Object>,
    /// The hash of the template as it is now.
    pub(crate) hash: String,
    /// The revision that stands for it.
    pub(crate) name: String,
    /// How often a hash was taken already; none if it never was.
    pub(crate) collisions: Option<i64>,
    /// What makes the newest revision the one of the template; none if it is.
    pub(crate) change: Option<Change<'o>>,
    /// How many revisions are kept that no pod was created from.
    pub(crate) limit: i64,
}

/// A change of the revisions.
#[derive(Debug)]
pub(crate) enum Change<'o> {
    /// The template is new: a revision of this number is created.
    Create { number: i64 },
    /// The template is that of an earlier revision, which takes this number.
    Renumber { revision: &'o Object, number: i64 },
}

impl<'o> Revisions<'o> {
    pub(crate) fn read(snapshot: &Snapshot<'o>, limit: Option<i64>) -> Self {
        let owner = snapshot.rollout();
        let own = snapshot.of(&CONTROLLER_REVISION).iter().copied();
        let mut all: Vec<&Object> =
            own.filter(|revision| is_controlled_by(revision, owner)).collect();
        all.sort_by_key(|revision| (number_of(revision), revision.name()));
        let mut revisions = Self {
            owner,
            all,
            hash: String::new(),
            name: String::new(),
            collisions: number(owner.status(), "collisionCount"),
            change: None,
            limit: limit.unwrap_or(LIMIT),
        };
        revisions.find(snapshot);
        revisions
    }

    /// Finds the revision of the template, or a name for it.
    fn find(&mut self, snapshot: &Snapshot<'_>) {
        let template = template(self.owner);
        let newest = self.all.last().map_or(0, |revision| number_of(revision));
        let same = |revision: &&&Object| same_template(&template_in(revision), template);
        if let Some(revision) = self.all.iter().rev().find(same) {
            self.name = revision.name().to_string();
            let hash = self.name.rsplit_once('-').map_or("", |(_, hash)| hash);
            self.hash = revision.label(REVISION_HASH).unwrap_or(hash).to_owned();
            if number_of(revision) < newest {
                self.change = Some(Change::Renumber { revision, number: newest + 1 });
            }
            return;
        }
        loop {
            self.hash = template_hash(template, self.collisions, Release::default());
            self.name = format!("{}-{}", self.owner.name(), self.hash);
            if snapshot.find(&CONTROLLER_REVISION, self.owner.namespace(), &self.name).is_none() {
                self.change = Some(Change::Create { number: newest + 1 });
                return;
            }
            self.collisions = Some(self.collisions.unwrap_or(0) + 1);
        }
    }

    /// The template of an earlier revision.
    pub(crate) fn template_of(&self, name: &str) -> Option<Value> {
        let revision = self.all.iter().find(|revision| revision.name() == name)?;
        Some(template_in(revision))
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
