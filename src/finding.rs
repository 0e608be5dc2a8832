//! Findings: the problem, its position, severity, and evidence.
//!
//! A [`Finding`] can only be created from a [`Proof`]. `rules` proves a match in the change,
//! `ai::anchor` a claim that was anchored to it, and `rounds::recall` restores stored findings. No
//! other code may name `Proof` (a test scans the sources).

pub(crate) mod joined;
pub mod listing;
mod place;

use crate::diff::{LineNo, ObjectId, RepoPath};
use crate::hex;
use crate::text::one_line;
pub use place::{column, line_of, place};
use sha2::{Digest as _, Sha256};
use std::fmt;

/// Equal quotes of a file whose fingerprints are compared, at most: the number of findings that a
/// rule lists in a file.
const MAX_ORDINAL: u32 = 1_000;

/// The severity of a finding. Ordered: `Suggestion < Minor < Major < Critical`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    Suggestion,
    Minor,
    Major,
    Critical,
}

impl Severity {
    /// All severities, worst first.
    pub const ALL: [Self; 4] = [Self::Critical, Self::Major, Self::Minor, Self::Suggestion];

    /// Returns the canonical name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Major => "major",
            Self::Minor => "minor",
            Self::Suggestion => "suggestion",
        }
    }

    /// Parses a canonical name or one of the accepted synonyms, in any case.
    pub fn parse(s: &str) -> Option<Self> {
        Some(match s.trim().to_ascii_lowercase().as_str() {
            "critical" | "blocker" => Self::Critical,
            "major" | "high" | "error" | "risk" => Self::Major,
            "minor" | "medium" | "low" | "warning" | "issue" => Self::Minor,
            "suggestion" | "info" | "nit" | "note" => Self::Suggestion,
            _ => return None,
        })
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The category of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    Bug,
    Security,
    Performance,
    Style,
    Architecture,
    Design,
    MissingRequirement,
    BestPractice,
    Test,
}

impl Category {
    /// All categories, in the order of the documentation.
    pub const ALL: [Self; 9] = [
        Self::Bug,
        Self::Security,
        Self::Performance,
        Self::Style,
        Self::Architecture,
        Self::Design,
        Self::MissingRequirement,
        Self::BestPractice,
        Self::Test,
    ];

    /// Returns the canonical name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bug => "bug",
            Self::Security => "security",
            Self::Performance => "performance",
            Self::Style => "style",
            Self::Architecture => "architecture",
            Self::Design => "design",
            Self::MissingRequirement => "missing-requirement",
            Self::BestPractice => "best-practice",
            Self::Test => "test",
        }
    }

    /// Parses a canonical name, its plural, or its spelling with underscores, in any case.
    pub fn parse(s: &str) -> Option<Self> {
        let s = s.trim().to_ascii_lowercase().replace(['_', ' '], "-");
        let s = match s.as_str() {
            "missing-feature" | "missing-features" => "missing-requirement",
            other => other,
        };
        let singular = s.strip_suffix('s').unwrap_or(s);
        Self::ALL
            .into_iter()
            .find(|c| c.name() == s || c.name() == singular)
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How well a finding is supported. Ordered: `Low < Medium < High`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Confidence {
    Low,
    Medium,
    High,
}

impl Confidence {
    /// Returns the canonical name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// Parses a canonical name.
    pub fn parse(s: &str) -> Option<Self> {
        [Self::Low, Self::Medium, Self::High]
            .into_iter()
            .find(|c| c.name() == s)
    }
}

/// The source of a finding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    Rules,
    /// The configured name of a backend.
    Backend(String),
}

impl Origin {
    /// Returns the name that reports show.
    pub fn name(&self) -> &str {
        match self {
            Self::Rules => "rules",
            Self::Backend(name) => name,
        }
    }
}

/// A position in the change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    pub file: RepoPath,
    /// `None` for the whole file.
    pub lines: Option<LineSpan>,
}

/// Lines of the new side, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineSpan {
    pub first: LineNo,
    pub last: LineNo,
    /// Byte columns in the first line of the file, 0-based, the end excluded; `None` for the whole
    /// line.
    pub columns: Option<(u32, u32)>,
}

/// Another line that a finding involves: unchanged code that the change breaks, or the other half
/// of a contradiction.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Also {
    pub file: RepoPath,
    pub line: LineNo,
    /// The line without white space around it, secrets masked, at most 400 characters.
    pub quote: String,
}

