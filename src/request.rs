//! The request for a review: the type that the command line, the hooks and MCP build.

use crate::diff::RepoPath;
use crate::finding::{Category, Severity};
use base64::Engine as _;
use secrecy::{ExposeSecret as _, SecretString};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// The source of a review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The index against HEAD.
    Staged,
    /// The worktree against the index.
    Unstaged { untracked: bool },
    /// The worktree against a base, with new files.
    Changes { base: Option<String> },
    /// A commit against a parent, or (`A..B`) each commit of a range against its first parent.
    Commit {
        rev: String,
        /// 1-based number of the parent; only for a single commit.
        parent: Option<u32>,
    },
    /// The net change from the merge base to the head, plus the secret rules over every commit.
    Branch {
        head: Option<String>,
        base: Option<String>,
    },
    /// Like `Branch`, between two commits that a CI event or a forge names, or that the user wants
    /// to fetch.
    Ends(Box<Ends>),
    /// The ranges that git passes to a pre-push hook, each like `Branch`.
    Push(Vec<PushRange>),
    /// A unified diff.
    Patch(Input),
    /// Whole files, with every line as added.
    Code(Vec<Input>),
    /// Every tracked file of a state, as if it were new.
    Tree(TreeState),
    /// Every version of every file, for the rules that find secrets.
    History {
        /// `A..B`, for the commits of B that A lacks; `None` for all commits that a reference
        /// reaches.
        range: Option<String>,
    },
    /// The staged changes, or without any, all changes.
    Auto,
}

/// A part of a review that is divided into several runs. Each reviewed file is in exactly one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: u32,
    of: u32,
}

impl Shard {
    /// The largest number of shards of a review.
    pub const MOST: u32 = 10_000;

    /// Creates shard `index` of `of`. Both are counted from 1. `None` if the index is not among the
    /// shards, or if there are more than [`Self::MOST`].
    pub fn new(index: u32, of: u32) -> Option<Self> {
        let is_valid = (1..=of).contains(&index) && of <= Self::MOST;
        is_valid.then_some(Self { index, of })
    }

    /// Parses `I/N`: decimal digits without a sign.
    ///
    /// # Errors
    /// The reason why the text is not a shard.
    pub fn parse(text: &str) -> std::result::Result<Self, String> {
        const FORM: &str = "expected I/N, such as 1/4";
        let (index, of) = text.split_once('/').ok_or(FORM)?;
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !is_number(index) || !is_number(of) {
            return Err(FORM.to_owned());
        }
        // Digits that do not fit are larger than every bound.
        let [index, of] = [index, of].map(|part| part.parse().unwrap_or(u32::MAX));
        if of > Self::MOST {
            return Err(format!("at most {} shards are supported", Self::MOST));
        }
        Self::new(index, of).ok_or_else(|| match of {
            0 => "the number of shards must be at least 1".to_owned(),
            _ => format!("shards are counted from 1 to {of}"),
        })
    }

    /// Returns the number of this shard, counted from 1.
    pub fn index(self) -> u32 {
        self.index
    }

    /// Returns the number of shards.
    pub fn of(self) -> u32 {
        self.of
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

impl ReviewRequest {
    /// Creates a request for `source`, with the settings of the policy at `dir`.
    pub fn new(source: Source, dir: PathBuf) -> Self {
        Self {
            source,
            dir,
            files: Vec::new(),
            files_name: "--files",
            shard: None,
            authority: Authority::Worktree,
            config: None,
            overrides: Overrides::default(),
            waivers: Vec::new(),
            offline: false,
            backends: Vec::new(),
            brief: Brief::default(),
            cache: CacheUse::default(),
            resume: false,
            past_findings: Vec::new(),
            debug_prompts: None,
            record: false,
            hook: None,
            is_audit: false,
            model_flags: Vec::new(),
            on_block: OnBlock::Fail,
            store_of: None,
            is_batch: false,
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
            Self::Tree(_) | Self::History { .. } => "tree",
        }
    }
}

/// The state whose files are reviewed as a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeState {
    /// The tracked files as they are on disk; with `untracked`, also new files that are not
    /// ignored.
    Worktree { untracked: bool },
    /// The files of the index.
    Index,
    /// The files of a revision.
    Rev(String),
}

/// A change between two ends, which the clone may lack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ends {
    /// Display name: `pull request 12`, `the push to main`.
    pub label: String,
    /// The change is a pull request of a forge.
    pub is_pull: bool,
    pub head: End,
    pub base: End,
    /// Substitute for a base that no longer exists: the commit before a forced push.
    pub instead: Option<End>,
    /// Source of the information that there may be no commits between the ends. Without it, an
    /// empty change is an error and not a pass.
    pub may_be_empty: Option<String>,
    /// The remote of both ends: its name or an address.
    pub remote: String,
    pub fetching: Fetching,
    /// Credential for the remote.
    pub credential: Option<Credential>,
    /// Trust in the files of the worktree.
    pub checkout: Checkout,
}

