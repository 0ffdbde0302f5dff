//! The table, as text, JSON and a picture.

use std::{fmt::Write as _, path::PathBuf, time::Duration};

use serde_json::{Value, json};

use crate::{field::Size, requests::Requests};

/// What a figure is held against: what the same run needed at least.
#[derive(Clone, Copy)]
pub struct Limit {
    pub of: &'static str,
    /// Milliseconds.
    pub is: f64,
    /// How often it the figure may be.
    pub times: f64,
}

pub struct Report {
    size: Size,
    rows: Vec<Row>,
    /// What was wrong, whatever its speed.
    wrong: Vec<String>,
}

struct Row {
    name: String,
    figure: String,
    held_against: String,
    /// How much of what it may be it is: 1 is the most.
    share: f64,
}

impl Report {
    pub fn new(size: Size) -> Self {
        Self { size, rows: Vec::new(), wrong: Vec::new() }
    }

    pub fn latency(&mut self, name: &str, ms: f64, limit: Limit) {
        let Limit { of, is, times } = limit;
        let held_against = format!("{:.2} × {of} ({is:.1} ms); at most {times} ×", ms / is);
        self.row(name, format!("{ms:.1} ms"), held_against, ms / is / times);
    }

    pub fn at_most(&mut self, name: &str, figure: f64, most: f64, unit: &str) {
        self.row(name, format!("{figure:.2} {unit}"), format!("at most {most} {unit}"), figure / most);
    }

    /// 25 MB at 2,300 workloads and 60 MB at 10,000, and what lies between and beyond.
    pub fn memory(&mut self, name: &str, mib: f64, size: Size) {
        let most = 25.0 + 35.0 * (size.deployments() as f64 - 2300.0).max(0.0) / 7700.0;
        self.at_most(name, mib, most.round(), "MiB");
    }

    /// 10 s at 10,000.
    pub fn started(&mut self, took: Duration, size: Size) {
        let most = 10.0 * (size.deployments() as f64 / 10_000.0).max(0.25);
        self.at_most("start to ready", took.as_secs_f64(), most, "s");
    }

    /// A number that must be exactly that.
    pub fn count(&mut self, name: &str, is: u64, must: u64) {
        self.right(name, is, must);
        let share = if is == must { 1.0 } else { f64::INFINITY };
        self.row(name, is.to_string(), format!("must be {must}"), share);
    }

    /// Something that fails the run.
    pub fn wrong(&mut self, what: String) {
        self.wrong.push(what);
    }

    pub fn right(&mut self, name: &str, is: u64, must: u64) {
        if is != must {
            self.wrong(format!("{name}: {is} rollouts instead of {must}"));
        }
    }

    fn row(&mut self, name: &str, figure: String, held_against: String, share: f64) {
        println!("{} {name}: {figure} ({held_against})", mark(share));
        self.rows.push(Row { name: name.to_owned(), figure, held_against, share });
    }

    pub fn print(&self) {
        println!(
            "\n| {} Deployments, {} Secrets | Uptake | held against | |",
            self.size.deployments(),
            self.size.secrets()
        );
        println!("| --- | --- | --- | --- |");
        for Row { name, figure, held_against, share } in &self.rows {
            println!("| {name} | {figure} | {held_against} | {} |", mark(*share));
        }
        for wrong in &self.wrong {
            println!("WRONG: {wrong}");
        }
    }

    /// Whether every scenario rolled what it had to and nothing else. Figures don't fail a run: machines differ.
    pub fn is_right(&self) -> bool {
        self.wrong.is_empty()
    }

    pub fn write(&self) {
        let folder = PathBuf::from(std::env::var_os("OUT").unwrap_or_else(|| "target/bench".into()));
        std::fs::create_dir_all(&folder).expect("the folder can be made");
        let rows: Vec<Value> = self.rows.iter().map(Row::json).collect();
        let report = json!({
            "deployments": self.size.deployments(), "secrets": self.size.secrets(), "rows": rows, "wrong": self.wrong,
        });
        let text = serde_json::to_string_pretty(&report).expect("a report is JSON");
        std::fs::write(folder.join("bench.json"), text).expect("it can be written");
        std::fs::write(folder.join("bench.svg"), self.svg()).expect("it can be written");
        println!("written to {}", folder.display());
    }

    /// A bar a row: how much of what it may be it is.
    fn svg(&self) -> String {
        const LINE: usize = 26;
        const FULL: f64 = 300.0;
        let height = LINE * (self.rows.len() + 1);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1000\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <line x1=\"{0}\" y1=\"0\" x2=\"{0}\" y2=\"{height}\" stroke=\"#888\" stroke-dasharray=\"4\"/>\n",
            560.0 + FULL / 1.5
        );
        for (at, Row { name, figure, share, .. }) in self.rows.iter().enumerate() {
            let (top, text) = (at * LINE + 6, at * LINE + 20);
            let width = (share / 1.5).clamp(0.005, 1.0) * FULL;
            let colour = if *share <= 1.0 { "#2a7" } else { "#c33" };
            let _ = writeln!(
                svg,
                "<text x=\"550\" y=\"{text}\" text-anchor=\"end\">{}</text>\
                 <rect x=\"560\" y=\"{top}\" width=\"{width:.0}\" height=\"16\" fill=\"{colour}\"/>\
                 <text x=\"{:.0}\" y=\"{text}\">{figure}</text>",
                name.replace('&', "&amp;").replace('<', "&lt;"),
                568.0 + width
            );
        }
        svg.push_str("</svg>\n");
        svg
    }
}

impl Row {
    fn json(&self) -> Value {
        json!({
            "name": self.name, "figure": self.figure, "held_against": self.held_against,
            "share": self.share.is_finite().then_some(self.share),
        })
    }
}

/// What the same run needs at least.
pub fn limits(loops: [Duration; 2], reactor: f64) {
    println!(
        "limits of this run: patch loop {:.2} s with 4 workers, {:.2} s with 16; bare reactor {reactor:.1} ms",
        loops[0].as_secs_f64(),
        loops[1].as_secs_f64()
    );
}

/// Says what was asked for.
pub fn note(what: &str, requests: &Requests) {
    let each: Vec<String> = requests.iter().map(|(what, count)| format!("{count} {what}")).collect();
    println!("  {what}: {}", if each.is_empty() { "none".to_owned() } else { each.join(", ") });
}

fn mark(share: f64) -> &'static str {
    if share <= 1.0 { "✔" } else { "✘" }
}
