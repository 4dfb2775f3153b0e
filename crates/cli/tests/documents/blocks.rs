//! The fenced blocks of the documents, and `blocks.txt`: which test runs each of them, or why none
//! does.
//!
//! A test that pastes blocks asks for its own with [`run_by`], so that it runs what the list says.

use std::fs;
use std::path::{Path, PathBuf};

/// A fenced block.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    /// Path of the document below the repository.
    pub(crate) page: String,
    /// Line of the opening fence.
    pub(crate) line: usize,
    pub(crate) language: String,
    pub(crate) body: String,
}

/// A line of `blocks.txt`.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The document; empty: all of them.
    pub(crate) page: String,
    /// What a line of the block begins with; `*` for what no other entry of the page has, and a
    /// language if the entry is for all pages.
    pub(crate) begins: String,
    /// `file.rs::function` below `crates/cli/tests`, or `not run: ` and the reason.
    pub(crate) check: String,
}

const LIST: &str = include_str!("blocks.txt");

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// The blocks of all documents, in order.
pub(crate) fn all() -> Vec<Block> {
    let mut pages = vec![root().join("README.md")];
    collect(&root().join("docs"), &mut pages);
    pages.sort();
    pages.iter().flat_map(|page| of_page(page)).collect()
}

fn collect(below: &Path, pages: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(below).expect("a directory") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            collect(&path, pages);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            pages.push(path);
        }
    }
}

/// The blocks of a document; those in lists are indented there.
fn of_page(path: &Path) -> Vec<Block> {
    let text = fs::read_to_string(path).expect("readable");
    let page = path.strip_prefix(root()).expect("in the repository").display().to_string();
    let mut found = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(language) = line.trim_start().strip_prefix("```") else { continue };
        let indent = line.len() - line.trim_start().len();
        let body = lines.by_ref().map(|(_, line)| line).take_while(|line| line.trim() != "```");
        let body: Vec<&str> = body.map(|line| line.get(indent..).unwrap_or_default()).collect();
        found.push(Block {
            page: page.clone(),
            line: number + 1,
            language: language.trim().to_owned(),
            body: body.join("\n"),
        });
    }
    found
}

/// The list.
pub(crate) fn entries() -> Vec<Entry> {
    let mut page = String::new();
    let mut found = Vec::new();
    for line in LIST.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            page = if name == "all pages" { String::new() } else { name.to_owned() };
            continue;
        }
        let (begins, check) = line.split_once(" => ").expect("an entry has ` => `");
        found.push(Entry {
            page: page.clone(),
            begins: begins.trim().to_owned(),
            check: check.trim().to_owned(),
        });
    }
    found
}

impl Block {
    pub(crate) fn place(&self) -> String {
        format!("{}:{}", self.page, self.line)
    }

    /// The entries for this block: of those that name one of its lines, else of its page, else of
    /// its language.
    pub(crate) fn entries<'e>(&self, entries: &'e [Entry]) -> Vec<&'e Entry> {
        let of_page = |entry: &&Entry| entry.page == self.page;
        let named = |entry: &&Entry| of_page(entry) && self.has_line(&entry.begins);
        let rest = |entry: &&Entry| of_page(entry) && entry.begins == "*";
        let language = |entry: &&Entry| entry.page.is_empty() && entry.begins == self.language;
        let by = |is_for: &dyn Fn(&&Entry) -> bool| -> Vec<&'e Entry> {
            entries.iter().filter(|entry| is_for(entry)).collect()
        };
        let found = [by(&named), by(&rest), by(&language)];
        found.into_iter().find(|found| !found.is_empty()).unwrap_or_default()
    }

    pub(crate) fn has_line(&self, begins: &str) -> bool {
        self.body.lines().any(|line| line.trim_start_matches("$ ").trim_start().starts_with(begins))
    }
}

/// The blocks that a test has to run, in the order of the documents.
pub(crate) fn run_by(test: &str) -> Vec<Block> {
    let entries = entries();
    let is_its_own =
        |block: &Block| block.entries(&entries).first().is_some_and(|entry| entry.check == test);
    all().into_iter().filter(is_its_own).collect()
}

/// `$ command` lines of a block, each with what the document says it prints.
pub(crate) fn transcripts(block: &Block) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in block.body.lines() {
        match (line.strip_prefix("$ "), found.last_mut()) {
            (Some(command), _) => found.push((command.to_owned(), String::new())),
            (None, Some((_, output))) => output.extend([line, "\n"]),
            (None, None) => panic!("{}: output without a command: {line}", block.place()),
        }
    }
    found
}
