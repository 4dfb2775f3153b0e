//! Outcomes as a report in the XML of `JUnit`.

use std::fmt::Write;

use super::list::{Home, SpecResult};
use super::suite::Ended;

/// The report of all specs that ran, in one suite for each home.
pub(super) fn report(ended: &[(Home, Ended)]) -> String {
    let mut text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n".to_owned();
    for home in [Home::Embedded, Home::Real] {
        let cases: Vec<&Ended> =
            ended.iter().filter(|(of, _)| *of == home).map(|(_, ended)| ended).collect();
        if !cases.is_empty() {
            suite(&mut text, home, &cases).expect("a String takes everything");
        }
    }
    text + "</testsuites>\n"
}

fn suite(text: &mut String, home: Home, cases: &[&Ended]) -> std::fmt::Result {
    let count = |counted: fn(&SpecResult) -> bool| {
        cases.iter().filter(|case| counted(&case.outcome)).count()
    };
    let failures = count(|outcome| matches!(outcome, SpecResult::Failed(_)));
    let skipped = count(|outcome| matches!(outcome, SpecResult::Skipped(_)));
    let numbers =
        format!("tests=\"{}\" failures=\"{failures}\" skipped=\"{skipped}\"", cases.len());
    writeln!(text, "<testsuite name=\"convoy {home}\" {numbers}>")?;
    for case in cases {
        let head = format!("name=\"{}\" time=\"{:.3}\"", escaped(&case.spec), case.seconds);
        write!(text, "<testcase classname=\"convoy {home}\" {head}>")?;
        match &case.outcome {
            SpecResult::Passed => {}
            SpecResult::Failed(message) => write!(text, "<failure>{}</failure>", escaped(message))?,
            SpecResult::Skipped(message) => {
                write!(text, "<skipped message=\"{}\"/>", escaped(message))?;
            }
        }
        writeln!(text, "</testcase>")?;
    }
    writeln!(text, "</testsuite>")
}

/// Text for XML, which has no way to write most control characters.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            letter if letter.is_control() => escaped.push(' '),
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_escaped() {
        let ended = Ended {
            spec: "a \"b\"".to_owned(),
            outcome: SpecResult::Failed("1 < 2 & 3\n\u{1b}[0m".to_owned()),
            seconds: 0.25,
            timed_out: false,
        };
        let report = report(&[(Home::Embedded, ended)]);
        assert!(
            report.contains(
                "<testsuite name=\"convoy up\" tests=\"1\" failures=\"1\" skipped=\"0\">"
            )
        );
        assert!(report.contains("name=\"a &quot;b&quot;\" time=\"0.250\""));
        assert!(report.contains("<failure>1 &lt; 2 &amp; 3&#10; [0m</failure>"), "{report}");
    }
}
