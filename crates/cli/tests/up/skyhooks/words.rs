//! What objects say, in short.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

/// The image that most packages have; a node knows it without its tag.
pub(crate) const IMAGE: &str = "example/pack";

/// A package that quietly works.
pub(crate) fn package(version: &str) -> Value {
    json!({"version": version, "image": IMAGE})
}

/// The same, and what else is asked of it.
pub(crate) fn package_with(version: &str, more: Value) -> Value {
    let mut package = package(version);
    let Value::Object(more) = more else { panic!("{more}") };
    package.as_object_mut().unwrap().extend(more);
    package
}

/// The state of a node as it is written: `NAME VERSION STAGE STATE` each, in order.
pub(crate) fn state(entries: &[&str]) -> String {
    let entry = |entry: &&str| {
        let words: Vec<&str> = entry.split(' ').collect();
        let [name, version, stage, state] = words[..] else { panic!("{entry}") };
        format!(
            r#""{name}|{version}":{{"name":"{name}","version":"{version}","image":"{IMAGE}","stage":"{stage}","state":"{state}"}}"#
        )
    };
    let entries: Vec<String> = entries.iter().map(entry).collect();
    format!("{{{}}}", entries.join(","))
}

/// What a node carries in a Skyhook's name.
pub(crate) fn annotation<'n>(node: &'n Value, kind: &str, skyhook: &str) -> &'n str {
    let key = format!("skyhook.nvidia.com/{kind}_{skyhook}");
    node["metadata"]["annotations"][key].as_str().unwrap_or_default()
}

pub(crate) fn word<'n>(node: &'n Value, skyhook: &str) -> &'n str {
    annotation(node, "status", skyhook)
}

/// A node's state of a Skyhook, read.
pub(crate) fn node_state(node: &Value, skyhook: &str) -> Value {
    serde_json::from_str(annotation(node, "nodeState", skyhook)).unwrap_or_default()
}

/// A condition as `Status/Reason`; empty if there is none.
pub(crate) fn condition(object: &Value, kind: &str) -> String {
    let mut all = object["status"]["conditions"].as_array().into_iter().flatten();
    let found = all.find(|condition| condition["type"] == kind);
    found.map_or_else(String::new, |found| {
        format!("{}/{}", found["status"].as_str().unwrap(), found["reason"].as_str().unwrap())
    })
}

/// What a node's conditions say about a Skyhook: not ready, erroring.
pub(crate) fn conditions(node: &Value, skyhook: &str) -> (String, String) {
    let of = |kind: &str| condition(node, &format!("skyhook.nvidia.com/{skyhook}/{kind}"));
    (of("NotReady"), of("Erroring"))
}

pub(crate) const COMPLETE: (&str, &str) = ("False/Complete", "False/Not Erroring");
pub(crate) const AT_WORK: (&str, &str) = ("True/Incomplete", "False/Not Erroring");
pub(crate) const FAILING: (&str, &str) = ("True/Incomplete", "True/Package(s) Erroring or Unknown");

/// Whether the two conditions of a node are so.
pub(crate) fn says(node: &Value, skyhook: &str, wanted: (&str, &str)) -> bool {
    let (not_ready, erroring) = conditions(node, skyhook);
    (not_ready.as_str(), erroring.as_str()) == wanted
}

/// Whether a node carries its taint of this key.
pub(crate) fn is_tainted(node: &Value, key: &str) -> bool {
    let mut taints = node["spec"]["taints"].as_array().into_iter().flatten();
    taints.any(|taint| taint["key"] == key)
}

/// Whether a node is cordoned, as everybody sees it.
pub(crate) fn is_cordoned(node: &Value) -> bool {
    node["spec"]["unschedulable"] == true && is_tainted(node, "node.kubernetes.io/unschedulable")
}

/// What a pod stands for.
pub(crate) fn tag(pod: &Value) -> Value {
    let tag = pod["metadata"]["annotations"]["skyhook.nvidia.com/package"].as_str();
    serde_json::from_str(tag.unwrap_or("{}")).unwrap()
}

/// The containers of a stage, as `NAME ARGUMENT...`: of three arguments the last is the directory
/// that is copied to, and the one that copies has a command of its own.
pub(crate) fn steps(pod: &Value) -> Vec<String> {
    let containers = pod["spec"]["initContainers"].as_array().unwrap().iter();
    let step = |container: &Value| {
        let name = container["name"].as_str().unwrap();
        let arguments = container["args"].as_array().filter(|arguments| arguments.len() == 3);
        let words = arguments.into_iter().flatten().take(2).filter_map(Value::as_str);
        [name].into_iter().chain(words).collect::<Vec<_>>().join(" ")
    };
    containers.map(step).collect()
}

/// What an interrupt's pod is told to do.
pub(crate) fn order(pod: &Value) -> Value {
    let arguments = pod["spec"]["initContainers"][0]["args"].as_array().unwrap();
    assert_eq!(
        (&arguments[0], &arguments[1], arguments.len()),
        (&json!("interrupt"), &json!("/root"), 4)
    );
    let order = BASE64_STANDARD.decode(arguments[3].as_str().unwrap()).unwrap();
    serde_json::from_slice(&order).unwrap()
}

/// Whose an object is: `KIND NAME`, if it is its controller and keeps it from going first.
pub(crate) fn owner(object: &Value) -> String {
    let owner = &object["metadata"]["ownerReferences"][0];
    assert_eq!(owner["apiVersion"], "skyhook.nvidia.com/v1alpha1");
    assert_eq!((&owner["controller"], &owner["blockOwnerDeletion"]), (&json!(true), &json!(true)));
    format!("{} {}", owner["kind"].as_str().unwrap(), owner["name"].as_str().unwrap())
}
