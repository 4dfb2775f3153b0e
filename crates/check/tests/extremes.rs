//! G12: no number that a user writes sizes an allocation, or a pass. Every numeric field of every
//! kind that vectors or definitions have takes extreme values, one at a time, and each plan stays
//! within bounds of memory and time.
//!
//! The process's address space is limited, so that an allocation by such a number ends this test
//! and not the machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use convoy_api::Object;
use convoy_api::schema;
use convoy_plan::dialect::apps::ReplicaSets;
use convoy_plan::dialect::workloads::{DAEMON_SETS, JOBS, STATEFUL_SETS};
use convoy_plan::{Dialect, Hold, HoldReason, Step, World, decide, plan};
use convoy_testkit::NOW;
use jiff::Timestamp;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};

/// What all plans together may add to the process's memory at its peak.
const MEMORY_MAX: u64 = 96 << 20;

/// More address space than this above what the process has at the start is refused.
const ADDRESS_SPACE: u64 = 1 << 30;

const TIME_MAX: Duration = Duration::from_secs(5);

/// Larger cases are passed over: small ones have the same fields.
const OBJECTS_MAX: usize = 40;

type Case = (String, Vec<Value>);

/// A field of a kind, with `*` for positions in lists.
type Field = (String, String);

fn cases() -> Vec<Case> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/vectors");
    let mut cases = Vec::new();
    for name in ["deployment", "karpenter", "kubefleet", "ocm", "skyhook"] {
        let text = fs::read_to_string(folder.join(format!("{name}.json"))).expect("vectors");
        let vectors: Vec<Value> = serde_json::from_str(&text).expect("JSON");
        for vector in vectors {
            let now = vector["now"].as_str().unwrap_or(NOW).to_owned();
            let objects = vector["objects"].as_array().cloned().unwrap_or_default();
            if (1..=OBJECTS_MAX).contains(&objects.len()) {
                cases.push((now, objects));
            }
        }
    }
    cases.extend(workloads());
    cases
}

/// Kinds that no vector has.
fn workloads() -> Vec<Case> {
    let template = json!({"metadata": {"labels": {"app": "a"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let owned = |kind: &str, version: &str, spec: Value, status: Value| {
        let mut spec = spec;
        spec["selector"] = json!({"matchLabels": {"app": "a"}});
        spec["template"] = template.clone();
        json!({"apiVersion": version, "kind": kind, "spec": spec, "status": status,
            "metadata": {"name": "a", "namespace": "n", "uid": "u", "generation": 1}})
    };
    let rolling = json!({"rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1, "partition": 1}});
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}});
    let counts = json!({"replicas": 1, "currentReplicas": 1, "updatedReplicas": 1,
        "observedGeneration": 1, "collisionCount": 1, "succeeded": 1, "failed": 1, "active": 1,
        "completedIndexes": "0-1", "numberReady": 1});
    let ordered = json!({"replicas": 3, "minReadySeconds": 1, "revisionHistoryLimit": 1,
        "ordinals": {"start": 1}, "updateStrategy": rolling, "serviceName": "a"});
    let mut parallel = ordered.clone();
    parallel["podManagementPolicy"] = json!("Parallel");
    let daemons =
        json!({"minReadySeconds": 1, "revisionHistoryLimit": 1, "updateStrategy": rolling});
    let job = json!({"completions": 3, "parallelism": 2, "backoffLimit": 1,
        "activeDeadlineSeconds": 9, "ttlSecondsAfterFinished": 9, "completionMode": "Indexed"});
    let mut plain = job.clone();
    plain["completionMode"] = json!("NonIndexed");
    let rollouts = [
        owned("StatefulSet", "apps/v1", ordered, counts.clone()),
        owned("StatefulSet", "apps/v1", parallel, counts.clone()),
        owned("DaemonSet", "apps/v1", daemons, counts.clone()),
        owned("Job", "batch/v1", job, counts.clone()),
        owned("Job", "batch/v1", plain, counts),
    ];
    rollouts.into_iter().map(|rollout| (NOW.to_owned(), vec![rollout, node.clone()])).collect()
}

/// The numeric fields of an object: pointers with positions, by pointers without.
fn numeric(value: &Value, at: &str, found: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let name = name.replace('~', "~0").replace('/', "~1");
                numeric(value, &format!("{at}/{name}"), found);
            }
        }
        Value::Array(entries) => {
            for (position, entry) in entries.iter().enumerate() {
                numeric(entry, &format!("{at}/{position}"), found);
            }
        }
        Value::Number(_) => _ = found.insert(without_positions(at), at.to_owned()),
        Value::String(text) if text.starts_with(|first: char| first.is_ascii_digit()) => {
            found.insert(without_positions(at), at.to_owned());
        }
        _ => {}
    }
}

