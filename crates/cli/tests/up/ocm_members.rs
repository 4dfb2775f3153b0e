//! Member clusters as managed clusters of Open Cluster Management: registered, with their agents in
//! the process or beside it, met with stock kubectl.

use serde_json::{Value, json};

use crate::access::Access;
use crate::members::Agent;
use crate::running::{Running, command};

const SCENARIO: &str = "rules: [{when: {image: '*:bad'}, then: {fails: image-pull-error}}]\n";

/// What a Deployment says while it is on its way, as `kubectl rollout status` reads it.
const PROGRESSING: &str = "!has(object.status.observedGeneration) || \
    object.status.observedGeneration < object.metadata.generation || \
    !has(object.status.updatedReplicas) || \
    object.status.updatedReplicas < object.spec.replicas || \
    !has(object.status.availableReplicas) || \
    object.status.availableReplicas < object.status.replicas";

fn deployment(image: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": image}]}}}})
}

/// The spec of a work that runs `image`, reports its replicas and tells when it is through.
fn template(image: &str) -> Value {
    let shop = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    let rule = json!({"condition": "Progressing", "type": "CEL", "celExpressions": [PROGRESSING]});
    json!({"workload": {"manifests": [shop, deployment(image)]},
        "manifestConfigs": [{"resourceIdentifier": {"group": "apps", "resource": "deployments",
            "namespace": "shop", "name": "web"}, "conditionRules": [rule],
            "feedbackRules": [{"type": "WellKnownStatus"}]}]})
}

fn work(cluster: &str) -> String {
    json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": "web", "namespace": cluster}, "spec": template("web:v1")})
    .to_string()
}

fn condition(object: &Value, kind: &str) -> Option<String> {
    let conditions = object["status"]["conditions"].as_array()?;
    let found = conditions.iter().find(|condition| condition["type"] == kind)?;
    found["status"].as_str().map(str::to_owned)
}

fn await_available(hub: &Access) {
    let wait = "wait --for=condition=ManagedClusterConditionAvailable managedclusters --all";
    hub.kubectl(&format!("{wait} --timeout=60s"));
}

/// A work runs on the cluster, is reported, and goes with all it made.
fn a_work_comes_and_goes(hub: &Access, cluster: &str, member: impl Fn(&str) -> String) {
    hub.kubectl_with("apply -f -", &work(cluster));
    hub.kubectl(&format!(
        "wait --for=condition=Available manifestwork/web -n {cluster} --timeout=60s"
    ));
    let is_through = |work: &Value| {
        let manifests = &work["status"]["resourceStatus"]["manifests"];
        let values = &manifests[1]["statusFeedback"]["values"];
        condition(work, "Progressing").as_deref() == Some("False")
            && values[0]
                == json!({"name": "ReadyReplicas",
                "fieldValue": {"type": "Integer", "integer": 1}})
    };
    let work = hub.until(&format!("manifestwork web -n {cluster}"), is_through);
    assert_eq!(condition(&work, "Applied").as_deref(), Some("True"));
    let live: Value = serde_json::from_str(&member("get deployment web -n shop -o json")).unwrap();
    let owner = &live["metadata"]["ownerReferences"][0];
    assert_eq!(owner["kind"], "AppliedManifestWork", "{live:#}");
    assert_eq!(live["metadata"]["annotations"].as_object().map_or(0, serde_json::Map::len), 1);
    hub.kubectl(&format!("delete manifestwork web -n {cluster} --timeout=60s"));
    assert_eq!(member("get appliedmanifestworks -o name"), "");
    assert_eq!(member("get namespace shop -o name --ignore-not-found"), "");
}

