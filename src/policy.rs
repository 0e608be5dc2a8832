//! The policy of `.claude-reviewer.toml`: typed values with origins, trust, and the thresholds of
//! each path.
//!
//! # Layers
//!
//! A value comes from the highest layer that sets it:
//!
//! | layer | source | set by |
//! |---|---|---|
//! | default | this program | |
//! | user | `~/.config/claude-reviewer/config.toml` (`$XDG_CONFIG_HOME`) | the user of this machine |
//! | project | `.claude-reviewer.toml` of the worktree, HEAD or the merge base; or `--config FILE` | the team |
//! | environment | `REVIEW_MODEL` and others | the user who starts the run |
//! | flag | `--block-on` and others | the user who starts the run |
//!
//! A higher layer replaces a value, and never merges lists. A user's own `ignore` or `disable`
//! therefore cannot widen the project's file, which overrides the user's file in every key that
//! gates. `[[path]]` entries belong to their layer: within a layer the top level comes first, then
//! every `[[path]]` in order, key by key. A `[[path]]` entry therefore cannot undo a threshold of a
//! higher layer.
//!
//! *Operator-only* keys (programs, commands, keys and their variables, storage paths, endpoints;
//! see `Trust`) have the opposite order, because they decide what this machine runs and where its
//! data goes. The user's file overrides the project's file, except for a file that `--config` names
//! for this run. The project's file needs trust: it is the policy at the merge base, `--config`
//! names it, or `policy trust` has pinned exactly this content for this user. Without trust the
//! value is ignored, and a note reports it. A backend that loses a value in this way is
//! [withheld](Backend::withheld) and not asked, because it would differ from the configured one.

mod backend;
mod cache;
mod context;
mod cover;
pub mod glob;
pub mod import;
mod keys;
mod kind;
mod lint;
mod merge;
mod parse;
mod preset;
mod read;
#[cfg(test)]
mod reference;
pub mod schema;
pub mod show;
mod threshold;
mod trust;
pub mod value;
mod waiver;
mod weaken;

pub use backend::{Api, Backend, BackendKind, Effort, KeyHeader, Price};
pub use cache::{CachePolicy, RedisAddress, ed25519_public_key};
pub use context::{ContextPolicy, ContextServer, MAX_CALLS, Reads, is_read_only};
pub use parse::{MAX_BYTES, PolicyProblem};
pub use preset::{PRESETS, Preset, built_in_names};
pub use trust::{Pin, Pins};
pub(crate) use value::quote as quoted;
pub use waiver::{Waive, waivers};
pub use weaken::{
    Weakening, new_instructions, rules_of, selects_other_programs_or_models, weakened,
};

use crate::diff::{ObjectId, RepoPath};
use crate::env::Env;
use crate::error::Result;
use crate::finding::listing::Effect;
use crate::finding::{Category, Confidence, Severity};
use crate::request::{Depth, OnIncomplete, OnTestFailure, Overrides};
use glob::Globs;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

/// The name of the project's file, at the top of the repository.
pub const FILE_NAME: &str = ".claude-reviewer.toml";

/// The effective policy of one run.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Paths that are not reviewed. Patterns as in [`glob`].
    pub ignore: Vec<String>,
    /// Worst first, as in all lists of severities.
    pub block_on: Vec<Severity>,
    pub warn_on: Vec<Severity>,
    /// A model's finding below this confidence can warn but not block.
    pub min_confidence: Confidence,
    pub on_incomplete: OnIncomplete,
    pub on_truncated: OnIncomplete,
    pub review: ReviewPolicy,
    /// All built-in and defined backends, sorted by name.
    pub backends: Vec<Backend>,
    pub rules: RulesPolicy,
    /// In order; see [`Policy::thresholds`].
    pub paths: Vec<PathRule>,
    pub guidelines: Vec<Guideline>,
    pub history: HistoryPolicy,
    pub tests: TestsPolicy,
    pub fix: FixPolicy,
    pub hooks: HooksPolicy,
    pub mcp: McpPolicy,
    pub receipt: ReceiptPolicy,
    pub forge: ForgePolicy,
    pub context: ContextPolicy,
    pub cache: CachePolicy,
    origin: String,
    /// Origins of values that are not defaults, by full key (`review.jobs`,
    /// `backend.local.base_url`).
    origins: BTreeMap<String, SettingOrigin>,
    compiled: CompiledPatterns,
}

