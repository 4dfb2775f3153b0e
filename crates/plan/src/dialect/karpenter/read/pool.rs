//! A NodePool as the engine reads it: one meaning, whichever version it was written in.

use std::borrow::Cow;

use crate::dialect::karpenter::names::{self, annotation};
use convoy_api::Object;
use convoy_api::text::{GoDuration, Quantity};
use jiff::SignedDuration;
use jiff::tz::TimeZone;
use serde_json::Value;

use super::budget::{Budget, Default};
use super::hash;
use super::requirement::Requirements;
use crate::cron;

/// A pool and its policy.
#[derive(Clone, Debug)]
pub(crate) struct Pool<'w> {
    pub(crate) object: &'w Object,
    /// The pool in `v1` words.
    v1: Cow<'w, Value>,
    pub(crate) budgets: Vec<Budget>,
    pub(crate) default_budget: Default,
    pub(crate) expiration: Expiration,
    /// Absent: never.
    pub(crate) consolidate_after: Option<SignedDuration>,
    pub(crate) policy: Policy,
    /// Absent: never.
    pub(crate) expire_after: Option<SignedDuration>,
    /// Present on static pools.
    pub(crate) replicas: Option<u32>,
    pub(crate) weight: i64,
    pub(crate) requirements: Requirements,
    pub(crate) hash: String,
    /// Whether the instance types are those of the built-in catalogue.
    pub(crate) has_catalogue: bool,
    /// Whether the pool carries its hash in today's version.
    pub(crate) is_hashed: bool,
}

/// Whether nodes that are too old obey the budgets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expiration {
    Forceful,
    Budgeted,
}

/// Which nodes are worth consolidating.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    WhenEmpty,
    WhenEmptyOrUnderutilized,
    /// Only if it saves enough for what it disturbs.
    Balanced,
}

/// What the API fills in for `expireAfter`.
const EXPIRE_AFTER: SignedDuration = SignedDuration::from_hours(720);

impl<'w> Pool<'w> {
    /// Reads a pool. What validation would refuse reads as its default.
    pub(crate) fn new(object: &'w Object) -> Self {
        let is_beta = object.version() == "v1beta1";
        let v1 = if is_beta {
            Cow::Owned(convoy_api::karpenter::convert::to_v1(object.raw()))
        } else {
            Cow::Borrowed(object.raw())
        };
        let spec = v1.get("spec").unwrap_or(&Value::Null);
        let template = spec.pointer("/template/spec").unwrap_or(&Value::Null);
        let disruption = spec.get("disruption").unwrap_or(&Value::Null);
        let noted = |key: &str| v1.get("metadata")?.get("annotations")?.get(key)?.as_str();
        let replicas = spec.get("replicas").and_then(Value::as_i64);
        let zone = zone(noted(annotation::TIME_ZONE));
        Self {
            object,
            budgets: budgets(disruption, &zone),
            default_budget: match noted(annotation::DEFAULT_BUDGET) {
                Some("unlisted") => Default::Unlisted,
                _ => Default::All,
            },
            expiration: match noted(annotation::EXPIRATION) {
                Some("budgeted") => Expiration::Budgeted,
                _ => Expiration::Forceful,
            },
            consolidate_after: duration(disruption.get("consolidateAfter"), SignedDuration::ZERO),
            policy: match disruption.get("consolidationPolicy").and_then(Value::as_str) {
                Some("WhenEmpty") => Policy::WhenEmpty,
                Some("Balanced") => Policy::Balanced,
                _ => Policy::WhenEmptyOrUnderutilized,
            },
            expire_after: duration(template.get("expireAfter"), EXPIRE_AFTER),
            replicas: replicas.map(|count| u32::try_from(count.max(0)).unwrap_or(u32::MAX)),
            weight: spec.get("weight").and_then(Value::as_i64).unwrap_or(0),
            requirements: Requirements::from_value(template.get("requirements")),
            hash: hash::of_template(spec.get("template").unwrap_or(&Value::Null)),
            is_hashed: object.annotation(annotation::HASH).is_some()
                && object.annotation(annotation::HASH_VERSION) == Some(names::HASH_VERSION),
            has_catalogue: template.pointer("/nodeClassRef/group").and_then(Value::as_str)
                == Some(names::KWOK_GROUP),
            v1,
        }
    }

    pub(crate) fn name(&self) -> &'w str {
        self.object.name()
    }

    /// `spec.template` in `v1` words.
    pub(crate) fn template(&self) -> &Value {
        self.v1.pointer("/spec/template").unwrap_or(&Value::Null)
    }

    pub(crate) fn class_ref(&self) -> &Value {
        self.template().pointer("/spec/nodeClassRef").unwrap_or(&Value::Null)
    }

    pub(crate) fn is_static(&self) -> bool {
        self.replicas.is_some()
    }

    pub(crate) fn is_budgeted_expiration(&self) -> bool {
        self.expiration == Expiration::Budgeted
    }

    /// An entry of `spec.limits`.
    pub(crate) fn limit(&self, resource: &str) -> Option<Quantity> {
        self.limits().find(|(name, _)| *name == resource).map(|(_, amount)| amount)
    }

    pub(crate) fn limits(&self) -> impl Iterator<Item = (&str, Quantity)> {
        let limits = self.v1.pointer("/spec/limits").and_then(Value::as_object);
        let limits = limits.into_iter().flatten();
        limits.filter_map(|(name, value)| Some((name.as_str(), quantity(value)?)))
    }
}

/// A quantity, whether it was quoted or not.
pub(crate) fn quantity(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    }
}

/// A duration, or none for `Never`; `absent` where it is not given.
pub(crate) fn duration(value: Option<&Value>, absent: SignedDuration) -> Option<SignedDuration> {
    match value.and_then(Value::as_str) {
        None => Some(absent),
        Some("Never") => None,
        Some(text) => Some(text.parse::<GoDuration>().map_or(absent, GoDuration::signed)),
    }
}

/// Whether the pool in `object` names `class` as its node class, or may: a reference that lacks
/// a field may name any.
pub(crate) fn may_name_class(object: &Object, class: &Object) -> bool {
    let reference = object.spec().pointer("/template/spec/nodeClassRef");
    let named = |field: &str| reference.and_then(|reference| reference.get(field)?.as_str());
    named("kind").is_none_or(|kind| kind == class.kind().kind)
        && named("name").is_none_or(|name| name == class.name())
}

fn zone(name: Option<&str>) -> Result<TimeZone, String> {
    match name {
        None => Ok(TimeZone::UTC),
        Some(name) => {
            cron::zone(name).map_err(|error| format!("{}: {error}", annotation::TIME_ZONE))
        }
    }
}

fn budgets(disruption: &Value, zone: &Result<TimeZone, String>) -> Vec<Budget> {
    match disruption.get("budgets") {
        Some(Value::Array(list)) => {
            list.iter().map(|budget| Budget::from_value(budget, zone)).collect()
        }
        _ => vec![Budget::from_value(&Value::Null, zone)],
    }
}
