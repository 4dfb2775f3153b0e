//! Completion of command lines, over objects in files; over those of a server see
//! `up/completion.rs`.

use std::path::PathBuf;
use std::process::Command;

use crate::binary;

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The words that complete a line, and the directive after them.
fn offered(line: &str) -> String {
    let words: Vec<&str> = ["__complete"].into_iter().chain(line.split(' ')).collect();
    let run = binary::run_in(&root(), &words);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{line}");
    let words = run.stdout.lines().map(|line| line.split('\t').next().unwrap_or_default());
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn names_commands_flags_and_values_are_offered() {
    for (line, expected) in [
        ("sta", "status :4"),
        ("clusters d", "delete :4"),
        ("status --ti", "--timeout :4"),
        ("get -o n", "name :4"),
        ("get --output=w", "wide :4"),
        ("plan --dialect k", "karpenter :4"),
        ("completions z", "zsh :4"),
        ("completions zsh ", ":4"),
        ("plan -f exam", ":0"),
        ("status -f examples/fleet.yaml ", "drain-eu-2 shop :4"),
        ("status -f examples/fleet.yaml s", "shop :4"),
        (
            "status -f examples/fleet.yaml clusterresourceplacement/",
            "clusterresourceplacement/shop :4",
        ),
        ("status -f examples/fleet.yaml crp/", "crp/shop :4"),
        ("history -f examples/fleet.yaml crpe ", "drain-eu-2 :4"),
        ("get -n elsewhere -f examples/apps.yaml ", ":4"),
        ("why -f examples/apps.yaml ", "cluster node pod web :4"),
        ("why -f examples/skyhook.yaml node gpu-c", "gpu-critical-1 gpu-critical-2 :4"),
        ("why -f examples/ocm.yaml cluster m", "madrid :4"),
        ("why -f examples/apps.yaml pod web-v2-4", "web-v2-4kx7z :4"),
        ("status -f examples/nowhere.yaml ", ":4"),
    ] {
        assert_eq!(offered(line), expected, "{line:?}");
    }
}

/// The script of bash, as bash runs it: words that it takes apart at `=` are put together.
#[test]
fn bash_completes_a_line() {
    let programs = tempfile::tempdir().unwrap();
    let program = programs.path().join("convoy");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_convoy"), program).unwrap();
    let path = format!("{}:{}", programs.path().display(), std::env::var("PATH").unwrap());
    for (line, words, expected) in [
        (
            "convoy status -f examples/fleet.yaml s",
            "convoy status -f examples/fleet.yaml s",
            "shop",
        ),
        ("convoy get --output=j", "convoy get --output = j", "json"),
        ("convoy get --output=", "convoy get --output =", "table wide json yaml name"),
        ("convoy plan -f exam", "convoy plan -f exam", "examples"),
    ] {
        let script = format!(
            "eval \"$(convoy completions bash)\"; COMP_WORDS=({words}); COMP_LINE='{line}'; \
             COMP_POINT=${{#COMP_LINE}}; COMP_CWORD=$((${{#COMP_WORDS[@]}}-1)); _convoy; \
             echo \"${{COMPREPLY[@]}}\""
        );
        let mut bash = Command::new("bash");
        bash.args(["-c", &script]).current_dir(root()).env("PATH", &path);
        let output = bash.output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), expected, "{line}: {output:?}");
    }
}

#[test]
fn every_shell_has_a_script() {
    for shell in ["bash", "fish", "zsh"] {
        let script = binary::run_in(&root(), &["completions", shell]).stdout;
        for program in ["convoy", "kubectl-convoy", "__complete"] {
            assert!(script.contains(program), "{shell} knows nothing of {program}");
        }
    }
    for shell in ["elvish", "powershell"] {
        let script = binary::run_in(&root(), &["completions", shell]).stdout;
        for command in ["validate", "get", "status", "why", "approve"] {
            assert!(script.contains(command), "{shell}: {command}");
        }
    }
}
