//! Labels that nodes have because their pool requires them and no machine has them. A node has one
//! value of each; its pods choose which.

use std::collections::BTreeMap;

use convoy_api::karpenter::template::NodeClassRef;
use smol_str::{SmolStr, format_smolstr};

use crate::dialect::karpenter::names::{WELL_KNOWN_LABELS, label};
use crate::dialect::karpenter::read::pod_requirements::PodRequirements;
use crate::dialect::karpenter::read::pool::Pool;

/// The labels of one node, as far as its pods have not settled them.
#[derive(Clone, Debug, Default)]
pub(crate) struct PoolLabels(BTreeMap<SmolStr, Values>);

/// What a label may still be.
#[derive(Clone, Debug)]
enum Values {
    /// One of these: the first, unless a pod wants another.
    OneOf(Vec<SmolStr>),
    /// Whatever the pool allows: this, unless a pod wants another.
    Open(SmolStr),
}

impl PoolLabels {
    pub(crate) fn of(pool: &Pool<'_>) -> Self {
        let requirements = &pool.requirements;
        let is_ours = |key: &&SmolStr| {
            !WELL_KNOWN_LABELS.contains(&key.as_str()) && pool.template_label(key).is_none()
        };
        let mut labels = BTreeMap::new();
        for key in requirements.keys().filter(is_ours) {
            let named = requirements.values_of(key);
            let allowed = named.filter(|value| requirements.allow(key, Some(value)));
            let allowed: Vec<SmolStr> = allowed.cloned().collect();
            let values = if allowed.is_empty() {
                requirements.some_value(key).map(Values::Open)
            } else {
                Some(Values::OneOf(allowed))
            };
            labels.extend(values.map(|values| (key.clone(), values)));
        }
        Self(labels)
    }

    /// The same with one more pod; absent if the pod can have none of the values that are left.
    pub(super) fn with(&self, pool: &Pool<'_>, needs: &PodRequirements<'_>) -> Option<Self> {
        let mut labels = self.clone();
        for (key, values) in &mut labels.0 {
            let suits = |value: &SmolStr| needs.allow(key, Some(value));
            match values {
                Values::OneOf(left) => {
                    left.retain(suits);
                    if left.is_empty() {
                        return None;
                    }
                }
                Values::Open(_) => {
                    let named = needs
                        .values_of(key)
                        .filter(|value| suits(value) && pool.requirements.allow(key, Some(value)));
                    let named: Vec<SmolStr> = named.cloned().collect();
                    if !named.is_empty() {
                        *values = Values::OneOf(named);
                    }
                }
            }
        }
        Some(labels)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(Values::first)
    }

    /// The labels that a new claim of `pool` gets. What machines of other providers have is not
    /// known here, so that of their labels only those are certain that have a single value.
    pub(crate) fn chosen(&self, pool: &Pool<'_>) -> impl Iterator<Item = (&SmolStr, &str)> {
        let is_certain = |values: &Values| matches!(values, Values::OneOf(left) if left.len() == 1);
        let known = pool.has_catalogue;
        let certain = self.0.iter().filter(move |(_, values)| known || is_certain(values));
        certain.map(|(key, values)| (key, values.first()))
    }
}

/// The labels that a new claim of `pool` has from the start, `required` being what the pool
/// requires beyond them.
pub(crate) fn claim_labels(pool: &Pool<'_>, required: &PoolLabels) -> BTreeMap<SmolStr, SmolStr> {
    let of_template = pool.template_labels();
    let mut labels: BTreeMap<SmolStr, SmolStr> =
        of_template.map(|(key, value)| (key.into(), value.into())).collect();
    labels.insert(label::NODE_POOL.into(), pool.name().into());
    if let Some(NodeClassRef { group, kind, name }) = &pool.class {
        labels.insert(format_smolstr!("{group}/{}", kind.to_lowercase()), name.into());
    }
    labels.extend(required.chosen(pool).map(|(key, value)| (key.clone(), value.into())));
    labels
}

impl Values {
    fn first(&self) -> &str {
        match self {
            Self::OneOf(values) => values.first().map_or("", SmolStr::as_str),
            Self::Open(value) => value,
        }
    }
}
