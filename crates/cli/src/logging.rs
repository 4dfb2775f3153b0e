//! A minimal `tracing` subscriber: a line on standard error with time, level, message and fields.

use std::fmt::{self, Write};

use jiff::Timestamp;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Starts logging at the level that `CONVOY_LOG` names.
pub(crate) fn init() {
    let level = std::env::var("CONVOY_LOG").ok().and_then(|word| word.parse().ok());
    let subscriber = LineSubscriber { level: level.unwrap_or(Level::INFO) };
    // A subscriber that was installed earlier stays in place.
    drop(tracing::subscriber::set_global_default(subscriber));
}

/// Writes each event as a line; ignores spans.
struct LineSubscriber {
    level: Level,
}

impl Subscriber for LineSubscriber {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // Below `info`, only targets of Convoy: HTTP libraries log every frame.
        *metadata.level() <= self.level
            && (*metadata.level() <= Level::INFO || metadata.target().starts_with("convoy"))
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        let (level, now) = (event.metadata().level(), Timestamp::now());
        eprintln!("{now:.3} {level:5} {}{}", line.message, line.fields);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let written = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
        written.expect("writing to a string does not fail");
    }
}
