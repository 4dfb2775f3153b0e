//! Figures by title, medians of runs, and the table they are shown in.

use std::fmt::Write as _;
use std::io::Write as _;

use anyhow::Result;

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

/// Ours, theirs if there, and how many times one is the other.
pub(super) fn print(columns: &[Figures]) -> Result<()> {
    std::io::stdout().write_all(text(columns).as_bytes())?;
    Ok(())
}

fn text(columns: &[Figures]) -> String {
    let mut out =
        String::from("| what | convoy | kube-apiserver + etcd | ratio |\n|---|---:|---:|---:|\n");
    let [ours, rest @ ..] = columns else { return out };
    for (row, (title, our)) in ours.0.iter().enumerate() {
        let theirs = rest.first().map(|theirs| theirs.0[row].1);
        let shown = theirs.map_or_else(String::new, number);
        let ratio = theirs.filter(|_| *our > 0.0).map_or_else(String::new, |their| {
            format!("{:.1}", if *our > their { our / their } else { their / our })
        });
        writeln!(out, "| {title} | {} | {shown} | {ratio} |", number(*our))
            .expect("strings take what is written");
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
        let table = text(&[ours, theirs]);
        assert!(table.ends_with("| gets /s | 31,234 | 3,000 | 10.4 |\n"), "{table}");
        assert_eq!(number(35.44), "35.4");
    }
}
