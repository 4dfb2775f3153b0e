//! Reads events as they are written, from any revision that is still retained.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::entry::{Event, Metadata, Revision};
use crate::log::{Found, Log};
use crate::published::Published;
use crate::topic::Topic;

/// A place in a log of events. It holds no events of its own, so it may be as slow as it likes.
#[derive(Debug)]
pub struct Watch<M> {
    log: Arc<Log<M>>,
    /// The part that is followed, with its own log: that one knows nothing of what was before.
    part: Option<(Topic, Arc<Log<M>>)>,
    /// Tells it apart among those of the log.
    number: u64,
    published: Arc<Published<M>>,
    after: Revision,
}

impl<M> Drop for Watch<M> {
    fn drop(&mut self) {
        self.log.forget(self.number);
        if let Some((topic, log)) = &self.part {
            log.forget(self.number);
            self.log.leave(topic);
        }
    }
}

/// The watch's place is not kept any more: list again and watch from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too old resource version: {wanted} ({oldest})")]
pub struct Compacted {
    pub wanted: Revision,
    /// The oldest revision that a watch may begin after.
    pub oldest: Revision,
}

/// Events in order; empty: none yet. None: the store is shut down.
pub type Events<M> = Result<Option<Vec<Arc<Event<M>>>>, Compacted>;

/// How many events one read hands over: enough to amortise the lock, few enough to stay fair.
const MOST_PER_READ: usize = 256;

impl<M: Metadata> Watch<M> {
    pub(crate) fn new(
        log: Arc<Log<M>>,
        topic: Option<Topic>,
        published: Arc<Published<M>>,
        after: Revision,
    ) -> Self {
        let part = topic.map(|topic| {
            let log = log.follow(&topic);
            (topic, log)
        });
        Self { number: log.new_watch(), log, part, published, after }
    }

    /// The revision up to which everything of this watch was handed over.
    pub fn position(&self) -> Revision {
        self.after
    }

    /// The events that are there, without waiting.
    pub fn read(&mut self) -> Events<M> {
        // Taken before the look: nothing of this shelf lies between it and an empty log, and
        // nothing is shown that a reader of the head would not find.
        let progress = self.published.revision();
        loop {
            match self.newest().read(self.after, progress, MOST_PER_READ) {
                Found::Events(mut events) => {
                    self.after = events.last().map_or(self.after, |event| event.revision);
                    if let Some((topic, _)) = &self.part {
                        events.retain(|event| topic.concerns(event));
                        if events.is_empty() {
                            continue;
                        }
                    }
                    return Ok(Some(events));
                }
                Found::Nothing => {
                    self.after = self.after.max(progress);
                    return Ok(Some(Vec::new()));
                }
                Found::Closed => return Ok(None),
                Found::Compacted(oldest) => {
                    return Err(Compacted { wanted: self.after, oldest });
                }
            }
        }
    }

    /// Where to read on: in the log of the part, once everything before it was read.
    fn newest(&self) -> &Arc<Log<M>> {
        match &self.part {
            Some((_, part)) if self.after >= part.compacted() => part,
            _ => &self.log,
        }
    }

    /// The next events, for a future.
    pub fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<Events<M>> {
        match self.read() {
            Ok(Some(events)) if events.is_empty() => {}
            found => return Poll::Ready(found),
        }
        self.newest().wake_later(self.number, context.waker());
        // Events may have come between the look and the registration.
        match self.read() {
            Ok(Some(events)) if events.is_empty() => Poll::Pending,
            found => Poll::Ready(found),
        }
    }

    /// The next events, for a thread; empty if `timeout` passes first.
    pub fn wait(&mut self, timeout: Duration) -> Events<M> {
        // Woken by the whole shelf, and so by every part of it.
        let wakes = self.log.wakes();
        match self.read() {
            Ok(Some(events)) if events.is_empty() => {}
            found => return found,
        }
        self.log.wait(wakes, timeout);
        self.read()
    }
}
