//! Answers that are not reviews of a change: whether a proposal is complete enough to work from,
//! which side is right in a disagreement, and an audit of whole files for weaknesses.
//!
//! Callers name only paths, never instructions: the questions are fixed, and the documents are
//! data. Quotes of a model are searched in the documents.

mod plain;

use crate::ai::ask::Spent;
use crate::ai::claim::counsel as form;
use crate::ai::material::Document;
use crate::ai::run::{Consulted, Question};
use crate::ai::{Retry, anchor, context, redact, reply};
use crate::error::{Error, Result};
use crate::finding::{Category, Severity};
use crate::judge;
use crate::request::{Authority, CacheUse, Depth, Input, ReviewRequest, Source};
use crate::review::{self, Consultation, Review, World};
use crate::rules::RuleSet;
use crate::wire::counsel::{
    COUNSEL_VERSION, Conduct, ErrorKind, ProposalCheck, ProposalIssue, QuestionOutcome, Quotation,
    Resolution, RightParty,
};
use plain::Flaw;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Files in one audit, at most.
pub const MAX_AUDITED: usize = 500;

/// The options of a question.
#[derive(Clone, Debug)]
pub struct CounselAsk {
    /// Folder that contains all files that are read.
    pub root: PathBuf,
    /// Backends for this question; empty to use those of the policy.
    pub backends: Vec<String>,
    /// A policy file that the operator named.
    pub config: Option<PathBuf>,
    pub cache: CacheUse,
    /// Time limit; `None` to use that of the policy.
    pub timeout: Option<Duration>,
}

/// The documents of a disagreement.
#[derive(Clone, Debug)]
pub struct Dispute {
    pub contract: PathBuf,
    pub rebuttal: PathBuf,
    pub judge_report: PathBuf,
}

impl CounselAsk {
    /// Creates a question with the settings of the policy at HEAD.
    pub fn new(root: PathBuf) -> Self {
        Self {
            root,
            backends: Vec::new(),
            config: None,
            cache: CacheUse::default(),
            timeout: None,
        }
    }

    /// Returns the request without its source.
    fn request(&self) -> ReviewRequest {
        let mut request = ReviewRequest::new(Source::Code(Vec::new()), self.root.clone());
        request.authority = Authority::Head;
        request.backends.clone_from(&self.backends);
        request.config.clone_from(&self.config);
        request.cache = self.cache;
        request.overrides.timeout = self.timeout;
        request
    }
}

/// Checks whether a proposal is complete enough to work from.
///
/// Checks that need no model run first. Without a model, no proposal is valid.
///
/// # Errors
///
/// Usage: a malformed policy, an unknown backend. Incomplete: a thread cannot be started.
pub fn validate_proposal(
    ask: &CounselAsk,
    proposal: &Path,
    world: &World<'_>,
) -> Result<ProposalCheck> {
    let started = Instant::now();
    let consultation = Consultation::open(&ask.request(), world)?;
    let rules = consultation.rules();
    let context::Inside { path, bytes } = match context::inside(proposal, &ask.root, &ask.root) {
        Ok(read) => read,
        Err(why) => {
            let conduct = refused(proposal, &why, rules, started);
            let summary =
                "Nothing was checked. Fix the problem in `error` before the next call.".to_owned();
            return Ok(checked(None, Vec::new(), summary, conduct));
        }
    };
    let flaws = plain::look(&path, &bytes, rules);
    let sound = flaws.iter().all(|f| f.severity < Severity::Major);
    let mut issues: Vec<ProposalIssue> = flaws.into_iter().map(seen).collect();
    let text = redact::text(rules, &bytes).text;
    // An empty document needs no model.
    let consulted = match text.trim().is_empty() {
        true => None,
        false => {
            let document = Document {
                name: redact::path(rules, &path),
                text: text.clone(),
                folder: Vec::new(),
            };
            consultation.ask(&proposal_question(document), world)?
        }
    };
    let (answer, conduct) = conduct(consulted, rules, started);
    let Some((backend, said)) = answer else {
        let valid = if sound { None } else { Some(false) };
        let summary = match (valid, conduct.outcome) {
            (Some(_), _) => format!(
                "Not valid: {}; no model checked it.",
                count(issues.len(), "issue")
            ),
            (None, QuestionOutcome::Cancelled) => "Unknown: the check was cancelled.".to_owned(),
            (None, outcome) => format!(
                "Unknown: the checks that need no model found no error, and no model \
                 answered. {}",
                judge::next(outcome, retry(&conduct))
            ),
        };
        return Ok(checked(valid, issues, summary, conduct));
    };
    let mut grave = false;
    for flaw in &said.issues {
        let severity = Severity::parse(&flaw.severity).unwrap_or(Severity::Major);
        let quote = flaw
            .quote
            .as_deref()
            .map(str::trim)
            .filter(|q| !q.is_empty());
        let line = quote.and_then(|q| anchor::line_of(&text, q));
        let verified = quote.is_some_and(|q| anchor::says(&text, q));
        grave |= verified && severity >= Severity::Major;
        issues.push(ProposalIssue {
            severity: severity.into(),
            issue: masked(rules, &flaw.issue),
            suggestion: flaw.suggestion.as_deref().map(|s| masked(rules, s)),
            quote: quote.map(|q| masked(rules, q)),
            line,
            verified,
            origin: backend.clone(),
        });
    }
    let valid = sound && said.valid && !grave;
    let word = if valid { "Valid" } else { "Not valid" };
    let summary = format!(
        "{word}: {}, checked by {backend}.",
        count(issues.len(), "issue")
    );
    Ok(checked(Some(valid), issues, summary, conduct))
}

