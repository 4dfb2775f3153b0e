//! What each value of the chart is for: all of them set, in the files of `values/`, and rendered. A
//! test in `xtask/src/deploy.rs` finds a value that none of these files sets.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::values::{Rendered, selects};
use crate::clients::here;

/// A file of values, and what the chart makes of it.
fn rendered(file: &str) -> (Value, Rendered) {
    let path = here(&format!("chart/values/{file}.yaml"));
    let values = serde_saphyr::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    (values, Rendered::with(&format!("--namespace apart --values {}", path.display())))
}

fn container(rendered: &Rendered) -> &Value {
    &rendered.the("Deployment")["spec"]["template"]["spec"]["containers"][0]
}

fn arguments(rendered: &Rendered) -> Vec<&str> {
    let arguments = container(rendered)["args"].as_array().unwrap();
    arguments.iter().map(|argument| argument.as_str().unwrap()).collect()
}

fn names<'r>(rendered: &'r Rendered, kind: &str) -> BTreeSet<&'r str> {
    rendered.of(kind).map(|object| object["metadata"]["name"].as_str().unwrap()).collect()
}

/// Compares what was rendered with what a value says, by their paths.
fn are_equal(object: &Value, values: &Value, pairs: &[(&str, &str)]) {
    for (at, value) in pairs {
        assert!(values.pointer(value).is_some(), "{value}");
        assert_eq!(object.pointer(at), values.pointer(value), "{at} is not {value}");
    }
}

#[test]
fn values_of_pods_reach_them() {
    let (values, hub) = rendered("hub");
    let pod = &hub.the("Deployment")["spec"]["template"];
    let pairs = [
        ("/metadata/annotations", "/podAnnotations"),
        ("/metadata/labels/team", "/podLabels/team"),
        ("/spec/serviceAccountName", "/serviceAccount/name"),
        ("/spec/imagePullSecrets", "/imagePullSecrets"),
        ("/spec/priorityClassName", "/priorityClassName"),
        // In place of the anti-affinity.
        ("/spec/affinity", "/affinity"),
        ("/spec/nodeSelector", "/nodeSelector"),
        ("/spec/tolerations", "/tolerations"),
        ("/spec/containers/0/imagePullPolicy", "/image/pullPolicy"),
        ("/spec/containers/0/resources", "/resources"),
        ("/spec/containers/0/ports/0/containerPort", "/metrics/port"),
        ("/spec/containers/0/ports/1/containerPort", "/webhooks/port"),
    ];
    are_equal(pod, &values, &pairs);
    let image = &values["image"];
    let (repository, digest) = (image["repository"].as_str(), image["digest"].as_str());
    let image = format!("{}@{}", repository.unwrap(), digest.unwrap());
    assert_eq!(container(&hub)["image"], json!(image));
    let tagged = Rendered::with("--set image.repository=there,image.tag=v7");
    assert_eq!(container(&tagged)["image"], "there:v7");

    let arguments = arguments(&hub);
    for argument in [
        "--dialects=skyhook,fleet,karpenter,ocm",
        "--lease-namespace=apart",
        "--lease-name=x-rollouts",
        "--lease-duration=30",
        "--metrics-listen=0.0.0.0:9090",
        "--webhook-listen=0.0.0.0:10250",
        "--webhook-service=x-rollouts-webhook",
        "--webhook-secret=certificate",
        "--skyhook-namespace=packages",
        "--ocm-parts=placement,work",
        "--log-format=json",
        "--concurrency=8",
        "--decision-log=/tmp/decisions of today",
    ] {
        assert!(arguments.contains(&argument), "{argument} is not among {arguments:?}");
    }
}

/// An API server refuses a variable that a container has twice, if Helm applies it.
#[test]
fn variables_of_the_chart_can_be_replaced() {
    let (values, hub) = rendered("hub");
    let variables = |rendered: &Rendered| container(rendered)["env"].as_array().unwrap().clone();
    let (position, given) = (&variables(&hub)[0], values["extraEnv"].as_array().unwrap().clone());
    assert_eq!(position["name"], "POD_NAME");
    assert_eq!(variables(&hub)[1..], given);
    let by_default = [
        json!({"name": "CONVOY_LOG", "value": "debug"}),
        json!({"name": "_RJEM_MALLOC_CONF", "value": "dirty_decay_ms:0"}),
    ];
    let other = Rendered::with("--set log.level=debug,extraEnv[0].name=A,extraEnv[0].value=b");
    assert_eq!(variables(&other)[1..3], by_default);
    assert_eq!(variables(&other)[3..], [json!({"name": "A", "value": "b"})]);
}

