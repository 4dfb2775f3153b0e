//! What is said about a simulation that failed: the last writes, one line each.

use jiff::Timestamp;

use super::cluster::WriteRecord;
use super::{Failure, Simulation, Trial, apps, disruptions, fleets, ocm};

/// Writes shown with a failure.
pub(super) const HISTORY: usize = 40;

impl<T: Trial> Simulation<T> {
    pub(super) fn failure(&self, message: String) -> Failure {
        let last = self.cluster.records(0).iter().rev();
        let last = last.filter(|record| !self.trial.is_routine(record)).take(HISTORY);
        let mut lines: Vec<String> = last.map(|record| line(record, self.start)).collect();
        lines.reverse();
        Failure { after: self.elapsed(), message, history: lines.join("\n") }
    }
}

/// One line of the history.
pub(super) fn line(record: &WriteRecord, start: Timestamp) -> String {
    let object = &record.object;
    let after = record.at.duration_since(start);
    let is_fleet =
        object.kind().group.ends_with("kubernetes-fleet.io") || !object.key().cluster.is_empty();
    let is_ocm = object.kind().group.ends_with("open-cluster-management.io");
    let what = match (is_ocm, is_fleet) {
        (true, _) => ocm::world::summary(object),
        (_, true) => fleets::world::summary(object),
        _ => format!("{}{}", apps::summary(object), disruptions::summary(object)),
    };
    let (change, by, revision) = (record.change, record.by, record.revision);
    format!("+{after:?} #{revision} {by:?} {change:?} {}{what}", object.key())
}
