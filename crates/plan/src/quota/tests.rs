//! What objects are charged, and what is refused.

use serde_json::json;

use super::*;

fn now() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

/// A quota whose usage is known.
fn quota(hard: &Value, used: &Value) -> Value {
    json!({"metadata": {"name": "q"}, "spec": {"hard": hard},
        "status": {"hard": hard, "used": used}})
}

fn pod(requests: &Value, limits: &Value) -> Value {
    json!({"metadata": {"name": "p"}, "status": {"phase": "Pending", "qosClass": "Burstable"},
        "spec": {"containers": [{"name": "c",
            "resources": {"requests": requests, "limits": limits}}]}})
}

fn create<'v>(resource: &'v str, object: &'v Value) -> QuotaRequest<'v> {
    QuotaRequest { resource, subresource: "", object, old: None }
}

fn used(quota: &Value, request: &QuotaRequest<'_>) -> Result<Option<Value>, String> {
    let charged = charge(std::slice::from_ref(quota), request, now())?;
    Ok(charged.into_iter().next().map(|(_, used)| used))
}

#[test]
fn a_pod_is_charged_for_what_it_asks() {
    let hard = json!({"pods": "5", "cpu": "1", "memory": "500Mi", "requests.example.com/dongle": "3",
        "limits.cpu": "2", "services": "1", "count/pods": "9"});
    let none = json!({"pods": "1", "cpu": "0", "memory": "0", "requests.example.com/dongle": "0",
        "limits.cpu": "0", "services": "0", "count/pods": "1"});
    let asked = json!({"cpu": "500m", "memory": "252Mi", "example.com/dongle": "2"});
    let object = pod(&asked, &json!({"cpu": "1", "memory": "252Mi", "example.com/dongle": "2"}));
    let wanted = json!({"pods": "2", "cpu": "500m", "memory": "252Mi",
        "requests.example.com/dongle": "2", "limits.cpu": "1", "services": "0", "count/pods": "2"});
    assert_eq!(used(&quota(&hard, &none), &create("pods", &object)), Ok(Some(wanted.clone())));
    let why = "exceeded quota: q, requested: memory=252Mi,requests.example.com/dongle=2, used: \
               memory=252Mi,requests.example.com/dongle=2, limited: \
               memory=500Mi,requests.example.com/dongle=3";
    assert_eq!(used(&quota(&hard, &wanted), &create("pods", &object)), Err(why.to_owned()));
}

#[test]
fn containers_say_what_a_quota_of_compute_counts() {
    let hard = json!({"cpu": "1", "limits.memory": "1Gi", "ephemeral-storage": "1Gi"});
    let none = json!({"cpu": "0", "limits.memory": "0", "ephemeral-storage": "0"});
    let mut object = pod(&json!({"cpu": "1m"}), &json!({}));
    object["spec"]["initContainers"] = json!([{"name": "a", "resources": {}}]);
    let why = "failed quota: q: must specify cpu for: a; limits.memory for: a,c";
    assert_eq!(used(&quota(&hard, &none), &create("pods", &object)), Err(why.to_owned()));
    object["spec"]["resources"] = json!({"limits": {"memory": "1Mi"}});
    assert!(used(&quota(&hard, &none), &create("pods", &object)).is_ok());
}

#[test]
fn usage_has_to_be_known_before_anything_is_charged() {
    let hard = json!({"configmaps": "1", "count/configmaps": "2"});
    let object = json!({"metadata": {"name": "m"}});
    let why = "status unknown for quota: q, resources: configmaps,count/configmaps";
    let unknown = quota(&hard, &json!({"configmaps": "0"}));
    assert_eq!(used(&unknown, &create("configmaps", &object)), Err(why.to_owned()));
    assert!(!is_settled(&unknown));
    let untouched = json!({"metadata": {"name": "q"}, "spec": {"hard": hard}});
    assert_eq!(used(&untouched, &create("configmaps", &object)), Ok(None));
    assert_eq!(used(&unknown, &create("secrets", &object)), Ok(None));
}

#[test]
fn an_update_is_charged_for_the_difference() {
    let hard = json!({"services": "2", "services.nodeports": "2", "services.loadbalancers": "0"});
    let known = quota(
        &hard,
        &json!({"services": "1", "services.nodeports": "0", "services.loadbalancers": "0"}),
    );
    let service = |kind: &str| json!({"spec": {"type": kind, "ports": [{"port": 80}]}});
    let (plain, open, balanced) =
        (service("ClusterIP"), service("NodePort"), service("LoadBalancer"));
    let update = |object, old| QuotaRequest { old: Some(old), ..create("services", object) };
    let more = json!({"services": "1", "services.nodeports": "1", "services.loadbalancers": "0"});
    assert_eq!(used(&known, &update(&open, &plain)), Ok(Some(more)));
    assert_eq!(used(&known, &update(&plain, &open)), Ok(None));
    let why = "exceeded quota: q, requested: services.loadbalancers=1, used: \
               services.loadbalancers=0, limited: services.loadbalancers=0";
    assert_eq!(used(&known, &update(&balanced, &plain)), Err(why.to_owned()));
}

