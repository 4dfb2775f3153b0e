//! Rollouts of any size as both engines take them: as objects, and as questions to the helper.

#![allow(dead_code, reason = "a test and a bench use it, and not all of it")]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use convoy_api::Object;
use convoy_plan::World;
use convoy_testkit::ocm::{NAMESPACE, condition, placement, replica_set, template};
use convoy_testkit::{NOW, object};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};

/// A rollout half-way.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) strategy: Value,
    pub(crate) groups: Vec<Group>,
}

#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) members: Vec<Member>,
}

#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) cluster: String,
    /// What its work reports, and since how many seconds; None if it has no work.
    pub(crate) status: Option<(Status, i64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    ToApply,
    Progressing,
    Succeeded,
    Failed,
}

/// What the helper says.
#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HelperResponse {
    pub(crate) starts: Vec<String>,
    /// In seconds; 0 for never.
    pub(crate) recheck_after: i64,
    /// Of the fastest call.
    pub(crate) nanoseconds: u64,
}

fn since(secs: i64) -> String {
    let now: Timestamp = NOW.parse().expect("an instant");
    (now - SignedDuration::from_secs(secs)).to_string()
}

impl Case {
    pub(crate) fn members(&self) -> impl Iterator<Item = &Member> {
        self.groups.iter().flat_map(|group| &group.members)
    }

    /// As the helper takes it.
    fn question(&self) -> Value {
        let groups = self.groups.iter().enumerate().map(|(index, group)| {
            let clusters: Vec<&str> = group.members.iter().map(|it| it.cluster.as_str()).collect();
            json!({"index": index, "name": group.name, "clusters": clusters})
        });
        let statuses = self.members().filter_map(|member| {
            let (status, secs) = member.status?;
            let status = format!("{status:?}");
            Some(json!({"cluster": member.cluster, "status": status, "since": since(secs)}))
        });
        let (groups, statuses): (Vec<Value>, Vec<Value>) = (groups.collect(), statuses.collect());
        json!({"strategy": self.strategy, "groups": groups, "statuses": statuses})
    }

    /// The same as objects of a hub.
    pub(crate) fn world(&self) -> World {
        let mut world = World::default();
        let references = json!([{"name": "web", "rolloutStrategy": self.strategy}]);
        world.insert(replica_set("web", "v1", &references).build());
        let mut told = Vec::new();
        for (index, group) in self.groups.iter().enumerate() {
            let mut names = Vec::new();
            for (slice, members) in group.members.chunks(100).enumerate() {
                let decision = decision(index, slice, &group.name, members);
                names.push(decision.name().to_string());
                world.insert(decision);
            }
            told.push(json!({"decisionGroupIndex": index, "decisionGroupName": group.name,
                "decisions": names, "clusterCount": group.members.len()}));
        }
        let status = json!({"decisionGroups": told,
            "numberOfSelectedClusters": self.members().count()});
        world.insert(placement("web", json!({})).status(status).build());
        for member in self.members() {
            if let Some((status, secs)) = member.status {
                world.insert(work(&member.cluster, status, &since(secs)));
            }
        }
        world
    }
}

fn decision(index: usize, slice: usize, name: &str, members: &[Member]) -> Object {
    let entries: Vec<Value> =
        members.iter().map(|it| json!({"clusterName": it.cluster, "reason": ""})).collect();
    let title = format!("web-decision-{index}-{slice}");
    object("cluster.open-cluster-management.io/v1beta1", "PlacementDecision", &title)
        .namespace(NAMESPACE)
        .label("cluster.open-cluster-management.io/placement", "web")
        .label("cluster.open-cluster-management.io/decision-group-index", &index.to_string())
        .label("cluster.open-cluster-management.io/decision-group-name", name)
        .status(json!({"decisions": entries}))
        .build()
}

fn work(cluster: &str, status: Status, since: &str) -> Object {
    let told = |kind, word| condition(kind, word, 1, since);
    let conditions = match status {
        Status::ToApply => vec![],
        Status::Progressing => vec![told("Applied", "True"), told("Progressing", "True")],
        Status::Succeeded => vec![told("Applied", "True"), told("Progressing", "False")],
        Status::Failed => {
            vec![told("Applied", "True"), told("Progressing", "True"), told("Degraded", "True")]
        }
    };
    object("work.open-cluster-management.io/v1", "ManifestWork", "web1")
        .namespace(cluster)
        .label("work.open-cluster-management.io/manifestworkreplicaset", "apps.web")
        .label("work.open-cluster-management.io/placementname", "web")
        .with("/metadata/generation", json!(1))
        .spec(template("v1"))
        .status(json!({"conditions": conditions}))
        .build()
}

/// Builds the program that asks the helper; where it is.
pub(crate) fn helper() -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rollout_helper");
    let mut build = Command::new("go");
    build.args(["build", "-buildvcs=false", "-o"]).arg(&program).arg(".");
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ocm_upstream/helper");
    let status = build.current_dir(folder).status().expect("go is needed for this");
    assert!(status.success(), "could not build {folder}");
    program
}

/// What the helper says about each case; it is asked so many times.
pub(crate) fn ask(helper: &Path, cases: &[Case], calls: u32) -> Vec<HelperResponse> {
    let questions: Vec<Value> = cases.iter().map(Case::question).collect();
    let asked = json!({"now": NOW, "calls": calls, "cases": questions}).to_string();
    let mut command = Command::new(helper);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command.spawn().expect("it was built");
    let mut input = process.stdin.take().expect("a pipe");
    // It reads everything before it answers.
    input.write_all(asked.as_bytes()).expect("it reads");
    drop(input);
    let output = process.wait_with_output().expect("it ends");
    assert!(output.status.success(), "the helper has failed");
    serde_json::from_slice(&output.stdout).expect("answers")
}