/// A step on the path of a value to the call that makes it dangerous. It is in the file of the
/// finding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowStep {
    pub line: LineNo,
    pub role: FlowRole,
    /// The code of the step on one line, secrets masked, at most 200 bytes.
    pub quote: String,
}

/// The role of a step in a path of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FlowRole {
    /// The value comes from here.
    Source,
    /// The value, or a value made of it, is passed on.
    Through,
    /// The value is used in a dangerous way.
    Sink,
}

impl FlowRole {
    /// All roles, in the order of a path.
    pub const ALL: [Self; 3] = [Self::Source, Self::Through, Self::Sink];

    /// Returns the canonical name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Through => "through",
            Self::Sink => "sink",
        }
    }
}

/// Evidence for a finding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Evidence {
    /// A rule matched.
    Rule(String),
    /// The quote occurs in the change.
    Quote,
    /// A tool call read the lines.
    Read {
        path: RepoPath,
        first: LineNo,
        last: LineNo,
    },
    /// Another backend reports the same.
    Backend(String),
    /// A test fails on the change, and passes with a fix; see [`Reproduction`].
    Reproduced,
    /// An earlier round of the session reported the finding, and no later one has: its lines did
    /// not change.
    Carried { round: u32 },
}

/// Proof that a finding is about the reviewed change.
///
/// Only `rules` and `ai::anchor` may create one, and `rounds::recall` for a finding that was proven
/// when it was stored.
#[derive(Debug)]
pub struct Proof {
    origin: Origin,
    evidence: Vec<Evidence>,
    confidence: Confidence,
    /// The recorded fingerprint, for a stored finding.
    fingerprint: Option<Fingerprint>,
}

impl Proof {
    /// Creates the proof of a rule's match in the change.
    pub(crate) fn rule(id: &str, confidence: Confidence) -> Self {
        Self {
            origin: Origin::Rules,
            evidence: vec![Evidence::Rule(id.to_owned())],
            confidence,
            fingerprint: None,
        }
    }

    /// Creates the proof of a backend's anchored claim. The confidence follows from the evidence.
    pub(crate) fn claim(backend: &str, evidence: Vec<Evidence>, confidence: Confidence) -> Self {
        Self {
            origin: Origin::Backend(backend.to_owned()),
            evidence,
            confidence,
            fingerprint: None,
        }
    }

    /// Creates the proof of a recorded finding, with its recorded fingerprint.
    pub(crate) fn recorded(
        origin: Origin,
        evidence: Vec<Evidence>,
        confidence: Confidence,
        fingerprint: &str,
    ) -> Self {
        Self {
            origin,
            evidence,
            confidence,
            fingerprint: Some(Fingerprint(fingerprint.to_owned())),
        }
    }
}

/// The content of a finding before it is proven.
#[derive(Clone, Debug)]
pub struct Draft {
    pub rule_id: String,
    /// `None` for the whole change.
    pub location: Option<Location>,
    /// Other lines that the finding involves, in the order of the claim.
    pub also: Vec<Also>,
    /// Path of a value from its source to its sink; empty if no data flow was tracked. Not part of
    /// the fingerprint.
    pub flow: Vec<FlowStep>,
    pub severity: Severity,
    pub category: Category,
    pub title: String,
    pub message: String,
    pub failure: Option<String>,
    pub suggestion: Option<String>,
    pub replacement: Option<String>,
    /// The offending text with all secrets masked. Part of the fingerprint.
    pub quote: String,
    pub cwe: Option<u32>,
    /// Cited heading of the team's conventions.
    pub convention: Option<String>,
    pub references: Vec<String>,
}

/// The reason why a finding does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suppression {
    /// Kind of the suppression: `inline` or `policy`.
    pub by: &'static str,
    pub reason: String,
}

/// A person's acceptance of a finding for one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiver {
    pub reason: String,
    /// The person, if the environment names an actor.
    pub actor: String,
    /// Address of the reply on the forge with the waiver. Untrusted.
    pub link: Option<String>,
}

impl Waiver {
    /// Returns the person, with the address of the reply if there is one. Untrusted.
    pub fn by(&self) -> String {
        self.link.as_ref().map_or_else(
            || self.actor.clone(),
            |link| format!("{}, {link}", self.actor),
        )
    }
}