#[test]
fn scopes_select_pods() {
    let mut object = pod(&json!({}), &json!({}));
    object["spec"]["priorityClassName"] = json!("high");
    let expression = |operator: &str, values: &Value| json!({"scopeName": "PriorityClass", "operator": operator, "values": values});
    let selector = |expression: Value| json!({"scopeSelector": {"matchExpressions": [expression]}});
    let across = json!({"scopeName": "CrossNamespacePodAffinity", "operator": "Exists"});
    let cases = [
        (json!({"scopes": ["NotTerminating", "NotBestEffort"]}), true),
        (json!({"scopes": ["Terminating"]}), false),
        (json!({"scopes": ["BestEffort"]}), false),
        (json!({"scopes": ["PriorityClass"]}), true),
        (selector(expression("In", &json!(["high"]))), true),
        (selector(expression("NotIn", &json!(["high"]))), false),
        (selector(expression("DoesNotExist", &json!([]))), false),
        (selector(across.clone()), false),
    ];
    for (mut spec, is_charged) in cases {
        let mut quota = quota(&json!({"pods": "1"}), &json!({"pods": "0"}));
        spec["hard"] = quota["spec"]["hard"].take();
        quota["spec"] = spec;
        let charged = used(&quota, &create("pods", &object)).unwrap().is_some();
        assert_eq!(charged, is_charged, "{quota}");
        // No scope selects an object that is no pod.
        quota["status"] = json!({"hard": {"secrets": "1"}, "used": {"secrets": "0"}});
        assert_eq!(used(&quota, &create("secrets", &object)), Ok(None), "{quota}");
    }
}

#[test]
fn the_status_counts_what_is_there() {
    let gold = |name: &str| format!("gold.storageclass.storage.k8s.io/{name}");
    let spec = json!({"hard": {"pods": "3", "count/pods": "5", "requests.memory": "1Gi",
        "requests.storage": "10Gi", (gold("requests.storage")): "10Gi",
        (gold("persistentvolumeclaims")): "2", "count/widgets.example.com": "1",
        "example.com/unknown": "1"}});
    let content = |resource: &str| match resource {
        "pods" => {
            let mut ended = pod(&json!({"memory": "64Mi"}), &json!({}));
            ended["status"]["phase"] = json!("Succeeded");
            let mut lost = pod(&json!({"memory": "64Mi"}), &json!({}));
            lost["metadata"]["deletionTimestamp"] = json!("2025-12-31T23:58:00Z");
            lost["metadata"]["deletionGracePeriodSeconds"] = json!(30);
            vec![ended, lost, pod(&json!({"memory": "64Mi"}), &json!({}))]
        }
        "persistentvolumeclaims" => vec![
            json!({"spec": {"resources": {"requests": {"storage": "1Gi"}}}}),
            json!({"spec": {"storageClassName": "gold",
                "resources": {"requests": {"storage": "2Gi"}}}}),
        ],
        "widgets.example.com" => vec![json!({})],
        other => panic!("{other} is not counted"),
    };
    let wanted = json!({"pods": "1", "count/pods": "3", "requests.memory": "64Mi",
        "requests.storage": "3Gi", (gold("requests.storage")): "2Gi",
        (gold("persistentvolumeclaims")): "1", "count/widgets.example.com": "1"});
    let mut quota = json!({"spec": spec});
    assert!(!is_settled(&quota));
    let found = status(&quota, content, now());
    assert_eq!(found, json!({"hard": spec["hard"], "used": wanted}));
    quota["status"] = found;
    assert!(is_settled(&quota));
}

#[test]
fn a_device_claim_is_charged_for_its_largest_choice() {
    let exactly = |class: &str, count: i64| json!({"deviceClassName": class, "allocationMode": "ExactCount", "count": count});
    let all = json!({"deviceClassName": "silver", "allocationMode": "All"});
    let claim = json!({"spec": {"devices": {"requests": [
        {"name": "a", "exactly": exactly("gold", 2)},
        {"name": "b", "firstAvailable": [exactly("gold", 1), exactly("gold", 3), all]},
    ]}}});
    let of = |class: &str| format!("{class}.deviceclass.resource.k8s.io/devices");
    let hard = json!({(of("gold")): "9", (of("silver")): "99",
        "count/resourceclaims.resource.k8s.io": "1"});
    let none = json!({(of("gold")): "0", (of("silver")): "0",
        "count/resourceclaims.resource.k8s.io": "0"});
    let wanted = json!({(of("gold")): "5", (of("silver")): "32",
        "count/resourceclaims.resource.k8s.io": "1"});
    let request = create("resourceclaims.resource.k8s.io", &claim);
    assert_eq!(used(&quota(&hard, &none), &request), Ok(Some(wanted)));
}