/// `[review]`.
#[derive(Clone, Debug, PartialEq)]
pub struct ReviewPolicy {
    /// Names of [`Policy::backends`]; empty: rules only.
    pub backends: Vec<String>,
    pub mode: Mode,
    pub depth: Depth,
    /// Empty: everything.
    pub focus: Vec<Category>,
    /// Files of the repository for models, if they exist.
    pub conventions: Vec<String>,
    /// Per request.
    pub max_files: u32,
    /// Per request: lines shown, changed or not.
    pub max_lines: u32,
    pub max_requests: u32,
    pub max_rounds: u32,
    /// For the whole review.
    pub timeout: Duration,
    pub max_cost_usd: f64,
    /// Requests at the same time.
    pub jobs: u32,
}

/// The selection among several backends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// All of them.
    All,
    /// The first that answers.
    First,
}

/// `[rules]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RulesPolicy {
    pub disable: Vec<String>,
    /// By rule ID.
    pub severity: Vec<(String, Severity)>,
    /// Folders of the repository that contain team rules.
    pub paths: Vec<String>,
    pub profile: RuleProfile,
}

/// The rules that run, and the weight of a finding with a value of unknown origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RuleProfile {
    /// Rules that are right in practically every case.
    #[default]
    Default,
    /// Rules that a person judges one by one too, and findings with a value of unknown origin as
    /// `minor`.
    Audit,
}

/// `[[path]]`: thresholds for a part of the repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRule {
    /// Any of these.
    pub glob: Vec<String>,
    pub block_on: Option<Vec<Severity>>,
    pub warn_on: Option<Vec<Severity>>,
    pub min_confidence: Option<Confidence>,
    pub origin: SettingOrigin,
}

/// `[[guideline]]`: instructions for models that review matching files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guideline {
    /// Any of these.
    pub glob: Vec<String>,
    pub text: String,
    pub origin: SettingOrigin,
}

/// `[history]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryPolicy {
    pub path: String,
    /// True if sessions can be committed. If false, git ignores the folder.
    pub commit: bool,
}

/// `[tests]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TestsPolicy {
    pub command: Option<String>,
    pub run: bool,
    pub on_failure: OnTestFailure,
    /// True if models write failing tests for severe claims.
    pub reproduce: bool,
    /// The container command for them; empty: bubblewrap.
    pub sandbox: Vec<String>,
    /// Further folders that bubblewrap shows.
    pub sandbox_paths: Vec<String>,
}

/// Attempts of a fix by default.
pub(crate) const MAX_ATTEMPTS: u32 = 3;

/// `[fix]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixPolicy {
    pub max_attempts: u32,
    /// Backend that plans and writes fixes; `None` for the backends of the review.
    pub backend: Option<String>,
}

/// `[hooks]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HooksPolicy {
    pub pre_commit: HookMode,
    pub pre_push: HookMode,
    pub post_commit: PostCommit,
    /// USD that background reviews of this user may spend in a day.
    pub max_cost_per_day: f64,
}

/// The action after a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostCommit {
    Off,
    /// A detached review with the backends of the policy.
    Background,
}

/// The mode of a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookMode {
    Rules,
    Full,
    Off,
}

/// `[mcp]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct McpPolicy {
    /// `None`: all.
    pub tools: Option<Vec<String>>,
    pub agent_review: AgentReview,
}

