//! The file of decisions: TOML, one table for each finding, sorted by path, rule and fingerprint.

use super::comments::Comments;
use super::{DecisionEntry, Digest, Occurrence, put};
use crate::finding::Decision;
use jiff::civil::Date;
use serde::Deserialize;
use std::collections::HashSet;
use std::fmt::Write as _;
use toml::Spanned;

/// The only version of the format.
const VERSION: u32 = 1;
/// Entries of a file, at most.
const MAX_ENTRIES: usize = 20_000;

const HEAD: &str = "\
# Decisions on findings, written by `claude-reviewer reject --share` and `defer --share`.
# An entry holds until its lines change, the file gets another copy of them, or it expires.
version = 1
";

/// A file of decisions: its entries, and the comments of people, which stay when the file is
/// written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sheet {
    pub entries: Vec<DecisionEntry>,
    comments: Comments,
}

impl Sheet {
    /// Parses a file.
    ///
    /// # Errors
    /// Same as [`parse`].
    pub fn parse(text: &str) -> Result<Self, DispositionProblem> {
        let entries = parse(text)?;
        let fingerprints: Vec<&str> = entries.iter().map(|e| e.fingerprint.as_str()).collect();
        let own: Vec<&str> = HEAD.lines().filter(|line| line.starts_with('#')).collect();
        let comments = Comments::of(text, &fingerprints, &own);
        Ok(Self { entries, comments })
    }

    /// Adds an entry. It replaces the entries of the same finding, whose comments stay.
    pub fn put(&mut self, entry: DecisionEntry) {
        put(&mut self.entries, entry);
    }

    /// Returns the text of the file. The comments of removed entries are removed too.
    pub fn render(&self) -> String {
        written(&self.entries, &self.comments)
    }
}

/// Why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DispositionProblem {
    /// Line number, 1-based.
    pub line: Option<usize>,
    pub message: String,
}

/// The file of decisions as TOML.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DispositionFile {
    version: Spanned<u32>,
    #[serde(default)]
    disposition: Vec<Spanned<Table>>,
}

/// An entry of the file as TOML.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    fingerprint: Spanned<String>,
    rule: String,
    path: Option<String>,
    #[serde(default)]
    line: String,
    digest: Option<Spanned<String>>,
    occurrence: Option<Spanned<String>>,
    status: Spanned<String>,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    owner: String,
    created: Spanned<String>,
    expires: Option<Spanned<String>>,
}

/// Parses a file.
///
/// # Errors
/// The first problem, with its line. No entry of such a file counts.
pub fn parse(text: &str) -> Result<Vec<DecisionEntry>, DispositionProblem> {
    let file: DispositionFile = toml::from_str(text).map_err(|e| DispositionProblem {
        line: e.span().map(|span| line_at(text, span.start)),
        message: e.message().lines().next().unwrap_or_default().to_owned(),
    })?;
    if *file.version.get_ref() != VERSION {
        let message = format!(
            "version {} is not known; the newest is {VERSION}",
            file.version.get_ref()
        );
        return Err(DispositionProblem {
            line: Some(line_at(text, file.version.span().start)),
            message,
        });
    }
    if file.disposition.len() > MAX_ENTRIES {
        return Err(DispositionProblem {
            line: None,
            message: format!("more than {MAX_ENTRIES} entries"),
        });
    }
    let mut seen = HashSet::new();
    let mut entries = Vec::with_capacity(file.disposition.len());
    for table in file.disposition {
        let (span, entry) =
            entry(table.into_inner()).map_err(|(span, message)| DispositionProblem {
                line: Some(line_at(text, span.start)),
                message,
            })?;
        if !seen.insert(entry.fingerprint.clone()) {
            let message = format!("a second entry for {}", entry.fingerprint);
            return Err(DispositionProblem {
                line: Some(line_at(text, span.start)),
                message,
            });
        }
        entries.push(entry);
    }
    Ok(entries)
}

/// Returns the line of a byte offset, 1-based.
fn line_at(text: &str, offset: usize) -> usize {
    text[..offset.min(text.len())].matches('\n').count() + 1
}

type EntrySpan = std::ops::Range<usize>;