#[test]
fn members_are_managed_clusters_with_agents() {
    let directory = tempfile::tempdir().unwrap();
    let labels = "env=prod,member-2:region=eu";
    let flags = ["--members", "2", "--member-nodes", "1", "--member-labels", labels];
    let mut hub = Running::start_as(command(directory.path()).args(flags));
    await_available(&hub);
    let table = hub.kubectl("get managedclusters -l env=prod");
    assert_eq!(table.lines().count(), 3, "{table}");
    assert!(table.starts_with("NAME       HUB ACCEPTED"), "{table}");
    for set in ["default", "global"] {
        let has_both =
            |set: &Value| set["status"]["conditions"][0]["message"] == "2 ManagedClusters selected";
        hub.until(&format!("managedclusterset {set}"), has_both);
    }
    // Nodes may come after the agent has joined the cluster.
    let is_reported = |cluster: &Value| {
        cluster["spec"]["taints"] == json!([]) && cluster["status"]["capacity"]["cpu"] == "8"
    };
    let cluster = hub.until("managedcluster member-2", is_reported);
    assert_eq!(condition(&cluster, "ManagedClusterJoined").as_deref(), Some("True"));
    let status = &cluster["status"];
    assert_eq!(status["clusterClaims"][0], json!({"name": "id.k8s.io", "value": "member-2"}));
    let version = status["version"]["kubernetes"].as_str().unwrap();
    assert!(version.starts_with("v1."), "{version}");
    let member = |arguments: &str| hub.kubectl(&format!("--context convoy-member-2 {arguments}"));
    a_work_comes_and_goes(&hub, "member-2", member);
    assert_eq!(hub.end("TERM"), Some(0));
}

#[test]
fn parts_of_the_members_are_left_to_others() {
    let directory = tempfile::tempdir().unwrap();
    let flags = ["--members", "1", "--member-nodes", "0", "--controllers", "ocm", "--ocm-parts"];
    let mut up = command(directory.path());
    let hub = Running::start_as(up.args(flags).arg("placement,work,registration,work-agent"));
    hub.kubectl("wait --for=condition=HubAcceptedManagedCluster managedcluster/member-1");
    hub.kubectl_with("apply -f -", &work("member-1"));
    hub.kubectl("wait --for=condition=Available manifestwork/web -n member-1 --timeout=60s");
    // Nobody renews its Lease, dates its taints or creates the built-in sets.
    let cluster = hub.get("managedcluster member-1");
    assert_eq!(condition(&cluster, "ManagedClusterJoined"), None);
    assert!(cluster["spec"]["taints"].is_null(), "{cluster:#}");
    assert_eq!(hub.kubectl("get managedclustersets -o name"), "");
    let elsewhere = Running::start_in(
        &directory.path().join("fleet"),
        &["--members", "1", "--member-nodes", "0", "--controllers", "fleet"],
    );
    elsewhere.refused("get managedclusters", "");
}

/// A placement with a canary group, and a replica set that goes through it first.
fn rollout(image: &str) -> String {
    let group = json!({"groupName": "canary", "groupClusterSelector":
        {"labelSelector": {"matchLabels": {"canary": "yes"}}}});
    let strategy = json!({"type": "ProgressivePerGroup", "progressivePerGroup":
        {"mandatoryDecisionGroups": [{"groupName": "canary"}]}});
    let objects = json!([
        {"apiVersion": "cluster.open-cluster-management.io/v1beta2",
            "kind": "ManagedClusterSetBinding", "metadata": {"name": "global", "namespace": "apps"},
            "spec": {"clusterSet": "global"}},
        {"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
            "metadata": {"name": "all", "namespace": "apps"},
            "spec": {"decisionStrategy": {"groupStrategy":
                {"clustersPerDecisionGroup": 2, "decisionGroups": [group]}}}},
        {"apiVersion": "work.open-cluster-management.io/v1alpha1", "kind": "ManifestWorkReplicaSet",
            "metadata": {"name": "web", "namespace": "apps"},
            "spec": {"manifestWorkTemplate": template(image),
                "placementRefs": [{"name": "all", "rolloutStrategy": strategy}]}},
    ]);
    json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()
}

