//! The Helm chart of `deploy/chart`, installed by the real Helm on a real API server, with
//! `convoy` run as the chart's Deployments say, under the accounts that the chart makes.

mod every_value;
mod permissions;
mod values;
mod watched;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use convoy_kubernetes::{ControlPlane, Process, WITHOUT_DEPLOYMENTS};
use convoy_plan::Dialect;
use convoy_plan::dialect::fleet::Hub;
use convoy_plan::dialect::ocm;
use convoy_plan::dialect::skyhook::Skyhook;
use serde_json::{Value, json};

use crate::access::Access;
use crate::audit::AuditLog;
use crate::clients::{here, run};
use crate::helm::Helm;
use crate::home::{self, CONVOY};
use crate::scrape::scrape;

const WITHIN: &str = "convoy-system";
const AGENT: &str = "convoy-agent";
/// The cluster, as its hub calls it.
const MEMBER: &str = "local-cluster";
const DEFINITION: &str = "skyhooks.skyhook.nvidia.com";
const CHART: &str = concat!("convoy-", env!("CARGO_PKG_VERSION"));
const ALL: &str = "dialects={apps,skyhook,fleet,karpenter,ocm}";

fn chart() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/chart")
}

/// The chart of the release before. Its definitions are those of today, so one loses a short name:
/// what an upgrade does not bring is missed below.
fn chart_before(within: &Path) -> PathBuf {
    let packed = here("chart/convoy-0.1.0.tgz");
    run(Command::new("tar").arg("-xzf").arg(packed).arg("-C").arg(within));
    let chart = within.join("convoy");
    let definitions = chart.join("definitions/fleet.jsonl");
    let text = std::fs::read_to_string(&definitions).unwrap();
    let older = text.replace(r#""shortNames":["crp"],"#, "");
    assert_ne!(older, text);
    std::fs::write(definitions, older).unwrap();
    chart
}

/// A real Kubernetes with nodes, and Helm.
struct Site {
    control_plane: ControlPlane,
    access: Access,
    helm: Helm,
    log: AuditLog,
    _processes: Vec<Process>,
}

impl Site {
    fn start() -> Self {
        let (control_plane, log) = AuditLog::control_plane(&[]);
        let manager = control_plane.manage(WITHOUT_DEPLOYMENTS, &[]).unwrap();
        let fleet = home::attach(&control_plane, &home::scenario("[{count: 2}]"));
        let access = Access::new(control_plane.kubeconfig.clone());
        let helm = Helm::new(&control_plane.kubeconfig);
        Self { control_plane, access, helm, log, _processes: vec![fleet, manager] }
    }

    /// Runs what a Deployment runs, outside of the cluster: with its arguments and the account of its
    /// pods; its ports are others, and the API server calls webhooks on loopback.
    fn run(&self, within: &str, deployment: &str, more: &[&str]) -> (Process, u16) {
        let deployment = self.access.get(&format!("deployment {deployment} -n {within}"));
        let pod = &deployment["spec"]["template"]["spec"];
        let account = pod["serviceAccountName"].as_str().unwrap();
        let account = home::account(&self.control_plane, &self.access, within, account);
        let [metrics] = convoy_kubernetes::free_ports().unwrap();
        let mut command = Command::new(CONVOY);
        for argument in pod["containers"][0]["args"].as_array().unwrap() {
            let argument = argument.as_str().unwrap();
            match argument.split_once('=').map_or(argument, |(flag, _)| flag) {
                "--metrics-listen" => command.arg(format!("--metrics-listen=127.0.0.1:{metrics}")),
                "--webhook-listen" => {
                    command.args(["--webhook-listen=127.0.0.1:0", "--webhook-host=127.0.0.1"])
                }
                "--hub-kubeconfig" => command.arg("--member-kubeconfig").arg(&account),
                _ => command.arg(argument),
            };
        }
        if pod["containers"][0]["args"][0] == "run" {
            command.arg("--kubeconfig").arg(&account);
        }
        let mut process =
            self.control_plane.running.start_as(command.args(more).stdout(Stdio::piped())).unwrap();
        process.first_line().unwrap();
        (process, metrics)
    }

    /// Has the hub accept this cluster as its own member, for both APIs; a kubeconfig of the account
    /// that its agent has on the hub.
    fn register(&self) -> PathBuf {
        let access = &self.access;
        access.kubectl(&format!("create serviceaccount {MEMBER} -n {AGENT}"));
        let identity = json!({"kind": "ServiceAccount", "namespace": AGENT, "name": MEMBER});
        for registered in [
            json!({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
                "metadata": {"name": MEMBER}, "spec": {"hubAcceptsClient": true}}),
            json!({"apiVersion": "cluster.kubernetes-fleet.io/v1beta1", "kind": "MemberCluster",
                "metadata": {"name": MEMBER},
                "spec": {"identity": identity, "heartbeatPeriodSeconds": 15}}),
        ] {
            access.kubectl_with("apply -f -", &registered.to_string());
        }
        let accepted = "wait --for=condition=HubAcceptedManagedCluster managedcluster --all";
        access.kubectl(&format!("{accepted} --timeout=60s"));
        let (role, who) = ("open-cluster-management:managedcluster", format!("{AGENT}:{MEMBER}"));
        for (binding, role) in [
            ("clusterrolebinding convoy:member".to_owned(), format!("{role}:{MEMBER}")),
            (format!("rolebinding convoy:work -n {MEMBER}"), format!("{role}:work")),
            (format!("rolebinding convoy:reg -n {MEMBER}"), format!("{role}:registration")),
        ] {
            access
                .kubectl(&format!("create {binding} --clusterrole={role} --serviceaccount={who}"));
        }
        home::account(&self.control_plane, access, AGENT, MEMBER)
    }

    /// The uid of a definition, which a new one of the same name does not have.
    fn uid(&self, definition: &str) -> Value {
        self.access.get(&format!("crd {definition}"))["metadata"]["uid"].clone()
    }
}

#[test]
fn one_object_of_each_dialect_rolls_out_and_outlives_the_release() {
    let site = Site::start();
    let (access, helm) = (&site.access, &site.helm);
    let path = chart();
    let path = path.display();
    upgrades_from_the_release_before(&site, &path.to_string());
    let (hub, metrics) = site.run(WITHIN, "convoy", &[]);
    let agent = format!("mode=agent,agent.cluster={MEMBER},agent.apis={{fleet,ocm}}");
    helm.run(&format!(
        "install {AGENT} {path} -n {AGENT} --create-namespace --set {agent},crds.install=false"
    ));
    // Convoy creates a Lease that is gone.
    access.kubectl(&format!("delete lease {AGENT} -n {AGENT}"));
    let account = site.register();
    let hub_kubeconfig = format!("--hub-kubeconfig={}", account.display());
    let (agent, agent_metrics) = site.run(AGENT, AGENT, &[&hub_kubeconfig]);
    let mut watched = site.watch(&[("convoy", WITHIN, metrics), (AGENT, AGENT, agent_metrics)]);
    let each = std::fs::read_to_string(here("chart/each.yaml")).unwrap();
    access.kubectl_with("apply -f -", &each);
    for done in [
        "rollout status deployment/pooled --timeout=120s",
        "wait --for=condition=Ready skyhook/tuning --timeout=120s",
        "wait --for=condition=ClusterResourcePlacementAvailable crp/shop --timeout=120s",
        "wait --for=condition=ManifestworkApplied manifestworkreplicaset/words --timeout=120s",
    ] {
        access.kubectl(done);
    }
    assert!(!access.get("nodeclaims")["items"].as_array().unwrap().is_empty());
    assert_eq!(access.get("configmap placed")["data"]["greeting"], "hello");
    for port in [metrics, agent_metrics] {
        let text = scrape(port);
        assert!(!text.contains(r#"code="403""#), "a permission is missing: {text}");
    }
    watched.has_series_of_each_dialect();
    site.places_every_kind();
    renews_its_certificate(access);
    site.permissions_are_those_that_are_used();
    upgrades_and_goes_back(&site, &path.to_string());
    the_agent_goes_and_leaves_what_it_placed(&site, &path.to_string(), agent);
    uninstalls(&site, hub);
}

/// Definitions change in place, so that objects of their kinds stay.
fn upgrades_from_the_release_before(site: &Site, chart: &str) {
    let (access, helm) = (&site.access, &site.helm);
    let directory = tempfile::tempdir().unwrap();
    let before = chart_before(directory.path());
    let before = before.display();
    helm.run(&format!("install convoy {before} -n {WITHIN} --create-namespace --set {ALL}"));
    let placements = "crd clusterresourceplacements.placement.kubernetes-fleet.io";
    assert!(access.get(placements)["spec"]["names"]["shortNames"].is_null());
    let policy = json!({"apiVersion": "skyhook.nvidia.com/v1alpha1", "kind": "DeploymentPolicy",
        "metadata": {"name": "kept"}, "spec": {"default": {"budget": {"count": 1}}}});
    access.kubectl("wait --for=condition=established crd --all --timeout=60s");
    access.kubectl_with("apply -f -", &policy.to_string());
    let uid = site.uid(DEFINITION);
    helm.run(&format!("upgrade convoy {chart} -n {WITHIN} --set {ALL}"));
    assert_eq!(site.uid(DEFINITION), uid);
    access.kubectl("get deploymentpolicy kept");
    let is_served = |crd: &Value| crd["status"]["acceptedNames"]["shortNames"] == json!(["crp"]);
    access.until(placements, is_served);
}

/// An earlier expiration in the annotation forces a renewal.
fn renews_its_certificate(access: &Access) {
    const EXPIRATION: &str = "skyhook.nvidia.com/expiration";
    let (secret, past) = (format!("secret webhook-cert -n {WITHIN}"), "2020-01-01T00:00:00Z");
    access.kubectl(&format!("annotate {secret} --overwrite {EXPIRATION}={past}"));
    access.until(&secret, |secret| secret["metadata"]["annotations"][EXPIRATION] != past);
}

/// Other values reach the Deployment, and what Convoy has filled in stays.
fn upgrades_and_goes_back(site: &Site, chart: &str) {
    const WEBHOOK: &str = "validatingwebhookconfiguration skyhook-operator-validating-webhook";
    let (access, helm) = (&site.access, &site.helm);
    // NodePools are converted by Convoy, which says so in their definition.
    let filled_in = || {
        let webhooks = access.get(WEBHOOK)["webhooks"].clone();
        (webhooks, access.get("crd nodepools.karpenter.sh")["spec"]["conversion"].clone())
    };
    let before = filled_in();
    assert_eq!(before.0.as_array().map(Vec::len), Some(2), "{before:?}");
    assert_eq!(before.1["strategy"], "Webhook");
    let other = "replicas=3,log.format=json,networkPolicy.enabled=true";
    helm.run(&format!("upgrade convoy {chart} -n {WITHIN} --set {ALL} --set {other}"));
    access.kubectl(&format!("rollout status deployment/convoy -n {WITHIN} --timeout=120s"));
    let deployment = access.get(&format!("deployment convoy -n {WITHIN}"));
    assert_eq!(deployment["status"]["readyReplicas"], 3);
    let text = deployment.to_string();
    assert!(text.contains("--log-format=json"), "{text}");
    access.kubectl(&format!("get networkpolicy convoy -n {WITHIN}"));
    assert_eq!(filled_in(), before);
    helm.run(&format!("rollback convoy 2 -n {WITHIN}"));
    let deployment = access.get(&format!("deployment convoy -n {WITHIN}"));
    assert_eq!(deployment["spec"]["replicas"], 2);
    access.refused(&format!("get networkpolicy convoy -n {WITHIN}"), "");
    assert_eq!(filled_in(), before);
    // Back to the release before, and to this one again.
    let uid = site.uid(DEFINITION);
    for (revision, version) in [(1, "convoy-0.1.0"), (2, CHART)] {
        helm.run(&format!("rollback convoy {revision} -n {WITHIN}"));
        let deployment = access.get(&format!("deployment convoy -n {WITHIN}"));
        assert_eq!(deployment["metadata"]["labels"]["helm.sh/chart"], version);
        assert_eq!(site.uid(DEFINITION), uid);
        assert_eq!(filled_in().1, before.1);
    }
    let want = [1, 2, 3, 4, 5].map(|revision| format!("{revision}: superseded"));
    let want = [&want[..], &["6: deployed".to_owned()]].concat();
    assert_eq!(helm.history(&format!("convoy -n {WITHIN}")), want);
}

/// Upgraded with the values that it has, rolled back and uninstalled.
fn the_agent_goes_and_leaves_what_it_placed(site: &Site, chart: &str, agent: Process) {
    let (access, helm) = (&site.access, &site.helm);
    let kept = "--reset-then-reuse-values --set replicas=1";
    helm.run(&format!("upgrade {AGENT} {chart} -n {AGENT} {kept}"));
    let deployment = access.get(&format!("deployment {AGENT} -n {AGENT}"));
    assert_eq!(deployment["spec"]["replicas"], 1);
    let arguments = &deployment["spec"]["template"]["spec"]["containers"][0]["args"];
    assert!(arguments.to_string().contains(&format!("--cluster={MEMBER}")), "{arguments}");
    helm.run(&format!("rollback {AGENT} 1 -n {AGENT}"));
    let deployment = access.get(&format!("deployment {AGENT} -n {AGENT}"));
    assert_eq!(deployment["spec"]["replicas"], 2);
    drop(agent);
    helm.run(&format!("uninstall {AGENT} -n {AGENT} --wait"));
    for placed in ["configmap/placed", "configmap/words -n shop"] {
        access.kubectl(&format!("label {placed} kept=yes"));
    }
    assert_ne!(access.kubectl(&format!("get manifestworks -n {MEMBER} -o name")), "");
    nothing_is_left_of(access, AGENT);
}

/// Of what acts or refuses.
fn nothing_is_left_of(access: &Access, release: &str) {
    let left = "validatingwebhookconfigurations,mutatingwebhookconfigurations,clusterroles,\
                clusterrolebindings,deployments,leases,services,poddisruptionbudgets";
    let mine = format!("-l app.kubernetes.io/instance={release} -A -o name");
    assert_eq!(access.kubectl(&format!("get {left} {mine}")), "");
}

/// The definitions and the users' objects stay, and can be changed without Convoy; nothing that acts
/// or refuses is left.
fn uninstalls(site: &Site, hub: Process) {
    let (access, helm) = (&site.access, &site.helm);
    let uid = site.uid(DEFINITION);
    // As its pod would: without its role it could do nothing any more.
    drop(hub);
    helm.run(&format!("uninstall convoy -n {WITHIN} --wait"));
    assert_eq!(site.uid(DEFINITION), uid);
    for object in ["skyhook/tuning", "crp/shop", "manifestworkreplicaset/words", "nodepool/default"]
    {
        access.kubectl(&format!("label {object} kept=yes"));
    }
    nothing_is_left_of(access, "convoy");
    // The same chart takes its definitions back.
    let chart = chart();
    helm.run(&format!("install convoy {} -n {WITHIN} --set {ALL}", chart.display()));
    assert_eq!(site.uid(DEFINITION), uid);
}

#[test]
fn values_that_do_not_exist_or_make_no_sense_are_refused() {
    let helm = Helm::new(Path::new("/dev/null"));
    let chart = chart();
    for (values, complaint) in [
        ("replica=3", "additional properties 'replica' not allowed"),
        ("image.tagg=1", "at '/image': additional properties 'tagg' not allowed"),
        ("dialects={argo}", "at '/dialects/0': value must be one of"),
        ("log.level=loud", "at '/log/level': value must be one of"),
        ("lease.durationSeconds=1", "at '/lease/durationSeconds': minimum"),
        ("mode=agent", "at '/agent/cluster': minLength"),
        ("ocm.parts={everything}", "at '/ocm/parts/0': value must be one of"),
    ] {
        let refused = helm.refused(&format!("template x {} --set {values}", chart.display()));
        assert!(refused.contains(complaint), "{values}: {refused}");
    }
}

/// The chart makes the configurations that Convoy fills in, and the account may change these.
#[test]
fn the_chart_knows_the_webhook_configurations_of_the_dialects() {
    let (skyhook, hub) = (Skyhook::new(), ocm::Hub { parts: ocm::HubControllers::ALL });
    let fleet = Hub::default();
    let dialects: [(&str, &dyn Dialect, &[&str]); 3] = [
        ("skyhook", &skyhook, &[]),
        // Only with `--enable-guard-rail`.
        ("fleet", &fleet, &["fleet-guard-rail-webhook-configuration"]),
        ("ocm", &hub, &[]),
    ];
    for (name, dialect, more) in dialects {
        let file = chart().join(format!("webhooks/{name}.yaml"));
        let listed = std::fs::read_to_string(file).unwrap();
        let (listed, _) = listed.split_once("\nrules:").unwrap_or((&listed, ""));
        let words = listed.split([' ', '\n', ',', '[', ']']).filter(|word| !word.is_empty());
        let listed: BTreeSet<&str> =
            words.filter(|word| !word.ends_with(':') && *word != "-").collect();
        let of_dialect = dialect.webhooks().iter().map(|webhook| webhook.configuration);
        assert_eq!(listed, of_dialect.chain(more.iter().copied()).collect(), "{name}");
    }
}
