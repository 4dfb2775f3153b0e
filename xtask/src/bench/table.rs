//! Figures by title, medians of runs, and the table they are shown in.

use std::fmt::Write as _;
use std::io::Write as _;

use anyhow::Result;

const WRITTEN: &str = "strings take what is written";

/// Titles and numbers, in the order they were measured.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures(Vec<(String, f64)>);

impl Figures {
    pub(super) fn set(&mut self, title: &str, value: f64) {
        self.0.push((title.to_owned(), value));
    }

    /// Of several runs, which all measured the same.
    pub(super) fn median(runs: &[Self]) -> Self {
        let Some(first) = runs.first() else { return Self::default() };
        let titles = first.0.iter().enumerate();
        let middle = |(row, (title, _)): (usize, &(String, f64))| {
            let mut values: Vec<f64> = runs.iter().map(|run| run.0[row].1).collect();
            values.sort_by(f64::total_cmp);
            (title.clone(), values[values.len() / 2])
        };
        Self(titles.map(middle).collect())
    }
}

/// Columns beside each other, and how many times the last is what stands in the others, or
/// these the last.
pub(super) fn print(titles: &[&str], columns: &[Figures]) -> Result<()> {
    std::io::stdout().write_all(text(titles, columns).as_bytes())?;
    Ok(())
}

fn text(titles: &[&str], columns: &[Figures]) -> String {
    let Some((theirs, ours)) = columns.split_last() else { return String::new() };
    let titles = titles[..columns.len()].join(" | ");
    let ratios = ours.len();
    let mut out = format!("| what | {titles} |{}\n", " ratio |".repeat(ratios));
    writeln!(out, "|---|{}", "---:|".repeat(columns.len() + ratios)).expect(WRITTEN);
    for (row, (title, their)) in theirs.0.iter().enumerate() {
        write!(out, "| {title} |").expect(WRITTEN);
        for column in columns {
            write!(out, " {} |", number(column.0[row].1)).expect(WRITTEN);
        }
        for our in ours.iter().map(|column| column.0[row].1) {
            let ratio = if our > *their { our / their } else { their / our };
            let shown = if ratio.is_finite() { format!("{ratio:.1}") } else { String::new() };
            write!(out, " {shown} |").expect(WRITTEN);
        }
        out.push('\n');
    }
    out
}

/// Whole above a hundred, with thousands set apart.
fn number(value: f64) -> String {
    if value < 100.0 && value.fract() != 0.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{value:.0}");
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .filter_map(|group| std::str::from_utf8(group).ok())
        .collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_stand_beside_each_other() {
        let run = |value: f64| Figures(vec![("gets /s".to_owned(), value)]);
        let ours = Figures::median(&[run(30_000.0), run(90_000.0), run(31_234.4)]);
        let theirs = Figures::median(&[run(3_000.0)]);
        let table = text(&["convoy", "kube-apiserver + etcd"], &[ours, theirs]);
        assert!(table.ends_with("| gets /s | 31,234 | 3,000 | 10.4 |\n"), "{table}");
        assert_eq!(number(35.44), "35.4");
    }
}
