//! Going back: the template of an earlier revision becomes the Deployment's again, because
//! someone asked, or because the rollout failed and the Deployment asks for that.

use convoy_api::Object;
use convoy_api::apps::equality::same_template;
use convoy_api::apps::{TEMPLATE_HASH, annotation};
use serde_json::{Map, Value, json};

use crate::dialect::apps::decide::{Ending, Pass, template_of};
use crate::dialect::apps::read::owned_set::Revision;
use crate::step::EventType;

/// What became of a request to go back.
#[derive(Debug)]
pub(crate) enum Rollback<'o> {
    /// The template of this set, which has this revision, is taken.
    To { revision: i64, set: &'o Object },
    /// Nothing changes but the request itself, which is taken away.
    Refused { reason: &'static str },
}

impl<'o> Pass<'o> {
    /// Answers the annotation that asks for a revision, 0 for the previous one.
    pub(crate) fn answer_rollback(&mut self, asked: i64) -> Ending {
        // The template that is given up gets its place in the history first.
        if self.ensure_new(self.grown_new()).is_err() {
            return Ending::Aside;
        }
        let revision = if asked == 0 { self.previous_revision() } else { asked };
        let found = self.sets.iter().find(|set| set.revision() == Revision::Number(revision));
        let found = found.map(|set| set.object);
        let rollback = match found {
            _ if revision == 0 => self.refuse(
                "DeploymentRollbackRevisionNotFound",
                "Unable to find last revision.".to_owned(),
            ),
            None => self.refuse(
                "DeploymentRollbackRevisionNotFound",
                "Unable to find the revision to rollback to.".to_owned(),
            ),
            Some(set) if same_template(self.deployment.raw_template(), template_of(set)) => {
                let name = self.deployment.object.name().as_str();
                let message = format!(
                    "The rollback revision contains the same template as current deployment {name:?}"
                );
                self.refuse("DeploymentRollbackTemplateUnchanged", message)
            }
            Some(set) => {
                self.tell_rolled_back(revision);
                Rollback::To { revision, set }
            }
        };
        self.rollback = Some(rollback);
        Ending::Aside
    }

    pub(crate) fn tell_rolled_back(&mut self, revision: i64) {
        let name = self.deployment.object.name().as_str();
        let message = format!("Rolled back deployment {name:?} to revision {revision}");
        self.tell(EventType::Normal, "DeploymentRollback", message);
    }

    fn refuse(&mut self, reason: &'static str, message: String) -> Rollback<'o> {
        self.tell(EventType::Warning, reason, message);
        Rollback::Refused { reason }
    }

    /// The second highest revision of all sets; 0 if there is none.
    fn previous_revision(&self) -> i64 {
        let created = self.created.as_ref().map(|created| created.revision);
        let numbers = self.sets.iter().filter_map(|set| match set.revision() {
            Revision::Number(number) => Some(number),
            Revision::Unreadable => None,
        });
        second_highest(numbers.chain(created))
    }

    /// The Deployment's patch: the request goes, and with [`Rollback::To`] the template and
    /// the annotations of that set come.
    pub(crate) fn rollback_patch(&self, rollback: &Rollback<'_>) -> Value {
        let object = self.deployment.object;
        let mut annotations = Map::new();
        if object.annotation(annotation::ROLLBACK_TO).is_some() {
            annotations.insert(annotation::ROLLBACK_TO.to_owned(), Value::Null);
        }
        let Rollback::To { set, .. } = rollback else {
            return json!({"metadata": {"annotations": annotations}});
        };
        for (key, _) in object.annotations().filter(|(key, _)| !annotation::is_reserved(key)) {
            annotations.insert(key.to_owned(), Value::Null);
        }
        for (key, text) in set.annotations().filter(|(key, _)| !annotation::is_reserved(key)) {
            annotations.insert(key.to_owned(), json!(text));
        }
        let mut template = template_of(set).clone();
        if let Some(labels) =
            template.pointer_mut("/metadata/labels").and_then(Value::as_object_mut)
        {
            labels.shift_remove(TEMPLATE_HASH);
        }
        let template = merge_between(self.deployment.raw_template(), &template);
        json!({"metadata": {"annotations": annotations}, "spec": {"template": template}})
    }
}

/// Scans as upstream does: equal numbers push the earlier one down, and a lone one gives 0.
fn second_highest(revisions: impl Iterator<Item = i64>) -> i64 {
    let (mut first, mut second) = (0, 0);
    for revision in revisions {
        if revision >= first {
            (first, second) = (revision, first);
        } else if revision > second {
            second = revision;
        }
    }
    second
}

/// The merge patch that turns `from` into `to`. Nulls in `to` cannot be kept, and mean absent.
fn merge_between(from: &Value, to: &Value) -> Value {
    let (Value::Object(from), Value::Object(to)) = (from, to) else { return to.clone() };
    let mut patch = Map::new();
    for key in from.keys().filter(|key| !to.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in to {
        match from.get(key) {
            Some(before) if before == value => {}
            Some(before) => _ = patch.insert(key.clone(), merge_between(before, value)),
            None => _ = patch.insert(key.clone(), value.clone()),
        }
    }
    Value::Object(patch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_previous_revision_is_the_second_highest() {
        let cases =
            [(vec![1, 2, 3], 2), (vec![3, 1, 2], 2), (vec![5], 0), (vec![], 0), (vec![4, 4], 4)];
        for (revisions, expected) in cases {
            assert_eq!(second_highest(revisions.clone().into_iter()), expected, "{revisions:?}");
        }
    }

    #[test]
    fn a_patch_takes_away_what_is_no_longer_there() {
        let from = json!({"a": 1, "b": {"c": 1, "d": 2}, "list": [1]});
        let to = json!({"b": {"c": 1, "e": 3}, "list": [2]});
        let mut patched = from.clone();
        json_patch::merge(&mut patched, &merge_between(&from, &to));
        assert_eq!(patched, to);
    }
}
