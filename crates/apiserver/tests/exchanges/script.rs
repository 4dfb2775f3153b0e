//! Scripts: lists of requests, with values carried over from earlier answers.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

/// A file of requests that are sent in order.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) name: String,
    pub(crate) steps: Vec<Step>,
}

/// One request. `$name` in its texts stands for a value that was kept, `$ns` for the namespace
/// of the script.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    /// Method and path.
    pub(crate) ask: String,
    /// Who asks: a user of the token file, or `nobody`.
    #[serde(default = "admin", rename = "as")]
    pub(crate) user: String,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    /// A short name for the type of the body (see [`media_type`]), or the type itself.
    #[serde(rename = "type")]
    pub(crate) media_type: Option<String>,
    pub(crate) accept: Option<String>,
    /// The body, which is sent as JSON.
    pub(crate) body: Option<Value>,
    /// The body as it stands.
    pub(crate) text: Option<String>,
    /// A body of so many bytes.
    pub(crate) bytes: Option<usize>,
    /// Values of the answer that later requests use, by pointer.
    #[serde(default)]
    pub(crate) keep: BTreeMap<String, String>,
    /// The request is repeated until the answer has these values, or this code.
    pub(crate) until: Option<Until>,
    /// The only parts of the answer that are compared, by pointer; an empty list: the code alone.
    pub(crate) only: Option<Vec<String>>,
    /// Where ours may differ, and why.
    #[serde(default)]
    pub(crate) differs: Vec<Differs>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Until {
    pub(crate) code: Option<u16>,
    #[serde(default)]
    pub(crate) has: BTreeMap<String, Value>,
}

/// A known difference. Its reason stands in `docs/reference/apiserver.md`, word for word.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Differs {
    pub(crate) because: String,
    /// Pointers into the answer; nothing: all of it.
    #[serde(default)]
    pub(crate) at: Vec<String>,
}

fn admin() -> String {
    "admin".to_owned()
}

impl Script {
    pub(crate) fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        let steps: Vec<Step> = serde_saphyr::from_str(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        Self { name, steps }
    }

    /// The namespace that the objects of the script are in.
    pub(crate) fn namespace(&self) -> String {
        format!("x-{}", self.name)
    }
}

impl Step {
    pub(crate) fn method(&self) -> &str {
        self.ask.split_once(' ').expect("method and path").0
    }

    pub(crate) fn path(&self) -> &str {
        self.ask.split_once(' ').expect("method and path").1
    }

    pub(crate) fn is_watch(&self) -> bool {
        self.path().contains("watch=") || self.path().contains("/watch/")
    }
}

/// The type of a body, by its short name.
pub(crate) fn media_type(name: &str) -> &str {
    match name {
        "json" => "application/json",
        "yaml" => "application/yaml",
        "merge" => "application/merge-patch+json",
        "strategic" => "application/strategic-merge-patch+json",
        "list" => "application/json-patch+json",
        "apply" => "application/apply-patch+yaml",
        other => other,
    }
}

/// What is accepted, by its short name.
pub(crate) fn accepted(name: &str) -> &str {
    match name {
        "table" => "application/json;as=Table;v=v1;g=meta.k8s.io",
        "metadata" => "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
        "metadatas" => "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
        "discovery" => {
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
        }
        other => other,
    }
}