/// Decides which side is right: the floor manager who rebuts a judge's report, or the judge. There
/// is no decision if no backend answers, if the answer quotes no text of the documents, or if a
/// document has instructions to the model.
///
/// # Errors
///
/// Same as [`validate_proposal`].
pub fn resolve_conflict(
    ask: &CounselAsk,
    dispute: &Dispute,
    world: &World<'_>,
) -> Result<Resolution> {
    let started = Instant::now();
    let consultation = Consultation::open(&ask.request(), world)?;
    let rules = consultation.rules();
    let named: [(&'static str, &Path); 3] = [
        ("contract", &dispute.contract),
        ("rebuttal", &dispute.rebuttal),
        ("judge_report", &dispute.judge_report),
    ];
    let mut exhibits: Vec<(&'static str, Document)> = Vec::new();
    for (kind, file) in named {
        let read = context::inside(file, &ask.root, &ask.root).and_then(|read| {
            match read.bytes.trim_ascii() {
                b"" => Err("it is empty".to_owned()),
                _ => Ok(read),
            }
        });
        let context::Inside { path, bytes } = match read {
            Ok(read) => read,
            Err(why) => return Ok(undecided(refused(file, &why, rules, started), "")),
        };
        let mut orders = Vec::new();
        rules.scan_beside(kind, Some(&path), &bytes, &mut orders);
        if let Some(order) = orders.first() {
            let line = order
                .lines()
                .map(|l| format!(", line {}", l.first))
                .unwrap_or_default();
            let why = format!(
                "it addresses the reviewer and asks for a decision{line}; a person must review it"
            );
            return Ok(undecided(refused(file, &why, rules, started), ""));
        }
        let text = redact::text(rules, &bytes).text;
        exhibits.push((
            kind,
            Document {
                name: redact::path(rules, &path),
                text,
                folder: Vec::new(),
            },
        ));
    }
    let question = conflict_question(exhibits);
    let (answer, mut conduct) = conduct(consultation.ask(&question, world)?, rules, started);
    let Some((_, said)) = answer else {
        return Ok(undecided(conduct, ""));
    };
    let quotes: Vec<Quotation> = said
        .quotes
        .iter()
        .map(|passage| {
            let kind = passage.document.trim();
            let document = question.exhibits.iter().find(|(k, _)| *k == kind);
            let verified = document.is_some_and(|(_, d)| anchor::says(&d.text, &passage.quote));
            let quote = masked(rules, &passage.quote);
            Quotation {
                document: masked(rules, kind),
                quote,
                verified,
            }
        })
        .collect();
    let reasoning = masked(rules, &said.reasoning);
    let supported = quotes.iter().any(|q| q.verified);
    let side = if said.side == "judge" {
        RightParty::Judge
    } else {
        RightParty::FloorManager
    };
    if !supported {
        let why = "the answer quotes no text of the documents";
        conduct.error = Some(why.to_owned());
        conduct.error_kind = Some(ErrorKind::Unproven);
        (conduct.outcome, conduct.status, conduct.retryable) = (
            QuestionOutcome::Incomplete,
            QuestionOutcome::Incomplete,
            true,
        );
        return Ok(Resolution {
            quotes,
            ..undecided(conduct, &reasoning)
        });
    }
    let name = if side == RightParty::Judge {
        "the judge"
    } else {
        "the floor manager"
    };
    let summary = format!("{} is right according to the documents.", capitalized(name));
    Ok(Resolution {
        schema_version: COUNSEL_VERSION,
        success: true,
        side: Some(side),
        reasoning,
        quotes,
        summary,
        conduct,
    })
}

/// Audits whole files for weaknesses, at the greatest depth: a normal review, under the policy at
/// HEAD. Relative names start at `dir`, or at the root without it.
///
/// # Errors
///
/// Usage: no files or too many, or a file that is outside of the root, belongs to git, has the name
/// of a file of secrets, or is not a regular file. Errors of [`review::run`].
pub fn security_audit(
    ask: &CounselAsk,
    files: &[PathBuf],
    dir: Option<&Path>,
    world: &World<'_>,
) -> Result<Review> {
    if files.is_empty() || files.len() > MAX_AUDITED {
        let error = Error::usage(format!("{} files are named", files.len()));
        return Err(error.hint(format!("name from 1 to {MAX_AUDITED}")));
    }
    let dir = ask.root.join(dir.unwrap_or_else(|| Path::new("")));
    if !inside(&dir, &ask.root) {
        return Err(Error::usage(
            "working_directory does not exist or is outside of the root",
        ));
    }
    let mut inputs: Vec<Input> = Vec::new();
    for file in files {
        let (full, _) =
            context::locate(file, &dir, &ask.root).map_err(|why| not_audited(file, &why))?;
        if !full.is_file() {
            return Err(not_audited(file, "not a regular file"));
        }
        let below = ask
            .root
            .canonicalize()
            .ok()
            .and_then(|root| full.strip_prefix(root).ok().map(Path::to_owned));
        let input = Input::File(below.unwrap_or(full));
        if !inputs.contains(&input) {
            inputs.push(input);
        }
    }
    let mut request = ask.request();
    request.source = Source::Code(inputs);
    request.overrides.focus = Some(vec![Category::Security]);
    request.overrides.depth = Some(Depth::Thorough);
    request.is_audit = true;
    review::run(&request, world)
}

/// Returns the error about a file that is not audited.
fn not_audited(file: &Path, why: &str) -> Error {
    Error::usage(format!("{}: {why}", file.display()))
}

/// Returns the question whether a proposal is complete.
fn proposal_question(proposal: Document) -> Question<form::Proposal> {
    Question {
        system: include_str!("counsel/proposal.md"),
        task: "Check the proposal above.",
        exhibits: vec![("proposal", proposal)],
        schema: form::proposal_schema(),
        parse: reply::proposal,
    }
}

/// Returns the question which side is right.
fn conflict_question(exhibits: Vec<(&'static str, Document)>) -> Question<form::Decision> {
    Question {
        system: include_str!("counsel/conflict.md"),
        task: "Decide who is right: the floor manager (rebuttal) or the judge (judge_report).",
        exhibits,
        schema: form::decision_schema(),
        parse: reply::decision,
    }
}

/// Returns true if a folder equals another one or lies below it.
fn inside(dir: &Path, root: &Path) -> bool {
    matches!((real_folder(dir), real_folder(root)), (Some(dir), Some(root)) if dir.starts_with(&root))
}

/// Returns the canonical path of a folder; `None` if there is no such folder.
fn real_folder(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok().filter(|p| p.is_dir())
}

/// Returns the result of checking a proposal. `valid` is `None` if it was not decided.
fn checked(
    valid: Option<bool>,
    issues: Vec<ProposalIssue>,
    summary: String,
    conduct: Conduct,
) -> ProposalCheck {
    ProposalCheck {
        schema_version: COUNSEL_VERSION,
        success: valid.is_some(),
        valid,
        issues,
        summary,
        conduct,
    }
}

/// Returns the result of a conflict that no backend decided.
fn undecided(conduct: Conduct, reasoning: &str) -> Resolution {
    let next = judge::next(conduct.outcome, retry(&conduct));
    Resolution {
        schema_version: COUNSEL_VERSION,
        success: false,
        side: None,
        reasoning: reasoning.to_owned(),
        quotes: Vec::new(),
        summary: format!("Undecided. {next}"),
        conduct,
    }
}

/// Returns the result for a document that cannot be used.
fn refused(file: &Path, why: &str, rules: &RuleSet, started: Instant) -> Conduct {
    let name = redact::name(rules, file.as_os_str().as_encoded_bytes());
    unasked(
        QuestionOutcome::Error,
        ErrorKind::Unusable,
        format!("{name} cannot be used: {why}"),
        started,
    )
}

/// Returns the result of a question that was not sent.
fn unasked(outcome: QuestionOutcome, kind: ErrorKind, error: String, started: Instant) -> Conduct {
    Conduct {
        outcome,
        status: outcome,
        retryable: false,
        retry_after_s: None,
        error: Some(error),
        error_kind: Some(kind),
        timed_out: false,
        backend: None,
        model: None,
        tokens_used: 0,
        cost_usd: None,
        duration_ms: since(started),
        notes: Vec::new(),
    }
}

/// Returns the answer and the result of a question. `None` means that no backend is configured.
fn conduct<T>(
    consulted: Option<Consulted<T>>,
    rules: &RuleSet,
    started: Instant,
) -> (Option<(String, T)>, Conduct) {
    let Some(consulted) = consulted else {
        let why = "no backend is configured: set review.backends in the policy".to_owned();
        return (
            None,
            unasked(QuestionOutcome::Incomplete, ErrorKind::Setup, why, started),
        );
    };
    let Consulted {
        answer,
        failed,
        setbacks,
        usage,
        timed_out,
        stopped,
        drafts: _,
        refused_edits: _,
    } = consulted;
    let mut spent = Spent::default();
    usage.iter().for_each(|u| spent.add(&u.spent));
    let backend = answer.as_ref().map(|(name, _)| name.clone());
    let model = usage
        .iter()
        .find(|u| Some(&u.backend) == backend.as_ref())
        .map(|u| u.model.clone());
    let failed: Vec<String> = failed.iter().map(|f| masked(rules, f)).collect();
    let outcome = match (&answer, stopped) {
        (Some(_), _) => QuestionOutcome::Reviewed,
        (None, true) => QuestionOutcome::Cancelled,
        (None, false) => QuestionOutcome::Incomplete,
    };
    let has_answer = answer.is_some();
    let again = Retry::of(&setbacks);
    let conduct = Conduct {
        outcome,
        status: outcome,
        // A caller that stopped the question or set its time limit may ask again.
        retryable: !has_answer && (again.retryable || stopped || timed_out),
        retry_after_s: again.after.filter(|_| !has_answer),
        error: (!has_answer).then(|| format!("no model answered: {}", failed.join("; "))),
        error_kind: match (has_answer, stopped) {
            (true, _) => None,
            (false, true) => Some(ErrorKind::Cancelled),
            (false, false) => {
                Some(judge::kind_of(&setbacks, timed_out).unwrap_or(ErrorKind::Backend))
            }
        },
        timed_out: timed_out && !has_answer,
        backend,
        model: model.filter(|m| !m.is_empty()),
        tokens_used: spent.input_tokens + spent.output_tokens,
        cost_usd: spent.cost_usd,
        duration_ms: since(started),
        notes: if has_answer { failed } else { Vec::new() },
    };
    (answer, conduct)
}

/// Converts a flaw that this program found into an issue of the answer.
fn seen(flaw: Flaw) -> ProposalIssue {
    ProposalIssue {
        severity: flaw.severity.into(),
        issue: flaw.issue,
        suggestion: flaw.suggestion,
        quote: flaw.quote,
        line: flaw.line,
        verified: true,
        origin: "rules".to_owned(),
    }
}

/// Trims a text and masks its secrets.
fn masked(rules: &RuleSet, text: &str) -> String {
    rules.masked(text.trim())
}

/// Returns whether the same question can be repeated.
fn retry(conduct: &Conduct) -> Retry {
    Retry {
        retryable: conduct.retryable,
        after: conduct.retry_after_s,
    }
}

/// Returns the milliseconds since a moment.
fn since(started: Instant) -> u64 {
    crate::wire::milliseconds(started.elapsed())
}

/// Returns a number with a noun in singular or plural.
fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// Returns a text with its first letter in upper case.
fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map(|c| c.to_uppercase().chain(chars).collect())
        .unwrap_or_default()
}
