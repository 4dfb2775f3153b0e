//! `cargo xtask conformance`: Kubernetes' own end-to-end suite against Convoy.
//!
//! Builds `e2e.test` at the version that `crates/kubernetes` pins, runs the specs that need no real
//! containers against `convoy up` with simulated nodes, and those of workloads also against a
//! kube-apiserver with `convoy run`. The outcomes are compared with `docs/reference/conformance.tsv`;
//! a difference is a failure, and `--update` writes the list anew.

mod junit;
mod list;
mod page;
mod run;
mod servers;
mod suite;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use convoy_kubernetes::{Programs, bring_suite};

use crate::kubernetes::root;
use list::{Difference, Home, Key, List, SpecResult, State};
use run::Runner;
use suite::{Ended, Spec, Suite};

#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Settings {
    /// Run only specs whose full name contains this text
    #[arg(long, value_name = "TEXT")]
    focus: Option<String>,
    /// Run also specs that the list says cannot run
    #[arg(long)]
    all: bool,
    /// Run only specs that are not in the list yet, such as those of a new version
    #[arg(long, conflicts_with = "all")]
    unlisted: bool,
    /// Write the outcomes to the list instead of comparing them; reasons of failures are kept
    #[arg(long)]
    update: bool,
    /// Only write the page about the list anew, from the list
    #[arg(long, conflicts_with_all = ["focus", "all", "unlisted", "update"])]
    page: bool,
    /// Path of a `convoy` binary [default: build one with the release profile]
    #[arg(long, value_name = "PATH")]
    convoy: Option<PathBuf>,
    /// Number of processes side by side, each with a server of its own; they mostly wait
    #[arg(long, default_value_t = 8)]
    shards: usize,
    /// Timeout of a batch of specs, and of a spec that is alone
    #[arg(long, value_name = "MINUTES", default_value_t = 20)]
    minutes: u64,
}

const LIST: &str = "docs/reference/conformance.tsv";

pub(crate) fn run(settings: &Settings) -> Result<()> {
    let path = root().join(LIST);
    let mut list = List::parse(&fs::read_to_string(&path)?).context(LIST)?;
    if settings.page {
        return page::update(&list);
    }
    let runner = runner(settings)?;
    let specs = runner.suite.specs()?;
    let (mut ended, mut unknown, mut broken) = (Vec::new(), 0, None);
    for home in [Home::Embedded, Home::Real] {
        let (wanted, missing) = select(home, &specs, &list, settings);
        unknown += missing.len();
        for spec in missing {
            eprintln!("{home}: the suite has no spec {spec:?}");
        }
        if wanted.is_empty() {
            continue;
        }
        // The outcomes of one home are not lost because the other cannot be started.
        match twice(&runner, home, &wanted, &list) {
            Ok(outcomes) => ended.extend(outcomes.into_iter().map(|end| (home, end))),
            Err(error) => broken = Some(error.context(format!("could not run specs on {home}"))),
        }
    }
    if ended.is_empty() {
        return Err(broken.unwrap_or_else(|| anyhow!("no spec was selected")));
    }
    let report = runner.suite.reports.join("junit.xml");
    fs::write(&report, junit::report(&ended))?;
    eprintln!("report: {}", report.display());
    let outcome =
        |(home, ended): &(Home, Ended)| ((*home, ended.spec.clone()), ended.outcome.clone());
    let outcomes: BTreeMap<Key, SpecResult> = ended.iter().map(outcome).collect();
    let differences = list.differences(&outcomes);
    summarize(&outcomes);
    if settings.update {
        list.update(&outcomes);
        fs::write(&path, list.text())?;
        page::update(&list)?;
        return broken.map_or(Ok(()), Err);
    }
    let judged = judge(&differences);
    if let Some(error) = broken {
        return Err(error);
    }
    ensure!(unknown == 0, "{LIST} names {unknown} specs that the suite does not have");
    judged
}

fn runner(settings: &Settings) -> Result<Runner> {
    let programs = Programs::bring()?;
    let program = bring_suite()?;
    let convoy = binary(settings.convoy.as_deref())?;
    let reports = root().join("target/conformance");
    if reports.exists() {
        fs::remove_dir_all(&reports)?;
    }
    fs::create_dir_all(&reports)?;
    let suite =
        Suite { program, kubectl: programs.kubectl.clone(), reports: reports.canonicalize()? };
    ensure!(settings.shards > 0, "--shards: at least 1");
    Ok(Runner {
        suite,
        convoy,
        programs,
        shards: settings.shards,
        timeout: Duration::from_mins(settings.minutes),
        batches: AtomicUsize::new(0),
    })
}

