//! Node objects and leases as a kubelet makes them.

use convoy_api::object::member::{field, list, text};
use convoy_api::well_known::annotation::SIMULATED;
use convoy_api::well_known::label::{ARCH, HOSTNAME, OS, ZONE};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use crate::component::{Key, LEASES};
use crate::kubelet::stamp;
use crate::scenario::{NodeTemplate, PREFIX, Scenario};
use crate::seed::Seed;

/// How long after a renewal a lease counts at least, in seconds.
const LEASE_SECONDS: i64 = 40;

/// How a machine is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Power {
    #[default]
    Up,
    /// Its kubelet says that it is not ready.
    NotReady,
    /// Nothing is heard of it.
    Silent,
}

/// Whether a node is one that we simulate.
pub fn is_simulated(node: &Value) -> bool {
    annotation(node, "node") == Some("true")
}

/// The value of an annotation of ours.
pub(crate) fn annotation<'n>(node: &'n Value, name: &str) -> Option<&'n str> {
    let annotations = field(field(node, "metadata"), "annotations");
    field(annotations, &format!("{PREFIX}{name}")).as_str()
}

/// What an annotation says about a machine.
pub fn annotated_power(node: &Value) -> Power {
    match annotation(node, "power") {
        Some("not-ready") => Power::NotReady,
        Some("silent") => Power::Silent,
        _ => Power::Up,
    }
}

/// The object that a new node registers with. `index` counts the nodes of the whole fleet.
pub fn node(
    scenario: &Scenario,
    version: &str,
    template: &NodeTemplate,
    in_template: u32,
    index: u32,
    now: Timestamp,
) -> Value {
    let name = format!("{}-{in_template}", template.name);
    let mut labels: Map<String, Value> = json!({
        (ARCH): "amd64",
        (OS): "linux",
        (HOSTNAME): name,
    })
    .as_object()
    .cloned()
    .unwrap_or_default();
    if !template.zones.is_empty() {
        let zone = &template.zones[in_template as usize % template.zones.len()];
        labels.insert(ZONE.to_owned(), json!(zone));
    }
    labels.extend(template.labels.iter().map(|(key, value)| (key.clone(), json!(value))));
    let mut annotations = json!(template.annotations);
    annotations[SIMULATED] = json!("true");
    let range = format!("10.{}.{}.0/24", (index >> 8) & 0xff, index & 0xff);
    let mut spec = json!({"podCIDR": range, "podCIDRs": [range]});
    if !template.taints.is_empty() {
        spec["taints"] = json!(template.taints);
    }
    let mut capacity = usual_capacity();
    for (resource, amount) in &template.capacity {
        capacity[resource.as_str()] = json!(amount);
    }
    let boot = boot_id(scenario, &name, 0);
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
        "spec": spec,
        "status": {
            "capacity": capacity,
            "allocatable": capacity,
            "conditions": conditions(&Value::Null, Power::Up, now),
            "addresses": [
                {"type": "InternalIP", "address": host_address(index)},
                {"type": "Hostname", "address": name},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": node_info(scenario, version, &name, &boot),
        },
    })
}

