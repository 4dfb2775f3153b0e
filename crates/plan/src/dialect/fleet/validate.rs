//! What the fleet's objects have to be like, beyond their schemas: the rules that upstream
//! keeps in admission webhooks. Kinds that only controllers write are read as they come.

pub(crate) mod member;
mod notation;
pub(crate) mod overrides;
pub(crate) mod placement;
pub(crate) mod policy;
pub(crate) mod property;

use convoy_api::{GroupKind, Object};
use serde_json::Value;

use crate::diagnostic::Diagnostic;
use crate::dialect::fleet::names::{self, Family};
use crate::dialect::fleet::read::placement::{Pick, field, list, text};
use crate::selector::Selector;
use crate::validation;
use crate::world::World;

/// Names of objects that end up in labels.
const NAME_MAX: usize = 63;

/// What keys of taints and tolerations are like.
const QUALIFIED_NAME: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', \
    and must start and end with an alphanumeric character (e.g. example.com/dedicated)";

/// Whether people write objects of this kind.
pub(crate) fn validates(kind: &GroupKind) -> bool {
    let of_family = |family: Family| {
        [family.placement(), family.run(), family.strategy(), family.approval_request()]
            .contains(kind)
    };
    let others = [
        names::EVICTION,
        names::DISRUPTION_BUDGET,
        names::CLUSTER_OVERRIDE,
        names::OVERRIDE,
        names::CLUSTER_ENVELOPE,
        names::ENVELOPE,
        names::MEMBER_CLUSTER,
    ];
    Family::ALL.into_iter().any(of_family) || others.contains(kind)
}

/// Whether what is said about an object of a kind depends on those of another one. A fleet has
/// thousands of placements and members, and none of them depends on its peers.
pub(crate) fn validates_beside(kind: &GroupKind, other: &GroupKind) -> bool {
    match kind {
        kind if [names::CLUSTER_OVERRIDE, names::OVERRIDE].contains(kind) => kind == other,
        kind if [names::DISRUPTION_BUDGET, names::EVICTION].contains(kind) => {
            *other == Family::Cluster.placement()
        }
        _ => false,
    }
}

/// When an object is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Before it is stored, beside everything that is.
    Admission,
    /// Beside the objects of a plan, which may lack some.
    Planning,
}

impl Moment {
    /// A finding that refuses an object, but that does not make a stored one unusable.
    fn finding(self, object: &Object, field: &str, message: String) -> Diagnostic {
        match self {
            Self::Admission => Diagnostic::error(object, field, message),
            Self::Planning => Diagnostic::warning(object, field, message),
        }
    }
}

/// Every rule that `object` breaks, alone and beside the others.
pub(crate) fn validate(world: &World, object: &Object) -> Vec<Diagnostic> {
    validation::schema_and(object, |object| rules(world, object, Moment::Planning))
}

/// The same without the schema, which an API server has checked already.
pub(crate) fn rules(world: &World, object: &Object, moment: Moment) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let kind = object.kind();
    for family in Family::ALL {
        if *kind == family.placement() {
            found.extend(placement::validate(world, object, family, moment));
        } else if *kind == family.strategy() {
            found.extend(stages(object));
        }
    }
    if *kind == names::CLUSTER_OVERRIDE || *kind == names::OVERRIDE {
        found.extend(overrides::validate(world, object, moment));
    } else if *kind == names::MEMBER_CLUSTER {
        found.extend(member::validate(object));
    } else if *kind == names::DISRUPTION_BUDGET {
        found.extend(budget(world, object, moment));
    } else if *kind == names::EVICTION {
        found.extend(eviction(world, object, moment));
    } else if *kind == names::CLUSTER_ENVELOPE || *kind == names::ENVELOPE {
        found.extend(wrapped(object));
    }
    found
}

/// Whether the label selector of `parent` at `field` is sound.
fn selector(object: &Object, field: &str, value: &Value, parent: &str) -> Option<Diagnostic> {
    let error = Selector::from_value(value).err()?;
    let at = match error.field.as_str() {
        "" => field.to_owned(),
        inner => format!("{field}.{inner}"),
    };
    let printed = notation::label_selector(value);
    let message = format!("the labelSelector in {parent} {printed} is invalid: {}", error.message);
    Some(Diagnostic::error(object, at, message))
}

fn stages(object: &Object) -> Vec<Diagnostic> {
    let stages = list(object.spec(), "stages").iter().enumerate();
    let checked = stages.filter_map(|(index, stage)| {
        let at = format!("spec.stages[{index}].labelSelector");
        selector(object, &at, field(stage, "labelSelector"), "stage")
    });
    checked.collect()
}

/// A budget that its placement cannot use blocks every eviction; it is kept all the same, since
/// the placement may change.
fn budget(world: &World, object: &Object, moment: Moment) -> Vec<Diagnostic> {
    let placement = world.find(&Family::Cluster.placement(), "", object.name());
    if placement.and_then(Pick::of) != Some(Pick::All) {
        return Vec::new();
    }
    let spec = object.spec();
    let mut found = Vec::new();
    if !field(spec, "maxUnavailable").is_null() {
        let message = format!(
            "cluster resource placement policy type PickAll is not supported with any specified \
             max unavailable {}: it has no fixed number of clusters; use minAvailable with a count",
            plain(field(spec, "maxUnavailable"))
        );
        found.push(moment.finding(object, "spec.maxUnavailable", message));
    }
    if field(spec, "minAvailable").is_string() {
        let message = format!(
            "cluster resource placement policy type PickAll is not supported with min available \
             as a percentage {}: it has no fixed number of clusters; use a count",
            plain(field(spec, "minAvailable"))
        );
        found.push(moment.finding(object, "spec.minAvailable", message));
    }
    found
}

/// A count or a percentage without quotes.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn eviction(world: &World, object: &Object, moment: Moment) -> Vec<Diagnostic> {
    let name = text(object.spec(), "placementName");
    let Some(placement) = world.find(&Family::Cluster.placement(), "", name) else {
        return Vec::new();
    };
    let fixed = matches!(Pick::of(placement), Some(Pick::Fixed(_)));
    let message = if placement.is_deleting() {
        format!("cluster resource placement {name} is being deleted")
    } else if fixed {
        "cluster resource placement policy type PickFixed is not supported: take the cluster off \
         its list instead"
            .to_owned()
    } else {
        return Vec::new();
    };
    vec![moment.finding(object, "spec.placementName", message)]
}

/// What an envelope wraps has to live where the envelope does.
fn wrapped(object: &Object) -> Vec<Diagnostic> {
    let data = field(object.raw(), "data").as_object().into_iter().flatten();
    let stray = data.filter_map(|(key, inner)| {
        let namespace = text(field(inner, "metadata"), "namespace");
        (namespace != object.namespace().as_str()).then(|| {
            let message = match object.namespace().as_str() {
                "" => format!("wraps an object of namespace {namespace:?}; want cluster scope"),
                own => format!("wraps an object of namespace {namespace:?}; want {own:?}"),
            };
            Diagnostic::warning(object, format!("data[{key}].metadata.namespace"), message)
        })
    });
    stray.collect()
}
