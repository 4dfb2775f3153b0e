//! From a definition to its rows in the registry.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use convoy_store::Revision;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use smol_str::{SmolStr, format_smolstr};

use crate::custom::{Column, Conversion, Custom, CustomForm, Scale};
use crate::object_meta::shelf_name;
use crate::registry::{Resource, Subresource, api_version};

const VERBS: [&str; 8] =
    ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

/// Longer than any request that writes may take.
const WRITES_TAKE_AT_MOST: SignedDuration = SignedDuration::from_secs(60);

/// What is known of the objects that a row will serve.
pub(crate) struct History<'h> {
    /// The row that stands at its place now.
    pub(crate) before: Option<&'h Arc<Resource>>,
    pub(crate) has_objects: bool,
    /// When the definition was written last.
    pub(crate) written: Revision,
    pub(crate) now: Timestamp,
}

/// The served versions of a definition.
pub(crate) fn rows(definition: &Value) -> Vec<Resource> {
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    let served = versions.filter(|version| version["served"] == true);
    served.map(|version| row(definition, version)).collect()
}

/// The version that objects are stored in, as a row, whether it is served or not.
pub(crate) fn storage_resource(definition: &Value) -> Option<Resource> {
    let mut versions = definition["spec"]["versions"].as_array()?.iter();
    Some(row(definition, versions.find(|version| version["storage"] == true)?))
}

/// From when on stored objects surely have the defaults of their schema.
///
/// Of a schema that has changed it is unknown how long requests go on that began before; a
/// minute later none does. Versions that differ cannot know by which of them an object was
/// written, so each of them fills in its defaults whenever it is read.
pub(crate) fn settle_defaults(mut row: Resource, history: &History<'_>) -> Resource {
    let Some(custom) = row.custom.as_mut().and_then(Arc::get_mut) else { return row };
    let before = history.before.and_then(|before| before.custom.as_deref());
    let (since, settle_at) = match before {
        _ if !custom.form.has_defaults() => (0, None),
        _ if custom.defaults_since.load(Ordering::Relaxed) == u64::MAX => (u64::MAX, None),
        Some(before) if Arc::ptr_eq(&before.form, &custom.form) => {
            (before.defaults_since.load(Ordering::Relaxed), before.defaults_settle_at)
        }
        Some(_) => (u64::MAX, history.now.checked_add(WRITES_TAKE_AT_MOST).ok()),
        None if history.has_objects => (history.written.0, None),
        None => (0, None),
    };
    custom.defaults_since = AtomicU64::new(since);
    custom.defaults_settle_at = settle_at;
    row
}

fn row(definition: &Value, version: &Value) -> Resource {
    let spec = &definition["spec"];
    let names = &spec["names"];
    let group = word(&spec["group"]);
    let plural = word(&names["plural"]);
    let custom = custom(definition, version);
    let mut subresources = Vec::new();
    if custom.has_status {
        subresources.push(Subresource { name: SmolStr::new("status"), kind: None });
    }
    if custom.scale.is_some() {
        let kind = Some(SmolStr::new("Scale"));
        subresources.push(Subresource { name: SmolStr::new("scale"), kind });
    }
    Resource {
        shelf: shelf_name(&group, &plural),
        version: word(&version["name"]),
        singular: word(&names["singular"]),
        kind: word(&names["kind"]),
        list_kind: word(&names["listKind"]),
        namespaced: spec["scope"] == "Namespaced",
        short_names: words(&names["shortNames"]),
        categories: words(&names["categories"]),
        verbs: VERBS.map(SmolStr::new).to_vec(),
        subresources,
        has_generation: true,
        put_creates: false,
        put_needs_version: true,
        delete_returns_object: false,
        group,
        plural,
        custom: Some(Arc::new(custom)),
    }
}

fn custom(definition: &Value, version: &Value) -> Custom {
    let spec = &definition["spec"];
    let group = word(&spec["group"]);
    let versions = || spec["versions"].as_array().into_iter().flatten();
    let storage = versions().find(|version| version["storage"] == true);
    let schema = &version["schema"]["openAPIV3Schema"];
    let differ = versions().any(|other| other["schema"] != version["schema"]);
    let selectable = version["selectableFields"].as_array().into_iter().flatten();
    Custom {
        definition: word(&definition["metadata"]["name"]),
        api_version: api_version(&group, &word(&version["name"])),
        storage_version: word(&storage.unwrap_or(version)["name"]),
        defaults_since: AtomicU64::new(if differ { u64::MAX } else { 0 }),
        defaults_settle_at: None,
        form: CustomForm::of(schema),
        conversion: Conversion::of(definition),
        has_status: version["subresources"]["status"].is_object(),
        scale: scale(&version["subresources"]["scale"]),
        columns: columns(&version["additionalPrinterColumns"]),
        selectable_fields: selectable
            .filter_map(|field| field["jsonPath"].as_str())
            .map(|path| SmolStr::new(path.trim_start_matches('.')))
            .collect(),
        terminating: !definition["metadata"]["deletionTimestamp"].is_null(),
        deprecation_warning: deprecation(definition, version),
    }
}

fn scale(scale: &Value) -> Option<Scale> {
    Some(Scale {
        spec_replicas: scale["specReplicasPath"].as_str()?.to_owned(),
        status_replicas: scale["statusReplicasPath"].as_str()?.to_owned(),
        label_selector: scale["labelSelectorPath"].as_str().map(str::to_owned),
    })
}

fn columns(columns: &Value) -> Vec<Column> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let columns = columns.as_array().into_iter().flatten();
    columns
        .map(|column| Column {
            name: text(&column["name"]),
            kind: text(&column["type"]),
            format: text(&column["format"]),
            description: text(&column["description"]),
            priority: column["priority"].as_i64().unwrap_or(0),
            json_path: text(&column["jsonPath"]),
        })
        .collect()
}

fn deprecation(definition: &Value, version: &Value) -> Option<String> {
    if version["deprecated"] != true {
        return None;
    }
    let given = version["deprecationWarning"].as_str().map(str::to_owned);
    Some(given.unwrap_or_else(|| {
        let spec = &definition["spec"];
        let group = spec["group"].as_str().unwrap_or_default();
        let name = version["name"].as_str().unwrap_or_default();
        let kind = spec["names"]["kind"].as_str().unwrap_or_default();
        format_smolstr!("{group}/{name} {kind} is deprecated").to_string()
    }))
}

fn word(value: &Value) -> SmolStr {
    SmolStr::new(value.as_str().unwrap_or_default())
}

fn words(list: &Value) -> Vec<SmolStr> {
    list.as_array().into_iter().flatten().map(word).collect()
}
