//! `check`: finds every pod template in manifests that consumes a Secret. No cluster is asked.

mod render;
mod sarif;
mod templates;
pub mod verdict;
pub mod yaml;

use std::{
    collections::BTreeSet,
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

pub use templates::{Object, objects};
use verdict::{ErrorReport, Options, Report};

use super::{
    CliError, Exit,
    args::{CheckArgs, CheckFormat},
    output::{self, Format},
};

/// Runs it.
///
/// # Errors
/// A file can't be read.
pub fn run(args: &CheckArgs) -> Result<Exit, CliError> {
    let options = Options {
        without_operator: args.without_operator,
        workloads: args.workloads.clone(),
        examined: args.examined.as_deref().map(examined).transpose()?,
    };
    let mut texts = Vec::new();
    for file in &args.files {
        read(file, &mut BTreeSet::new(), &mut texts)?;
    }
    let report = check(&texts, &options);
    let format = match args.output {
        CheckFormat::Sarif => {
            output::write(&output::json(&sarif::sarif(&report))?);
            return Ok(exit(&report));
        }
        CheckFormat::Table => Format::Table,
        CheckFormat::Wide => Format::Wide,
        CheckFormat::Json => Format::Json,
        CheckFormat::Yaml => Format::Yaml,
    };
    output::print(format, &report, |paint, wide| render::render(&report, paint, wide))?;
    Ok(exit(&report))
}

/// Checks texts, each with its file's name.
#[must_use]
pub fn check(texts: &[(String, String)], options: &Options) -> Report {
    let (mut all, mut errors) = (Vec::new(), Vec::new());
    for (file, text) in texts {
        let (documents, unreadable) = yaml::documents(text);
        all.extend(documents.iter().flat_map(objects).map(|object| (file.clone(), object)));
        errors.extend(unreadable.map(|unreadable| ErrorReport::new(file, unreadable)));
    }
    verdict::report(&all, errors, options)
}

fn exit(report: &Report) -> Exit {
    if report.summary.pending > 0 || !report.errors.is_empty() { Exit::No } else { Exit::Done }
}

/// Reads a file, a folder's manifests, or standard input. A folder is read once, whatever links lead to it: they may lead
/// round in a circle.
fn read(
    file: &Path,
    folders: &mut BTreeSet<PathBuf>,
    texts: &mut Vec<(String, String)>,
) -> Result<(), CliError> {
    let unreadable =
        |error: io::Error| CliError::usage(format!("failed to read {}: {error}", file.display()));
    if file.as_os_str() == "-" {
        let mut text = String::new();
        io::stdin().lock().read_to_string(&mut text).map_err(unreadable)?;
        texts.push(("-".to_owned(), text));
        return Ok(());
    }
    if !file.is_dir() {
        texts.push((file.display().to_string(), fs::read_to_string(file).map_err(unreadable)?));
        return Ok(());
    }
    if !folders.insert(file.canonicalize().map_err(unreadable)?) {
        return Ok(());
    }
    let entries = fs::read_dir(file).map_err(unreadable)?;
    let mut inside: Vec<PathBuf> =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>().map_err(unreadable)?;
    inside.sort();
    for path in inside.iter().filter(|path| is_manifest(path)) {
        read(path, folders, texts)?;
    }
    Ok(())
}

fn is_manifest(path: &Path) -> bool {
    let hidden = path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with('.'));
    let extension = path.extension().and_then(|extension| extension.to_str());
    !hidden && (path.is_dir() || matches!(extension, Some("yaml" | "yml" | "json")))
}

fn examined(file: &Path) -> Result<BTreeSet<String>, CliError> {
    let text = fs::read_to_string(file)
        .map_err(|error| CliError::usage(format!("failed to read {}: {error}", file.display())))?;
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    Ok(lines.filter(|line| !line.is_empty()).map(ToOwned::to_owned).collect())
}

#[cfg(test)]
mod tests;
