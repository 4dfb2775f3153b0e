//! `convoy version`: which build this is.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::{Value, json};

use crate::output::{self, Format};

/// Print the version, the commit and how this program was built
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let build = build();
    if args.output == Format::Text {
        output::print(&text(&build))?;
    } else {
        output::print_value(&build, args.output)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn build() -> Value {
    let known = |text: &'static str| if text.is_empty() { "unknown" } else { text };
    let mut build = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "commit": known(env!("CONVOY_COMMIT")),
        "profile": known(env!("CONVOY_PROFILE")),
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    });
    #[cfg(feature = "server")]
    {
        build["kubernetesVersion"] = json!(convoy_apiserver::git_version());
    }
    build
}

fn text(build: &Value) -> String {
    let word = |name: &str| build[name].as_str().unwrap_or("unknown");
    format!(
        "convoy {} ({}, {}, {})\nAPI server: Kubernetes {}\n",
        word("version"),
        word("commit"),
        word("profile"),
        word("platform"),
        word("kubernetesVersion"),
    )
}
