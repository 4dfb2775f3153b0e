//! Bodies that are compressed while they are sent.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::Body;

/// A body that is compressed while it is sent.
#[derive(Debug)]
pub struct Compressed {
    inner: Box<Body>,
    encoder: Option<GzEncoder<Vec<u8>>>,
}

impl Compressed {
    pub(crate) fn new(body: Body) -> Self {
        let encoder = GzEncoder::new(Vec::new(), Compression::fast());
        Self { inner: Box::new(body), encoder: Some(encoder) }
    }

    /// The next compressed chunk; `None` at the end.
    pub(crate) fn next_chunk(&mut self) -> Option<Bytes> {
        loop {
            let encoder = self.encoder.as_mut()?;
            let chunk = match &mut *self.inner {
                Body::Whole(bytes) => bytes.take(),
                Body::List(list) => list.next_chunk(),
                // Neither is ever put in here: see [`crate::compress`].
                Body::Watch(_) | Body::Compressed(_) => None,
            };
            let Some(chunk) = chunk else {
                let rest = self.encoder.take()?.finish().expect("writing to memory does not fail");
                return Some(Bytes::from(rest));
            };
            encoder.write_all(&chunk).expect("writing to memory does not fail");
            if !encoder.get_ref().is_empty() {
                return Some(Bytes::from(std::mem::take(encoder.get_mut())));
            }
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.encoder.is_none()
    }
}
