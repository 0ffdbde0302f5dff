//! From what containers got to how late they were.

/// A way in which a value gets into a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Env,
    SubPath,
    Volume,
}

impl Way {
    pub const ALL: [Self; 3] = [Self::Env, Self::SubPath, Self::Volume];

    /// Its word in a consumer's line.
    fn word(self) -> &'static str {
        match self {
            Self::Env => "env",
            Self::SubPath => "subPath",
            Self::Volume => "volume",
        }
    }
}

/// When which value came: value n at the nth.
#[derive(Debug, Default)]
pub struct Changes {
    at: Vec<u64>,
}

impl Changes {
    /// The value that comes next.
    pub fn next(&self) -> usize {
        self.at.len()
    }

    /// The server has accepted it.
    pub fn note(&mut self, at: u64) {
        self.at.push(at);
    }

    /// When a value was superseded.
    fn end_of(&self, value: usize) -> Option<u64> {
        self.at.get(value + 1).copied()
    }
}

/// What a container got when it started.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Unix time in milliseconds.
    pub started: u64,
    /// When its pod was asked for; the start of those that are restarted is no birth.
    pub asked: Option<u64>,
    line: String,
}

impl Sample {
    /// From a consumer's line.
    pub fn read(line: &str, asked: Option<u64>) -> Option<Self> {
        let started = word(line, "at")?.parse().ok()?;
        Some(Self { started, asked, line: line.to_owned() })
    }

    fn value(&self, way: Way) -> Option<usize> {
        word(&self.line, way.word())?.parse().ok()
    }

    /// How long its value had been superseded when it started.
    fn late(&self, way: Way, changes: &Changes) -> Option<u64> {
        let end = changes.end_of(self.value(way)?)?;
        self.started.checked_sub(end)
    }

    /// Whether its pod was born with a value that had been superseded before it was asked for.
    fn born_late(&self, way: Way, changes: &Changes) -> bool {
        let end = self.value(way).and_then(|value| changes.end_of(value));
        self.asked.zip(end).is_some_and(|(asked, end)| end < asked)
    }
}

fn word<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    line.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

pub fn heading() -> String {
    format!(
        "{:<16} {:<8} {:>6} {:>10} {:>10} {:>10} {:>22}",
        "START", "BY", "TRIES", "OLD VALUE", "MEDIAN ms", "LATEST ms", "BORN AFTER THE CHANGE"
    )
}

/// One line: how many started with an old value, and how late; how many of these were born after the change.
pub fn row(trial: &str, way: Way, samples: &[Sample], changes: &Changes) -> String {
    let read: Vec<&Sample> = samples.iter().filter(|sample| sample.value(way).is_some()).collect();
    let mut late: Vec<u64> = read.iter().filter_map(|sample| sample.late(way, changes)).collect();
    late.sort_unstable();
    let born = read.iter().filter(|sample| sample.born_late(way, changes)).count();
    let born =
        if read.iter().all(|sample| sample.asked.is_none()) { "-".to_owned() } else { born.to_string() };
    let shown = |at: Option<&u64>| at.map_or_else(|| "-".to_owned(), u64::to_string);
    format!(
        "{trial:<16} {:<8} {:>6} {:>10} {:>10} {:>10} {born:>22}",
        way.word(),
        read.len(),
        late.len(),
        shown(late.get(late.len() / 2)),
        shown(late.last()),
    )
}
