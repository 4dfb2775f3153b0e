//! Custom kinds whose versions differ by more than their name: a webhook of the definition
//! converts between them.
//!
//! Reading is synchronous and calls no webhook, so handlers convert objects first
//! ([`prepare`]); what came of it stays with the request. Writes convert before they store.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::convert::{from_stored, to_stored};
use crate::custom::{Conversion, Custom};
use crate::encoding;
use crate::growth;
use crate::object_meta::Entry;
use crate::registry::{self, Resource};
use crate::resource_request::ResourceRequest;
use crate::status::{ApiResult, Status};
use crate::surroundings::new_uid;

/// How long a webhook may take to convert.
const TIMEOUT: Duration = Duration::from_secs(30);

impl Conversion {
    /// Objects, which are in other versions, in the wanted one.
    async fn convert(
        &self,
        request: &ResourceRequest,
        objects: &[Value],
        wanted: &str,
    ) -> ApiResult<Vec<Value>> {
        let uid = new_uid(&*request.server.surroundings);
        let review = json!({
            "kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1",
            "request": {"uid": uid, "desiredAPIVersion": wanted, "objects": objects},
        });
        let from = objects.first().map_or("", |object| object["apiVersion"].as_str().unwrap_or(""));
        let whose = format!("conversion webhook for {from}, Kind={}", request.resource.kind);
        let failed = |why: String| Status::failed(format!("{whose} failed: {why}"));
        let answer = self.client.call(request, &review, TIMEOUT).await.map_err(failed)?;
        let converted = read(&answer, &uid, objects.len()).map_err(failed)?;
        let pairs = objects.iter().zip(converted).enumerate();
        pairs
            .map(|(index, (before, after))| {
                checked(before, after, wanted).map_err(|why| {
                    let place = format!("returned invalid converted object at index {index}");
                    Status::failed(format!("{whose} {place}: {why}"))
                })
            })
            .collect()
    }
}

/// The converted objects of a response, or the reason of the failure.
fn read(answer: &Value, uid: &str, count: usize) -> Result<Vec<Value>, String> {
    if answer["kind"] != "ConversionReview" || answer["apiVersion"] != "apiextensions.k8s.io/v1" {
        return Err(format!(
            "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got {}, Kind={}",
            answer["apiVersion"].as_str().unwrap_or_default(),
            answer["kind"].as_str().unwrap_or_default()
        ));
    }
    let response = &answer["response"];
    if response["uid"] != uid {
        return Err(format!("expected response.uid={uid:?}, got {}", response["uid"]));
    }
    if response["result"]["status"] != "Success" {
        let message = response["result"]["message"].as_str().filter(|text| !text.is_empty());
        return Err(message.unwrap_or("the server gave no reason").to_owned());
    }
    let objects = response["convertedObjects"].as_array().cloned().unwrap_or_default();
    if objects.len() != count {
        return Err(format!("returned {} objects, expected {count}", objects.len()));
    }
    Ok(objects)
}

/// What a webhook made of an object: of the wanted version, and the same object still. Of its
/// metadata only labels and annotations are the webhook's to change.
fn checked(before: &Value, mut after: Value, wanted: &str) -> Result<Value, String> {
    if after["apiVersion"] != wanted {
        let given = after["apiVersion"].as_str().unwrap_or_default();
        return Err(format!("invalid groupVersion (expected {wanted}, received {given})"));
    }
    if after["kind"] != before["kind"] {
        let (expected, given) = (&before["kind"], &after["kind"]);
        return Err(format!("invalid kind (expected {expected}, received {given})"));
    }
    for field in ["name", "namespace", "uid"] {
        if after["metadata"][field] != before["metadata"][field] {
            return Err(format!("metadata.{field} must not be changed"));
        }
    }
    let mut metadata = before["metadata"].clone();
    for field in ["labels", "annotations"] {
        match (after["metadata"].get(field).filter(|value| !value.is_null()), &mut metadata) {
            (Some(value), _) => metadata[field] = value.clone(),
            (None, Value::Object(fields)) => drop(fields.shift_remove(field)),
            (None, _) => {}
        }
    }
    after["metadata"] = metadata;
    Ok(after)
}

/// The conversion webhook that a request needs to show objects, if any.
fn converter(request: &ResourceRequest) -> Option<(&Custom, &Conversion)> {
    let custom = request.resource.custom.as_deref()?;
    Some((custom, custom.conversion.as_ref()?))
}

