//! Builds claims from the members of a document, and handles missing, misspelled or mistyped
//! members.

use super::json::{Json, Object};
use super::{MAX_FINDINGS, ReplyProblem};
use crate::ai::claim::{
    Claim, ComplianceClaim, Elsewhere, NotReviewed, Rebuttal, Reply, RequirementClaim,
    ViolationClaim,
};
use crate::text::first_chars;
use crate::untrusted::Inert;

/// Unknown keys of a reply that are noted, at most.
const MAX_NOTES: usize = 20;

/// Secondary locations of a claim that are parsed, at most.
const MAX_ALSO: usize = 20;

/// Parses the members of a reply. Also returns the members outside the schema.
pub(super) fn reply(mut o: Object) -> Result<(Reply, Vec<(String, Json)>), ReplyProblem> {
    let findings = match o.take("findings") {
        Some(Json::List(list)) => entries(list, "findings", claim)?,
        Some(_) => return Err(ReplyProblem::repairable("`findings` is not a list")),
        None => return Err(ReplyProblem::repairable("`findings` is missing")),
    };
    let files_reviewed = match o.take("files_reviewed") {
        Some(Json::List(list)) => list.into_iter().filter_map(Json::into_text).collect(),
        Some(Json::Text(one)) => vec![one],
        Some(_) => return Err(ReplyProblem::repairable("`files_reviewed` is not a list")),
        None => return Err(ReplyProblem::repairable("`files_reviewed` is missing")),
    };
    let not_reviewed = match o.take("not_reviewed") {
        Some(Json::List(list)) => not_reviewed(list)?,
        Some(Json::Text(one)) if one.trim().is_empty() => Vec::new(),
        Some(_) => return Err(ReplyProblem::repairable("`not_reviewed` is not a list")),
        None => Vec::new(),
    };
    let design_compliance = match o.take("design_compliance") {
        Some(Json::Object(inner)) => Some(compliance(inner)?),
        Some(_) => {
            return Err(ReplyProblem::repairable(
                "`design_compliance` is not an object",
            ));
        }
        None => None,
    };
    let missing_requirements = match o.take("missing_requirements") {
        Some(Json::List(list)) => entries(list, "missing_requirements", missing)?,
        Some(_) => {
            return Err(ReplyProblem::repairable(
                "`missing_requirements` is not a list",
            ));
        }
        None => Vec::new(),
    };
    let summary = o
        .take("summary")
        .and_then(Json::into_text)
        .unwrap_or_default();
    let notes = others(&o, "")?;
    let nonce = String::new();
    let reply = Reply {
        nonce,
        summary,
        files_reviewed,
        not_reviewed,
        findings,
        design_compliance,
        missing_requirements,
        notes,
    };
    Ok((reply, o.0))
}

/// Parses the members of a rebuttal.
pub(super) fn rebuttal(mut o: Object) -> Result<Rebuttal, ReplyProblem> {
    let refuted = o.take("refuted").as_ref().and_then(boolean);
    let refuted =
        refuted.ok_or_else(|| ReplyProblem::repairable("`refuted` is neither true nor false"))?;
    let reason = text(&mut o, &["reason"]).unwrap_or_default();
    let quote = text(&mut o, &["quote"]).unwrap_or_default();
    Ok(Rebuttal {
        nonce: String::new(),
        refuted,
        reason,
        quote,
    })
}

/// Parses the list of files that were not reviewed: objects, or only paths.
fn not_reviewed(list: Vec<Json>) -> Result<Vec<NotReviewed>, ReplyProblem> {
    if list.len() > MAX_FINDINGS {
        return Err(ReplyProblem::final_(format!(
            "the reply has more than {MAX_FINDINGS} files not reviewed"
        )));
    }
    let entries = list.into_iter().enumerate().map(|(i, value)| match value {
        Json::Text(file) => Ok(NotReviewed {
            file,
            why: String::new(),
        }),
        Json::Object(mut o) => Ok(NotReviewed {
            file: text(&mut o, &["file", "path"]).unwrap_or_default(),
            why: text(&mut o, &["why", "reason"]).unwrap_or_default(),
        }),
        _ => Err(ReplyProblem::repairable(format!(
            "`not_reviewed[{i}]` is not an object"
        ))),
    });
    entries.collect()
}

