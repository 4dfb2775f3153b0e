//! Resolves the arguments of `-f` to files: paths, directories, globs, standard input.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::location::{Problem, SourceLocation};
use super::manifests::Manifests;

/// File extensions that are read in directories. A file named explicitly may have any.
const EXTENSIONS: [&str; 3] = ["json", "yaml", "yml"];

/// The name of standard input in messages.
pub(super) const STDIN: &str = "<stdin>";

/// One file, or standard input.
#[derive(Debug)]
pub(super) struct Source {
    /// Name in messages.
    pub(super) name: String,
    /// Absent for standard input.
    path: Option<PathBuf>,
    /// Found in a directory, not named.
    pub(super) is_listed: bool,
}

/// The files that `arguments` refer to, each once, in a fixed order.
pub(super) fn files(arguments: &[PathBuf], manifests: &mut Manifests) -> Vec<Source> {
    let mut finder = Finder { manifests, found: Vec::new(), seen: BTreeSet::new() };
    for argument in arguments {
        finder.argument(argument);
    }
    finder.found
}

impl Source {
    /// The content, unless it is larger than `bytes_max`.
    pub(super) fn read(&self, bytes_max: u64) -> Result<Vec<u8>, Problem> {
        let problem = |message: String| Problem::error(SourceLocation::file(&self.name), message);
        let content = match &self.path {
            None => content(io::stdin().lock(), bytes_max),
            Some(path) => File::open(path).and_then(|file| content(file, bytes_max)),
        };
        match content {
            Ok(Some(bytes)) => Ok(bytes),
            Ok(None) => Err(problem(format!("the file is larger than {} MiB", bytes_max >> 20))),
            Err(error) => Err(problem(format!("could not be read: {error}"))),
        }
    }
}

fn content(reader: impl Read, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let length = reader.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((u64::try_from(length).is_ok_and(|length| length <= bytes_max)).then_some(bytes))
}

struct Finder<'b> {
    manifests: &'b mut Manifests,
    found: Vec<Source>,
    /// Real paths of files and directories, so that each is read once and loops end.
    seen: BTreeSet<PathBuf>,
}

impl Finder<'_> {
    fn argument(&mut self, argument: &Path) {
        if argument.as_os_str() == "-" {
            if self.seen.insert(PathBuf::from("-")) {
                self.found.push(Source { name: STDIN.to_owned(), path: None, is_listed: false });
            }
            return;
        }
        match std::fs::metadata(argument) {
            Ok(metadata) if metadata.is_dir() => self.directory(argument),
            Ok(_) => self.file(argument, false),
            Err(error) if error.kind() == io::ErrorKind::NotFound && has_wildcard(argument) => {
                self.pattern(argument);
            }
            Err(error) => self.problem(argument, format!("could not be read: {error}")),
        }
    }

    fn file(&mut self, path: &Path, is_listed: bool) {
        // A pipe such as `<(…)` has no real path, so its name is used.
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if self.seen.insert(real) {
            let name = path.display().to_string();
            self.found.push(Source { name, path: Some(path.to_owned()), is_listed });
        }
    }

    fn pattern(&mut self, pattern: &Path) {
        let text = pattern.to_string_lossy();
        let matches = match glob::glob(&text) {
            Ok(matches) => matches,
            Err(error) => return self.problem(pattern, format!("invalid glob: {error}")),
        };
        let mut any = false;
        for path in matches {
            any = true;
            match path {
                Ok(path) if path.is_dir() => self.directory(&path),
                Ok(path) => self.file(&path, false),
                Err(error) => {
                    let message = format!("could not be read: {}", error.error());
                    self.problem(error.path(), message);
                }
            }
        }
        if !any {
            self.problem(pattern, "no file matches this glob".to_owned());
        }
    }

    /// Everything below a directory, parents before children, names in order.
    fn directory(&mut self, root: &Path) {
        let mut is_empty = true;
        let mut pending = vec![root.to_owned()];
        while let Some(directory) = pending.pop() {
            let real = directory.canonicalize().unwrap_or_else(|_| directory.clone());
            if !self.seen.insert(real) {
                is_empty = false;
                continue; // a symbolic link to something already read, perhaps to a parent
            }
            match entries(&directory) {
                Ok((files, mut directories)) => {
                    if files.iter().any(|file| file.ends_with("Chart.yaml")) {
                        self.skip_templates(&mut directories);
                    }
                    is_empty &= files.is_empty();
                    for file in files {
                        self.file(&file, true);
                    }
                    directories.reverse(); // the last in is the first out
                    pending.append(&mut directories);
                }
                Err(error) => self.problem(&directory, format!("could not be read: {error}")),
            }
        }
        if is_empty && self.manifests.is_sound() {
            let message = "the directory has no *.yaml, *.yml or *.json files";
            self.problem(root, message.to_owned());
        }
    }

    /// The templates of a chart are no YAML before they are filled in.
    fn skip_templates(&mut self, directories: &mut Vec<PathBuf>) {
        for templates in directories.extract_if(.., |directory| directory.ends_with("templates")) {
            let location = SourceLocation::file(&templates.display().to_string());
            let message =
                "skipped: templates of a Helm chart; validate what `helm template` prints";
            self.manifests.problem(Problem::note(location, message));
        }
    }

    fn problem(&mut self, path: &Path, message: String) {
        let location = SourceLocation::file(&path.display().to_string());
        self.manifests.problem(Problem::error(location, message));
    }
}

/// The manifest files and the directories in `directory`, each in name order. Pipes and
/// devices are left out: opening one could wait forever.
fn entries(directory: &Path) -> io::Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let mut files = Vec::new();
    let mut directories = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let metadata = std::fs::metadata(&path);
        if metadata.as_ref().is_ok_and(std::fs::Metadata::is_dir) {
            directories.push(path);
        } else if has_extension(&path) && metadata.map_or(true, |metadata| metadata.is_file()) {
            files.push(path); // a dangling link too, so that reading it reports it
        }
    }
    files.sort();
    directories.sort();
    Ok((files, directories))
}

fn has_extension(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| EXTENSIONS.contains(&extension))
}

fn has_wildcard(path: &Path) -> bool {
    path.to_string_lossy().contains(['*', '?', '['])
}
