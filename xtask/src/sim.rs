//! `cargo xtask sim`: worlds of random faults, by the minute or by the hour. CI runs the same tests
//! with fewer seeds.

use anyhow::{Context, Result, bail, ensure};

use crate::cargo_command;

/// What can be tried, and the test that does it.
#[derive(Debug)]
struct Case {
    name: &'static str,
    /// Its own dialect, or `all` for several in one world.
    dialect: &'static str,
    package: &'static str,
    program: &'static str,
    test: &'static str,
}

const CASES: &[Case] = &[
    Case::of_loops("together", "all", "dialects_keep_their_promises_in_one_world"),
    Case::of_loops("deployments", "apps", "deployments_keep_their_promise_whatever_happens"),
    Case::of_loops("leaders", "apps", "a_deposed_leader_writes_nothing_whenever_it_is_stopped"),
    Case::of_loops("skyhooks", "skyhook", "no_compartment_has_more_in_progress_than_its_ceiling"),
    Case::of_loops(
        "placements",
        "fleet",
        "placements_keep_enough_clusters_working_whatever_happens",
    ),
    Case::of_loops("replica-sets", "ocm", "ocm::replica_sets_roll_out_in_order_whatever_happens"),
    Case::of_loops("disruptions", "karpenter", "pools_keep_their_budgets_whatever_happens"),
    Case::of_pools("pools", "pools_keep_their_budgets_for_weeks"),
    Case::of_pools("repairs", "nodes_that_fail_are_repaired_one_at_a_time"),
];

impl Case {
    const fn of_loops(name: &'static str, dialect: &'static str, test: &'static str) -> Self {
        Self { name, dialect, package: "convoy-sim", program: "simulation", test }
    }

    const fn of_pools(name: &'static str, test: &'static str) -> Self {
        let (package, program) = ("convoy-check", "karpenter_weeks");
        Self { name, dialect: "karpenter", package, program, test }
    }

    fn run(&self, seeds: u32, from: u64) -> Result<()> {
        let Self { name, package, program, test, .. } = self;
        eprintln!("{name}: {seeds} seeds from {from}");
        let status = cargo_command()
            .args(["test", "--quiet", "-p", package, "--test", program])
            .args(["--", "--exact", test, "--nocapture"])
            .env("CONVOY_CASES", seeds.to_string())
            .env("CONVOY_SEED", from.to_string())
            .status()
            .context("could not run cargo")?;
        ensure!(status.success(), "{name} failed; if a promise was broken, the seed is above");
        Ok(())
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Settings {
    /// Try only the worlds of one dialect: apps, skyhook, fleet, ocm, karpenter, or all for the
    /// world that several share [default: every case in turn]
    #[arg(long, value_name = "DIALECT")]
    dialect: Option<String>,
    /// How many worlds of each case
    #[arg(long, value_name = "NUMBER", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    seeds: u32,
    /// The first seed
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    from: u64,
    /// Try one case: together, deployments, leaders, skyhooks, placements, replica-sets, disruptions,
    /// pools or repairs
    #[arg(long, value_name = "CASE")]
    case: Option<String>,
}

pub(crate) fn run(settings: &Settings) -> Result<()> {
    let Settings { dialect, seeds, from, case } = settings;
    let is_asked = |it: &&Case| {
        dialect.as_deref().is_none_or(|dialect| dialect == it.dialect)
            && case.as_deref().is_none_or(|case| case == it.name)
    };
    let asked: Vec<&Case> = CASES.iter().filter(is_asked).collect();
    if asked.is_empty() {
        let known: Vec<String> =
            CASES.iter().map(|it| format!("{} ({})", it.name, it.dialect)).collect();
        bail!("no such case; there are {}", known.join(", "));
    }
    asked.iter().try_for_each(|case| case.run(*seeds, *from))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::kubernetes::root;

    #[test]
    fn every_case_is_a_test() {
        for case in CASES {
            let (module, test) = case.test.rsplit_once("::").unwrap_or(("", case.test));
            let package = case.package.trim_start_matches("convoy-");
            let tests = root().join("crates").join(package).join("tests");
            let file = match module {
                "" => tests.join(format!("{}.rs", case.program)),
                module => tests.join(case.program).join(format!("{module}.rs")),
            };
            let text = fs::read_to_string(&file).expect("the program is there");
            assert!(text.contains(&format!("fn {test}()")), "{}: no {test}", file.display());
        }
    }
}
