//! What stock kubectl does, it does here.

use std::io::{BufRead, BufReader};

use serde_json::Value;

use crate::running::Running;

const WEB: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "nginx:1.27", ports: [{containerPort: 80}]}
      - {name: log, image: "busybox:1.36"}
"#;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn objects_are_created_shown_and_deleted() {
    let running = Running::start();
    running.kubectl("create namespace shop");
    running.kubectl("create configmap a -n shop --from-literal=k=v");
    running.kubectl("create secret generic s -n shop --from-literal=k=v");
    running.kubectl("create deployment web -n shop --image=nginx --replicas=3");
    running.kubectl("create service clusterip web -n shop --tcp=80:8080");
    let shown = running.kubectl("get configmap a -n shop -o json");
    assert_eq!(json(&shown)["data"]["k"], "v");
    assert_eq!(running.kubectl("get deploy web -n shop -o jsonpath={.spec.replicas}"), "3");
    assert_eq!(running.kubectl("get cm -n shop a -o name"), "configmap/a\n");
    let wide = running.kubectl("get deployments -n shop -o wide");
    assert!(
        wide.contains("READY") && wide.contains("CONTAINERS") && wide.contains("nginx"),
        "{wide}"
    );
    let columns =
        running.kubectl("get cm -n shop a -o custom-columns=N:.metadata.name --no-headers");
    assert_eq!(columns.trim(), "a");
    assert_eq!(running.kubectl("get cm a -n shop -o go-template={{.data.k}}"), "v");
    running.kubectl("delete configmap a -n shop");
    let refused = running.refused("get configmap a -n shop", "");
    assert_eq!(refused.trim(), "Error from server (NotFound): configmaps \"a\" not found");
    let refused = running.refused("create namespace shop", "");
    assert!(refused.contains("(AlreadyExists): namespaces \"shop\" already exists"), "{refused}");
}

#[test]
fn configurations_are_applied_again_and_again() {
    let running = Running::start();
    assert_eq!(running.kubectl_with("apply -f -", WEB), "deployment.apps/web created\n");
    assert_eq!(running.kubectl_with("apply -f -", WEB), "deployment.apps/web unchanged\n");
    let changed = WEB.replace("nginx:1.27", "nginx:1.28");
    let output = running.try_kubectl("diff -f -", &changed);
    let diff = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{diff}");
    assert!(
        diff.contains("-      - image: nginx:1.27") && diff.contains("+      - image: nginx:1.28"),
        "{diff}"
    );
    assert_eq!(running.kubectl_with("apply -f -", &changed), "deployment.apps/web configured\n");
    // What a merge by name keeps: the other container.
    let images =
        running.kubectl("get deploy web -o jsonpath={.spec.template.spec.containers[*].image}");
    assert_eq!(images, "nginx:1.28 busybox:1.36");
    let without = changed.replace("      - {name: log, image: \"busybox:1.36\"}\n", "");
    running.kubectl_with("apply -f -", &without);
    let images =
        running.kubectl("get deploy web -o jsonpath={.spec.template.spec.containers[*].image}");
    assert_eq!(images, "nginx:1.28");
    assert_eq!(running.kubectl("get deploy web -o jsonpath={.metadata.generation}"), "3");
}

#[test]
fn owners_of_fields_are_told_apart() {
    let running = Running::start();
    let map = |value: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m}}\ndata: {{a: \"{value}\"}}\n"
        )
    };
    running.kubectl_with("apply --server-side --field-manager=one -f -", &map("1"));
    running.kubectl_with("apply --server-side --field-manager=two -f -", &map("1"));
    let refused = running.refused("apply --server-side --field-manager=two -f -", &map("2"));
    assert!(refused.contains("conflict with \"one\"") && refused.contains(".data.a"), "{refused}");
    running
        .kubectl_with("apply --server-side --field-manager=two --force-conflicts -f -", &map("2"));
    assert_eq!(running.kubectl("get cm m -o jsonpath={.data.a}"), "2");
}

