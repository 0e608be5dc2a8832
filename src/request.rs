//! What is asked for: the one type that the command line, the hooks and MCP all build.

use crate::diff::RepoPath;
use crate::finding::{Category, Severity};
use base64::Engine as _;
use secrecy::{ExposeSecret as _, SecretString};
use std::path::PathBuf;
use std::time::Duration;

/// What is reviewed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// HEAD against the index.
    Staged,
    /// The index against the worktree.
    Unstaged { untracked: bool },
    /// A base against the worktree, new files included.
    Changes { base: Option<String> },
    /// A commit against a parent, or (`A..B`) each commit of a range against its first parent.
    Commit {
        rev: String,
        /// 1-based number of the parent; only for a single commit.
        parent: Option<u32>,
    },
    /// The merge base against the head, net, plus the secret rules over every commit.
    Branch { head: Option<String>, base: Option<String> },
    /// As `Branch`, between two commits that somebody else names: an event of CI, a forge, a person who wants them
    /// fetched.
    Ends(Box<Ends>),
    /// The ranges that git hands to a pre-push hook; each as `Branch`.
    Push(Vec<PushRange>),
    /// A unified diff.
    Patch(Input),
    /// Whole files, every line as added.
    Code(Vec<Input>),
    /// What is staged if anything is, else the changes.
    Auto,
}

impl ReviewRequest {
    /// Asks for a review of `source` as the policy at `dir` has it.
    pub fn new(source: Source, dir: PathBuf) -> Self {
        Self {
            source,
            dir,
            files: Vec::new(),
            files_name: "--files",
            authority: Authority::Worktree,
            config: None,
            overrides: Overrides::default(),
            waivers: Vec::new(),
            offline: false,
            backends: Vec::new(),
            brief: Brief::default(),
            cache: CacheUse::default(),
            debug_prompts: None,
            record: false,
            hook: None,
            is_audit: false,
            model_flags: Vec::new(),
            on_block: OnBlock::Fail,
            store_of: None,
        }
    }
}

impl Source {
    /// Returns the name that reports show.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Staged => "staged",
            Self::Unstaged { .. } => "unstaged",
            Self::Changes { .. } | Self::Auto => "changes",
            Self::Commit { .. } => "commit",
            Self::Ends(ends) if ends.is_pull => "pr",
            Self::Branch { .. } | Self::Ends(_) | Self::Push(_) => "branch",
            Self::Patch(_) => "patch",
            Self::Code(_) => "code",
        }
    }
}

/// A change by its two ends, of which a clone need not have either.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ends {
    /// For people: `pull request 12`, `the push to main`.
    pub label: String,
    /// It is a pull request of a forge.
    pub is_pull: bool,
    pub head: End,
    pub base: End,
    /// What stands in for a base that is nowhere any more: the commit before a forced push.
    pub instead: Option<End>,
    /// Who says that nothing may lie between the two; where nobody does, that is an error and not a pass.
    pub may_be_empty: Option<String>,
    /// Where the ends come from: the name of a remote, or an address.
    pub remote: String,
    pub fetching: Fetching,
    /// Proves to the remote who asks.
    pub credential: Option<Credential>,
    /// Whose files the worktree may have.
    pub checkout: Checkout,
}

/// One end of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// A full object id; and the full name of a reference of the remote by which it can be got, if there is one.
    Id { id: String, under: Option<String> },
    /// The first digits of an object id, in lower case; and the full name of the reference of the remote that has it.
    Short { id: String, under: Option<String> },
    /// A branch of the remote, by its short name.
    Branch(String),
    /// As a person typed it.
    Rev(String),
    /// No commit: everything is new.
    Nothing,
}

/// Whether what is missing is fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetching {
    Missing,
    Never,
}

/// Whose files a worktree may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checkout {
    /// The author's, who may run there what they like.
    Own,
    /// A stranger's, in a job that has rights which the stranger lacks: nothing of it is run.
    Foreign,
    /// Anybody's, on the machine of a person who reviews a pull request: nothing of it is run.
    Reviewer,
}

