//! Going back: the template of an earlier revision becomes the Deployment's again, because
//! someone asked, or because the rollout failed and the Deployment asks for that.

use convoy_api::Object;
use convoy_api::apps::equality::same_template;

use super::{DeploymentDecision, StatusScope};
use crate::dialect::apps::read::owned_set::OwnedSet;
use crate::dialect::apps::read::template;
use crate::step::EventType;

/// What became of a request to go back.
#[derive(Debug)]
pub(crate) enum Rollback<'o> {
    /// The template of this set, which has this revision, is taken.
    To { revision: i64, set: &'o Object },
    /// Nothing changes but the request itself, which is taken away.
    Refused { reason: &'static str },
}

impl<'o> DeploymentDecision<'o> {
    /// Answers the annotation that asks for a revision, 0 for the previous one.
    pub(crate) fn answer_rollback(&mut self, asked: i64) -> StatusScope {
        // The template that is given up gets its place in the history first.
        if self.ensure_new(&self.new_growth()).is_err() {
            return StatusScope::Conditions;
        }
        let revision = if asked == 0 { self.previous_revision() } else { asked };
        let found = self.sets.iter().find(|set| set.revision() == Some(revision));
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
            Some(set) if same_template(self.deployment.raw_template(), template(set)) => {
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
        StatusScope::Conditions
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
        let numbers = self.sets.iter().filter_map(OwnedSet::revision);
        second_highest(numbers.chain(created))
    }
}

/// Scans as upstream does: equal numbers push the earlier one down, and a lone one gives 0.
pub(crate) fn second_highest(revisions: impl Iterator<Item = i64>) -> i64 {
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
}
