//! Executes the plan of a fix, attempt by attempt, and verifies the result of each.

use super::copy::Copy;
use super::guard::{self, Bounds, ChangedFile};
use super::questions::{self, FailedAttempt};
use super::refusals::{Refusals, is_for_good, told};
use super::testing::{self, TestSubject, Tests};
use super::{Ended, Fixing, edits_of};
use crate::ai::claim::fix::FixReport;
use crate::ai::restore;
use crate::diff::RepoPath;
use crate::error::{Error, Result};
use crate::git::Repo;
use crate::review::World;
use crate::wire::fixing::{Attempt, AttemptVerdict, FixOutcome};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Time limit of the tests.
const TESTS: Duration = Duration::from_secs(600);

/// A change that a model wrote and that is verified.
struct VerifiedChange {
    files: Vec<ChangedFile>,
    /// Parts that were not checked.
    notes: Vec<String>,
}

/// A step of an attempt that did not succeed.
enum FailedStep {
    /// The change is not verified, for reasons that the next attempt gets.
    Refused(AttemptVerdict, Vec<String>),
    /// The step could not be made.
    Error(Error),
}

impl From<Error> for FailedStep {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// The result of a step of an attempt.
type Step<T> = std::result::Result<T, FailedStep>;

/// What a model wrote in an attempt.
struct ModelFix {
    report: FixReport,
    drafts: BTreeMap<RepoPath, String>,
    /// Edits of the model that its tools refused.
    refusals: Refusals,
}

impl Fixing {
    /// Executes and verifies the plan, until a change is verified or no attempt is left. `tell`
    /// gets the number of each attempt and the reasons of its failure.
    ///
    /// # Errors
    /// Incomplete: an attempt cannot be stored, or no model is available at all.
    pub fn execute(
        &mut self,
        world: &World<'_>,
        tell: &mut dyn FnMut(u32, &[String]),
    ) -> Result<Ended> {
        let mut failure: Option<FailedAttempt> = None;
        let mut last = (AttemptVerdict::Failed, Vec::new());
        for number in 1..=self.policy.fix.max_attempts {
            if world.stop.signal().is_some() {
                break;
            }
            if let Some(limit) = self.allowance.used_up() {
                let why = format!("no attempt is left within {limit}");
                last = (AttemptVerdict::Unverified, vec![why]);
                break;
            }
            let (attempt, notes) = self.stored_attempt(number, failure.as_ref(), world)?;
            last = (attempt.verdict, attempt.reasons.clone());
            match attempt.verdict {
                AttemptVerdict::Verified => {
                    self.keep(FixOutcome::Verified)?;
                    return Ok(Ended::Verified(notes));
                }
                AttemptVerdict::Interrupted => break,
                _ => {}
            }
            self.keep(FixOutcome::Failed)?;
            tell(number, &attempt.reasons);
            failure = Some(FailedAttempt {
                reasons: attempt.reasons,
                patch: attempt.patch,
            });
            // The next attempt would hit the same limit, or the same permanent refusal.
            if last.0 == AttemptVerdict::Unverified || self.is_refused_for_good {
                break;
            }
        }
        self.changes.clear();
        if world.stop.signal().is_some() {
            self.end(FixOutcome::Interrupted)?;
            return Ok(Ended::Interrupted);
        }
        self.end(FixOutcome::Failed)?;
        Ok(Ended::Failed(last.0, last.1))
    }

    /// Runs one attempt between two records of it. Returns it with notes on unchecked parts.
    fn stored_attempt(
        &mut self,
        number: u32,
        failure: Option<&FailedAttempt>,
        world: &World<'_>,
    ) -> Result<(Attempt, Vec<String>)> {
        let begun = Attempt {
            attempt_number: number,
            timestamp: jiff::Timestamp::now().to_string(),
            planning_output: self.plan_text(),
            // The stored state if the process crashes.
            verdict: AttemptVerdict::Interrupted,
            ..Attempt::default()
        };
        self.fix.attempts.push(begun.clone());
        self.keep(FixOutcome::Planned)?;
        let before = self.allowance.spent;
        let mut attempt = begun.clone();
        let mut notes = Vec::new();
        match self.attempt(&mut attempt, failure, world) {
            Ok(change) => {
                attempt.verdict = AttemptVerdict::Verified;
                self.changes = change.files;
                notes = change.notes;
            }
            Err(FailedStep::Refused(verdict, reasons)) => {
                (attempt.verdict, attempt.reasons) = (verdict, reasons);
            }
            Err(FailedStep::Error(e)) => {
                attempt = begun;
                attempt.verdict = AttemptVerdict::Failed;
                attempt.reasons = vec![self.rules.masked(&e.on_one_line())];
            }
        }
        if world.stop.signal().is_some() {
            attempt.verdict = AttemptVerdict::Interrupted;
        }
        attempt.requests = self.allowance.spent.requests - before.requests;
        attempt.tokens = self.allowance.spent.tokens() - before.tokens();
        attempt.cost = self.allowance.spent.cost_since(&before);
        if let Some(stored) = self.fix.attempts.last_mut() {
            stored.clone_from(&attempt);
        }
        Ok((attempt, notes))
    }

