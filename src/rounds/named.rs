//! Finds the finding of a stored review that a person or an agent names.

use crate::error::{Error, Result};
use crate::wire;

/// Digits of a fingerprint prefix that names a finding of a session, at least.
const DIGITS: usize = 4;

/// Finds a finding by its ID or by a prefix of its fingerprint.
///
/// # Errors
/// Usage: no finding, or several.
pub(super) fn select<'f>(
    findings: &'f [wire::Finding],
    name: &str,
    review: &str,
) -> Result<&'f wire::Finding> {
    // An ID can look like a prefix of a fingerprint.
    if let Some(one) = findings.iter().find(|f| f.id.eq_ignore_ascii_case(name)) {
        return Ok(one);
    }
    let is_prefix = name.len() >= DIGITS && name.bytes().all(|b| b.is_ascii_hexdigit());
    let lower = name.to_ascii_lowercase();
    let mut found = findings
        .iter()
        .filter(|f| is_prefix && f.fingerprint.starts_with(&lower));
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (None, _) => Err(with_hints(unknown_name(findings, name, review), review)),
        (Some(_), Some(_)) => Err(with_hints(
            Error::usage(format!("{name} names several findings of review {review}")),
            review,
        )),
    }
}

/// Adds the commands that list the names of findings.
fn with_hints(error: Error, review: &str) -> Error {
    error
        .hint_person(format!(
            "list the findings: claude-reviewer findings {review}"
        ))
        .hint_agent(format!(
            "call get_review_history with review_id {review}, and name findings by their id"
        ))
}

/// Returns the error for a name that matches no finding.
fn unknown_name(findings: &[wire::Finding], name: &str, review: &str) -> Error {
    let separated: Vec<&str> = name
        .split([',', ';'])
        .map(str::trim)
        .filter(|n| !n.is_empty())
        .collect();
    if separated.len() > 1 {
        let error = Error::usage(format!("{name:?} is not the name of one finding"));
        return error
            .hint_person(format!(
                "separate names with spaces: {}",
                separated.join(" ")
            ))
            .hint_agent("pass each name as its own item of findings");
    }
    let number = name
        .strip_prefix(['f', 'F'])
        .filter(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    let shown = number.map_or_else(|| format!("{name:?}"), |number| format!("\"F{number}\""));
    let known = match findings {
        [] => " and no finding at all".to_owned(),
        [one] => format!("; its only finding is {}", one.id),
        [first, .., last] => format!("; it has {} to {}", first.id, last.id),
    };
    let digits = match number {
        Some(_) if name.len() < DIGITS => {
            format!(" (the first digits of a fingerprint are at least {DIGITS})")
        }
        _ => String::new(),
    };
    Error::usage(format!(
        "review {review} has no finding {shown}{known}{digits}"
    ))
}
