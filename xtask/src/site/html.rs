//! Follows every link of the built site, to files and to places in them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};

/// How many links there are; an error names all that lead nowhere.
pub(super) fn check(site: &Path) -> Result<usize> {
    let pages = pages(site)?;
    ensure!(!pages.is_empty(), "{} has no pages", site.display());
    let mut count = 0;
    let mut broken = Vec::new();
    for (path, text) in &pages {
        for link in attributes(text, &["href", "src"]) {
            if is_elsewhere(&link) {
                continue;
            }
            count += 1;
            if !leads_somewhere(path, &link, &pages) {
                broken.push(format!("{}: {link}", path.display()));
            }
        }
    }
    if !broken.is_empty() {
        bail!("{} links lead nowhere:\n{}", broken.len(), broken.join("\n"));
    }
    Ok(count)
}

/// The pages by path. The page for addresses that do not exist is left out: it may be shown at any
/// address, so that its links begin at the top of a site.
fn pages(below: &Path) -> Result<BTreeMap<PathBuf, String>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(below)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(pages(&path)?);
        } else if path.extension().is_some_and(|ending| ending == "html")
            && !path.ends_with("404.html")
        {
            found.insert(path.canonicalize()?, fs::read_to_string(&path)?);
        }
    }
    Ok(found)
}

fn is_elsewhere(link: &str) -> bool {
    ["http://", "https://", "mailto:", "data:", "javascript:"].iter().any(|it| link.starts_with(it))
}

fn leads_somewhere(page: &Path, link: &str, pages: &BTreeMap<PathBuf, String>) -> bool {
    let (path, place) = link.split_once('#').unwrap_or((link, ""));
    let path = path.split('?').next().unwrap_or_default();
    let folder = page.parent().unwrap_or(page);
    let target = if path.is_empty() { page.to_owned() } else { folder.join(path) };
    let Ok(target) = target.canonicalize() else { return false };
    if target.is_dir() {
        return false;
    }
    let Some(text) = pages.get(&target) else { return place.is_empty() };
    place.is_empty() || attributes(text, &["id", "name"]).contains(place)
}

/// The values of attributes, as they are written in double quotes.
fn attributes(text: &str, names: &[&str]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for name in names {
        let start = format!(" {name}=\"");
        let values = text.split(&start).skip(1).filter_map(|rest| rest.split('"').next());
        found.extend(values.map(|value| value.replace("&amp;", "&")));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_to_nowhere_is_found() {
        let site = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(site.path().join(name), text).unwrap();
        write("style.css", "");
        write("index.html", "<link href=\"style.css\"><a href=\"b.html#there\">b</a>");
        write(
            "b.html",
            "<h1 id=\"there\">b</h1><a href=\"#there\">t</a><a href=\"https://x\">x</a>",
        );
        write("404.html", "<a href=\"nowhere.html\">n</a>");
        assert_eq!(check(site.path()).unwrap(), 3);
        for bad in ["b.html#elsewhere", "c.html", "#nothing", "."] {
            write("index.html", &format!("<a href=\"{bad}\">bad</a>"));
            let complaint = check(site.path()).unwrap_err().to_string();
            assert!(complaint.contains(bad), "{complaint}");
        }
    }
}
