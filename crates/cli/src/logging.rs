//! A minimal `tracing` subscriber: a line on standard error with time, level, message and fields.

use std::fmt::{self, Write as _};
use std::io::{self, Write as _};

use jiff::Timestamp;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Starts logging at the level that `CONVOY_LOG` names, or else at the given one.
pub(crate) fn init(level: Level) {
    let named = std::env::var("CONVOY_LOG").ok().and_then(|word| word.parse().ok());
    let subscriber = LineSubscriber { level: named.unwrap_or(level) };
    // A subscriber that was installed earlier stays in place.
    drop(tracing::subscriber::set_global_default(subscriber));
    if log::set_logger(&EngineLog).is_ok() {
        log::set_max_level(log::LevelFilter::Warn);
    }
}

/// Forwards what the storage engine reports through `log`: it keeps the errors of its threads to
/// itself otherwise.
struct EngineLog;

/// The crates of the storage engine.
const ENGINE: [&str; 2] = ["fjall", "lsm_tree"];

impl log::Log for EngineLog {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        ENGINE.iter().any(|engine| metadata.target().starts_with(engine))
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            let reported = record.args();
            if record.level() == log::Level::Error {
                tracing::error!(%reported, "error in the storage engine");
            } else {
                tracing::warn!(%reported, "warning of the storage engine");
            }
        }
    }

    fn flush(&self) {}
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
        let text = format!("{now:.3} {level:5} {}{}\n", line.message, line.fields);
        // A full disk under a redirected log must not end the thread that reports it.
        drop(io::stderr().write_all(text.as_bytes()));
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

    /// With all causes: the last one is often the only one that helps.
    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        let causes = std::iter::successors(Some(value), |error| error.source());
        let texts: Vec<String> = causes.map(ToString::to_string).collect();
        self.record_debug(field, &format_args!("{}", texts.join(": ")));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let written = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
        written.expect("writing to a string does not fail");
    }
}
