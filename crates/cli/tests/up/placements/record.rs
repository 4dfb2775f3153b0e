//! The bindings of a placement at every instant: what is promised holds in each, not only in the
//! last.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::rc::Rc;

use serde_json::{Value, json};

use super::site::word;
use crate::access::Access;
use crate::skyhooks::record::{Event, Record, Watch};

const BINDINGS: &str = "/apis/placement.kubernetes-fleet.io/v1beta1/clusterresourcebindings";

/// A watch of the bindings of one placement.
pub(crate) struct Bindings {
    hub: Access,
    /// How kubectl lists them.
    list: String,
    initial: Moment,
    record: Record,
}

/// The bindings at one instant, by their names.
#[derive(Clone, Default)]
pub(crate) struct Moment {
    bindings: BTreeMap<String, Value>,
    /// Those whose resources are known to work, with what they have. A binding that was written
    /// to for another reason, such as a new policy, tells of it a moment later.
    working: BTreeMap<String, Value>,
}

impl Bindings {
    pub(super) fn record(hub: &Access, placement: &str, within: &Path) -> Self {
        let selector = format!("labelSelector=kubernetes-fleet.io%2Fparent-CRP%3D{placement}");
        let watch = Rc::new(Watch::start(hub, BINDINGS, &selector, within));
        let mut initial = Moment::default();
        for binding in watch.initial() {
            initial.follow(("ADDED".to_owned(), binding.clone()));
        }
        let list = format!("get --raw {BINDINGS}?{selector}");
        Self { hub: hub.clone(), list, initial, record: Record::new(watch, 0) }
    }

    /// Every instant up to now, in order; the first is when the record began.
    pub(crate) fn moments(&self) -> Vec<Moment> {
        let list: Value = serde_json::from_str(&self.hub.kubectl(&self.list)).unwrap();
        let newest = list["items"].as_array().unwrap().iter().max_by_key(|it| version(it));
        let events = match newest {
            Some(newest) if version(newest) > self.initial.version() => self.record.all(newest),
            _ => self.record.until("anything", |_| true),
        };
        let mut moments = vec![self.initial.clone()];
        for event in events {
            let mut next = moments.last().unwrap().clone();
            next.follow(event);
            moments.push(next);
        }
        moments
    }

    /// Waits until an instant is recorded at which something is so, even if it passes.
    pub(crate) fn until(&self, what: &str, is_so: impl Fn(&Moment) -> bool) {
        self.record.until(what, |events| {
            let mut now = self.initial.clone();
            let mut seen = is_so(&now);
            for event in events {
                now.follow(event.clone());
                seen |= is_so(&now);
            }
            seen
        });
    }

    /// Waits until something is so in the end.
    pub(crate) fn finally(&self, what: &str, is_so: impl Fn(&Moment) -> bool) {
        self.record.until(what, |events| {
            let mut now = self.initial.clone();
            for event in events {
                now.follow(event.clone());
            }
            is_so(&now)
        });
    }
}

impl Moment {
    fn follow(&mut self, (kind, binding): Event) {
        let name = name(&binding);
        if kind == "DELETED" {
            self.working.remove(&name);
            self.bindings.remove(&name);
            return;
        }
        let (told, has) = (condition(&binding, "Available"), resources(&binding));
        if told.starts_with("True") {
            self.working.insert(name.clone(), has);
        } else if !told.is_empty() || self.working.get(&name) != Some(&has) {
            self.working.remove(&name);
        }
        self.bindings.insert(name, binding);
    }

    fn version(&self) -> u64 {
        self.bindings.values().map(version).max().unwrap_or(0)
    }

    /// The clusters whose bindings are so, in order.
    pub(crate) fn clusters(&self, is_so: impl Fn(&Value) -> bool) -> Vec<&str> {
        let mut found: Vec<&str> =
            self.bindings.values().filter(|binding| is_so(binding)).map(cluster).collect();
        found.sort_unstable();
        found
    }

    /// Where everything is available, and is not on its way out.
    pub(crate) fn available(&self) -> Vec<&str> {
        self.clusters(|binding| self.working.contains_key(&name(binding)) && !is_leaving(binding))
    }

    /// Where the resources of an index are.
    pub(crate) fn at(&self, index: u32) -> Vec<&str> {
        self.clusters(|binding| has_index(binding, index))
    }

    /// Those that carry resources.
    pub(crate) fn bound(&self) -> Vec<&str> {
        self.clusters(|binding| binding["spec"]["state"] == "Bound")
    }

    pub(crate) fn leaving(&self) -> Vec<&str> {
        self.clusters(is_leaving)
    }

    /// Every cluster that has a binding.
    pub(crate) fn all(&self) -> Vec<&str> {
        self.clusters(|_| true)
    }

    /// The binding of a cluster.
    pub(crate) fn of(&self, wanted: &str) -> Option<&Value> {
        self.bindings.values().find(|binding| cluster(binding) == wanted)
    }
}

/// One line for each binding.
impl fmt::Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for binding in self.bindings.values() {
            let leaves = if is_leaving(binding) { ", leaving" } else { "" };
            let told = binding["status"]["conditions"].as_array().and_then(|all| all.last());
            writeln!(
                f,
                "{}: {}, {}{leaves}, {}",
                cluster(binding),
                binding["spec"]["state"],
                binding["spec"]["resourceSnapshotName"],
                told.unwrap_or(&Value::Null)
            )?;
        }
        writeln!(f, "{} work", self.working.len())
    }
}

/// What the cluster of a binding has, once it is applied.
fn resources(binding: &Value) -> Value {
    let spec = &binding["spec"];
    let overrides = ["resourceOverrideSnapshots", "clusterResourceOverrideSnapshots"];
    json!([spec["resourceSnapshotName"], spec[overrides[0]], spec[overrides[1]]])
}

pub(crate) fn is_available(binding: &Value) -> bool {
    condition(binding, "Available").starts_with("True")
}

/// A condition of a binding for what it is told now, as `Status/Reason`.
pub(crate) fn condition(binding: &Value, kind: &str) -> String {
    word(&binding["status"]["conditions"], kind, &binding["metadata"]["generation"])
}

/// When a condition became what it is, in seconds.
pub(crate) fn since(binding: &Value, kind: &str) -> i64 {
    let mut all = binding["status"]["conditions"].as_array().into_iter().flatten();
    let found = all.find(|found| found["type"] == kind).unwrap();
    let at: jiff::Timestamp = found["lastTransitionTime"].as_str().unwrap().parse().unwrap();
    at.as_second()
}

pub(crate) fn has_index(binding: &Value, index: u32) -> bool {
    let snapshot = binding["spec"]["resourceSnapshotName"].as_str().unwrap_or_default();
    snapshot.ends_with(&format!("-{index}-snapshot"))
}

fn is_leaving(binding: &Value) -> bool {
    !binding["metadata"]["deletionTimestamp"].is_null()
}

fn cluster(binding: &Value) -> &str {
    binding["spec"]["targetCluster"].as_str().unwrap()
}

fn name(binding: &Value) -> String {
    binding["metadata"]["name"].as_str().unwrap().to_owned()
}

fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}
