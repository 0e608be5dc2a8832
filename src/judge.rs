//! Judges a change by the task that it was to fulfil: PASS, CONDITIONAL, FAIL or CRITICAL_HALT.
//!
//! The contract is data: it says what is asked for and decides nothing. [`review::run`] reviews, models say how each
//! criterion stands, code checks what they quote, and the verdict is computed here. `JUDGE_REPORT.md` and
//! `JUDGE_REPORT.json` say how it ended, also where it ended without a verdict: a report of another time never
//! stands there as if it were this one's.

pub mod contract;
mod folder;
mod page;
mod verdict;

use crate::ai::{Judged, Retry, context};
use crate::diff::RepoPath;
use crate::error::{Error, Kind, Result};
use crate::finding::{Finding, Origin};
use crate::git::Repo;
use crate::policy::{Policy, RulesPolicy};
use crate::report::json;
use crate::request::{Authority, CacheUse, Contract, Input, ReviewRequest, Source};
use crate::review::{self, Review, World};
use crate::rules::RuleSet;
use crate::verdict::{Coverage, Outcome};
use crate::wire::judge as wire;
use contract::TaskContract;
use folder::{Folder, Way};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use verdict::Weight;
use wire::{JudgeReport, Judgement, Outcome as Ended};

/// Where reports go unless somebody says otherwise.
pub const REPORT_DIR: &str = "_handoff";
/// How long a judgement may take unless somebody says otherwise.
pub const TIMEOUT: Duration = Duration::from_secs(900);
/// How long one may take at all.
pub const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

const PAGE: &str = "JUDGE_REPORT.md";
const RECORD: &str = "JUDGE_REPORT.json";
/// Files of the contract that a note names.
const NAMED: usize = 20;

/// What is to be judged.
#[derive(Clone, Debug)]
pub struct JudgeAsk {
    /// Everything that is read or written lies below.
    pub root: PathBuf,
    /// The contract: from the root, or absolute.
    pub contract: PathBuf,
    /// The folder of the reports: from the root, or absolute. Made where it is missing.
    pub report_dir: PathBuf,
    pub timeout: Duration,
    /// Backends named for this judgement; empty: as policy says.
    pub backends: Vec<String>,
    /// A policy file that the operator named.
    pub config: Option<PathBuf>,
    pub cache: CacheUse,
}

impl JudgeAsk {
    /// Asks for a judgement as the policy at HEAD has it.
    pub fn new(root: PathBuf, contract: PathBuf) -> Self {
        Self {
            root,
            contract,
            report_dir: PathBuf::from(REPORT_DIR),
            timeout: TIMEOUT,
            backends: Vec::new(),
            config: None,
            cache: CacheUse::default(),
        }
    }
}

/// Judges a change.
///
/// What goes wrong once the contract and the place of the reports are known is in the judgement: `success` is false
/// then, and the reports say so.
///
/// # Errors
///
/// `Usage`: a `report_dir` outside of the root or behind a link, a timeout of nothing or of more than a day.
/// `Incomplete`: the reports cannot be written.
pub fn judge(ask: &JudgeAsk, world: &World<'_>) -> Result<Judgement> {
    if ask.timeout.is_zero() || ask.timeout > MAX_TIMEOUT {
        let error = Error::usage(format!("timeout_seconds is {}", ask.timeout.as_secs()));
        return Err(error.hint(format!("from 1 to {}", MAX_TIMEOUT.as_secs())));
    }
    let way = Way::parse(&ask.report_dir, &ask.root)?;
    let bench = Bench { ask, world, way, rules: RuleSet::new(&RulesPolicy::default(), &[])?, started: Instant::now() };
    match bench.read() {
        Ok(task) => {
            let folder = bench.way.make(&ask.root)?;
            // Whatever happens from here on, even to this process: no earlier verdict is taken for this one's.
            let begun = End::failed(Ended::Incomplete, "the judgement has begun and has not ended".to_owned());
            bench.write(&folder, Some(&task), &begun)?;
            let end = bench.review(&task);
            bench.write(&folder, Some(&task), &end)?;
            Ok(bench.answer(&end, true))
        }
        Err(why) => {
            let named = ask.contract.display();
            let end = End::failed(Ended::Error, format!("the contract {named} cannot be used: {why}"));
            let there = bench.way.find(&ask.root).filter(|f| f.has(PAGE) || f.has(RECORD));
            if let Some(folder) = &there {
                bench.write(folder, None, &end)?;
            }
            Ok(bench.answer(&end, there.is_some()))
        }
    }
}

