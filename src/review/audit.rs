//! Audits of a tree by models: the state of an audit, its journal, and how it continues.

use super::Note;
use super::prepare::Prepared;
use super::resolved::ChangePart;
use super::scan::RuleScan;
use super::shard::{FieldsDigest, digest_of_contents, digest_of_patterns};
use crate::NAME;
use crate::ai::journal::{AuditState, Journal, NotResumable};
use crate::bounded;
use crate::error::{Error, Result};
use crate::git::{Change, Repo, WalkLimits, YearOfChanges};
use crate::policy::Policy;
use crate::request::{Authority, OnIncomplete, ReviewRequest, Source, TreeState};
use crate::shell;
use crate::text::{plural, series};
use std::collections::BTreeMap;
use std::fs::File;
use std::time::Duration;

/// Bounds of the walk that counts the commits of the last year.
const WALK: WalkLimits = WalkLimits {
    commits: 20_000,
    time: Duration::from_secs(10),
};
/// Bytes of a document that are compared, at most.
const MAX_DOCUMENT: u64 = 1 << 20;
/// Parts of a state or limits that one message lists, at most.
const LISTED: usize = 8;

/// A review of a tree by models.
pub(super) struct Audit {
    /// `None` if answers cannot be kept, or do not come from a backend.
    journal: Option<Journal>,
    /// The command that starts the audit again, without `--resume`.
    command: String,
}

/// The parts of a tree that an audit did not complete.
#[derive(Default)]
pub(super) struct Unfinished {
    /// Number of the files that a limit left out, by the limit.
    pub(super) by_limit: BTreeMap<String, usize>,
    /// Number of other parts without an answer.
    pub(super) failed: usize,
    /// True if a signal or the caller ended the audit.
    pub(super) is_stopped: bool,
}

impl Audit {
    /// Opens the journal of an audit; `None` if the source is not a tree, or no backend is asked.
    ///
    /// # Errors
    ///
    /// Usage: `--resume` without a backend, without an unfinished audit, or for another state.
    pub(super) fn open(prepared: &Prepared<'_>, backends: &[String]) -> Result<Option<Self>> {
        let Prepared { request, world, .. } = prepared;
        let Source::Tree(tree) = &request.source else {
            return Ok(None);
        };
        if backends.is_empty() {
            return match request.resume {
                true => Err(without_backends()),
                false => Ok(None),
            };
        }
        let command = prepared.rules.masked(&command(request));
        let is_of_backends = world.script.is_none() && world.agent.is_none();
        let Some(repo) = prepared.repo().filter(|_| is_of_backends) else {
            return Ok(Some(Self {
                journal: None,
                command,
            }));
        };
        let state = state_of(prepared, (repo, tree), backends);
        let (top, now) = (repo.worktree(), world.now.as_second());
        let journal = match request.resume {
            true => Some(
                Journal::resume(world.env, top, &state, now)
                    .map_err(|why| not_resumable(&why, &command))?,
            ),
            false => Journal::begin(world.env, top, &state, now),
        };
        Ok(Some(Self { journal, command }))
    }

    pub(super) fn journal(&self) -> Option<&Journal> {
        self.journal.as_ref()
    }

    /// Ends the audit: removes its journal if it is complete. Returns what the reader has to know.
    pub(super) fn end(&self, unfinished: &Unfinished) -> Vec<Note> {
        let mut texts = Vec::new();
        let journal = self.journal.as_ref();
        let damaged = journal.map_or(0, Journal::damaged) as usize;
        if damaged > 0 {
            let answers = plural(damaged, "answer");
            texts.push(format!(
                "{answers} of the unfinished audit could not be read, and the backend was asked again"
            ));
        }
        let unused = journal.map_or(0, Journal::unused);
        if unused > 0 {
            let answers = plural(unused, "answer");
            texts.push(format!(
                "an unfinished audit of the same state has {answers}, which only --resume uses"
            ));
        }
        match (unfinished.text(), journal) {
            (None, Some(journal)) => journal.finish(),
            (None, None) => {}
            (Some(what), Some(_)) => {
                texts.push(format!("{what}; continue: {} --resume", self.command));
            }
            (Some(what), None) => texts.push(what),
        }
        let notes = texts.into_iter().map(|text| Note::general("review", text));
        notes.collect()
    }
}

