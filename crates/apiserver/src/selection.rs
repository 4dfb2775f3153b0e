//! Label, field and namespace selection of lists and watches.

use convoy_plan::selector::Selector;
use convoy_store::Topic;
use smol_str::SmolStr;

use crate::fields::{FieldSelector, field_text};
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
    /// Pods: fields are compared in the stored spelling, and the node without reading.
    is_pod: bool,
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
        let is_pod = request.resource.is("", "pods");
        let resource = (fields.reads_content()).then(|| request.resource.clone());
        Ok(Self { namespace: SmolStr::new(request.namespace()), labels, fields, is_pod, resource })
    }

    /// Whether labels or fields are asked for, so that a count of what follows is unknown.
    pub(crate) fn is_narrowed(&self) -> bool {
        !self.labels.is_empty() || !self.fields.is_empty()
    }

    /// What of the resource a watch need look at: the narrowest part that the store sorts by.
    pub(crate) fn topic(&self) -> Option<Topic> {
        let pinned = |field: &str| self.fields.pins(field).map(SmolStr::new);
        let node = || pinned("spec.nodeName").filter(|_| self.is_pod).map(Topic::Mark);
        let namespace = || Some(&self.namespace).filter(|name| !name.is_empty()).cloned();
        let named = pinned("metadata.name").map(Topic::Name);
        named.or_else(node).or_else(|| namespace().map(Topic::Namespace))
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
            if self.is_pod && field == "spec.nodeName" {
                return entry.meta.node_name.clone();
            }
            let object = object.get_or_init(|| {
                let mut object = crate::encoding::read_entry(entry);
                if let Some(resource) = &self.resource {
                    crate::convert::from_stored(resource, &mut object);
                }
                object
            });
            match field {
                "source" => field_text(object, "source.component"),
                field => field_text(object, field),
            }
        })
    }
}