/// What a review needs of a remote.
#[derive(Clone, Debug)]
pub struct Fetch {
    /// The name of a configured remote, or an address.
    pub remote: String,
    /// Full names of references, or full object ids.
    pub tips: Vec<String>,
    /// Proves who asks, where the operator's own configuration does not.
    pub credential: Option<Credential>,
}

/// A header that proves who asks, for one address and what lies below it.
#[derive(Clone, Debug)]
pub struct Credential {
    /// As in git's `http.<address>.extraHeader`: `https://forge.example/`.
    pub url: String,
    /// The whole line: `Authorization: …`.
    pub header: SecretString,
}

impl PartialEq for Credential {
    fn eq(&self, other: &Self) -> bool {
        self.url == other.url && self.header.expose_secret() == other.header.expose_secret()
    }
}

impl Eq for Credential {}

impl Credential {
    /// Makes a header of a name and a token, as forges take them for git: `Basic`.
    pub fn basic(url: &str, user: &str, token: &SecretString) -> Self {
        let pair = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{}", token.expose_secret()));
        Self { url: url.to_owned(), header: format!("Authorization: Basic {pair}").into() }
    }
}

/// One line of a pre-push hook's standard input, or pre-commit's `FROM_REF`/`TO_REF`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushRange {
    /// The local object id, hexadecimal; all zeros: the remote reference is deleted. From pre-commit's
    /// variables it may also be a name (`HEAD`, `refs/heads/main`).
    pub local: String,
    /// What the remote has, hexadecimal; all zeros: the reference is new there. Or a name, as above.
    pub remote: String,
    /// The remote's reference name, for messages.
    pub name: String,
    /// The name of the remote, or its address where it has none; `None` where nobody said. For a reference
    /// that is new there, only what this remote has is known already: another one's branches say nothing.
    pub to: Option<String>,
}

/// Where text comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    File(PathBuf),
    Stdin,
    /// What the caller holds, under a name that tells what it is.
    Text {
        name: String,
        text: String,
    },
}

/// A hook of git that the program can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    PreCommit,
    PrePush,
    /// Gates nothing: it starts a review in the background.
    PostCommit,
}

impl Hook {
    /// Every hook.
    pub const ALL: [Self; 3] = [Self::PreCommit, Self::PrePush, Self::PostCommit];
    /// The hooks that can stop what git does.
    pub const GATES: [Self; 2] = [Self::PreCommit, Self::PrePush];

    /// Returns git's name of the hook, which is its file name too.
    pub fn name(self) -> &'static str {
        match self {
            Self::PreCommit => "pre-commit",
            Self::PrePush => "pre-push",
            Self::PostCommit => "post-commit",
        }
    }

    /// Returns the git command that runs the hook.
    pub fn command(self) -> &'static str {
        match self {
            Self::PreCommit | Self::PostCommit => "git commit",
            Self::PrePush => "git push",
        }
    }
}

/// How hard to look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    #[default]
    Quick,
    Thorough,
}

/// Whose policy rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authority {
    /// The file in the worktree: a developer at their own desk.
    Worktree,
    /// The file at HEAD: the worktree belongs to the one under review.
    Head,
    /// The file at the merge base: the change under review cannot choose its judge.
    Base,
}

