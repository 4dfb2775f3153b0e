//! Responses in the encoding that the client accepts.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WARNING};
use http::{Response, StatusCode};
use serde_json::Value;

use crate::accept::{Accept, Encoding, Form};
use crate::body::Body;
use crate::status::Status;

/// The metadata of an object alone.
pub fn partial(object: &Value) -> Value {
    serde_json::json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": object.get("metadata").cloned().unwrap_or_default(),
    })
}

/// Encodes a value as the client accepts it.
pub fn encoded(code: u16, value: &Value, accept: Accept) -> Response<Body> {
    let (media, text) = match (accept.encoding, accept.pretty) {
        (Encoding::Json, false) => ("application/json", value.to_string()),
        (Encoding::Json, true) => {
            ("application/json", serde_json::to_string_pretty(value).unwrap_or_default())
        }
        (Encoding::Yaml, _) => {
            ("application/yaml", serde_saphyr::to_string(value).unwrap_or_default())
        }
    };
    let mut text = text;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    bytes(code, media, Bytes::from(text))
}

pub fn bytes(code: u16, media: &'static str, bytes: Bytes) -> Response<Body> {
    with_media(code, media, Body::from(bytes))
}

pub fn with_media(code: u16, media: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() =
        StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// The response of an error.
pub fn refusal(status: &Status, accept: Accept) -> Response<Body> {
    let accept = Accept { form: Form::Object, ..accept };
    let mut response = encoded(status.code, &status.to_value(), accept);
    if status.details.retry_after_seconds > 0 {
        let seconds = HeaderValue::from(status.details.retry_after_seconds);
        response.headers_mut().insert(RETRY_AFTER, seconds);
    }
    response
}

/// The most bytes of all `Warning` headers together, and of each one if they exceed that.
const WARNINGS_MAX: usize = 4 << 10;
const WARNING_MAX: usize = 256;

/// Adds `Warning` headers, within the limits of headers.
pub fn add_warnings(response: &mut Response<Body>, warnings: Vec<String>) {
    let plain: Vec<String> = warnings
        .into_iter()
        .map(|warning| warning.chars().filter(|c| !c.is_control()).collect())
        .collect();
    let is_long = plain.iter().map(String::len).sum::<usize>() > WARNINGS_MAX;
    let mut room = WARNINGS_MAX;
    for warning in plain {
        let ends = warning.char_indices().map(|(at, c)| at + c.len_utf8());
        let most = if is_long { WARNING_MAX } else { WARNINGS_MAX };
        let end = ends.take_while(|end| *end <= most).last().unwrap_or(0);
        let escaped = warning[..end].replace('\\', "\\\\").replace('"', "\\\"");
        let Ok(value) = HeaderValue::from_bytes(format!("299 - \"{escaped}\"").as_bytes()) else {
            continue;
        };
        room = match room.checked_sub(end) {
            Some(room) => room,
            None => return,
        };
        response.headers_mut().append(WARNING, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_cut_only_where_they_are_too_many() {
        let added = |warnings: Vec<String>| -> Vec<usize> {
            let mut response = Response::new(Body::empty());
            add_warnings(&mut response, warnings);
            let values = response.headers().get_all(WARNING).iter();
            values.map(|value| value.len() - "299 - \"\"".len()).collect()
        };
        assert_eq!(added(vec!["x".repeat(300), "say \"so\"".to_owned()]), [300, 10]);
        assert_eq!(added(vec!["x".repeat(300); 20]), [256; 16]);
    }
}
