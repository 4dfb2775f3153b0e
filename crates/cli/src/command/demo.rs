//! `convoy demo`: a rollout of each dialect, side by side, on a simulated fleet.

mod acts;
mod record;
mod scene;
mod server;
mod view;

use std::fmt::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use convoy_plan::Verdict;
use convoy_sim::fleet::connect;

use self::acts::{ACTS, Act, Ending};
use self::record::{Record, step};
use self::scene::{Look, Scene};
use self::server::DemoServer;
use self::view::View;
use super::DialectName;
use super::plan::this_second as now;
use super::signal::shutdown_signal;
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
    super::block_on(play(args))
}

async fn play(Args { dialect, keep }: Args) -> Result<ExitCode> {
    let is_shown =
        |act: &&Act| dialect.is_empty() || dialect.iter().any(|name| name.word() == act.dialect);
    let acts: Vec<&Act> = ACTS.iter().filter(is_shown).collect();
    let shutdown = shutdown_signal()?;
    let mut view = View::new();
    view.say("Starting a Kubernetes API server, 6 nodes and 4 member clusters, all simulated")?;
    let server = DemoServer::start()?;
    let played = tokio::select! {
        played = perform(&acts, &server, &mut view) => played.map(Some),
        () = shutdown => Ok(None),
    };
    match played {
        Ok(Some(is_good)) if keep => {
            tell_next(server)?;
            Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::from(exit::FINDINGS) })
        }
        played => {
            server.stop()?;
            match played? {
                Some(true) => Ok(ExitCode::SUCCESS),
                Some(false) => Ok(ExitCode::from(exit::FINDINGS)),
                None => Ok(ExitCode::from(INTERRUPTED)),
            }
        }
    }
}

/// Runs the rollouts to their ends; whether all is as it should be.
async fn perform(acts: &[&Act], server: &DemoServer, view: &mut View) -> Result<bool> {
    let scene = Scene::new(connect(Some(&server.kubeconfig), None).await?);
    for act in acts {
        scene.apply(act.before).await?;
    }
    prepare(acts, &scene).await?;
    view.say("Everything runs its first version. Now these change:")?;
    for act in acts {
        view.say(&format!("  {:<9}  {}: {}", act.dialect, act.label(), act.title))?;
    }
    view.say("")?;
    let mut records: Vec<Record<'_>> = acts.iter().map(|act| Record::of(act)).collect();
    for act in acts {
        scene.apply(act.after).await?;
    }
    let looks = watch(&mut records, &scene, view).await?;
    summarize(&records, &looks, view)
}

/// Waits until all that can be there before the change is there.
async fn prepare(acts: &[&Act], scene: &Scene) -> Result<()> {
    let begun = Instant::now();
    loop {
        let look = scene.look(now()).await?;
        let is_ready = |act: &&&Act| match act.rollout(&look.world) {
            None => act.begins_with_change,
            Some(_) => step(act, &look).is_some_and(|step| is_at_rest(step.verdict, step)),
        };
        let Some(late) = acts.iter().find(|act| !is_ready(act)) else { return Ok(()) };
        if begun.elapsed() > PREPARATION_MAX {
            bail!("{} was not ready after {PREPARATION_MAX:?}", late.label());
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

fn is_at_rest(verdict: Verdict, step: &convoy_plan::Step) -> bool {
    verdict == Verdict::Done && step.groups.iter().map(|group| group.total).sum::<u32>() > 0
}

/// What was seen in all looks together.
struct Looks {
    count: usize,
    violations: Vec<String>,
    took: Duration,
}

/// Looks again and again until every rollout has ended.
async fn watch(records: &mut [Record<'_>], scene: &Scene, view: &mut View) -> Result<Looks> {
    let begun = Instant::now();
    let mut looks = Looks { count: 0, violations: Vec::new(), took: Duration::ZERO };
    let mut ended_since: Option<Instant> = None;
    while ended_since.is_none_or(|since| since.elapsed() < WATCHED) {
        let now = now();
        let look: Look = scene.look(now).await?;
        looks.count += 1;
        let violated = convoy_check::check(&look.world, &look.plan);
        looks.violations.extend(violated.iter().map(ToString::to_string));
        for record in records.iter_mut() {
            record.see(&look);
        }
        let steps: Vec<_> = records.iter().map(|record| (record.act, record.last())).collect();
        view.show(&steps, begun.elapsed(), now)?;
        if !records.iter().all(Record::has_ended) {
            ended_since = None;
            if begun.elapsed() > ROLLOUT_MAX {
                break;
            }
        } else if ended_since.is_none() {
            ended_since = Some(Instant::now());
            looks.took = begun.elapsed();
            // Only a bad release could still spread.
            if records.iter().all(|record| record.act.ending == Ending::Done) {
                break;
            }
        }
        tokio::time::sleep(INTERVAL).await;
    }
    Ok(looks)
}

fn summarize(records: &[Record<'_>], looks: &Looks, view: &mut View) -> Result<bool> {
    view.settle();
    let (contained, moved): (Vec<_>, Vec<_>) =
        records.iter().partition(|record| record.act.ending == Ending::Contained);
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
    let problems = problems(records, looks);
    if problems.is_empty() {
        let (count, took) = (looks.count, looks.took.as_secs());
        _ = writeln!(
            text,
            "\nNo budget was exceeded and every guarantee held in {count} looks; \
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
fn problems(records: &[Record<'_>], looks: &Looks) -> Vec<String> {
    let late = records.iter().filter(|record| !record.has_ended());
    let over = records.iter().filter(|record| !record.is_within_budget());
    let late = late.map(|record| format!("{} did not end as it should", record.act.label()));
    let over = over.map(|record| format!("{} exceeded its budget", record.act.label()));
    let violated = looks.violations.iter().map(|found| format!("violated guarantee: {found}"));
    late.chain(over).chain(violated).collect()
}

fn tell_next(server: DemoServer) -> Result<()> {
    let kubeconfig = server.kubeconfig.clone();
    let directory = server.keep();
    let (kubeconfig, directory) = (kubeconfig.display(), directory.display());
    output::print(&format!(
        "\nThe server runs on. Try:\n\
         \n  export KUBECONFIG={kubeconfig}\
         \n  convoy get\
         \n  convoy why clusterresourceplacement store\
         \n  kubectl get nodes,skyhooks,nodepools,clusterresourceplacements\
         \n  kubectl --context convoy-member-1 get pods -A\
         \n  convoy down --data-dir {directory}; rm -r {directory}\n"
    ))
}
