//! Staged update runs: stages one after the other, with waits and approvals between them.

use std::time::Duration;

use serde_json::{Value, json};

use super::record::Moment;
use super::site::{Site, clusters, embedded, fixed, placed, word};

const ALL: [&str; 4] = ["member-1", "member-2", "member-3", "member-4"];

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "placement.kubernetes-fleet.io/v1beta1", "kind": kind,
        "metadata": {"name": name}, "spec": spec})
}

pub(super) fn strategy(site: &Site, stages: &Value) {
    site.apply(&object("ClusterStagedUpdateStrategy", &site.name, &json!({"stages": stages})));
}

/// West first, then east.
fn stages(after_west: &Value) -> Value {
    let in_ = |loc: &str| json!({"matchLabels": {"loc": loc}});
    json!([{"name": "west", "labelSelector": in_("west"), "afterStageTasks": after_west},
        {"name": "east", "labelSelector": in_("east"), "maxConcurrency": 2}])
}

pub(super) fn run(site: &Site, name: &str, index: &str, state: &str) {
    let spec = json!({"placementName": site.name, "resourceSnapshotIndex": index,
        "stagedRolloutStrategyName": site.name, "state": state});
    site.apply(&object("ClusterStagedUpdateRun", &of(site, name), &spec));
}

/// The name of a run of this test.
pub(super) fn of(site: &Site, name: &str) -> String {
    format!("{}-{name}", site.name)
}

fn state(site: &Site, name: &str, state: &str) {
    let what = format!("clusterstagedupdaterun {}", of(site, name));
    site.patch(&what, &json!({"spec": {"state": state}}));
}

pub(super) fn until_run(site: &Site, name: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    site.hub.until(&format!("clusterstagedupdaterun {}", of(site, name)), is_so)
}

pub(super) fn told(run: &Value, kind: &str) -> String {
    word(&run["status"]["conditions"], kind, &run["metadata"]["generation"])
}

pub(super) fn succeeded(site: &Site, name: &str) -> Value {
    until_run(site, name, |run| told(run, "Succeeded") == "True/UpdateRunSucceeded")
}

/// Approves the only request of a run.
pub(super) fn approve(site: &Site, name: &str) {
    let requests = format!(
        "clusterapprovalrequests -l kubernetes-fleet.io/targetUpdateRun={}",
        of(site, name)
    );
    let found = site.hub.until(&requests, |list| !list["items"].as_array().unwrap().is_empty());
    let request = &found["items"][0];
    let at = jiff::Timestamp::now().round(jiff::Unit::Second).unwrap().to_string();
    let condition = json!({"type": "Approved", "status": "True", "reason": "lgtm", "message": "",
        "lastTransitionTime": at, "observedGeneration": request["metadata"]["generation"]});
    let name = request["metadata"]["name"].as_str().unwrap();
    let patch = json!({"status": {"conditions": [condition]}});
    let what = format!("clusterapprovalrequest {name} --subresource=status");
    site.patch(&what, &patch);
}

fn place(site: &Site, clusters: &[&str]) {
    site.deploy();
    site.place(&fixed(clusters), &json!({"type": "External"}));
    let placement = site.until(|it| placed(it, "Scheduled").starts_with("True"));
    let said = "Unknown/RolloutControlledByExternalController";
    assert_eq!(placed(&placement, "RolloutStarted"), said);
}

/// The clusters that an index was given to before those of another stage.
fn order(moments: &[Moment], index: u32) -> Vec<Vec<String>> {
    let mut order: Vec<Vec<String>> = Vec::new();
    for moment in moments {
        let now: Vec<String> = moment.at(index).into_iter().map(str::to_owned).collect();
        if order.last() != Some(&now) && !now.is_empty() {
            order.push(now);
        }
    }
    order
}

#[test]
fn stages_follow_each_other_after_a_wait_and_an_approval() {
    let site = embedded().site("stages");
    place(&site, &ALL);
    strategy(
        &site,
        &stages(&json!([{"type": "TimedWait", "waitTime": "2s"}, {"type": "Approval"}])),
    );
    let record = site.record();
    run(&site, "one", "", "Run");
    let waiting = until_run(&site, "one", |run| {
        let tasks = &run["status"]["stagesStatus"][0]["afterStageTaskStatus"];
        word(&tasks[0]["conditions"], "WaitTimeElapsed", &Value::Null).starts_with("True")
    });
    let stage = &waiting["status"]["stagesStatus"][0];
    let waits = word(&stage["conditions"], "Progressing", &Value::Null);
    assert_eq!(waits, "False/StageUpdatingWaiting", "{stage}");
    assert_eq!(told(&waiting, "Progressing"), "False/UpdateRunWaiting");
    // Some clusters have the new resources, some have none.
    let placement = site.until(|_| true);
    let said = "Unknown/RolloutControlledByExternalController";
    assert_eq!(placed(&placement, "RolloutStarted"), said);
    std::thread::sleep(Duration::from_secs(1));
    let moments = record.moments();
    assert!(moments.iter().all(|now| now.at(0).iter().all(|it| it < &"member-3")), "{moments:?}");
    // One at a time is the default of a stage.
    assert_eq!(order(&moments, 0), [vec!["member-1"], vec!["member-1", "member-2"]]);
    approve(&site, "one");
    succeeded(&site, "one");
    assert_eq!(site.tags().len(), 4);
    let finished = site.finished(0);
    assert_eq!(placed(&finished, "RolloutStarted"), "True/RolloutStarted");
}