/// The binary to test; builds it if none is given.
fn binary(given: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = given {
        return path.canonicalize().context("--convoy: no such file");
    }
    crate::cargo(&["build", "--profile", "release", "--package", "convoy"])?;
    Ok(root().join("target/release/convoy").canonicalize()?)
}

/// The specs to run in a home, and those in the list that the suite does not have.
fn select(
    home: Home,
    specs: &[Spec],
    list: &List,
    settings: &Settings,
) -> (Vec<String>, Vec<String>) {
    let focus = settings.focus.as_deref().unwrap_or_default();
    let can_run = |name: &String| match list.0.get(&(home, name.clone())) {
        Some(_) if settings.unlisted => false,
        Some(State::CannotRun(_)) => settings.all,
        Some(_) => true,
        // Both homes have simulated nodes, which is what specs cannot run with.
        None => settings.all || !cannot_run(list, name),
    };
    let of_home = specs.iter().filter(|spec| belongs(home, spec)).map(|spec| &spec.name);
    let wanted = of_home.filter(|name| name.contains(focus) && can_run(name)).cloned().collect();
    let listed = list.0.keys().filter(|(of, _)| *of == home).map(|(_, name)| name);
    let missing = listed.filter(|name| !specs.iter().any(|spec| spec.name == **name));
    (wanted, missing.cloned().collect())
}

/// Whether a spec is listed as one that cannot run on simulated nodes.
fn cannot_run(list: &List, name: &str) -> bool {
    let embedded = list.0.get(&(Home::Embedded, name.to_owned()));
    matches!(embedded, Some(State::CannotRun(_)))
}

/// Groups of which all specs count, as far as they need no feature that is off by default. The others
/// are mostly about containers, networks and volumes, and count with the label Conformance.
const GROUPS: [&str; 6] = [
    "sig-api-machinery",
    "sig-apps",
    "sig-architecture",
    "sig-auth",
    "sig-instrumentation",
    "sig-scheduling",
];

/// Labels of specs that count only if they have the label Conformance, too.
const APART: [&str; 5] = ["Alpha", "BetaOffByDefault", "Disruptive", "Flaky", "Slow"];

/// Whether the list of a home has a spec.
fn belongs(home: Home, spec: &Spec) -> bool {
    let labels = &spec.labels;
    let is_apart = || {
        let features = labels.iter().any(|label| label.starts_with("Feature:"));
        features || APART.iter().any(|label| labels.contains(*label))
    };
    let is_of_group = || GROUPS.iter().any(|group| labels.contains(*group));
    let counts = labels.contains("Conformance") || is_of_group() && !is_apart();
    match home {
        Home::Embedded => counts,
        Home::Real => counts && spec.name.starts_with("[sig-apps] "),
    }
}

/// Runs specs, and again those that should have passed: on a busy machine a spec may miss its
/// timeout. The second outcome counts.
fn twice(runner: &Runner, home: Home, specs: &[String], list: &List) -> Result<Vec<Ended>> {
    let mut ended = runner.run(home, specs)?;
    let should_pass = |spec: &String| list.0.get(&(home, spec.clone())) == Some(&State::Pass);
    let (kept, again): (Vec<Ended>, Vec<Ended>) = ended
        .drain(..)
        .partition(|end| end.outcome == SpecResult::Passed || !should_pass(&end.spec));
    if again.is_empty() {
        return Ok(kept);
    }
    eprintln!("{home}: {} specs that should pass did not, and run again", again.len());
    let names: Vec<String> = again.iter().map(|end| end.spec.clone()).collect();
    let again = runner.run(home, &names).unwrap_or_else(|error| {
        eprintln!("{home}: they could not run again: {error:#}");
        again
    });
    Ok([kept, again].concat())
}

fn summarize(outcomes: &BTreeMap<Key, SpecResult>) {
    let mut seen = List::default();
    seen.update(outcomes);
    for home in [Home::Embedded, Home::Real] {
        let all = seen.counts(|(of, _)| *of == home);
        let conformance = seen.counts(|(of, name)| *of == home && name.contains("[Conformance]"));
        eprintln!("convoy {home}: {all}; with the Conformance label: {conformance}");
    }
}

/// Prints the differences, which are a failure.
fn judge(differences: &[Difference]) -> Result<()> {
    if differences.is_empty() {
        eprintln!("all outcomes are those in {LIST}");
        return Ok(());
    }
    for difference in differences {
        eprintln!("{difference}");
    }
    let worse =
        differences.iter().filter(|difference| difference.outcome != SpecResult::Passed).count();
    let better = differences.len() - worse;
    bail!(
        "{worse} specs that are not listed as failures did not pass, and {better} that are not \
         listed as passes did; update the list with --update"
    )
}
