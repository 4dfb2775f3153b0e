//! Gzip compression of large responses, for clients that accept it.

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, HeaderValue, VARY};
use http::{HeaderMap, Response};

use crate::body::{Body, Compressed};

/// The smallest body that is compressed, as in k8s.io/apiserver.
const BYTES_MIN: usize = 128 << 10;

/// Whether the client accepts gzip.
pub(crate) fn takes_gzip(request: &HeaderMap) -> bool {
    let accepted = request.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    accepted
        .flat_map(|value| value.split(','))
        .any(|coding| coding.split(';').next().is_some_and(|name| name.trim() == "gzip"))
}

/// Compresses a response if it is large and the client accepts gzip.
pub(crate) fn compress(request: &HeaderMap, response: Response<Body>) -> Response<Body> {
    let length = match response.body() {
        Body::Whole(bytes) => bytes.as_ref().map_or(0, Bytes::len),
        Body::List(list) => list.length(),
        Body::Watch(_) | Body::Compressed(_) => 0,
    };
    let is_done = response.headers().contains_key(CONTENT_ENCODING);
    if is_done || length <= BYTES_MIN || !takes_gzip(request) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    parts.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    parts.headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
    parts.headers.remove(CONTENT_LENGTH);
    Response::from_parts(parts, Body::Compressed(Compressed::new(body)))
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn sent(length: usize, accept: &'static str) -> (bool, Vec<u8>) {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(accept));
        let text = vec![b'x'; length];
        let response = compress(&headers, Response::new(Body::from(Bytes::from(text))));
        let is_gzip = response.headers().contains_key(CONTENT_ENCODING);
        let bytes = match response.into_body() {
            Body::Compressed(mut body) => {
                let mut all = Vec::new();
                while let Some(chunk) = body.next_chunk() {
                    all.extend_from_slice(&chunk);
                }
                all
            }
            Body::Whole(bytes) => bytes.unwrap_or_default().to_vec(),
            other => panic!("{other:?}"),
        };
        (is_gzip, bytes)
    }

    #[test]
    fn long_answers_come_back_whole() {
        let (is_gzip, bytes) = sent(BYTES_MIN + 1, "deflate, gzip;q=0.5");
        assert!(is_gzip && bytes.len() < 4_096);
        let mut text = Vec::new();
        flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut text).unwrap();
        assert_eq!(text.len(), BYTES_MIN + 1);
    }

    #[test]
    fn short_or_unwanted_compression_is_left_out() {
        assert!(!sent(BYTES_MIN, "gzip").0);
        assert!(!sent(BYTES_MIN + 1, "identity").0);
    }
}
