//! Amounts of resources: what pods ask for, what nodes have.

use std::collections::BTreeMap;

use convoy_api::Object;
use convoy_api::text::Quantity;
use serde_json::Value;
use smol_str::SmolStr;

/// Cpu in thousandths, memory and storage in bytes, pods by number, the rest in thousandths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amounts {
    pub(crate) cpu: i64,
    pub(crate) memory: i64,
    pub(crate) storage: i64,
    pub(crate) pods: i64,
    others: BTreeMap<SmolStr, i64>,
}

impl Amounts {
    /// Cpu in thousandths, memory and storage in bytes, and a number of pods.
    pub(crate) fn new(cpu: i64, memory: i64, storage: i64, pods: i64) -> Self {
        Self { cpu, memory, storage, pods, others: BTreeMap::new() }
    }

    /// Reads a map of quantities.
    pub(crate) fn from_value(map: Option<&Value>) -> Self {
        let mut amounts = Self::default();
        for (name, value) in map.and_then(Value::as_object).into_iter().flatten() {
            let Some(amount) = quantity(value) else { continue };
            match name.as_str() {
                "cpu" => amounts.cpu = amount.as_millis(),
                "memory" => amounts.memory = amount.as_units(),
                "ephemeral-storage" => amounts.storage = amount.as_units(),
                "pods" => amounts.pods = amount.as_units(),
                other => _ = amounts.others.insert(SmolStr::new(other), amount.as_millis()),
            }
        }
        amounts
    }

    /// What a pod asks for, itself included: containers together, or the largest moment of
    /// its initialisation, plus overhead.
    pub(crate) fn of_pod(spec: &Value) -> Self {
        let list = |field: &str| spec.get(field).and_then(Value::as_array).into_iter().flatten();
        let mut running = Self::default();
        for container in list("containers") {
            running.add(&requests(container));
        }
        let (mut sidecars, mut largest) = (Self::default(), Self::default());
        for container in list("initContainers") {
            let asked = requests(container);
            if container.get("restartPolicy").and_then(Value::as_str) == Some("Always") {
                sidecars.add(&asked);
                running.add(&asked);
                largest.raise(&sidecars);
            } else {
                let mut moment = sidecars.clone();
                moment.add(&asked);
                largest.raise(&moment);
            }
        }
        running.raise(&largest);
        running.add(&Self::from_value(spec.get("overhead")));
        running.pods = 1;
        running
    }

    /// `status.allocatable` of a Node or NodeClaim.
    pub(crate) fn allocatable(object: &Object) -> Self {
        Self::from_value(object.status().get("allocatable"))
    }

    /// `status.capacity` of a Node or NodeClaim, else `status.allocatable`; none if it has neither.
    pub(crate) fn capacity(object: &Object) -> Option<Self> {
        let capacity = object.status_member("capacity");
        let capacity = capacity.or_else(|| object.status_member("allocatable"))?;
        Some(Self::from_value(Some(capacity)))
    }

    pub(crate) fn add(&mut self, more: &Self) {
        self.combine(more, i64::saturating_add);
    }

    pub(crate) fn subtract(&mut self, less: &Self) {
        self.combine(less, i64::saturating_sub);
    }

    /// The larger of both, resource by resource.
    pub(crate) fn raise(&mut self, other: &Self) {
        self.combine(other, i64::max);
    }

    /// Takes from `other` what is zero here.
    pub(crate) fn fill(&mut self, other: &Self) {
        self.combine(other, |mine, theirs| if mine == 0 { theirs } else { mine });
    }

    pub(crate) fn fit_into(&self, room: &Self) -> bool {
        let known = [
            (self.cpu, room.cpu),
            (self.memory, room.memory),
            (self.storage, room.storage),
            (self.pods, room.pods),
        ];
        known.iter().all(|(asked, free)| *asked <= 0 || asked <= free)
            && self.others.iter().all(|(name, asked)| {
                *asked <= 0 || room.others.get(name).is_some_and(|free| asked <= free)
            })
    }

    fn combine(&mut self, other: &Self, with: fn(i64, i64) -> i64) {
        self.cpu = with(self.cpu, other.cpu);
        self.memory = with(self.memory, other.memory);
        self.storage = with(self.storage, other.storage);
        self.pods = with(self.pods, other.pods);
        for (name, amount) in &other.others {
            let mine = self.others.entry(name.clone()).or_default();
            *mine = with(*mine, *amount);
        }
    }
}

/// How much of a resource a Node or NodeClaim has, in thousandths; 0 where it does not say.
pub(crate) fn capacity_millis(object: &Object, resource: &str) -> i64 {
    let given = object.status_member("capacity").and_then(|capacity| capacity.get(resource));
    given.and_then(quantity).map_or(0, Quantity::as_millis)
}

/// A quantity, whether it was quoted or not.
pub(crate) fn quantity(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    }
}

/// What a container asks for; a limit without a request is one.
fn requests(container: &Value) -> Amounts {
    let resources = container.get("resources").unwrap_or(&Value::Null);
    let mut asked = Amounts::from_value(resources.get("requests"));
    let limits = Amounts::from_value(resources.get("limits"));
    let given = |name: &str| resources.get("requests").is_some_and(|map| map.get(name).is_some());
    if !given("cpu") {
        asked.cpu = limits.cpu;
    }
    if !given("memory") {
        asked.memory = limits.memory;
    }
    if !given("ephemeral-storage") {
        asked.storage = limits.storage;
    }
    for (name, amount) in limits.others {
        asked.others.entry(name).or_insert(amount);
    }
    asked
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_asks_for_its_largest_moment() {
        let container = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}}});
        let mut sidecar = container("100m");
        sidecar["restartPolicy"] = json!("Always");
        let cases = [
            (json!({"containers": [container("1"), container("500m")]}), 1_500),
            (json!({"containers": [container("1")], "initContainers": [container("3")]}), 3_000),
            (
                json!({"containers": [container("1")], "initContainers": [sidecar, container("3")]}),
                3_100,
            ),
            (json!({"containers": [container("1")], "overhead": {"cpu": "10m"}}), 1_010),
            (json!({"containers": [{"resources": {"limits": {"cpu": "2"}}}]}), 2_000),
            (json!({"containers": 7}), 0),
        ];
        for (spec, cpu) in cases {
            let amounts = Amounts::of_pod(&spec);
            assert_eq!((amounts.cpu, amounts.pods), (cpu, 1), "{spec}");
        }
    }

    #[test]
    fn what_a_node_does_not_have_does_not_fit() {
        let amounts = |value: Value| Amounts::from_value(Some(&value));
        let node = amounts(json!({"cpu": "4", "memory": "8Gi", "pods": "10"}));
        assert!(amounts(json!({"cpu": "3900m", "pods": 1})).fit_into(&node));
        assert!(!amounts(json!({"cpu": "4001m"})).fit_into(&node));
        assert!(!amounts(json!({"example.com/gpu": 1})).fit_into(&node));
    }
}
