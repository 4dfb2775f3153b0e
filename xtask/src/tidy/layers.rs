//! The layers of the API server. A module uses those of its own layer and of the layers below.

use std::collections::BTreeMap;

use super::circles::graph;
use super::{read, root};

/// From the lowest to the highest, each with its modules. A new module takes its place here.
const LAYERS: [(&str, &[&str]); 6] = [
    (
        "wire",
        &[
            "accept",
            "apply",
            "caller",
            "canonical",
            "column",
            "conditions",
            "decode",
            "encoding",
            "layout",
            "object_meta",
            "patch",
            "protobuf",
            "query",
            "redact",
            "request_info",
            "shape",
            "status",
            "surroundings",
            "types",
            "version",
        ],
    ),
    ("registry", &["convert", "custom", "form", "growth", "hook_client", "metadata", "registry"]),
    (
        "access and state",
        &[
            "access",
            "attached",
            "audit",
            "backlog",
            "bodies",
            "body",
            "compress",
            "connections",
            "conversion",
            "endpoints",
            "findings",
            "limits",
            "lines",
            "metrics",
            "published",
            "quota_locks",
            "resource_request",
            "response",
            "server",
            "traffic",
        ],
    ),
    ("kinds", &["fields", "kinds", "table"]),
    ("admission", &["admission", "options"]),
    (
        "server",
        &[
            "authority",
            "chores",
            "clusters",
            "discovery",
            "drain",
            "handler",
            "handler_response",
            "health",
            "home",
            "kubeconfig",
            "listener",
            "managed",
            "object_name",
            "openapi",
            "own",
            "paths",
            "private",
            "reading",
            "review",
            "selection",
            "subresource",
            "transport",
            "verb",
            "write",
        ],
    ),
];

#[test]
fn the_api_servers_layers_point_down() {
    let source = root().join("crates/apiserver/src");
    let places = LAYERS.iter().enumerate();
    let level: BTreeMap<&str, usize> = places
        .flat_map(|(level, (_, modules))| modules.iter().map(move |module| (*module, level)))
        .collect();
    let library = read(&source.join("lib.rs"));
    let declared = library.split("#[cfg(test)]\nmod testing;").flat_map(str::lines);
    let declared = declared
        .filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';'));
    let missing: Vec<&str> = declared.filter(|module| !level.contains_key(module)).collect();
    assert!(missing.is_empty(), "modules without a layer: {missing:?}");
    let mut upwards = Vec::new();
    for (module, others) in graph(&source) {
        let [from] = &module[..] else { continue };
        for other in others {
            let Some(to) = other.first() else { continue };
            if level.get(&**to) > level.get(&**from) {
                upwards.push(format!("{from} uses {to}"));
            }
        }
    }
    assert!(upwards.is_empty(), "layers that are used from below:\n{}", upwards.join("\n"));
}
