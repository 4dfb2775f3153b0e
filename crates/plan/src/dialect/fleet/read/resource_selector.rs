//! Resource selectors: which of the hub's objects a placement asks for.

use convoy_api::fleet::placement::ResourceSelectorTerm;
use convoy_api::kinds::NAMESPACE;
use convoy_api::{GroupKind, Object, ObjectKey};
use serde_json::Value;
use smol_str::SmolStr;

use crate::dialect::fleet::read::placement::{Placement, list, text};
use crate::selector::Selector;

/// One entry of `resourceSelectors`.
pub(crate) struct ResourceSelector<'p> {
    pub(crate) kind: GroupKind,
    pub(crate) version: &'p str,
    pub(crate) name: &'p str,
    pub(crate) labels: Option<Selector>,
    pub(crate) scope: &'p str,
}

impl<'p> ResourceSelector<'p> {
    pub(crate) fn all(placement: &'p Placement<'_>) -> Vec<Self> {
        placement.resource_selectors.iter().map(Self::read).collect()
    }

    fn read(term: &'p ResourceSelectorTerm) -> Self {
        let kind = GroupKind { group: SmolStr::new(&term.group), kind: SmolStr::new(&term.kind) };
        Self {
            kind,
            version: &term.version,
            name: term.name.as_deref().unwrap_or_default(),
            labels: Selector::from_view(term.label_selector.as_ref()).ok(),
            scope: term.selection_scope.as_deref().unwrap_or_default(),
        }
    }

    /// The namespace whose contents the other entries of a placement select from, if there is one.
    pub(crate) fn within(all: &[Self]) -> Option<&'p str> {
        let inside = |it: &&Self| it.scope == "NamespaceWithResourceSelectors" && it.is_namespace();
        all.iter().find(inside).map(|it| it.name)
    }

    pub(crate) fn is_namespace(&self) -> bool {
        self.kind == NAMESPACE
    }

    pub(crate) fn takes_contents(&self) -> bool {
        self.is_namespace() && is_whole(self.scope)
    }

    pub(crate) fn matches(&self, object: &Object) -> bool {
        match self.name {
            "" => self.labels.as_ref().is_some_and(|labels| labels.matches(object)),
            name => object.name() == name,
        }
    }
}

/// Whether a namespace is selected with everything in it.
fn is_whole(scope: &str) -> bool {
    matches!(scope, "" | "NamespaceWithResources")
}

/// Whether an entry of a placement may ask for an object of this name, or for anything in its
/// namespace. Every object of the hub that changes is held against every placement, so this reads
/// the few fields that it needs, and no view of the whole.
pub(crate) fn any_may_ask_for(placement: &Object, changed: &ObjectKey) -> bool {
    list(placement.spec(), "resourceSelectors").iter().any(|term: &Value| {
        let [group, kind, name] = ["group", "kind", "name"].map(|field| text(term, field));
        let is_named = |wanted: &SmolStr| name.is_empty() || name == wanted.as_str();
        let is_kind = changed.kind.group == group && changed.kind.kind == kind;
        let contents = !changed.namespace.is_empty()
            && NAMESPACE.group == group
            && NAMESPACE.kind == kind
            && is_whole(text(term, "selectionScope"));
        contents && is_named(&changed.namespace) || is_kind && is_named(&changed.name)
    })
}