#[test]
fn every_kind_of_patch_is_taken() {
    let running = Running::start();
    running.kubectl_with("apply -f -", WEB);
    let strategic =
        r#"{"spec":{"template":{"spec":{"containers":[{"name":"log","image":"busybox:2"}]}}}}"#;
    running.kubectl(&format!("patch deploy web -p '{strategic}'"));
    let images =
        running.kubectl("get deploy web -o jsonpath={.spec.template.spec.containers[*].image}");
    assert_eq!(images, "nginx:1.27 busybox:2");
    running.kubectl(r#"patch deploy web --type=merge -p '{"spec":{"replicas":5}}'"#);
    running.kubectl(r#"patch deploy web --type=json -p '[{"op":"test","path":"/spec/replicas","value":5},{"op":"replace","path":"/spec/replicas","value":6}]'"#);
    assert_eq!(running.kubectl("get deploy web -o jsonpath={.spec.replicas}"), "6");
    let refused = running.refused(
        r#"patch deploy web --type=json -p '[{"op":"test","path":"/spec/replicas","value":5}]'"#,
        "",
    );
    assert!(
        refused.contains("the server rejected our request due to an error in our request"),
        "{refused}"
    );
    running.kubectl("label deploy web tier=front");
    running.kubectl("annotate deploy web note=hello");
    running.kubectl("set image deploy/web web=nginx:1.30");
    running.kubectl("scale deploy web --replicas=9");
    let object = json(&running.kubectl("get deploy web -o json"));
    assert_eq!(object["metadata"]["labels"]["tier"], "front");
    assert_eq!(object["metadata"]["annotations"]["note"], "hello");
    assert_eq!(object["spec"]["replicas"], 9);
}

#[test]
fn mistakes_are_refused_with_their_field() {
    let running = Running::start();
    let refused = running.refused("apply -f -", &WEB.replace("replicas: 2", "replicaz: 2"));
    assert!(refused.contains("unknown field \"spec.replicaz\""), "{refused}");
    let refused = running.refused(
        "apply -f -",
        &WEB.replace("{matchLabels: {app: web}}", "{matchLabels: {app: other}}"),
    );
    assert!(refused.contains("`selector` does not match template `labels`"), "{refused}");
    let refused = running.refused(
        "create -f - --validate=false",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: UPPER}\n",
    );
    assert!(refused.contains("metadata.name: Invalid value: \"UPPER\""), "{refused}");
    assert!(
        running
            .kubectl_with("create -f - --dry-run=server -o name", WEB)
            .contains("deployment.apps/web")
    );
    running.refused("get deploy web", "");
}

#[test]
fn people_can_look_around() {
    let running = Running::start();
    let resources = running.kubectl("api-resources --no-headers");
    for line in ["deployments", "customresourcedefinitions", "leases", "poddisruptionbudgets"] {
        assert!(resources.contains(line), "{resources}");
    }
    assert!(running.kubectl("api-versions").contains("apps/v1\n"));
    let explained = running.kubectl("explain deployment.spec.strategy.rollingUpdate");
    assert!(explained.contains("maxSurge") && explained.contains("<IntOrString>"), "{explained}");
    running.kubectl_with("apply -f -", WEB);
    let described = running.kubectl("describe deployment web");
    assert!(described.contains("25% max unavailable, 25% max surge"), "{described}");
    assert_eq!(running.kubectl("auth can-i delete nodes"), "yes\n");
    assert!(running.kubectl("cluster-info").contains("Kubernetes control plane"));
    assert_eq!(running.kubectl("get --raw /readyz"), "ok");
    let others = running.try_kubectl("auth can-i delete nodes --as=bob", "");
    assert_eq!(String::from_utf8_lossy(&others.stdout), "no\n");
    let refused = running.refused("get pods --as=bob", "");
    assert!(refused.contains("pods is forbidden: User \"bob\" cannot list resource \"pods\" in API group \"\" in the namespace \"default\""), "{refused}");
}

#[test]
fn a_script_edits() {
    let running = Running::start();
    running.kubectl("create configmap a --from-literal=k=before");
    let mut edit = running.kubectl_command("edit configmap a");
    let output = edit.env("KUBE_EDITOR", "sed -i s/before/after/").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(running.kubectl("get configmap a -o jsonpath={.data.k}"), "after");
}

#[test]
fn watches_and_waits_see_what_happens() {
    let running = Running::start();
    let mut watch = running.kubectl_command("get configmaps --watch-only -o name").spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(700));
    running.kubectl("create configmap seen");
    let mut line = String::new();
    BufReader::new(watch.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "configmap/seen\n");
    watch.kill().unwrap();
    watch.wait().unwrap();
    running.kubectl("wait --for=create configmap/seen --timeout=5s");
    running.kubectl("delete configmap seen --wait=false");
    running.kubectl("wait --for=delete configmap/seen --timeout=5s");
}

