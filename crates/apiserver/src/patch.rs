//! Patches: which kinds there are, and the two that need no type.
//!
//! All of them are pure: an object and a patch give an object. The strategic merge is in
//! [`strategic`]; server-side apply, which also has to know who owns what, is elsewhere.

mod json;
pub mod strategic;

use serde_json::Value;

use crate::decode::go_json;
use crate::status::{ApiResult, Status};

pub use json::{json_patch, json_patch_of, parse_json_patch};
pub use strategic::strategic_merge;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchKind {
    Json,
    Merge,
    Strategic,
    Apply,
}

/// Why a patch gave no object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch itself makes no sense.
    #[error("{0}")]
    BadBody(String),
    /// It makes sense, and the object is not as it expects.
    #[error("{0}")]
    Failed(String),
    /// One of its `test` operations does not hold.
    #[error("{0}")]
    TestFailed(String),
    /// It cannot be carried out on an object of this kind, whatever is in it.
    #[error("{0}")]
    Impossible(String),
    #[error(
        "Unable to complete the copy, the accumulated size increase of copy is {copied}, exceeding the limit {most}"
    )]
    CopiesTooMuch { copied: usize, most: usize },
    #[error("The allowed maximum operations in a JSON patch is {most}, got {found}")]
    TooMany { found: usize, most: usize },
}

impl PatchKind {
    /// The kind that a Content-Type names; its parameters do not matter.
    pub fn from_content_type(content_type: &str) -> Option<Self> {
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        let kinds = [Self::Json, Self::Merge, Self::Strategic, Self::Apply];
        kinds.into_iter().find(|kind| kind.media_type().eq_ignore_ascii_case(media_type))
    }

    /// The kinds that a resource takes; custom ones know no strategy.
    pub(crate) fn taken(content_type: &str, is_custom: bool) -> ApiResult<Self> {
        let kind = Self::from_content_type(content_type);
        if !is_custom {
            return kind.ok_or_else(Status::unsupported_patch);
        }
        kind.filter(|kind| *kind != Self::Strategic).ok_or_else(|| {
            let taken = [Self::Json, Self::Merge, Self::Apply].map(Self::media_type);
            Status::unsupported_media(&taken)
        })
    }

    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json-patch+json",
            Self::Merge => "application/merge-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
            Self::Apply => "application/apply-patch+yaml",
        }
    }
}

/// The error of a patch that could not be applied to an object of at most so many bytes.
pub(crate) fn refusal(body_bytes_max: usize, error: &PatchError) -> Box<Status> {
    match error {
        PatchError::BadBody(why) => Status::bad_request(why.clone()),
        PatchError::Failed(why) | PatchError::TestFailed(why) => {
            tracing::debug!(%why, "could not apply a patch");
            Status::patch_failed()
        }
        PatchError::CopiesTooMuch { .. } => Status::unprocessable(&error.to_string()),
        PatchError::Impossible(why) => Status::failed(why.clone()),
        PatchError::TooMany { .. } => {
            let mut status = Status::too_large(body_bytes_max);
            status.message = error.to_string();
            status
        }
    }
}

/// Reads the body of a merge patch, strategic or not: a JSON object.
pub fn parse_merge_patch(body: &[u8]) -> Result<Value, PatchError> {
    match parse(body)? {
        patch @ Value::Object(_) => Ok(patch),
        other => {
            let shape = convoy_api::object::shape(&other);
            Err(PatchError::BadBody(format!(
                "error decoding patch: json: cannot unmarshal {shape} into Go value of type map[string]interface {{}}"
            )))
        }
    }
}

/// Reads a body that has to be JSON.
fn parse(body: &[u8]) -> Result<Value, PatchError> {
    serde_json::from_slice(body).map_err(|error| {
        let why = go_json::error(body).unwrap_or_else(|| error.to_string());
        PatchError::BadBody(format!("error decoding patch: {why}"))
    })
}

/// RFC 7386: null deletes, objects merge, everything else replaces.
pub fn merge_patch(current: &Value, patch: &Value) -> Value {
    let mut merged = current.clone();
    json_patch::merge(&mut merged, patch);
    merged
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_content_type_names_the_kind() {
        let kind = PatchKind::from_content_type;
        assert_eq!(kind("application/json-patch+json"), Some(PatchKind::Json));
        assert_eq!(kind("application/merge-patch+json; charset=utf-8"), Some(PatchKind::Merge));
        assert_eq!(kind("application/apply-patch+yaml"), Some(PatchKind::Apply));
        assert_eq!(kind("application/json"), None);
    }

    #[test]
    fn a_merge_patch_is_an_object() {
        assert!(parse_merge_patch(b"{}").is_ok());
        assert!(matches!(parse_merge_patch(b"[]"), Err(PatchError::BadBody(_))));
        assert!(matches!(parse_merge_patch(b"{"), Err(PatchError::BadBody(_))));
    }

    #[test]
    fn null_deletes_and_lists_replace() {
        let current = json!({"a": {"b": 1, "c": [1, 2]}, "d": 4});
        let patch = json!({"a": {"b": null, "c": [3]}, "e": {"f": null, "g": 1}});
        let wanted = json!({"a": {"c": [3]}, "d": 4, "e": {"g": 1}});
        assert_eq!(merge_patch(&current, &patch), wanted);
    }
}
