//! Clients in other languages: each is a small program beside this file that prints `ok`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use crate::running::Running;

pub(crate) fn here(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/up").join(folder)
}

/// Runs a command, which must succeed; what it printed.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| {
        panic!("{command:?} cannot be run, and this test needs it: {error}")
    });
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{text}\n{complaint}");
    text
}

/// Builds a Go program beside this file; where it is.
pub(crate) fn go_program(folder: &str) -> PathBuf {
    go_tool(folder, ".")
}

/// Builds a package of the Go module beside this file, or of one that it pins; where it is.
pub(crate) fn go_tool(folder: &str, package: &str) -> PathBuf {
    // One build at a time: tests run side by side, and Go keeps what it has compiled.
    static BUILDING: Mutex<()> = Mutex::new(());
    let _turn = BUILDING.lock();
    let name = package.rsplit('/').next().filter(|name| *name != ".").unwrap_or(folder);
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut build = Command::new("go");
    // The tag is Prometheus': without what finds targets in clouds.
    build.args(["build", "-buildvcs=false", "-tags=remove_all_sd", "-o"]).arg(&program);
    build.arg(package);
    build.current_dir(here(folder));
    run(&mut build);
    program
}

#[test]
fn go_programs_work() {
    let program = go_program("client_go");
    let running = Running::start();
    let printed = run(Command::new(program).env("KUBECONFIG", &running.kubeconfig));
    assert_eq!(printed, "ok\n");
}

#[test]
fn managers_of_controller_runtime_work() {
    let program = go_program("manager");
    let running = Running::start();
    let mut manager = Command::new(program);
    manager.arg("reconcile").env("KUBECONFIG", &running.kubeconfig);
    assert_eq!(run(&mut manager), "ok\n");
}

#[test]
fn python_programs_work() {
    let directory = tempfile::tempdir().unwrap();
    run(Command::new("python3").args(["-m", "venv"]).arg(directory.path()));
    let installed = directory.path().join("bin");
    let requirements = here("python").join("requirements.txt");
    let mut install = Command::new(installed.join("python"));
    install.args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(requirements);
    run(&mut install);
    let running = Running::start();
    let mut program = Command::new(installed.join("python"));
    program.arg(here("python").join("client.py")).env("KUBECONFIG", &running.kubeconfig);
    assert_eq!(run(&mut program), "ok\n");
}