impl Unfinished {
    /// Returns what was left out, with the reasons; `None` if the audit is complete.
    fn text(&self) -> Option<String> {
        let by_limit = self.by_limit.iter();
        let mut parts: Vec<String> = by_limit
            .map(|(limit, files)| format!("{} by {limit}", plural(*files, "file")))
            .collect();
        if self.failed > 0 {
            parts.push(format!("{} without an answer", plural(self.failed, "part")));
        }
        match (parts.is_empty(), self.is_stopped) {
            (true, false) => None,
            (true, true) => Some("the audit was stopped".to_owned()),
            (false, _) => Some(format!(
                "the audit is not complete: {}",
                series(&parts, LISTED)
            )),
        }
    }
}

/// Counts the commits of the last year that changed each file of a tree; from HEAD for the
/// worktree and the index. Empty without a commit.
pub(super) fn year_of(repo: Option<&Repo>, change: &Change) -> YearOfChanges {
    let Some(repo) = repo else {
        return YearOfChanges::default();
    };
    let tip = change.head.commit().or_else(|| repo.head().ok().flatten());
    tip.map(|tip| repo.changes_of_the_year(tip, &WALK))
        .unwrap_or_default()
}

/// Returns the state that an audit is about. It excludes the limits of costs, requests and time, so
/// that an audit can continue with another budget.
fn state_of(
    prepared: &Prepared<'_>,
    (repo, tree): (&Repo, &TreeState),
    backends: &[String],
) -> AuditState {
    let scan = prepared.rule_scan();
    let kind = match tree {
        TreeState::Worktree { untracked: false } => "worktree",
        TreeState::Worktree { untracked: true } => "worktree with new files",
        TreeState::Index => "index",
        TreeState::Rev(_) => "revision",
    };
    let folder = repo.common_dir();
    let folder = folder.canonicalize().unwrap_or(folder);
    let shard = prepared.request.shard.map(|shard| shard.to_string());
    AuditState {
        repository: folder.to_string_lossy().into_owned(),
        shard: shard.unwrap_or_default(),
        parts: vec![
            ("the kind of tree", kind.to_owned()),
            ("the files", digest_of_files(&scan, repo, prepared)),
            (
                "the selected paths",
                digest_of_patterns(prepared.selected_patterns()),
            ),
            ("the policy", without_limits(prepared.policy()).hash()),
            ("the rules", prepared.rules.hash().to_owned()),
            ("the backends", backends.join(",")),
            ("the options", digest_of_context(prepared.request)),
            (
                "the version of the program",
                env!("CARGO_PKG_VERSION").to_owned(),
            ),
        ],
    }
}

/// Returns the digest of the files that are reviewed.
fn digest_of_files(scan: &RuleScan<'_>, repo: &Repo, prepared: &Prepared<'_>) -> String {
    let parts = prepared.resolved.parts.iter();
    let changes = parts.filter_map(ChangePart::change);
    digest_of_contents(repo, changes, &|entry| scan.is_wanted(entry))
}

/// Returns a policy without the limits of a run.
fn without_limits(policy: &Policy) -> Policy {
    let mut policy = policy.clone();
    let free = Policy::default();
    policy.review.max_cost_usd = free.review.max_cost_usd;
    policy.review.max_requests = free.review.max_requests;
    policy.review.timeout = free.review.timeout;
    policy.review.jobs = free.review.jobs;
    policy.on_truncated = free.on_truncated;
    policy.on_incomplete = free.on_incomplete;
    policy
}

/// Returns the digest of what a request adds to the prompts.
fn digest_of_context(request: &ReviewRequest) -> String {
    let brief = &request.brief;
    let mut digest = FieldsDigest::default();
    digest.add(format!("{:?} {}", request.authority, request.is_audit).as_bytes());
    digest.add(format!("{:?} {:?}", brief.summary, brief.focus).as_bytes());
    for document in &brief.documents {
        digest.add(document.as_os_str().as_encoded_bytes());
        let content = File::open(request.dir.join(document))
            .and_then(|file| bounded::start(file, MAX_DOCUMENT));
        digest.add(&content.unwrap_or_default());
    }
    digest.text()
}

