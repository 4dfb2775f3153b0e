//! The guide, run from its first line to its last: its files are written, its commands are given to
//! a shell, and they must print what the guide shows. What nobody can foresee (ages, and the
//! hashes in names of bindings) is not compared.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::running::{Running, command};

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/kubefleet.md");

const PATIENCE: Duration = Duration::from_mins(2);

#[test]
fn the_guide_prints_what_it_shows() {
    run_through(GUIDE, 20);
}

/// Runs a guide of which more than so many commands are known.
pub(crate) fn run_through(guide: &str, least: usize) {
    let text = std::fs::read_to_string(guide).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let mut hub = None;
    let mut shown = 0;
    for (language, body) in blocks(&text) {
        match language {
            "yaml" => write(directory.path(), &body),
            // The other blocks of the shell are for real clusters.
            "sh" if body.starts_with("convoy up") => hub = Some(start(directory.path(), &body)),
            "text" => {
                let hub = hub.as_ref().expect("the guide starts a hub before it uses it");
                for (command, output) in transcripts(&body) {
                    follow(hub, directory.path(), &command, &output);
                    shown += 1;
                }
            }
            _ => {}
        }
    }
    assert!(shown > least, "only {shown} commands were found");
}

/// The fenced blocks, in order.
fn blocks(text: &str) -> Vec<(&str, String)> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(language) = line.strip_prefix("```") else { continue };
        let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        found.push((language, body.join("\n")));
    }
    found
}

/// A file names itself in its first line.
fn write(directory: &Path, body: &str) {
    let name = body.lines().next().and_then(|line| line.strip_prefix("# "));
    std::fs::write(directory.join(name.expect("a name")), body).unwrap();
}

/// `convoy up` with the flags of the guide, but for a port of its own.
fn start(directory: &Path, body: &str) -> Running {
    let (line, _) = body.split_once("--detach").unwrap();
    let words = line.split_whitespace().filter(|word| *word != "\\");
    // After `convoy up --data-dir DIRECTORY`.
    let flags: Vec<&str> = words.skip(4).collect();
    let data = directory.join("data");
    Running::start_as(command(&data).args(flags).current_dir(directory))
}

/// `$ command` lines, each with what is printed below it.
fn transcripts(block: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in block.lines() {
        match (line.strip_prefix("$ "), found.last_mut()) {
            (Some(command), _) => found.push((command.to_owned(), String::new())),
            (None, Some((_, output))) => output.extend([line, "\n"]),
            (None, None) => panic!("output without a command: {line}"),
        }
    }
    found
}

/// Runs a command as the guide has it; one that only looks is repeated until it sees what is shown.
fn follow(hub: &Running, directory: &Path, command: &str, output: &str) {
    let looking =
        ["kubectl get ", "kubectl --context ", "convoy get", "convoy status", "convoy why"];
    let looks = looking.iter().any(|it| command.starts_with(it));
    let begun = Instant::now();
    loop {
        let printed = run(hub, directory, command);
        if words(&printed) == words(output) {
            return;
        }
        let waits = looks && begun.elapsed() < PATIENCE;
        assert!(waits, "$ {command}\n{printed}\nis not what the guide shows:\n{output}");
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn run(hub: &Running, directory: &Path, command: &str) -> String {
    let convoy = Path::new(env!("CARGO_BIN_EXE_convoy")).parent().unwrap();
    let kubectl = std::env::var_os("CONVOY_KUBECTL").unwrap_or_else(|| "kubectl".into());
    // A function of the shell: the program may have another name.
    let kubectl = kubectl.to_string_lossy();
    let command = format!("kubectl() {{ command {kubectl} \"$@\"; }}; {command}");
    let path = format!("{}:{}", convoy.display(), std::env::var("PATH").unwrap());
    let output = Command::new("sh")
        .args(["-c", &command])
        .current_dir(directory)
        .env("PATH", path)
        .env("NO_COLOR", "1")
        .env("KUBECONFIG", &hub.kubeconfig)
        .env("KUBECACHEDIR", directory.join("kubectl-cache"))
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    let text = String::from_utf8_lossy(&output.stdout);
    format!("{text}{}", if output.status.success() { "" } else { &complaint })
}

/// The words of each line, without ages and hashes.
fn words(text: &str) -> Vec<Vec<String>> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| line.split_whitespace().map(foreseeable).collect()).collect()
}

fn foreseeable(word: &str) -> String {
    let is_age = word.ends_with(['s', 'm', 'h'])
        && word.chars().all(|c| c.is_ascii_digit() || "smh".contains(c));
    if is_age {
        return "AGE".to_owned();
    }
    let bare = word.trim_end_matches(&[',', ':'][..]);
    match bare.rsplit_once('-') {
        Some((name, hash)) if hash.len() == 8 && hash.chars().all(|c| c.is_ascii_hexdigit()) => {
            format!("{name}-HASH{}", &word[bare.len()..])
        }
        _ => word.to_owned(),
    }
}

#[test]
fn ages_and_hashes_are_not_compared() {
    let one = "web-eu-1-0a1b2c3d:  waits 2m14s, 25%\n";
    let other = "web-eu-1-ffffffff: waits 9s, 25%\n";
    assert_ne!(words(one), words(other), "an age with a comma is none");
    assert_eq!(words("a-0a1b2c3d, 3s"), words("a-99999999, 1h2m"));
    assert_ne!(words("a-snapshot"), words("b-snapshot"));
}
