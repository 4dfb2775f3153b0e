//! Prepared requests with objects of realistic size and shape.

use std::sync::LazyLock;

use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// Small: half a kilobyte as stored
    ConfigMap,
    /// As a kubelet reports them
    Node,
    /// Like a pod of a Deployment with a sidecar proxy, bound to one of 10,000 nodes. Has no owner,
    /// because garbage collection deletes pods whose owner does not exist
    Pod,
}

/// Number of nodes that pods are spread over.
const NODES: usize = 10_000;

static POD: LazyLock<String> = LazyLock::new(|| compact(include_str!("objects/pod.json")));
static NODE: LazyLock<String> = LazyLock::new(|| compact(include_str!("objects/node.json")));

/// Removes white space.
fn compact(text: &str) -> String {
    let value: Value = serde_json::from_str(text).expect("the objects beside this file are JSON");
    value.to_string()
}

pub(crate) fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: load\r\nAccept: application/json\r\n\r\n")
        .into_bytes()
}

pub(crate) fn create(kind: Kind, namespace: &str, number: usize) -> Vec<u8> {
    let path = path(kind, namespace, None);
    let body = body(kind, number);
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: load\r\nAccept: application/json\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// The path of a collection, or of one object.
pub(crate) fn path(kind: Kind, namespace: &str, number: Option<usize>) -> String {
    let mut path = match kind {
        Kind::ConfigMap => format!("/api/v1/namespaces/{namespace}/configmaps"),
        Kind::Node => "/api/v1/nodes".to_owned(),
        Kind::Pod => format!("/api/v1/namespaces/{namespace}/pods"),
    };
    if let Some(number) = number {
        path.push('/');
        path.push_str(&name(kind, number));
    }
    path
}

fn name(kind: Kind, number: usize) -> String {
    match kind {
        Kind::ConfigMap => format!("map-{number:06}"),
        Kind::Node => format!("node-{number:06}"),
        Kind::Pod => format!("pod-{number:06}"),
    }
}

fn body(kind: Kind, number: usize) -> String {
    match kind {
        Kind::ConfigMap => format!(
            "{{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{{\"name\":\"{}\",\
             \"labels\":{{\"app\":\"load\"}}}},\"data\":{{\"settings\":\"{:0>200}\"}}}}",
            name(kind, number),
            number
        ),
        Kind::Node => NODE.replace("NUMBER", &format!("{number:06}")),
        Kind::Pod => POD
            .replace("NUMBER", &format!("{number:06}"))
            .replace("PLACE", &format!("{:06}", number % NODES)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_named_as_their_paths_say() {
        for kind in [Kind::ConfigMap, Kind::Node, Kind::Pod] {
            let object: Value = serde_json::from_str(&body(kind, 7)).unwrap();
            let name = object["metadata"]["name"].as_str().unwrap();
            assert!(path(kind, "shop", Some(7)).ends_with(&format!("/{name}")), "{kind:?}");
        }
        let pod: Value = serde_json::from_str(&body(Kind::Pod, 10_007)).unwrap();
        assert_eq!(pod["spec"]["nodeName"], "node-000007");
    }
}
