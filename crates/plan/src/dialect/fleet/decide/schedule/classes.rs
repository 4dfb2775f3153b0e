//! Bindings as the scheduler sorts them, and the names and scores that they carry.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use convoy_api::Object;
use convoy_api::object::member::member;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::by_name::ByName;
use crate::dialect::fleet::decide::schedule::cycle::target;
use crate::dialect::fleet::decide::schedule::score::Score;
use crate::dialect::fleet::names;
use crate::dialect::fleet::read::placement::{Placement, field, text};

/// The bindings of one placement, each in exactly one class.
#[derive(Debug, Default)]
pub(crate) struct Classes<'w> {
    pub(crate) deleting: Vec<&'w Object>,
    /// By cluster.
    pub(crate) unscheduled: BTreeMap<&'w str, &'w Object>,
    /// Scheduled or Bound, and the cluster is gone or leaving.
    pub(crate) dangling: Vec<&'w Object>,
    /// Scheduled or Bound by another policy than the active one. By cluster.
    pub(crate) obsolete: BTreeMap<&'w str, &'w Object>,
    pub(crate) scheduled: Vec<&'w Object>,
    pub(crate) bound: Vec<&'w Object>,
}

impl<'w> Classes<'w> {
    /// `bindings` belong to the placement; `clusters` are all member clusters, by name.
    pub(crate) fn sorted(
        bindings: impl IntoIterator<Item = &'w Object>,
        clusters: &[&Object],
        active_policy: &str,
    ) -> Self {
        let mut classes = Self::default();
        let clusters: ByName<'_, &Object> =
            clusters.iter().map(|cluster| (cluster.name().as_str(), *cluster)).collect();
        for (at, binding) in bindings.into_iter().enumerate() {
            let is_staying =
                |name: &str| clusters.find(at, name).is_some_and(|found| !found.is_deleting());
            let (cluster, state) = (target(binding), binding.spec_text("state"));
            if binding.is_deleting() {
                classes.deleting.push(binding);
            } else if state == "Unscheduled" {
                classes.unscheduled.insert(cluster, binding);
            } else if !is_staying(cluster) {
                classes.dangling.push(binding);
            } else if binding.spec_text("schedulingPolicySnapshotName") != active_policy {
                classes.obsolete.insert(cluster, binding);
            } else if state == "Bound" {
                classes.bound.push(binding);
            } else {
                classes.scheduled.push(binding);
            }
        }
        classes
    }
}

/// The score that was written down when the cluster was picked.
pub(crate) fn recorded_score(binding: &Object) -> Option<Score> {
    let score = field(field(binding.spec(), "clusterDecision"), "clusterScore");
    let part = |name: &str| {
        let value = member(score, name).and_then(Value::as_i64).unwrap_or(0);
        i32::try_from(value).unwrap_or(if value < 0 { i32::MIN } else { i32::MAX })
    };
    score.is_object().then(|| Score {
        topology: part("priorityScore"),
        affinity: part("affinityScore"),
        kept: false,
    })
}

/// The state that an Unscheduled binding had before. Where nobody wrote it down, a binding that
/// names a resource snapshot was Bound.
pub(crate) fn previous_state(binding: &Object) -> &'static str {
    match binding.annotation(names::PREVIOUS_STATE) {
        Some("Bound") => "Bound",
        Some(_) => "Scheduled",
        None if text(binding.spec(), "resourceSnapshotName").is_empty() => "Scheduled",
        None => "Bound",
    }
}

/// A name for a new binding that no other has. It is computed from what it stands for, so
/// that a repeated create is recognised; `is_taken` steers it round a predecessor that is
/// still being deleted.
pub(crate) fn fresh_name(
    placement: &Placement<'_>,
    cluster: &str,
    is_taken: impl Fn(&str) -> bool,
) -> String {
    let uid = placement.object.uid().unwrap_or_default();
    let cut = |text: &str, length: usize| -> String {
        text.chars().take(length).map(|c| if c == '.' { '-' } else { c }).collect()
    };
    let stem = format!("{}-{}", cut(placement.name(), 26), cut(cluster, 27));
    let mut attempt: u32 = 0;
    loop {
        let subject =
            format!("{}/{}/{uid}/{cluster}/{attempt}", placement.namespace(), placement.name());
        let digest = Sha256::digest(subject.as_bytes());
        let mut name = stem.clone() + "-";
        for byte in &digest[..4] {
            write!(name, "{byte:02x}").expect("a String takes whatever is written");
        }
        if !is_taken(&name) {
            return name;
        }
        attempt += 1;
    }
}
