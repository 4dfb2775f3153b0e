//! Blocks of the guides and the reference that change a cluster: to install, upgrade, migrate, run,
//! operate and uninstall.

use std::path::Path;

use crate::running::Running;
use crate::shell::{Guides, Shell};

/// Definitions of the Prometheus Operator's kinds.
fn monitoring_kinds() -> String {
    let definition = |kind: &str| {
        let plural = format!("{}s", kind.to_lowercase());
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n\
             metadata: {{name: {plural}.monitoring.coreos.com}}\nspec:\n  \
             group: monitoring.coreos.com\n  scope: Namespaced\n  \
             names: {{plural: {plural}, kind: {kind}}}\n  \
             versions: [{{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: \
             {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}}}]\n"
        )
    };
    ["ServiceMonitor", "PrometheusRule"].map(definition).join("---\n")
}

#[test]
fn the_chart_is_installed_upgraded_and_uninstalled_as_the_guides_say() {
    let mut guides = Guides::of(
        "up/guide_blocks.rs::the_chart_is_installed_upgraded_and_uninstalled_as_the_guides_say",
    );
    let site = Running::start();
    let shell = Shell::new(&site.kubeconfig);
    shell.run(&guides.take("install.md", "helm install"));
    let image = || {
        let path = "jsonpath={.spec.template.spec.containers[0].image}";
        site.kubectl(&format!("get deployment convoy -n convoy-system -o {path}"))
    };
    assert!(image().starts_with("registry.example.com/convoy:"), "{}", image());
    shell.run(&guides.take("upgrade.md", "helm upgrade"));
    assert_eq!(image(), "registry.example.com/convoy:9.9.9");
    site.kubectl_with("apply -f -", &monitoring_kinds());
    site.kubectl("wait --for=condition=Established crd --all --timeout=20s");
    shell.run(&guides.take("monitoring.md", "helm upgrade"));
    site.kubectl("get servicemonitor,prometheusrule convoy -n convoy-system");
    shell.run(&guides.take("uninstall.md", "convoy get"));
    shell.run(&guides.take("uninstall.md", "helm uninstall"));
    site.refused("get deployment convoy -n convoy-system", "");
}

#[test]
fn what_is_recorded_is_explained_and_simulated_as_the_guides_say() {
    let mut guides = Guides::of(
        "up/guide_blocks.rs::what_is_recorded_is_explained_and_simulated_as_the_guides_say",
    );
    let site = Running::start();
    site.kubectl("create deployment web --image=example/web:1 --replicas=2");
    let shell = Shell::new(&site.kubeconfig);
    let said = shell.run(&guides.take("operations.md", "convoy record"));
    assert!(said.contains("web"), "{said}");
    shell.run("kubectl create deployment web --image=example/web:2 --dry-run=client -o yaml > new-version.yaml");
    shell.write("latencies.yaml", "latencies: {ready: 1s..2s}\n");
    let said = shell.run(&guides.take("rehearse.md", "convoy record"));
    assert!(said.contains("web"), "{said}");
}

#[test]
fn a_server_is_upgraded_and_removed_as_the_guides_say() {
    let mut guides =
        Guides::of("up/guide_blocks.rs::a_server_is_upgraded_and_removed_as_the_guides_say");
    let shell = Shell::new(Path::new("/dev/null"));
    shell.run(&guides.take("README.md", "convoy up"));
    shell.run("convoy up --data-dir ./cluster --detach");
    shell.run(&guides.take("upgrade.md", "convoy down"));
    let namespace = "kubectl --kubeconfig ./cluster/admin.kubeconfig get namespace default -o name";
    assert_eq!(shell.run(namespace), "namespace/default\n");
    shell.run(&guides.take("uninstall.md", "convoy down"));
    assert!(!shell.directory.path().join("cluster").exists());
}

#[test]
fn each_upstream_controller_is_replaced_as_the_guide_to_migrate_says() {
    let mut guides = Guides::of(
        "up/guide_blocks.rs::each_upstream_controller_is_replaced_as_the_guide_to_migrate_says",
    );
    let site = Running::start();
    let shell = Shell::new(&site.kubeconfig);
    // Upstream's namespaces and definitions are there before.
    for (dialect, namespace) in [
        ("skyhook", "skyhook"),
        ("fleet", "fleet-system"),
        ("ocm", "open-cluster-management-hub"),
        ("karpenter", "karpenter"),
    ] {
        shell.run(&format!(
            "kubectl get namespace {namespace} || kubectl create namespace {namespace}"
        ));
        shell.run(&guides.take("migrate.md", &format!("convoy crds --dialect {dialect} ")));
        let dialects = "jsonpath={.spec.template.spec.containers[0].args}";
        let args = site.kubectl(&format!("get deployment convoy -n {namespace} -o {dialects}"));
        assert!(args.contains(dialect), "{args}");
        shell.run(&format!("helm uninstall convoy --namespace {namespace}"));
    }
    shell.run(&guides.take("migrate.md", "helm install"));
    site.kubectl("get deployment convoy -n convoy-system");
}

