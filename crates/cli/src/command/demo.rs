//! `convoy demo`: a rollout of each dialect, side by side, on a simulated fleet.

mod cluster;
mod record;
mod rollout;
mod server;
mod view;

use std::fmt::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use convoy_plan::{Step, Verdict};
use convoy_sim::fleet::connect;

use self::cluster::{DemoCluster, Observation};
use self::record::{Record, step};
use self::rollout::{DemoRollout, Ending, ROLLOUTS};
use self::server::DemoServer;
use self::view::View;
use super::DialectName;
use super::signal::shutdown_signal;
use crate::clock::this_second as now;
use crate::{exit, output};

/// Watch one rollout of each dialect on a simulated fleet
///
/// Starts `convoy up` in a temporary directory, with six nodes and four member clusters, and rolls
/// five changes out side by side. One of them is a bad release: it is contained, and what it did not
/// reach says why it waits. Takes about a minute, needs nothing and leaves nothing behind.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit status: 0 every rollout ended as it should and no budget was exceeded, \
    1 one did not, 2 the demo could not run, 130 interrupted."
)]
pub struct Args {
    /// Show only these dialects
    #[arg(long, value_name = "DIALECT", value_delimiter = ',')]
    dialect: Vec<DialectName>,
    /// Leave the server running, and print what to try next
    #[arg(long)]
    keep: bool,
}

/// How long everything may take to be there, and a rollout to end.
const PREPARATION_MAX: Duration = Duration::from_mins(2);
const ROLLOUT_MAX: Duration = Duration::from_mins(3);
const INTERVAL: Duration = Duration::from_millis(300);
/// How long a bad release is watched after it was contained: it must stay so.
const WATCHED: Duration = Duration::from_secs(5);
/// The exit status of a program that SIGINT ended.
const INTERRUPTED: u8 = 130;

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    super::block_on(run_demo(args))
}

async fn run_demo(Args { dialect, keep }: Args) -> Result<ExitCode> {
    let is_shown = |rollout: &&DemoRollout| {
        dialect.is_empty() || dialect.iter().any(|name| name.word() == rollout.dialect)
    };
    let rollouts: Vec<&DemoRollout> = ROLLOUTS.iter().filter(is_shown).collect();
    let mut shutdown = std::pin::pin!(shutdown_signal()?);
    let mut view = View::new();
    view.say("Starting a Kubernetes API server, 6 nodes and 4 member clusters, all simulated")?;
    let server = match DemoServer::start() {
        Ok(server) => server,
        // Ctrl-C ends the server as well, and that is no failure.
        Err(error) => {
            return tokio::select! {
                biased;
                () = &mut shutdown => Ok(ExitCode::from(INTERRUPTED)),
                () = tokio::time::sleep(INTERVAL) => Err(error),
            };
        }
    };
    let result = tokio::select! {
        result = run_rollouts(&rollouts, &server, &mut view) => result.map(Some),
        () = &mut shutdown => Ok(None),
    };
    match result {
        Ok(Some(is_good)) if keep => {
            tell_next(server, &rollouts)?;
            Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::from(exit::FINDINGS) })
        }
        result => {
            server.stop()?;
            match result? {
                Some(true) => Ok(ExitCode::SUCCESS),
                Some(false) => Ok(ExitCode::from(exit::FINDINGS)),
                None => Ok(ExitCode::from(INTERRUPTED)),
            }
        }
    }
}

/// Runs the rollouts to their ends; whether all is as it should be.
async fn run_rollouts(
    rollouts: &[&DemoRollout],
    server: &DemoServer,
    view: &mut View,
) -> Result<bool> {
    let cluster = DemoCluster::new(connect(Some(&server.kubeconfig), None).await?);
    for rollout in rollouts {
        cluster.apply(rollout.before).await?;
    }
    prepare(rollouts, &cluster).await?;
    view.say("Everything runs its first version. Now these change:")?;
    for rollout in rollouts {
        view.say(&format!("  {:<9}  {}: {}", rollout.dialect, rollout.label(), rollout.title))?;
    }
    view.say("")?;
    let mut records: Vec<Record<'_>> = rollouts.iter().map(|rollout| Record::of(rollout)).collect();
    for rollout in rollouts {
        cluster.apply(rollout.after).await?;
    }
    let observations = watch(&mut records, &cluster, view).await?;
    summarize(&records, &observations, view)
}