/// A judgement that goes on.
struct Bench<'a> {
    ask: &'a JudgeAsk,
    world: &'a World<'a>,
    way: Way,
    /// For masking what the contract says.
    rules: RuleSet,
    started: Instant,
}

/// A contract that was read.
struct Task {
    contract: TaskContract,
    /// From the root.
    file: RepoPath,
    sha256: String,
}

/// How a judgement ended.
#[derive(Default)]
struct End {
    verdict: Option<wire::JudgeVerdict>,
    outcome: Option<Ended>,
    error: Option<String>,
    timed_out: bool,
    retryable: bool,
    retry_after: Option<u64>,
    blocking: Vec<wire::Issue>,
    suggestions: Vec<wire::Issue>,
    criteria: Vec<wire::Criterion>,
    tokens: u64,
    notes: Vec<String>,
    report: Option<crate::wire::Report>,
}

impl End {
    fn failed(outcome: Ended, error: String) -> Self {
        Self { outcome: Some(outcome), error: Some(error), ..Self::default() }
    }

    fn outcome(&self) -> Ended {
        self.outcome.unwrap_or(Ended::Incomplete)
    }
}

/// The files that the contract names, as the change has them.
#[derive(Default)]
struct Named {
    /// There, and not part of the change: from the root.
    unchanged: Vec<String>,
    /// Named, and not to be read.
    refused: Vec<String>,
}

