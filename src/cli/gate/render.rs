//! The report as people and as CI systems read it.

use std::io;

use quick_xml::{
    Writer,
    events::{BytesDecl, BytesText, Event},
};

use super::verdict::{Answer, Report};
use crate::cli::{
    CliError,
    output::{Paint, Tone},
    table::{Cell, Table},
};

/// The table, and all in words.
#[must_use]
pub fn render(report: &Report, paint: Paint, wide: bool) -> String {
    let mut table = Table::new(&["ANSWER", "CHECK", "DETAIL"]);
    for check in &report.checks {
        if wide || check.answer != Answer::Passed || report.checks.len() <= 20 {
            let (tone, word) = toned(check.answer);
            table.row(vec![
                Cell::toned(tone, word),
                check.name.as_str().into(),
                check.detail.as_str().into(),
            ]);
        }
    }
    let table = if report.checks.is_empty() { String::new() } else { table.render(paint) + "\n" };
    format!("{table}{}\n", paint.paint(toned(report.status).0, &report.message))
}

const fn toned(answer: Answer) -> (Tone, &'static str) {
    match answer {
        Answer::Passed => (Tone::Good, "passed"),
        Answer::Skipped => (Tone::Plain, "skipped"),
        Answer::Pending => (Tone::Warning, "pending"),
        Answer::Unknown => (Tone::Warning, "unknown"),
        Answer::Failed => (Tone::Bad, "failed"),
    }
}

/// The report as `JUnit` XML.
///
/// # Errors
/// It can't be written.
pub fn junit(report: &Report) -> Result<String, CliError> {
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    write(&mut writer, report).map_err(|error| CliError::failed(format!("failed to write XML: {error}")))?;
    Ok(String::from_utf8_lossy(&writer.into_inner()).into_owned() + "\n")
}

fn write(writer: &mut Writer<Vec<u8>>, report: &Report) -> io::Result<()> {
    let count = |answers: &[Answer]| {
        report.checks.iter().filter(|check| answers.contains(&check.answer)).count().to_string()
    };
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let suite = writer.create_element("testsuite").with_attributes([
        ("name", format!("uptake gate {} -n {}", report.target, report.namespace).as_str()),
        ("tests", report.checks.len().to_string().as_str()),
        ("failures", count(&[Answer::Failed]).as_str()),
        ("errors", count(&[Answer::Unknown, Answer::Pending]).as_str()),
        ("skipped", count(&[Answer::Skipped]).as_str()),
    ]);
    suite.write_inner_content(|writer| {
        for check in &report.checks {
            let case = writer
                .create_element("testcase")
                .with_attributes([("classname", report.target.as_str()), ("name", check.name.as_str())]);
            let inner = match check.answer {
                Answer::Passed => {
                    case.write_empty()?;
                    continue;
                }
                Answer::Failed => "failure",
                Answer::Skipped => "skipped",
                Answer::Pending | Answer::Unknown => "error",
            };
            case.write_inner_content(|writer| {
                let element = writer.create_element(inner).with_attribute(("message", check.detail.as_str()));
                element.write_empty().map(|_| ())
            })?;
        }
        let said = writer.create_element("system-out");
        said.write_text_content(BytesText::new(&report.message)).map(|_| ())
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{super::verdict::Check, *};

    #[test]
    fn junit_tells_every_check() {
        let check = |name: &str, answer| Check {
            name: name.to_owned(),
            answer,
            detail: "a < b".to_owned(),
            rolls: None,
        };
        let report = Report {
            target: "secret/db".to_owned(),
            namespace: "shop".to_owned(),
            status: Answer::Failed,
            consumers: 1,
            restarted: true,
            checks: vec![
                check("one", Answer::Passed),
                check("two", Answer::Failed),
                check("three", Answer::Unknown),
            ],
            message: "no".to_owned(),
        };
        insta::assert_snapshot!(junit(&report).unwrap());
    }
}
