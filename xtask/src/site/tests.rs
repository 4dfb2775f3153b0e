//! The pages lead to each other, are all listed, and their commands exist.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::pages::{Page, SUMMARY, load};
use super::*;

fn pages() -> BTreeMap<PathBuf, Page> {
    let pages = load(&root()).unwrap();
    pages.into_iter().map(|page| (page.path.clone(), page)).collect()
}

#[test]
fn links_between_documents_lead_somewhere() {
    assert_eq!(pages::broken_links(&root()).unwrap(), Vec::<String>::new());
}

#[test]
fn every_page_is_in_the_summary_once() {
    let pages = pages();
    let summary = &pages[Path::new(SUMMARY)];
    let listed: Vec<PathBuf> = summary.links().into_iter().map(|link| link.path).collect();
    let once: BTreeSet<&PathBuf> = listed.iter().collect();
    assert_eq!(once.len(), listed.len(), "a page is listed twice");
    let expected: BTreeSet<&PathBuf> =
        pages.keys().filter(|path| *path != Path::new(SUMMARY)).collect();
    assert_eq!(once, expected);
}

/// The recorded help of a command and of its own commands, such as `clusters create`.
fn help(words: &[&str]) -> Option<String> {
    let folder = root().join("crates/cli/tests/golden/help");
    let of = |name: &str| fs::read_to_string(folder.join(format!("{name}.txt"))).ok();
    let [command, rest @ ..] = words else { return None };
    let own = rest.first().and_then(|word| of(&format!("{command}_{word}")));
    own.or_else(|| of(command))
}

/// The flags of one command of a shell, without values.
fn flags<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let flags = words.iter().filter(|word| word.starts_with("--") && word.len() > 2);
    flags.map(|word| word.split('=').next().unwrap_or(word)).collect()
}

/// The words of each command in a line, which pipes and the like separate.
fn commands(line: &str) -> Vec<Vec<&str>> {
    let line = line.split(" #").next().unwrap_or_default();
    let commands = line.split(['|', ';', '&']);
    commands.map(|command| command.split_whitespace().collect()).collect()
}

/// Tests of `convoy` run the blocks for a shell that they can; others need clusters, registries and
/// machines. Of these, too, the commands, their flags and the files that they name exist.
#[test]
fn commands_for_a_shell_exist() {
    let mut count = 0;
    for page in pages().values() {
        for (number, line) in page.code("sh") {
            let place = format!("{}:{number}: {line}", page.path.display());
            for words in commands(&line) {
                match words.as_slice() {
                    ["convoy", rest @ ..] => {
                        let help = help(rest).unwrap_or_else(|| panic!("no such command: {place}"));
                        for flag in flags(rest) {
                            let is_known = help
                                .split(|c: char| c.is_whitespace() || c == ',')
                                .any(|it| it == flag);
                            assert!(is_known, "no flag {flag}: {place}");
                        }
                        count += 1;
                    }
                    ["cargo", "xtask", task, ..] => {
                        let tasks = fs::read_to_string(root().join("xtask/src/main.rs")).unwrap();
                        let variant = task[..1].to_uppercase() + &task[1..];
                        assert!(tasks.contains(&format!("Task::{variant}")), "{place}");
                        count += 1;
                    }
                    ["helm" | "kubectl", ..] => {
                        let files = words.iter().filter(|word| word.starts_with("deploy/"));
                        for file in files.filter(|file| !file.contains(':')) {
                            assert!(root().join(file).exists(), "no {file}: {place}");
                        }
                    }
                    _ => {}
                }
            }
        }
    }
    assert!(count > 40, "only {count} commands were found");
}