/// The effect of a review by the author's own agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AgentReview {
    /// Its findings are added. The backends of the policy still have to review.
    #[default]
    Adds,
    /// The review replaces the backends of the policy.
    Counts,
}

impl AgentReview {
    /// Returns the canonical name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Adds => "adds",
            Self::Counts => "counts",
        }
    }
}

/// `[receipt]`: signers and the key of signed reviews.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceiptPolicy {
    /// Lines of an OpenSSH allowed-signers file.
    pub signers: Vec<String>,
    /// The path of the signing key.
    pub key: Option<String>,
}

/// `[forge]`: API addresses of self-hosted forges, and the source of tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForgePolicy {
    pub github_api: Option<String>,
    pub gitlab_api: Option<String>,
    pub bitbucket_api: Option<String>,
    /// A command line that prints the token for the host in its variable `FORGE_HOST`.
    pub token_command: Option<String>,
    /// Replies of maintainers waive findings.
    pub comment_commands: bool,
}

/// The thresholds for one path, after all matching `[[path]]` entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thresholds {
    pub block_on: Vec<Severity>,
    pub warn_on: Vec<Severity>,
    pub min_confidence: Confidence,
}

impl Thresholds {
    /// Returns the effect of a rule's finding on the verdict, without suppressions and waivers.
    pub fn effect_of(&self, severity: Severity) -> Effect {
        match (
            threshold::includes(&self.block_on, severity),
            threshold::includes(&self.warn_on, severity),
        ) {
            (true, _) => Effect::Blocks,
            (false, true) => Effect::Warns,
            (false, false) => Effect::Counts,
        }
    }
}

/// The layers in ascending order of precedence. Operator-only keys differ; see the module
/// documentation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    #[default]
    Default,
    User,
    Project,
    Environment,
    Flag,
}

/// The origin of a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettingOrigin {
    pub layer: Layer,
    /// The displayed name of a file, a variable or a flag; empty for a default.
    pub place: String,
    /// 1-based line of a file.
    pub line: Option<u32>,
}

/// The bytes of a policy file, and its displayed name.
#[derive(Clone, Debug)]
pub struct PolicyFile {
    pub name: String,
    pub bytes: Vec<u8>,
}

/// The project's file.
#[derive(Clone, Debug)]
pub struct ProjectFile {
    pub from: ProjectOrigin,
    pub file: PolicyFile,
    /// True if its operator-only keys apply.
    pub trusted: bool,
}

/// The version of the project's file that applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProjectOrigin {
    Worktree,
    Head,
    /// The merge base, the tip of the target branch, or the first parent of a commit.
    Base(ObjectId),
    /// `--config FILE`.
    Flag,
}

/// The sources of a policy.
#[derive(Clone, Copy, Debug)]
pub struct Sources<'a> {
    pub user: Option<&'a PolicyFile>,
    pub project: Option<&'a ProjectFile>,
    pub env: &'a Env,
    pub overrides: &'a Overrides,
}

/// A policy, with notes about ignored settings.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub policy: Policy,
    /// Ignored operator-only keys. Every report shows them.
    pub notes: Vec<PolicyNote>,
}

/// A note about an ignored setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyNote {
    /// 1-based.
    pub line: Option<u32>,
    /// The full key that was ignored, and its value as TOML.
    pub key: String,
    pub value: String,
    pub text: String,
}

/// Merges the effective policy from `sources`. Reads no files.
///
/// # Errors
///
/// Usage: a file is malformed, or has an unknown key, a wrong type or a value out of bounds; or an
/// environment variable is invalid. An invalid value never falls back to a default.
pub fn load(sources: &Sources<'_>) -> Result<Loaded> {
    check(sources).map_err(|problems| PolicyProblem::error(&problems))
}

