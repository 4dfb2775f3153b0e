//! Resource selectors: which of the hub's objects a placement asks for.

use convoy_api::fleet::placement::ResourceSelectorTerm;
use convoy_api::kinds::NAMESPACE;
use convoy_api::{GroupKind, Object};
use smol_str::SmolStr;

use crate::dialect::fleet::read::placement::Placement;
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

    pub(crate) fn is_namespace(&self) -> bool {
        self.kind == NAMESPACE
    }

    pub(crate) fn takes_contents(&self) -> bool {
        self.is_namespace() && matches!(self.scope, "" | "NamespaceWithResources")
    }

    pub(crate) fn matches(&self, object: &Object) -> bool {
        match self.name {
            "" => self.labels.as_ref().is_some_and(|labels| labels.matches(object)),
            name => object.name() == name,
        }
    }
}
