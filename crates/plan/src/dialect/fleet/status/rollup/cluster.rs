//! One entry of a placement's status per cluster: what its binding says, in a fixed order.

use std::borrow::Cow;
use std::mem::take;

use convoy_api::Object;
use convoy_api::object::member::same;
use serde_json::{Map, Value, json};
use smol_str::SmolStr;

use crate::by_name::ByName;
use crate::condition::{self, Condition};
use crate::dialect::fleet::names::RESOURCE_INDEX;
use crate::dialect::fleet::read::binding::{Binding, bindings};
use crate::dialect::fleet::read::placement::{Placement, Strategy, field, list, text};
use crate::dialect::fleet::read::snapshot::ResourceGroup;
use crate::dialect::fleet::status::rollup::{CLUSTERS, Inputs, missing};
use crate::parallel;

/// What all entries may take; an object that carries more is refused by stores.
const MOST_BYTES: usize = 700 * 1024;

/// The condition types after `Scheduled`, in the order in which they come true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    RolloutStarted,
    Overridden,
    WorkSynchronized,
    Applied,
    Available,
    DiffReported,
}

/// The entry of a selected cluster.
#[derive(Clone, Debug)]
pub(crate) struct Entry<'w> {
    pub(crate) cluster: &'w str,
    /// Empty where the cluster has no resource snapshot.
    pub(crate) index: SmolStr,
    pub(crate) is_overridden: bool,
    /// What the status says of it now.
    old: Option<&'w Value>,
    fields: Map<String, Value>,
    /// Copied once one of them changes.
    conditions: Cow<'w, [Value]>,
    /// By kind; none where it was not reached.
    statuses: [Option<&'static str>; 6],
}

impl Kind {
    /// With `ReportDiff` nothing is applied, so differences take the place of the last two.
    pub(crate) fn expected(placement: &Placement<'_>) -> &'static [Self] {
        use Kind::{
            Applied, Available, DiffReported, Overridden, RolloutStarted, WorkSynchronized,
        };
        if text(&placement.apply_strategy, "type") == "ReportDiff" {
            &[RolloutStarted, Overridden, WorkSynchronized, DiffReported]
        } else {
            &[RolloutStarted, Overridden, WorkSynchronized, Applied, Available]
        }
    }

    fn named(name: &str) -> Option<Self> {
        use Kind::{
            Applied, Available, DiffReported, Overridden, RolloutStarted, WorkSynchronized,
        };
        [RolloutStarted, Overridden, WorkSynchronized, Applied, Available, DiffReported]
            .into_iter()
            .find(|kind| kind.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::RolloutStarted => "RolloutStarted",
            Self::Overridden => "Overridden",
            Self::WorkSynchronized => "WorkSynchronized",
            Self::Applied => "Applied",
            Self::Available => "Available",
            Self::DiffReported => "DiffReported",
        }
    }

    /// The reason that goes with a status where none is copied.
    pub(crate) fn reason(self, status: &str) -> &'static str {
        let (yes, no, unknown) = match self {
            Self::RolloutStarted => {
                ("RolloutStarted", "RolloutNotStartedYet", "RolloutStartedUnknown")
            }
            Self::Overridden => ("OverriddenSucceeded", "OverriddenFailed", "OverriddenPending"),
            Self::WorkSynchronized => {
                ("WorkSynchronized", "WorkNotSynchronizedYet", "WorkSynchronizedUnknown")
            }
            Self::Applied => ("ApplySucceeded", "ApplyFailed", "ApplyPending"),
            Self::Available => {
                ("ResourceAvailable", "ResourceNotAvailableYet", "ResourceAvailableUnknown")
            }
            Self::DiffReported => (
                "DiffReportingCompleted",
                "DiffReportingIncompleteOrFailed",
                "DiffReportingPending",
            ),
        };
        match status {
            "True" => yes,
            "False" => no,
            _ => unknown,
        }
    }
}

/// The selected clusters, in the order of the decisions.
pub(crate) fn entries<'w>(
    inputs: Inputs<'_, 'w>,
    policy: &Object,
    selected: &[&'w Value],
    resources: Option<&ResourceGroup<'_>>,
) -> Vec<Entry<'w>> {
    let bindings = bindings(inputs.snapshot, inputs.placement);
    let live = bindings
        .iter()
        .filter(|binding| !binding.is_deleting() && binding.policy_snapshot() == policy.name());
    let bindings: ByName<'_, &Binding<'_>> =
        live.map(|binding| (binding.cluster(), binding)).collect();
    let old: ByName<'_, &Value> = list(inputs.placement.object.status(), CLUSTERS)
        .iter()
        .map(|entry| (text(entry, "clusterName"), entry))
        .collect();
    let selected: Vec<(usize, &'w Value)> = selected.iter().copied().enumerate().collect();
    let entry = |(at, decision): &(usize, &'w Value)| {
        let cluster = text(decision, "clusterName");
        let mut entry = Entry::begin(cluster, old.find(*at, cluster).copied());
        entry.set(inputs, "Scheduled", "True", ("Scheduled", text(decision, "reason")));
        match bindings.find(*at, cluster) {
            Some(binding) => entry.fill(inputs, binding, resources),
            None => entry.unknown(inputs, Kind::RolloutStarted),
        }
        entry.keep();
        entry
    };
    parallel::map(&selected, entry)
}

