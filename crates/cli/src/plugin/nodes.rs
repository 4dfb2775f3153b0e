//! `kubectl skyhook node`.

use anyhow::{Context, Result, anyhow};
use clap::Subcommand;
use convoy_api::Object;
use convoy_api::skyhook::PackageState;
use convoy_plan::dialect::skyhook::manual::{self, PackageRecord, standing};
use regex::Regex;
use serde_json::{Value, json};

use super::arguments::{Leaf, at_least_one, skyhook_required};
use super::cluster::PatchTarget;
use super::render::{self, Format};
use super::rollouts::{nodes_to_reset, report_nodes};
use super::{Session, confirm};
use crate::output;

/// A name with one of these characters is a regular expression.
const PATTERN: &str = r".*+?^${}[]|()\";

pub(super) const NONE_MATCHED: &str = "No nodes matched the specified patterns\n";

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// List the nodes of a Skyhook
    List(List),
    /// Show the status of nodes for each Skyhook
    Status(Status),
    /// Run all packages of a Skyhook again on nodes
    Reset(Reset),
    /// Exclude nodes from all Skyhooks
    Ignore(Selection),
    /// Include ignored nodes again
    Unignore(Selection),
}

#[derive(Debug, clap::Args)]
pub(super) struct List {
    /// Name of the Skyhook
    #[arg(long)]
    skyhook: Option<String>,
    #[arg(hide = true)]
    words: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct Status {
    /// Nodes, by name or regular expression [default: all]
    #[arg(value_name = "NODE")]
    words: Vec<String>,
    /// Show only this Skyhook
    #[arg(long)]
    skyhook: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct Reset {
    /// Nodes, by name or regular expression
    #[arg(value_name = "NODE")]
    words: Vec<String>,
    /// Name of the Skyhook
    #[arg(long)]
    skyhook: Option<String>,
    /// Skip the confirmation prompt
    #[arg(short = 'y', long)]
    confirm: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Selection {
    /// Nodes, by name or regular expression
    #[arg(value_name = "NODE")]
    words: Vec<String>,
}

impl Action {
    pub(super) fn leaf(&self) -> &dyn Leaf {
        match self {
            Self::List(list) => list,
            Self::Status(status) => status,
            Self::Reset(reset) => reset,
            Self::Ignore(selection) | Self::Unignore(selection) => selection,
        }
    }
}

impl Leaf for List {
    fn required(&self) -> Result<()> {
        skyhook_required(self.skyhook.as_deref())
    }
}

impl Leaf for Status {}

impl Leaf for Reset {
    fn arity(&self) -> Result<()> {
        at_least_one(&self.words)
    }

    fn required(&self) -> Result<()> {
        skyhook_required(self.skyhook.as_deref())
    }
}

impl Leaf for Selection {
    fn arity(&self) -> Result<()> {
        at_least_one(&self.words)
    }
}

pub(super) async fn act(session: &Session, action: Action) -> Result<()> {
    let all = session.cluster.nodes().await?;
    match action {
        Action::List(list) => list.print(session, &all),
        Action::Status(status) => status.print(session, &all),
        Action::Reset(reset) => reset.run(session, &all).await,
        Action::Ignore(selection) => selection.ignore(session, &all, true).await,
        Action::Unignore(selection) => selection.ignore(session, &all, false).await,
    }
}

/// The nodes with one of `names`, or matching one as a regular expression; none: no node is.
pub(super) fn select_nodes<'n>(
    all: impl Iterator<Item = &'n Object> + Clone,
    names: &[String],
) -> Result<Vec<&'n Object>> {
    let mut selected = Vec::new();
    for name in names {
        let pattern = if name.contains(|letter| PATTERN.contains(letter)) {
            Some(anchored(name).context("matching nodes")?)
        } else {
            None
        };
        let fits = |node: &&Object| match &pattern {
            Some(pattern) => pattern.is_match(node.name()),
            None => node.name() == name,
        };
        selected.extend(all.clone().filter(fits));
    }
    selected.sort_by_key(|node| node.name());
    selected.dedup_by_key(|node| node.name());
    Ok(selected)
}

/// A regular expression that has to match the whole of a name.
fn anchored(pattern: &str) -> Result<Regex> {
    Regex::new(&format!("^(?:{pattern})$")).map_err(|error| {
        // The reason is below a picture of the pattern.
        let error = error.to_string();
        let reason = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
        anyhow!("invalid regex pattern {pattern:?}: {reason}")
    })
}

/// The nodes to change. A name that no node has may be mistyped, which is said if others fit.
pub(super) fn selected_for_change<'n>(
    all: impl Iterator<Item = &'n Object> + Clone,
    names: &[String],
) -> Result<Vec<&'n Object>> {
    let selected = select_nodes(all.clone(), names)?;
    for name in names.iter().filter(|_| !selected.is_empty()) {
        if select_nodes(all.clone(), std::slice::from_ref(name))?.is_empty() {
            eprintln!("Warning: no node matches {name:?}");
        }
    }
    Ok(selected)
}

