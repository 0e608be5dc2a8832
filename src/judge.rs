//! Judges a change by its task: PASS, CONDITIONAL, FAIL or CRITICAL_HALT.
//!
//! The contract is data: it defines the criteria and decides nothing. [`review::run`] reviews the
//! change, models judge each criterion, code checks their quotes, and the verdict is computed here.
//! `JUDGE_REPORT.md` and `JUDGE_REPORT.json` contain the result, also without a verdict, so that
//! the report of an earlier judgement is never taken for this one.

pub mod contract;
mod folder;
mod page;
mod request;
mod verdict;

use crate::ai::ask::Cause;
use crate::ai::{JudgedCriterion, Retry, Setback, context};
use crate::diff::RepoPath;
use crate::error::{Error, Kind, Result};
use crate::finding::{Finding, Origin};
use crate::hex;
use crate::policy::{Policy, RulesPolicy};
use crate::report::json;
use crate::request::CacheUse;
use crate::review::{self, Review, World};
use crate::rules::RuleSet;
use crate::verdict::{Coverage, Outcome};
use crate::wire::judge as wire;
use contract::TaskContract;
use folder::{ReportFolder, Way};
use sha2::{Digest as _, Sha256};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use verdict::FindingWeight;
use wire::{ErrorKind, JudgeReport, Judgement, QuestionOutcome as Ended};

/// Default folder of the reports.
pub const REPORT_DIR: &str = "_handoff";
/// Default time limit of a judgement.
pub const TIMEOUT: Duration = Duration::from_secs(900);
/// Largest time limit of a judgement.
pub const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

const PAGE: &str = "JUDGE_REPORT.md";
const RECORD: &str = "JUDGE_REPORT.json";

/// The request for a judgement.
#[derive(Clone, Debug)]
pub struct JudgeAsk {
    /// Folder that contains all files that are read or written.
    pub root: PathBuf,
    /// The contract: relative to the root, or absolute.
    pub contract: PathBuf,
    /// Folder of the reports: relative to the root, or absolute. Created if it is missing.
    pub report_dir: PathBuf,
    pub timeout: Duration,
    /// Backends for this judgement; empty to use those of the policy.
    pub backends: Vec<String>,
    /// A policy file that the operator named.
    pub config: Option<PathBuf>,
    pub cache: CacheUse,
    /// `cli` or `mcp`: the audience of hints.
    pub via: &'static str,
}

impl JudgeAsk {
    /// Creates a request with the settings of the policy at HEAD.
    pub fn new(root: PathBuf, contract: PathBuf) -> Self {
        Self {
            root,
            contract,
            report_dir: PathBuf::from(REPORT_DIR),
            timeout: TIMEOUT,
            backends: Vec::new(),
            config: None,
            cache: CacheUse::default(),
            via: "cli",
        }
    }
}

/// Judges a change.
///
/// Errors after the contract and the report folder are known become part of the judgement and of
/// the reports: `success` is false then.
///
/// # Errors
///
/// `Usage`: a `report_dir` outside of the root or behind a link, a timeout of zero or of more than
/// a day. `Incomplete`: the reports cannot be written.
pub fn judge(ask: &JudgeAsk, world: &World<'_>) -> Result<Judgement> {
    let bench = Bench::open(ask, world)?;
    if ask.timeout.is_zero() || ask.timeout > MAX_TIMEOUT {
        let error = Error::usage(format!("timeout_seconds is {}", ask.timeout.as_secs()));
        let error = error.hint(format!("from 1 to {}", MAX_TIMEOUT.as_secs()));
        bench.refuse(ErrorKind::Unusable, bench.said(&error))?;
        return Err(error);
    }
    match bench.read() {
        Ok(task) => {
            let folder = bench.way.make(&ask.root)?;
            // Replace earlier reports first, so that their verdict is not taken for this one's,
            // even if this process is killed.
            let why = "the judgement has begun and has not ended".to_owned();
            let begun = JudgementEnd::failed(Ended::Incomplete, ErrorKind::NotReviewed, why);
            bench.write(&folder, Some(&task), &begun)?;
            let end = bench.review(&task);
            bench.write(&folder, Some(&task), &end)?;
            Ok(bench.answer(&end, true))
        }
        Err((kind, why)) => {
            let named = ask.contract.display();
            bench.refuse(kind, format!("the contract {named} cannot be used: {why}"))
        }
    }
}

