//! `convoy why`: what holds a rollout, a node, a cluster or a pod, and what would free it.

use std::process::ExitCode;

use anyhow::{Result, bail};
use convoy_api::text::similar;
use convoy_plan::explanation::{self, Cause};
use convoy_plan::{Step, Verdict};
use serde_json::{Value, json};
use smol_str::SmolStr;

use super::source::SourceArgs;
use crate::output::{self, TableFormat};
use crate::report::Report;
use crate::rollouts::{self, Target, dialect_of};
use crate::text::{causes, disruptable};

/// Explain what holds a rollout, node, cluster or pod, and what would free it
///
/// Without arguments, explains every rollout that is not done. Reasons come in the order in which
/// they matter: what holds the rollout as a whole, what a person has to do something about, then
/// what others or time will free. Each member is named, and a member that waits for others is
/// followed by what those wait for.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  convoy why\n  convoy why skyhook/gpu-init\n  convoy why node \
    worker-7\n  convoy why cluster eu-1\n  convoy why pod shop/web-0\n\nExit status: 0 success, 1 \
    the object was not found or the cluster could not be read, 2 the usage was wrong."
)]
pub(crate) struct Args {
    /// `[KIND/]NAME` of a rollout, or `node`, `cluster` or `pod` and a name
    #[arg(value_name = "WHAT", num_args = 0..=2)]
    target: Vec<String>,
    #[command(flatten)]
    source: SourceArgs,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: TableFormat,
}

/// What is asked about.
enum Question {
    Rollouts,
    Rollout(Target),
    /// A rollout of this name or, if there is none, a member.
    Any(String),
    Member {
        noun: &'static str,
        name: String,
    },
}

/// What holds something in one rollout.
struct RolloutCauses<'r> {
    step: &'r Step,
    causes: Vec<Cause<'r>>,
    /// Why the member that is asked about cannot be disrupted, whether or not it is to be.
    stays: Option<&'r str>,
}

/// What kind of member a word stands for.
fn member_noun(word: &str) -> Option<&'static str> {
    match word {
        "node" | "nodes" | "no" => Some("node"),
        "cluster" | "clusters" => Some("cluster"),
        "pod" | "pods" | "po" => Some("pod"),
        _ => None,
    }
}

impl Question {
    fn read(words: &[String]) -> Self {
        let target = match words {
            [kind, name] if kind == "rollout" => Target::read(std::slice::from_ref(name)),
            words => Target::read(words),
        };
        match target {
            Target { name: None, .. } => Self::Rollouts,
            Target { kind: None, name: Some(name) } => Self::Any(name),
            Target { kind: Some(kind), name: Some(name) } => match member_noun(&kind) {
                Some(noun) => Self::Member { noun, name },
                None => Self::Rollout(Target { kind: Some(kind), name: Some(name) }),
            },
        }
    }
}