impl Session {
    /// The packages that a node records for a Skyhook.
    pub(super) fn packages(&self, node: &Object, skyhook: &str) -> Option<Vec<PackageRecord>> {
        self.packages_of(node, skyhook, &format!("node {:?}", node.name()))
    }

    /// The same; `place` says where they are if they are invalid.
    fn packages_of(&self, node: &Object, skyhook: &str, place: &str) -> Option<Vec<PackageRecord>> {
        match manual::packages(node, skyhook) {
            Ok(packages) => packages,
            Err(error) => {
                if self.global.verbose {
                    eprintln!("Warning: skipping {place} - invalid annotation: {error}");
                }
                None
            }
        }
    }
}

fn complete(packages: &[PackageRecord]) -> usize {
    packages.iter().filter(|package| package.state == PackageState::Complete).count()
}

fn share(packages: &[PackageRecord]) -> String {
    format!("{}/{}", complete(packages), packages.len())
}

fn restarts(packages: &[PackageRecord]) -> i64 {
    packages.iter().map(|package| package.restarts).sum()
}

fn emphasized(word: &str) -> String {
    if word == "erroring" { word.to_uppercase() } else { word.to_owned() }
}

impl List {
    fn print(&self, session: &Session, all: &[Object]) -> Result<()> {
        let skyhook = self.skyhook.as_deref().unwrap_or_default();
        let nodes: Vec<(&Object, Vec<PackageRecord>)> =
            all.iter().filter_map(|node| Some((node, session.packages(node, skyhook)?))).collect();
        let entries: Vec<Value> = nodes
            .iter()
            .map(|(node, packages)| {
                json!({"nodeName": node.name(), "status": standing(packages),
                    "packagesComplete": complete(packages), "packagesTotal": packages.len(),
                    "restarts": restarts(packages)})
            })
            .collect();
        let document = json!({"skyhookName": skyhook, "nodes": entries});
        if render::print_structured(session.format, &document)? {
            return Ok(());
        }
        if nodes.is_empty() {
            return output::print(&format!("No nodes found for Skyhook {skyhook:?}\n"));
        }
        let is_wide = session.format == Format::Wide;
        let mut headers = vec!["NODE", "STATUS", "PACKAGES"];
        headers.extend(is_wide.then_some("RESTARTS"));
        let rows = nodes.iter().map(|(node, packages)| {
            let status = emphasized(standing(packages));
            let mut row = vec![node.name().to_string(), status, share(packages)];
            row.extend(is_wide.then(|| restarts(packages).to_string()));
            row
        });
        let table = render::table(&headers, &rows.collect::<Vec<_>>());
        let summary = summary(&nodes);
        output::print(&format!("Skyhook: {skyhook}\n\n{summary}\n\n{table}"))
    }
}

/// How many nodes there are, by how they stand.
fn summary(nodes: &[(&Object, Vec<PackageRecord>)]) -> String {
    let of = |word: &str| nodes.iter().filter(|(_, packages)| standing(packages) == word).count();
    let (complete, erroring) = (of("complete"), of("erroring"));
    format!(
        "Summary: {} nodes ({complete} complete, {erroring} erroring, {} in progress)",
        nodes.len(),
        nodes.len() - complete - erroring
    )
}

/// What a node records of one Skyhook.
struct Activity<'n> {
    node: &'n Object,
    skyhook: &'n str,
    packages: Vec<PackageRecord>,
}

impl Status {
    fn print(&self, session: &Session, all: &[Object]) -> Result<()> {
        let nodes = if self.words.is_empty() {
            all.iter().collect()
        } else {
            select_nodes(all.iter(), &self.words)?
        };
        let wanted = self.skyhook.as_deref().filter(|skyhook| !skyhook.is_empty());
        let found: Vec<Activity<'_>> = nodes
            .iter()
            .flat_map(|node| manual::skyhooks(node).into_iter().map(move |name| (*node, name)))
            .filter(|(_, name)| wanted.is_none_or(|wanted| wanted == *name))
            .filter_map(|(node, skyhook)| {
                let place = format!("node {:?} skyhook {skyhook:?}", node.name());
                let packages = session.packages_of(node, skyhook, &place)?;
                Some(Activity { node, skyhook, packages })
            })
            .collect();
        let document = found.iter().map(Activity::json).collect();
        if render::print_structured(session.format, &document)? {
            return Ok(());
        }
        if nodes.is_empty() && !self.words.is_empty() {
            return output::print(NONE_MATCHED);
        }
        if found.is_empty() {
            return output::print("No Skyhook activity found on specified nodes\n");
        }
        let (headers, rows): (&[&str], Vec<Vec<String>>) = if session.format == Format::Wide {
            (
                &["NODE", "SKYHOOK", "PACKAGE", "VERSION", "STAGE", "STATE", "RESTARTS", "IMAGE"],
                found.iter().flat_map(Activity::wide_rows).collect(),
            )
        } else {
            (&["NODE", "SKYHOOK", "STATUS", "PACKAGES"], found.iter().map(Activity::row).collect())
        };
        output::print(&render::table(headers, &rows))
    }
}