/// Answers a call that is rejected before anything is read. If the report folder has reports of an
/// earlier judgement, they are replaced, so that no old verdict is taken for that of this call.
///
/// # Errors
///
/// Same as [`judge`], except for the timeout.
pub fn refuse(ask: &JudgeAsk, why: &Error, world: &World<'_>) -> Result<Judgement> {
    let bench = Bench::open(ask, world)?;
    bench.refuse(ErrorKind::Unusable, bench.said(why))
}

/// A judgement in progress.
struct Bench<'a> {
    ask: &'a JudgeAsk,
    world: &'a World<'a>,
    way: Way,
    /// Rules that mask the text of the contract.
    rules: RuleSet,
    started: Instant,
}

/// A parsed contract.
struct Task {
    contract: TaskContract,
    /// Path relative to the root.
    file: RepoPath,
    sha256: String,
}

/// The end of a judgement.
#[derive(Default)]
struct JudgementEnd {
    verdict: Option<wire::JudgeVerdict>,
    outcome: Option<Ended>,
    error: Option<String>,
    kind: Option<ErrorKind>,
    timed_out: bool,
    retryable: bool,
    retry_after: Option<u64>,
    blocking: Vec<wire::Issue>,
    /// Number of these issues that are findings.
    findings: usize,
    suggestions: Vec<wire::Issue>,
    criteria: Vec<wire::Criterion>,
    tokens: u64,
    notes: Vec<String>,
    report: Option<crate::wire::Report>,
}

impl JudgementEnd {
    fn failed(outcome: Ended, kind: ErrorKind, error: String) -> Self {
        Self {
            outcome: Some(outcome),
            error: Some(error),
            kind: Some(kind),
            ..Self::default()
        }
    }

    fn retry(&self) -> Retry {
        Retry {
            retryable: self.retryable,
            after: self.retry_after,
        }
    }

    fn outcome(&self) -> Ended {
        self.outcome.unwrap_or(Ended::Incomplete)
    }
}

impl<'a> Bench<'a> {
    /// Resolves the report folder.
    fn open(ask: &'a JudgeAsk, world: &'a World<'a>) -> Result<Self> {
        let way = Way::parse(&ask.report_dir, &ask.root)?;
        Ok(Self {
            ask,
            world,
            way,
            rules: RuleSet::new(&RulesPolicy::default(), &[])?,
            started: Instant::now(),
        })
    }

    /// Ends a judgement without a task: replaces existing reports, and creates none.
    fn refuse(&self, kind: ErrorKind, why: String) -> Result<Judgement> {
        let end = JudgementEnd::failed(Ended::Error, kind, why);
        let there = self
            .way
            .find(&self.ask.root)
            .filter(|f| f.has(PAGE) || f.has(RECORD));
        if let Some(folder) = &there {
            self.write(folder, None, &end)?;
        }
        Ok(self.answer(&end, there.is_some()))
    }

    /// Returns an error with its causes and hints, in the form for the caller.
    fn said(&self, e: &Error) -> String {
        let hints = if self.ask.via == "mcp" {
            &e.for_agents
        } else {
            &e.hints
        };
        std::iter::once(&e.message)
            .chain(&e.causes)
            .chain(hints)
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join("; ")
    }

