//! `convoy plan`: what every rollout does next, and why nothing more does.

use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use convoy_api::Object;
use convoy_plan::World;
use jiff::Timestamp;
use serde_json::Value;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// File of objects; `-` reads standard input
    #[arg(short, long = "filename", required = true)]
    file: Vec<PathBuf>,
    /// The instant to decide for (RFC 3339); now if left out
    #[arg(long)]
    now: Option<Timestamp>,
    /// How to print the plan
    #[arg(short, long, default_value = "text")]
    output: String,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let mut world = World::new();
    for file in &args.file {
        for raw in read(file)? {
            world.insert(Object::from_value(raw)?);
        }
    }
    let plan = convoy_plan::plan(&world, args.now.unwrap_or_else(Timestamp::now));
    let text = serde_json::to_string_pretty(&plan.to_json())?;
    std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes())?;
    Ok(if plan.has_errors() { ExitCode::from(2) } else { ExitCode::SUCCESS })
}

fn read(file: &PathBuf) -> Result<Vec<Value>> {
    let mut text = String::new();
    if file.as_os_str() == "-" {
        std::io::stdin().read_to_string(&mut text)?;
    } else {
        text = std::fs::read_to_string(file)
            .with_context(|| format!("could not read {}", file.display()))?;
    }
    let document: Value = serde_json::from_str(&text)?;
    Ok(match document.get("items").and_then(Value::as_array) {
        Some(items) => items.clone(),
        None => vec![document],
    })
}
