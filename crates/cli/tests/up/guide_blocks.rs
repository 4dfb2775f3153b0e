//! Blocks of the guides to install, upgrade, migrate, run, operate and uninstall, run by a shell as
//! they stand, but for the names in capitals that readers replace.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::helm::Helm;
use crate::home::CONVOY;
use crate::running::Running;

/// What readers replace; a server of a test has a port of its own, and controllers end by themselves.
const REPLACED: [(&str, &str); 5] = [
    ("REGISTRY", "registry.example.com"),
    ("VERSION", "9.9.9"),
    ("NAME", "web"),
    ("convoy up ", "convoy up --listen 127.0.0.1:0 "),
    ("convoy run ", "timeout --preserve-status --signal INT 5 convoy run "),
];

/// A directory with the chart in it, and a shell there that finds the programs.
struct Shell {
    directory: tempfile::TempDir,
    kubeconfig: PathBuf,
}

impl Shell {
    fn new(kubeconfig: &Path) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let programs = directory.path().join("programs");
        std::fs::create_dir(&programs).unwrap();
        symlink(CONVOY, programs.join("convoy")).unwrap();
        symlink(Helm::new(kubeconfig).program(), programs.join("helm")).unwrap();
        if let Some(kubectl) = std::env::var_os("CONVOY_KUBECTL") {
            symlink(kubectl, programs.join("kubectl")).unwrap();
        }
        symlink(root().join("deploy"), directory.path().join("deploy")).unwrap();
        Self { directory, kubeconfig: kubeconfig.to_owned() }
    }

    fn run(&self, script: &str) -> String {
        let mut script = script.to_owned();
        for (word, by) in REPLACED {
            script = script.replace(word, by);
        }
        let directory = self.directory.path();
        let path = std::env::var("PATH").unwrap();
        let output = Command::new("sh")
            .args(["-ec", &script])
            .current_dir(directory)
            .env("PATH", format!("{}:{path}", directory.join("programs").display()))
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOME", directory)
            .output()
            .unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}\n{complaint}");
        String::from_utf8(output.stdout).unwrap()
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The block of a guide that begins with these words; it may be indented in a list.
fn block(guide: &str, begins: &str) -> String {
    let text = std::fs::read_to_string(root().join("docs/guides").join(guide)).unwrap();
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        if line == "```sh" {
            let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            if body[0].starts_with(begins) {
                return body.join("\n");
            }
        }
    }
    panic!("{guide} has no block that begins with {begins:?}")
}

#[test]
fn the_chart_is_installed_upgraded_and_uninstalled_as_the_guides_say() {
    let site = Running::start();
    let shell = Shell::new(&site.kubeconfig);
    shell.run(&block("install.md", "helm install"));
    let image = || {
        let path = "jsonpath={.spec.template.spec.containers[0].image}";
        site.kubectl(&format!("get deployment convoy -n convoy-system -o {path}"))
    };
    assert!(image().starts_with("registry.example.com/convoy:"), "{}", image());
    shell.run(&block("upgrade.md", "helm upgrade"));
    assert_eq!(image(), "registry.example.com/convoy:9.9.9");
    shell.run(&block("uninstall.md", "convoy get"));
    shell.run(&block("uninstall.md", "helm uninstall"));
    site.refused("get deployment convoy -n convoy-system", "");
}

#[test]
fn what_is_recorded_is_explained_as_the_guide_says() {
    let site = Running::start();
    site.kubectl("create deployment web --image=example/web:1 --replicas=2");
    let said = Shell::new(&site.kubeconfig).run(&block("operations.md", "convoy record"));
    assert!(said.contains("web"), "{said}");
}

#[test]
fn a_server_is_upgraded_and_removed_as_the_guides_say() {
    let shell = Shell::new(Path::new("/dev/null"));
    shell.run("convoy up --data-dir ./cluster --detach");
    shell.run(&block("upgrade.md", "convoy down"));
    let nodes = "kubectl --kubeconfig ./cluster/admin.kubeconfig get namespace default -o name";
    assert_eq!(shell.run(nodes), "namespace/default\n");
    shell.run(&block("uninstall.md", "convoy down"));
    assert!(!shell.directory.path().join("cluster").exists());
}

#[test]
fn each_upstream_controller_is_replaced_as_the_guide_to_migrate_says() {
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
        shell.run(&block("migrate.md", &format!("convoy crds --dialect {dialect} ")));
        let dialects = "jsonpath={.spec.template.spec.containers[0].args}";
        let args = site.kubectl(&format!("get deployment convoy -n {namespace} -o {dialects}"));
        assert!(args.contains(dialect), "{args}");
        shell.run(&format!("helm uninstall convoy --namespace {namespace}"));
    }
    shell.run(&block("migrate.md", "helm install"));
    site.kubectl("get deployment convoy -n convoy-system");
}

#[test]
fn a_cluster_is_looked_at_before_it_is_migrated_as_the_guide_says() {
    let site = Running::start();
    let shell = Shell::new(&site.kubeconfig);
    let policy = "apiVersion: skyhook.nvidia.com/v1alpha1\nkind: DeploymentPolicy\n\
        metadata: {name: slow}\nspec: {default: {budget: {count: 1}}}\n";
    let pool = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: general}\n\
        spec: {template: {spec: {requirements: [], nodeClassRef: \
        {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}}}}\n";
    shell.run("convoy crds --dialect skyhook | kubectl apply --server-side -f -");
    shell.run("convoy crds --dialect karpenter | kubectl apply --server-side -f -");
    shell.run(&format!("cat <<'END' | kubectl apply -f -\n{policy}---\n{pool}END"));
    shell.run(&block("migrate.md", "kubectl get skyhooks"));
    shell.run(&block("migrate.md", "convoy run --observe"));
    let log = shell.directory.path().join("decisions.jsonl");
    std::fs::remove_file(&log).unwrap();
    let said = shell.run(&block("migrate.md", "convoy why nodepool"));
    assert!(said.contains("general"), "{said}");
    assert!(log.exists(), "what Karpenter's pools would get is logged");
}

#[test]
fn controllers_run_beside_a_server_as_the_guide_to_run_says() {
    let site = Running::start();
    let shell = Shell::new(&site.kubeconfig);
    shell.run(&block("run.md", "convoy up"));
    shell.run("convoy down --data-dir ./cluster");
    shell.run(&block("run.md", "helm install"));
    shell.run("helm uninstall convoy --namespace convoy-system");
    shell.run(&block("run.md", "kubectl apply -k"));
    site.kubectl("get deployment convoy -n convoy-system");
}