    /// Reads the contract.
    fn read(&self) -> std::result::Result<Task, (ErrorKind, String)> {
        let context::Inside { path, bytes } =
            context::inside(&self.ask.contract, &self.ask.root, &self.ask.root)
                .map_err(|why| (ErrorKind::Unusable, why))?;
        let contract = TaskContract::parse(&bytes).map_err(|why| (ErrorKind::ParseError, why))?;
        Ok(Task {
            contract,
            file: path,
            sha256: hex::encode(&Sha256::digest(&bytes)),
        })
    }

    /// Runs the review, and returns the result of the judgement.
    fn review(&self, task: &Task) -> JudgementEnd {
        let reviewed = self
            .request(task)
            .and_then(|(request, notes)| match request {
                Some(request) => Ok(Some((review::run(&request, self.world)?, notes))),
                None => Ok(None),
            });
        match reviewed {
            Ok(Some((review, notes))) => self.end(task, &review, notes),
            Ok(None) => {
                let why = "the change is empty, and no file that the contract names exists: nothing to judge";
                let end = JudgementEnd::failed(
                    Ended::NothingToReview,
                    ErrorKind::NothingToReview,
                    why.to_owned(),
                );
                JudgementEnd {
                    criteria: self.criteria(task, &[]),
                    ..end
                }
            }
            Err(e) => {
                let (outcome, kind) = match e.kind {
                    Kind::Usage => (Ended::Error, ErrorKind::Setup),
                    Kind::Incomplete => (Ended::Incomplete, ErrorKind::NotReviewed),
                };
                let retryable = e.kind == Kind::Incomplete;
                JudgementEnd {
                    criteria: self.criteria(task, &[]),
                    retryable,
                    ..JudgementEnd::failed(outcome, kind, self.said(&e))
                }
            }
        }
    }

    /// Returns the result for a review.
    fn end(&self, task: &Task, review: &Review, mut notes: Vec<String>) -> JudgementEnd {
        let report = json::report(review);
        let criteria = &review.models.criteria;
        let judged: Vec<JudgedCriterion> = task
            .contract
            .criteria()
            .iter()
            .map(|c| found(criteria, &c.id))
            .collect();
        let weights = review.findings.iter().map(|f| weight(f, &review.judged_by));
        let complete = review.coverage.is_complete();
        let verdict = verdict::verdict(review.outcome, complete, review.verdict, weights, &judged);
        let mut end = JudgementEnd {
            verdict,
            criteria: self.criteria(task, criteria),
            ..JudgementEnd::default()
        };
        for (f, said) in review
            .findings
            .iter()
            .zip(&report.findings)
            .filter(|(f, _)| f.counts())
        {
            let list = if f.blocking || weight(f, &review.judged_by).halts() {
                &mut end.blocking
            } else {
                &mut end.suggestions
            };
            list.push(issue(said));
        }
        end.findings = end.blocking.len();
        end.blocking.extend(
            report
                .test_results
                .as_ref()
                .filter(|t| !t.passed && t.blocking)
                .map(failed_tests),
        );
        end.blocking.extend(
            end.criteria
                .iter()
                .filter(|c| c.met == Some(false))
                .map(unmet),
        );
        end.tokens = review
            .models
            .usage
            .iter()
            .map(|u| u.spent.input_tokens + u.spent.output_tokens)
            .sum();
        end.outcome = Some(match review.outcome {
            Outcome::Cancelled => Ended::Cancelled,
            Outcome::NothingToReview => Ended::NothingToReview,
            Outcome::Reviewed if complete => Ended::Reviewed,
            Outcome::Reviewed | Outcome::Incomplete => Ended::Incomplete,
        });
        if verdict.is_none() {
            end.timed_out =
                review.outcome == Outcome::Incomplete && self.started.elapsed() >= self.ask.timeout;
            let retry = Retry::of(&review.models.setbacks);
            // A caller that cancelled the review or set its time limit may ask again.
            end.retryable =
                retry.retryable || end.timed_out || review.outcome == Outcome::Cancelled;
            end.retry_after = retry.after;
            end.kind = Some(match end.outcome() {
                Ended::Cancelled => ErrorKind::Cancelled,
                Ended::NothingToReview => ErrorKind::NothingToReview,
                _ => kind_of(&review.models.setbacks, end.timed_out)
                    .unwrap_or(ErrorKind::NotReviewed),
            });
            end.error = Some(match end.outcome() {
                Ended::Cancelled => "the judgement was cancelled".to_owned(),
                Ended::NothingToReview => "nothing to judge".to_owned(),
                _ => why_incomplete(&review.coverage, end.timed_out.then_some(self.ask.timeout)),
            });
        }
        if review.rules_only {
            let why =
                "no backend is configured: only the rules ran, and the criteria were not judged"
                    .to_owned();
            notes.push(why);
        }
        end.notes = notes;
        end.report = Some(report);
        end
    }