impl Bench<'_> {
    /// Reads the contract.
    fn read(&self) -> std::result::Result<Task, String> {
        let context::Inside { path, bytes } = context::inside(&self.ask.contract, &self.ask.root, &self.ask.root)?;
        let contract = TaskContract::parse(&bytes)?;
        let mut sha256 = String::with_capacity(64);
        for b in Sha256::digest(&bytes) {
            let _ = write!(sha256, "{b:02x}");
        }
        Ok(Task { contract, file: path, sha256 })
    }

    /// Reviews what there is to review, and says what that comes to.
    fn review(&self, task: &Task) -> End {
        let reviewed = self.request(task).and_then(|(request, notes)| match request {
            Some(request) => Ok(Some((review::run(&request, self.world)?, notes))),
            None => Ok(None),
        });
        match reviewed {
            Ok(Some((review, notes))) => self.end(task, &review, notes),
            Ok(None) => {
                let why = "nothing differs, and the contract names no file that is there: there is nothing to judge";
                End { criteria: self.criteria(task, &[]), ..End::failed(Ended::NothingToReview, why.to_owned()) }
            }
            Err(e) => {
                let outcome = if e.kind == Kind::Usage { Ended::Error } else { Ended::Incomplete };
                let said = [e.message.clone()].into_iter().chain(e.causes.iter().chain(&e.hints).cloned());
                let error = said.collect::<Vec<_>>().join("; ");
                let retryable = e.kind == Kind::Incomplete;
                End { criteria: self.criteria(task, &[]), retryable, ..End::failed(outcome, error) }
            }
        }
    }

    /// Puts together what is asked for. `None`: there is nothing to review.
    fn request(&self, task: &Task) -> Result<(Option<ReviewRequest>, Vec<String>)> {
        let root = &self.ask.root;
        let repo = Repo::find(root, self.world.env)?;
        let top = repo.as_ref().and_then(Repo::worktree);
        let own = prefix(root, top);
        let from_top = |path: &str| RepoPath::new([own.as_slice(), path.as_bytes()].concat());
        let file = RepoPath::new([own.as_slice(), task.file.as_bytes()].concat());
        let apart = vec![file.clone(), from_top(&self.way.file(PAGE)), from_top(&self.way.file(RECORD))];
        let changed: Vec<RepoPath> = match &repo {
            Some(repo) if top.is_some() => {
                let (change, _) = repo.changes(None)?;
                change.entries.iter().map(|e| e.path().clone()).filter(|p| !apart.contains(p)).collect()
            }
            _ => Vec::new(),
        };
        let named = self.named(task, &changed, &own);
        let source = match (changed.is_empty(), named.unchanged.is_empty()) {
            (true, true) => return Ok((None, Vec::new())),
            (true, false) => Source::Code(named.unchanged.iter().map(|f| Input::File(PathBuf::from(f))).collect()),
            (false, _) => Source::Changes { base: None },
        };
        let mut notes = Vec::new();
        match source {
            Source::Code(_) => {
                notes.push("nothing differs: the files that the contract names were reviewed whole".to_owned());
            }
            _ if !named.unchanged.is_empty() => {
                notes.push(format!("the contract names files that do not differ: {}", list(&named.unchanged)));
            }
            _ => {}
        }
        if !named.refused.is_empty() {
            notes.push(format!("the contract names files that were not read: {}", list(&named.refused)));
        }
        let mut request = ReviewRequest::new(source, root.clone());
        request.authority = Authority::Head;
        request.config = self.ask.config.clone();
        request.backends = self.ask.backends.clone();
        request.cache = self.ask.cache;
        request.overrides.timeout = Some(self.ask.timeout);
        let criteria = task.contract.criteria().to_vec();
        request.brief.contract = Some(Contract { file, text: task.contract.document(), criteria, apart });
        Ok((Some(request), notes))
    }

    /// Compares the files that the contract names with the change.
    fn named(&self, task: &Task, changed: &[RepoPath], own: &[u8]) -> Named {
        let mut out = Named::default();
        for name in &task.contract.files {
            match context::locate(Path::new(name), &self.ask.root, &self.ask.root) {
                Ok((full, path)) => {
                    let from_top = [own, path.as_bytes()].concat();
                    let is_there = full.is_file() && path != task.file;
                    if is_there && !changed.iter().any(|c| c.as_bytes() == from_top) {
                        out.unchanged.push(String::from_utf8_lossy(path.as_bytes()).into_owned());
                    }
                }
                // A file that was deleted is part of the change, and not there.
                Err(_) if changed.iter().any(|c| c.as_bytes() == [own, name.as_bytes()].concat()) => {}
                Err(why) => out.refused.push(format!("{name} ({why})")),
            }
        }
        out.unchanged.sort();
        out.unchanged.dedup();
        out
    }

    /// Says what a review comes to.
    fn end(&self, task: &Task, review: &Review, mut notes: Vec<String>) -> End {
        let report = json::report(review);
        let criteria = &review.models.criteria;
        let judged: Vec<Judged> = task.contract.criteria().iter().map(|c| found(criteria, &c.id)).collect();
        let weights = review.findings.iter().map(|f| weight(f, &review.judged_by));
        let complete = review.coverage.is_complete();
        let verdict = verdict::verdict(review.outcome, complete, review.verdict, weights, &judged);
        let mut end = End { verdict, criteria: self.criteria(task, criteria), ..End::default() };
        for (f, said) in review.findings.iter().zip(&report.findings).filter(|(f, _)| f.counts()) {
            let list = if f.blocking || weight(f, &review.judged_by).halts() {
                &mut end.blocking
            } else {
                &mut end.suggestions
            };
            list.push(issue(said));
        }
        end.blocking.extend(end.criteria.iter().filter(|c| c.met == Some(false)).map(unmet));
        end.tokens = review.models.usage.iter().map(|u| u.spent.input_tokens + u.spent.output_tokens).sum();
        end.outcome = Some(match review.outcome {
            Outcome::Cancelled => Ended::Cancelled,
            Outcome::NothingToReview => Ended::NothingToReview,
            Outcome::Reviewed if complete => Ended::Reviewed,
            Outcome::Reviewed | Outcome::Incomplete => Ended::Incomplete,
        });
        if verdict.is_none() {
            end.timed_out = review.outcome == Outcome::Incomplete && self.started.elapsed() >= self.ask.timeout;
            let retry = Retry::of(&review.models.setbacks);
            // What was cancelled or ran out of time may be asked for again by whoever did that.
            end.retryable = retry.retryable || end.timed_out || review.outcome == Outcome::Cancelled;
            end.retry_after = retry.after;
            end.error = Some(match end.outcome() {
                Ended::Cancelled => "the judgement was cancelled".to_owned(),
                Ended::NothingToReview => "there is nothing to judge".to_owned(),
                _ => why_incomplete(&review.coverage, end.timed_out.then_some(self.ask.timeout)),
            });
        }
        if review.rules_only {
            let why = "no backend is configured: the rules alone reviewed, and nobody judged the criteria".to_owned();
            notes.push(why);
        }
        end.notes = notes;
        end.report = Some(report);
        end
    }

    /// Puts each criterion of the contract beside what is known of it.
    fn criteria(&self, task: &Task, judged: &[Judged]) -> Vec<wire::Criterion> {
        let criteria = task.contract.criteria().iter();
        let one = |c: &crate::request::Criterion| {
            let Judged { met, reason, evidence, backend, .. } = found(judged, &c.id);
            let evidence = evidence.map(|e| wire::Evidence {
                file: e.file.to_wire(),
                line: e.line.map(|l| l.get()),
                quote: self.masked(&e.quote),
            });
            let (text, reason) = (self.masked(&c.text), self.masked(&reason));
            wire::Criterion { id: c.id.clone(), text, met, reason, evidence, backend }
        };
        criteria.map(one).collect()
    }

    fn masked(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.rules.mask(text.as_bytes())).into_owned()
    }

    fn report(&self, task: Option<&Task>, end: &End) -> JudgeReport {
        let masked = |text: &String| self.masked(text);
        JudgeReport {
            schema_version: wire::JUDGE_VERSION,
            task_id: task.and_then(|t| t.contract.task_id.as_ref()).map(masked),
            success: end.verdict.is_some(),
            verdict: end.verdict,
            outcome: end.outcome(),
            error: end.error.as_ref().map(masked),
            timed_out: end.timed_out,
            blocking_issues: end.blocking.clone(),
            suggestions: end.suggestions.clone(),
            criteria: end.criteria.clone(),
            tokens_used: end.tokens,
            timestamp: self.world.now.to_string(),
            duration_ms: self.milliseconds(),
            contract: task.map(|t| wire::ContractFile { path: masked(&t.file.to_wire()), sha256: t.sha256.clone() }),
            notes: end.notes.iter().map(masked).collect(),
            report: end.report.clone(),
        }
    }

    /// Writes both reports. What programs read comes last: until then, what stands there has no verdict.
    fn write(&self, folder: &Folder, task: Option<&Task>, end: &End) -> Result<()> {
        let report = self.report(task, end);
        let mut json = Vec::new();
        crate::wire::write(&report, &mut json)
            .map_err(|e| Error::incomplete("the report cannot be written").caused_by(&e))?;
        folder.put(PAGE, &page::render(&report, &self.summary(end)))?;
        folder.put(RECORD, &String::from_utf8_lossy(&json))
    }

    fn milliseconds(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn answer(&self, end: &End, written: bool) -> Judgement {
        let path = |name: &str| written.then(|| self.way.file(name));
        let outcome = end.outcome();
        Judgement {
            success: end.verdict.is_some(),
            verdict: end.verdict,
            blocking_issues_count: end.blocking.len() as u64,
            report_md_path: path(PAGE),
            report_json_path: path(RECORD),
            error: end.error.as_ref().map(|e| self.masked(e)),
            timed_out: end.timed_out,
            duration_ms: self.milliseconds(),
            status: outcome,
            outcome,
            retryable: end.retryable,
            retry_after_s: end.retry_after,
            summary: self.summary(end),
        }
    }

    /// Says in a sentence or two how it ended, and what whoever asked should do.
    fn summary(&self, end: &End) -> String {
        let count = |n: usize, one: &str, many: &str| if n == 1 { format!("1 {one}") } else { format!("{n} {many}") };
        let open = end.criteria.iter().filter(|c| c.met.is_none()).count();
        let unmet = end.criteria.iter().filter(|c| c.met == Some(false)).count();
        let Some(verdict) = end.verdict else {
            let next = match end.outcome() {
                Ended::Incomplete => "Do not ask again in a loop: mend what `error` names, or tell a person.",
                Ended::NothingToReview => "Make the change first.",
                Ended::Cancelled => "Ask again if it is still wanted.",
                Ended::Reviewed | Ended::Error => "Mend what `error` names before asking again.",
            };
            return format!("There is no verdict ({}). {next}", page::outcome(end.outcome()));
        };
        let criteria = format!(
            "{} met, {unmet} not met, {open} not decided",
            count(end.criteria.len() - open - unmet, "criterion", "criteria")
        );
        let findings = format!(
            "{}, {}",
            count(end.blocking.len() - unmet, "finding that blocks", "findings that block"),
            count(end.suggestions.len(), "other finding", "other findings")
        );
        format!("{}: {findings}; {criteria}.", page::name(verdict))
    }
}