#[test]
fn values_of_other_objects_reach_them() {
    let (values, hub) = rendered("hub");
    let deployment = hub.the("Deployment");
    are_equal(deployment, &values, &[("/spec/replicas", "/replicas")]);
    let account = [
        ("/metadata/name", "/serviceAccount/name"),
        ("/metadata/annotations", "/serviceAccount/annotations"),
    ];
    are_equal(hub.the("ServiceAccount"), &values, &account);
    let budget = [("/spec/maxUnavailable", "/podDisruptionBudget/maxUnavailable")];
    are_equal(hub.the("PodDisruptionBudget"), &values, &budget);
    let monitor = [
        ("/spec/endpoints/0/interval", "/serviceMonitor/interval"),
        ("/metadata/labels/team", "/serviceMonitor/labels/team"),
    ];
    are_equal(hub.the("ServiceMonitor"), &values, &monitor);
    let rule = [("/metadata/labels/team", "/prometheusRule/labels/team")];
    are_equal(hub.the("PrometheusRule"), &values, &rule);
    let dashboard = hub.of("ConfigMap").next().unwrap();
    are_equal(dashboard, &values, &[("/metadata/labels/shown", "/dashboards/labels/shown")]);
    assert_eq!(hub.the("Namespace")["metadata"]["name"], "apart");

    // The selectors follow the name, and the account is that of all bindings.
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    assert_eq!(labels["app.kubernetes.io/name"], "rollouts");
    for selector in [deployment, hub.the("PodDisruptionBudget")] {
        assert!(selects(&selector["spec"]["selector"], labels), "{selector}");
    }
    let subject = json!([{"kind": "ServiceAccount", "name": "runner", "namespace": "apart"}]);
    let bindings = hub.of("ClusterRoleBinding").chain(hub.of("RoleBinding"));
    let bindings: Vec<&Value> = bindings.collect();
    assert!(bindings.len() > 5, "{bindings:?}");
    for binding in bindings {
        assert_eq!(binding["subjects"], subject, "{binding}");
    }
    let role = |kind: &str, name: &str| {
        let found = hub.of(kind).find(|role| role["metadata"]["name"] == name);
        found.unwrap_or_else(|| panic!("no {kind} {name}")).clone()
    };
    assert_eq!(role("Role", "x-rollouts-skyhook")["metadata"]["namespace"], "packages");
    let selected = [("/rules", "/fleet/selected")];
    are_equal(&role("ClusterRole", "x-rollouts-fleet-selected"), &values, &selected);
    // Without the part `registration` nothing is granted to agents.
    assert!(!names(&hub, "ClusterRole").contains("x-rollouts-ocm-granted"));
    let secret = role("Role", "x-rollouts-certificate")["rules"][1]["resourceNames"].clone();
    assert_eq!(secret, json!(["certificate"]));
    // Convoy creates the configurations, and may.
    assert_eq!(hub.of("ValidatingWebhookConfiguration").count(), 0);
    let verbs = &role("ClusterRole", "x-rollouts-skyhook-webhooks")["rules"][0]["verbs"];
    assert_eq!(*verbs, json!(["create"]));
}

#[test]
fn what_is_switched_off_is_not_there() {
    let (_, off) = rendered("off");
    let kinds: BTreeSet<&str> = off.kinds().collect();
    assert_eq!(kinds, BTreeSet::from(["Deployment", "Lease", "NetworkPolicy", "Service"]));
    assert_eq!(names(&off, "Service"), BTreeSet::from(["only-metrics"]));
    let pod = &off.the("Deployment")["spec"]["template"]["spec"];
    // Nobody makes one for it.
    assert_eq!(pod["serviceAccountName"], "default");
    for field in ["affinity", "priorityClassName", "nodeSelector", "tolerations"] {
        assert_eq!(pod.get(field), None, "{field}");
    }
    let arguments = arguments(&off);
    let webhooks = arguments.iter().find(|argument| argument.starts_with("--webhook"));
    assert_eq!(webhooks, None);
    assert!(arguments.contains(&"--lease-name=only"), "{arguments:?}");
}