/// Like [`load`], but reports every problem.
///
/// # Errors
///
/// At least one problem, in the order of layers and lines.
pub fn check(sources: &Sources<'_>) -> std::result::Result<Loaded, Vec<PolicyProblem>> {
    let user = sources
        .user
        .map(|f| parse::parse(f, Layer::User).map(|p| (f, p)))
        .transpose();
    let project = sources
        .project
        .map(|f| parse::parse(&f.file, Layer::Project).map(|p| (f, p)))
        .transpose();
    let (user, project) = match (user, project) {
        (Ok(user), Ok(project)) => (user, project),
        (user, project) => {
            return Err(user
                .err()
                .into_iter()
                .chain(project.err())
                .flatten()
                .collect());
        }
    };
    let mut merge = merge::files(
        user.as_ref()
            .map(|(file, parsed)| merge::ParsedFile { file, parsed }),
        project.as_ref().map(|(p, parsed)| {
            (
                *p,
                merge::ParsedFile {
                    file: &p.file,
                    parsed,
                },
            )
        }),
    );
    let mut problems = merge.environment(sources.env);
    merge.flags(sources.overrides);
    problems.extend(merge.check());
    if !problems.is_empty() {
        return Err(problems);
    }
    let (mut policy, notes) = merge.finish();
    policy.origin = match (sources.project, sources.user) {
        (Some(p), _) => p.from.label(),
        (None, Some(_)) => "user".to_owned(),
        (None, None) => "default".to_owned(),
    };
    Ok(Loaded { policy, notes })
}

/// Returns the operator-only values of the project's file that need trust, as `key = value`.
///
/// # Errors
///
/// Like [`load`].
pub fn operator_values(project: &ProjectFile) -> Result<Vec<String>> {
    let untrusted = ProjectFile {
        trusted: false,
        ..project.clone()
    };
    // Load the file alone: the user's file and the environment can change after trust is given.
    let (env, overrides) = (Env::default(), Overrides::default());
    let loaded = load(&Sources {
        user: None,
        project: Some(&untrusted),
        env: &env,
        overrides: &overrides,
    })?;
    Ok(loaded
        .notes
        .into_iter()
        .map(|n| format!("{} = {}", n.key, n.value))
        .collect())
}

impl fmt::Display for SettingOrigin {
    /// Writes `default`, `.claude-reviewer.toml:12`, `MAX_REVIEW_ROUNDS`, `--jobs`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.layer, self.line) {
            (Layer::Default, _) => f.write_str("default"),
            (_, Some(line)) => write!(f, "{}:{line}", self.place),
            (_, None) => f.write_str(&self.place),
        }
    }
}

impl ProjectOrigin {
    /// Returns the name in reports: `worktree`, `head`, `base@<id>`, `flag`.
    pub fn label(&self) -> String {
        match self {
            Self::Worktree => "worktree".to_owned(),
            Self::Head => "head".to_owned(),
            Self::Base(id) => format!("base@{id}"),
            Self::Flag => "flag".to_owned(),
        }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            ignore: Vec::new(),
            block_on: vec![Severity::Critical, Severity::Major],
            warn_on: vec![Severity::Minor],
            min_confidence: Confidence::Medium,
            on_incomplete: OnIncomplete::Fail,
            on_truncated: OnIncomplete::Fail,
            review: ReviewPolicy {
                backends: Vec::new(),
                mode: Mode::All,
                depth: Depth::Quick,
                focus: Vec::new(),
                conventions: vec!["CLAUDE.md".to_owned(), "AGENTS.md".to_owned()],
                max_files: 50,
                max_lines: 2000,
                max_requests: 40,
                max_rounds: 5,
                timeout: Duration::from_secs(120),
                max_cost_usd: 1.0,
                jobs: 4,
            },
            backends: built_in(),
            rules: RulesPolicy {
                paths: vec![".claude-reviewer/rules".to_owned()],
                ..RulesPolicy::default()
            },
            paths: Vec::new(),
            guidelines: Vec::new(),
            history: HistoryPolicy {
                path: ".reviews".to_owned(),
                commit: false,
            },
            tests: TestsPolicy::default(),
            fix: FixPolicy {
                max_attempts: MAX_ATTEMPTS,
                backend: None,
            },
            hooks: HooksPolicy {
                pre_commit: HookMode::Rules,
                pre_push: HookMode::Full,
                post_commit: PostCommit::Off,
                max_cost_per_day: 5.0,
            },
            mcp: McpPolicy::default(),
            receipt: ReceiptPolicy::default(),
            forge: ForgePolicy::default(),
            context: ContextPolicy::default(),
            cache: CachePolicy::default(),
            origin: "default".to_owned(),
            origins: BTreeMap::new(),
            compiled: CompiledPatterns::default(),
        }
    }
}

