//! Guides, run from the first line to the last: their files are written, their commands are given to
//! a shell, and they must print what the guide shows. What nobody can foresee (ages, and the
//! hashes in names of bindings) is not compared.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::blocks::{Block, transcripts};
use crate::shell::{Guides, Shell};

const PATIENCE: Duration = Duration::from_mins(2);

#[test]
fn the_guide_prints_what_it_shows() {
    run_through("up/placements/guide.rs::the_guide_prints_what_it_shows", 20);
}

/// Runs the blocks of a test, which have so many commands with their output, or more.
pub(crate) fn run_through(test: &'static str, least: usize) {
    let shell = Shell::new(Path::new("/dev/null"));
    let mut shown = 0;
    for block in Guides::of(test).rest() {
        match block.language.as_str() {
            "yaml" => write(&shell, &block),
            "sh" => drop(shell.run(&block.body)),
            _ => {
                for (command, output) in transcripts(&block) {
                    follow(&shell, &command, &output);
                    shown += 1;
                }
            }
        }
    }
    assert!(shown >= least, "only {shown} commands were found");
}

/// A file names itself in its first line.
fn write(shell: &Shell, block: &Block) {
    let name = block.body.lines().next().and_then(|line| line.strip_prefix("# "));
    shell.write(name.unwrap_or_else(|| panic!("{}: no name", block.place())), &block.body);
}

/// Runs a command as the guide has it; one that only looks is repeated until it sees what is shown.
fn follow(shell: &Shell, command: &str, output: &str) {
    let looking =
        ["kubectl get ", "kubectl --context ", "convoy get", "convoy status", "convoy why"];
    let looks = looking.iter().any(|it| command.starts_with(it));
    let begun = Instant::now();
    loop {
        let printed = run(shell, command);
        if words(&printed) == words(output) {
            return;
        }
        let waits = looks && begun.elapsed() < PATIENCE;
        assert!(waits, "$ {command}\n{printed}\nis not what the guide shows:\n{output}");
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn run(shell: &Shell, command: &str) -> String {
    let output = shell.attempt(command);
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
    let mut parts: Vec<&str> = bare.split('-').collect();
    for part in parts.iter_mut().skip(1).rev().take(2) {
        if is_hash(part) {
            *part = "HASH";
        }
    }
    parts.join("-") + &word[bare.len()..]
}

/// Whether a part of a name is a hash of eight digits, or what Kubernetes generates: hashes of
/// templates, and the ends of the names of pods.
fn is_hash(part: &str) -> bool {
    let is_hex = part.len() == 8 && part.chars().all(|c| c.is_ascii_hexdigit());
    let is_generated = |c: char| "bcdfghjklmnpqrstvwxz2456789".contains(c);
    is_hex || (matches!(part.len(), 5 | 8..=10) && part.chars().all(is_generated))
}

#[test]
fn ages_and_hashes_are_not_compared() {
    let one = "web-eu-1-0a1b2c3d:  waits 2m14s, 25%\n";
    let other = "web-eu-1-ffffffff: waits 9s, 25%\n";
    assert_ne!(words(one), words(other), "an age with a comma is none");
    assert_eq!(words("a-0a1b2c3d, 3s"), words("a-99999999, 1h2m"));
    assert_ne!(words("a-snapshot"), words("b-snapshot"));
    assert_eq!(words("web-78b4b8d96d-7x9qf:"), words("web-6c5f8d9b47-bcdfg:"));
    assert_ne!(words("web-node-1"), words("web-node-2"));
}