/// Has objects converted that are stored in another version than the request sees them in.
pub(crate) async fn prepare(request: &ResourceRequest, entries: &[Arc<Entry>]) -> ApiResult<()> {
    let Some((custom, conversion)) = converter(request) else { return Ok(()) };
    let is_open = |entry: &&Arc<Entry>| {
        !custom.is_in_version(entry) && !request.findings.has_converted(entry)
    };
    let open: Vec<&Arc<Entry>> = entries.iter().filter(is_open).collect();
    if open.is_empty() {
        return Ok(());
    }
    let objects: Vec<Value> = open.iter().map(|entry| encoding::read_entry(entry)).collect();
    let converted = conversion.convert(request, &objects, &custom.api_version).await?;
    for (entry, mut object) in open.into_iter().zip(converted) {
        custom.form.schema.prune(&mut object);
        if !request.default_read(custom, &mut object) {
            let limit = request.server.limits.body_bytes_max;
            return Err(Status::failed(format!(
                "the objects that the conversion webhook for {}, Kind={} returned are too large \
                 with the defaults of their schema: limit is {limit} for each; list fewer of them",
                custom.api_version, request.resource.kind
            )));
        }
        request.findings.keep_converted(entry, object);
    }
    Ok(())
}

/// An object in another version of its resource.
pub(crate) async fn between(
    request: &ResourceRequest,
    from: &Resource,
    to: &Resource,
    object: &Value,
) -> ApiResult<Value> {
    let custom = to.custom.as_deref();
    if let Some((custom, conversion)) =
        custom.and_then(|custom| Some((custom, custom.conversion.as_ref()?)))
    {
        let objects = std::slice::from_ref(object);
        let converted = conversion.convert(request, objects, &custom.api_version).await?;
        let mut object = converted.into_iter().next().unwrap_or_default();
        growth::default(request.object_bytes_max(), custom, &mut object)?;
        return Ok(object);
    }
    let mut object = object.clone();
    to_stored(from, &mut object);
    from_stored(to, &mut object);
    Ok(object)
}

/// An object of a request in the version that it is stored in; none if that is its own.
pub(crate) async fn to_storage(
    request: &ResourceRequest,
    object: &Value,
) -> ApiResult<Option<Value>> {
    let Some((custom, conversion)) = converter(request) else { return Ok(None) };
    let wanted = registry::api_version(&request.resource.group, &custom.storage_version);
    if wanted == custom.api_version {
        return Ok(None);
    }
    let converted = conversion.convert(request, std::slice::from_ref(object), &wanted).await?;
    Ok(converted.into_iter().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn widget(version: &str, more: &Value) -> Value {
        let mut metadata =
            json!({"name": "w", "namespace": "default", "uid": "u", "generation": 3});
        for (field, value) in more.as_object().unwrap() {
            metadata[field] = value.clone();
        }
        json!({"apiVersion": format!("example.com/{version}"), "kind": "Widget", "metadata": metadata})
    }

    #[test]
    fn an_answer_is_the_same_objects_in_another_version() {
        let answer = |response: Value| {
            json!({"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1",
                "response": response})
        };
        let good = json!({"uid": "1", "result": {"status": "Success"}, "convertedObjects": [{}]});
        assert_eq!(read(&answer(good.clone()), "1", 1).unwrap().len(), 1);
        assert!(read(&answer(good.clone()), "2", 1).unwrap_err().contains("response.uid"));
        assert!(read(&answer(good), "1", 2).unwrap_err().contains("expected 2"));
        let bad = json!({"uid": "1", "result": {"status": "Failure", "message": "no"}});
        assert_eq!(read(&answer(bad), "1", 1).unwrap_err(), "no");
        assert!(read(&json!({"kind": "Other"}), "1", 1).is_err());
    }

    #[test]
    fn a_webhook_changes_labels_and_annotations_of_the_metadata_and_nothing_else() {
        let before = widget("v1", &json!({"labels": {"a": "1"}}));
        let after = widget("v2", &json!({"annotations": {"b": "2"}, "generation": 9}));
        let checked_metadata = |after| checked(&before, after, "example.com/v2");
        let metadata = checked_metadata(after).unwrap()["metadata"].clone();
        assert_eq!(metadata["generation"], 3);
        assert_eq!(metadata["annotations"]["b"], "2");
        assert!(metadata.get("labels").is_none());
        assert!(checked_metadata(widget("v3", &json!({}))).is_err());
        assert!(checked_metadata(widget("v2", &json!({"name": "other"}))).is_err());
    }
}
