//! What nodes have and pods take.

use std::collections::BTreeMap;

use convoy_api::object::member::{field, list, text};
use convoy_api::text::Quantity;
use serde_json::Value;
use smol_str::SmolStr;

use crate::shared_object::SharedObject;

/// Amounts of resources, `pods` among them: cpu in thousandths, all others in units.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Amounts {
    pub cpu_millis: i64,
    pub memory_bytes: i64,
    pub storage_bytes: i64,
    pub pods: i64,
    pub others: BTreeMap<SmolStr, i64>,
    /// For spreading, containers that ask for nothing count as 100m and 200Mi, as in Kubernetes.
    pub spread_cpu_millis: i64,
    pub spread_memory_bytes: i64,
}

const DEFAULT_CPU_MILLIS: i64 = 100;
const DEFAULT_MEMORY_BYTES: i64 = 200 << 20;

impl Amounts {
    /// What a node offers.
    pub fn of_list(amounts: &Value) -> Self {
        let mut found = Self::default();
        for (name, amount) in amounts.as_object().into_iter().flatten() {
            let quantity: Quantity =
                amount.as_str().unwrap_or_default().parse().unwrap_or(Quantity::ZERO);
            match name.as_str() {
                "cpu" => found.cpu_millis = quantity.as_millis(),
                "memory" => found.memory_bytes = quantity.as_units(),
                "ephemeral-storage" => found.storage_bytes = quantity.as_units(),
                "pods" => found.pods = quantity.as_units(),
                _ => {
                    found.others.insert(name.into(), quantity.as_units());
                }
            }
        }
        found
    }

    /// What a pod takes: its containers together with its sidecars, or what an init container
    /// needs beside the sidecars before it, whichever is more; and its overhead.
    pub fn of_pod(spec: &Value) -> Self {
        let mut sidecars = Self::default();
        let mut largest = Self::default();
        for container in list(spec, "initContainers") {
            let takes = Self::of_container(container);
            if text(container, "restartPolicy") == "Always" {
                sidecars.add(&takes);
                largest.raise(&sidecars);
            } else {
                let mut beside = sidecars.clone();
                beside.add(&takes);
                largest.raise(&beside);
            }
        }
        let mut total = sidecars;
        for container in list(spec, "containers") {
            total.add(&Self::of_container(container));
        }
        total.raise(&largest);
        total.add(&Self::of_list(field(spec, "overhead")));
        total.pods = 1;
        total
    }

    fn of_container(container: &Value) -> Self {
        let mut takes = Self::of_list(field(field(container, "resources"), "requests"));
        let or = |amount: i64, default: i64| if amount == 0 { default } else { amount };
        takes.spread_cpu_millis = or(takes.cpu_millis, DEFAULT_CPU_MILLIS);
        takes.spread_memory_bytes = or(takes.memory_bytes, DEFAULT_MEMORY_BYTES);
        takes
    }

    pub fn add(&mut self, other: &Self) {
        self.combine(other, i64::saturating_add);
    }

    pub fn subtract(&mut self, other: &Self) {
        self.combine(other, i64::saturating_sub);
    }

    fn raise(&mut self, other: &Self) {
        self.combine(other, i64::max);
    }

    fn combine(&mut self, other: &Self, with: impl Fn(i64, i64) -> i64) {
        let Self {
            cpu_millis,
            memory_bytes,
            storage_bytes,
            pods,
            others,
            spread_cpu_millis,
            spread_memory_bytes,
        } = other;
        self.cpu_millis = with(self.cpu_millis, *cpu_millis);
        self.memory_bytes = with(self.memory_bytes, *memory_bytes);
        self.storage_bytes = with(self.storage_bytes, *storage_bytes);
        self.pods = with(self.pods, *pods);
        self.spread_cpu_millis = with(self.spread_cpu_millis, *spread_cpu_millis);
        self.spread_memory_bytes = with(self.spread_memory_bytes, *spread_memory_bytes);
        for (name, amount) in others {
            let mine = self.others.entry(name.clone()).or_default();
            *mine = with(*mine, *amount);
        }
    }
}

/// A resource of which a node has too little left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shortage<'a> {
    pub(crate) resource: &'a str,
    pub(crate) requested: i64,
    pub(crate) used: i64,
    pub(crate) capacity: i64,
}

