//! What the fleet's objects have to be like, beyond their schemas: the rules that upstream
//! keeps in admission webhooks. Kinds that only controllers write are read as they come.

pub(crate) mod member;
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

/// Every rule that `object` breaks, alone and beside the others.
pub(crate) fn validate(world: &World, object: &Object) -> Vec<Diagnostic> {
    let mut found = validation::schema(object);
    let kind = object.kind();
    for family in Family::ALL {
        if *kind == family.placement() {
            found.extend(placement::validate(world, object, family));
        } else if *kind == family.strategy() {
            found.extend(stages(object));
        }
    }
    if *kind == names::CLUSTER_OVERRIDE || *kind == names::OVERRIDE {
        found.extend(overrides::validate(world, object));
    } else if *kind == names::MEMBER_CLUSTER {
        found.extend(member::validate(object));
    } else if *kind == names::DISRUPTION_BUDGET {
        found.extend(budget(world, object));
    } else if *kind == names::EVICTION {
        found.extend(eviction(world, object));
    } else if *kind == names::CLUSTER_ENVELOPE || *kind == names::ENVELOPE {
        found.extend(wrapped(object));
    }
    found
}

/// Whether a label selector at `field` is sound.
fn selector(object: &Object, field: &str, value: &Value) -> Option<Diagnostic> {
    let error = Selector::from_value(value).err()?;
    let at = match error.field.as_str() {
        "" => field.to_owned(),
        inner => format!("{field}.{inner}"),
    };
    Some(Diagnostic::error(object, at, error.message))
}

fn stages(object: &Object) -> Vec<Diagnostic> {
    let stages = list(object.spec(), "stages").iter().enumerate();
    let checked = stages.filter_map(|(index, stage)| {
        let at = format!("spec.stages[{index}].labelSelector");
        selector(object, &at, field(stage, "labelSelector"))
    });
    checked.collect()
}

/// A budget that its placement cannot use blocks every eviction; it is kept all the same, since
/// the placement may change.
fn budget(world: &World, object: &Object) -> Vec<Diagnostic> {
    let placement = world.find(&Family::Cluster.placement(), "", object.name());
    if placement.and_then(Pick::of) != Some(Pick::All) {
        return Vec::new();
    }
    let mut found = Vec::new();
    if !field(object.spec(), "maxUnavailable").is_null() {
        let message = "a placement of type PickAll has no fixed number of clusters, so this allows nothing: use minAvailable with a count";
        found.push(Diagnostic::warning(object, "spec.maxUnavailable", message));
    }
    if field(object.spec(), "minAvailable").is_string() {
        let message = "a placement of type PickAll has no fixed number of clusters, so a percentage allows nothing: use a count";
        found.push(Diagnostic::warning(object, "spec.minAvailable", message));
    }
    found
}

fn eviction(world: &World, object: &Object) -> Vec<Diagnostic> {
    let name = text(object.spec(), "placementName");
    let Some(placement) = world.find(&Family::Cluster.placement(), "", name) else {
        return Vec::new();
    };
    let fixed = matches!(Pick::of(placement), Some(Pick::Fixed(_)));
    let message = if placement.is_deleting() {
        format!("placement {name:?} is being deleted")
    } else if fixed {
        format!("placement {name:?} is of type PickFixed: take the cluster off its list instead")
    } else {
        return Vec::new();
    };
    vec![Diagnostic::warning(object, "spec.placementName", message)]
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