/// Waits until all that can be there before the change is there.
async fn prepare(rollouts: &[&DemoRollout], cluster: &DemoCluster) -> Result<()> {
    let begun = Instant::now();
    loop {
        let observation = cluster.observe(now()).await?;
        let is_ready = |rollout: &&&DemoRollout| match rollout.object(&observation.world) {
            None => rollout.begins_with_change,
            Some(_) => step(rollout, &observation).is_some_and(is_at_rest),
        };
        let Some(late) = rollouts.iter().find(|rollout| !is_ready(rollout)) else { return Ok(()) };
        if begun.elapsed() > PREPARATION_MAX {
            bail!("{} was not ready after {PREPARATION_MAX:?}", late.label());
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// It has members, and all of them have what they should.
fn is_at_rest(step: &Step) -> bool {
    step.verdict == Verdict::Done && step.progress().1 > 0
}

/// What was seen in all observations together.
struct Observations {
    count: usize,
    violations: Vec<String>,
    took: Duration,
}

/// Observes the cluster until every rollout has ended.
async fn watch(
    records: &mut [Record<'_>],
    cluster: &DemoCluster,
    view: &mut View,
) -> Result<Observations> {
    let begun = Instant::now();
    let mut observations = Observations { count: 0, violations: Vec::new(), took: Duration::ZERO };
    let mut ended_since: Option<Instant> = None;
    while ended_since.is_none_or(|since| since.elapsed() < WATCHED) {
        let now = now();
        let observation: Observation = cluster.observe(now).await?;
        observations.count += 1;
        let violated = convoy_check::check(&observation.world, &observation.plan);
        observations.violations.extend(violated.iter().map(ToString::to_string));
        for record in records.iter_mut() {
            record.see(&observation);
        }
        let steps: Vec<_> = records.iter().map(|record| (record.rollout, record.last())).collect();
        view.show(&steps, begun.elapsed(), now)?;
        if !records.iter().all(Record::has_ended) {
            ended_since = None;
            if begun.elapsed() > ROLLOUT_MAX {
                break;
            }
        } else if ended_since.is_none() {
            ended_since = Some(Instant::now());
            observations.took = begun.elapsed();
            // Only a bad release could still spread.
            if records.iter().all(|record| record.rollout.ending == Ending::Done) {
                break;
            }
        }
        tokio::time::sleep(INTERVAL).await;
    }
    Ok(observations)
}

fn summarize(records: &[Record<'_>], observations: &Observations, view: &mut View) -> Result<bool> {
    view.settle();
    let (contained, moved): (Vec<_>, Vec<_>) =
        records.iter().partition(|record| record.rollout.ending == Ending::Contained);
    let mut text = String::new();
    if !moved.is_empty() {
        text.push_str("\nWhat moved\n");
        for record in &moved {
            _ = writeln!(text, "  {}", record.summary());
        }
    }
    if !contained.is_empty() {
        text.push_str("\nWhat was protected\n");
        for record in &contained {
            _ = write!(text, "  {}\n{}", record.summary(), record.reasons(now()));
        }
    }
    let problems = problems(records, observations);
    if problems.is_empty() {
        let (count, took) = (observations.count, observations.took.as_secs());
        _ = writeln!(
            text,
            "\nNo budget was exceeded and every guarantee held in {count} checks; \
             the rollouts took {took} s."
        );
    }
    for problem in &problems {
        _ = writeln!(text, "\nproblem: {problem}");
    }
    output::print(&text)?;
    Ok(problems.is_empty())
}

/// What is not as it should be.
fn problems(records: &[Record<'_>], observations: &Observations) -> Vec<String> {
    let late = records.iter().filter(|record| !record.has_ended());
    let over = records.iter().filter(|record| !record.is_within_budget());
    let late = late.map(|record| format!("{} did not end as it should", record.rollout.label()));
    let over = over.map(|record| format!("{} exceeded its budget", record.rollout.label()));
    let violated =
        observations.violations.iter().map(|found| format!("violated guarantee: {found}"));
    late.chain(over).chain(violated).collect()
}

fn tell_next(server: DemoServer, rollouts: &[&DemoRollout]) -> Result<()> {
    let kubeconfig = server.kubeconfig.clone();
    let directory = server.keep();
    let (kubeconfig, directory) = (kubeconfig.display(), directory.display());
    let mut text = format!("\nThe server runs on. Try:\n\n  export KUBECONFIG={kubeconfig}\n");
    text.push_str("  convoy get --all-namespaces\n");
    // The one that stopped has most to tell.
    let told = rollouts.iter().find(|rollout| rollout.ending == Ending::Contained);
    for command in told.or(rollouts.first()).into_iter().flat_map(|rollout| rollout.commands()) {
        _ = writeln!(text, "  {command}");
    }
    text.push_str("  kubectl get nodes\n");
    if rollouts.iter().any(|rollout| ["fleet", "ocm"].contains(&rollout.dialect)) {
        text.push_str("  kubectl --context convoy-member-1 get pods --all-namespaces\n");
    }
    _ = writeln!(text, "  convoy down --data-dir {directory}; rm -r {directory}");
    output::print(&text)
}
