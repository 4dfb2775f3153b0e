//! The copy of the pages that mdBook reads. It has the shape of the repository, so that links
//! between pages stay as they are, and holds nothing but pages and the files that they link to.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::pages::{self, Page, SUMMARY};

pub(super) fn write(root: &Path, stage: &Path) -> Result<()> {
    let source = stage.join("src");
    let pages = pages::load(root)?;
    for page in &pages {
        let (path, text) = if page.path == Path::new(SUMMARY) {
            (PathBuf::from("SUMMARY.md"), summary(page))
        } else {
            (renamed(&page.path), page.text.clone())
        };
        put(&source.join(path), text.as_bytes())?;
        for link in page.links() {
            if link.path.extension().is_none_or(|ending| ending != "md") {
                let content = fs::read(root.join(&link.path));
                let content = content.with_context(|| {
                    format!("{}: {} is no file", page.path.display(), link.text)
                })?;
                put(&source.join(&link.path), &content)?;
            }
        }
    }
    fs::copy(root.join("docs/book.toml"), stage.join("book.toml"))?;
    Ok(())
}

/// The list of pages, with paths from the top of the copy.
fn summary(page: &Page) -> String {
    page.links().iter().fold(page.text.clone(), |text, link| {
        let path = renamed(&link.path).display().to_string();
        text.replace(&format!("]({})", link.text), &format!("]({path})"))
    })
}

/// The first page of a site has this name.
fn renamed(path: &Path) -> PathBuf {
    if path == Path::new("README.md") { PathBuf::from("index.md") } else { path.to_owned() }
}

fn put(path: &Path, content: &[u8]) -> Result<()> {
    fs::create_dir_all(path.parent().context("a file lies in a directory")?)?;
    fs::write(path, content).with_context(|| format!("could not write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stage_has_all_pages_and_what_they_link_to() {
        let root = tempfile::tempdir().unwrap();
        let files = [
            ("README.md", "[Install](docs/install.md)"),
            ("ARCHITECTURE.md", "[code](crates/plan.rs)"),
            ("CHANGELOG.md", ""),
            ("crates/plan.rs", "fn plan() {}"),
            ("crates/other.rs", ""),
            ("docs/install.md", "# Install"),
            ("docs/book.toml", "[book]"),
            ("docs/SUMMARY.md", "[Convoy](../README.md)\n- [Install](install.md)\n"),
        ];
        for (path, text) in files {
            put(&root.path().join(path), text.as_bytes()).unwrap();
        }
        let stage = root.path().join("stage");
        write(root.path(), &stage).unwrap();
        let read = |path: &str| fs::read_to_string(stage.join(path)).unwrap();
        assert_eq!(read("src/SUMMARY.md"), "[Convoy](index.md)\n- [Install](docs/install.md)\n");
        assert_eq!(read("src/index.md"), "[Install](docs/install.md)");
        assert_eq!(read("src/crates/plan.rs"), "fn plan() {}");
        assert_eq!(read("book.toml"), "[book]");
        assert!(!stage.join("src/crates/other.rs").exists());
    }
}