/// Entries without a name, for clusters that are wanted and could not be picked.
pub(crate) fn unscheduled<'d>(
    inputs: Inputs<'_, '_>,
    unselected: &'d [&Value],
    selected: usize,
) -> impl Iterator<Item = Value> + 'd {
    let generation = inputs.placement.object.generation();
    let old = list(inputs.placement.object.status(), CLUSTERS).iter();
    let old = old.filter(|entry| text(entry, "clusterName").is_empty());
    let mut old: Vec<Vec<Value>> = old.map(|entry| list(entry, "conditions").to_vec()).collect();
    old.reverse();
    let now = inputs.now;
    unselected.iter().take(missing(inputs.placement, selected)).map(move |decision| {
        let mut conditions = old.pop().unwrap_or_default();
        let why = ("ScheduleFailed", text(decision, "reason"));
        condition::set(&mut conditions, &wanted("Scheduled", "False", why, generation), now);
        json!({"conditions": conditions})
    })
}

/// The entries as a list; once they take much room, the rest of them carry only what counts.
pub(crate) fn bounded(entries: impl Iterator<Item = Value>) -> Value {
    let mut bytes = 0_usize;
    let bounded = entries.map(|mut entry| {
        if bytes > MOST_BYTES {
            strip(&mut entry);
        }
        bytes = bytes.saturating_add(length(&entry));
        entry
    });
    Value::Array(bounded.collect())
}

/// How many bytes a value takes on the wire.
fn length(value: &Value) -> usize {
    struct Counter(usize);
    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self.0.saturating_add(bytes.len());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    serde_json::to_writer(&mut counter, value).expect("a counter takes whatever is written");
    counter.0
}

fn strip(entry: &mut Value) {
    let Some(fields) = entry.as_object_mut() else { return };
    for name in ["failedPlacements", "driftedPlacements", "diffedPlacements"] {
        fields.shift_remove(name);
    }
    let conditions = fields.get_mut("conditions").and_then(Value::as_array_mut);
    // The last one is the first that is not true, or the proof that all are.
    if let Some(last) = conditions.and_then(|conditions| conditions.drain(..).next_back()) {
        fields.insert("conditions".into(), json!([last]));
    }
}

impl<'w> Entry<'w> {
    fn begin(cluster: &'w str, old: Option<&'w Value>) -> Self {
        let conditions = old.map_or(&[][..], |old| list(old, "conditions"));
        Self {
            cluster,
            index: SmolStr::default(),
            is_overridden: false,
            old,
            fields: Map::new(),
            conditions: Cow::Borrowed(conditions),
            statuses: [None; 6],
        }
    }

    /// Whether the status says exactly this, in its entry `old`.
    pub(crate) fn is_shown_in(&self, old: &Value) -> bool {
        let (Cow::Borrowed(_), Value::Object(members)) = (&self.conditions, old) else {
            return false;
        };
        let shown = |(name, value): (&String, &Value)| match name.as_str() {
            "clusterName" => value == self.cluster,
            "observedResourceIndex" => !self.index.is_empty() && value == self.index.as_str(),
            "conditions" => true, // borrowed from there
            other => self.fields.get(other).is_some_and(|wanted| same(wanted, value)),
        };
        self.old.is_some_and(|own| std::ptr::eq(own, old))
            && members.len() == 2 + usize::from(!self.index.is_empty()) + self.fields.len()
            && members.iter().all(shown)
    }

