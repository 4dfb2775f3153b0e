//! A NodePool as the engine reads it: one meaning, whichever version it was written in.

use std::borrow::Cow;
use std::collections::BTreeMap;

use convoy_api::Object;
use convoy_api::karpenter::convert;
use convoy_api::karpenter::node_pool::{self as api, Disruption, NodePoolSpec};
use convoy_api::karpenter::template::{NodeClassRef, Resources};
use convoy_api::object::view::view_of;
use convoy_api::text::{GoDuration, Quantity};
use jiff::SignedDuration;
use jiff::tz::TimeZone;
use serde_json::Value;
use smol_str::SmolStr;

use super::budget::{Budget, Coverage};
use super::hash;
use super::reason::Reason;
use super::requirement;
use crate::cron;
use crate::dialect::karpenter::names::{self, annotation};
use crate::requirement::Requirements;
use crate::resources;
use crate::taint::Taint;

/// A pool and its policy.
#[derive(Clone, Debug)]
pub(crate) struct Pool<'w> {
    pub(crate) object: &'w Object,
    /// `spec.template` of the pool in `v1` words, raw: claims are copied from it with fields that
    /// nobody here knows, and its hash is over the JSON as it was written.
    template: Cow<'w, Value>,
    pub(crate) class: Option<NodeClassRef>,
    limits: BTreeMap<String, Quantity>,
    pub(crate) budgets: Vec<Budget>,
    pub(crate) coverage: Coverage,
    pub(crate) expiration: Expiration,
    /// Absent: never.
    pub(crate) consolidate_after: Option<SignedDuration>,
    pub(crate) policy: Policy,
    /// Absent: never.
    pub(crate) expire_after: Option<SignedDuration>,
    /// Present on static pools.
    pub(crate) replicas: Option<u32>,
    pub(crate) weight: i32,
    pub(crate) requirements: Requirements,
    /// How many values of a label the machines of a claim leave open at least, if the machines are
    /// known.
    pub(crate) min_values: Vec<(SmolStr, usize)>,
    pub(crate) hash: String,
    /// Whether the instance types are those of the built-in catalogue.
    pub(crate) has_catalogue: bool,
    /// What new machines are made from, where the provider is known to say so.
    pub(crate) image: Option<&'w str>,
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

impl Policy {
    fn read(word: Option<&str>) -> Self {
        match word {
            Some("WhenEmpty") => Self::WhenEmpty,
            Some("Balanced") => Self::Balanced,
            _ => Self::WhenEmptyOrUnderutilized,
        }
    }

    /// The API's word for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::WhenEmpty => "WhenEmpty",
            Self::WhenEmptyOrUnderutilized => "WhenEmptyOrUnderutilized",
            Self::Balanced => "Balanced",
        }
    }
}

/// What the API fills in where no budgets are given: 10% of the nodes, always, for all reasons.
const DEFAULT_BUDGET: api::Budget =
    api::Budget { nodes: None, schedule: None, duration: None, reasons: None };

/// What the API fills in for `expireAfter`.
const EXPIRE_AFTER: SignedDuration = SignedDuration::from_hours(720);

impl<'w> Pool<'w> {
    /// Reads a pool. One that does not fit the API's types, which validation refuses, reads as
    /// one with default settings and an unreadable budget: nothing of it is disrupted.
    pub(crate) fn new(object: &'w Object) -> Self {
        let v1 = if object.version() == "v1beta1" {
            Cow::Owned(convert::to_v1(object.raw()))
        } else {
            Cow::Borrowed(object.raw())
        };
        let noted = |key: &str| v1.get("metadata")?.get("annotations")?.get(key)?.as_str();
        let (spec, error) = match view_of::<NodePoolSpec>(v1.get("spec").unwrap_or(&Value::Null)) {
            Ok(spec) => (Some(spec), None),
            Err(error) => (None, Some(format!("spec.{error}"))),
        };
        let spec = spec.as_ref();
        let claim = spec.map(|spec| &spec.template.spec);
        let class = claim.map(|claim| claim.node_class_ref.clone());
        let has_catalogue = class.as_ref().is_some_and(|class| class.group == names::KWOK_GROUP);
        let disruption = spec.and_then(|spec| spec.disruption.as_ref());
        let setting = |of: fn(&Disruption) -> &Option<String>| of(disruption?).as_deref();
        let coverage = match noted(annotation::DEFAULT_BUDGET) {
            Some("unlisted") => Coverage::Unlisted,
            _ => Coverage::All,
        };
        let expiration = match noted(annotation::EXPIRATION) {
            Some("budgeted") => Expiration::Budgeted,
            _ => Expiration::Forceful,
        };
        let zone = zone(noted(annotation::TIME_ZONE));
        let replicas = spec.and_then(|spec| spec.replicas);
        let template = template(&v1, object);
        Self {
            object,
            budgets: match error {
                None => budgets(disruption, &zone),
                Some(error) => vec![Budget::closed(error)],
            },
            coverage,
            expiration,
            consolidate_after: duration(setting(|it| &it.consolidate_after), SignedDuration::ZERO),
            policy: Policy::read(setting(|it| &it.consolidation_policy)),
            expire_after: duration(
                claim.and_then(|claim| claim.expire_after.as_deref()),
                EXPIRE_AFTER,
            ),
            replicas: replicas.map(|count| u32::try_from(count.max(0)).unwrap_or(u32::MAX)),
            weight: spec.and_then(|spec| spec.weight).unwrap_or(0),
            requirements: claim
                .map(|claim| requirement::of_template(&claim.requirements))
                .unwrap_or_default(),
            min_values: claim
                .filter(|_| has_catalogue)
                .map(|claim| requirement::min_values(&claim.requirements))
                .unwrap_or_default(),
            hash: hash::of_template(&template),
            is_hashed: object.annotation(annotation::HASH).is_some()
                && object.annotation(annotation::HASH_VERSION) == Some(names::HASH_VERSION),
            has_catalogue,
            image: None,
            class,
            limits: limits(spec.and_then(|spec| spec.limits.as_ref())),
            template,
        }
    }

