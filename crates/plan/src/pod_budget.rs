//! PodDisruptionBudgets, as those who evict pods read them.

use std::collections::BTreeMap;

use convoy_api::Object;
use serde_json::Value;

use crate::selector::Selector;

/// The PodDisruptionBudgets, by namespace.
#[derive(Clone, Debug, Default)]
pub(crate) struct PodBudgets<'w>(BTreeMap<&'w str, Vec<PodBudget<'w>>>);

/// A PodDisruptionBudget: which pods it covers, and how many of them may still be evicted.
#[derive(Clone, Debug)]
pub(crate) struct PodBudget<'w> {
    pub(crate) object: &'w Object,
    selector: Selector,
    /// Absent: no controller has computed it, so that only the server can tell.
    pub(crate) allowed: Option<i64>,
}

/// Why a budget keeps a pod where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PodBlock {
    /// One budget, which allows no disruption.
    Spent { budget: String },
    /// Evictions are refused where several budgets match.
    Several { budgets: Vec<String> },
}

impl<'w> PodBudgets<'w> {
    pub(crate) fn new(objects: impl IntoIterator<Item = &'w Object>) -> Self {
        let mut by_namespace: BTreeMap<&str, Vec<PodBudget<'_>>> = BTreeMap::new();
        for budget in objects.into_iter().filter_map(PodBudget::read) {
            by_namespace.entry(budget.object.namespace()).or_default().push(budget);
        }
        Self(by_namespace)
    }

    /// What keeps an evictable pod from being evicted now.
    pub(crate) fn block(&self, pod: &Object) -> Option<PodBlock> {
        let matching = self.matching(pod);
        match matching[..] {
            [] => None,
            [budget] if budget.always_lets_go_of(pod) => None,
            [budget] => (budget.allowed() == 0).then(|| PodBlock::Spent { budget: budget.path() }),
            _ => {
                let budgets = matching.iter().map(|budget| budget.path()).collect();
                Some(PodBlock::Several { budgets })
            }
        }
    }

    /// Counts an eviction of `pod` against its budget, `spent` being what others took already.
    /// Where none is left: the budget and what it allows.
    pub(crate) fn take(
        &self,
        pod: &Object,
        spent: &mut BTreeMap<String, i64>,
    ) -> Result<(), (String, i64)> {
        let matching = self.matching(pod);
        let [budget] = matching[..] else {
            return match matching.first() {
                None => Ok(()),
                Some(first) => Err((first.path(), 0)),
            };
        };
        if budget.always_lets_go_of(pod) {
            return Ok(());
        }
        let taken = spent.entry(budget.path()).or_default();
        if *taken >= budget.allowed() {
            return Err((budget.path(), budget.allowed().saturating_sub(*taken)));
        }
        *taken += 1;
        Ok(())
    }

    /// Whether a budget of the pod can never allow anything: maxUnavailable 0 or minAvailable 100%.
    pub(crate) fn is_fully_blocked(&self, pod: &Object) -> bool {
        let matching = self.matching(pod);
        matching.len() > 1
            || matching.iter().any(|budget| {
                let spec = budget.object.spec();
                let none = spec
                    .get("maxUnavailable")
                    .is_some_and(|most| *most == 0 || *most == "0%" || *most == "0");
                let all = spec.get("minAvailable").is_some_and(|least| *least == "100%");
                (none || all) && !budget.always_lets_go_of(pod)
            })
    }

    fn matching(&self, pod: &Object) -> Vec<&PodBudget<'w>> {
        let of_namespace = self.0.get(pod.namespace().as_str()).into_iter().flatten();
        of_namespace.filter(|budget| budget.selector.matches(pod)).collect()
    }
}

impl<'w> PodBudget<'w> {
    /// None for a budget that covers no pod: unlike elsewhere, an absent selector selects nothing.
    pub(crate) fn read(object: &'w Object) -> Option<Self> {
        let selector = object.spec().get("selector").filter(|value| !value.is_null())?;
        let selector = Selector::from_value(selector).ok()?;
        let allowed = object.status().get("disruptionsAllowed").and_then(Value::as_i64);
        Some(Self { object, selector, allowed })
    }

    pub(crate) fn covers(&self, pod: &Object) -> bool {
        self.object.namespace() == pod.namespace() && self.selector.matches(pod)
    }

    fn allowed(&self) -> i64 {
        self.allowed.unwrap_or(0)
    }

    fn always_lets_go_of(&self, pod: &Object) -> bool {
        let policy = self.object.spec().get("unhealthyPodEvictionPolicy");
        policy.and_then(Value::as_str) == Some("AlwaysAllow")
            && pod.condition_status("Ready") == Some("False")
    }

    fn path(&self) -> String {
        format!("{}/{}", self.object.namespace(), self.object.name())
    }
}