impl Policy {
    /// Returns true if `ignore` excludes a path from the review.
    pub fn ignores(&self, path: &RepoPath) -> bool {
        !self.ignore.is_empty()
            && self
                .compiled
                .ignore
                .get_or_init(|| compile(&self.ignore))
                .matches(path)
    }

    /// Returns true if a path belongs to a stored review and stored reviews are committed. Only
    /// rules for secrets scan such a record, and no model sees it: its text about code is not code.
    pub fn is_record(&self, path: &RepoPath) -> bool {
        const FILES: [&str; 7] = [
            "fixes.json",
            "request.json",
            "changes.diff",
            "review.json",
            "response.json",
            "seal.json",
            "complete.json",
        ];
        if !self.history.commit {
            return false;
        }
        let Some(inside) = self.path_in_store(path) else {
            return false;
        };
        match inside.split('/').collect::<Vec<_>>()[..] {
            ["latest.json" | ".gitignore"] => true,
            ["sessions", id, file] => is_session(id) && FILES.contains(&file),
            ["sessions", id, n, file] => is_session(id) && is_round(n) && FILES.contains(&file),
            _ => false,
        }
    }

    /// Returns a path relative to the folder of stored reviews; `None` for a path outside of it.
    fn path_in_store<'p>(&self, path: &'p RepoPath) -> Option<&'p str> {
        let path = std::str::from_utf8(path.as_bytes()).ok()?;
        path.strip_prefix(self.history.path.trim_end_matches('/'))?
            .strip_prefix('/')
    }

    /// Returns the thresholds for a path. For a finding about the whole change (`None`), the top
    /// level applies.
    pub fn thresholds(&self, path: Option<&RepoPath>) -> Thresholds {
        let mut t = Thresholds {
            block_on: self.block_on.clone(),
            warn_on: self.warn_on.clone(),
            min_confidence: self.min_confidence,
        };
        let (Some(path), false) = (path, self.paths.is_empty()) else {
            return t;
        };
        let block = self.layer_of("block_on");
        let warn = self.layer_of("warn_on");
        let confidence = self.layer_of("min_confidence");
        for i in self
            .compiled
            .paths
            .matching(self.paths.iter().map(|p| &p.glob), path)
        {
            let rule = &self.paths[i];
            if let (Some(v), true) = (&rule.block_on, rule.origin.layer >= block) {
                t.block_on.clone_from(v);
            }
            if let (Some(v), true) = (&rule.warn_on, rule.origin.layer >= warn) {
                t.warn_on.clone_from(v);
            }
            if let (Some(v), true) = (rule.min_confidence, rule.origin.layer >= confidence) {
                t.min_confidence = v;
            }
        }
        t
    }

    /// Returns the guidelines for a path, in order.
    pub fn guidelines_for<'a>(&'a self, path: &RepoPath) -> impl Iterator<Item = &'a Guideline> {
        let found = self
            .compiled
            .guidelines
            .matching(self.guidelines.iter().map(|g| &g.glob), path);
        found.into_iter().map(|i| &self.guidelines[i])
    }

    /// Returns a backend by name.
    pub fn backend(&self, name: &str) -> Option<&Backend> {
        self.backends.iter().find(|b| b.name == name)
    }

    /// Returns the origin of a value, by its full key (`review.jobs`, `backend.local.base_url`).
    pub fn origin_of(&self, key: &str) -> &SettingOrigin {
        const DEFAULT: &SettingOrigin = &SettingOrigin {
            layer: Layer::Default,
            place: String::new(),
            line: None,
        };
        self.origins.get(key).unwrap_or(DEFAULT)
    }

    /// Returns the layer that sets a value, by its full key.
    fn layer_of(&self, key: &str) -> Layer {
        self.origin_of(key).layer
    }

    /// Returns the origin of the policy for reports: `worktree`, `head`, `base@<id>`, `flag`
    /// (`--config`), `user` (no project file) or `default` (no file).
    pub fn origin_label(&self) -> &str {
        &self.origin
    }
}

