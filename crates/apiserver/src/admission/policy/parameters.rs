//! Parameter objects of admission policies, as their bindings reference them.

use convoy_api::object::member::text;
use convoy_plan::selector::Selector;
use serde_json::Value;

use super::{Binding, Policy};
use crate::admission::audience::Subject;
use crate::encoding;
use crate::registry::Resource;

/// Which objects a binding brings to its policy.
#[derive(Debug)]
pub(super) struct Reference {
    name: String,
    namespace: String,
    selector: Option<Selector>,
    /// Whether requests pass where there is none.
    may_miss: bool,
}

impl Reference {
    pub(super) fn read(reference: &Value) -> Option<Self> {
        let selector = &reference["selector"];
        Some(Self {
            name: text(reference, "name").to_owned(),
            namespace: text(reference, "namespace").to_owned(),
            selector: if selector.is_object() {
                Some(Selector::from_value(selector).ok()?)
            } else {
                None
            },
            may_miss: reference["parameterNotFoundAction"] == "Allow",
        })
    }

    /// The objects that it refers to. Without a namespace of its own, those beside the request's
    /// object.
    fn objects(&self, subject: &Subject<'_>, resource: &Resource) -> Vec<Value> {
        let request = subject.request;
        let snapshot = request.server.store.snapshot();
        let shelf = request.cluster.shelf(resource);
        let namespace = match (resource.namespaced, self.namespace.as_str()) {
            (false, _) => "",
            (true, "") => request.namespace(),
            (true, named) => named,
        };
        let Some(selector) = &self.selector else {
            let found = snapshot.get(&shelf.key(namespace, &self.name));
            return found.map(|entry| encoding::read_entry(entry)).into_iter().collect();
        };
        let chosen = snapshot
            .list_namespace(&shelf, namespace)
            .filter(|entry| selector.matches_with(|label| entry.meta.label(label)));
        chosen.map(|entry| encoding::read_entry(entry)).collect()
    }
}

/// The parameters of a binding; none if the policy has no `paramKind`.
pub(super) fn parameters<R>(
    policy: &Policy<R>,
    binding: &Binding,
    subject: &Subject<'_>,
) -> Result<Option<Vec<Value>>, String> {
    let Some((api_version, kind)) = &policy.parameters else { return Ok(None) };
    let Some(reference) = &binding.parameters else { return Ok(None) };
    let resource = subject.request.registry.of_kind(api_version, kind);
    let resource = resource.ok_or_else(|| {
        format!("failed to find resource referenced by paramKind: '{api_version}, Kind={kind}'")
    })?;
    let found = reference.objects(subject, resource);
    if found.is_empty() && !reference.may_miss {
        return Err(
            "no params found for policy binding with `Deny` parameterNotFoundAction".to_owned()
        );
    }
    Ok(Some(found))
}
