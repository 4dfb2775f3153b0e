//! Bodies of responses: a whole text, a list written from shared bytes, or a watch stream.

mod compressed;

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;

use crate::connections::ClientConnection;
use crate::encoding::{View, write_entry};
use crate::object_meta::Entry;

pub use compressed::Compressed;

/// The body of a response.
#[derive(Debug)]
pub enum Body {
    Whole(Option<Bytes>),
    List(ListBody),
    Watch(Box<dyn Live>),
    Compressed(Compressed),
}

/// A stream of text without an end that could be waited for: a watch.
pub trait Live: fmt::Debug + Send {
    /// The next stretch of text; none when it is over.
    fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>>;

    /// The connection that is closed if the client neither reads nor is told that it should.
    fn attach(&self, connection: &Arc<ClientConnection>);

    /// Keeps a guard, which acts when it is dropped, until the stream is over.
    fn keep(&mut self, guard: Box<dyn Send>);
}

/// A list that is written as it is sent, so that a long one never stands in memory twice.
#[derive(Debug)]
pub struct ListBody {
    /// What precedes the items; taken when sent.
    opening: Option<Vec<u8>>,
    entries: std::vec::IntoIter<Arc<Entry>>,
    api_version: Option<String>,
    bare: bool,
    closed: bool,
    /// Held while a large list is being sent.
    pub(crate) permit: Option<OwnedSemaphorePermit>,
}

/// How much is written before it is handed on.
const CHUNK: usize = 64 << 10;

impl Body {
    pub fn empty() -> Self {
        Self::Whole(None)
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self::Whole(Some(bytes))
    }
}

impl ListBody {
    /// `opening` ends with the bracket that opens the items.
    pub fn new(
        opening: Vec<u8>,
        entries: Vec<Arc<Entry>>,
        api_version: Option<String>,
        bare: bool,
    ) -> Self {
        let entries = entries.into_iter();
        Self { opening: Some(opening), entries, api_version, bare, closed: false, permit: None }
    }

    /// About how long the text is.
    pub(crate) fn length(&self) -> usize {
        self.entries.as_slice().iter().map(|entry| entry.value.len()).sum()
    }

    /// The next stretch of text; none at the end.
    pub fn next_chunk(&mut self) -> Option<Bytes> {
        if self.closed {
            return None;
        }
        let mut is_first = self.opening.is_some();
        let mut out = self.opening.take().unwrap_or_default();
        let view = View { api_version: self.api_version.as_deref(), bare: self.bare };
        while out.len() < CHUNK {
            let Some(entry) = self.entries.next() else {
                out.extend_from_slice(b"]}\n");
                self.closed = true;
                break;
            };
            if !is_first {
                out.push(b',');
            }
            is_first = false;
            write_entry(&mut out, &entry, entry.modified.0, view);
        }
        Some(Bytes::from(out))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let chunk = match self.get_mut() {
            Self::Whole(bytes) => bytes.take(),
            Self::List(list) => list.next_chunk(),
            Self::Watch(follow) => std::task::ready!(follow.poll_chunk(context)),
            Self::Compressed(body) => body.next_chunk(),
        };
        Poll::Ready(chunk.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::List(list) => list.closed,
            Self::Watch(_) => false,
            Self::Compressed(body) => body.is_done(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::List(_) | Self::Watch(_) | Self::Compressed(_) => SizeHint::default(),
        }
    }
}