/// Parses each entry of a list of objects.
pub(super) fn entries<T>(
    list: Vec<Json>,
    name: &str,
    read: fn(Object) -> T,
) -> Result<Vec<T>, ReplyProblem> {
    if list.len() > MAX_FINDINGS {
        return Err(ReplyProblem::final_(format!(
            "the reply has more than {MAX_FINDINGS} {name}"
        )));
    }
    let entries = list.into_iter().enumerate().map(|(i, value)| match value {
        Json::Object(o) => Ok(read(o)),
        _ => Err(ReplyProblem::repairable(format!(
            "`{name}[{i}]` is not an object"
        ))),
    });
    entries.collect()
}

/// Returns notes on the members outside the schema. Scalars are noted. A list or an object with
/// content is an error, because it can hold findings under another name.
fn others(o: &Object, at: &str) -> Result<Vec<String>, ReplyProblem> {
    let mut notes = Vec::new();
    for (key, value) in &o.0 {
        let name = short(key, 40);
        if value.has_members() {
            return Err(ReplyProblem::repairable(format!(
                "`{at}{name}` is not a key of the schema, and has content"
            )));
        }
        match value {
            Json::Text(s) if s.trim().is_empty() => {}
            Json::Text(s) => notes.push(format!("the reply also has {name}: {}", short(s, 400))),
            Json::Int(_) | Json::Float(_) | Json::Bool(_) => {
                let said = value.clone().into_text().unwrap_or_default();
                notes.push(format!("the reply also has {name}: {said}"));
            }
            _ => {}
        }
    }
    notes.truncate(MAX_NOTES);
    Ok(notes)
}

fn claim(mut o: Object) -> Claim {
    let mut notes = Vec::new();
    let (line, to) = number(
        o.take_any(&["line", "line_number", "start_line"]),
        "line",
        &mut notes,
    );
    let (end_line, _) = number(o.take("end_line"), "end_line", &mut notes);
    let message = text(
        &mut o,
        &["message", "description", "comment", "explanation"],
    )
    .unwrap_or_default();
    Claim {
        file: text(&mut o, &["file", "path"]),
        line,
        end_line: end_line.or(to),
        quote: text(&mut o, &["quote"]),
        also: o.take("also").map(elsewhere).unwrap_or_default(),
        severity: text(&mut o, &["severity"]).unwrap_or_default(),
        category: text(&mut o, &["category"]).unwrap_or_default(),
        cwe: o.take("cwe").as_ref().and_then(weakness),
        title: text(&mut o, &["title"]).unwrap_or_default(),
        message,
        failure: text(&mut o, &["failure"]),
        suggestion: text(&mut o, &["suggestion", "suggested_fix"]),
        replacement: text(&mut o, &["replacement"]),
        convention: text(&mut o, &["convention"]),
        notes,
    }
}

/// Parses the secondary locations of a claim: a list, or a single location. Other values are
/// ignored.
fn elsewhere(value: Json) -> Vec<Elsewhere> {
    let all = match value {
        Json::List(list) => list,
        one => vec![one],
    };
    let objects = all
        .into_iter()
        .take(MAX_ALSO)
        .filter_map(|value| match value {
            Json::Object(o) => Some(o),
            _ => None,
        });
    let places = objects.map(|mut o| Elsewhere {
        file: text(&mut o, &["file", "path"]),
        line: number(
            o.take_any(&["line", "line_number", "start_line"]),
            "line",
            &mut Vec::new(),
        )
        .0,
        quote: text(&mut o, &["quote"]),
    });
    places.collect()
}

