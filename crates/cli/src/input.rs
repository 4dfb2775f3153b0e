//! Reads Kubernetes objects from YAML, JSON, lists, directories, globs and standard input, and
//! records the location of each.
//!
//! Reading never fails as a whole. Unreadable input becomes a [`Problem`] with its location, and
//! the rest is still read. Hostile input is bounded: file size, nesting, the
//! number of values, and what aliases may expand to.

mod foreign;
mod json;
mod location;
mod manifests;
mod names;
mod positions;
mod source;
mod text;
mod yaml;

use std::sync::Arc;

use serde_json::Value;

pub use location::{Origin, Problem, SourceLocation};
pub use manifests::{FieldLocation, Manifests};
pub(crate) use names::mistyped;

/// Resource limits for one file.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Largest file. Keeps `-f /dev/zero` from filling the memory.
    pub file_bytes: u64,
    /// Maps, lists and scalars in one file; each costs about 100 bytes of memory. An ordinary
    /// file of 100 MB has three million.
    pub values: usize,
    /// Memory that the aliases of one YAML file may expand to, in bytes.
    pub alias_bytes: usize,
}

/// Maximum nesting of maps and lists. The deepest custom resource definitions in use have about
/// half of it, and it keeps every recursive function below within the stack.
pub const DEPTH_MAX: usize = 100;

impl Default for Limits {
    fn default() -> Self {
        Self { file_bytes: 512 << 20, values: 20_000_000, alias_bytes: 256 << 20 }
    }
}

/// Reads all `sources`: files, directories, globs, and `-` for standard input.
pub fn read(sources: &[std::path::PathBuf], limits: Limits) -> Manifests {
    let mut manifests = Manifests::default();
    for file in source::files(sources, &mut manifests) {
        match file.read(limits.file_bytes) {
            Ok(bytes) => read_text(&file.name, bytes, file.is_listed, limits, &mut manifests),
            Err(problem) => manifests.problem(problem),
        }
    }
    if let Some(source) = sources.first().filter(|_| manifests.world.is_empty())
        && manifests.is_sound()
    {
        // A typo in a name or a command before the pipe is no success.
        let directory = sources.iter().find(|source| source.is_dir()).unwrap_or(source);
        let name = directory.display().to_string();
        let name = if name == "-" { source::STDIN } else { &name };
        let location = SourceLocation::file(name);
        manifests.problem(Problem::error(location, "no Kubernetes object was found"));
    }
    manifests
}

/// Reads one file's content into `manifests`. `name` is what messages call it.
pub fn read_bytes(name: &str, bytes: Vec<u8>, limits: Limits, manifests: &mut Manifests) {
    read_text(name, bytes, false, limits, manifests);
}

/// `is_listed`: the file was found in a directory, where not everything is a manifest.
fn read_text(
    name: &str,
    bytes: Vec<u8>,
    is_listed: bool,
    limits: Limits,
    manifests: &mut Manifests,
) {
    let file: Arc<str> = Arc::from(name);
    let text = match text::decode(&file, bytes) {
        Ok(text) => text,
        Err(problem) => return manifests.problem(problem),
    };
    let mut sink = Sink {
        file: Arc::clone(&file),
        is_listed,
        manifests,
        values_left: limits.values,
        problems_left: PROBLEMS_MAX,
    };
    if json::looks_like_json(&text) {
        json::read(&text, limits, &mut sink);
    } else {
        yaml::read(&text, 0, limits, &mut sink);
    }
    manifests.keep_text(file, text);
}

/// Collects the objects and problems that the two readers find in one file.
struct Sink<'b> {
    file: Arc<str>,
    /// Whether it was found in a directory, where not everything is a manifest.
    is_listed: bool,
    manifests: &'b mut Manifests,
    values_left: usize,
    problems_left: usize,
}

/// Maximum number of problems reported for one file.
const PROBLEMS_MAX: usize = 100;

impl Sink<'_> {
    fn object(&mut self, (line, column): (usize, usize), value: Value) {
        let origin = Origin { file: Arc::clone(&self.file), line, column };
        if self.is_listed
            && let Some(what) = foreign::description(&self.file, &value)
        {
            let location = SourceLocation::file(&self.file);
            return self.report(Problem::note(location, format!("skipped: {what}")));
        }
        if let Err(problem) = self.manifests.object(&origin, value) {
            self.report(problem);
        }
    }

    fn problem(&mut self, line: usize, column: usize, message: impl Into<String>) {
        let location =
            SourceLocation { file: Arc::clone(&self.file), line: Some(line), column: Some(column) };
        self.report(Problem::error(location, message));
    }

    fn report(&mut self, problem: Problem) {
        let Some(left) = self.problems_left.checked_sub(1) else { return };
        self.problems_left = left;
        self.manifests.problem(match (left, problem.location) {
            (0, Some(location)) => Problem::error(
                location,
                "too many problems in this file; further ones are not listed",
            ),
            (_, location) => Problem { location, ..problem },
        });
    }
}

/// Adds `kind` and `apiVersion` to an item of a typed list: the items of a `PodList` from an API
/// server have neither.
fn complete_item(list_kind: &str, list_version: Option<&str>, item: &mut Value) {
    let Value::Object(fields) = item else { return };
    let Some(kind) = list_kind.strip_suffix("List").filter(|kind| !kind.is_empty()) else { return };
    if fields.contains_key("kind") || fields.contains_key("apiVersion") {
        return;
    }
    if let Some(version) = list_version {
        fields.shift_insert(0, "kind".to_owned(), Value::from(kind));
        fields.shift_insert(0, "apiVersion".to_owned(), Value::from(version));
    }
}

/// Whether a kind is a list of objects; `items` has to be an array as well.
fn is_list_kind(kind: &str) -> bool {
    kind.ends_with("List")
}

/// Turns a number without a fraction into an integer, as Kubernetes does when it converts YAML
/// to JSON: `1e3` is 1000.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked first")]
fn number(value: f64) -> Option<Value> {
    const BOUND: f64 = 9_223_372_036_854_775_808.0; // 2^63, where `i64` ends
    if value.fract() == 0.0 && (-BOUND..BOUND).contains(&value) {
        return Some(Value::from(value as i64));
    }
    serde_json::Number::from_f64(value).map(Value::Number)
}