    /// Runs the steps of one attempt, and adds their output to its record.
    fn attempt(
        &mut self,
        attempt: &mut Attempt,
        failure: Option<&FailedAttempt>,
        world: &World<'_>,
    ) -> Step<VerifiedChange> {
        let written = self.written(failure, world)?;
        let problem = written.report.problem.as_ref();
        let problem = problem
            .map(|p| format!("\nproblem: {p}"))
            .unwrap_or_default();
        let output = format!("{}{problem}", written.report.summary);
        attempt.execution_output = self.rules.masked(&output);
        let (files, refused) = self.restored(&written.drafts)?;
        attempt.files = files.iter().map(|c| c.path.to_wire()).collect();
        attempt.patch = edits_of(&files).masked_patch(&self.rules);
        if !refused.is_empty() {
            return Err(FailedStep::Refused(AttemptVerdict::Rejected, refused));
        }
        let copy = self.copy_with(&files, &written, world)?;
        self.verify(&copy, &written, world)?;
        let notes = self.tested(&copy, world)?;
        refuse_interrupted(world)?;
        Ok(VerifiedChange { files, notes })
    }

    /// Asks a model to execute the plan.
    fn written(&mut self, failure: Option<&FailedAttempt>, world: &World<'_>) -> Step<ModelFix> {
        let plan = self.fix.plan.clone().unwrap_or_default();
        let question = questions::execute(
            &self.findings,
            &plan,
            &self.ask.allowed,
            failure,
            &self.rules,
        );
        let consulted = self.consult(&question, true, world)?;
        let refusals = Refusals::new(&self.rules, &consulted.refused_edits);
        let Some((_, report)) = consulted.answer else {
            self.is_refused_for_good = is_for_good(&consulted.setbacks);
            let failed = consulted.failed.iter();
            let reasons = failed.map(|f| self.rules.masked(f)).collect();
            return Err(FailedStep::Refused(AttemptVerdict::Failed, reasons));
        };
        Ok(ModelFix {
            report,
            drafts: consulted.drafts,
            refusals,
        })
    }

    /// Returns a copy of the worktree with a change. Refuses an empty change, one that cannot be
    /// written, and one that a fix may not make.
    fn copy_with(
        &mut self,
        files: &[ChangedFile],
        written: &ModelFix,
        world: &World<'_>,
    ) -> Step<Copy> {
        let (report, refusals) = (&written.report, &written.refusals);
        if files.is_empty() {
            let words = report.problem.as_deref().unwrap_or(&report.summary);
            let reasons = refusals.without_change(&self.rules.masked(words));
            return Err(FailedStep::Refused(AttemptVerdict::NoChange, reasons));
        }
        let mut copy = self.base.again(world.stop)?;
        for file in files {
            if let Err(e) = copy.write(&file.path, &file.after) {
                let reasons = vec![e.on_one_line()];
                return Err(FailedStep::Refused(AttemptVerdict::Rejected, reasons));
            }
        }
        let forbidden = self.violations(files, &copy)?;
        if !forbidden.is_empty() {
            let reasons = refusals.added_to(forbidden);
            return Err(FailedStep::Refused(AttemptVerdict::Forbidden, reasons));
        }
        Ok(copy)
    }