#[test]
fn an_older_index_rolls_back_and_a_smaller_placement_is_cleaned_up() {
    let site = embedded().site("roll-back");
    place(&site, &["member-1", "member-3", "member-4"]);
    strategy(&site, &stages(&json!([])));
    run(&site, "first", "", "Run");
    succeeded(&site, "first");
    site.set_image("2");
    run(&site, "second", "", "Run");
    let second = succeeded(&site, "second");
    assert_eq!(second["status"]["resourceSnapshotIndexUsed"], "1");
    assert!(site.tags().iter().all(|(_, tag)| tag == "2"), "{:?}", site.tags());
    run(&site, "back", "0", "Run");
    succeeded(&site, "back");
    assert!(site.tags().iter().all(|(_, tag)| tag == "1"), "{:?}", site.tags());
    // One cluster goes and one comes: only a run does either.
    site.patch_placement(
        &json!({"policy": {"clusterNames": ["member-1", "member-2", "member-3"]}}),
    );
    site.until(|it| clusters(it) == ["member-1", "member-2", "member-3"]);
    assert_eq!(site.tags().len(), 3, "{:?}", site.tags());
    site.on("member-4", "deployment web").unwrap();
    run(&site, "move", "1", "Run");
    let moved = succeeded(&site, "move");
    let deleted = &moved["status"]["deletionStageStatus"]["clusters"];
    assert_eq!(deleted[0]["clusterName"], "member-4", "{deleted}");
    site.until_on("member-4", "deployment web", Value::is_null);
    let tags = site.tags();
    let names: Vec<&str> = tags.iter().map(|(member, _)| member.as_str()).collect();
    assert_eq!(names, ["member-1", "member-2", "member-3"]);
    assert!(tags.iter().all(|(_, tag)| tag == "2"), "{tags:?}");
}

#[test]
fn as_many_clusters_are_updated_at_once_as_the_stage_allows() {
    // 70 % of four is two, rounded down.
    for (name, concurrency, want) in [("three", json!(3), 3), ("percent", json!("70%"), 2)] {
        let site = embedded().site(&format!("concurrency-{name}"));
        place(&site, &ALL);
        strategy(
            &site,
            &json!([{"name": "all", "labelSelector": {}, "maxConcurrency": concurrency}]),
        );
        run(&site, "first", "", "Run");
        succeeded(&site, "first");
        // None of them ever gets ready, so that all that may start together are seen together.
        site.set_image("stuck");
        let record = site.record();
        run(&site, "bad", "", "Run");
        record.until("all that may start", |now| now.at(1).len() == want);
        std::thread::sleep(Duration::from_secs(1));
        let most = record.moments().iter().map(|now| now.at(1).len()).max();
        assert_eq!(most, Some(want), "{name}");
    }
}

#[test]
fn a_stopped_run_starts_nothing_and_goes_on_where_it_was() {
    let site = embedded().site("stopped");
    place(&site, &ALL);
    strategy(&site, &stages(&json!([{"type": "Approval"}])));
    run(&site, "one", "", "Initialize");
    let initial = until_run(&site, "one", |run| told(run, "Initialized").starts_with("True"));
    assert_eq!(initial["status"]["conditions"].as_array().unwrap().len(), 1, "{initial}");
    let record = site.record();
    state(&site, "one", "Run");
    record.until("the first stage", |now| now.available() == ["member-1", "member-2"]);
    state(&site, "one", "Stop");
    until_run(&site, "one", |run| told(run, "Progressing") == "False/UpdateRunStopped");
    approve(&site, "one");
    std::thread::sleep(Duration::from_secs(1));
    for moment in record.moments() {
        assert!(moment.at(0).iter().all(|cluster| *cluster < "member-3"), "{moment:?}");
    }
    state(&site, "one", "Run");
    succeeded(&site, "one");
    assert_eq!(site.tags().len(), 4);
}

/// What a run was begun with stays, whatever happens to the override meanwhile.
#[test]
fn overrides_are_those_of_the_beginning() {
    let site = embedded().site("frozen");
    place(&site, &ALL);
    strategy(&site, &stages(&json!([{"type": "Approval"}])));
    let overridden = |replicas: u32| {
        let rule = json!({"clusterSelector": {"clusterSelectorTerms": []},
            "jsonPatchOverrides": [{"op": "replace", "path": "/spec/replicas", "value": replicas}]});
        let selector =
            json!({"group": "apps", "version": "v1", "kind": "Deployment", "name": "web"});
        site.apply(&json!({"apiVersion": "placement.kubernetes-fleet.io/v1beta1",
            "kind": "ResourceOverride", "metadata": {"name": "replicas", "namespace": site.name},
            "spec": {"placement": {"name": site.name}, "resourceSelectors": [selector],
                "policy": {"overrideRules": [rule]}}}));
        let snapshots = format!("resourceoverridesnapshots -n {}", site.name);
        site.hub.until(&snapshots, |list| {
            let newest = list["items"].as_array().unwrap().iter().max_by_key(|it| {
                it["metadata"]["labels"]["kubernetes-fleet.io/override-index"].to_string()
            });
            newest.is_some_and(|it| it.to_string().contains(&format!("\"value\":{replicas}")))
        });
    };
    overridden(3);
    run(&site, "one", "", "Run");
    site.until_on("member-2", "deployment web", |web| web["spec"]["replicas"] == 3);
    overridden(4);
    approve(&site, "one");
    succeeded(&site, "one");
    for member in ALL {
        let web = site.on(member, "deployment web").unwrap();
        assert_eq!(web["spec"]["replicas"], 3, "{member}");
    }
}
