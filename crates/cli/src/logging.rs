//! A minimal `tracing` subscriber: an event on standard error with time, level, message and fields,
//! as a line for people or as a JSON object for programs.

mod line;

use std::io::{self, Write as _};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use convoy_controllers::serve::LogLevel;
use jiff::Timestamp;
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};

use line::{JsonLine, TextLine};

/// How events are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// A line for people
    #[default]
    Text,
    /// A JSON object on one line, for programs
    Json,
}

/// The flags of commands that log.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct LogFlags {
    /// How events are logged on standard error
    #[arg(long, value_enum, default_value_t, env = "CONVOY_LOG_FORMAT", value_name = "FORMAT")]
    log_format: Format,
}

/// Starts logging at the level that `CONVOY_LOG` names, or else at the given one.
pub(crate) fn init(flags: LogFlags, level: Level) {
    let named = std::env::var("CONVOY_LOG").ok().and_then(|word| word.parse().ok());
    CURRENT.0.store(rank(named.unwrap_or(level)), Ordering::Relaxed);
    let format = *FORMAT.get_or_init(|| flags.log_format);
    let subscriber = EventSubscriber { format };
    // A subscriber that was installed earlier stays in place.
    drop(tracing::subscriber::set_global_default(subscriber));
    if log::set_logger(&EngineLog).is_ok() {
        log::set_max_level(log::LevelFilter::Warn);
    }
}

/// How this process logs, once it does.
static FORMAT: OnceLock<Format> = OnceLock::new();

/// Says on standard error what is of interest at every level, such as an address.
pub(crate) fn announce(message: &str) {
    match FORMAT.get().copied().unwrap_or_default() {
        Format::Text => eprintln!("{message}"),
        Format::Json => eprint!("{}", JsonLine::said(message, Timestamp::now())),
    }
}

/// The level of this process. It can be changed while it runs.
pub(crate) static CURRENT: CurrentLevel = CurrentLevel(AtomicU8::new(2));

/// A level, as an index into [`LEVELS`].
#[derive(Debug)]
pub(crate) struct CurrentLevel(AtomicU8);

const LEVELS: [Level; 5] = [Level::ERROR, Level::WARN, Level::INFO, Level::DEBUG, Level::TRACE];

fn rank(level: Level) -> u8 {
    let at = LEVELS.iter().position(|known| *known == level).unwrap_or_default();
    u8::try_from(at).unwrap_or_default()
}

impl CurrentLevel {
    fn level(&self) -> Level {
        LEVELS[usize::from(self.0.load(Ordering::Relaxed)).min(LEVELS.len() - 1)]
    }
}

impl LogLevel for CurrentLevel {
    fn get(&self) -> String {
        self.level().to_string().to_lowercase()
    }

    fn set(&self, word: &str) -> Result<(), String> {
        let expected = "expected error, warn, info, debug or trace";
        let level = LEVELS.iter().find(|level| level.as_str().eq_ignore_ascii_case(word));
        let level = level.ok_or_else(|| format!("{word:?} is no log level; {expected}"))?;
        self.0.store(rank(*level), Ordering::Relaxed);
        // Whether anybody wants an event is remembered where the event is.
        tracing::callsite::rebuild_interest_cache();
        Ok(())
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

/// Writes each event; ignores spans.
struct EventSubscriber {
    format: Format,
}

impl Subscriber for EventSubscriber {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.enabled(metadata) { Interest::always() } else { Interest::never() }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::from_level(CURRENT.level()))
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // Below `info`, only targets of Convoy: HTTP libraries log every frame.
        *metadata.level() <= CURRENT.level()
            && (*metadata.level() <= Level::INFO || metadata.target().starts_with("convoy"))
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let now = Timestamp::now();
        let text = match self.format {
            Format::Text => TextLine::of(event, now),
            Format::Json => JsonLine::of(event, now),
        };
        // A full disk under a redirected log must not end the thread that reports it.
        drop(io::stderr().write_all(text.as_bytes()));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
