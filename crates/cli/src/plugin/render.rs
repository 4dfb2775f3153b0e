//! Output in the formats of the upstream plugin: tables, JSON and YAML.

use std::fmt::Write;

use anyhow::{Result, bail};
use serde_json::Value;

use crate::output;

/// Output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Table,
    Wide,
    Json,
    Yaml,
}

impl Format {
    /// The words for them.
    pub(super) const WORDS: [&str; 4] = ["table", "json", "yaml", "wide"];

    pub(super) fn read(text: &str) -> Result<Self> {
        Ok(match text.to_lowercase().as_str() {
            "table" => Self::Table,
            "wide" => Self::Wide,
            "json" => Self::Json,
            "yaml" => Self::Yaml,
            other => bail!("invalid output format {other:?}"),
        })
    }
}

/// Columns two spaces apart, a row of dashes as long as each header, then the rows.
pub(super) fn table(headers: &[&str], rows: &[Vec<String>]) -> String {
    let dashes: Vec<String> = headers.iter().map(|header| "-".repeat(header.len())).collect();
    let heads: Vec<String> = headers.iter().map(|header| (*header).to_owned()).collect();
    let all: Vec<&Vec<String>> = [&heads, &dashes].into_iter().chain(rows).collect();
    let width = |at: usize| all.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..headers.len()).map(width).collect();
    let mut text = String::new();
    for row in all {
        let Some((last, cells)) = row.split_last() else { continue };
        for (cell, width) in cells.iter().zip(&widths) {
            _ = write!(text, "{cell:width$}  ");
        }
        text.push_str(last);
        text.push('\n');
    }
    text
}

/// Prints a value as JSON or YAML; returns false if `format` is a table.
pub(super) fn print_structured(format: Format, value: &Value) -> Result<bool> {
    let text = match format {
        Format::Json => format!("{}\n", escaped(&format!("{value:#}"))),
        Format::Yaml => yaml(value),
        Format::Table | Format::Wide => return Ok(false),
    };
    output::print(&text)?;
    Ok(true)
}

/// JSON that can stand in HTML; these characters are only in strings.
fn escaped(json: &str) -> String {
    json.replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e")
}

/// YAML as upstream's library writes it: keys in alphabetical order, lists not indented, quotes
/// only around text that would be read as something else.
fn yaml(value: &Value) -> String {
    let mut text = String::new();
    write_yaml(&mut text, value, 0, "");
    text
}

/// Writes a value below `indent` spaces; `first` stands in place of the first line's indentation.
fn write_yaml(text: &mut String, value: &Value, indent: usize, first: &str) {
    let margin = " ".repeat(indent);
    let begin = |text: &mut String, at: usize| {
        text.push_str(if at == 0 && !first.is_empty() { first } else { &margin });
    };
    match value {
        Value::Array(items) if !items.is_empty() => {
            for (at, item) in items.iter().enumerate() {
                begin(text, at);
                write_yaml(text, item, indent + 2, "- ");
            }
        }
        Value::Object(fields) if !fields.is_empty() => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| *key);
            for (at, (key, field)) in fields.into_iter().enumerate() {
                begin(text, at);
                text.push_str(&scalar(key));
                text.push(':');
                match field {
                    Value::Array(items) if !items.is_empty() => {
                        text.push('\n');
                        write_yaml(text, field, indent, "");
                    }
                    Value::Object(inner) if !inner.is_empty() => {
                        text.push('\n');
                        write_yaml(text, field, indent + 2, "");
                    }
                    _ => write_yaml(text, field, 0, " "),
                }
            }
        }
        Value::String(word) => _ = writeln!(text, "{first}{}", scalar(word)),
        other => _ = writeln!(text, "{first}{other}"),
    }
}

/// A text in YAML.
fn scalar(text: &str) -> String {
    let lower = text.to_lowercase();
    let words = ["", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n"];
    let is_number = |text: &str| {
        let digits = text.trim_start_matches(['-', '+']);
        digits.parse::<f64>().is_ok()
            || ["0x", "0o", "0b", ".inf", ".nan"].iter().any(|start| digits.starts_with(start))
            || digits.parse::<jiff::civil::Date>().is_ok()
    };
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._/:@+-".contains(letter);
    let is_quoted = words.contains(&lower.as_str())
        || is_number(&lower)
        || !text.chars().all(is_plain)
        || text.starts_with(['-', ':', '@'])
        || text.ends_with(':');
    if is_quoted { Value::from(text).to_string() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_longest_cell() {
        let rows = [
            vec!["node-1".to_owned(), "complete".to_owned()],
            vec!["n".to_owned(), "x".to_owned()],
            vec!["m".to_owned(), String::new()],
        ];
        let want = "NODE    STATUS\n----    ------\nnode-1  complete\nn       x\nm       \n";
        assert_eq!(table(&["NODE", "STATUS"], &rows), want);
    }

    #[test]
    fn documents_are_written_as_upstream_writes_them() {
        let document = serde_json::json!([
            {"version": "1.0.0", "name": "a", "packages": [{"version": "2.1", "restarts": 0}]},
            {"image": "host:5000/x", "name": "", "inner": {"on": "yes"}, "packages": []},
        ]);
        let want = "- name: a\n  packages:\n  - restarts: 0\n    version: \"2.1\"\n  version: 1.0.0\n\
                    - image: host:5000/x\n  inner:\n    \"on\": \"yes\"\n  name: \"\"\n  packages: []\n";
        assert_eq!(yaml(&document), want);
        assert_eq!(yaml(&serde_json::json!([])), "[]\n");
    }
}
