//! Endpoints of Services and quotas of namespaces, met with stock kubectl.

use serde_json::Value;

use crate::running::Running;

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

fn sorted(addresses: impl Iterator<Item = Value>) -> Vec<String> {
    let mut texts: Vec<String> =
        addresses.map(|address| address.as_str().unwrap().to_owned()).collect();
    texts.sort();
    texts
}

/// The addresses that ready pods have by Endpoints.
fn by_endpoints(endpoints: &Value) -> Vec<String> {
    let subsets = list(&endpoints["subsets"]).into_iter();
    let addresses = subsets.flat_map(|subset| list(&subset["addresses"]));
    sorted(addresses.map(|address| address["ip"].clone()))
}

/// The same by a list of EndpointSlices.
fn by_slices(slices: &Value) -> Vec<String> {
    let slices = list(&slices["items"]).into_iter();
    let endpoints = slices.flat_map(|slice| list(&slice["endpoints"]));
    let ready = endpoints.filter(|endpoint| endpoint["conditions"]["ready"] == true);
    sorted(ready.map(|endpoint| endpoint["addresses"][0].clone()))
}

#[test]
fn services_lead_to_their_pods() {
    let directory = tempfile::tempdir().unwrap();
    let running = Running::start_in(directory.path(), &["--nodes", "2"]);
    let slices = "endpointslices -l kubernetes.io/service-name=web";
    running.kubectl("create deployment web --image example/web:1 --replicas 3");
    running.kubectl("expose deployment web --port 80 --target-port 8080");
    running.kubectl("rollout status deployment/web --timeout=60s");
    let pods = running.get("pods -l app=web");
    let pods = sorted(list(&pods["items"]).into_iter().map(|pod| pod["status"]["podIP"].clone()));
    assert_eq!(pods.len(), 3);
    running.until_prints("get endpoints web -o name", "endpoints/web");
    running.until("endpoints web", |endpoints| by_endpoints(endpoints) == pods);
    running.until(slices, |slices| by_slices(slices) == pods);
    running.kubectl("scale deployment web --replicas 0");
    running.until("endpoints web", |endpoints| by_endpoints(endpoints).is_empty());
    running.until(slices, |slices| by_slices(slices).is_empty());
    running.kubectl("delete service web");
    running.until("endpoints", |all| {
        list(&all["items"]).iter().all(|one| one["metadata"]["name"] != "web")
    });
    running.until(slices, |slices| list(&slices["items"]).is_empty());
}

#[test]
fn quotas_bound_a_namespace() {
    let directory = tempfile::tempdir().unwrap();
    let running = Running::start_in(directory.path(), &["--nodes", "2"]);
    let used = |name: &str, count: u32| {
        let told = count.to_string();
        running.until("quota small", |quota| quota["status"]["used"][name] == told);
    };
    running.kubectl("create quota small --hard=pods=2,requests.cpu=1,count/deployments.apps=1");
    used("pods", 0);
    let refused = running.refused("run a --image example/web:1", "");
    let why = "failed quota: small: must specify requests.cpu for: a";
    assert!(refused.contains(why), "{refused}");
    running.kubectl("create deployment web --image example/web:1 --replicas 3");
    let refused = running.refused("create deployment other --image example/web:1", "");
    let why = "exceeded quota: small, requested: count/deployments.apps=1, used: \
               count/deployments.apps=1, limited: count/deployments.apps=1";
    assert!(refused.contains(why), "{refused}");
    running.kubectl("set resources deployment web --requests=cpu=100m");
    used("pods", 2);
    running.kubectl("delete deployment web --cascade=foreground --timeout=60s");
    used("pods", 0);
    used("count/deployments.apps", 0);
}