/// A review that somebody asks for.
#[derive(Clone, Debug)]
pub struct ReviewRequest {
    pub source: Source,
    /// The folder to look for the repository from.
    pub dir: PathBuf,
    /// Only paths that match one of these globs; empty: all.
    pub files: Vec<String>,
    /// What errors call these globs.
    pub files_name: &'static str,
    pub authority: Authority,
    /// A policy file named on the command line.
    pub config: Option<PathBuf>,
    pub overrides: Overrides,
    /// Each `FINGERPRINT=REASON`.
    pub waivers: Vec<String>,
    /// Rules only, no socket.
    pub offline: bool,
    /// Backends named for this run; empty: as policy says.
    pub backends: Vec<String>,
    /// Context for a model in addition to the change.
    pub brief: Brief,
    pub cache: CacheUse,
    /// Every prompt is appended to this file, which only its owner may read.
    pub debug_prompts: Option<PathBuf>,
    /// The change is wanted as text afterwards: for the store, or for a report that shows it.
    pub record: bool,
    /// The git hook that asks, whose mode policy sets.
    pub hook: Option<Hook>,
    /// Whole files are audited for weaknesses: at depth thorough only the questions about security are asked.
    pub is_audit: bool,
    /// Flags of the command line that only a model heeds: without a backend they are an error.
    pub model_flags: Vec<&'static str>,
    pub on_block: OnBlock,
    /// The worktree whose store of reviews counts; `None`: the one under review. A private copy has no store, and no tests run
    /// in it outside of a sandbox.
    pub store_of: Option<PathBuf>,
}

/// What the author says of a change: data for a model, never instructions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Brief {
    /// What was asked for and what was done.
    pub summary: Option<String>,
    /// Design documents that the change should follow.
    pub documents: Vec<PathBuf>,
    /// What to look at, in the author's words, where it is none of the categories.
    pub focus: Vec<String>,
    /// What went before each follow-up round of the same review, oldest first.
    pub previous: Vec<Previous>,
    /// The task that the change is to fulfil, and by which it is judged.
    pub contract: Option<Contract>,
    /// The names of a pull request, in which tickets are looked for.
    pub naming: Option<Naming>,
}

/// The names and texts that a forge has of a pull request. Foreign text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Naming {
    pub number: u64,
    /// The branch of its head.
    pub branch: String,
    pub title: String,
    pub description: String,
    /// Its head lies in another project.
    pub is_fork: bool,
}

/// A task that was given, as far as a reviewer needs it. Foreign text, secrets and all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contract {
    /// The file that it was read from, from the top of the repository.
    pub file: RepoPath,
    /// Markdown with a heading for each requirement and criterion, so that each can be cited.
    pub text: String,
    /// What is judged one by one; never empty.
    pub criteria: Vec<Criterion>,
    /// Files that models are not shown as part of the change, since they speak of it: the task itself, reports of
    /// earlier judgements. The rules read them all the same.
    pub apart: Vec<RepoPath>,
}

/// One thing that a task asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Criterion {
    /// `AC1`; unique in its contract, letters, digits, `.`, `_` and `-`.
    pub id: String,
    pub text: String,
}

/// What a follow-up round started from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Previous {
    /// The findings of the round before and what the coder answered, in words.
    pub text: String,
    /// Files, as reports write them, of which the coder explained a finding: models are asked about them again though
    /// the code is as it was.
    pub explained: Vec<String>,
    /// A finding was explained that is about no file: everything is asked about again.
    pub all: bool,
}

/// Whether a model's earlier answer to the same question counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheUse {
    #[default]
    Allowed,
    Refused,
}

/// What flags change of the policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    pub block_on: Option<Vec<Severity>>,
    pub warn_on: Option<Vec<Severity>>,
    pub on_incomplete: Option<OnIncomplete>,
    pub focus: Option<Vec<Category>>,
    pub depth: Option<Depth>,
    pub model: Option<String>,
    pub jobs: Option<u32>,
    pub timeout: Option<Duration>,
    pub max_cost_usd: Option<f64>,
    /// Requests of one run; set by commands that make several.
    pub max_requests: Option<u32>,
    /// Tokens that all requests together may take, in and out.
    pub max_tokens: Option<u64>,
}

/// What an incomplete review does to the exit code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnIncomplete {
    #[default]
    Fail,
    Warn,
}

/// What failed tests do to the verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnTestFailure {
    #[default]
    Block,
    Warn,
}

/// What findings that block do to the exit code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnBlock {
    #[default]
    Fail,
    /// Exit 0, for steps that only upload the report.
    ExitZero,
}
