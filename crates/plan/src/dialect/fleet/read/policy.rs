//! A placement's policy as the scheduler reads it: selectors compiled, defaults filled in.

use convoy_api::Object;
use convoy_api::fleet::policy::{
    self as wire, ClusterSelectorTerm, PreferredClusterSelector, PropertySelectorRequirement,
    TopologySpreadConstraint,
};
use convoy_api::text::Quantity;

use crate::dialect::fleet::read::member::property;
use crate::dialect::fleet::read::placement::{Pick, Placement};
use crate::selector::Selector;
use crate::taint::Toleration;

/// What clusters have to be like, and which are better.
#[derive(Clone, Debug)]
pub(crate) struct SchedulingPolicy<'p> {
    /// One of them has to match; none: every cluster does.
    pub(crate) required: Vec<Term<'p>>,
    pub(crate) preferred: Vec<Preference<'p>>,
    /// Those that filter come first.
    pub(crate) spread: Vec<Spread<'p>>,
    pub(crate) tolerations: Vec<Toleration<'p>>,
}

/// A required term: labels and properties, all of which have to match.
#[derive(Clone, Debug)]
pub(crate) struct Term<'p> {
    /// None: it cannot be read, and so matches nothing.
    labels: Option<Selector>,
    properties: Vec<Requirement<'p>>,
}

#[derive(Clone, Copy, Debug)]
struct Requirement<'p> {
    name: &'p str,
    operator: &'p str,
    value: Option<Quantity>,
}

/// A preferred term.
#[derive(Clone, Debug)]
pub(crate) struct Preference<'p> {
    pub(crate) weight: i32,
    labels: Option<Selector>,
    pub(crate) sorter: Option<Sorter<'p>>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Sorter<'p> {
    pub(crate) property: &'p str,
    pub(crate) ascending: bool,
}

/// A topology spread constraint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread<'p> {
    pub(crate) key: &'p str,
    pub(crate) max_skew: i64,
    /// Whether breaking it keeps a cluster out, or only makes it worse.
    pub(crate) filters: bool,
}

impl<'p> SchedulingPolicy<'p> {
    pub(crate) fn read(placement: &'p Placement<'_>) -> Self {
        let spec = &placement.policy.spec;
        let affinity = spec.affinity.as_ref().and_then(|it| it.cluster_affinity.as_ref());
        let required = affinity
            .and_then(|it| it.required_during_scheduling_ignored_during_execution.as_ref())
            .into_iter()
            .flat_map(|required| &required.cluster_selector_terms);
        let preferred = affinity
            .into_iter()
            .flat_map(|it| &it.preferred_during_scheduling_ignored_during_execution)
            .flatten();
        let scored = matches!(placement.policy.pick, Pick::Number(_));
        let constraints = spec.topology_spread_constraints.iter().flatten();
        let mut spread: Vec<Spread<'p>> =
            constraints.filter(|_| scored).map(Spread::read).collect();
        spread.sort_by_key(|constraint| !constraint.filters);
        Self {
            required: required.map(Term::read).collect(),
            preferred: preferred
                .filter(|term| scored && term.weight != 0)
                .map(Preference::read)
                .collect(),
            spread,
            tolerations: spec.tolerations.iter().flatten().map(toleration).collect(),
        }
    }
}

impl SchedulingPolicy<'_> {
    /// Whether it looks at what clusters report about themselves.
    pub(crate) fn reads_properties(&self) -> bool {
        self.required.iter().any(|term| !term.properties.is_empty())
            || self.preferred.iter().any(|term| term.sorter.is_some())
    }
}

fn toleration(given: &wire::Toleration) -> Toleration<'_> {
    let [key, operator, value, effect] = [&given.key, &given.operator, &given.value, &given.effect]
        .map(|part| part.as_deref().unwrap_or_default());
    Toleration { key, operator, value, effect }
}

impl<'p> Term<'p> {
    fn read(term: &'p ClusterSelectorTerm) -> Self {
        let expressions =
            term.property_selector.iter().flat_map(|selector| &selector.match_expressions);
        Self {
            labels: Selector::from_view(term.label_selector.as_ref()).ok(),
            properties: expressions.map(Requirement::read).collect(),
        }
    }

    pub(crate) fn matches(&self, cluster: &Object) -> bool {
        self.labels.as_ref().is_some_and(|labels| labels.matches(cluster))
            && self.properties.iter().all(|requirement| requirement.matches(cluster))
    }
}

impl<'p> Requirement<'p> {
    fn read(given: &'p PropertySelectorRequirement) -> Self {
        Self {
            name: &given.name,
            operator: &given.operator,
            value: given.values.first().and_then(|value| value.parse().ok()),
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

impl<'p> Preference<'p> {
    fn read(given: &'p PreferredClusterSelector) -> Self {
        let term = &given.preference;
        Self {
            weight: given.weight.clamp(-100, 100),
            labels: Selector::from_view(term.label_selector.as_ref()).ok(),
            sorter: term.property_sorter.as_ref().map(|sorter| Sorter {
                property: &sorter.name,
                ascending: sorter.sort_order == "Ascending",
            }),
        }
    }

    pub(crate) fn matches(&self, cluster: &Object) -> bool {
        self.labels.as_ref().is_some_and(|labels| labels.matches(cluster))
    }
}

impl<'p> Spread<'p> {
    fn read(given: &'p TopologySpreadConstraint) -> Self {
        Self {
            key: &given.topology_key,
            max_skew: given.max_skew.map_or(1, i64::from),
            filters: given.when_unsatisfiable.as_deref() != Some("ScheduleAnyway"),
        }
    }
}
