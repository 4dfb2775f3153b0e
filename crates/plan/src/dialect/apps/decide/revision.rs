//! Revision numbers, and what a ReplicaSet records about the Deployment it serves.

use convoy_api::apps::annotation;

use super::DeploymentDecision;
use crate::dialect::apps::names::PROGRESSING;
use crate::dialect::apps::read::owned_set::OwnedSet;

/// The longest list of earlier revisions that a ReplicaSet carries, in characters.
const HISTORY_CHARS_MAX: usize = 2000;

impl<'o> DeploymentDecision<'o> {
    /// The revision that a new set takes: one above the highest old one, and one above what the
    /// Deployment has recorded of a set that is gone, so that no number comes back.
    pub(crate) fn next_revision(&self) -> i64 {
        let highest = self.old().filter_map(OwnedSet::revision).max().unwrap_or(0);
        let recorded = self.deployment.object.annotation(annotation::REVISION);
        let recorded = recorded.and_then(|text| text.parse().ok()).unwrap_or(0);
        let current = self.new_set().and_then(OwnedSet::revision);
        let lost = if current.is_none_or(|current| current < recorded) { recorded } else { 0 };
        highest.max(lost).max(0).saturating_add(1)
    }

    /// The Deployment's own annotations that go onto its ReplicaSets.
    pub(crate) fn copied_annotations(&self) -> impl Iterator<Item = (&'o str, &'o str)> + use<'o> {
        let object = self.deployment.object;
        object.annotations().filter(|(key, _)| !annotation::is_reserved(key))
    }

    /// Brings the new set's records up to date, or takes the revision over from it.
    pub(crate) fn sync_new(&mut self) {
        let Some(at) = self.new else { return };
        let next = self.next_revision();
        let copied = self.copied_annotations();
        let min_ready_secs = self.deployment.min_ready_secs;
        let set = &mut self.sets[at];
        let changed = sync_annotations(set, copied, next);
        if set.stored_min_ready_secs != min_ready_secs {
            set.min_ready_secs = Some(min_ready_secs);
        }
        if changed || set.min_ready_secs.is_some() {
            return; // the Deployment follows once this is written
        }
        let revision = set.note(annotation::REVISION).unwrap_or_default().to_owned();
        self.take_revision(revision);
        if self.deployment.deadline_secs.is_some() && self.conditions.find(PROGRESSING).is_none() {
            let message = format!("Found new replica set {:?}", self.sets[at].name().as_str());
            self.set_progressing("True", "FoundNewReplicaSet", &message);
        }
    }

    /// The Deployment carries the revision of its new set.
    pub(crate) fn take_revision(&mut self, revision: String) {
        if self.deployment.object.annotation(annotation::REVISION) != Some(&revision) {
            self.revision = Some(revision);
        }
    }
}

/// Whether anything had to be written. A set whose revision cannot be read stays as it is.
fn sync_annotations<'d>(
    set: &mut OwnedSet<'_>,
    copied: impl Iterator<Item = (&'d str, &'d str)>,
    next: i64,
) -> bool {
    let Some(revision) = set.revision() else { return false };
    let mut changed = false;
    for (key, text) in copied {
        changed |= set.set_note(key, text);
    }
    if revision >= next {
        return changed;
    }
    if let Some(before) = set.object.annotation(annotation::REVISION) {
        let history = set.note(annotation::REVISION_HISTORY).unwrap_or_default();
        if let Some(history) = appended(history, before, HISTORY_CHARS_MAX) {
            set.set_note(annotation::REVISION_HISTORY, &history);
        }
    }
    set.set_note(annotation::REVISION, &next.to_string());
    true
}

/// A list of revisions with one more at its end; the oldest go where it would get too long.
/// None if even the new one alone does not fit.
fn appended(history: &str, revision: &str, chars_max: usize) -> Option<String> {
    if history.is_empty() {
        return Some(revision.to_owned());
    }
    let mut rest = history;
    while rest.len() + 1 + revision.len() > chars_max {
        match rest.split_once(',') {
            Some((_, later)) => rest = later,
            None => return (revision.len() <= chars_max).then(|| revision.to_owned()),
        }
    }
    Some(format!("{rest},{revision}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_history_of_revisions_forgets_the_oldest() {
        let cases = [
            ("", "1", 2000, Some("1")),
            ("1,2", "5", 2000, Some("1,2,5")),
            ("1,2,3", "4", 5, Some("2,3,4")),
            ("1,2,3", "4", 1, Some("4")),
            ("1", "4", 0, None),
        ];
        for (history, revision, most, expected) in cases {
            assert_eq!(appended(history, revision, most).as_deref(), expected, "{history}");
        }
    }
}