    /// Combines each criterion of the contract with the judgement of the models.
    fn criteria(&self, task: &Task, judged: &[JudgedCriterion]) -> Vec<wire::Criterion> {
        let criteria = task.contract.criteria().iter().map(|c| {
            let JudgedCriterion {
                met,
                reason,
                evidence,
                backend,
                ..
            } = found(judged, &c.id);
            let evidence = evidence.map(|e| wire::Evidence {
                file: e.file.to_wire(),
                line: e.line.map(|l| l.get()),
                quote: self.masked(&e.quote),
            });
            let (text, reason) = (self.masked(&c.text), self.masked(&reason));
            wire::Criterion {
                id: c.id.clone(),
                text,
                met,
                reason,
                evidence,
                backend,
            }
        });
        criteria.collect()
    }

    fn masked(&self, text: &str) -> String {
        self.rules.masked(text)
    }

    fn report(&self, task: Option<&Task>, end: &JudgementEnd) -> JudgeReport {
        JudgeReport {
            schema_version: wire::JUDGE_VERSION,
            task_id: task
                .and_then(|t| t.contract.task_id.as_ref())
                .map(|id| self.masked(id)),
            success: end.verdict.is_some(),
            verdict: end.verdict,
            outcome: end.outcome(),
            error: end.error.as_ref().map(|text| self.masked(text)),
            error_kind: end.kind,
            timed_out: end.timed_out,
            blocking_issues: end.blocking.clone(),
            suggestions: end.suggestions.clone(),
            criteria: end.criteria.clone(),
            tokens_used: end.tokens,
            timestamp: self.world.now.to_string(),
            duration_ms: self.milliseconds(),
            contract: task.map(|t| wire::ContractFile {
                path: self.masked(&t.file.to_wire()),
                sha256: t.sha256.clone(),
            }),
            notes: end.notes.iter().map(|note| self.masked(note)).collect(),
            report: end.report.clone(),
        }
    }

    /// Writes both reports. The file for programs is written last; until then, the existing one has
    /// no verdict.
    fn write(&self, folder: &ReportFolder, task: Option<&Task>, end: &JudgementEnd) -> Result<()> {
        let report = self.report(task, end);
        let mut json = Vec::new();
        crate::wire::write(&report, &mut json)
            .map_err(|e| Error::incomplete("the report cannot be written").caused_by(&e))?;
        folder.put(PAGE, &page::render(&report, &self.summary(end)))?;
        folder.put(RECORD, &String::from_utf8_lossy(&json))
    }

    fn milliseconds(&self) -> u64 {
        crate::wire::milliseconds(self.started.elapsed())
    }

