//! What the run told, as a picture for people who don't run it.

use std::{fmt::Write as _, fs, path::Path};

use crate::{Result, stage::Line};

const LINE: usize = 18;
const MARGIN: usize = 16;
const WIDTH: usize = 1080;

/// Writes the lines as an SVG, in a terminal's colours.
pub fn write(lines: &[(Line, String)], to: &Path) -> Result<()> {
    let height = lines.len() * LINE + 2 * MARGIN;
    let mut picture = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"ui-monospace, Menlo, Consolas, \
         monospace\" font-size=\"13\" xml:space=\"preserve\">\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#0d1117\"/>\n"
    );
    for (index, (line, text)) in lines.iter().enumerate() {
        let colour = match line {
            Line::Chapter => "#58a6ff",
            Line::Command => "#f0f6fc",
            Line::Fact => "#3fb950",
            Line::Output => "#8b949e",
        };
        let y = MARGIN + index * LINE + 13;
        writeln!(picture, "<text x=\"{MARGIN}\" y=\"{y}\" fill=\"{colour}\">{}</text>", escaped(text))?;
    }
    picture.push_str("</svg>\n");
    Ok(fs::write(to, picture)?)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