/// One end of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// A full object ID, with the full name of a remote reference that contains it, if there is
    /// one.
    Id { id: String, under: Option<String> },
    /// An abbreviated object ID in lower case, with the full name of the remote reference that
    /// contains it.
    Short { id: String, under: Option<String> },
    /// A branch of the remote, by its short name.
    Branch(String),
    /// A revision as the user typed it.
    Rev(String),
    /// No commit: everything is new.
    Nothing,
}

/// Whether missing objects are fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetching {
    Missing,
    Never,
}

/// The author of the files in a worktree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checkout {
    /// The author of the change, who may run any code there.
    Own,
    /// Another person, in a job with rights that this person lacks: nothing from the worktree is
    /// run.
    Foreign,
    /// Possibly another person, on the machine of a user who reviews a pull request: nothing from
    /// the worktree is run.
    Reviewer,
}

/// The objects that a review needs from a remote.
#[derive(Clone, Debug)]
pub struct Fetch {
    /// Name of a configured remote, or an address.
    pub remote: String,
    /// Full names of references, or full object IDs.
    pub tips: Vec<String>,
    /// Credential, if the operator's git configuration has none.
    pub credential: Option<Credential>,
}

/// An authentication header for an address and the addresses below it.
#[derive(Clone, Debug)]
pub struct Credential {
    /// The address as in git's `http.<address>.extraHeader`: `https://forge.example/`.
    pub url: String,
    /// The whole header line: `Authorization: …`.
    pub header: SecretString,
}

impl PartialEq for Credential {
    fn eq(&self, other: &Self) -> bool {
        self.url == other.url && self.header.expose_secret() == other.header.expose_secret()
    }
}

impl Eq for Credential {}

impl Credential {
    /// Creates a `Basic` header from a name and a token, as forges accept it from git.
    pub fn basic(url: &str, user: &str, token: &SecretString) -> Self {
        let pair = base64::engine::general_purpose::STANDARD
            .encode(format!("{user}:{}", token.expose_secret()));
        Self {
            url: url.to_owned(),
            header: format!("Authorization: Basic {pair}").into(),
        }
    }
}

/// One line of a pre-push hook's standard input, or pre-commit's `FROM_REF`/`TO_REF`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushRange {
    /// The local object ID in hexadecimal; all zeros if the remote reference is deleted. From
    /// pre-commit's variables it may also be a name (`HEAD`, `refs/heads/main`).
    pub local: String,
    /// The object ID at the remote in hexadecimal; all zeros if the reference is new there. It may
    /// also be a name, as above.
    pub remote: String,
    /// Name of the reference at the remote, for messages.
    pub name: String,
    /// Name of the remote, or its address if it has no name; `None` if it is unknown. For a new
    /// reference, only commits of this remote count as known: branches of other remotes do not
    /// matter.
    pub to: Option<String>,
}

/// The origin of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    File(PathBuf),
    Stdin,
    /// Text in memory, with a descriptive name.
    Text {
        name: String,
        text: String,
    },
}

/// A git hook that runs this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    PreCommit,
    PrePush,
    /// Starts a review in the background; cannot stop the commit.
    PostCommit,
}

impl Hook {
    /// All hooks.
    pub const ALL: [Self; 3] = [Self::PreCommit, Self::PrePush, Self::PostCommit];
    /// The hooks that can stop git.
    pub const GATES: [Self; 2] = [Self::PreCommit, Self::PrePush];

    /// Returns git's name of the hook, which is also its file name.
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

/// The depth of a model review.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    #[default]
    Quick,
    Thorough,
}

/// The source of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authority {
    /// The file in the worktree, for a developer's own review.
    Worktree,
    /// The file at HEAD, because the author under review controls the worktree.
    Head,
    /// The file at the merge base, because the change under review must not choose its own policy.
    Base,
}

/// A request for a review.
#[derive(Clone, Debug)]
pub struct ReviewRequest {
    pub source: Source,
    /// Folder from which the repository is searched.
    pub dir: PathBuf,
    /// Globs that select paths; empty if all paths are reviewed.
    pub files: Vec<String>,
    /// Name of these globs in errors.
    pub files_name: &'static str,
    /// The part of the files that is reviewed; `None` for all.
    pub shard: Option<Shard>,
    pub authority: Authority,
    /// Policy file from the command line.
    pub config: Option<PathBuf>,
    pub overrides: Overrides,
    /// Waivers, each as `FINGERPRINT=REASON`.
    pub waivers: Vec<String>,
    /// Run only the rules, and open no socket.
    pub offline: bool,
    /// Backends for this run; empty to use those of the policy.
    pub backends: Vec<String>,
    /// Context for a model in addition to the change.
    pub brief: Brief,
    pub cache: CacheUse,
    /// Continue an unfinished audit of a tree.
    pub resume: bool,
    /// Number of findings of stored reviews in files, for the order of an audit.
    pub past_findings: Vec<(RepoPath, u32)>,
    /// File to which every prompt is appended, readable only for its owner.
    pub debug_prompts: Option<PathBuf>,
    /// Record the change as text, for the store or for a report that shows it.
    pub record: bool,
    /// The git hook that runs the review; the policy sets its mode.
    pub hook: Option<Hook>,
    /// Audit whole files for weaknesses: at depth thorough, only the questions about security are
    /// asked.
    pub is_audit: bool,
    /// Given flags that affect only models: without a backend they are an error.
    pub model_flags: Vec<&'static str>,
    pub on_block: OnBlock,
    /// Worktree whose store of reviews is used; `None` for the reviewed one. A private copy has no
    /// store, and tests run in it only in a sandbox.
    pub store_of: Option<PathBuf>,
    /// Send the requests to models in batches, which are answered within a day.
    pub is_batch: bool,
}

