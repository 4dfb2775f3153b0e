//! `convoy migrate`: replaces legacy interruption budgets by DeploymentPolicies.

use std::process::ExitCode;

use anyhow::{Context, Result};
use convoy_api::GroupKind;
use convoy_plan::dialect::skyhook::migrate::migrated;

use super::InputArgs;
use crate::input::{self, Limits};
use crate::{exit, finding, output};

const SKYHOOK: GroupKind = GroupKind::new("skyhook.nvidia.com", "Skyhook");

/// Convert the legacy interruptionBudget of Skyhooks to DeploymentPolicies
///
/// Prints the policies and the Skyhooks that refer to them as YAML. Skyhooks without an
/// interruptionBudget are left out. Changes nothing else.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    input: InputArgs,
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    let Args { input: InputArgs { filename } } = args;
    let manifests = input::read(&filename, Limits::default());
    let findings = finding::all(&manifests, &[]);
    output::print_errors(&findings);
    for object in migrated(manifests.world.of(&SKYHOOK)) {
        let text = serde_saphyr::to_string(&object).context("could not write YAML")?;
        output::print(&format!("---\n{text}"))?;
    }
    Ok(if manifests.is_sound() { ExitCode::SUCCESS } else { ExitCode::from(exit::UNREADABLE) })
}
