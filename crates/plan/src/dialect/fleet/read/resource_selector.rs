//! Resource selectors: which of the hub's objects a placement asks for.

use convoy_api::kinds::NAMESPACE;
use convoy_api::{GroupKind, Object};
use serde_json::Value;
use smol_str::SmolStr;

use crate::dialect::fleet::read::placement::{Placement, field, list, text};
use crate::selector::Selector;

/// One entry of `resourceSelectors`.
pub(crate) struct ResourceSelector<'w> {
    pub(crate) kind: GroupKind,
    pub(crate) name: &'w str,
    pub(crate) labels: Option<Selector>,
    pub(crate) scope: &'w str,
}

impl<'w> ResourceSelector<'w> {
    pub(crate) fn all(placement: &Placement<'w>) -> Vec<Self> {
        let selectors = list(placement.object.spec(), "resourceSelectors");
        selectors.iter().map(Self::read).collect()
    }

    fn read(raw: &'w Value) -> Self {
        let kind = GroupKind {
            group: SmolStr::new(text(raw, "group")),
            kind: SmolStr::new(text(raw, "kind")),
        };
        Self {
            kind,
            name: text(raw, "name"),
            labels: Selector::from_value(field(raw, "labelSelector")).ok(),
            scope: text(raw, "selectionScope"),
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
