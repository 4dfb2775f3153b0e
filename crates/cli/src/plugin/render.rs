//! Output in the formats of the upstream plugin: tables, JSON and YAML.

use anyhow::Result;
use serde_json::Value;

use super::Format;
use crate::output;

/// Columns two spaces apart, a row of dashes as long as each header, then the rows.
pub(super) fn table(headers: &[&str], rows: &[Vec<String>]) -> String {
    let dashes: Vec<String> = headers.iter().map(|header| "-".repeat(header.len())).collect();
    let heads: Vec<String> = headers.iter().map(|header| (*header).to_owned()).collect();
    let all: Vec<&Vec<String>> = [&heads, &dashes].into_iter().chain(rows).collect();
    let width = |at: usize| all.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..headers.len()).map(width).collect();
    let mut text = String::new();
    for row in all {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Prints a value as JSON or YAML; returns false if `format` is a table.
pub(super) fn print_structured(format: Format, value: &Value) -> Result<bool> {
    let text = match format {
        Format::Json => format!("{value:#}\n"),
        Format::Yaml => serde_saphyr::to_string(value)?,
        Format::Table | Format::Wide => return Ok(false),
    };
    output::print(&text)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_longest_cell() {
        let rows = [
            vec!["node-1".to_owned(), "complete".to_owned()],
            vec!["n".to_owned(), "x".to_owned()],
        ];
        let want = "NODE    STATUS\n----    ------\nnode-1  complete\nn       x\n";
        assert_eq!(table(&["NODE", "STATUS"], &rows), want);
    }
}