impl Question {
    /// The dialects that may hold what is asked about; empty: all.
    fn dialects(&self) -> Vec<&'static str> {
        match self {
            Self::Rollout(target) => target.dialects(),
            Self::Rollouts | Self::Any(_) | Self::Member { .. } => Vec::new(),
        }
    }
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    let Args { target, source, output } = args;
    let question = Question::read(&target);
    if let Question::Rollout(target) = &question {
        target.check_kind()?;
    }
    let source = source.open()?;
    let report = source.report(&question.dialects())?;
    let steps = rollouts::within(&report, source.namespace.as_deref());
    match question {
        Question::Rollouts => {
            let waiting = steps.into_iter().filter(|step| step.verdict != Verdict::Done);
            print_rollouts(&report, waiting.collect(), output)?;
        }
        Question::Rollout(target) => {
            print_rollouts(&report, vec![target.find(&steps)?], output)?;
        }
        Question::Any(name) => {
            let target = Target { kind: None, name: Some(name.clone()) };
            if steps.iter().any(|step| target.matches(step)) {
                print_rollouts(&report, vec![target.find(&steps)?], output)?;
            } else if let Some(noun) = member_noun(&name) {
                bail!("the name of the {noun} is missing: `convoy why {noun} NAME`");
            } else {
                print_member(&report, "member", &name, output)?;
            }
        }
        Question::Member { noun, name } => print_member(&report, noun, &name, output)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn print_rollouts(report: &Report, steps: Vec<&Step>, output: TableFormat) -> Result<()> {
    let all = &report.plan.steps;
    let answers: Vec<RolloutCauses<'_>> = steps
        .into_iter()
        .map(|step| RolloutCauses { step, causes: explanation::of_rollout(all, step), stays: None })
        .collect();
    if let Some(format) = output.document() {
        return output::print_value(&to_json(report, &answers), format);
    }
    if output == TableFormat::Name {
        return print_names(&answers);
    }
    if answers.is_empty() {
        return output::print("nothing waits: every rollout is done\n");
    }
    let text: Vec<String> =
        answers.iter().map(|it| causes::of_rollout(it.step, &it.causes, report.plan.now)).collect();
    output::print(&text.join("\n"))
}

/// The rollouts that hold what was asked about.
fn print_names(answers: &[RolloutCauses<'_>]) -> Result<()> {
    let name = |answer: &RolloutCauses<'_>| rollouts::full_name(&answer.step.rollout);
    output::print(&output::lines(&answers.iter().map(name).collect::<Vec<_>>()))
}

fn print_member(report: &Report, noun: &str, name: &str, output: TableFormat) -> Result<()> {
    let answers = about_member(report, noun, name);
    if let Some(format) = output.document() {
        return output::print_value(&to_json(report, &answers), format);
    }
    if answers.is_empty() {
        let unheld = unheld(report, noun, name)?;
        return if output == TableFormat::Name { Ok(()) } else { output::print(&unheld) };
    }
    if output == TableFormat::Name {
        return print_names(&answers);
    }
    let mut text = Vec::new();
    for RolloutCauses { step, causes, stays } in &answers {
        text.push(causes::of_member(step, causes, *stays, report.plan.now));
    }
    output::print(&text.join("\n"))
}

/// What is said about a member that nothing holds.
fn unheld(report: &Report, noun: &str, name: &str) -> Result<String> {
    let world = &report.manifests.world;
    let (_, short) = name.split_once('/').unwrap_or(("", name));
    let has_it = |step: &&Step| {
        let rollout = world.get(&step.rollout);
        rollout.is_some_and(|rollout| dialect_of(step).has_member(world, rollout, short))
    };
    let steps = report.plan.steps.iter().filter(|step| rollouts::is_rollout(step));
    let of: Vec<String> = steps
        .filter(has_it)
        .map(|step| {
            let state = if step.verdict == Verdict::Done { "done" } else { "done, or on its way" };
            format!("{noun} {name}: {state} in {}\n", rollouts::path(&step.rollout))
        })
        .collect();
    if !of.is_empty() {
        return Ok(of.concat());
    }
    if !known(report, noun).any(|known| known == short) {
        let rollouts = report.plan.steps.iter().filter(|step| rollouts::is_rollout(step));
        let rollouts = rollouts.map(|step| step.rollout.name.as_str());
        // A word alone may be meant to be a rollout.
        let rollouts = rollouts.filter(|_| noun == "member");
        let meant = similar::question(short, known(report, noun).chain(rollouts));
        bail!("{noun} {name:?} not found{meant}");
    }
    Ok(format!("{noun} {name}: it is a member of no rollout\n"))
}

/// What holds a member, by rollout; for a pod also what it holds up.
fn about_member<'r>(report: &'r Report, noun: &str, name: &str) -> Vec<RolloutCauses<'r>> {
    let (world, all) = (&report.manifests.world, &report.plan.steps);
    let (namespace, short) =
        name.split_once('/').map_or((None, name), |(namespace, short)| (Some(namespace), short));
    let steps = all
        .iter()
        .filter(|step| rollouts::is_rollout(step) && rollouts::is_within(&step.rollout, namespace));
    let answers = steps.map(|step| {
        let names: Vec<SmolStr> = dialect_of(step).member_names(world, short);
        let mut causes = explanation::of_member(all, step, &names);
        if matches!(noun, "pod" | "member") {
            causes.extend(explanation::of_pod(step, name));
        }
        RolloutCauses { step, causes, stays: disruptable::of_member(step, &names) }
    });
    answers.filter(|answer| !answer.causes.is_empty() || answer.stays.is_some()).collect()
}

/// The names of all objects that could be such a member.
fn known<'r>(report: &'r Report, noun: &str) -> impl Iterator<Item = &'r str> {
    let kinds: &'static [&'static str] = match noun {
        "node" => &["Node", "NodeClaim"],
        "cluster" => &["MemberCluster", "ManagedCluster"],
        "pod" => &["Pod"],
        _ => &["Node", "NodeClaim", "MemberCluster", "ManagedCluster", "Pod"],
    };
    let objects = report.manifests.world.iter();
    let members = objects.filter(|object| kinds.contains(&object.kind().kind.as_str()));
    members.map(|object| object.name().as_str())
}

fn to_json(report: &Report, answers: &[RolloutCauses<'_>]) -> Value {
    let cause = |cause: &Cause<'_>| {
        json!({
            "depth": cause.depth,
            "rollout": rollouts::full_name(&cause.step.rollout),
            "group": cause.group,
            "members": cause.members,
            "hold": cause.reason,
            "message": cause.reason.map(ToString::to_string),
            "freedWhen": cause.reason.map(convoy_plan::HoldReason::remedy),
            "until": cause.until.map(|at| at.to_string()),
        })
    };
    let answers: Vec<Value> = answers
        .iter()
        .map(|RolloutCauses { step, causes, stays }| {
            let object = step.to_json()["object"].take();
            let causes: Vec<Value> = causes.iter().map(cause).collect();
            let mut answer = json!({"object": object, "verdict": step.verdict, "causes": causes});
            if let Some(stays) = stays {
                answer["notDisruptable"] = json!(stays);
            }
            answer
        })
        .collect();
    json!({"now": report.plan.now.to_string(), "answers": answers})
}
