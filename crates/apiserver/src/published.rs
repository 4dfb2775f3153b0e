//! What clients learn about the kinds of a logical cluster, written out once per set of kinds.
//!
//! Documents are built on first use, and dropped when a definition changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, ETAG, HeaderValue, IF_NONE_MATCH, VARY};
use http::{HeaderMap, Response, StatusCode};
use parking_lot::Mutex;
use sha2::{Digest, Sha512};

use crate::body::Body;
use crate::registry::Registry;
use crate::response::bytes;

/// A text, ready to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    pub bytes: Bytes,
    /// Of the text; differs when the text does.
    pub hash: Arc<str>,
}

/// The documents about one set of kinds.
#[derive(Debug)]
pub(crate) struct Published {
    pub registry: Arc<Registry>,
    documents: Mutex<BTreeMap<String, Document>>,
}

/// The documents about the kinds that are served now.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    current: Mutex<Option<Arc<Published>>>,
}

impl Shelf {
    pub(crate) fn about(&self, registry: Arc<Registry>) -> Arc<Published> {
        let mut current = self.current.lock();
        match &*current {
            Some(published) if Arc::ptr_eq(&published.registry, &registry) => Arc::clone(published),
            _ => {
                let fresh = Arc::new(Published { registry, documents: Mutex::default() });
                Arc::clone(current.insert(fresh))
            }
        }
    }
}

impl Published {
    /// The document of this name, made if nobody asked for it before. Names must be those of
    /// documents that exist, since each is kept.
    pub(crate) fn document(
        &self,
        name: &str,
        make: impl FnOnce(&Registry) -> Document,
    ) -> Document {
        if let Some(known) = self.documents.lock().get(name) {
            return known.clone();
        }
        // Built without the lock: two concurrent requests both build it, and no other waits.
        let document = make(&self.registry);
        self.documents.lock().insert(name.to_owned(), document.clone());
        document
    }
}

impl Document {
    pub(crate) fn new(text: String) -> Self {
        let hash = hash(text.as_bytes());
        Self { bytes: Bytes::from(text), hash }
    }

    /// The response: the document, or 304 if the client has it.
    pub(crate) fn respond(&self, media: &'static str, headers: &HeaderMap) -> Response<Body> {
        let tag = format!("\"{}\"", self.hash);
        let is_known = headers.get_all(IF_NONE_MATCH).iter().any(|value| names(value, &tag));
        let mut response = if is_known {
            Response::new(Body::empty())
        } else {
            bytes(200, media, self.bytes.clone())
        };
        if is_known {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        }
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public"));
        headers.insert(VARY, HeaderValue::from_static("Accept"));
        let tag = HeaderValue::try_from(tag).expect("hexadecimal digits in quotes");
        headers.insert(ETAG, tag);
        response
    }
}

/// Whether a list of tags names this one.
fn names(header: &HeaderValue, tag: &str) -> bool {
    let text = header.to_str().unwrap_or_default();
    text.split(',').map(str::trim).any(|one| one == "*" || one.trim_start_matches("W/") == tag)
}

/// In the form that Kubernetes gives its entity tags.
pub(crate) fn hash(bytes: &[u8]) -> Arc<str> {
    use std::fmt::Write;
    Sha512::digest(bytes)
        .iter()
        .fold(String::with_capacity(128), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02X}");
            text
        })
        .into()
}
