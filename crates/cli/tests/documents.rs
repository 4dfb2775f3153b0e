//! What the documents show is what the binary does: every `$ convoy …` line in a console block
//! is run from the top of the repository and must print the lines below it, and every manifest
//! in a concept page must be accepted by `convoy validate`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

fn pages(below: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(below) else { return Vec::new() };
    let mut found = Vec::new();
    for path in entries.map(|entry| entry.expect("readable").path()) {
        if path.is_dir() {
            found.extend(pages(&path));
        } else if path.extension().is_some_and(|ending| ending == "md") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The bodies of the fenced blocks of one language, with the line each begins at.
fn blocks(text: &str, language: &str) -> Vec<(usize, String)> {
    let fence = format!("```{language}");
    let mut found = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        if line.trim_end() != fence {
            continue;
        }
        let body: Vec<&str> =
            lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
        found.push((number + 2, body.join("\n")));
    }
    found
}

fn convoy(arguments: &[&str], stdin: &str) -> (String, Option<i32>) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_convoy"))
        .args(arguments)
        .current_dir(root())
        .env("NO_COLOR", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    child.stdin.take().expect("piped").write_all(stdin.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    (String::from_utf8(output.stdout).expect("it prints text"), output.status.code())
}

/// `$ command` lines of a console block, each with what the document says it prints.
fn transcripts(block: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in block.lines() {
        match (line.strip_prefix("$ "), found.last_mut()) {
            (Some(command), _) => found.push((command.to_owned(), String::new())),
            (None, Some((_, output))) => output.extend([line, "\n"]),
            (None, None) => {}
        }
    }
    found
}

#[test]
fn commands_in_the_documents_print_what_the_documents_show() {
    let mut shown = 0;
    for page in pages(&root().join("docs")).into_iter().chain([root().join("README.md")]) {
        let text = fs::read_to_string(&page).expect("readable");
        for (line, block) in blocks(&text, "console") {
            for (command, expected) in transcripts(&block) {
                let Some(arguments) = command.strip_prefix("convoy ") else { continue };
                if expected.trim().is_empty() {
                    continue; // shown as something to type, not for what it prints
                }
                let arguments: Vec<&str> = arguments.split_whitespace().collect();
                let (printed, _) = convoy(&arguments, "");
                let place = format!("{}:{line}: $ {command}", page.display());
                assert_eq!(printed.trim_end(), expected.trim_end(), "{place}");
                shown += 1;
            }
        }
    }
    assert!(shown > 0, "the README shows at least one command");
}

#[test]
fn manifests_in_the_concept_pages_are_valid() {
    for page in pages(&root().join("docs/concepts")) {
        let text = fs::read_to_string(&page).expect("readable");
        for (line, block) in
            blocks(&text, "yaml").into_iter().filter(|(_, body)| body.contains("kind:"))
        {
            let (printed, code) = convoy(&["validate", "-f", "-"], &block);
            assert_eq!(code, Some(0), "{}:{line}: {printed}", page.display());
        }
    }
}
