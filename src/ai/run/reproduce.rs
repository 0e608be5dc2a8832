//! Verifies claims by execution: for each severe claim the model writes a test and a fix, and both
//! run in a sandbox. A claim is reproduced if the test fails on the change and passes with the fix.
//! Any other result changes nothing.

use super::answer::{NoAnswer, ParsedAnswer, Query};
use super::member::Member;
use super::{Remark, ReviewSession, RunOutcome, Team};
use crate::ai::anchor::{self, ClaimCandidate};
use crate::ai::ask::Failure;
use crate::ai::claim::reproduction::{self as asked, FixEdit, NewFile};
use crate::ai::desk::temporary;
use crate::ai::snapshot::Snapshot;
use crate::ai::tree::Tree;
use crate::ai::{prompt, reply};
use crate::diff::RepoPath;
use crate::finding::{Reproduction, Severity};
use crate::process::End;
use crate::sandbox::{Folders, Sandbox};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

/// Claims of one review for which a test is written, at most.
const MOST_CLAIMS: usize = 5;
/// Files of a test, at most.
const MOST_FILES: usize = 5;
/// Bytes of a file of a test, at most.
const MOST_BYTES: usize = 64 << 10;
/// Timeout of one run of a test.
const RUN_TIME: Duration = Duration::from_secs(60);
/// Exit codes of the shell and of `timeout` that are not the result of a test: a timeout, a command
/// that cannot run, a kill signal.
const NOT_A_RESULT: [i32; 4] = [124, 126, 127, 137];

/// A claim for which a test is requested.
struct Suspect<'m, 'a> {
    /// Positions of the candidates that make this claim.
    same: Vec<usize>,
    group: usize,
    member: &'m Member<'a>,
}

