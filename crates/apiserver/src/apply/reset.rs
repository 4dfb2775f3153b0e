//! Fields that a request cannot set, whatever it carries: the status on the main resource,
//! everything else on a sub-resource. Nobody comes to own them that way.

use smol_str::SmolStr;

use super::element::Element;
use super::fields::{FieldSet, Node};

#[derive(Clone, Debug)]
pub enum Reset {
    /// These fields and all below them.
    Fields(FieldSet),
    /// All but what begins with one of these paths.
    AllBut(Vec<Vec<Step>>),
}

/// A step of a path that stands for several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Field(SmolStr),
    Any,
}

impl Reset {
    pub fn nothing() -> Self {
        Self::Fields(FieldSet::default())
    }

    /// The fields at these paths of names.
    pub fn names(paths: &[&[&str]]) -> Self {
        Self::Fields(FieldSet::of_names(paths))
    }

    pub(super) fn remove_from(&self, set: &mut FieldSet) {
        match self {
            Self::Fields(fields) if fields.is_empty() || set.is_empty() => {}
            Self::Fields(fields) => *set = set.recursive_difference(fields),
            Self::AllBut(paths) => {
                let paths: Vec<_> = paths.iter().map(Vec::as_slice).collect();
                *set = kept(set, &paths);
            }
        }
    }
}

fn kept(set: &FieldSet, paths: &[&[Step]]) -> FieldSet {
    let mut nodes = Vec::new();
    for node in set.nodes() {
        let rests: Vec<&[Step]> =
            paths.iter().filter_map(|path| after(path, &node.element)).collect();
        if rests.is_empty() {
            continue;
        }
        let mut subset = node.subset.clone();
        if rests.iter().all(|rest| !rest.is_empty()) {
            subset.children = kept(&subset.children, &rests);
        }
        if !subset.is_empty() {
            nodes.push(Node { element: node.element.clone(), subset });
        }
    }
    FieldSet::of_nodes(nodes)
}

/// What of the path is left below the element.
fn after<'p>(path: &'p [Step], element: &Element) -> Option<&'p [Step]> {
    let (first, rest) = path.split_first()?;
    let fits = match first {
        Step::Any => true,
        Step::Field(name) => element.is_field(name),
    };
    fits.then_some(rest)
}
