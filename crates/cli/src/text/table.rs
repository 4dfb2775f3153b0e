//! Small aligned tables: columns as wide as their widest cell, two spaces between them.

use anstyle::Style;

use super::style::{DIM, painted};

/// Rows under optional headings.
#[derive(Debug)]
pub(super) struct Table {
    rows: Vec<Vec<Cell>>,
}

/// One cell; styles do not count toward its width.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    text: String,
    style: Style,
    right: bool,
}

impl Table {
    pub(super) fn new(headings: &[Cell]) -> Self {
        let rows = if headings.is_empty() { Vec::new() } else { vec![headings.to_vec()] };
        Self { rows }
    }

    pub(super) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// Writes the table with every line indented.
    pub(super) fn write(&self, text: &mut String, indent: usize) {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width_of = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(Cell::width).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width_of).collect();
        for row in &self.rows {
            let mut line = " ".repeat(indent);
            let mut gap = 0;
            for (cell, width) in row.iter().zip(&widths).filter(|(_, width)| **width > 0) {
                let padding = width - cell.width();
                let (before, after) = if cell.right { (padding, 0) } else { (0, padding) };
                line.push_str(&" ".repeat(gap + before));
                line.push_str(&painted(cell.style, &cell.text));
                gap = after + 2; // written before the next cell, so that no line ends in spaces
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
}

impl Cell {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), style: Style::new(), right: false }
    }

    pub(super) fn heading(text: &str) -> Self {
        Self::new(text).styled(DIM)
    }

    pub(super) fn styled(mut self, style: Style) -> Self {
        self.style = style;
        self
    }

    pub(super) fn right(mut self) -> Self {
        self.right = true;
        self
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_empty_ones_vanish() {
        let mut table = Table::new(&[
            Cell::new("group"),
            Cell::new(""),
            Cell::new("done").right(),
            Cell::new("batch"),
        ]);
        let row = |name: &str, done: &str, batch: &str| {
            vec![Cell::new(name), Cell::new(""), Cell::new(done).right(), Cell::new(batch)]
        };
        table.row(row("a", "10", ""));
        table.row(row("production", "2", "1"));
        let mut text = String::new();
        table.write(&mut text, 2);
        assert_eq!(text, "  group       done  batch\n  a             10\n  production     2  1\n");
    }
}
