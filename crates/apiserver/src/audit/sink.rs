//! The thread that writes the audit log.

use std::io::{BufWriter, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::thread;

use super::event::Line;

/// What became of the lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub written: u64,
    /// Lost because the queue was full or the file could not be written.
    pub dropped: u64,
}

#[derive(Debug)]
pub(super) struct Sink {
    queue: SyncSender<Message>,
    tally: Arc<Tally>,
}

#[derive(Debug, Default)]
struct Tally {
    written: AtomicU64,
    dropped: AtomicU64,
}

#[derive(Debug)]
enum Message {
    Line(Box<Line>),
    /// Answered when everything before it is written.
    Flush(SyncSender<()>),
}

impl Sink {
    pub(super) fn start(out: Box<dyn Write + Send>, queue_max: usize) -> std::io::Result<Self> {
        let (queue, lines) = sync_channel(queue_max);
        let tally = Arc::new(Tally::default());
        let theirs = Arc::clone(&tally);
        let thread = thread::Builder::new().name("audit".to_owned());
        thread.spawn(move || write_lines(BufWriter::new(out), &lines, &theirs))?;
        Ok(Self { queue, tally })
    }

    /// Hands a line over, or counts it as lost; never waits.
    pub(super) fn send(&self, line: Line) {
        match self.queue.try_send(Message::Line(Box::new(line))) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                // Said once for each run of losses that begins at a power of two, so that a
                // flood of requests is not a flood of complaints.
                let before = self.tally.dropped.fetch_add(1, Ordering::Relaxed);
                if (before + 1).is_power_of_two() {
                    tracing::warn!(
                        dropped = before + 1,
                        "audit log queue is full; dropping events"
                    );
                }
            }
        }
    }

    pub(super) fn counts(&self) -> Counts {
        Counts {
            written: self.tally.written.load(Ordering::Relaxed),
            dropped: self.tally.dropped.load(Ordering::Relaxed),
        }
    }

    pub(super) fn flush(&self) {
        let (done, wait) = sync_channel(1);
        if self.queue.send(Message::Flush(done)).is_ok() {
            // An error means that the writer is gone, and there is nothing left to wait for.
            let _ = wait.recv();
        }
    }
}

/// Runs until every sender is gone. Lines are flushed whenever none is waiting.
fn write_lines(
    mut out: BufWriter<Box<dyn Write + Send>>,
    lines: &Receiver<Message>,
    tally: &Tally,
) {
    loop {
        let message = match lines.try_recv() {
            Ok(message) => message,
            Err(TryRecvError::Disconnected) => break,
            Err(TryRecvError::Empty) => {
                tell(out.flush());
                match lines.recv() {
                    Ok(message) => message,
                    Err(_) => break,
                }
            }
        };
        match message {
            Message::Line(line) => {
                let written = writeln!(out, "{}", line.text());
                let counter = if written.is_ok() { &tally.written } else { &tally.dropped };
                counter.fetch_add(1, Ordering::Relaxed);
                tell(written);
            }
            Message::Flush(done) => {
                tell(out.flush());
                let _ = done.send(());
            }
        }
    }
    tell(out.flush());
}

fn tell(result: std::io::Result<()>) {
    if let Err(error) = result {
        tracing::error!(%error, "could not write the audit log");
    }
}