impl Activity<'_> {
    fn json(&self) -> Value {
        let Self { node, skyhook, packages } = self;
        let mut json = json!({"nodeName": node.name(), "skyhookName": skyhook,
            "status": standing(packages), "packagesComplete": complete(packages),
            "packagesTotal": packages.len()});
        if !packages.is_empty() {
            json["packages"] = packages.iter().map(package_json).collect();
        }
        json
    }

    fn row(&self) -> Vec<String> {
        let Self { node, skyhook, packages } = self;
        let status = standing(packages).to_owned();
        vec![node.name().to_string(), (*skyhook).to_owned(), status, share(packages)]
    }

    fn wide_rows(&self) -> impl Iterator<Item = Vec<String>> {
        self.packages.iter().map(|package| {
            vec![
                self.node.name().to_string(),
                self.skyhook.to_owned(),
                package.name.clone(),
                package.version.clone(),
                package.stage.to_owned(),
                package.state_word().to_owned(),
                package.restarts.to_string(),
                package.image.clone(),
            ]
        })
    }
}

fn package_json(package: &PackageRecord) -> Value {
    let mut json = json!({"name": package.name, "version": package.version,
        "stage": package.stage, "state": package.state_word(), "restarts": package.restarts});
    if !package.image.is_empty() {
        json["image"] = package.image.clone().into();
    }
    json
}

impl Reset {
    async fn run(&self, session: &Session, all: &[Object]) -> Result<()> {
        let skyhook = self.skyhook.as_deref().unwrap_or_default();
        let matched = selected_for_change(all.iter(), &self.words)?;
        if matched.is_empty() {
            return output::print(NONE_MATCHED);
        }
        let nodes: Vec<&Object> =
            matched.into_iter().filter(|node| session.packages(node, skyhook).is_some()).collect();
        if nodes.is_empty() {
            return output::print(&format!("No nodes have state for Skyhook {skyhook:?}\n"));
        }
        let listed = nodes_to_reset(session, &nodes, skyhook);
        output::print(&format!("Skyhook: {skyhook}\n{listed}"))?;
        if session.global.dry_run {
            return output::print("\n[dry-run] No changes applied\n");
        }
        let warning = format!(
            "This will remove ALL package state for Skyhook {skyhook:?} on these nodes.\n\
             All packages will re-run from the beginning.\n"
        );
        if !confirm::forgotten(&warning, self.confirm)? {
            return Ok(());
        }
        let forget = |node: &Object| manual::forget_packages(node, skyhook);
        let errors = session.cluster.update_nodes(&nodes, forget).await;
        let of = format!("for Skyhook {skyhook:?}");
        report_nodes(&errors, "resetting", nodes.len(), ("reset", &of))
    }
}

impl Selection {
    async fn ignore(&self, session: &Session, all: &[Object], ignored: bool) -> Result<()> {
        let (doing, already, done) = if ignored {
            ("Ignoring", "already ignored", "ignored")
        } else {
            ("Unignoring", "not ignored", "unignored")
        };
        let nodes = selected_for_change(all.iter(), &self.words)?;
        if nodes.is_empty() {
            return output::print(NONE_MATCHED);
        }
        let names: String =
            nodes.iter().flat_map(|node| ["  - ", node.name().as_str(), "\n"]).collect();
        output::print(&format!("{doing} {} node(s):\n{names}", nodes.len()))?;
        if session.global.dry_run {
            return output::print("\n[dry-run] No changes applied\n");
        }
        let (mut errors, mut total) = (Vec::new(), 0);
        for node in nodes {
            let name = node.name();
            let Some(patch) = manual::ignore(node, ignored) else {
                output::print(&format!("  {name}: {already}\n"))?;
                continue;
            };
            total += 1;
            if let Err(error) = session.cluster.patch(PatchTarget::Node, name, &patch).await {
                errors.push(format!("{name}: {error:#}"));
            }
        }
        report_nodes(&errors, "updating", total, (done, ""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_selected_by_name_or_pattern() {
        let all = ["a-1", "a-2", "b-1"].map(|name| convoy_testkit::node(name).build());
        let names = |given: &[&str]| -> Vec<String> {
            let given: Vec<String> = given.iter().map(|name| (*name).to_owned()).collect();
            let found = select_nodes(all.iter(), &given).expect("they are valid");
            found.iter().map(|node| node.name().to_string()).collect()
        };
        assert_eq!(names(&["a-1"]), ["a-1"]);
        assert_eq!(names(&["a-.*", "a-1", "b"]), ["a-1", "a-2"]);
        assert_eq!(names(&["a-1|b-1"]), ["a-1", "b-1"]);
        assert!(names(&["a"]).is_empty());
        let error = select_nodes(all.iter(), &["[".to_owned()]).expect_err("it is no pattern");
        let words = "matching nodes: invalid regex pattern \"[\": unclosed character class";
        assert_eq!(format!("{error:#}"), words);
    }
}
