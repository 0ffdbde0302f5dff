//! Tables as kubectl prints them: columns as wide as they need to be, and no lines.

use super::output::{Paint, Tone};

const GAP: usize = 3;

/// A table under construction.
#[derive(Debug)]
pub struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

/// A text and what it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    /// A text in that tone.
    pub fn toned(tone: Tone, text: impl Into<String>) -> Self {
        Self { text: text.into(), tone }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.into(), tone: Tone::Plain }
    }
}

impl Table {
    /// With these headings.
    #[must_use]
    pub fn new(headings: &[&'static str]) -> Self {
        Self { headings: headings.to_vec(), rows: Vec::new() }
    }

    /// Adds a row. An empty text is shown as a dash.
    pub fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// The text.
    #[must_use]
    pub fn render(&self, paint: Paint) -> String {
        let headings = self.headings.iter().map(|heading| Cell::toned(Tone::Strong, *heading)).collect();
        let lines: Vec<&Vec<Cell>> = std::iter::once(&headings).chain(&self.rows).collect();
        let widths: Vec<usize> = (0..self.headings.len())
            .map(|column| {
                lines.iter().filter_map(|line| line.get(column)).map(|cell| width(shown(cell))).max()
            })
            .map(Option::unwrap_or_default)
            .collect();
        lines.iter().map(|line| render(line, &widths, paint)).collect()
    }
}

fn render(line: &[Cell], widths: &[usize], paint: Paint) -> String {
    let mut text = String::new();
    for (column, (cell, wide)) in line.iter().zip(widths).enumerate() {
        text.push_str(&paint.paint(cell.tone, shown(cell)));
        if column + 1 < line.len() {
            text.push_str(&" ".repeat(wide + GAP - width(shown(cell))));
        }
    }
    text + "\n"
}

fn shown(cell: &Cell) -> &str {
    if cell.text.is_empty() { "-" } else { &cell.text }
}

fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_they_need_to_be() {
        let mut table = Table::new(&["NAME", "STATE"]);
        table.row(vec!["a".into(), Cell::toned(Tone::Bad, "stale")]);
        table.row(vec!["longer-é".into(), "".into()]);
        assert_eq!(table.render(Paint::PLAIN), "NAME       STATE\na          stale\nlonger-é   -\n");
    }
}