fn without_positions(pointer: &str) -> String {
    let is_position = |part: &str| !part.is_empty() && part.bytes().all(|it| it.is_ascii_digit());
    let parts = pointer.split('/').map(|part| if is_position(part) { "*" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

/// The numeric fields that definitions give a kind, as pointers without lists.
fn declared(schema: &Value, at: &str, found: &mut Vec<String>) {
    let is_number = matches!(schema["type"].as_str(), Some("integer" | "number"))
        || schema["x-kubernetes-int-or-string"] == true;
    if is_number {
        found.push(at.to_owned());
    }
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        declared(schema, &format!("{at}/{name}"), found);
    }
}

fn declared_fields() -> BTreeMap<String, Vec<String>> {
    let mut fields: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for dialect in ["skyhook", "fleet", "karpenter", "ocm"] {
        for crd in schema::crds(dialect).expect("a dialect") {
            let crd = serde_json::to_value(crd).expect("JSON");
            let kind = crd["spec"]["names"]["kind"].as_str().expect("a kind").to_owned();
            for version in crd["spec"]["versions"].as_array().into_iter().flatten() {
                let schema = &version["schema"]["openAPIV3Schema"];
                for part in ["spec", "status"] {
                    let found = fields.entry(kind.clone()).or_default();
                    declared(&schema["properties"][part], &format!("/{part}"), found);
                }
            }
        }
    }
    fields
}

/// Puts a value at a pointer, whose parents are made where there are none.
fn put(object: &mut Value, pointer: &str, value: Value) -> Option<()> {
    let mut place = object;
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        place = match place {
            Value::Array(entries) => entries.get_mut(part.parse::<usize>().ok()?)?,
            Value::Null => &mut place[part],
            Value::Object(members) => members.entry(part).or_insert(Value::Null),
            _ => return None,
        };
    }
    *place = value;
    Some(())
}

fn extremes() -> Vec<Value> {
    let numbers = [json!(-1), json!(0), json!(i32::MAX), json!(i64::MAX), json!(u64::MAX)];
    let texts = ["2147483647", "9223372036854775807%", "999999999h", "0-2147483646", "1e30"];
    let texts = texts.into_iter().map(Value::from);
    numbers.into_iter().chain([json!(i64::MIN), json!(1e300)]).chain(texts).collect()
}

/// One place to put extremes for each field.
fn places(cases: &[Case]) -> BTreeMap<Field, (usize, usize, String)> {
    let (mut places, fields) = (BTreeMap::new(), declared_fields());
    for (case, (_, objects)) in cases.iter().enumerate() {
        for (at, object) in objects.iter().enumerate() {
            let kind = object["kind"].as_str().unwrap_or_default();
            let mut found = BTreeMap::new();
            numeric(object, "", &mut found);
            let declared = fields.get(kind).into_iter().flatten();
            found.extend(declared.map(|pointer| (pointer.clone(), pointer.clone())));
            for (field, pointer) in found {
                places.entry((kind.to_owned(), field)).or_insert((case, at, pointer));
            }
        }
    }
    places
}

/// What all dialects decide, those of a cluster without kube-controller-manager too.
fn steps(world: &World, now: Timestamp) -> Vec<Step> {
    let mut steps = plan(world, now).steps;
    let workloads: [&dyn Dialect; 4] = [&ReplicaSets, &DAEMON_SETS, &STATEFUL_SETS, &JOBS];
    for dialect in workloads {
        for rollout in dialect.rollouts(world) {
            steps.extend(decide(dialect, world, &[], rollout.key(), now));
        }
    }
    steps
}

/// A size in bytes out of `/proc/self/status`.
fn memory(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a size");
    let size = line.trim_start_matches(':').trim().trim_end_matches(" kB");
    size.parse::<u64>().expect("a number") << 10
}

#[test]
#[expect(clippy::disallowed_methods, reason = "how long a plan takes is measured")]
fn no_number_sizes_a_pass() {
    let cases = cases();
    let places = places(&cases);
    let limit =
        Rlimit { current: Some(memory("VmSize") + ADDRESS_SPACE), ..getrlimit(Resource::As) };
    setrlimit(Resource::As, limit).expect("may be lowered");
    let before = memory("VmRSS");
    let mut plans = 0;
    for ((kind, field), (case, at, pointer)) in &places {
        for value in extremes() {
            let (now, objects) = &cases[*case];
            let now: Timestamp = now.parse().expect("an instant");
            let mut objects = objects.clone();
            if put(&mut objects[*at], pointer, value.clone()).is_none() {
                continue;
            }
            let objects = objects.into_iter().filter_map(|raw| Object::from_value(raw).ok());
            let world: World = objects.collect();
            let begun = Instant::now();
            let steps = steps(&world, now);
            let took = begun.elapsed();
            assert!(took < TIME_MAX, "{kind} {field} = {value}: a plan took {took:?}");
            let actions: usize = steps.iter().map(|step| step.actions.len()).sum();
            assert!(actions < 2_000, "{kind} {field} = {value}: {actions} actions in one pass");
            let is_failed = |hold: &Hold| matches!(hold.reason, HoldReason::PlanFailed { .. });
            let failed = steps.iter().flat_map(|step| &step.holds).find(|hold| is_failed(hold));
            assert_eq!(failed, None, "{kind} {field} = {value}");
            plans += 1;
        }
    }
    assert!(plans > 1_000, "only {plans} plans for {} fields", places.len());
    let added = memory("VmHWM").saturating_sub(before);
    assert!(added < MEMORY_MAX, "{plans} plans added {} MiB at the peak", added >> 20);
}