fn compliance(mut o: Object) -> Result<ComplianceClaim, ReplyProblem> {
    let violations = match o.take("violations") {
        Some(Json::List(list)) => entries(list, "violations", violation)?,
        Some(_) => return Err(ReplyProblem::repairable("`violations` is not a list")),
        None => Vec::new(),
    };
    let follows_architecture = o.take("follows_architecture").as_ref().and_then(boolean);
    others(&o, "design_compliance.")?;
    Ok(ComplianceClaim {
        follows_architecture: follows_architecture.unwrap_or(violations.is_empty()),
        violations,
    })
}

fn violation(mut o: Object) -> ViolationClaim {
    ViolationClaim {
        issue: text(&mut o, &["issue"]).unwrap_or_default(),
        description: text(&mut o, &["description"]).unwrap_or_default(),
        impact: text(&mut o, &["impact", "severity"]).unwrap_or_default(),
        reference: text(&mut o, &["reference"]),
        recommendation: text(&mut o, &["recommendation"]),
    }
}

fn missing(mut o: Object) -> RequirementClaim {
    RequirementClaim {
        requirement: text(&mut o, &["requirement"]).unwrap_or_default(),
        reference: text(&mut o, &["reference", "design_doc_reference"]),
        severity: text(&mut o, &["severity"]).unwrap_or_default(),
    }
}

/// Returns the first text of several keys that is not blank. Removes the members up to it.
pub(super) fn text(o: &mut Object, keys: &[&str]) -> Option<String> {
    let mut texts = keys
        .iter()
        .filter_map(|k| o.take(k).and_then(Json::into_text));
    texts.find(|t| !t.trim().is_empty())
}

/// Parses a line number, and the end of a range such as `"12-15"`. Notes an invalid value.
fn number(value: Option<Json>, name: &str, notes: &mut Vec<String>) -> (Option<i64>, Option<i64>) {
    let lines = 1..=i64::from(u32::MAX);
    let (first, last) = match &value {
        None => return (None, None),
        Some(Json::Int(n)) => (Some(*n), None),
        Some(Json::Float(n)) if n.fract() == 0.0 && n.abs() < 9e15 => (Some(*n as i64), None),
        Some(Json::Text(s)) => {
            let s = s.trim();
            let s = s
                .strip_prefix("lines")
                .or_else(|| s.strip_prefix("line"))
                .unwrap_or(s);
            let s = s.trim().trim_start_matches('L');
            match s.split_once(['-', '–']) {
                Some((a, b)) => (
                    a.trim().parse().ok(),
                    b.trim().trim_start_matches('L').parse().ok(),
                ),
                None => (s.parse().ok(), None),
            }
        }
        Some(_) => (None, None),
    };
    let first = first.filter(|n| lines.contains(n));
    if first.is_none() {
        let said = value
            .and_then(Json::into_text)
            .map_or_else(String::new, |s| format!(" {}", short(&s, 20)));
        notes.push(format!("its `{name}`{said} is not a line number"));
    }
    (first, last.filter(|n| lines.contains(n)))
}

/// Parses a CWE number: `79`, `"79"`, `"CWE-79"`.
fn weakness(value: &Json) -> Option<i64> {
    let number = match value {
        Json::Int(n) => *n,
        Json::Float(n) if n.fract() == 0.0 && n.abs() < 1e6 => *n as i64,
        Json::Text(s) => {
            let digits: String = s
                .chars()
                .skip_while(|c| !c.is_ascii_digit())
                .take_while(char::is_ascii_digit)
                .collect();
            digits.parse().ok()?
        }
        _ => return None,
    };
    (1..100_000).contains(&number).then_some(number)
}

pub(super) fn boolean(value: &Json) -> Option<bool> {
    match value {
        Json::Bool(b) => Some(*b),
        Json::Text(s) => match s.trim().to_ascii_lowercase().as_str() {
            "true" | "yes" => Some(true),
            "false" | "no" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// Escapes and truncates untrusted text for a message.
pub(super) fn short(text: &str, most: usize) -> String {
    let shown = first_chars(text, most);
    let more = if shown.len() < text.len() { "…" } else { "" };
    format!("{}{more}", Inert::new(shown).as_str())
}