/// Returns the command line of a review of a tree, without `--resume` and without the limits of a
/// run.
fn command(request: &ReviewRequest) -> String {
    let mut words = vec![NAME.to_owned()];
    let mut add = |flag: &str, value: &str| words.extend([flag.to_owned(), shell::quoted(value)]);
    if let Some(config) = &request.config {
        add("--config", &config.to_string_lossy());
    }
    add("review", "tree");
    let is_named = request.files_name == "PATH";
    for path in request.files.iter().filter(|_| is_named) {
        words.push(shell::quoted(path));
    }
    words.extend(options(request));
    words.join(" ")
}

/// Returns the options of a review of a tree that decide what it is about.
fn options(request: &ReviewRequest) -> Vec<String> {
    let overrides = &request.overrides;
    let severities = |list: &Option<Vec<crate::finding::Severity>>| {
        let names = list.iter().flatten().map(|s| s.name());
        names.collect::<Vec<_>>().join(",")
    };
    let categories = overrides.focus.iter().flatten().map(|c| c.name());
    let (tree, rev) = match &request.source {
        Source::Tree(TreeState::Rev(rev)) => ("", rev.as_str()),
        Source::Tree(TreeState::Index) => ("--index", ""),
        Source::Tree(TreeState::Worktree { untracked: true }) => ("--untracked", ""),
        _ => ("", ""),
    };
    let mut words: Vec<String> = Vec::new();
    words.extend((!tree.is_empty()).then(|| tree.to_owned()));
    let values = [
        ("--rev", rev.to_owned()),
        (
            "--shard",
            request.shard.map(|s| s.to_string()).unwrap_or_default(),
        ),
        ("--backend", request.backends.join(",")),
        ("--model", overrides.model.clone().unwrap_or_default()),
        (
            "--depth",
            overrides.depth.map(depth_name).unwrap_or_default(),
        ),
        ("--focus", categories.collect::<Vec<_>>().join(",")),
        ("--block-on", severities(&overrides.block_on)),
        ("--warn-on", severities(&overrides.warn_on)),
        (
            "--summary",
            request.brief.summary.clone().unwrap_or_default(),
        ),
    ];
    for (flag, value) in values.into_iter().filter(|(_, value)| !value.is_empty()) {
        words.extend([flag.to_owned(), shell::quoted(&value)]);
    }
    for document in &request.brief.documents {
        words.extend([
            "--doc".to_owned(),
            shell::quoted(&document.to_string_lossy()),
        ]);
    }
    if request.files_name != "PATH" && !request.files.is_empty() {
        words.push("--files".to_owned());
        words.extend(request.files.iter().map(|glob| shell::quoted(glob)));
    }
    if request.authority == Authority::Base {
        words.push("--gate".to_owned());
    }
    if request.is_batch {
        words.push("--batch".to_owned());
    }
    if overrides.on_incomplete == Some(OnIncomplete::Warn) {
        words.extend(["--on-incomplete".to_owned(), "warn".to_owned()]);
    }
    words
}

/// Returns the value of `--depth`.
fn depth_name(depth: crate::request::Depth) -> String {
    match depth {
        crate::request::Depth::Quick => "quick".to_owned(),
        crate::request::Depth::Thorough => "thorough".to_owned(),
    }
}

/// Returns the error for `--resume` without a backend.
fn without_backends() -> Error {
    Error::usage("--resume continues an audit by models, and no backend is asked")
        .hint_person("leave out --resume, or leave out --offline and name a backend")
}

/// Returns the error for an audit that cannot be resumed. `command` starts it anew.
fn not_resumable(why: &NotResumable, command: &str) -> Error {
    let error = match why {
        NotResumable::Nothing => Error::usage("no unfinished audit of this repository to resume"),
        NotResumable::Differs { begun, parts } => {
            let time = jiff::Timestamp::from_second(*begun).unwrap_or_default();
            let what = series(parts, LISTED);
            Error::usage(format!(
                "cannot resume the audit of {time}: changed since then: {what}"
            ))
        }
    };
    error.hint(format!("start anew: {command}"))
}