fn usual_capacity() -> Value {
    json!({"cpu": "8", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110"})
}

/// What the status of a node lacks that somebody else made or changed: its capacity, its versions, its
/// boot, and extended resources, of which all that a node has can be allocated.
pub(crate) fn missing(scenario: &Scenario, version: &str, name: &str, node: &Value) -> Value {
    let status = field(node, "status");
    let mut found = json!({});
    let is_empty = |field: &Value| field.as_object().is_none_or(Map::is_empty);
    if is_empty(field(status, "capacity")) {
        let capacity = usual_capacity();
        if is_empty(field(status, "allocatable")) {
            found["allocatable"] = capacity.clone();
        }
        found["capacity"] = capacity;
    } else if let Some(changes) = extended_changes(status) {
        found["allocatable"] = changes;
    }
    if text(field(status, "nodeInfo"), "bootID").is_empty() {
        found["nodeInfo"] = node_info(scenario, version, name, &boot_id(scenario, name, 0));
    }
    found
}

/// Extended resources, such as `example.com/gpu`, whose amount is another in the capacity of a node.
fn extended_changes(status: &Value) -> Option<Value> {
    let (capacity, allocatable) = (field(status, "capacity"), field(status, "allocatable"));
    let listed = [capacity, allocatable].into_iter().filter_map(Value::as_object).flatten();
    let extended = listed.map(|(name, _)| name).filter(|name| name.contains('/'));
    let differs = |name: &&String| capacity.get(*name) != allocatable.get(*name);
    let changes =
        extended.filter(differs).map(|name| (name.clone(), field(capacity, name).clone()));
    let changes: Map<String, Value> = changes.collect();
    (!changes.is_empty()).then_some(Value::Object(changes))
}

/// The address of a node: 172.16.0.1 and onwards.
fn host_address(index: u32) -> String {
    let number = index + 1;
    format!("172.{}.{}.{}", 16 + ((number >> 16) & 0xf), (number >> 8) & 0xff, number & 0xff)
}

fn node_info(scenario: &Scenario, version: &str, name: &str, boot: &str) -> Value {
    let seed = Seed::new(scenario.seed).child("machine", name);
    json!({
        "architecture": "amd64",
        "bootID": boot,
        "containerRuntimeVersion": "containerd://2.1.4",
        "kernelVersion": "6.12.0",
        "kubeProxyVersion": "",
        "kubeletVersion": version,
        "machineID": format!("{:016x}{:016x}", seed.nth(0).number(), seed.nth(1).number()),
        "operatingSystem": "linux",
        "osImage": "Convoy simulated node",
        "systemUUID": uuid(seed.nth(2)),
    })
}

/// What a node calls its current boot; every reboot has another.
pub fn boot_id(scenario: &Scenario, name: &str, boot: u32) -> String {
    uuid(Seed::new(scenario.seed).child("boot", name).nth(boot))
}

pub(crate) fn uuid(seed: Seed) -> String {
    let (high, low) = (seed.nth(0).number(), seed.nth(1).number());
    format!(
        "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xfff,
        low >> 52,
        low & 0xffff_ffff_ffff
    )
}

/// The conditions a kubelet posts; those of others stay.
pub fn conditions(node: &Value, power: Power, now: Timestamp) -> Value {
    let old = list(field(node, "status"), "conditions");
    let fine = [
        ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ];
    let ready = match power {
        Power::NotReady => ("Ready", "False", "KubeletNotReady", "the simulation says not ready"),
        Power::Up | Power::Silent => {
            ("Ready", "True", "KubeletReady", "kubelet is posting ready status")
        }
    };
    let said = fine.map(|(kind, reason, message)| (kind, "False", reason, message));
    let ours = said.into_iter().chain([ready]).map(|(kind, status, reason, message)| {
        let before = old.iter().find(|condition| text(condition, "type") == kind);
        let same = before
            .filter(|before| text(before, "status") == status && text(before, "reason") == reason);
        if let Some(same) = same {
            return same.clone(); // leases are the heartbeat, so nothing is written for it
        }
        let turned = before.filter(|before| text(before, "status") == status);
        let turned = turned.map(|before| text(before, "lastTransitionTime").to_owned());
        json!({"type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": stamp(now),
            "lastTransitionTime": turned.unwrap_or_else(|| stamp(now))})
    });
    let is_ours = |kind: &str| kind == "Ready" || fine.iter().any(|(ours, ..)| *ours == kind);
    let others = old.iter().filter(|condition| !is_ours(text(condition, "type"))).cloned();
    ours.chain(others).collect()
}

/// The lease of a node, which goes when the node goes.
pub fn lease(node: &Value, lasts: i64, now: Timestamp) -> Value {
    let metadata = field(node, "metadata");
    let name = text(metadata, "name");
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": LEASES, "ownerReferences": [
            {"apiVersion": "v1", "kind": "Node", "name": name, "uid": text(metadata, "uid")},
        ]},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": lasts,
            "renewTime": micro_stamp(now)},
    })
}

