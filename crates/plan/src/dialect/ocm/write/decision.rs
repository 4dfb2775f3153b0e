//! What is written to bring the `PlacementDecision` objects to where they should be.

use convoy_api::Object;
use convoy_api::ocm::names::{
    GROUP_INDEX_LABELS, GROUP_NAME_LABELS, PLACEMENT_DECISION, PLACEMENT_LABEL, STRATEGY_HASH,
};
use serde_json::{Map, Value, json};

use super::order::{Change, Listed, Rewrite, order};
use crate::dialect::ocm::decide::placement::{Decision, Wanted};
use crate::dialect::ocm::decide::schedule::Schedule;
use crate::dialect::ocm::decide::slice::Slice;
use crate::dialect::ocm::read::decisions::{Decisions, clusters_of, label_of, listed, moving};
use crate::snapshot::Snapshot;
use crate::step::{
    Action, Event, EventType, Precondition, Propagation, Subresource, Verb, Why, Write,
};

/// Score events are cut at this many characters.
const SCORE_TEXT_MAX: usize = 1000;

/// The writes that carry out a decision about a placement, and the events about them.
pub(crate) fn actions(
    snapshot: &Snapshot<'_>,
    decision: &Decision<'_>,
) -> (Vec<Action>, Vec<Event>) {
    let Some(Wanted { slices, .. }) = &decision.wanted else { return (Vec::new(), Vec::new()) };
    let mut writer = Writer {
        placement: snapshot.rollout(),
        hash: &decision.hash,
        schedule: &decision.schedule,
        actions: Vec::new(),
        events: Vec::new(),
    };
    writer.write(snapshot, &decision.current, slices);
    (writer.actions, writer.events)
}

/// Collects the writes of one placement and what is told about them.
struct Writer<'a, 'w> {
    placement: &'a Object,
    hash: &'a str,
    schedule: &'a Schedule<'w>,
    actions: Vec<Action>,
    events: Vec<Event>,
}