impl<'a> ReviewSession<'a> {
    /// Requests a test for each severe claim that was not refuted, and runs it. Requires the user's
    /// consent and a sandbox.
    pub(super) async fn reproduce(
        &self,
        teams: &[Team<'a>],
        all: &mut [ClaimCandidate],
        out: &mut RunOutcome,
    ) {
        if !self.job.may_run_tests {
            return;
        }
        let suspects = self.suspects(teams, all);
        let Some(first) = suspects.first() else {
            return;
        };
        let Some(tree) = self.tree(first.group) else {
            return;
        };
        let sandbox = match self.sandbox(tree).await {
            Ok(sandbox) => sandbox,
            Err(why) => {
                out.remarks
                    .push(Remark::of_the_run(format!("no claim was tested: {why}")));
                return;
            }
        };
        self.expect(suspects.len());
        let mut answers = FuturesUnordered::new();
        for suspect in suspects {
            answers.push(self.proposal(suspect, all));
        }
        let mut proposals = Vec::new();
        while let Some((suspect, proposal)) = answers.next().await {
            self.step();
            proposals.extend(proposal.map(|proposal| (suspect, proposal)));
        }
        drop(answers);
        // Run one test at a time, because a test may use all processors.
        for (suspect, proposal) in proposals {
            let result = self.test(&sandbox, suspect.group, &proposal).await;
            tracing::debug!(
                result = result.err().unwrap_or("reproduced"),
                "a test of a claim ran"
            );
            if result.is_ok() {
                let shown = self.shown(&proposal);
                for i in suspect.same {
                    all[i].reproduction = Some(shown.clone());
                }
            }
        }
    }

    /// Returns the claims to test, the most severe first.
    fn suspects<'m>(
        &self,
        teams: &'m [Team<'a>],
        all: &mut [ClaimCandidate],
    ) -> Vec<Suspect<'m, 'a>> {
        let mut suspects = Vec::new();
        for same in anchor::alike(all) {
            let mut severe = same
                .iter()
                .filter(|i| all[**i].severity() >= Severity::Major);
            let Some(&best) = severe.find(|i| all[**i].disputed.is_none()) else {
                continue;
            };
            let claim = &all[best];
            let mut members = teams.iter().flat_map(|t| &t.members);
            let Some(member) = members.find(|m| m.name() == claim.backend && m.is_backend()) else {
                continue;
            };
            if self.tree(claim.group).is_some() {
                suspects.push((
                    claim.severity(),
                    Suspect {
                        same,
                        group: claim.group,
                        member,
                    },
                ));
            }
        }
        suspects.sort_by_key(|(severity, _)| std::cmp::Reverse(*severity));
        suspects.truncate(MOST_CLAIMS);
        suspects.into_iter().map(|(_, suspect)| suspect).collect()
    }

    /// Opens the sandbox of the policy.
    async fn sandbox(&self, tree: &Tree<'_>) -> Result<Sandbox, String> {
        let copy = self.copy(tree).await.map_err(|f| f.message)?;
        let tests = &self.job.policy.tests;
        let top = self.job.repo.and_then(crate::git::Repo::worktree);
        let settings = crate::sandbox::Settings {
            command: &tests.sandbox,
            paths: &tests.sandbox_paths,
            top,
        };
        let opened = Sandbox::open(&settings, self.job.env, folders(&copy), self.job.stop).await;
        opened.map_err(|why| format!("{why}; install bubblewrap or set sandbox in [tests]"))
    }

    /// Writes the tree under review to a private folder.
    async fn copy(&self, tree: &Tree<'_>) -> Result<Snapshot, Failure> {
        let top = self.job.repo.and_then(crate::git::Repo::worktree);
        let parent = temporary(self.job.env, top).unwrap_or_else(|| Path::new("/tmp").to_owned());
        Snapshot::take(tree, &parent, self.job.deadline, self.job.stop).await
    }

    /// Requests a test. Returns `None` if the backend has none, or did not answer.
    async fn proposal<'m>(
        &self,
        suspect: Suspect<'m, 'a>,
        all: &[ClaimCandidate],
    ) -> (Suspect<'m, 'a>, Option<asked::TestProposal>) {
        let claim = suspect
            .same
            .iter()
            .map(|i| &all[*i])
            .find(|c| c.disputed.is_none());
        let command = self.job.policy.tests.command.as_deref();
        let group = &self.groups[suspect.group];
        let shown = (group, suspect.member.capacity());
        let prompt = claim
            .and_then(|c| prompt::reproduce(self.brief, &c.draft, shown, command, &self.nonce));
        let Some(prompt) = prompt else {
            return (suspect, None);
        };
        let query = Query::new(&prompt, asked::schema(), self.tree(suspect.group));
        match self
            .question(suspect.member, &query, reply::reproduction)
            .await
        {
            Ok(ParsedAnswer { value, keep, .. }) => {
                self.store(keep).await;
                (suspect, Some(value).filter(|v| !v.files.is_empty()))
            }
            Err(NoAnswer::Failed(_) | NoAnswer::Limit(_)) => (suspect, None),
        }
    }

    /// Runs a test on the change and with the fix.
    ///
    /// # Errors
    ///
    /// Returns the reason why the claim is not reproduced.
    async fn test(
        &self,
        sandbox: &Sandbox,
        group: usize,
        proposal: &asked::TestProposal,
    ) -> Result<(), &'static str> {
        let tree = self.tree(group).ok_or("the change has no tree")?;
        let changed = &self.groups[group].files;
        let mut fixed = proposal
            .fix
            .iter()
            .map(|edit| RepoPath::from(edit.path.as_str()));
        if !fixed.any(|path| changed.iter().any(|f| *f.path() == path)) {
            return Err("the fix touches no changed file");
        }
        // Use a new copy for each run, because files that the first run leaves could change the
        // second.
        if self
            .outcome(sandbox, tree, proposal, &proposal.files, &[])
            .await?
        {
            return Err("the test passes on the change");
        }
        if !self
            .outcome(sandbox, tree, proposal, &proposal.files, &proposal.fix)
            .await?
        {
            return Err("the test fails with the fix, too");
        }
        // A command that distinguishes the fix from the change without the files of the test proves
        // nothing, such as a search for the text of the fix. The project's whole test suite passes
        // on both without these files.
        let passes_fixed = self
            .outcome(sandbox, tree, proposal, &[], &proposal.fix)
            .await
            == Ok(true);
        if passes_fixed && self.outcome(sandbox, tree, proposal, &[], &[]).await == Ok(false) {
            return Err("the command needs no file of the test");
        }
        Ok(())
    }

    /// Runs the command of a test on a fresh copy with these files and edits. Returns true if it
    /// passes.
    async fn outcome(
        &self,
        sandbox: &Sandbox,
        tree: &Tree<'_>,
        proposal: &asked::TestProposal,
        files: &[NewFile],
        edits: &[FixEdit],
    ) -> Result<bool, &'static str> {
        let copy = self
            .copy(tree)
            .await
            .map_err(|_| "the tree could not be copied")?;
        for edit in edits {
            copy.replace(&edit.path, &edit.old, &edit.new)
                .map_err(|_| "the fix does not fit the code")?;
        }
        if files.len() > MOST_FILES || files.iter().any(|f| f.text.len() > MOST_BYTES) {
            return Err("the test is too large");
        }
        for NewFile { path, text } in files {
            copy.add(path, text)
                .map_err(|_| "a file of the test cannot be written")?;
        }
        let deadline = (Instant::now() + RUN_TIME).min(self.job.deadline);
        let output = sandbox
            .run(&proposal.command, folders(&copy), deadline, self.job.stop)
            .await;
        match output.map_err(|_| "the sandbox does not start")?.end {
            End::Exit(0) => Ok(true),
            End::Exit(code) if !NOT_A_RESULT.contains(&code) => Ok(false),
            _ => Err("the test did not run to its end"),
        }
    }

    /// Returns the test for the report, with secrets masked.
    fn shown(&self, proposal: &asked::TestProposal) -> Reproduction {
        let rules = self.job.rules;
        let files = proposal
            .files
            .iter()
            .map(|f| (rules.masked(&f.path), rules.masked(&f.text)))
            .collect();
        Reproduction {
            command: rules.masked(&proposal.command),
            files,
        }
    }
}

fn folders(copy: &Snapshot) -> Folders<'_> {
    Folders {
        tree: copy.desk().work(),
        scratch: copy.desk().scratch(),
    }
}