/// A person's decision on a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Decision {
    /// The finding is right and will be fixed. It still counts.
    Accepted,
    /// The finding is wrong, or no action is needed. It does not count.
    Rejected,
    /// The finding is right, but will be fixed later. It does not count until the decision expires.
    Deferred,
}

impl Decision {
    pub const ALL: [Self; 3] = [Self::Accepted, Self::Rejected, Self::Deferred];

    /// Returns the name in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
            Self::Deferred => "deferred",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|d| d.name() == name)
    }

    /// Returns true if a finding with this decision does not count.
    pub fn sets_aside(self) -> bool {
        self != Self::Accepted
    }
}

/// A decision that applies to a finding, with its reason. Texts of people, without secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disposition {
    pub decision: Decision,
    /// The reason; may be empty.
    pub reason: String,
    /// The person who decided.
    pub owner: String,
    /// The first day on which the decision no longer applies.
    pub expires: Option<jiff::civil::Date>,
}

/// A test that reproduces the defect. It ran in a sandbox: it fails on the change and passes with a
/// fix. Untrusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reproduction {
    /// Shell command that runs the test in the top folder.
    pub command: String,
    /// Files of the test that the repository does not have, as path and text.
    pub files: Vec<(String, String)>,
}

/// A proven claim about the change.
#[derive(Clone, Debug)]
pub struct Finding {
    draft: Draft,
    origin: Origin,
    evidence: Vec<Evidence>,
    confidence: Confidence,
    fingerprint: Fingerprint,
    /// Identifies the unmasked offending text: equal texts have equal values within a run. Has no
    /// meaning outside of the run, and is in no report.
    pub(crate) identity: u64,
    /// The commit of a range in which the finding is.
    pub commit: Option<ObjectId>,
    pub suppressed: Option<Suppression>,
    pub waived: Option<Waiver>,
    /// A person's decision; `None` if the finding is pending.
    pub disposition: Option<Disposition>,
    /// Reason why a backend considers the finding a false positive. A rule's finding counts all the
    /// same.
    pub disputed: Option<String>,
    pub reproduction: Option<Reproduction>,
    /// True if the finding blocks; set by the verdict.
    pub blocking: bool,
    /// The surrounding code, for people.
    pub frame: Option<Frame>,
    /// The column that a report states. A finding from a report has no code to compute it from.
    pub stated_column: Option<u32>,
}

impl Finding {
    /// Returns the finding with changed texts: those of its claim, and its citation if that is not
    /// a ticket.
    pub(crate) fn with_texts(&self, mut change: impl FnMut(&str) -> String) -> Self {
        let mut out = self.clone();
        let d = &mut out.draft;
        d.title = change(&d.title);
        d.message = change(&d.message);
        for text in [&mut d.failure, &mut d.suggestion, &mut d.convention] {
            *text = text.as_deref().map(&mut change).filter(|t| !t.is_empty());
        }
        out
    }

    /// Copies the path of another finding about the same flaw, and its severity and confidence if
    /// they are higher. Has no effect if the other one has no path, or if this one has one. The
    /// severity changes only if `raises` is true.
    pub(crate) fn take_flow(&mut self, other: &Self, raises: bool) {
        if other.draft.flow.is_empty() || !self.draft.flow.is_empty() {
            return;
        }
        self.draft.flow.clone_from(&other.draft.flow);
        self.confidence = self.confidence.max(other.confidence);
        if raises {
            self.draft.severity = self.draft.severity.max(other.draft.severity);
        }
    }

    /// Raises the severity to at least this one.
    pub(crate) fn raise(&mut self, severity: Severity) {
        self.draft.severity = self.draft.severity.max(severity);
    }

    /// Lowers the severity and confidence of a finding with a weaker proof than its rule assumes.
    /// The message states why.
    pub(crate) fn doubt(&mut self, severity: Severity, why: &str) {
        self.draft.severity = severity;
        self.draft.message = format!("{} ({why})", self.draft.message.trim_end_matches('.'));
        self.confidence = Confidence::Low;
    }

    /// Appends sentences to the message. The fingerprint stays.
    pub(crate) fn add_to_message(&mut self, sentences: &str) {
        let message = self.draft.message.trim_end().trim_end_matches('.');
        self.draft.message = format!("{message}. {sentences}");
    }

    /// Adds another line that the finding involves.
    pub(crate) fn add_place(&mut self, place: Also) {
        add_places(&mut self.draft.also, &[place]);
    }