#[test]
fn a_cluster_is_looked_at_before_it_is_changed_as_the_guides_say() {
    let mut guides = Guides::of(
        "up/guide_blocks.rs::a_cluster_is_looked_at_before_it_is_changed_as_the_guides_say",
    );
    let site = Running::start();
    let shell = Shell::new(&site.kubeconfig);
    let policy = "apiVersion: skyhook.nvidia.com/v1alpha1\nkind: DeploymentPolicy\n\
        metadata: {name: slow}\nspec: {default: {budget: {count: 1}}}\n";
    let pool = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: general}\n\
        spec: {template: {spec: {requirements: [], nodeClassRef: \
        {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}}}}\n";
    shell.run(&guides.take("upgrade.md", "convoy crds"));
    shell.run("convoy crds --dialect karpenter | kubectl apply --server-side -f -");
    shell.run(&format!("cat <<'END' | kubectl apply -f -\n{policy}---\n{pool}END"));
    shell.run(&guides.take("migrate.md", "kubectl get skyhooks"));
    shell.run(&guides.take("upgrade.md", "convoy run --observe"));
    shell.run(&guides.take("migrate.md", "convoy run --observe --dialects skyhook"));
    let log = shell.directory.path().join("decisions.jsonl");
    std::fs::remove_file(&log).unwrap();
    let said = shell.run(&guides.take("migrate.md", "convoy why nodepool"));
    assert!(said.contains("general"), "{said}");
    assert!(log.exists(), "what Karpenter's pools would get is logged");
    shell.run(&guides.take("cli.md", "convoy crds --dialect skyhook"));
    let legacy = "apiVersion: skyhook.nvidia.com/v1alpha1\nkind: Skyhook\nmetadata: {name: old}\n\
        spec: {interruptionBudget: {count: 2}, packages: {tuning: {version: 1.0.0, image: a/b}}}\n";
    shell.write("skyhooks.yaml", legacy);
    shell.run(&guides.take("cli.md", "convoy migrate"));
    site.kubectl("get skyhook old");
    shell.run(&guides.take("uninstall.md", "convoy crds"));
    site.refused("get skyhooks", "");
}

#[test]
fn controllers_run_beside_a_server_as_the_guide_to_run_says() {
    let mut guides =
        Guides::of("up/guide_blocks.rs::controllers_run_beside_a_server_as_the_guide_to_run_says");
    let site = Running::start();
    let shell = Shell::new(&site.kubeconfig);
    shell.run(&guides.take("run.md", "convoy up"));
    shell.run(&guides.take("cli.md", "convoy run"));
    shell.run("convoy down --data-dir ./cluster");
    shell.run(&guides.take("run.md", "helm install"));
    shell.run("helm uninstall convoy --namespace convoy-system");
    shell.run(&guides.take("chart.md", "helm install"));
    shell.run("helm uninstall convoy --namespace convoy-system");
    shell.run(&guides.take("run.md", "kubectl apply -k"));
    site.kubectl("get deployment convoy -n convoy-system");
}

#[test]
fn controllers_of_each_dialect_are_installed_as_their_guides_say() {
    let mut guides = Guides::of(
        "up/guide_blocks.rs::controllers_of_each_dialect_are_installed_as_their_guides_say",
    );
    let site = Running::start();
    let shell = Shell::new(&site.kubeconfig);
    shell.run(&guides.take("karpenter.md", "convoy crds"));
    shell.run(&guides.take("karpenter.md", "kubectl patch crd"));
    shell.run(&guides.take("skyhook.md", "convoy crds"));
    shell.run(&guides.take("skyhook.md", "convoy run"));
    let other = Running::start();
    Shell::new(&other.kubeconfig).run(&guides.take("skyhook.md", "helm install"));
    other.kubectl("get deployment convoy -n skyhook");
}

#[test]
fn hubs_and_agents_are_installed_as_their_guides_say() {
    let mut guides =
        Guides::of("up/guide_blocks.rs::hubs_and_agents_are_installed_as_their_guides_say");
    let directory = tempfile::tempdir().unwrap();
    // Nothing runs the pods of the hub's Deployment, so its server plays the controllers.
    let hub = Running::start_in(directory.path(), &["--controllers", "ocm"]);
    let member = Running::start();
    let (on_hub, on_member) = (Shell::new(&hub.kubeconfig), Shell::new(&member.kubeconfig));
    for (name, server) in [("hub.kubeconfig", &hub), ("member.kubeconfig", &member)] {
        on_member.write(name, &std::fs::read_to_string(&server.kubeconfig).unwrap());
    }
    on_hub.run(&guides.take("kubefleet.md", "kubectl create serviceaccount"));
    on_hub.run(&guides.take("ocm.md", "kubectl create serviceaccount"));
    on_member.run(&guides.take("kubefleet.md", "kubectl create secret"));
    on_member.run(&guides.take("ocm.md", "kubectl create secret"));
    for namespace in ["fleet-system", "open-cluster-management-agent"] {
        member.kubectl(&format!("get deployment convoy-agent -n {namespace}"));
    }
    on_member.run(&guides.take("cli.md", "convoy agent"));
}

#[test]
fn hubs_and_agents_are_installed_with_helm_as_their_guides_say() {
    let mut guides = Guides::of(
        "up/guide_blocks.rs::hubs_and_agents_are_installed_with_helm_as_their_guides_say",
    );
    let (hub, member) = (Running::start(), Running::start());
    Shell::new(&hub.kubeconfig).run(&guides.take("kubefleet.md", "helm install convoy deploy"));
    hub.kubectl("get deployment convoy -n fleet-system");
    let shell = Shell::new(&member.kubeconfig);
    member.kubectl("create namespace fleet-system");
    shell.run(&guides.take("kubefleet.md", "helm install convoy-agent"));
    shell.run("helm uninstall convoy-agent --namespace fleet-system");
    member.kubectl("create namespace open-cluster-management-agent");
    shell.run(&guides.take("ocm.md", "helm install"));
    member.kubectl("get deployment convoy-agent -n open-cluster-management-agent");
}
