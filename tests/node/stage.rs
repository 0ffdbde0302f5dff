//! How the story is told: chapters, commands and facts with the seconds since its start.

use std::{
    cell::RefCell,
    io::{IsTerminal as _, Write as _},
    time::Instant,
};

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    Chapter,
    Command,
    Fact,
    Output,
}

/// Prints, and remembers what was printed.
pub struct Stage {
    began: Instant,
    colour: bool,
    told: RefCell<Vec<(Line, String)>>,
}

impl Stage {
    pub fn new() -> Self {
        let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Self { began: Instant::now(), colour, told: RefCell::default() }
    }

    pub fn chapter(&self, title: &str) {
        println!();
        self.line(
            Line::Chapter,
            &format!("── {title} {}", "─".repeat(90_usize.saturating_sub(title.chars().count()))),
        );
    }

    /// Something that is done.
    pub fn act(&self, command: &str) {
        self.line(Line::Command, &format!("$ {command}"));
    }

    /// Something that is so, and was checked.
    pub fn fact(&self, text: &str) {
        self.line(Line::Fact, &format!("✔ {text}"));
    }

    /// What a command or a process said.
    pub fn output(&self, text: &str) {
        for line in text.lines() {
            self.line(Line::Output, &format!("    {}", line.chars().take(118).collect::<String>()));
        }
    }

    pub fn told(&self) -> Vec<(Line, String)> {
        self.told.borrow().clone()
    }

    fn line(&self, line: Line, text: &str) {
        let stamp = format!("{:>6.1} s ", self.began.elapsed().as_secs_f32());
        let stamp = if line == Line::Output { " ".repeat(stamp.len()) } else { stamp };
        let style = match line {
            Line::Chapter => "1;36",
            Line::Command => "1",
            Line::Fact => "32",
            Line::Output => "2",
        };
        if self.colour {
            println!("{stamp}\x1b[{style}m{text}\x1b[0m");
        } else {
            println!("{stamp}{text}");
        }
        let _ = std::io::stdout().flush();
        self.told.borrow_mut().push((line, format!("{stamp}{text}")));
    }
}