/// The author's information on a change: data for a model, never instructions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Brief {
    /// Description of the task and of the change.
    pub summary: Option<String>,
    /// Design documents that the change should follow.
    pub documents: Vec<PathBuf>,
    /// Areas to review, in the author's words, in addition to the categories.
    pub focus: Vec<String>,
    /// The earlier rounds of the same review, oldest first.
    pub previous: Vec<Previous>,
    /// The task that the change must fulfil.
    pub contract: Option<Contract>,
    /// Names and texts of a pull request, which are searched for tickets.
    pub naming: Option<Naming>,
}

/// The names and texts of a pull request from the forge. Untrusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Naming {
    pub number: u64,
    /// Name of the head branch.
    pub branch: String,
    pub title: String,
    pub description: String,
    /// The head is in another project.
    pub is_fork: bool,
}

/// A task with the parts that a reviewer needs. Untrusted, and not redacted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contract {
    /// Path of the contract file, relative to the top of the repository.
    pub file: RepoPath,
    /// Markdown with a heading for each requirement and criterion, so that a model can cite each of
    /// them.
    pub text: String,
    /// Criteria that are judged one by one; never empty.
    pub criteria: Vec<Criterion>,
    /// Files that are not shown to models as part of the change, because they are about it: the
    /// task itself, and reports of earlier judgements. The rules scan them all the same.
    pub apart: Vec<RepoPath>,
}

/// A requirement or criterion of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Criterion {
    /// ID such as `AC1`, unique in its contract, of letters, digits, `.`, `_` and `-`.
    pub id: String,
    pub text: String,
}

/// The previous round of a follow-up round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Previous {
    /// The findings of the previous round and the coder's responses, as text.
    pub text: String,
    /// Files, in the form of reports, with a finding that the coder explained: models are asked
    /// about them again, even if the code is unchanged.
    pub explained: Vec<String>,
    /// The coder explained a finding without a file, so all questions are asked again.
    pub all: bool,
}

/// Use of cached answers of a model to the same question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheUse {
    #[default]
    Allowed,
    Refused,
}

/// Policy values from flags.
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
    /// Limit on the requests of one run; set by commands with several runs.
    pub max_requests: Option<u32>,
    /// Limit on the input and output tokens of all requests together.
    pub max_tokens: Option<u64>,
}

/// Effect of an incomplete review on the exit code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnIncomplete {
    #[default]
    Fail,
    Warn,
}

/// Effect of failed tests on the verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnTestFailure {
    #[default]
    Block,
    Warn,
}

/// Effect of blocking findings on the exit code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnBlock {
    #[default]
    Fail,
    /// Exit 0, for steps that only upload the report.
    ExitZero,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_read_as_it_is_printed() {
        for text in ["1/1", "1/4", "4/4", "10000/10000"] {
            assert_eq!(
                Shard::parse(text).map(|s| s.to_string()),
                Ok(text.to_owned())
            );
        }
        let shard = Shard::parse("3/4").unwrap();
        assert_eq!((shard.index(), shard.of()), (3, 4));
    }

    #[test]
    fn a_text_that_is_not_a_shard_is_rejected_with_the_reason() {
        for (text, reason) in [
            ("0/4", "shards are counted from 1 to 4"),
            ("5/4", "shards are counted from 1 to 4"),
            ("99999999999/4", "shards are counted from 1 to 4"),
            ("0/0", "the number of shards must be at least 1"),
            ("1/0", "the number of shards must be at least 1"),
            ("1/10001", "at most 10000 shards are supported"),
            ("1/99999999999", "at most 10000 shards are supported"),
            ("a/b", "expected I/N, such as 1/4"),
            ("1/", "expected I/N, such as 1/4"),
            ("/4", "expected I/N, such as 1/4"),
            ("+1/4", "expected I/N, such as 1/4"),
            ("1/4/2", "expected I/N, such as 1/4"),
            (" 1/4", "expected I/N, such as 1/4"),
            ("1", "expected I/N, such as 1/4"),
            ("", "expected I/N, such as 1/4"),
        ] {
            assert_eq!(Shard::parse(text), Err(reason.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_shard_outside_of_its_number_does_not_exist() {
        assert_eq!(Shard::new(0, 4), None);
        assert_eq!(Shard::new(5, 4), None);
        assert_eq!(Shard::new(1, 0), None);
        assert_eq!(Shard::new(1, Shard::MOST + 1), None);
    }
}
