//! Label, field and namespace selection of lists and watches.

use convoy_plan::selector::Selector;
use convoy_store::Topic;
use smol_str::SmolStr;

use crate::fields::{FieldSelector, field_text};
use crate::kinds;
use crate::object_meta::Entry;
use crate::resource_request::ResourceRequest;
use crate::status::{ApiResult, Status};

/// Namespace, labels and fields that an object must have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    /// Empty: every namespace.
    pub(crate) namespace: SmolStr,
    pub(crate) labels: Selector,
    pub(crate) fields: FieldSelector,
    /// The field that is compared without reading the object.
    indexed: Option<&'static str>,
    /// Rewrites stored fields into those that the selector names.
    resource: Option<std::sync::Arc<crate::registry::Resource>>,
}

impl Selection {
    pub(crate) fn of(request: &ResourceRequest) -> ApiResult<Self> {
        let labels = request.query.get("labelSelector").unwrap_or_default();
        let labels = labels.parse().map_err(|error: convoy_plan::selector::SelectorError| {
            let begins = "unable to parse requirement";
            if error.message.starts_with(begins) {
                Status::bad_request(error.message)
            } else {
                Status::bad_request(format!("{begins}: {}", error.message))
            }
        })?;
        let fields = request.query.get("fieldSelector").unwrap_or_default();
        let fields = FieldSelector::parse(fields, &request.resource)?;
        let indexed = kinds::of(&request.resource).indexed_field();
        let resource = (fields.reads_content()).then(|| request.resource.clone());
        Ok(Self { namespace: SmolStr::new(request.namespace()), labels, fields, indexed, resource })
    }

    /// Whether labels or fields are asked for, so that a count of what follows is unknown.
    pub(crate) fn is_narrowed(&self) -> bool {
        !self.labels.is_empty() || !self.fields.is_empty()
    }

    /// What of the resource a watch need look at: the narrowest part that the store sorts by.
    pub(crate) fn topic(&self) -> Option<Topic> {
        let pinned = |field: &str| self.fields.pins(field).map(SmolStr::new);
        let mark = || self.indexed.and_then(pinned).map(Topic::Mark);
        let namespace = || Some(&self.namespace).filter(|name| !name.is_empty()).cloned();
        let named = pinned("metadata.name").map(Topic::Name);
        named.or_else(mark).or_else(|| namespace().map(Topic::Namespace))
    }

    pub(crate) fn matches(&self, entry: &Entry) -> bool {
        let key = &entry.key;
        if !self.namespace.is_empty() && key.namespace != self.namespace {
            return false;
        }
        self.labels.matches_with(|key| entry.meta.label(key)) && self.matches_fields(entry)
    }

    fn matches_fields(&self, entry: &Entry) -> bool {
        let key = &entry.key;
        if self.fields.is_empty() {
            return true;
        }
        let object = std::cell::OnceCell::new();
        self.fields.matches(&key.namespace, &key.name, |field| {
            if self.indexed == Some(field) {
                return entry.meta.node_name.clone();
            }
            let object = object.get_or_init(|| {
                let mut object = crate::encoding::read_entry(entry);
                if let Some(resource) = &self.resource {
                    crate::convert::from_stored(resource, &mut object);
                }
                object
            });
            match self.resource.as_deref().map(|resource| kinds::of(resource).field_sources(field))
            {
                None | Some([]) => field_text(object, field),
                Some(sources) => {
                    let mut texts = sources.iter().map(|source| field_text(object, source));
                    texts.find(|text| !text.is_empty()).unwrap_or_default()
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::TestServer;

    #[test]
    fn events_are_selected_by_who_reported_them_in_either_spelling() {
        let test = TestServer::new();
        test.create("/api/v1/namespaces", &json!({"metadata": {"name": "default"}}));
        let about = json!({"kind": "Pod", "name": "p", "namespace": "default"});
        let old = json!({"metadata": {"name": "old"}, "involvedObject": about, "reason": "R",
            "source": {"component": "old-reporter"}, "reportingComponent": "example.com/new"});
        test.create("/api/v1/namespaces/default/events", &old);
        let new = json!({"metadata": {"name": "new"}, "regarding": about, "reason": "R",
            "eventTime": "2026-01-01T00:00:00.000000Z", "type": "Normal", "action": "Act",
            "reportingController": "example.com/new", "reportingInstance": "i"});
        test.create("/apis/events.k8s.io/v1/namespaces/default/events", &new);
        for (source, name) in [("old-reporter", "old"), ("example.com/new", "new")] {
            let listed = test.get(&format!("/api/v1/events?fieldSelector=source%3D{source}"));
            let items = listed["items"].as_array().unwrap();
            assert_eq!((items.len(), &items[0]["metadata"]["name"]), (1, &json!(name)));
        }
    }
}