#[test]
fn an_agent_has_an_account_that_somebody_else_makes() {
    let (values, agent) = rendered("agent");
    assert_eq!(agent.of("ServiceAccount").count(), 0);
    let pod = &agent.the("Deployment")["spec"]["template"]["spec"];
    are_equal(pod, &values, &[("/serviceAccountName", "/serviceAccount/name")]);
    let secrets = pod["volumes"].as_array().unwrap().iter();
    let secrets: Vec<&Value> = secrets.filter(|it| it.get("secret").is_some()).collect();
    let [secret] = secrets[..] else { panic!("{pod}") };
    are_equal(secret, &values, &[("/secret/secretName", "/agent/hubSecret")]);
    let arguments = arguments(&agent);
    assert!(arguments.starts_with(&["agent", "--api=fleet,ocm", "--cluster=member-1"]));
    let placed = agent.of("ClusterRole").find(|role| {
        role["metadata"]["name"].as_str().is_some_and(|name| name.ends_with("-placed"))
    });
    are_equal(placed.unwrap(), &values, &[("/rules/0", "/agent/placed/0")]);
    for binding in agent.of("ClusterRoleBinding") {
        assert_eq!(binding["subjects"][0]["name"], "theirs", "{binding}");
    }
}

/// The root is read-only, and a heap profile is written to a file first.
#[test]
fn every_pod_can_write_temporary_files() {
    for file in ["hub", "off", "agent"] {
        let (_, rendered) = rendered(file);
        let pod = &rendered.the("Deployment")["spec"]["template"]["spec"];
        let container = &pod["containers"][0];
        assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true, "{file}");
        let mounts = container["volumeMounts"].as_array().unwrap();
        let mount = mounts.iter().find(|mount| mount["mountPath"] == "/tmp");
        let mount = mount.unwrap_or_else(|| panic!("{file}: nothing is mounted at /tmp"));
        assert_ne!(mount["readOnly"], true, "{file}");
        let volumes = pod["volumes"].as_array().unwrap();
        let volume = volumes.iter().find(|volume| volume["name"] == mount["name"]).unwrap();
        assert_eq!(volume["emptyDir"], json!({"sizeLimit": "64Mi"}), "{file}");
    }
}

/// A process waits twice for at most ten seconds at its end.
#[test]
fn a_pod_has_time_to_end() {
    for file in ["hub", "agent"] {
        let (_, rendered) = rendered(file);
        let pod = &rendered.the("Deployment")["spec"]["template"]["spec"];
        assert!(pod["terminationGracePeriodSeconds"].as_u64() > Some(25), "{file}: {pod}");
    }
}

#[test]
fn a_network_policy_opens_the_ports_that_are_served() {
    for (file, served) in
        [("hub", vec!["metrics", "webhooks"]), ("off", vec!["metrics"]), ("agent", vec!["metrics"])]
    {
        let (values, rendered) = match file {
            "agent" => {
                let path = here("chart/values/agent.yaml");
                let enabled = "--set networkPolicy.enabled=true";
                (json!({}), Rendered::with(&format!("--values {} {enabled}", path.display())))
            }
            _ => rendered(file),
        };
        let ports = container(&rendered)["ports"].as_array().unwrap();
        let ports: Vec<&Value> = ports.iter().map(|port| &port["name"]).collect();
        assert_eq!(ports, served, "{file}");
        let spec = &rendered.the("NetworkPolicy")["spec"];
        let rules = spec["ingress"].as_array().unwrap();
        let opened: Vec<&Value> =
            rules.iter().filter_map(|rule| rule["ports"].as_array()).flatten().collect();
        let expected: Vec<Value> =
            served.iter().map(|name| json!({"port": name, "protocol": "TCP"})).collect();
        assert_eq!(opened, expected.iter().collect::<Vec<_>>(), "{file}");
        let policy = &values["networkPolicy"];
        assert_eq!(rules[0].get("from"), policy.get("metricsFrom"), "{file}");
        // An API server comes from anywhere.
        assert!(rules[1..].iter().all(|rule| rule.get("from").is_none()), "{file}");
        assert_eq!(spec.get("egress"), policy.get("egress"), "{file}");
        let types = if policy.get("egress").is_some() {
            json!(["Ingress", "Egress"])
        } else {
            json!(["Ingress"])
        };
        assert_eq!(spec["policyTypes"], types, "{file}");
    }
}
