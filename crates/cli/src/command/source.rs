//! Where the daily commands read objects: from the cluster of the current context, or from files.

use std::path::PathBuf;

use anyhow::{Result, bail};
use convoy_plan::Severity;
use jiff::Timestamp;

use crate::cluster::{Cluster, ClusterArgs};
use crate::finding;
use crate::input::{self, Limits};
use crate::output;
use crate::report::Report;
use crate::rollouts;

use super::plan::this_second;

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
}

impl SourceArgs {
    pub(crate) fn open(self) -> Result<Source> {
        let Self { filename: files, now, cluster } = self;
        if !files.is_empty() {
            let namespace = cluster.given_namespace();
            return Ok(Source { files, cluster: None, now, namespace });
        }
        let cluster = cluster.connect()?;
        let namespace = cluster.namespace.clone();
        Ok(Source { files, cluster: Some(cluster), now, namespace })
    }
}

impl Source {
    /// What every rollout does next, with the reasons of members that a decision need not look at.
    /// Problems go to standard error.
    pub(crate) fn report(&self) -> Result<Report> {
        let now = self.now.unwrap_or_else(this_second);
        let mut report = match &self.cluster {
            None => Report::new(input::read(&self.files, Limits::default()), now, &[], false),
            Some(cluster) => {
                let live = cluster.read(&[])?;
                let refusals = live.unread.clone();
                let report = rollouts::report(live, now, &[], false);
                if let Some((kind, why)) = refusals.first_key_value()
                    && report.plan.steps.is_empty()
                {
                    bail!("could not list objects of kind {kind}: {why}");
                }
                for (kind, why) in &refusals {
                    eprintln!("warning: could not list objects of kind {kind}: {why}");
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