    fn answer(&self, end: &JudgementEnd, written: bool) -> Judgement {
        let outcome = end.outcome();
        Judgement {
            success: end.verdict.is_some(),
            verdict: end.verdict,
            blocking_issues_count: end.blocking.len() as u64,
            report_md_path: written.then(|| self.way.file(PAGE)),
            report_json_path: written.then(|| self.way.file(RECORD)),
            error: end.error.as_ref().map(|e| self.masked(e)),
            error_kind: end.kind,
            timed_out: end.timed_out,
            duration_ms: self.milliseconds(),
            status: outcome,
            outcome,
            retryable: end.retryable,
            retry_after_s: end.retry_after,
            summary: self.summary(end),
        }
    }

    /// Summarizes the result in a sentence or two, with the next step for the caller.
    fn summary(&self, end: &JudgementEnd) -> String {
        let open = end.criteria.iter().filter(|c| c.met.is_none()).count();
        let unmet = end.criteria.iter().filter(|c| c.met == Some(false)).count();
        let Some(verdict) = end.verdict else {
            return format!(
                "No verdict ({}). {}",
                crate::wire::name(&end.outcome()),
                next(end.outcome(), end.retry())
            );
        };
        let criteria = format!(
            "{} met, {unmet} not met, {open} not decided",
            counted(end.criteria.len() - open - unmet, "criterion", "criteria")
        );
        let findings = format!(
            "{}, {}",
            counted(end.findings, "finding that blocks", "findings that block"),
            counted(end.suggestions.len(), "other finding", "other findings")
        );
        let tests = end
            .report
            .as_ref()
            .and_then(|r| r.test_results.as_ref())
            .filter(|t| !t.passed);
        let tests = tests
            .map(|t| format!("; the project's tests failed: {}", t.summary))
            .unwrap_or_default();
        format!(
            "{}: {findings}; {criteria}{tests}.",
            crate::wire::name(&verdict)
        )
    }
}

/// Returns a number with the noun in the singular or in the plural.
fn counted(n: usize, one: &str, many: &str) -> String {
    if n == 1 {
        format!("1 {one}")
    } else {
        format!("{n} {many}")
    }
}

/// Returns the next step for the caller without an answer.
pub(crate) fn next(outcome: Ended, retry: Retry) -> String {
    match outcome {
        Ended::NothingToReview => "Make the change first.".to_owned(),
        Ended::Cancelled if retry.retryable => {
            "Repeat the request if you still need it.".to_owned()
        }
        Ended::Error => "Fix the problem in `error` before the next call.".to_owned(),
        Ended::Incomplete | Ended::Cancelled | Ended::Reviewed => retry.words(),
    }
}

/// Returns the kind of error that prevented an answer; `None` if there is none.
pub(crate) fn kind_of(setbacks: &[Setback], timed_out: bool) -> Option<ErrorKind> {
    match () {
        () if timed_out => Some(ErrorKind::TimedOut),
        () if setbacks.iter().any(|s| s.cause == Cause::Malformed) => Some(ErrorKind::ParseError),
        () if setbacks.is_empty() => None,
        () => Some(ErrorKind::Backend),
    }
}

/// Returns the judgement on a criterion.
fn found(judged: &[JudgedCriterion], id: &str) -> JudgedCriterion {
    judged
        .iter()
        .find(|j| j.id == id)
        .cloned()
        .unwrap_or_else(|| JudgedCriterion {
            id: id.to_owned(),
            reason: "no model was asked about it".to_owned(),
            ..JudgedCriterion::default()
        })
}

/// Weighs a finding. Findings of rules are trusted; findings of a model are trusted if they reach
/// the confidence that the policy requires and are not disputed.
fn weight(f: &Finding, policy: &Policy) -> FindingWeight {
    let is_trusted = matches!(f.origin(), Origin::Rules)
        || f.disputed.is_none() && f.confidence() >= policy.thresholds(f.file()).min_confidence;
    FindingWeight {
        severity: f.severity(),
        counts: f.counts(),
        blocking: f.blocking,
        is_trusted,
    }
}