    /// Removes the replacement of the lines.
    pub(crate) fn drop_replacement(&mut self) {
        self.draft.replacement = None;
    }

    /// Replaces title, message and citation. The fingerprint stays.
    pub(crate) fn retitle(&mut self, title: String, message: String, cited: String) {
        self.draft.title = title;
        self.draft.message = message;
        self.draft.quote.clone_from(&cited);
        self.draft.convention = Some(cited);
    }

    /// Creates a finding. The creator of the proof is responsible for the location and quote of the
    /// draft.
    pub fn new(proof: Proof, draft: Draft) -> Self {
        let Proof {
            origin,
            evidence,
            confidence,
            fingerprint,
        } = proof;
        let fingerprint = fingerprint.unwrap_or_else(|| Fingerprint::of(&draft, 0));
        Self {
            draft,
            origin,
            evidence,
            confidence,
            fingerprint,
            identity: 0,
            commit: None,
            suppressed: None,
            waived: None,
            disposition: None,
            disputed: None,
            reproduction: None,
            stated_column: None,
            blocking: false,
            frame: None,
        }
    }

    pub(crate) fn draft(&self) -> &Draft {
        &self.draft
    }
    pub fn rule_id(&self) -> &str {
        &self.draft.rule_id
    }
    pub fn location(&self) -> Option<&Location> {
        self.draft.location.as_ref()
    }
    /// Returns the path, if the finding has one.
    pub fn file(&self) -> Option<&RepoPath> {
        self.draft.location.as_ref().map(|l| &l.file)
    }
    /// Returns the lines, if the finding has any.
    pub fn lines(&self) -> Option<LineSpan> {
        self.draft.location.as_ref().and_then(|l| l.lines)
    }
    /// Returns the other lines that the finding involves.
    pub fn also(&self) -> &[Also] {
        &self.draft.also
    }
    /// Returns the path of a value from its source to its sink; empty if no data flow was tracked.
    pub fn flow(&self) -> &[FlowStep] {
        &self.draft.flow
    }
    pub fn severity(&self) -> Severity {
        self.draft.severity
    }
    pub fn category(&self) -> Category {
        self.draft.category
    }
    pub fn confidence(&self) -> Confidence {
        self.confidence
    }
    pub fn origin(&self) -> &Origin {
        &self.origin
    }
    pub fn evidence(&self) -> &[Evidence] {
        &self.evidence
    }
    pub fn title(&self) -> &str {
        &self.draft.title
    }
    pub fn message(&self) -> &str {
        &self.draft.message
    }
    pub fn failure(&self) -> Option<&str> {
        self.draft.failure.as_deref()
    }
    pub fn suggestion(&self) -> Option<&str> {
        self.draft.suggestion.as_deref()
    }
    pub fn replacement(&self) -> Option<&str> {
        self.draft.replacement.as_deref()
    }
    pub fn quote(&self) -> &str {
        &self.draft.quote
    }
    pub fn cwe(&self) -> Option<u32> {
        self.draft.cwe
    }
    pub fn convention(&self) -> Option<&str> {
        self.draft.convention.as_deref()
    }
    pub fn references(&self) -> &[String] {
        &self.draft.references
    }
    pub fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }
    /// Returns the fingerprints that findings of this rule with this quote have in the file, in the
    /// order of their lines.
    pub(crate) fn fingerprints(&self) -> impl Iterator<Item = Fingerprint> + '_ {
        (0..MAX_ORDINAL).map(|ordinal| Fingerprint::of(&self.draft, ordinal))
    }
    /// Adds evidence. The confidence does not change.
    pub(crate) fn support(&mut self, evidence: Evidence) {
        if !self.evidence.contains(&evidence) {
            self.evidence.push(evidence);
        }
    }
    /// Returns the round of the session that reported the finding, if no later one has.
    pub fn carried_from(&self) -> Option<u32> {
        self.evidence.iter().find_map(|e| match e {
            Evidence::Carried { round } => Some(*round),
            _ => None,
        })
    }
    /// Returns true if the finding counts for the verdict.
    pub fn counts(&self) -> bool {
        self.suppressed.is_none() && self.waived.is_none() && !self.is_set_aside()
    }
    /// Returns true if a person rejected or deferred the finding.
    pub fn is_set_aside(&self) -> bool {
        self.disposition
            .as_ref()
            .is_some_and(|d| d.decision.sets_aside())
    }
}

