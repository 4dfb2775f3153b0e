//! The feature gates of `convoy run`, `convoy up` and `convoy agent`, under upstream's names.

use anyhow::{Result, bail};
use convoy_plan::dialect::karpenter::Gates;
use convoy_plan::dialect::ocm_agent;

/// Features that are switched on or off.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Features")]
pub(crate) struct FeatureFlags {
    /// Features to switch on or off, as NAME=BOOL separated by commas. Of Karpenter: NodeRepair,
    /// SpotToSpotConsolidation, StaticCapacity; of the agents of Open Cluster Management:
    /// RawFeedbackJsonString
    #[arg(long, value_name = "FEATURES", value_delimiter = ',', value_parser = feature)]
    feature_gates: Vec<Feature>,
}

/// A feature gate as it is given.
#[derive(Clone, Debug)]
struct Feature {
    name: String,
    is_on: bool,
}

impl FeatureFlags {
    /// The gates of Karpenter, and those of the agents of Open Cluster Management.
    pub(crate) fn resolve(&self) -> Result<(Gates, ocm_agent::Features)> {
        let (mut karpenter, mut ocm) = (Gates::new(), ocm_agent::Features::default());
        for Feature { name, is_on } in &self.feature_gates {
            if !karpenter.set(name, *is_on) && !ocm.set(name, *is_on) {
                bail!(
                    "{name}={is_on} in --feature-gates is not supported; valid: {}, \
                     RawFeedbackJsonString, ExecutorValidatingCaches, of which NodeOverlay and \
                     CapacityBuffer can only be off",
                    Gates::NAMES.join(", ")
                );
            }
        }
        Ok((karpenter, ocm))
    }
}

fn feature(text: &str) -> Result<Feature, String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=true or NAME=false")?;
    let is_on = value.parse().map_err(|_| "expected NAME=true or NAME=false")?;
    Ok(Feature { name: name.to_owned(), is_on })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(flatten)]
        features: FeatureFlags,
    }

    fn resolved(gates: &str) -> Result<(Gates, ocm_agent::Features)> {
        let line = ["convoy".to_owned(), format!("--feature-gates={gates}")];
        Program::try_parse_from(line)?.features.resolve()
    }

    #[test]
    fn gates_are_set_by_upstreams_names() {
        let (karpenter, ocm) = resolved("NodeRepair=true,StaticCapacity=false").unwrap();
        assert_eq!(karpenter, Gates { node_repair: true, static_capacity: false, ..Gates::new() });
        assert!(!ocm.raw_feedback_json_string);
        let (karpenter, ocm) =
            resolved("RawFeedbackJsonString=true,ExecutorValidatingCaches=false").unwrap();
        assert_eq!(karpenter, Gates::new());
        assert!(ocm.raw_feedback_json_string);
        for wrong in ["Nothing=true", "NodeRepair", "NodeRepair=yes", "NodeOverlay=true"] {
            assert!(resolved(wrong).is_err(), "{wrong}");
        }
    }
}
