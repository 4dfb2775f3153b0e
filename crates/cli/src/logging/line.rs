//! An event as a line: for people, or as a JSON object.

use std::fmt::{self, Write as _};

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tracing::Event;
use tracing::field::{Field, Visit};

/// An error with all its causes: the last one is often the only one that helps.
fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let texts: Vec<String> = causes.map(ToString::to_string).collect();
    texts.join(": ")
}

#[derive(Default)]
pub(super) struct TextLine {
    message: String,
    fields: String,
}

impl TextLine {
    pub(super) fn of(event: &Event<'_>, now: Timestamp) -> String {
        let mut line = Self::default();
        event.record(&mut line);
        let level = event.metadata().level();
        format!("{now:.3} {level:5} {}{}\n", line.message, line.fields)
    }
}

impl Visit for TextLine {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.record_debug(field, &format_args!("{}", with_causes(value)));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let written = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
        written.expect("writing to a string does not fail");
    }
}

/// The names that log collectors for Kubernetes know: `ts`, `level`, `msg`; then the fields.
pub(super) struct JsonLine(Map<String, Value>);

impl JsonLine {
    pub(super) fn of(event: &Event<'_>, now: Timestamp) -> String {
        let metadata = event.metadata();
        let mut line = Self::new(metadata.level().as_str(), metadata.target(), now);
        event.record(&mut line);
        line.text()
    }

    /// A message that is not an event.
    pub(super) fn said(message: &str, now: Timestamp) -> String {
        let mut line = Self::new("info", "convoy", now);
        line.0.insert("msg".into(), json!(message));
        line.text()
    }

    fn new(level: &str, target: &str, now: Timestamp) -> Self {
        let mut fields = Map::new();
        fields.insert("ts".into(), json!(format!("{now:.3}")));
        fields.insert("level".into(), json!(level.to_lowercase()));
        fields.insert("target".into(), json!(target));
        Self(fields)
    }

    fn text(self) -> String {
        let mut text = Value::Object(self.0).to_string();
        text.push('\n');
        text
    }

    fn put(&mut self, field: &Field, value: Value) {
        let name = if field.name() == "message" { "msg" } else { field.name() };
        self.0.insert(name.to_owned(), value);
    }
}

impl Visit for JsonLine {
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, json!(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, json!(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, json!(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, json!(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, json!(value));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.put(field, json!(with_causes(value)));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, json!(format!("{value:?}")));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing::span::{Attributes, Id, Record};
    use tracing::{Metadata, Subscriber};

    use super::*;

    /// Keeps both lines of each event.
    struct Kept(Arc<Mutex<Vec<[String; 2]>>>);

    impl Subscriber for Kept {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, event: &Event<'_>) {
            let now = Timestamp::UNIX_EPOCH;
            let lines = [TextLine::of(event, now), JsonLine::of(event, now)];
            self.0.lock().unwrap().push(lines);
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    #[test]
    fn an_event_is_a_line_or_an_object() {
        let kept = Arc::default();
        tracing::subscriber::with_default(Kept(Arc::clone(&kept)), || {
            let detail = "a \"b\"\nc";
            tracing::warn!(target: "convoy::x", count = 3, is_late = true, detail, "it waits");
        });
        let lines = kept.lock().unwrap();
        let [text, object] = &lines[0];
        assert_eq!(
            text,
            "1970-01-01T00:00:00.000Z WARN  it waits count=3 is_late=true detail=a \"b\"\nc\n"
        );
        assert_eq!(object.matches('\n').count(), 1, "one line: {object}");
        let object: Value = serde_json::from_str(object).unwrap();
        assert_eq!(
            object,
            json!({"ts": "1970-01-01T00:00:00.000Z", "level": "warn", "target": "convoy::x",
                "msg": "it waits", "count": 3, "is_late": true, "detail": "a \"b\"\nc"})
        );
    }
}
