//! Reading bags of Kubernetes objects: YAML, JSON, lists, directories, globs and standard
//! input, each object with the place it came from.
//!
//! Reading never fails as a whole. What cannot be read becomes a [`Problem`] with its place,
//! and everything else is still there. Hostile input is bounded: file size, nesting, the
//! number of values, and what aliases may expand to.

mod bag;
mod json;
mod place;
mod source;
mod text;
mod yaml;

use std::sync::Arc;

use serde_json::Value;

pub use bag::Bag;
pub use place::{Origin, Place, Problem};

/// What one file may ask of the machine.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Larger files are refused. Keeps `-f /dev/zero` from filling the memory.
    pub file_bytes: u64,
    /// Maps, lists and scalars in one file; each costs about 100 bytes of memory. An ordinary
    /// file of 100 MB has three million.
    pub values: usize,
    /// What aliases of one YAML file may expand to, in bytes of memory.
    pub alias_bytes: usize,
}

/// How deep maps and lists may be nested. The deepest custom resource definitions in use have
/// about half of it, and every recursive function below stays far from the end of the stack.
pub const DEPTH_MAX: usize = 100;

impl Default for Limits {
    fn default() -> Self {
        Self { file_bytes: 512 << 20, values: 20_000_000, alias_bytes: 256 << 20 }
    }
}

/// Reads everything that `sources` name: files, directories, globs, and `-` for standard input.
pub fn read(sources: &[std::path::PathBuf], limits: Limits) -> Bag {
    let mut bag = Bag::default();
    for file in source::files(sources, &mut bag) {
        match file.read(limits.file_bytes) {
            Ok(bytes) => read_bytes(&file.name, bytes, limits, &mut bag),
            Err(problem) => bag.problem(problem),
        }
    }
    bag
}

/// Reads one file's content into `bag`. `name` is what messages call it.
pub fn read_bytes(name: &str, bytes: Vec<u8>, limits: Limits, bag: &mut Bag) {
    let name: Arc<str> = Arc::from(name);
    let text = match text::decode(&name, bytes) {
        Ok(text) => text,
        Err(problem) => return bag.problem(problem),
    };
    let problems_left = PROBLEMS_MAX;
    let mut sink = Sink { file: name, bag, values_left: limits.values, problems_left };
    if json::looks_like_json(&text) {
        json::read(&text, limits, &mut sink);
    } else {
        yaml::read(&text, 0, limits, &mut sink);
    }
}

/// Where the two readers put what they find in one file.
struct Sink<'b> {
    file: Arc<str>,
    bag: &'b mut Bag,
    values_left: usize,
    problems_left: usize,
}

/// How many problems of one file are told; after so many the file as a whole is at fault.
const PROBLEMS_MAX: usize = 100;

impl Sink<'_> {
    fn object(&mut self, line: usize, value: Value) {
        let origin = Origin { file: Arc::clone(&self.file), line };
        if let Err(problem) = self.bag.object(&origin, value) {
            self.tell(problem);
        }
    }

    fn problem(&mut self, line: usize, column: usize, message: impl Into<String>) {
        let place = Place { file: Arc::clone(&self.file), line: Some(line), column: Some(column) };
        self.tell(Problem::error(place, message));
    }

    fn tell(&mut self, problem: Problem) {
        let Some(left) = self.problems_left.checked_sub(1) else { return };
        self.problems_left = left;
        self.bag.problem(match (left, problem.place) {
            (0, Some(place)) => Problem::error(place, "the problems from here on are not listed"),
            (_, place) => Problem { place, ..problem },
        });
    }
}

/// Fills in what the items of a typed list, as an API server answers it, leave out: a
/// `PodList` has items without `kind` and `apiVersion`.
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

/// A number with nothing after the point is an integer, as it is after Kubernetes' own way
/// from YAML through JSON: `1e3` is 1000.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked first")]
fn number(value: f64) -> Option<Value> {
    const BOUND: f64 = 9_223_372_036_854_775_808.0; // 2^63, where `i64` ends
    if value.fract() == 0.0 && (-BOUND..BOUND).contains(&value) {
        return Some(Value::from(value as i64));
    }
    serde_json::Number::from_f64(value).map(Value::Number)
}
