//! The pages, and what matters of their Markdown: links, headings and blocks of code.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};

/// Pages outside of `docs/` that belong to the site.
const TOP: [&str; 3] = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md"];
/// Lists the pages; it is none itself.
pub(super) const SUMMARY: &str = "docs/SUMMARY.md";

/// One page, with its path from the top of the repository.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) path: PathBuf,
    pub(super) text: String,
}

/// All pages, the list of them included.
pub(super) fn load(root: &Path) -> Result<Vec<Page>> {
    let mut paths: Vec<PathBuf> = TOP.iter().map(PathBuf::from).collect();
    collect(root, Path::new("docs"), &mut paths)?;
    paths.sort();
    let page = |path: PathBuf| {
        let text = fs::read_to_string(root.join(&path));
        let text = text.with_context(|| format!("could not read {}", path.display()))?;
        Ok(Page { path, text })
    };
    paths.into_iter().map(page).collect()
}

/// The links that lead to no file, or to no heading in a page.
pub(super) fn broken_links(root: &Path) -> Result<Vec<String>> {
    let pages = load(root)?;
    let pages: BTreeMap<&Path, &Page> =
        pages.iter().map(|page| (page.path.as_path(), page)).collect();
    let mut broken = Vec::new();
    for page in pages.values() {
        for link in page.links() {
            // The list of pages is no page of the site.
            let is_page = link.path != Path::new(SUMMARY);
            let leads = is_page
                && match (&link.anchor, pages.get(link.path.as_path())) {
                    (Some(anchor), Some(target)) => target.anchors().contains(anchor),
                    (Some(_), None) => false,
                    (None, _) => root.join(&link.path).is_file(),
                };
            if !leads {
                broken.push(format!("{}: {}", page.path.display(), link.text));
            }
        }
    }
    Ok(broken)
}

fn collect(root: &Path, below: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(root.join(below))? {
        let path = below.join(entry?.file_name());
        if root.join(&path).is_dir() {
            collect(root, &path, found)?;
        } else if path.extension().is_some_and(|ending| ending == "md") {
            found.push(path);
        }
    }
    Ok(())
}

/// Where a link leads.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Link {
    /// As it is written.
    pub(super) text: String,
    /// From the top of the repository.
    pub(super) path: PathBuf,
    /// The name of a heading.
    pub(super) anchor: Option<String>,
}

impl Page {
    /// The links to other files and to headings, without those to other sites.
    pub(super) fn links(&self) -> Vec<Link> {
        let prose = without_code(&self.text);
        let written = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let local = written.filter(|link| !link.contains("://") && !link.starts_with("mailto:"));
        local.map(|link| self.resolve(link)).collect()
    }

    fn resolve(&self, link: &str) -> Link {
        let (path, anchor) = match link.split_once('#') {
            Some((path, anchor)) => (path, Some(anchor.to_owned())),
            None => (link, None),
        };
        let folder = self.path.parent().unwrap_or(Path::new(""));
        let path = if path.is_empty() { self.path.clone() } else { normal(&folder.join(path)) };
        Link { text: link.to_owned(), path, anchor }
    }

    /// The names of the headings, by the rule that mdBook and the usual hosts of repositories share.
    pub(super) fn anchors(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for (line, _) in lines(&self.text).filter(|(_, in_code)| !in_code) {
            let title = line.trim_start_matches('#');
            if title.len() == line.len() || !title.starts_with(' ') {
                continue;
            }
            let name = anchor(title.trim());
            let numbered = (1..).map(|number| format!("{name}-{number}"));
            let mut names = std::iter::once(name.clone()).chain(numbered);
            found.extend(names.find(|name| !found.contains(name)));
        }
        found
    }

    /// Lines of the blocks in one language, each with its number. A command that goes on after a
    /// backslash is one line.
    #[cfg(test)]
    pub(super) fn code(&self, language: &str) -> Vec<(usize, String)> {
        let mut found: Vec<(usize, String)> = Vec::new();
        let mut current = None;
        let mut goes_on = false;
        for (number, line) in self.text.lines().enumerate() {
            let line = line.trim();
            match (line.strip_prefix("```"), current) {
                (Some(opened), None) => current = Some(opened),
                (Some(_), Some(_)) => (current, goes_on) = (None, false),
                (None, Some(opened)) if opened == language => {
                    let words = line.trim_end_matches('\\').trim();
                    match found.last_mut() {
                        Some((_, last)) if goes_on => last.extend([" ", words]),
                        _ => found.push((number + 1, words.to_owned())),
                    }
                    goes_on = line.ends_with('\\');
                }
                _ => {}
            }
        }
        found
    }
}

/// A path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut parts: Vec<Component> = Vec::new();
    for part in path.components() {
        match (part, parts.last()) {
            (Component::CurDir, _) => {}
            (Component::ParentDir, Some(Component::Normal(_))) => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.into_iter().collect()
}

fn anchor(title: &str) -> String {
    let letters = title.chars().filter_map(|letter| match letter {
        ' ' => Some('-'),
        '-' | '_' => Some(letter),
        _ => letter.is_alphanumeric().then_some(letter),
    });
    letters.flat_map(char::to_lowercase).collect()
}

/// Each line, and whether it is code or the fence of a block of code.
fn lines(text: &str) -> impl Iterator<Item = (&str, bool)> {
    let mut is_open = false;
    text.lines().map(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        let in_code = is_open || is_fence;
        is_open ^= is_fence;
        (line, in_code)
    })
}

/// The text without blocks of code and without code in a line.
fn without_code(text: &str) -> String {
    let prose: Vec<&str> =
        lines(text).filter(|(_, in_code)| !in_code).map(|(line, _)| line).collect();
    prose.join("\n").split('`').step_by(2).collect::<Vec<_>>().join("code")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> Page {
        Page { path: PathBuf::from("docs/guides/run.md"), text: text.to_owned() }
    }

    #[test]
    fn links_are_read_as_a_browser_follows_them() {
        let page = page(
            "See [the `plan`](../reference/plan.md#holds), [below](#output), [a\nfile](../../LICENSE),\n\
             [a site](https://example.com), `[code](no.md)`.\n```sh\n[block](no.md)\n```\n",
        );
        let found: Vec<(String, Option<String>)> = page
            .links()
            .into_iter()
            .map(|link| (link.path.display().to_string(), link.anchor))
            .collect();
        let expected = [
            ("docs/reference/plan.md", Some("holds")),
            ("docs/guides/run.md", Some("output")),
            ("LICENSE", None),
        ];
        assert_eq!(found, expected.map(|(path, at)| (path.to_owned(), at.map(str::to_owned))));
    }

    #[test]
    fn headings_have_the_names_that_links_use() {
        let page =
            page("# `convoy up`, and more\n## The hub\n### The hub\n```sh\n# no\n```\n#no\n");
        let anchors: Vec<String> = page.anchors().into_iter().collect();
        assert_eq!(anchors, ["convoy-up-and-more", "the-hub", "the-hub-1"]);
    }

    #[test]
    fn a_command_on_several_lines_is_one() {
        let page = page(
            "   ```sh\n   convoy up \\\n     --nodes 3\n   convoy down\n   ```\n```text\nno\n```\n",
        );
        let lines = [(2, "convoy up --nodes 3".to_owned()), (4, "convoy down".to_owned())];
        assert_eq!(page.code("sh"), lines);
    }
}
