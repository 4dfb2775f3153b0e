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
/// applied manifests.
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
    raw
}
