//! Deployments on simulated nodes, rolled out by `convoy run` and met with stock kubectl.

use std::process::{Child, Command};

use crate::running::Running;

/// A control loop of a test's own.
struct Loop(Child);

impl Loop {
    fn start(running: &Running) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_convoy"));
        command.args(["run", "--dialects", "apps,replicasets", "--kubeconfig"]);
        Self(command.arg(&running.kubeconfig).spawn().unwrap())
    }

    /// Asks it to end; its exit status.
    fn end(mut self) -> Option<i32> {
        Command::new("kill").arg(self.0.id().to_string()).status().unwrap();
        self.0.wait().unwrap().code()
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn images(running: &Running) -> String {
    running.kubectl(
        "get pods -l app=web -o jsonpath={range.items[*]}{.spec.containers[0].image},{end}",
    )
}

#[test]
fn deployments_roll_out_and_back() {
    let directory = tempfile::tempdir().unwrap();
    let running = Running::start_in(directory.path(), &["--nodes", "3"]);
    let control = Loop::start(&running);
    let status = || running.kubectl("rollout status deployment web --timeout=120s");
    running.kubectl("create deployment web --image example/web:1 --replicas 3");
    status();
    assert_eq!(images(&running), "example/web:1,".repeat(3));

    running.kubectl("set image deployment web web=example/web:2");
    status();
    let revisions = running.kubectl("rollout history deployment web");
    assert!(revisions.contains("\n1 ") && revisions.contains("\n2 "), "{revisions}");

    // Another loop goes on where the first one ended.
    assert_eq!(control.end(), Some(0));
    let control = Loop::start(&running);
    running.kubectl("scale deployment web --replicas 5");
    status();
    running.kubectl("rollout undo deployment web");
    status();
    let image =
        running.kubectl("get deployment web -o jsonpath={.spec.template.spec.containers[0].image}");
    assert_eq!(image, "example/web:1");

    running.kubectl("delete deployment web --cascade=foreground --timeout=60s");
    assert_eq!(running.kubectl("get replicasets,pods -l app=web -o name"), "");
    assert_eq!(control.end(), Some(0));
}