/// The patch that renews a lease.
pub fn renewal(name: &str, lasts: i64, now: Timestamp) -> (Key, Value) {
    let patch = json!({"spec": {"holderIdentity": name, "leaseDurationSeconds": lasts,
        "renewTime": micro_stamp(now)}});
    (Key::lease(name), patch)
}

/// How long a lease counts that is renewed after `heartbeat` at the latest: 40 s, or a third
/// longer than that, so that nodes which take their time are not taken for silent ones.
pub fn lease_seconds(heartbeat: SignedDuration) -> i64 {
    (heartbeat.as_secs() * 4 / 3).max(LEASE_SECONDS)
}

/// An instant as leases carry it.
fn micro_stamp(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    #[test]
    fn a_node_is_what_its_template_says() {
        let scenario = Scenario::from_yaml(
            "nodes: [{name: gpu, count: 2, zones: [a, b], labels: {pool: gpu}, capacity: {'nvidia.com/gpu': '8'}, taints: [{key: gpu, effect: NoSchedule}]}]",
        )
        .unwrap();
        let node = node(&scenario, "v1.37.0", &scenario.nodes[0], 1, 300, now());
        assert_eq!(node["metadata"]["name"], "gpu-1");
        assert_eq!(node["metadata"]["labels"]["topology.kubernetes.io/zone"], "b");
        assert_eq!(node["metadata"]["labels"]["pool"], "gpu");
        assert_eq!(node["spec"]["podCIDR"], "10.1.44.0/24");
        assert_eq!(node["spec"]["taints"], json!([{"key": "gpu", "effect": "NoSchedule"}]));
        assert_eq!(node["status"]["allocatable"]["nvidia.com/gpu"], "8");
        assert_eq!(node["status"]["addresses"][0]["address"], "172.16.1.45");
        assert!(is_simulated(&node));
    }

    #[test]
    fn extended_resources_of_the_capacity_can_be_allocated() {
        let cases = [
            (json!({"cpu": "8", "a.b/c": "5"}), json!({"cpu": "7"}), json!({"a.b/c": "5"})),
            (json!({"cpu": "8"}), json!({"cpu": "8", "a.b/c": "5"}), json!({"a.b/c": null})),
            (json!({"cpu": "8", "a.b/c": "5"}), json!({"cpu": "7", "a.b/c": "5"}), Value::Null),
        ];
        for (capacity, allocatable, expected) in cases {
            let status = json!({"capacity": capacity, "allocatable": allocatable,
                "nodeInfo": {"bootID": "b"}});
            let found = missing(&Scenario::default(), "v1", "n", &json!({"status": status}));
            assert_eq!(field(&found, "allocatable"), &expected);
        }
    }

    #[test]
    fn conditions_turn_once_and_stay() {
        let up = json!({"status": {"conditions": conditions(&Value::Null, Power::Up, now())}});
        let later: Timestamp = "2026-01-01T01:00:00Z".parse().unwrap();
        assert_eq!(conditions(&up, Power::Up, later), up["status"]["conditions"]);
        let down = conditions(&up, Power::NotReady, later);
        assert_eq!(down[3]["status"], "False");
        assert_eq!(down[3]["lastTransitionTime"], "2026-01-01T01:00:00Z");
        assert_eq!(down[0], up["status"]["conditions"][0]);
    }

    #[test]
    fn leases_carry_microseconds() {
        let (_, patch) = renewal("n", 40, now());
        assert_eq!(patch["spec"]["renewTime"], "2026-01-01T00:00:00.000000Z");
    }

    #[test]
    fn leases_outlast_the_pause_between_renewals() {
        let cases = [(10, 40), (30, 40), (60, 80), (300, 400)];
        for (heartbeat, lasts) in cases {
            assert_eq!(lease_seconds(SignedDuration::from_secs(heartbeat)), lasts);
        }
    }
}
