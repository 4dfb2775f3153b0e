//! `convoy record`: the objects of a cluster that a simulation begins with.

use std::process::ExitCode;

use anyhow::Result;
use convoy_api::Object;
use convoy_api::well_known::annotation::LAST_APPLIED;
use convoy_controllers::live_objects;
use convoy_sim::forecast::recorded_kinds;
use serde_json::{Value, json};

use super::source::warn;
use crate::cluster::ClusterArgs;
use crate::output::{self, Format};

/// Dump the objects of a cluster that `convoy simulate` needs
///
/// Prints one List: rollouts of the supported kinds, their pods, nodes, policies and budgets, in all
/// namespaces. Secrets are left out, as are managed fields and the copies that kubectl keeps of
/// applied manifests. Secrets within snapshots and works have their keys without the values.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "yaml")]
    output: RecordFormat,
    #[command(flatten)]
    cluster: ClusterArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum RecordFormat {
    Yaml,
    Json,
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    let Args { output: format, cluster } = args;
    let cluster = cluster.connect()?;
    let kinds = recorded_kinds();
    let live = cluster.wait(live_objects::list(cluster.client(), &kinds, None))?;
    warn(&live.unread);
    let items: Vec<Value> = live.world.iter().map(recorded).collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    let format = match format {
        RecordFormat::Yaml => Format::Yaml,
        RecordFormat::Json => Format::Json,
    };
    output::print_value(&list, format)?;
    Ok(ExitCode::SUCCESS)
}

fn recorded(object: &Object) -> Value {
    let mut raw = object.raw().clone();
    if let Some(metadata) = raw["metadata"].as_object_mut() {
        metadata.shift_remove("managedFields");
        if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
            annotations.shift_remove(LAST_APPLIED);
        }
    }
    blank_secrets(&mut raw);
    raw
}

/// Empties the Secrets that snapshots, works and the like carry to clusters. Their keys stay: what is
/// applied has them.
fn blank_secrets(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(blank_secrets),
        Value::Object(fields) => {
            let is_secret = fields.get("kind").is_some_and(|kind| kind == "Secret")
                && fields.get("apiVersion").is_some_and(|version| version == "v1");
            for (name, field) in fields.iter_mut() {
                match field {
                    Value::Object(content)
                        if is_secret && matches!(name.as_str(), "data" | "stringData") =>
                    {
                        content.values_mut().for_each(|value| *value = "".into());
                    }
                    field => blank_secrets(field),
                }
            }
            let metadata = fields.get_mut("metadata").filter(|_| is_secret);
            if let Some(Value::Object(annotations)) =
                metadata.and_then(|metadata| metadata.get_mut("annotations"))
            {
                annotations.shift_remove(LAST_APPLIED);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use convoy_testkit::object;

    use super::*;

    #[test]
    fn secrets_on_their_way_to_clusters_are_left_out() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "db", "annotations": {LAST_APPLIED: "hunter2"}},
            "data": {"password": "hunter2"}, "stringData": {"token": "hunter2"}});
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"},
            "data": {"port": "80"}});
        let snapshot = object(
            "placement.kubernetes-fleet.io/v1beta1",
            "ClusterResourceSnapshot",
            "shop-0-snapshot",
        )
        .spec(json!({"selectedResources": [secret, map]}));
        let envelope = object("placement.kubernetes-fleet.io/v1beta1", "ResourceEnvelope", "e")
            .with("/data", json!({"db.yaml": secret}));
        let work = object("work.open-cluster-management.io/v1", "ManifestWork", "w")
            .spec(json!({"workload": {"manifests": [secret]}}));
        for builder in [snapshot, envelope, work] {
            let text = recorded(&builder.build()).to_string();
            assert!(!text.contains("hunter2"), "{text}");
            assert!(text.contains(r#""password":"""#), "{text}");
        }
        let snapshot =
            recorded(&object("v1", "ConfigMap", "c").with("/data", json!({"port": "80"})).build());
        assert_eq!(snapshot["data"]["port"], "80");
    }
}
