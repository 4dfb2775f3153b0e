//! A placement's policy as the scheduler reads it: selectors compiled, defaults filled in.

use convoy_api::Object;
use convoy_api::text::Quantity;
use serde_json::Value;

use crate::dialect::fleet::read::member::property;
use crate::dialect::fleet::read::placement::{Pick, Placement, field, list, text};
use crate::selector::Selector;
use crate::taint::Toleration;

/// What clusters have to be like, and which are better.
#[derive(Clone, Debug)]
pub(crate) struct SchedulingPolicy<'w> {
    /// One of them has to match; none: every cluster does.
    pub(crate) required: Vec<Term<'w>>,
    pub(crate) preferred: Vec<Preference<'w>>,
    /// Those that filter come first.
    pub(crate) spread: Vec<Spread<'w>>,
    pub(crate) tolerations: Vec<Toleration<'w>>,
}

/// A required term: labels and properties, all of which have to match.
#[derive(Clone, Debug)]
pub(crate) struct Term<'w> {
    /// None: it cannot be read, and so matches nothing.
    labels: Option<Selector>,
    properties: Vec<Requirement<'w>>,
}

#[derive(Clone, Copy, Debug)]
struct Requirement<'w> {
    name: &'w str,
    operator: &'w str,
    value: Option<Quantity>,
}

/// A preferred term.
#[derive(Clone, Debug)]
pub(crate) struct Preference<'w> {
    pub(crate) weight: i32,
    labels: Option<Selector>,
    pub(crate) sorter: Option<Sorter<'w>>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Sorter<'w> {
    pub(crate) property: &'w str,
    pub(crate) ascending: bool,
}

/// A topology spread constraint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread<'w> {
    pub(crate) key: &'w str,
    pub(crate) max_skew: i64,
    /// Whether breaking it keeps a cluster out, or only makes it worse.
    pub(crate) filters: bool,
}

impl<'w> SchedulingPolicy<'w> {
    pub(crate) fn read(placement: &Placement<'w>) -> Self {
        let raw = placement.policy.raw;
        let affinity = field(field(raw, "affinity"), "clusterAffinity");
        let required = field(affinity, "requiredDuringSchedulingIgnoredDuringExecution");
        let preferred = list(affinity, "preferredDuringSchedulingIgnoredDuringExecution");
        let scored = matches!(placement.policy.pick, Pick::Number(_));
        let mut spread: Vec<Spread<'w>> =
            list(raw, "topologySpreadConstraints").iter().map(Spread::read).collect();
        spread.sort_by_key(|constraint| !constraint.filters);
        Self {
            required: list(required, "clusterSelectorTerms").iter().map(Term::read).collect(),
            preferred: if scored {
                preferred.iter().map(Preference::read).filter(|term| term.weight != 0).collect()
            } else {
                Vec::new()
            },
            spread: if scored { spread } else { Vec::new() },
            tolerations: list(raw, "tolerations").iter().map(Toleration::from_value).collect(),
        }
    }
}

impl<'w> Term<'w> {
    fn read(raw: &'w Value) -> Self {
        let expressions = list(field(raw, "propertySelector"), "matchExpressions");
        Self {
            labels: Selector::from_value(field(raw, "labelSelector")).ok(),
            properties: expressions.iter().map(Requirement::read).collect(),
        }
    }

    pub(crate) fn matches(&self, cluster: &Object) -> bool {
        self.labels.as_ref().is_some_and(|labels| labels.matches(cluster))
            && self.properties.iter().all(|requirement| requirement.matches(cluster))
    }
}

impl<'w> Requirement<'w> {
    fn read(raw: &'w Value) -> Self {
        let value = list(raw, "values").first().and_then(Value::as_str);
        Self {
            name: text(raw, "name"),
            operator: text(raw, "operator"),
            value: value.and_then(|value| value.parse().ok()),
        }
    }

    /// A property that the cluster does not report never matches.
    fn matches(&self, cluster: &Object) -> bool {
        let (Some(have), Some(want)) = (property(cluster, self.name), self.value) else {
            return false;
        };
        match self.operator {
            "Gt" => have > want,
            "Ge" => have >= want,
            "Eq" => have == want,
            "Ne" => have != want,
            "Lt" => have < want,
            "Le" => have <= want,
            _ => false,
        }
    }
}

impl<'w> Preference<'w> {
    fn read(raw: &'w Value) -> Self {
        let term = field(raw, "preference");
        let sorter = field(term, "propertySorter");
        let weight = raw.get("weight").and_then(Value::as_i64).unwrap_or(0).clamp(-100, 100);
        Self {
            weight: i32::try_from(weight).unwrap_or(0),
            labels: Selector::from_value(field(term, "labelSelector")).ok(),
            sorter: (!sorter.is_null()).then(|| Sorter {
                property: text(sorter, "name"),
                ascending: text(sorter, "sortOrder") == "Ascending",
            }),
        }
    }

    pub(crate) fn matches(&self, cluster: &Object) -> bool {
        self.labels.as_ref().is_some_and(|labels| labels.matches(cluster))
    }
}

impl<'w> Spread<'w> {
    fn read(raw: &'w Value) -> Self {
        Self {
            key: text(raw, "topologyKey"),
            max_skew: raw.get("maxSkew").and_then(Value::as_i64).unwrap_or(1),
            filters: text(raw, "whenUnsatisfiable") != "ScheduleAnyway",
        }
    }
}
