//! Where the daily commands read objects: from the cluster of the current context, or from files.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Result, bail};
use convoy_api::GroupKind;
use convoy_plan::Severity;
use jiff::Timestamp;

use crate::clock::this_second;
use crate::cluster::{Cluster, ClusterArgs};
use crate::finding;
use crate::input::{self, Limits};
use crate::output;
use crate::report::Report;
use crate::rollouts;

/// The flags of every daily command that only looks.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct SourceArgs {
    /// Read objects from files instead of a cluster, as `convoy plan -f` does. Can be repeated
    #[arg(short = 'f', long = "filename", value_name = "PATH")]
    filename: Vec<PathBuf>,
    /// Time of the decision, in RFC 3339 [default: now]
    #[arg(long, value_name = "TIME", env = "CONVOY_NOW", hide_env_values = true)]
    now: Option<Timestamp>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// A place to read objects from, again and again.
pub(crate) struct Source {
    files: Vec<PathBuf>,
    cluster: Option<Cluster>,
    now: Option<Timestamp>,
    /// Of the rollouts that are meant; none: all.
    pub(crate) namespace: Option<String>,
    /// Whether the kinds that cannot be read were named.
    has_warned: Cell<bool>,
}

/// Names the kinds that could not be read.
pub(crate) fn warn(unread: &BTreeMap<GroupKind, String>) {
    for (kind, why) in unread {
        eprintln!("warning: could not list objects of kind {kind}: {why}");
    }
}

impl SourceArgs {
    pub(crate) fn open(self) -> Result<Source> {
        let Self { filename: files, now, cluster } = self;
        if !files.is_empty() {
            let namespace = cluster.given_namespace();
            return Ok(Source {
                files,
                cluster: None,
                now,
                namespace,
                has_warned: Cell::default(),
            });
        }
        let cluster = cluster.connect()?;
        let namespace = cluster.namespace.clone();
        Ok(Source { files, cluster: Some(cluster), now, namespace, has_warned: Cell::default() })
    }
}

impl Source {
    /// What every rollout of these dialects, or of all, does next, with the reasons of members that
    /// a decision need not look at.
    /// Problems go to standard error.
    pub(crate) fn report(&self, dialects: &[&str]) -> Result<Report> {
        let now = self.now.unwrap_or_else(this_second);
        let mut report = match &self.cluster {
            None => Report::new(input::read(&self.files, Limits::default()), now, dialects, false),
            Some(cluster) => {
                let live = cluster.read(dialects)?;
                let refusals = live.unread.clone();
                let report = rollouts::report(live, now, dialects, false);
                if let Some((kind, why)) = refusals.first_key_value()
                    && report.plan.steps.is_empty()
                {
                    bail!("could not list objects of kind {kind}: {why}");
                }
                if !self.has_warned.replace(true) {
                    warn(&refusals);
                }
                report
            }
        };
        report.findings.retain(|found| found.severity == Severity::Error);
        output::print_errors(&report.findings);
        rollouts::add_member_holds(&mut report);
        Ok(report)
    }
}

/// Whether something that was read is invalid.
pub(crate) fn has_errors(report: &Report) -> bool {
    finding::has_errors(&report.findings)
}