/// Returns what is known of a criterion.
fn found(judged: &[Judged], id: &str) -> Judged {
    judged.iter().find(|j| j.id == id).cloned().unwrap_or_else(|| Judged {
        id: id.to_owned(),
        reason: "no model was asked about it".to_owned(),
        ..Judged::default()
    })
}

/// Weighs a finding: what a rule found is trusted, what a model did if it is as proven as policy asks for and nobody
/// refuted it.
fn weight(f: &Finding, policy: &Policy) -> Weight {
    let proven = || f.disputed.is_none() && f.confidence() >= policy.thresholds(f.file()).min_confidence;
    let is_trusted = matches!(f.origin(), Origin::Rules) || proven();
    Weight { severity: f.severity(), counts: f.counts(), blocking: f.blocking, is_trusted }
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

/// Returns the path of the root from the top of the worktree, with a slash behind it; empty where they are one.
fn prefix(root: &Path, top: Option<&Path>) -> Vec<u8> {
    let below = || root.canonicalize().ok()?.strip_prefix(top?.canonicalize().ok()?).ok().map(Path::to_owned);
    let below = below().unwrap_or_default();
    match below.as_os_str().as_encoded_bytes() {
        b"" => Vec::new(),
        path => [path, b"/"].concat(),
    }
}

/// Names some of many.
fn list(names: &[String]) -> String {
    let more = names.len().saturating_sub(NAMED);
    let shown = names[..names.len() - more].join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

/// Says what keeps a review from being complete.
pub(crate) fn why_incomplete(coverage: &Coverage, timeout: Option<Duration>) -> String {
    /// Reasons that are told.
    const TOLD: usize = 3;
    let mut reasons: Vec<String> =
        timeout.map(|t| format!("the time was over ({} s)", t.as_secs())).into_iter().collect();
    for (path, why) in &coverage.failed {
        let said = path.as_ref().map_or_else(|| why.clone(), |p| format!("{}: {why}", p.to_wire()));
        if !reasons.contains(&said) {
            reasons.push(said);
        }
    }
    let more = reasons.len().saturating_sub(TOLD);
    reasons.truncate(TOLD);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    format!("the review is incomplete: {}{more}", reasons.join("; "))
}