impl<'a> Shortage<'a> {
    /// What a node that `has` so much, of which so much is `used`, lacks for a pod.
    pub(crate) fn all(
        takes: &'a Amounts,
        used: &'a Amounts,
        has: &'a Amounts,
    ) -> impl Iterator<Item = Self> {
        let known = [
            ("pods", takes.pods, used.pods, has.pods),
            ("cpu", takes.cpu_millis, used.cpu_millis, has.cpu_millis),
            ("memory", takes.memory_bytes, used.memory_bytes, has.memory_bytes),
            ("ephemeral-storage", takes.storage_bytes, used.storage_bytes, has.storage_bytes),
        ];
        let others = takes.others.iter().map(|(name, takes)| {
            let amount = |amounts: &Amounts| amounts.others.get(name).copied().unwrap_or(0);
            (name.as_str(), *takes, amount(used), amount(has))
        });
        let all = known.into_iter().chain(others).map(|(resource, requested, used, capacity)| {
            Self { resource, requested, used, capacity }
        });
        all.filter(|it| it.requested > 0 && it.used.saturating_add(it.requested) > it.capacity)
    }
}

/// A node as the scheduler sees it.
#[derive(Clone, Debug, Default)]
pub(super) struct Room {
    /// There is a node object; without one there are only pods bound to its name.
    pub(super) is_node: bool,
    /// The version of the node object that was read last.
    version: u64,
    pub(super) node: Value,
    pub(super) has: Amounts,
    pub(super) used: Amounts,
}

impl Room {
    /// Takes over a node object; whether anything that matters here changed. The response to a write
    /// may arrive after the watch event of a later one.
    pub(super) fn update(&mut self, node: &SharedObject) -> bool {
        let version = node.version();
        if version != 0 && version <= self.version {
            return false;
        }
        self.version = version;
        let labels = field(field(node, "metadata"), "labels");
        let name = field(field(node, "metadata"), "name");
        let spec = field(node, "spec");
        let has = Amounts::of_list(field(field(node, "status"), "allocatable"));
        let (metadata, known) = (field(&self.node, "metadata"), field(&self.node, "spec"));
        let is_same = self.is_node
            && has == self.has
            && field(metadata, "name") == name
            && field(metadata, "labels") == labels
            && ["taints", "unschedulable"].iter().all(|it| field(known, it) == field(spec, it));
        if is_same {
            return false;
        }
        // Only what scheduling looks at is kept: there are many nodes.
        self.node = serde_json::json!({
            "metadata": {"name": name, "labels": labels},
            "spec": {"taints": field(spec, "taints"), "unschedulable": field(spec, "unschedulable")},
        });
        (self.is_node, self.has) = (true, has);
        true
    }

    /// Counts pods as if they were here already.
    pub(super) fn reserve<'p>(&mut self, pods: impl IntoIterator<Item = &'p Value>) {
        for pod in pods {
            self.used.add(&Amounts::of_pod(field(pod, "spec")));
        }
    }

    pub(super) fn label(&self, key: &str) -> Option<&str> {
        field(field(&self.node, "metadata"), "labels").get(key).and_then(Value::as_str)
    }

    /// The resources of which too little is left, in the words of Kubernetes.
    pub(super) fn lacks(&self, takes: &Amounts) -> Vec<String> {
        let word = |name: &str| match name {
            "pods" => "Too many pods".to_owned(),
            name => format!("Insufficient {name}"),
        };
        self.lacking(takes).map(word).collect()
    }

    /// The names of the resources of which too little is left.
    pub(super) fn lacking<'a>(&'a self, takes: &'a Amounts) -> impl Iterator<Item = &'a str> {
        Shortage::all(takes, &self.used, &self.has).map(|shortage| shortage.resource)
    }

    /// How much would be left, in hundredths, as the mean of cpu and memory.
    ///
    /// | cpu left | memory left | score |
    /// |---------:|------------:|------:|
    /// |     100% |        100% |   100 |
    /// |      50% |          0% |    25 |
    pub(super) fn least_allocated(&self, takes: &Amounts) -> i64 {
        let share = |used: i64, takes: i64, has: i64| match has - used.saturating_add(takes) {
            left if left > 0 => {
                i64::try_from(i128::from(left) * 100 / i128::from(has)).unwrap_or(0)
            }
            _ => 0,
        };
        let (has, used) = (&self.has, &self.used);
        let cpu = share(used.spread_cpu_millis, takes.spread_cpu_millis, has.cpu_millis);
        let memory = share(used.spread_memory_bytes, takes.spread_memory_bytes, has.memory_bytes);
        i64::midpoint(cpu, memory)
    }
}
