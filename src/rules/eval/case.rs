//! The file format of labelled cases.

use crate::error::{Error, Result};
use serde::Deserialize;

/// A line of a case file.
const FORM: &str =
    "each line is a JSON object with id, language, category, file, code, expected and safe";

/// A labelled file.
#[derive(Clone, Debug, Deserialize)]
pub struct Case {
    pub id: String,
    pub language: String,
    #[serde(default)]
    pub framework: Option<String>,
    /// A kind of sink or of structural calls, such as `sql` or `cookie`.
    pub category: String,
    #[serde(default)]
    pub cwe: Option<u32>,
    /// Path of the file. It decides the language and whether the file is a test.
    pub file: String,
    pub code: String,
    /// Lines, from 1, on which a finding is expected.
    pub expected: Vec<u32>,
    /// Lines, from 1, that look similar and are harmless.
    pub safe: Vec<u32>,
    /// Position of the case: `FILE:LINE`.
    #[serde(skip)]
    pub place: String,
}

/// Reads the cases of a file, one a line. Empty lines are skipped.
///
/// # Errors
///
/// Usage: a line is not a case, or labels a line that its code does not have. The error names file
/// and line.
pub fn read(name: &str, text: &str) -> Result<Vec<Case>> {
    let lines = (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(number, line)| parse(&format!("{name}:{number}"), line))
        .collect()
}

fn parse(place: &str, line: &str) -> Result<Case> {
    let case: Case = serde_json::from_str(line)
        .map_err(|e| invalid(place, &without_position(&e.to_string())))?;
    for (key, text) in [
        ("id", &case.id),
        ("file", &case.file),
        ("category", &case.category),
        ("code", &case.code),
    ] {
        if text.trim().is_empty() {
            return Err(invalid(place, &format!("{key} is empty")));
        }
    }
    let count = case.code.lines().count();
    for (key, lines) in [("expected", &case.expected), ("safe", &case.safe)] {
        if let Some(line) = lines
            .iter()
            .find(|n| !(1..=count).contains(&(**n as usize)))
        {
            return Err(invalid(
                place,
                &format!("{key}: line {line} is outside of the code, which has {count} lines"),
            ));
        }
    }
    if let Some(line) = case.expected.iter().find(|n| case.safe.contains(n)) {
        return Err(invalid(
            place,
            &format!("line {line} is both expected and safe"),
        ));
    }
    Ok(Case {
        place: place.to_owned(),
        ..case
    })
}

/// Returns the error of a case at a place.
fn invalid(place: &str, why: &str) -> Error {
    Error::usage(format!("{place}: invalid case: {why}")).hint(FORM)
}

/// Returns a message of the JSON parser with the column only: its line is always 1.
fn without_position(message: &str) -> String {
    message.replace("at line 1 column", "at column")
}
