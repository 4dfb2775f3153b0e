//! `convoy migrate`: the policy in place of a legacy budget.

use std::process::ExitCode;

use anyhow::{Context, Result};
use convoy_api::GroupKind;
use convoy_plan::dialect::skyhook::migrate::migrated;

use super::InputArgs;
use crate::input::{self, Limits};
use crate::{exit, finding, output};

const SKYHOOK: GroupKind = GroupKind::new("skyhook.nvidia.com", "Skyhook");

/// Writes the `DeploymentPolicy` in place of a Skyhook's legacy interruptionBudget
///
/// Prints the policies, then the Skyhooks changed to name them, as YAML. Skyhooks without a legacy
/// budget are left out. Nothing is written anywhere else.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    input: InputArgs,
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    let Args { input: InputArgs { filename } } = args;
    let bag = input::read(&filename, Limits::default());
    let findings = finding::all(&bag, &[]);
    output::complain(&findings);
    for object in migrated(bag.world.of(&SKYHOOK)) {
        let text = serde_saphyr::to_string(&object).context("could not write YAML")?;
        output::print(&format!("---\n{text}"))?;
    }
    Ok(if bag.is_sound() { ExitCode::SUCCESS } else { ExitCode::from(exit::UNREADABLE) })
}
