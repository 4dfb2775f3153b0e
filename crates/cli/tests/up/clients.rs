//! Clients in other languages: each is a small program beside this file that prints `ok`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::running::Running;

fn here(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/up").join(folder)
}

/// Runs a command, which must succeed; what it printed.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| {
        panic!("{command:?} cannot be run, and this test needs it: {error}")
    });
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{text}\n{complaint}");
    text
}

#[test]
fn go_programs_work() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("client");
    let mut build = Command::new("go");
    build.args(["build", "-buildvcs=false", "-o"]).arg(&program).current_dir(here("client_go"));
    run(&mut build);
    let running = Running::start();
    let printed = run(Command::new(program).env("KUBECONFIG", &running.kubeconfig));
    assert_eq!(printed, "ok\n");
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