fn issue(f: &crate::wire::Finding) -> wire::Issue {
    wire::Issue {
        id: f.id.clone(),
        kind: "finding".to_owned(),
        severity: Some(f.severity),
        file: f.file.clone(),
        line: f.line,
        title: f.title.clone(),
        message: f.message.clone(),
        suggestion: f.suggestion.clone(),
    }
}

/// Creates an issue for failed tests.
fn failed_tests(t: &crate::wire::TestResults) -> wire::Issue {
    let names = t
        .failing_tests
        .iter()
        .map(|name| format!("\n{name}"))
        .collect::<String>();
    wire::Issue {
        id: "tests".to_owned(),
        kind: "tests".to_owned(),
        severity: None,
        file: None,
        line: None,
        title: "The project's tests failed".to_owned(),
        message: format!("{}{names}", t.summary),
        suggestion: None,
    }
}

fn unmet(c: &wire::Criterion) -> wire::Issue {
    wire::Issue {
        id: c.id.clone(),
        kind: "criterion".to_owned(),
        severity: None,
        file: None,
        line: None,
        title: c.text.lines().next().unwrap_or_default().to_owned(),
        message: c.reason.clone(),
        suggestion: None,
    }
}

/// Returns the reasons why a review is incomplete.
pub(crate) fn why_incomplete(coverage: &Coverage, timeout: Option<Duration>) -> String {
    /// Reasons that are listed, at most.
    const TOLD: usize = 3;
    let mut reasons: Vec<String> = timeout
        .map(|t| format!("the time was over ({} s)", t.as_secs()))
        .into_iter()
        .collect();
    for f in &coverage.failed {
        let said = f
            .file
            .as_ref()
            .map_or_else(|| f.reason(), |p| format!("{}: {}", p.to_wire(), f.cause));
        if !reasons.contains(&said) {
            reasons.push(said);
        }
    }
    let more = reasons.len().saturating_sub(TOLD);
    reasons.truncate(TOLD);
    let more = if more > 0 {
        format!("; and {more} more")
    } else {
        String::new()
    };
    format!("the review is incomplete: {}{more}", reasons.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mcp_15_what_to_do_next_is_what_the_fields_say() {
        for outcome in [
            Ended::Reviewed,
            Ended::Incomplete,
            Ended::NothingToReview,
            Ended::Cancelled,
            Ended::Error,
        ] {
            for (retryable, after) in [(false, None), (true, None), (true, Some(90))] {
                let said = next(outcome, Retry { retryable, after });
                let tells = matches!(outcome, Ended::Incomplete | Ended::Reviewed);
                assert_eq!(
                    said.contains("A later retry may succeed"),
                    tells && retryable && after.is_none(),
                    "{said}"
                );
                assert_eq!(
                    said.contains("after 90 s, not earlier"),
                    tells && after.is_some(),
                    "{said}"
                );
                assert!(!retryable || !said.contains("will not succeed"), "{said}");
                assert!(
                    retryable
                        || !said.contains("may succeed") && !said.contains("if it is still wanted"),
                    "{said}"
                );
            }
        }
    }

    #[test]
    fn the_kind_of_an_error_is_told_by_its_cause() {
        for (causes, timed_out, kind) in [
            (vec![], false, None),
            (vec![], true, Some(ErrorKind::TimedOut)),
            (vec![Cause::Malformed], false, Some(ErrorKind::ParseError)),
            (
                vec![Cause::Unreachable, Cause::Malformed],
                false,
                Some(ErrorKind::ParseError),
            ),
            (vec![Cause::Refused], false, Some(ErrorKind::Backend)),
            (vec![Cause::TimedOut], true, Some(ErrorKind::TimedOut)),
        ] {
            let setbacks = causes.iter().map(|cause| Setback {
                backend: "b".to_owned(),
                cause: *cause,
                retry_after: None,
            });
            let setbacks: Vec<_> = setbacks.collect();
            assert_eq!(kind_of(&setbacks, timed_out), kind, "{causes:?}");
        }
    }
}
