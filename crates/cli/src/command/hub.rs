//! The KubeFleet flags of `convoy run` and `convoy up`: those of upstream's hub agent, under the same
//! names.

use std::time::Duration;

use convoy_api::text::GoDuration;
use convoy_plan::dialect::fleet::{GuardRail, Options};
use jiff::SignedDuration;

/// The limits that upstream puts on the durations.
const INTERVAL_MAX: Duration = Duration::from_mins(5);
const COLLECTION_MAX: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);

/// Options of the fleet controller.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "KubeFleet")]
pub(crate) struct HubFlags {
    /// Least time between two resource snapshots of a placement; at most 5m
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = interval)]
    resource_snapshot_creation_minimum_interval: SignedDuration,
    /// How long changes are collected before they become a resource snapshot; at most 1m
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = collection)]
    resource_changes_collection_duration: SignedDuration,
    /// How long to wait for the agent of a deleted MemberCluster; from 30s to 1h
    #[arg(long, value_name = "DURATION", default_value = "15m", value_parser = up_to_an_hour)]
    force_delete_wait_time: SignedDuration,
    /// Workloads run on the hub itself: PersistentVolumeClaims there are not placed on members
    #[arg(
        long,
        value_name = "BOOL",
        default_value_t = false,
        default_missing_value = "true",
        num_args = 0..=1,
        action = clap::ArgAction::Set
    )]
    enable_workload: bool,
    /// Keep a ClusterProfile of the cluster inventory API in the namespace fleet-system for each
    /// member cluster, if the hub serves that kind
    #[arg(
        long,
        value_name = "BOOL",
        default_value_t = true,
        default_missing_value = "true",
        num_args = 0..=1,
        action = clap::ArgAction::Set
    )]
    enable_cluster_inventory_apis: bool,
    /// How long a member agent may be silent before its ClusterProfile says that the cluster is
    /// not healthy; from 30s to 1h
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = up_to_an_hour)]
    cluster_unhealthy_threshold: SignedDuration,
    #[command(flatten)]
    guard: GuardFlags,
}

/// The guard rail of the hub.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "KubeFleet")]
struct GuardFlags {
    /// Refuse writes to the fleet's own objects, and in namespaces of the fleet and of Kubernetes, by
    /// users other than administrators, service accounts and the member's own agent
    #[arg(
        long,
        value_name = "BOOL",
        default_value_t = false,
        default_missing_value = "true",
        num_args = 0..=1,
        action = clap::ArgAction::Set
    )]
    enable_guard_rail: bool,
    /// Users that the guard rail lets through, separated by commas
    #[arg(long, value_name = "USERS", value_delimiter = ',')]
    whitelisted_users: Vec<String>,
    /// Let the guard rail refuse changes of the labels of guarded MemberClusters too
    #[arg(
        long,
        value_name = "BOOL",
        default_value_t = false,
        default_missing_value = "true",
        num_args = 0..=1,
        action = clap::ArgAction::Set
    )]
    deny_modify_member_cluster_labels: bool,
}

impl HubFlags {
    pub(crate) fn options(self) -> Options {
        Options {
            snapshot_interval: self.resource_snapshot_creation_minimum_interval,
            changes_collection: self.resource_changes_collection_duration,
            force_delete_wait: self.force_delete_wait_time,
            runs_workloads: self.enable_workload,
            has_cluster_profiles: self.enable_cluster_inventory_apis,
            unhealthy_threshold: self.cluster_unhealthy_threshold,
            sees_all_clusters: true,
            guard_rail: self.guard.resolve(),
        }
    }
}

impl GuardFlags {
    /// Created once, and used until the process exits.
    fn resolve(self) -> Option<&'static GuardRail> {
        let users = self.whitelisted_users;
        let guard = GuardRail { users, denies_labels: self.deny_modify_member_cluster_labels };
        self.enable_guard_rail.then(|| -> &'static GuardRail { Box::leak(Box::new(guard)) })
    }
}

fn interval(text: &str) -> Result<SignedDuration, String> {
    at_most(text, INTERVAL_MAX)
}

fn collection(text: &str) -> Result<SignedDuration, String> {
    at_most(text, COLLECTION_MAX)
}

fn up_to_an_hour(text: &str) -> Result<SignedDuration, String> {
    let found = at_most(text, HOUR)?;
    if found < SignedDuration::from_secs(30) {
        return Err("expected at least 30s".to_owned());
    }
    Ok(found)
}

fn at_most(text: &str, most: Duration) -> Result<SignedDuration, String> {
    let found = duration(text)?;
    if found > most {
        return Err(format!("expected at most {}s", most.as_secs()));
    }
    SignedDuration::try_from(found).map_err(|error| error.to_string())
}

/// A duration as Go writes it; not negative.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let parsed: Option<GoDuration> = text.parse().ok();
    let duration = parsed.and_then(|parsed| Duration::try_from(parsed.signed()).ok());
    duration.ok_or_else(|| format!("invalid duration {text:?}; use a value such as 60s"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(flatten)]
        flags: HubFlags,
    }

    fn options(flags: &[&str]) -> Result<Options, clap::Error> {
        let program = Program::try_parse_from([&["convoy"], flags].concat())?;
        Ok(program.flags.options())
    }

    #[test]
    fn durations_are_upstreams_and_bounded_as_there() {
        assert_eq!(options(&[]).unwrap(), Options::new());
        let flags = [
            "--resource-snapshot-creation-minimum-interval=0s",
            "--resource-changes-collection-duration=500ms",
            "--force-delete-wait-time=1m",
            "--cluster-unhealthy-threshold=3m",
            "--enable-cluster-inventory-apis=false",
        ];
        let short = options(&flags).unwrap();
        assert_eq!(short.snapshot_interval, SignedDuration::ZERO);
        assert_eq!(short.changes_collection, SignedDuration::from_millis(500));
        assert_eq!(short.force_delete_wait, SignedDuration::from_mins(1));
        assert_eq!(short.unhealthy_threshold, SignedDuration::from_mins(3));
        assert!(!short.has_cluster_profiles);
        for (flag, runs) in [("--enable-workload", true), ("--enable-workload=false", false)] {
            assert_eq!(options(&[flag]).unwrap().runs_workloads, runs);
        }
        assert_eq!(options(&["--whitelisted-users=ann"]).unwrap().guard_rail, None);
        let guarded = options(&["--enable-guard-rail", "--whitelisted-users=ann,bob"]).unwrap();
        let users = vec!["ann".to_owned(), "bob".to_owned()];
        assert_eq!(guarded.guard_rail, Some(&GuardRail { users, denies_labels: false }));
        for flag in [
            "--resource-snapshot-creation-minimum-interval=6m",
            "--resource-changes-collection-duration=61s",
            "--resource-changes-collection-duration=-1s",
            "--resource-changes-collection-duration=soon",
            "--force-delete-wait-time=29s",
            "--force-delete-wait-time=61m",
            "--cluster-unhealthy-threshold=29s",
        ] {
            assert!(options(&[flag]).is_err(), "{flag}");
        }
    }
}
