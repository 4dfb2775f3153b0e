//! Logical clusters: made and removed by command, met with stock kubectl.

use std::process::Output;
use std::time::Instant;

use serde_json::Value;

use crate::blocks::{run_by, transcripts};
use crate::running::Running;

fn printed(output: &Output) -> String {
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn contexts(running: &Running) -> Vec<String> {
    let names = running.kubectl("config get-contexts -o name");
    names.lines().map(str::to_owned).collect()
}

#[test]
fn clusters_come_and_go_by_command() {
    let running = Running::start();
    assert_eq!(contexts(&running), ["convoy"]);
    let made = printed(&running.convoy("clusters create east west --description twins"));
    assert_eq!(
        made,
        "cluster east is ready: kubectl --context convoy-east\n\
         cluster west is ready: kubectl --context convoy-west\n"
    );
    assert_eq!(contexts(&running), ["convoy", "convoy-east", "convoy-west"]);
    let listed = printed(&running.convoy("clusters list -o json"));
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed["clusters"][1]["name"], "west");
    assert_eq!(listed["clusters"][1]["phase"], "Ready");
    assert_eq!(listed["clusters"][1]["url"], format!("{}/clusters/west", running.url));
    let again = running.convoy("clusters create east");
    assert_eq!(again.status.code(), Some(2));
    let complaint = String::from_utf8_lossy(&again.stderr);
    assert!(complaint.contains("\"east\" already exists (409)"), "{complaint}");
    // From any context: clusters are made in the first one, whichever is current.
    running.kubectl("config use-context convoy-west");
    running.kubectl("create configmap of-west");
    assert_eq!(printed(&running.convoy("clusters delete east")), "cluster east deleted\n");
    assert_eq!(contexts(&running), ["convoy", "convoy-west"]);
    assert_eq!(running.kubectl("config current-context"), "convoy-west\n");
    running.kubectl("get configmap of-west");
    let refused = running.refused(&format!("get ns --server {}/clusters/east", running.url), "");
    assert!(refused.contains("NotFound") || refused.contains("could not find"), "{refused}");
    printed(&running.convoy("clusters delete west"));
    assert_eq!(running.kubectl("config current-context"), "convoy\n");
    let text = printed(&running.convoy("clusters list"));
    assert_eq!(text, "NAME  PHASE  CONTEXT  URL\n");
}

/// Blocks that need a server, `console server`, are left to this test by the one that runs the
/// others.
#[test]
fn the_reference_shows_what_the_commands_print() {
    let running = Running::start();
    for block in run_by("up/clusters.rs::the_reference_shows_what_the_commands_print") {
        for (command, output) in transcripts(&block) {
            let arguments = command.strip_prefix("convoy ").unwrap();
            assert_eq!(printed(&running.convoy(arguments)), output, "{command}");
        }
    }
}

#[test]
fn clusters_know_nothing_of_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let mut running = Running::start_in(directory.path(), &[]);
    printed(&running.convoy("clusters create east west"));
    let definition = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
";
    running.kubectl_with("--context convoy-east apply -f -", definition);
    running
        .kubectl("--context convoy-east wait --for=condition=Established crd --all --timeout=5s");
    let widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\nspec: {size: 1}\n";
    running.kubectl_with("--context convoy-east create -f -", widget);
    running.kubectl("--context convoy-east create configmap shared --from-literal=of=east");
    running.kubectl("--context convoy-west create configmap shared --from-literal=of=west");
    running.kubectl(
        "--context convoy-east create clusterrolebinding bob --clusterrole=admin --user=bob",
    );
    for (cluster, is_known) in [("convoy-east", true), ("convoy-west", false), ("convoy", false)] {
        let may =
            running.try_kubectl(&format!("--context {cluster} auth can-i get pods --as=bob"), "");
        assert_eq!(may.status.success(), is_known, "{cluster}");
        let seen = running.try_kubectl(&format!("--context {cluster} get widgets a"), "");
        assert_eq!(seen.status.success(), is_known, "{cluster}");
    }
    running.refused("--context convoy get configmap shared", "");
    assert_eq!(running.end("TERM"), Some(0));
    let again = Running::start_in(directory.path(), &[]);
    assert_eq!(contexts(&again), ["convoy", "convoy-east", "convoy-west"]);
    let of = again.kubectl("--context convoy-west get configmap shared -o jsonpath={.data.of}");
    assert_eq!(of, "west");
    again.kubectl("--context convoy-east get widget a");
    printed(&again.convoy("clusters delete east"));
    printed(&again.convoy("clusters create east"));
    let fresh = again.kubectl("--context convoy-east get configmaps,crds -o name");
    assert!(!fresh.contains("shared") && !fresh.contains("widgets"), "{fresh}");
    let of = again.kubectl("--context convoy-west get configmap shared -o jsonpath={.data.of}");
    assert_eq!(of, "west");
}

/// What a hundred clusters take is printed; that they take little is asserted with room to spare,
/// since this is a build for tests.
#[test]
fn a_hundred_clusters_cost_little() {
    let running = Running::start();
    let namespaces = |running: &Running| -> String {
        let metrics = running.kubectl("get --raw /metrics");
        let mut lines = metrics.lines();
        let line = lines.find(|line| line.contains("objects{resource=\"namespaces\"}"));
        line.unwrap().to_owned()
    };
    let (before, held) = (running.resident_kib(), namespaces(&running));
    let names: Vec<String> = (0..100).map(|number| format!("c{number:02}")).collect();
    let begun = Instant::now();
    printed(&running.convoy(&format!("clusters create {}", names.join(" "))));
    let took = begun.elapsed();
    let with = running.resident_kib();
    running.kubectl("--context convoy-c77 create configmap here");
    assert_eq!(contexts(&running).len(), 101);
    let begun = Instant::now();
    printed(&running.convoy(&format!("clusters delete {}", names.join(" "))));
    eprintln!(
        "100 clusters: made in {took:?}, {} KiB each, removed in {:?}, {} KiB more than before",
        (with - before) / 100,
        begun.elapsed(),
        running.resident_kib().saturating_sub(before)
    );
    assert!((with - before) / 100 < 2_048, "{before} KiB became {with} KiB");
    assert_eq!(namespaces(&running), held, "nothing of them is left");
    assert_eq!(contexts(&running), ["convoy"]);
}