impl Writer<'_, '_> {
    /// Creates, patches and deletes, in an order in which no cluster is ever missing.
    fn write(&mut self, snapshot: &Snapshot<'_>, current: &Decisions<'_>, slices: &[Slice<'_>]) {
        let namespace = self.placement.namespace();
        let found: Vec<Option<&Object>> = slices
            .iter()
            .map(|slice| snapshot.find(&PLACEMENT_DECISION, namespace, &slice.name))
            .collect();
        for (slice, found) in slices.iter().zip(&found) {
            if found.is_none() {
                self.create(slice);
            }
        }
        let changes: Vec<Change<'_>> =
            slices.iter().zip(&found).map(|(slice, found)| change(slice, *found)).collect();
        let is_surplus =
            |decision: &&&Object| !slices.iter().any(|it| it.name == decision.name().as_str());
        let mut surplus: Vec<&Object> =
            current.objects.iter().filter(is_surplus).copied().collect();
        let leaving = surplus.iter().flat_map(|decision| clusters_of(decision)).collect();
        for rewrite in order(&changes, &leaving) {
            match rewrite {
                Rewrite::Clusters(at, clusters) => self.rewrite(&slices[at], found[at], &clusters),
                Rewrite::Labels(at) => {
                    if let Some(found) = found[at] {
                        self.relabel(&slices[at], found);
                    }
                }
            }
        }
        for ((slice, found), change) in slices.iter().zip(&found).zip(&changes) {
            if !change.before.iter().map(|it| it.cluster).eq(slice.clusters.iter().copied()) {
                self.record_update(&slice.name);
            }
            let Some(found) = found else { continue };
            if found.annotation(STRATEGY_HASH) != Some(self.hash) {
                self.record_strategy(slice, found);
            } else if !change.is_relabelled() && !is_labelled(found, &self.labels(slice)) {
                self.relabel(slice, found); // in another spelling
            }
        }
        // From the first on, like those that stay.
        surplus.sort_by_key(|decision| label_of(decision).0);
        for decision in surplus.into_iter().filter(|decision| !decision.is_deleting()) {
            self.delete(decision);
        }
    }

    fn create(&mut self, slice: &Slice<'_>) {
        let placement = self.placement;
        let mut metadata = Map::new();
        metadata.insert("name".into(), json!(slice.name));
        metadata.insert("namespace".into(), json!(placement.namespace()));
        metadata.insert("labels".into(), Value::Object(self.labels(slice)));
        metadata.insert("annotations".into(), json!({STRATEGY_HASH: self.hash}));
        if let Some(uid) = placement.uid() {
            metadata.insert(
                "ownerReferences".into(),
                json!([{"apiVersion": placement.api_version(), "kind": "Placement",
                    "name": placement.name(), "uid": uid,
                    "controller": true, "blockOwnerDeletion": true}]),
            );
        }
        let api_version = format!("{}/v1beta1", PLACEMENT_DECISION.group);
        let object =
            json!({"apiVersion": api_version, "kind": "PlacementDecision", "metadata": metadata});
        let target =
            placement.key().sibling(&PLACEMENT_DECISION, placement.namespace(), &slice.name);
        let why = Why::new("DecisionNeeded", self.sentence(slice));
        self.actions.push(Action::create(Verb::Create, target, object, why));
        self.record("DecisionCreate", EventType::Normal, self.about(&slice.name, "created"));
    }

    /// Writes the list of clusters, which lives in the status.
    fn rewrite(&mut self, slice: &Slice<'_>, found: Option<&Object>, clusters: &[Listed<'_>]) {
        let entry = |listed: &Listed<'_>| {
            let reason = listed.moves_to.map_or_else(String::new, moving);
            json!({"clusterName": listed.cluster, "reason": reason})
        };
        let decisions: Vec<Value> = clusters.iter().map(entry).collect();
        let patch = json!({"status": {"decisions": decisions}});
        let why = Why::new("ClustersSelected", self.sentence(slice));
        let placement = self.placement;
        self.actions.push(match found {
            Some(found) => Action::patch_status(Verb::Schedule, found, patch, why),
            None => Action {
                verb: Verb::Schedule,
                target: placement.key().sibling(
                    &PLACEMENT_DECISION,
                    placement.namespace(),
                    &slice.name,
                ),
                why,
                concurrent: false,
                // Created just now, by the action before: there is no version to fence with.
                write: Write::Patch {
                    patch,
                    subresource: Some(Subresource::Status),
                    precondition: Precondition::default(),
                },
            },
        });
    }

    /// Gives a decision the number and name of its group.
    fn relabel(&mut self, slice: &Slice<'_>, found: &Object) {
        self.patch_metadata(slice, found, json!({"labels": self.labels(slice)}));
    }

    /// Says how a decision is cut. That comes last: until then the groups are cut anew.
    fn record_strategy(&mut self, slice: &Slice<'_>, found: &Object) {
        let annotations = json!({STRATEGY_HASH: self.hash});
        let metadata = json!({"labels": self.labels(slice), "annotations": annotations});
        self.patch_metadata(slice, found, metadata);
    }

    fn patch_metadata(&mut self, slice: &Slice<'_>, found: &Object, metadata: Value) {
        let why = Why::new("GroupLabels", self.sentence(slice));
        let patch = Map::from_iter([("metadata".to_owned(), metadata)]);
        self.actions.push(Action::patch(Verb::Record, found, Value::Object(patch), why));
    }

    fn delete(&mut self, decision: &Object) {
        let why =
            Why::new("DecisionNotNeeded", "its clusters are in other decisions or not selected");
        self.actions.push(Action::delete(Verb::Delete, decision, Propagation::Background, why));
        self.record("DecisionDelete", EventType::Normal, self.about(decision.name(), "deleted"));
    }

    fn labels(&self, slice: &Slice<'_>) -> Map<String, Value> {
        Map::from_iter([
            (PLACEMENT_LABEL.to_owned(), json!(self.placement.name())),
            (GROUP_INDEX_LABELS[0].to_owned(), json!(slice.group.to_string())),
            (GROUP_NAME_LABELS[0].to_owned(), json!(slice.group_name)),
        ])
    }

    fn sentence(&self, slice: &Slice<'_>) -> String {
        let (count, group) = (slice.clusters.len(), slice.group);
        format!("{count} clusters of decision group {group} of placement {}", self.placement.name())
    }

    fn about(&self, decision: &str, what: &str) -> String {
        let (name, namespace) = (self.placement.name(), self.placement.namespace());
        format!("Decision {decision} is {what} with placement {name} in namespace {namespace}")
    }

    fn record_update(&mut self, decision: &str) {
        let mut message = self.about(decision, "updated");
        let mut kind = EventType::Normal;
        if !self.schedule.expired.is_empty() {
            let expired = self.schedule.expired.join(" ");
            message = format!("{message}: AddOnPlacementScores {expired} expired in plugin AddOn");
            kind = EventType::Warning;
        }
        self.record("DecisionUpdate", kind, message);
        self.record("ScoreUpdate", EventType::Normal, score_text(&self.schedule.scores));
    }

    fn record(&mut self, reason: &str, kind: EventType, message: String) {
        self.events.push(Event::new(self.placement.key(), kind, reason, message));
    }
}

/// How a decision changes; one that is not there yet is made for its group.
fn change<'a>(slice: &'a Slice<'_>, found: Option<&'a Object>) -> Change<'a> {
    let group = (i64::try_from(slice.group).unwrap_or(i64::MAX), slice.group_name.as_str());
    let before = found.into_iter().flat_map(listed);
    Change {
        labelled: found.map_or(group, label_of),
        group,
        before: before.map(|(cluster, moves_to)| Listed { cluster, moves_to }).collect(),
        after: slice.clusters.clone(),
    }
}

fn is_labelled(found: &Object, labels: &Map<String, Value>) -> bool {
    labels.iter().all(|(key, value)| found.label(key) == value.as_str())
}

/// `name:score ` for every cluster, as many as fit.
fn score_text(scores: &[(&str, i64)]) -> String {
    let mut text = String::new();
    for (name, score) in scores {
        let pair = format!("{name}:{score} ");
        if text.len() + pair.len() > SCORE_TEXT_MAX {
            text += "......";
            break;
        }
        text += &pair;
    }
    text
}