#[test]
fn long_lists_come_in_pages() {
    let running = Running::start();
    let maps: Vec<String> = (0..30)
        .map(|index| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m{index:02}, labels: {{third: \"{}\"}}}}\n", index % 3))
        .collect();
    running.kubectl_with("create -f -", &maps.join("---\n"));
    let names = running.kubectl("get configmaps --chunk-size=7 -o name -l third=1");
    assert_eq!(names.lines().count(), 10);
    assert!(names.lines().is_sorted());
    running.kubectl("delete configmaps -l third=1");
    assert_eq!(running.kubectl("get configmaps -o name -l third").lines().count(), 20);
}

#[test]
fn dependents_follow_their_owner_as_asked() {
    let running = Running::start();
    for (policy, remains) in [("background", false), ("foreground", false), ("orphan", true)] {
        running.kubectl("create configmap owner");
        let uid = running.kubectl("get configmap owner -o jsonpath={.metadata.uid}");
        let dependent = format!(
            "apiVersion: v1\nkind: Secret\nmetadata:\n  name: dependent\n  ownerReferences: [{{apiVersion: v1, kind: ConfigMap, name: owner, uid: {uid}, blockOwnerDeletion: true}}]\n"
        );
        running.kubectl_with("create -f -", &dependent);
        running.kubectl(&format!("delete configmap owner --cascade={policy} --timeout=10s"));
        if remains {
            let owners =
                running.kubectl("get secret dependent -o jsonpath={.metadata.ownerReferences}");
            assert_eq!(owners, "", "{policy}");
            running.kubectl("delete secret dependent");
        } else {
            running.kubectl("wait --for=delete secret/dependent --timeout=10s");
        }
    }
}

#[test]
fn a_namespace_takes_its_content_with_it() {
    let running = Running::start();
    running.kubectl("create namespace gone");
    running.kubectl("create configmap a -n gone");
    running.kubectl("delete namespace gone --timeout=10s");
    let refused = running.refused("get configmap a -n gone", "");
    assert!(refused.contains("NotFound"), "{refused}");
    let refused = running.refused("delete namespace kube-system", "");
    assert!(refused.contains("this namespace may not be deleted"), "{refused}");
}

#[test]
fn definitions_bring_kinds() {
    let running = Running::start();
    let definition = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, shortNames: [wd]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}
    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, minimum: 1, maximum: 10}
              color: {type: string, default: red}
            x-kubernetes-validations: [{rule: "self.color != 'blue' || self.size < 5", message: "blue ones are small"}]
          status: {type: object, properties: {size: {type: integer}}}
"#;
    running.kubectl_with("apply -f -", definition);
    running.kubectl("wait --for=condition=Established crd/widgets.example.com --timeout=5s");
    let widget = |name: &str, spec: &str| {
        format!(
            "apiVersion: example.com/v1\nkind: Widget\nmetadata: {{name: {name}}}\nspec: {spec}\n"
        )
    };
    running.kubectl_with("apply -f -", &widget("a", "{size: 3}"));
    let table = running.kubectl("get wd");
    assert!(table.contains("SIZE") && table.contains('3'), "{table}");
    assert_eq!(running.kubectl("get widget a -o jsonpath={.spec.color}"), "red");
    running.kubectl("scale widget a --replicas=4");
    assert_eq!(running.kubectl("get widget a -o jsonpath={.spec.size}"), "4");
    let refused = running.refused("apply -f -", &widget("b", "{size: 11}"));
    assert!(refused.contains("spec.size in body should be less than or equal to 10"), "{refused}");
    let refused = running.refused("apply -f -", &widget("b", "{size: 7, color: blue}"));
    assert!(refused.contains("blue ones are small"), "{refused}");
    assert!(running.kubectl("explain widget.spec").contains("color"));
    running.kubectl("delete crd widgets.example.com --timeout=10s");
    running.refused("get widgets", "");
}

#[test]
fn lists_are_created_checked_and_applied_again() {
    let running = Running::start();
    let list = |field: &str| {
        format!(
            r#"{{"apiVersion": "v1", "kind": "List", "items": [
            {{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "a"}}, "{field}": {{"k": "1"}}}},
            {{"apiVersion": "v1", "kind": "Secret", "metadata": {{"name": "b"}}}}]}}"#
        )
    };
    // kubectl checks lists by itself, with what the server publishes.
    let refused = running.refused("create -f -", &list("date"));
    assert!(refused.contains("unknown field \"date\""), "{refused}");
    running.kubectl_with("create -f -", &list("data"));
    let shown = running.kubectl("get configmap/a secret/b -o json");
    running.kubectl_with("apply -f -", &shown);
    assert_eq!(running.kubectl("get configmap a -o jsonpath={.data.k}"), "1");
}