    /// The status of a type; None where it was not reached.
    pub(crate) fn status(&self, kind: Kind) -> Option<&'static str> {
        self.statuses[kind as usize]
    }

    /// The entry as it stands in the status, which leaves here only what is summed up.
    pub(crate) fn take_json(&mut self) -> Value {
        let mut entry = Map::new();
        entry.insert("clusterName".into(), json!(self.cluster));
        if !self.index.is_empty() {
            entry.insert("observedResourceIndex".into(), json!(self.index));
        }
        entry.extend(take(&mut self.fields));
        entry.insert("conditions".into(), Value::Array(take(&mut self.conditions).into_owned()));
        Value::Object(entry)
    }

    fn fill(
        &mut self,
        inputs: Inputs<'_, '_>,
        binding: &Binding<'_>,
        resources: Option<&ResourceGroup<'_>>,
    ) {
        let carried = binding.resource_snapshot();
        if inputs.placement.strategy == Strategy::External {
            let kind = inputs.placement.family.resource_snapshot();
            let found = inputs.snapshot.find(&kind, inputs.placement.namespace(), carried);
            self.index = index(found);
            self.copy(inputs, binding);
            return;
        }
        self.index = index(resources.map(|group| group.master));
        if resources.is_some_and(|group| group.master.name() == carried) {
            self.copy(inputs, binding);
        } else if binding.status("RolloutStarted") == Some("False") {
            let message = "the rollout strategy does not allow the change yet";
            self.note(inputs, Kind::RolloutStarted, "False", ("RolloutNotStartedYet", message));
        } else {
            self.unknown(inputs, Kind::RolloutStarted);
        }
    }

    /// Type by type from the binding, until the first that is not true.
    fn copy(&mut self, inputs: Inputs<'_, '_>, binding: &Binding<'_>) {
        for kind in Kind::expected(inputs.placement) {
            let said = binding.condition(kind.name());
            let status = said.and_then(|said| word(text(said, "status")));
            let (Some(said), Some(status @ ("True" | "False"))) = (said, status) else {
                self.unknown(inputs, *kind);
                break;
            };
            self.note(inputs, *kind, status, (text(said, "reason"), text(said, "message")));
            self.copy_lists(binding, *kind, status);
            if status != "True" {
                break;
            }
        }
    }

    fn copy_lists(&mut self, binding: &Binding<'_>, kind: Kind, status: &str) {
        let (spec, reported) = (binding.object.spec(), binding.object.status());
        let lists: &[(&str, &Value)] = match (kind, status) {
            (Kind::RolloutStarted, "True") => &[
                ("applicableResourceOverrides", field(spec, "resourceOverrideSnapshots")),
                (
                    "applicableClusterResourceOverrides",
                    field(spec, "clusterResourceOverrideSnapshots"),
                ),
            ],
            (Kind::Applied | Kind::Available, "False") => &[
                ("failedPlacements", field(reported, "failedPlacements")),
                ("driftedPlacements", field(reported, "driftedPlacements")),
                ("diffedPlacements", field(reported, "diffedPlacements")),
            ],
            (Kind::Applied | Kind::DiffReported, _) => &[
                ("driftedPlacements", field(reported, "driftedPlacements")),
                ("diffedPlacements", field(reported, "diffedPlacements")),
            ],
            _ => &[],
        };
        for (name, value) in lists {
            if value.as_array().is_some_and(|entries| !entries.is_empty()) {
                self.is_overridden |= kind == Kind::RolloutStarted;
                self.fields.insert((*name).to_owned(), (*value).clone());
            }
        }
    }

    fn unknown(&mut self, inputs: Inputs<'_, '_>, kind: Kind) {
        let message = "nothing is reported for the current state yet";
        self.note(inputs, kind, "Unknown", (kind.reason("Unknown"), message));
    }

    fn note(
        &mut self,
        inputs: Inputs<'_, '_>,
        kind: Kind,
        status: &'static str,
        why: (&str, &str),
    ) {
        self.set(inputs, kind.name(), status, why);
        self.statuses[kind as usize] = Some(status);
    }

    fn set(&mut self, inputs: Inputs<'_, '_>, kind: &str, status: &'static str, why: (&str, &str)) {
        let generation = inputs.placement.object.generation();
        let wanted = wanted(kind, status, why, generation);
        if !condition::has(&self.conditions, &wanted) {
            condition::set(self.conditions.to_mut(), &wanted, inputs.now);
        }
    }

    /// Takes away the types that were not reached.
    fn keep(&mut self) {
        let statuses = &self.statuses;
        let is_kept = |entry: &Value| {
            let kind = text(entry, "type");
            kind == "Scheduled"
                || Kind::named(kind).is_some_and(|kind| statuses[kind as usize].is_some())
        };
        if !self.conditions.iter().all(is_kept) {
            self.conditions.to_mut().retain(is_kept);
        }
    }
}

/// A status word that conditions may have.
pub(crate) fn word(status: &str) -> Option<&'static str> {
    ["True", "False", "Unknown"].into_iter().find(|known| *known == status)
}

fn index(snapshot: Option<&Object>) -> SmolStr {
    snapshot
        .and_then(|snapshot| snapshot.label(RESOURCE_INDEX))
        .map_or_else(SmolStr::default, SmolStr::new)
}

fn wanted<'t>(
    kind: &'t str,
    status: &'static str,
    why: (&'t str, &'t str),
    generation: i64,
) -> Condition<'t> {
    Condition::new(kind, status, why.0, why.1).of_generation(generation)
}