    /// Verifies a change by a review: the findings are fixed, and nothing new blocks.
    fn verify(&mut self, copy: &Copy, written: &ModelFix, world: &World<'_>) -> Step<()> {
        if let Some(limit) = self.allowance.used_up().filter(|_| self.has_backend()) {
            let reasons = vec![format!("not verified: {limit}")];
            return Err(FailedStep::Refused(AttemptVerdict::Unverified, reasons));
        }
        let verification = self.review(copy, false, world)?;
        self.allowance.spend(verification.usage());
        refuse_interrupted(world)?;
        let (verdict, reasons) = verification.verdict(&self.findings, &self.known);
        if verdict == AttemptVerdict::Verified {
            return Ok(());
        }
        let reasons: Vec<String> = reasons.iter().map(|r| self.rules.masked(r)).collect();
        let problem = written.report.problem.as_ref();
        let problem = problem.map(|p| self.rules.masked(p));
        let reasons = told(reasons, problem.as_deref());
        Err(FailedStep::Refused(
            verdict,
            written.refusals.added_to(reasons),
        ))
    }

    /// Runs the project's tests on a change. Returns notes if they did not run.
    fn tested(&self, copy: &Copy, world: &World<'_>) -> Step<Vec<String>> {
        let deadline = self.allowance.deadline(TESTS);
        let subject = TestSubject {
            fixed: copy,
            base: &self.base,
            top: &self.place.top,
        };
        match testing::run(&self.policy.tests, subject, &self.env, deadline, world.stop) {
            Tests::NotAsked | Tests::Passed => Ok(Vec::new()),
            Tests::NotRun(why) => Ok(vec![format!(
                "the tests did not run: {}",
                self.rules.masked(&why)
            )]),
            Tests::Failed(output) => {
                let output = self.rules.masked(&output);
                let reasons = vec![format!("the tests fail: {output}")];
                Err(FailedStep::Refused(AttemptVerdict::TestsFailed, reasons))
            }
        }
    }

    /// Returns the files with the drafts of a model applied, and the reasons why drafts are
    /// rejected.
    fn restored(
        &self,
        drafts: &BTreeMap<RepoPath, String>,
    ) -> Result<(Vec<ChangedFile>, Vec<String>)> {
        let (mut changes, mut refused) = (Vec::new(), Vec::new());
        for (path, text) in drafts {
            let before = self.base.read(path)?;
            let after = match &before {
                Some(before) => restore::restored(&self.rules, before, text),
                None => restore::created(text),
            };
            match after {
                Ok(after) if before.as_ref() == Some(&after) => {}
                Ok(after) => changes.push(ChangedFile {
                    path: path.clone(),
                    before,
                    after,
                }),
                Err(why) => refused.push(format!("{}: {why}", path.to_wire())),
            }
        }
        Ok((changes, refused))
    }

    /// Returns the forbidden changes of a fix, to display.
    fn violations(&mut self, changes: &[ChangedFile], copy: &Copy) -> Result<Vec<String>> {
        let of_findings = self
            .findings
            .iter()
            .filter_map(|f| Some(RepoPath::from(f.file.as_deref()?)))
            .collect();
        let bounds = Bounds {
            allowed: &self.allowed,
            of_findings: &of_findings,
            around: &self.around,
        };
        let violations = guard::violations(changes, &bounds);
        self.refused = violations.iter().map(|v| v.path.to_wire()).collect();
        let mut out: Vec<String> = violations
            .into_iter()
            .map(|v| {
                let path = v.path.to_wire();
                self.rules
                    .masked(&format!("{path} {}; to allow it: --allow {path}", v.why))
            })
            .collect();
        let repo = Repo::open(copy.top(), copy.env())?;
        let seen = repo.unstaged(true)?;
        let seen: BTreeSet<&RepoPath> = seen
            .entries
            .iter()
            .filter_map(|e| Some(&e.new.as_ref()?.path))
            .collect();
        for change in changes {
            let path = change.path.to_wire();
            if self.policy.ignores(&change.path) {
                out.push(format!(
                    "{path} is ignored by the policy, so that no review sees it"
                ));
            } else if !seen.contains(&change.path) {
                out.push(format!(
                    "{path} is ignored by git, so that no review sees it"
                ));
            }
        }
        Ok(out)
    }
}

/// Ends an attempt if a signal ended the run.
fn refuse_interrupted(world: &World<'_>) -> Step<()> {
    match world.stop.signal() {
        Some(_) => Err(FailedStep::Refused(AttemptVerdict::Interrupted, Vec::new())),
        None => Ok(()),
    }
}
