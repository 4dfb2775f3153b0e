//! What people do with kubectl besides reading and writing objects: nodes are emptied, pods are
//! debugged, certificates approved, and what needs a container is refused clearly.

use crate::running::Running;

/// A request for a certificate for jane in the group dev: PEM in base64.
const REQUEST: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIWU1IOENBUUF3SFRFTU1Bb0dBMVVFQ2d3RFpHVjJNUTB3Q3dZRFZRUUREQVJxWVc1bE1Ga3dFd1lIS29aSQp6ajBDQVFZSUtvWkl6ajBEQVFjRFFnQUVLZldNTXQ4NXVHejBnT3FIUDEwa29FbU53NkdLNkdCRS9DZHRiVmphCm5YTTZSUUpaa0JOeEd3MjFPVDc4UVdSWmp0Z0xCNmZ1WmJxbUpuYWNSeWdEY3FBQU1Bb0dDQ3FHU000OUJBTUMKQTBrQU1FWUNJUUN0SGZqNmw0MWRNaUEyWXhrZXlCOERlcWdJeUczcUptNG9SZDJnSEloemdnSWhBTW5va2RPbQovUHNlTi9vWG8xeEs2dkwwcU81WG8zQTJQNXlhOHhKUTZiVTUKLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg==";

#[test]
fn nodes_are_cordoned_tainted_and_drained() {
    let running = Running::start();
    running.kubectl_with("create -f -", "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n");
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: on-node}\n\
               spec: {nodeName: n1, containers: [{name: a, image: b}]}\n";
    running.kubectl_with("create -f -", pod);
    running.kubectl("taint node n1 dedicated=x:NoSchedule");
    assert!(running.kubectl("describe node n1").contains("dedicated=x:NoSchedule"));
    running.kubectl("taint node n1 dedicated-");
    running.kubectl("cordon n1");
    assert!(running.kubectl("get node n1").contains("SchedulingDisabled"));
    running.kubectl("uncordon n1");
    // Nobody is there to let the pod end in its own time.
    let drained = running.kubectl("drain n1 --force --grace-period=0 --timeout=20s");
    assert!(drained.contains("node/n1 drained"), "{drained}");
    running.refused("get pod on-node", "");
}

#[test]
fn what_needs_a_container_is_refused_clearly() {
    let running = Running::start();
    running.kubectl("run web --image=nginx --port=80 --expose");
    assert!(running.kubectl("get service web").contains("80/TCP"));
    for command in ["exec web -- ls", "attach web", "cp /etc/hostname web:/tmp/x"] {
        let refused = running.refused(command, "");
        assert!(refused.contains("workloads are simulated, no container runs"), "{refused}");
    }
    assert!(running.refused("top pods", "").contains("Metrics API not available"));
    running.kubectl("debug web --image=busybox --container=look --attach=false --profile=general");
    let path = "get pod web -o jsonpath={.spec.ephemeralContainers[*].name}";
    assert_eq!(running.kubectl(path), "look");
}

#[test]
fn workloads_are_exposed_scaled_replaced_and_pruned() {
    let running = Running::start();
    running.kubectl("create deployment d --image=nginx --replicas=2");
    running.kubectl("autoscale deployment d --min=1 --max=4");
    assert!(running.kubectl("get hpa d").contains("Deployment/d"));
    running.kubectl("expose deployment d --port=80 --target-port=8080");
    for verb in ["restart", "pause", "resume"] {
        running.kubectl(&format!("rollout {verb} deployment/d"));
    }
    let map = |name: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, labels: {{app: p}}}}\n")
    };
    let both = format!("{}---\n{}", map("kept"), map("pruned"));
    running.kubectl_with("apply -f -", &both);
    running.kubectl_with("replace --force -f -", &both);
    running.kubectl_with("apply -f -", &both);
    let prune = "apply --prune -l app=p --prune-allowlist=core/v1/ConfigMap -f -";
    let said = running.kubectl_with(prune, &map("kept"));
    assert!(said.contains("configmap/pruned pruned"), "{said}");
    assert_eq!(running.kubectl("get configmap -l app=p -o name"), "configmap/kept\n");
}

#[test]
fn certificates_are_approved_and_tokens_made() {
    let running = Running::start();
    // Nobody signs it here.
    let object = format!(
        "apiVersion: certificates.k8s.io/v1\nkind: CertificateSigningRequest\n\
         metadata: {{name: jane}}\nspec: {{request: {REQUEST}, usages: [client auth],\n  \
         signerName: kubernetes.io/kube-apiserver-client}}\n"
    );
    running.kubectl_with("create -f -", &object);
    running.kubectl("certificate approve jane");
    assert!(running.kubectl("get csr jane").contains("Approved"));
    assert!(running.refused("certificate deny jane", "").contains("already Approved"));
    running.kubectl("create serviceaccount robot");
    let token = running.kubectl("create token robot --duration=10m");
    assert_eq!(token.trim().split('.').count(), 3);
    assert!(running.kubectl("get --raw /healthz").contains("ok"));
    running.kubectl("events");
}