/// Validates a table. Returns the entry, and the position of its fingerprint.
fn entry(t: Table) -> Result<(EntrySpan, DecisionEntry), (EntrySpan, String)> {
    let fingerprint = t.fingerprint.get_ref();
    if fingerprint.len() != 32
        || !fingerprint
            .bytes()
            .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    {
        return Err((
            t.fingerprint.span(),
            "fingerprint must be 32 hexadecimal digits, lower case".to_owned(),
        ));
    }
    let decision = Decision::parse(t.status.get_ref());
    let decision = decision.ok_or_else(|| {
        (
            t.status.span(),
            "status must be accepted, rejected or deferred".to_owned(),
        )
    })?;
    let created = date(&t.created, "created")?;
    let expires = t
        .expires
        .as_ref()
        .map(|text| date(text, "expires"))
        .transpose()?;
    let digest = match &t.digest {
        None => None,
        Some(text) => {
            let digest = Digest::parse(text.get_ref());
            Some(digest.ok_or_else(|| {
                (
                    text.span(),
                    "digest must be scrypt:COST:SALT:HASH".to_owned(),
                )
            })?)
        }
    };
    let occurrence = t.occurrence.as_ref().map_or(Ok(Occurrence::ONLY), |text| {
        Occurrence::parse(text.get_ref()).ok_or_else(|| {
            (
                text.span(),
                "occurrence must be two numbers such as \"1 of 2\"".to_owned(),
            )
        })
    })?;
    if decision == Decision::Deferred && expires.is_none() {
        return Err((
            t.status.span(),
            "a deferred finding needs expires".to_owned(),
        ));
    }
    let span = t.fingerprint.span();
    let entry = DecisionEntry {
        fingerprint: t.fingerprint.into_inner(),
        rule: t.rule,
        path: t.path,
        line: t.line,
        digest,
        occurrence,
        decision,
        reason: t.reason,
        owner: t.owner,
        created,
        expires,
    };
    Ok((span, entry))
}

/// Parses the date of a key.
fn date(text: &Spanned<String>, name: &str) -> Result<Date, (EntrySpan, String)> {
    let parsed = text.get_ref().parse::<Date>();
    parsed.map_err(|_| {
        (
            text.span(),
            format!("{name} must be a date such as \"2026-01-31\""),
        )
    })
}

/// Returns the text of a file without comments of people.
pub fn render(entries: &[DecisionEntry]) -> String {
    written(entries, &Comments::default())
}

/// Returns the text of a file. The output order does not depend on that of the entries, so that two
/// people who add one each rarely conflict.
fn written(entries: &[DecisionEntry], comments: &Comments) -> String {
    let mut sorted: Vec<&DecisionEntry> = entries.iter().collect();
    sorted.sort_by(|a, b| {
        (&a.path, &a.rule, &a.fingerprint).cmp(&(&b.path, &b.rule, &b.fingerprint))
    });
    let (head, version) = HEAD.split_once("version").unwrap_or((HEAD, ""));
    let mut out = head.to_owned();
    lines(&comments.head, &mut out);
    let _ = write!(out, "version{version}");
    for e in sorted {
        out.push('\n');
        lines(
            comments
                .of_entries
                .get(&e.fingerprint)
                .map_or(&[][..], Vec::as_slice),
            &mut out,
        );
        out.push_str("[[disposition]]\n");
        field("fingerprint", &e.fingerprint, &mut out);
        field("rule", &e.rule, &mut out);
        if let Some(path) = &e.path {
            field("path", path, &mut out);
        }
        field("line", &e.line, &mut out);
        if let Some(digest) = &e.digest {
            field("digest", &digest.to_string(), &mut out);
        }
        if e.occurrence != Occurrence::ONLY {
            field("occurrence", &e.occurrence.to_string(), &mut out);
        }
        field("status", e.decision.name(), &mut out);
        field("reason", &e.reason, &mut out);
        field("owner", &e.owner, &mut out);
        field("created", &e.created.to_string(), &mut out);
        if let Some(expires) = e.expires {
            field("expires", &expires.to_string(), &mut out);
        }
    }
    if !comments.foot.is_empty() {
        out.push('\n');
        lines(&comments.foot, &mut out);
    }
    out
}

/// Appends a key and its value.
fn field(name: &str, value: &str, out: &mut String) {
    let _ = writeln!(out, "{name} = {}", crate::policy::quoted(value));
}

/// Writes lines.
fn lines(all: &[String], out: &mut String) {
    all.iter().for_each(|line| {
        let _ = writeln!(out, "{line}");
    });
}
