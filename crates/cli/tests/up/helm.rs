//! Helm: a chart is installed, upgraded, rolled back and uninstalled.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

use crate::clients::{go_tool, here, run};
use crate::running::Running;

pub(crate) struct Helm {
    program: &'static Path,
    /// Where it keeps what it would keep in the user's home.
    home: tempfile::TempDir,
    kubeconfig: PathBuf,
}

impl Helm {
    /// For a cluster that a kubeconfig leads to.
    pub(crate) fn new(kubeconfig: &Path) -> Self {
        static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
        let program = PROGRAM.get_or_init(|| go_tool("helm", "helm.sh/helm/v4/cmd/helm"));
        let home = tempfile::tempdir().unwrap();
        Self { program, home, kubeconfig: kubeconfig.to_owned() }
    }

    pub(crate) fn program(&self) -> &'static Path {
        self.program
    }

    pub(crate) fn run(&self, arguments: &str) -> String {
        let mut command = Command::new(self.program);
        run(self.prepare(&mut command, arguments))
    }

    /// Runs a command that must not succeed; what it complained of.
    pub(crate) fn refused(&self, arguments: &str) -> String {
        let mut command = Command::new(self.program);
        let output = self.prepare(&mut command, arguments).output().unwrap();
        assert!(!output.status.success(), "{arguments}");
        String::from_utf8(output.stderr).unwrap()
    }

    fn prepare<'c>(&self, command: &'c mut Command, arguments: &str) -> &'c mut Command {
        command
            .args(arguments.split_whitespace())
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOME", self.home.path())
            .current_dir(here("helm"))
    }

    /// The revisions of a release, and how each stands.
    pub(crate) fn history(&self, release: &str) -> Vec<String> {
        let history = self.run(&format!("history {release} -o json"));
        let history: Vec<Value> = serde_json::from_str(&history).unwrap();
        let word = |entry: &Value| {
            format!("{}: {}", entry["revision"], entry["status"].as_str().unwrap_or_default())
        };
        history.iter().map(word).collect()
    }
}

#[test]
fn charts_of_helm_are_installed_and_rolled_back() {
    let running = Running::start();
    let helm = Helm::new(&running.kubeconfig);
    let image = || {
        running.kubectl("get deployment shop -o jsonpath={.spec.template.spec.containers[0].image}")
    };
    helm.run("install shop chart");
    assert_eq!(image(), "example/shop:1");
    assert_eq!(running.kubectl("get till shop -o jsonpath={.spec.coins}"), "10");
    let notes = running.kubectl("get secret -l owner=helm -o name");
    assert_eq!(notes, "secret/sh.helm.release.v1.shop.v1\n");

    helm.run("upgrade shop chart --set image=example/shop:2 --set greeting=welcome");
    assert_eq!(image(), "example/shop:2");
    assert_eq!(running.kubectl("get cm shop-words -o jsonpath={.data.greeting}"), "welcome");
    // Who scales by hand owns the number, and Helm applies: it must be told to take it back.
    running.kubectl("scale deployment shop --replicas 5");
    let refused = helm.refused("rollback shop 1");
    let conflict =
        "conflict with \"kubectl\" with subresource \"scale\" using apps/v1: .spec.replicas";
    assert!(refused.contains(conflict), "{refused}");

    helm.run("rollback shop 1 --force-conflicts");
    assert_eq!(running.kubectl("get deployment shop -o jsonpath={.spec.replicas}"), "2");
    assert_eq!(image(), "example/shop:1");
    assert_eq!(running.kubectl("get cm shop-words -o jsonpath={.data.greeting}"), "hello");
    let want = ["1: superseded", "2: superseded", "3: failed", "4: deployed"];
    assert_eq!(helm.history("shop"), want);

    helm.run("uninstall shop");
    let left = running.kubectl("get deployments,services,tills -o name");
    assert_eq!(left, "service/kubernetes\n");
    assert_eq!(running.kubectl("get secret -l owner=helm -o name"), "");
}
