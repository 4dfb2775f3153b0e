//! `convoy why` for every reason there is to hold: over all vectors and examples, each reason with
//! its numbers and what frees it.

use std::collections::BTreeMap;
use std::path::Path;

use convoy_testkit::{karpenter, node};
use serde_json::{Value, json};

use crate::binary;

/// Reasons that no objects give rise to: `NoReason` is not asked about, `NotObserved` takes a
/// server (see `up/interventions.rs`), and `PlanFailed` a defect (see `text/causes.rs`).
const ELSEWHERE: [&str; 3] = ["NoReason", "NotObserved", "PlanFailed"];

/// The reasons that the reference lists.
fn documented() -> Vec<String> {
    let page = include_str!("../../../../docs/reference/plan.md");
    let rows = page.lines().skip_while(|line| !line.starts_with("| `BudgetSpent`"));
    rows.map_while(|line| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_owned())).collect()
}

/// The objects of all vectors, and examples of what they lack.
fn cases() -> Vec<(String, Value, String)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let mut cases = Vec::new();
    for file in std::fs::read_dir(directory).unwrap() {
        let path = file.unwrap().path();
        let vectors: Vec<Value> =
            serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        for (at, vector) in vectors.into_iter().enumerate() {
            let now = vector["now"].as_str().unwrap_or("2026-01-01T00:00:00Z").to_owned();
            let label = format!("{} {at}", path.file_stem().unwrap().display());
            cases.push((label, vector["objects"].clone(), now));
        }
    }
    cases
}

/// The holds that `why` answers with, by reason, and an example of each.
fn answers(cases: &[(String, Value, String)]) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for (label, objects, now) in cases {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
        collect(&mut found, label, &why(list.as_bytes(), now));
    }
    found
}

fn why(objects: &[u8], now: &str) -> Value {
    let run = binary::run_with(objects, &["why", "-f", "-", "--now", now, "-o", "json"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    serde_json::from_str(&run.stdout).unwrap()
}

fn collect(found: &mut BTreeMap<String, Value>, label: &str, answer: &Value) {
    let answers = answer["answers"].as_array().unwrap();
    for cause in answers.iter().flat_map(|answer| answer["causes"].as_array().unwrap()) {
        let Some(reason) = cause["hold"]["reason"].as_str() else { continue };
        for field in ["message", "freedWhen"] {
            let text = cause[field].as_str().unwrap_or_default();
            assert!(!text.is_empty(), "{label}: {reason} has no {field}: {cause}");
        }
        found.entry(reason.to_owned()).or_insert_with(|| cause.clone());
    }
}

#[test]
fn every_reason_is_answered_with_what_frees_it() {
    let all = cases();
    let (left, right) = all.split_at(all.len() / 2);
    let mut found = std::thread::scope(|scope| {
        let left = scope.spawn(|| answers(left));
        let mut found = answers(right);
        found.extend(left.join().unwrap());
        found
    });
    for (label, text) in [("example", EXAMPLE), ("stuck", &twins()), ("refused", REFUSED)] {
        collect(&mut found, label, &why(text.as_bytes(), "2026-01-01T00:00:00Z"));
    }
    let documented = documented();
    assert!(documented.len() >= 29, "{documented:?}");
    let missing: Vec<&String> = documented
        .iter()
        .filter(|reason| !found.contains_key(*reason) && !ELSEWHERE.contains(&reason.as_str()))
        .collect();
    assert!(missing.is_empty(), "no case is held for {missing:?}");
    let unknown: Vec<&String> = found.keys().filter(|it| !documented.contains(it)).collect();
    assert!(unknown.is_empty(), "docs/reference/plan.md does not have {unknown:?}");
}

const EXAMPLE: &str = include_str!("../../../../examples/skyhook.yaml");

/// Two bindings for one cluster, between which nobody can choose.
fn twins() -> String {
    let example = include_str!("../../../../examples/fleet.yaml");
    let is_it = |document: &&str| document.contains("name: shop-eu-1\n");
    let binding = example.split("\n---\n").find(is_it).unwrap();
    let twin = binding.replace("name: shop-eu-1\n", "name: shop-eu-1-twin\n");
    format!("{example}\n---\n{twin}\n")
}

/// A ReplicaSet that cannot be counted, so that its Deployment must not go on.
const REFUSED: &str = r"apiVersion: apps/v1
kind: Deployment
metadata: {name: web, uid: u1, generation: 1}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: a}]}}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: web-1
  uid: u2
  labels: {app: web}
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: u1, controller: true}]
spec:
  replicas: -2
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: a}]}}
";

/// A node that is up to date, with a pod that must not be disturbed, and one of nobody.
#[test]
fn a_node_that_cannot_be_disrupted_says_so_though_nothing_is_due() {
    let pod = karpenter::pod("p", "n", "1").annotation("karpenter.sh/do-not-disrupt", "true");
    let never = json!({"consolidateAfter": "Never"});
    let objects = karpenter::pair("default", "n").into_iter().chain([
        karpenter::pool("default", &never).build(),
        karpenter::node_class().build(),
        node("foreign").build(),
        pod.build(),
    ]);
    let items: Vec<Value> = objects.map(|object| object.raw().clone()).collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
    let why = |what: &[&str]| {
        let mut words = vec!["why"];
        words.extend(what);
        words.extend(["-f", "-", "--now", "2026-01-01T00:00:00Z"]);
        let run = binary::run_with(list.as_bytes(), &words);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        run.stdout
    };
    let annotated = "pod has \"karpenter.sh/do-not-disrupt\" annotation (Pod=default/p)";
    let of_node = why(&["node", "n"]);
    assert!(of_node.contains("node n in default: up to date"), "{of_node}");
    assert!(of_node.contains(&format!("  cannot be disrupted: {annotated}\n")), "{of_node}");
    let of_pool = why(&["nodepool/default"]);
    assert!(of_pool.contains(&format!("    n: {annotated}\n")), "{of_pool}");
    let foreign = why(&["node", "foreign"]);
    assert!(foreign.contains("cannot be disrupted: node isn't managed by karpenter"), "{foreign}");
    let document: Value = serde_json::from_str(&why(&["node", "n", "-o", "json"])).unwrap();
    assert_eq!(document["answers"][0]["notDisruptable"], annotated);
}