/// Returns true if a name is a session ID: an existing date, and a number of at least three digits.
fn is_session(name: &str) -> bool {
    let parts = name
        .split_at_checked(10)
        .and_then(|(day, rest)| Some((day, rest.strip_prefix('-')?)));
    parts.is_some_and(|(day, n)| is_day(day) && is_session_number(n))
}

/// Returns true for an existing date in the form `YYYY-MM-DD`.
fn is_day(day: &str) -> bool {
    let is_shape = day.bytes().enumerate().all(|(i, b)| {
        if matches!(i, 4 | 7) {
            b == b'-'
        } else {
            b.is_ascii_digit()
        }
    });
    is_shape && day.parse::<jiff::civil::Date>().is_ok()
}

/// Returns true for the number of a session on its day: three digits, or up to nine without leading
/// zeros.
fn is_session_number(digits: &str) -> bool {
    match digits.len() {
        3 => digits != "000" && digits.bytes().all(|b| b.is_ascii_digit()),
        4..=9 => is_number(digits),
        _ => false,
    }
}

/// Returns true if a name is that of a round, such as `round-1`.
fn is_round(name: &str) -> bool {
    name.strip_prefix("round-")
        .is_some_and(|n| is_number(n) && n.parse::<u32>().is_ok())
}

/// Returns true for a positive decimal number without leading zeros.
fn is_number(digits: &str) -> bool {
    !digits.is_empty() && !digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit())
}

/// Returns the backends that need no table, sorted by name.
fn built_in() -> Vec<Backend> {
    let mut names: Vec<&str> = built_in_names().collect();
    names.sort_unstable();
    names.into_iter().map(Backend::new).collect()
}

/// Patterns, compiled on first use: most runs have none.
#[derive(Clone, Debug, Default)]
struct CompiledPatterns {
    ignore: OnceLock<Globs>,
    paths: EntryPatterns,
    guidelines: EntryPatterns,
}

/// The compiled patterns of a list of entries that have several patterns each.
#[derive(Clone, Debug, Default)]
struct EntryPatterns {
    globs: OnceLock<(Globs, Vec<usize>)>,
}

impl EntryPatterns {
    /// Returns the positions of the matching entries, ascending.
    fn matching<'g>(
        &self,
        entries: impl Iterator<Item = &'g Vec<String>>,
        path: &RepoPath,
    ) -> Vec<usize> {
        let (globs, of) = self.globs.get_or_init(|| {
            let flat: Vec<(usize, &String)> = entries
                .enumerate()
                .flat_map(|(i, list)| list.iter().map(move |g| (i, g)))
                .collect();
            (
                compile(&flat.iter().map(|(_, g)| *g).collect::<Vec<_>>()),
                flat.iter().map(|(i, _)| *i).collect(),
            )
        });
        let mut found: Vec<usize> = globs.matching(path).into_iter().map(|i| of[i]).collect();
        found.dedup();
        found
    }
}

/// Compiles patterns that the parser has validated.
fn compile<S: AsRef<str>>(patterns: &[S]) -> Globs {
    // This cannot fail after validation. If it did, no path would be ignored.
    Globs::new(patterns).unwrap_or_default()
}
