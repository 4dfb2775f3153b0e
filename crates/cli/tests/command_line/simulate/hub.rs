//! Simulations of a recorded hub: its members have what the hub implies, and no more.

use serde_json::Value;

use super::simulate_text;

const MEMBER: &str = "
apiVersion: cluster.kubernetes-fleet.io/v1beta1
kind: MemberCluster
metadata: {name: eu}
spec: {identity: {kind: User, name: eu-agent}}
";

const SHOP: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: shop}
";

const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";

const WIDGET: &str = "
apiVersion: example.com/v1
kind: Widget
metadata: {name: gear, namespace: shop}
";

/// A placement of the namespace, and of what another selector names.
fn placement(also: &str) -> String {
    format!(
        "
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {{name: shop}}
spec:
  resourceSelectors:
  - {{group: \"\", version: v1, kind: Namespace, name: shop}}
{also}
  policy: {{placementType: PickAll}}
  strategy: {{type: RollingUpdate, rollingUpdate: {{unavailablePeriodSeconds: 5}}}}
"
    )
}

fn documents(all: &[&str]) -> String {
    all.join("---\n")
}

/// A member serves the kinds of Kubernetes and those that were placed on it: a custom object whose
/// definition stays on the hub cannot be applied.
#[test]
fn a_member_serves_only_the_kinds_that_it_has() {
    let alone = placement("");
    let run = simulate_text(&documents(&[MEMBER, SHOP, DEFINITION, WIDGET, &alone]), &[]);
    assert_eq!(run.code, Some(1), "{}{}", run.stdout, run.stderr);
    let cause = "Widget shop/gear: ";
    assert!(run.stdout.contains(cause), "{}", run.stdout);
    assert!(run.stdout.contains("no matches for kind \"Widget\""), "{}", run.stdout);
    let definition = "  - {group: apiextensions.k8s.io, version: v1, \
                      kind: CustomResourceDefinition, name: widgets.example.com}";
    let both = placement(definition);
    let run = simulate_text(&documents(&[MEMBER, SHOP, DEFINITION, WIDGET, &both]), &[]);
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
}

/// The Work of a recorded hub says that a custom object was applied, so the member has its kind.
#[test]
fn a_member_serves_the_kinds_of_objects_that_were_applied() {
    let placed = "
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: Work
metadata: {name: other, namespace: fleet-member-eu, uid: 7a1fbb0e-0001-4000-8000-000000000001}
spec: {workload: {manifests: []}}
status:
  manifestConditions:
  - identifier: {group: example.com, version: v1, kind: Widget, resource: widgets, name: old,
      namespace: shop}
    conditions: [{type: Applied, status: \"True\"}]
";
    let alone = placement("");
    let all = documents(&[MEMBER, SHOP, DEFINITION, WIDGET, &alone, placed]);
    let run = simulate_text(&all, &[]);
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
}

/// The Deployment of the hub cannot run there; those that were placed on members do.
#[test]
fn deployments_of_members_are_not_those_of_the_hub() {
    let deployment = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: front, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: front}}
  template:
    metadata: {labels: {app: front}}
    spec: {containers: [{name: app, image: \"shop/front:1\"}]}
";
    let node = "
apiVersion: v1
kind: Node
metadata: {name: broken}
status: {conditions: [{type: Ready, status: \"False\"}]}
";
    let all = documents(&[MEMBER, SHOP, deployment, node, &placement("")]);
    let run = simulate_text(&all, &["-o", "json"]);
    assert_eq!(run.code, Some(1), "{}{}", run.stdout, run.stderr);
    let outlook: Value = serde_json::from_str(&run.stdout).unwrap();
    let finished = |object: &str| {
        let rollouts = outlook["rollouts"].as_array().unwrap();
        let is_it = |it: &&Value| it["object"].as_str().is_some_and(|it| it.contains(object));
        rollouts.iter().find(is_it).unwrap()["finished"].clone()
    };
    assert_eq!(finished("Deployment/"), 0, "{}", run.stdout);
    assert_eq!(finished("ClusterResourcePlacement/"), 1, "{}", run.stdout);
}

/// Of a recorded hub only some kinds are given: the clusters have joined, and what the hub asked of
/// their agents is not there.
#[test]
fn agents_of_clusters_that_have_joined_are_simulated() {
    let joined = "
apiVersion: cluster.kubernetes-fleet.io/v1beta1
kind: MemberCluster
metadata: {name: eu, generation: 1, uid: 7a1fbb0e-0002-4000-8000-000000000001,
  creationTimestamp: \"2025-12-01T00:00:00Z\"}
spec: {identity: {kind: User, name: eu-agent}, heartbeatPeriodSeconds: 60}
status:
  conditions:
  - {type: Joined, status: \"True\", reason: MemberClusterJoined, message: \"\",
    observedGeneration: 1, lastTransitionTime: \"2025-12-01T00:00:00Z\"}
  agentStatus:
  - type: MemberAgent
    lastReceivedHeartbeat: \"2025-12-31T23:50:00Z\"
    conditions:
    - {type: Joined, status: \"True\", reason: InternalMemberClusterJoined, message: \"\",
      observedGeneration: 1, lastTransitionTime: \"2025-12-01T00:00:00Z\"}
    - {type: Healthy, status: \"True\", reason: InternalMemberClusterHealthy, message: \"\",
      observedGeneration: 1, lastTransitionTime: \"2025-12-01T00:00:00Z\"}
";
    let run = simulate_text(&documents(&[joined, SHOP, &placement("")]), &[]);
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    assert!(run.stdout.contains("1 member cluster with 3 nodes"), "{}", run.stdout);
    assert!(run.stdout.contains("cluster eu gets shop-0-snapshot"), "{}", run.stdout);
}