    pub(crate) fn name(&self) -> &'w str {
        self.object.name()
    }

    /// `spec.template` in `v1` words.
    pub(crate) fn template(&self) -> &Value {
        &self.template
    }

    /// The labels that the template gives to nodes.
    pub(crate) fn template_labels(&self) -> impl Iterator<Item = (&str, &str)> {
        let labels = self.template.pointer("/metadata/labels").and_then(Value::as_object);
        let entries = labels.into_iter().flatten();
        entries.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
    }

    /// One of them.
    pub(crate) fn template_label(&self, key: &str) -> Option<&str> {
        self.template.pointer("/metadata/labels")?.get(key)?.as_str()
    }

    /// The taints that the template gives to nodes for good.
    pub(crate) fn taints(&self) -> Vec<Taint<'_>> {
        let taints = self.template.pointer("/spec/taints").and_then(Value::as_array);
        taints.into_iter().flatten().map(Taint::from_value).collect()
    }

    /// The reasons that budgets of the pool can speak of, in the order of the API.
    pub(crate) fn reasons(&self) -> impl Iterator<Item = Reason> + use<> {
        let is_budgeted = self.is_budgeted_expiration();
        let all = [Reason::Underutilized, Reason::Empty, Reason::Drifted, Reason::Expired];
        all.into_iter().filter(move |reason| is_budgeted || *reason != Reason::Expired)
    }

    pub(crate) fn is_static(&self) -> bool {
        self.replicas.is_some()
    }

    pub(crate) fn is_budgeted_expiration(&self) -> bool {
        self.expiration == Expiration::Budgeted
    }

    /// `spec.limits`.
    pub(crate) fn limits(&self) -> impl Iterator<Item = (&str, Quantity)> {
        self.limits.iter().map(|(resource, limit)| (resource.as_str(), *limit))
    }

    /// An entry of it.
    pub(crate) fn limit(&self, resource: &str) -> Option<Quantity> {
        self.limits.get(resource).copied()
    }
}

/// `spec.template` of a pool, borrowed where the pool is.
fn template<'w>(v1: &Cow<'w, Value>, object: &'w Object) -> Cow<'w, Value> {
    match v1 {
        Cow::Borrowed(_) => Cow::Borrowed(object.spec().get("template").unwrap_or(&Value::Null)),
        Cow::Owned(v1) => Cow::Owned(v1.pointer("/spec/template").cloned().unwrap_or_default()),
    }
}

fn limits(given: Option<&Resources>) -> BTreeMap<String, Quantity> {
    let given = given.into_iter().flatten();
    given.filter_map(|(name, value)| Some((name.clone(), resources::quantity(value)?))).collect()
}

/// A duration, or none for `Never`; `absent` where it is not given.
pub(crate) fn duration(text: Option<&str>, absent: SignedDuration) -> Option<SignedDuration> {
    match text {
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

fn budgets(disruption: Option<&Disruption>, zone: &Result<TimeZone, String>) -> Vec<Budget> {
    match disruption.and_then(|disruption| disruption.budgets.as_ref()) {
        Some(budgets) => budgets.iter().map(|budget| Budget::new(budget, zone)).collect(),
        None => vec![Budget::new(&DEFAULT_BUDGET, zone)],
    }
}