#[cfg(test)]
impl Finding {
    /// Creates a finding without a change, for tests of reports.
    pub(crate) fn sample(draft: Draft, confidence: Confidence) -> Self {
        Self::new(Proof::rule(&draft.rule_id, confidence), draft)
    }
}

/// The stable identity of a finding: moves of lines and re-indentation do not change it.
///
/// The first 16 bytes, in hexadecimal, of a SHA-256 over the rule, the path, the masked quote with
/// white space collapsed, and an ordinal that distinguishes equal quotes of a file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(String);

impl Fingerprint {
    fn of(draft: &Draft, ordinal: u32) -> Self {
        let mut hash = Sha256::new();
        add_field(&mut hash, draft.rule_id.as_bytes());
        add_field(
            &mut hash,
            draft
                .location
                .as_ref()
                .map_or(&[][..], |l| l.file.as_bytes()),
        );
        let folded = one_line(&draft.quote);
        add_field(&mut hash, folded.as_bytes());
        add_field(&mut hash, &ordinal.to_le_bytes());
        Self(hex::encode(&hash.finalize()[..16]))
    }

    /// Returns the 32 hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Adds a value with its length to a hash.
fn add_field(hash: &mut Sha256, bytes: &[u8]) {
    hash.update((bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Sorts findings by path, line, rule and commit, merges identical ones, and numbers equal quotes
/// of a file so that their fingerprints differ.
///
/// Findings about the whole change come first. Findings are identical if rule, position, commit and
/// title are the same: two problems that a model reports on one line stay separate.
pub fn arrange(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.sort_by(|a, b| sort_key(a).cmp(&sort_key(b)));
    findings.dedup_by(|b, a| {
        let same = sort_key(a) == sort_key(b)
            && a.draft.quote == b.draft.quote
            && a.draft.title == b.draft.title;
        if same {
            for e in &b.evidence {
                if !a.evidence.contains(e) {
                    a.evidence.push(e.clone());
                }
            }
            a.confidence = a.confidence.max(b.confidence);
            a.draft.severity = a.draft.severity.max(b.draft.severity);
            add_places(&mut a.draft.also, &b.draft.also);
            if a.draft.flow.is_empty() {
                a.draft.flow.clone_from(&b.draft.flow);
            }
            // A claim that is disputed for one branch of a push may still be valid for the other.
            if *a.origin() != Origin::Rules && b.disputed.is_none() {
                a.disputed = None;
            }
            if a.reproduction.is_none() {
                a.reproduction.clone_from(&b.reproduction);
            }
            if a.suppressed.is_some() {
                a.suppressed.clone_from(&b.suppressed);
            }
        }
        same
    });
    let mut seen: std::collections::HashMap<(Option<ObjectId>, Fingerprint), u32> =
        std::collections::HashMap::new();
    for f in &mut findings {
        let n = seen
            .entry((f.commit, Fingerprint::of(&f.draft, 0)))
            .or_default();
        f.fingerprint = Fingerprint::of(&f.draft, *n);
        *n += 1;
    }
    findings
}

/// Adds positions that are not in the list yet.
pub(crate) fn add_places(to: &mut Vec<Also>, from: &[Also]) {
    for place in from {
        if !to
            .iter()
            .any(|known| (&known.file, known.line) == (&place.file, place.line))
        {
            to.push(place.clone());
        }
    }
}

type SortKey<'a> = (
    Option<&'a RepoPath>,
    Option<(LineNo, LineNo)>,
    Option<(u32, u32)>,
    &'a str,
    Option<ObjectId>,
);

fn sort_key(f: &Finding) -> SortKey<'_> {
    let lines = f.lines();
    (
        f.file(),
        lines.map(|l| (l.first, l.last)),
        lines.and_then(|l| l.columns),
        f.rule_id(),
        f.commit,
    )
}

/// The lines around a finding, stored because the file content is dropped before reports are
/// written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Number of the first line.
    pub first: LineNo,
    /// The lines without line ends, secrets masked (column for column), each at most 1,000 bytes.
    pub lines: Vec<FrameLine>,
}

/// A line of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameLine {
    pub text: Vec<u8>,
    /// Bytes that were removed from the start of the line.
    pub skipped: u32,
    /// The line is part of the change.
    pub added: bool,
}
