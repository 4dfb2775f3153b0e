//! Conflicts: what an apply would change that others own.

use convoy_api::schema::go;

use super::element::Element;
use super::fields::FieldSet;
use super::managers::{Manager, Operation};

/// All conflicts of one apply, by manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflicts {
    found: Vec<Conflict>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Conflict {
    manager: Manager,
    path: Vec<Element>,
}

/// One entry of a Status' `details.causes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    pub reason: &'static str,
    pub message: String,
    pub field: String,
}

impl Conflicts {
    pub(super) fn new(mut sets: Vec<(Manager, FieldSet)>) -> Self {
        sets.sort_by(|(a, _), (b, _)| a.cmp_identifier(b));
        let mut found = Vec::new();
        for (manager, set) in sets {
            set.for_each(&mut Vec::new(), &mut |path| {
                found.push(Conflict { manager: manager.clone(), path: path.to_vec() });
            });
        }
        Self { found }
    }

    /// Those on paths that are not in `allowed`.
    pub(super) fn without(&self, allowed: &FieldSet) -> Self {
        let found = self.found.iter().filter(|conflict| !allowed.has(&conflict.path));
        Self { found: found.cloned().collect() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The message of the Status.
    pub fn message(&self) -> String {
        if let [Conflict { manager, path }] = self.found.as_slice() {
            let (manager, path) = (shown(manager), text(path));
            return format!("Apply failed with 1 conflict: conflict with {manager}: {path}");
        }
        let mut lines = Vec::new();
        for of_one in self.found.chunk_by(|a, b| a.manager.is(&b.manager)) {
            lines.push(format!("conflicts with {}:", shown(&of_one[0].manager)));
            lines.extend(of_one.iter().map(|conflict| format!("- {}", text(&conflict.path))));
        }
        format!("Apply failed with {} conflicts: {}", self.found.len(), lines.join("\n"))
    }

    pub fn causes(&self) -> impl Iterator<Item = Cause> {
        self.found.iter().map(|conflict| Cause {
            reason: "FieldManagerConflict",
            message: format!("conflict with {}", shown(&conflict.manager)),
            field: text(&conflict.path),
        })
    }
}

/// `"m2"`, `"test" with subresource "status" using v1`.
fn shown(manager: &Manager) -> String {
    let mut text = go::quoted(&manager.name);
    if !manager.subresource.is_empty() {
        text = format!("{text} with subresource {}", go::quoted(&manager.subresource));
    }
    if manager.operation == Operation::Update {
        text = format!("{text} using {}", manager.api_version);
    }
    text
}

fn text(path: &[Element]) -> String {
    path.iter().map(ToString::to_string).collect()
}
