//! `cargo xtask torture`: the trial for nights. Its counts reach the tests by the environment.

use anyhow::{Context, Result, ensure};

use crate::cargo_command;

#[derive(Debug, clap::Args)]
pub(crate) struct Settings {
    /// How often a leader is killed, and as often a process that writes to a store
    #[arg(long, default_value_t = 200)]
    kills: u32,
    /// How often a leader is stopped (SIGSTOP) and woken up after it was replaced
    #[arg(long, default_value_t = 50)]
    stops: u32,
    /// How often the Lease of a leader is deleted
    #[arg(long, default_value_t = 50)]
    deletions: u32,
    /// The trial fails if it takes longer
    #[arg(long, value_name = "MINUTES", default_value_t = 60)]
    minutes: u32,
}

pub(crate) fn run(settings: &Settings) -> Result<()> {
    let Settings { kills, stops, deletions, minutes } = settings;
    let counts = [
        ("CONVOY_CRASHES", kills),
        ("CONVOY_KILLS", kills),
        ("CONVOY_STOPS", stops),
        ("CONVOY_DELETIONS", deletions),
        ("CONVOY_MINUTES", minutes),
    ];
    let trials: [&[&str]; 2] = [
        &["-p", "convoy-store", "--test", "crash", "--", "whatever_was_acknowledged"],
        &["-p", "convoy", "--test", "promise", "--", "--ignored", "budgets_hold", "--nocapture"],
    ];
    for trial in trials {
        let mut command = cargo_command();
        command.arg("test").args(trial);
        command.envs(counts.map(|(name, count)| (name, count.to_string())));
        eprintln!("$ cargo test {}", trial.join(" "));
        let status = command.status().context("could not run cargo")?;
        ensure!(status.success(), "cargo test {} failed", trial.join(" "));
    }
    Ok(())
}