#[test]
fn a_mandatory_canary_goes_first_and_stops_a_bad_release() {
    let directory = tempfile::tempdir().unwrap();
    let scenario = directory.path().join("scenario.yaml");
    std::fs::write(&scenario, SCENARIO).unwrap();
    let mut up = command(&directory.path().join("data"));
    up.args(["--members", "4", "--member-nodes", "1", "--controllers", "ocm"]);
    up.args(["--member-labels", "member-2:canary=yes,member-3:canary=yes", "--scenario"]);
    let hub = Running::start_as(up.arg(&scenario));
    await_available(&hub);
    hub.kubectl("create namespace apps");
    hub.kubectl_with("apply -f -", &rollout("web:v1"));
    let rolled_out = "wait --for=condition=PlacementRolledOut mwrs/web -n apps --timeout=90s";
    hub.kubectl(rolled_out);
    let summary = hub.get("mwrs web -n apps")["status"]["summary"].clone();
    assert_eq!([&summary["total"], &summary["available"]], [4, 4], "{summary}");
    // A canary cannot pull the new image, so nobody else gets it.
    hub.kubectl_with("apply -f -", &rollout("web:bad"));
    let holds_bad = |work: &Value| {
        let image = &work["spec"]["workload"]["manifests"][1]["spec"]["template"]["spec"];
        image["containers"][0]["image"] == "web:bad"
    };
    let handed_out = |works: &Value| -> Vec<String> {
        let works = works["items"].as_array().unwrap().iter().filter(|work| holds_bad(work));
        works.map(|work| work["metadata"]["namespace"].as_str().unwrap().to_owned()).collect()
    };
    let are_stuck = |works: &Value| {
        let bad = works["items"].as_array().unwrap().iter().filter(|work| holds_bad(work));
        let moving = bad.filter(|it| condition(it, "Progressing").as_deref() == Some("True"));
        moving.count() == 2
    };
    hub.until("manifestworks -A", are_stuck);
    std::thread::sleep(std::time::Duration::from_secs(3));
    let works = hub.get("manifestworks -A");
    assert_eq!(handed_out(&works), ["member-2", "member-3"], "the canaries, whole, and only they");
    let image = "get deployment web -n shop -o jsonpath={..image}";
    assert_eq!(hub.kubectl(&format!("--context convoy-member-1 {image}")), "web:v1");
    // A good one goes on from there.
    hub.kubectl_with("apply -f -", &rollout("web:v2"));
    let is_complete = |set: &Value| {
        condition(set, "PlacementRolledOut").as_deref() == Some("True")
            && set["status"]["summary"]["available"] == 4
            && set["status"]["summary"]["total"] == 4
    };
    hub.until("mwrs web -n apps", is_complete);
    for member in 1..=4 {
        let rolled = format!("--context convoy-member-{member} rollout status deployment/web");
        hub.kubectl(&format!("{rolled} -n shop --timeout=60s"));
        assert_eq!(hub.kubectl(&format!("--context convoy-member-{member} {image}")), "web:v2");
    }
    hub.kubectl("delete mwrs web -n apps --timeout=60s");
    hub.until("manifestworks -A", |works| works["items"].as_array().unwrap().is_empty());
}

#[test]
fn agents_of_both_apis_join_two_servers() {
    let directory = tempfile::tempdir().unwrap();
    let hub = Running::start_in(&directory.path().join("hub"), &["--controllers", "fleet,ocm"]);
    let member = Running::start_in(&directory.path().join("member"), &["--nodes", "1"]);
    for dialect in ["fleet", "ocm"] {
        let definitions = hub.convoy(&format!("crds --dialect {dialect}")).stdout;
        let definitions = String::from_utf8(definitions).unwrap();
        for server in [&hub, &member] {
            server.kubectl_with("apply --server-side -f -", &definitions);
        }
    }
    let registered = "apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: far}
spec: {hubAcceptsClient: true}
---
apiVersion: cluster.kubernetes-fleet.io/v1beta1
kind: MemberCluster
metadata: {name: far}
spec: {identity: {kind: User, name: far, apiGroup: rbac.authorization.k8s.io}}
";
    hub.kubectl_with("apply -f -", registered);
    let flags = ["--api", "fleet,ocm", "--agent-id", "second", "--status-sync-interval", "1s"];
    let _agent = Agent::start(&hub, &member, &flags);
    await_available(&hub);
    hub.kubectl("wait --for=condition=Joined membercluster/far --timeout=60s");
    hub.kubectl_with("apply -f -", &work("far"));
    let applied = member.until("appliedmanifestworks", |all| all["items"][0].is_object());
    assert_eq!(applied["items"][0]["spec"]["agentID"], "second");
    a_work_comes_and_goes(&hub, "far", |arguments| member.kubectl(arguments));
}
