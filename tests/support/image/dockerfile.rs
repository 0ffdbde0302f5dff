//! What the Dockerfile says of the image: its last stage, and the files that are put together for it.

use crate::support::Result;
use std::collections::BTreeMap;

/// One file of the image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// In the repository; what is built lies below `target`.
    pub source: String,
    /// In the image, without the leading slash.
    pub path: String,
    pub mode: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipe {
    pub files: Vec<Installed>,
    pub entrypoint: Vec<String>,
    pub user: String,
    pub ports: Vec<String>,
    pub labels: BTreeMap<String, String>,
}

/// Where the build stage puts the image's files, and what the last stage copies.
const STAGED: &str = "/image/";

impl Recipe {
    /// Only what this project's Dockerfile uses is understood; anything else is an error, so that nothing is left out.
    pub fn read(text: &str, arguments: &BTreeMap<&str, String>) -> Result<Self> {
        let text = text.replace("\\\n", " ");
        let (build, last) =
            text.rsplit_once("\nFROM scratch\n").ok_or("the last stage isn't FROM scratch")?;
        let installed = build.lines().filter_map(|line| line.strip_prefix("RUN install -D -m "));
        let mut recipe = Self {
            files: installed.map(install).collect::<Result<_>>()?,
            entrypoint: Vec::new(),
            user: String::new(),
            ports: Vec::new(),
            labels: BTreeMap::new(),
        };
        let mut known = BTreeMap::new();
        for line in last.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (instruction, rest) = line.split_once(' ').ok_or_else(|| format!("half a line: {line}"))?;
            match instruction {
                "ARG" => {
                    let (name, default) = rest.split_once('=').ok_or("an ARG without a default")?;
                    known.insert(name, arguments.get(name).cloned().unwrap_or_else(|| default.into()));
                }
                "LABEL" => recipe.labels = labels(rest, &known)?,
                "COPY" if rest == format!("--from=build {STAGED} /") => {}
                "USER" => recipe.user = rest.into(),
                "EXPOSE" => recipe.ports.push(format!("{rest}/tcp")),
                "ENTRYPOINT" => recipe.entrypoint = serde_json::from_str(rest)?,
                _ => return Err(format!("not understood: {line}").into()),
            }
        }
        Ok(recipe)
    }
}

/// `MODE SOURCE /image/PATH`
fn install(rest: &str) -> Result<Installed> {
    let &[mode, source, target] = rest.split_whitespace().collect::<Vec<_>>().as_slice() else {
        return Err(format!("not understood: install {rest}").into());
    };
    let path = target.strip_prefix(STAGED).ok_or_else(|| format!("{target} isn't below {STAGED}"))?;
    Ok(Installed { source: source.into(), path: path.into(), mode: u32::from_str_radix(mode, 8)? })
}

/// `NAME="VALUE" …`, with arguments in the values.
fn labels(text: &str, arguments: &BTreeMap<&str, String>) -> Result<BTreeMap<String, String>> {
    let mut labels = BTreeMap::new();
    let mut rest = text.trim();
    while let Some((name, after)) = rest.split_once("=\"") {
        let (value, after) = after.split_once('"').ok_or("a label's value has no end")?;
        let mut value = value.to_owned();
        for (argument, is) in arguments {
            value = value.replace(&format!("${{{argument}}}"), is);
        }
        labels.insert(name.trim().into(), value);
        rest = after.trim();
    }
    if rest.is_empty() { Ok(labels) } else { Err(format!("not a label: {rest}").into()) }
}
