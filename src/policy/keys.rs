//! The table of policy keys: type, description, trust, and when a value is weaker than another.
//!
//! The parser, `policy show`, the schema, the configuration reference, trust and the comparison of
//! two policies all use this table. A new key is one entry here and one field in [`super`].

mod backend;
mod context;

use super::kind::ValueKind;
use super::value::PolicyValue;
use super::{
    AgentReview, Backend, BackendKind, Guideline, HookMode, MAX_ATTEMPTS, Mode, PathRule, Policy,
    PostCommit, RuleProfile,
};
use crate::finding::Severity;
use crate::request::{Depth, OnIncomplete, OnTestFailure};
pub(super) use backend::BACKEND;
use context::CONTEXT;

/// A table of the policy file.
pub(super) struct KeyTable {
    /// Empty: the top level.
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) keys: &'static [PolicyKey<Policy>],
}

/// A key of a table that describes a `T`.
pub(super) struct PolicyKey<T: 'static> {
    pub(super) name: &'static str,
    /// One or two sentences for the schema and the configuration reference. They do not repeat what
    /// `trust`, `FLAGS` and `VARIABLES` say.
    pub(super) about: &'static str,
    pub(super) kind: ValueKind,
    pub(super) trust: Trust,
    pub(super) weaker: Weaker,
    pub(super) get: fn(&T) -> PolicyValue,
    pub(super) set: fn(&mut T, &PolicyValue),
}

/// The files that may set a key, and which of them overrides the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// The project's file overrides the user's file.
    Open,
    /// The user's file overrides the project's file, trusted or not: the user pays.
    Personal,
    /// The user's file overrides the project's file, and the project's file needs trust.
    Operator,
    /// Like `Operator`, but an address of this machine needs no trust. Without trust, no key is
    /// sent there.
    OperatorUnlessLoopback,
    /// The project's file overrides the user's file, but without trust it cannot add entries to the
    /// user's list.
    Narrows,
}

impl Trust {
    /// Returns true if the user's file overrides the project's file.
    pub(super) fn prefers_user(self) -> bool {
        !matches!(self, Self::Open | Self::Narrows)
    }
    pub(super) fn is_operator(self) -> bool {
        matches!(self, Self::Operator | Self::OperatorUnlessLoopback)
    }
}

/// When a new value is weaker than an old one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Weaker {
    /// Never, or it is undecidable.
    Never,
    /// An entry is removed.
    Shrinks,
    /// A severity no longer blocks. The lowest severity in the list counts, and all above it.
    Blocks,
    /// A severity no longer warns, and does not block instead.
    Warns,
    /// An entry is added.
    Grows,
    /// A pattern is added that matches files which were reviewed before.
    Ignores,
    /// The number or duration is smaller.
    Lowers,
    /// The value is later in this list than before.
    Steps(&'static [&'static str]),
    /// The list was empty, which means everything, or an entry is removed.
    Narrows,
    /// The severity of a rule is lower.
    Severities,
    /// The value is different: after the merge, gate mode trusts it.
    Changes,
}

/// The only version of the format.
pub(super) const VERSION: u32 = 1;

/// All tables except `[backend.NAME]`, `[[path]]` and `[[guideline]]`.
pub(super) static TABLES: &[KeyTable] = &[
    KeyTable {
        name: "",
        about: "Scope and thresholds of a review.",
        keys: TOP,
    },
    KeyTable {
        name: "review",
        about: "Model review: backends and limits.",
        keys: REVIEW,
    },
    KeyTable {
        name: "rules",
        about: "Built-in rules and team rules.",
        keys: RULES,
    },
    KeyTable {
        name: "history",
        about: "Storage of reviews.",
        keys: HISTORY,
    },
    KeyTable {
        name: "tests",
        about: "The project's tests, run with a review.",
        keys: TESTS,
    },
    KeyTable {
        name: "fix",
        about: "Fixes that a model writes (`claude-reviewer fix`).",
        keys: FIX,
    },
    KeyTable {
        name: "hooks",
        about: "Installed git hooks.",
        keys: HOOKS,
    },
    KeyTable {
        name: "mcp",
        about: "MCP server for agents (serve-mcp).",
        keys: MCP,
    },
    KeyTable {
        name: "receipt",
        about: "Signed reviews that replace a second model review of the same change.",
        keys: RECEIPT,
    },
    KeyTable {
        name: "forge",
        about: "Self-hosted forges, their tokens, and commands in replies.",
        keys: FORGE,
    },
    KeyTable {
        name: "context",
        about: "Tickets and pages that models get beside a change.",
        keys: CONTEXT,
    },
];

const ON_FAILURE: &[&str] = &["block", "warn"];
const COMPLETION: &[&str] = &["fail", "warn"];
const CONFIDENCES: &[&str] = &["low", "medium", "high"];
const PROFILES: &[&str] = &["default", "audit"];
const STRICTEST_FIRST: &[&str] = &["audit", "default"];
const HOOK_MODES: &[&str] = &["full", "rules", "off"];
const POST_COMMITS: &[&str] = &["off", "background"];
const MODES: &[&str] = &["all", "first"];
const DEPTHS: &[&str] = &["thorough", "quick"];
const AGENT_REVIEWS: &[&str] = &["adds", "counts"];
const APIS: &[&str] = &["chat", "responses"];
const KEY_HEADERS: &[&str] = &["authorization", "api-key", "x-api-key"];
const EFFORTS: &[&str] = &["low", "medium", "high"];
const KINDS: &[&str] = &["anthropic", "claude", "google", "openai"];

static TOP: &[PolicyKey<Policy>] = &[
    PolicyKey {
        name: "ignore",
        about: "Path patterns of files that are not reviewed. Every report counts them.",
        kind: ValueKind::Patterns,
        trust: Trust::Open,
        weaker: Weaker::Ignores,
        get: |p| PolicyValue::List(p.ignore.clone()),
        set: |p, v| p.ignore = v.list().to_vec(),
    },
    PolicyKey {
        name: "block_on",
        about: "Severities of findings that block. The lowest severity in the list counts, and all above it.",
        kind: ValueKind::Severities,
        trust: Trust::Open,
        weaker: Weaker::Blocks,
        get: |p| PolicyValue::severities(&p.block_on),
        set: |p, v| p.block_on = v.to_severities(),
    },
    PolicyKey {
        name: "warn_on",
        about: "Severities of findings that make the verdict a warning. The lowest severity in the list counts, and all above it.",
        kind: ValueKind::Severities,
        trust: Trust::Open,
        weaker: Weaker::Warns,
        get: |p| PolicyValue::severities(&p.warn_on),
        set: |p, v| p.warn_on = v.to_severities(),
    },
    PolicyKey {
        name: "min_confidence",
        about: "Confidence that a model's finding needs to block. Findings below it can only warn; findings of rules are exempt.",
        kind: ValueKind::Choice(CONFIDENCES),
        trust: Trust::Open,
        weaker: Weaker::Steps(CONFIDENCES),
        get: |p| PolicyValue::Text(p.min_confidence.name().to_owned()),
        set: |p, v| p.min_confidence = v.to_confidence(),
    },
    PolicyKey {
        name: "on_incomplete",
        about: "Exit code of an incomplete review: 3 (fail) or 0 (warn). The verdict stays incomplete.",
        kind: ValueKind::Choice(COMPLETION),
        trust: Trust::Open,
        weaker: Weaker::Steps(COMPLETION),
        get: |p| completion(p.on_incomplete),
        set: |p, v| p.on_incomplete = to_completion(v),
    },
    PolicyKey {
        name: "on_truncated",
        about: "Effect of a limit on requests, cost or time that cuts a model's review short: incomplete (fail) or a warning with the number of reviewed files (warn).",
        kind: ValueKind::Choice(COMPLETION),
        trust: Trust::Open,
        weaker: Weaker::Steps(COMPLETION),
        get: |p| completion(p.on_truncated),
        set: |p, v| p.on_truncated = to_completion(v),
    },
];

static REVIEW: &[PolicyKey<Policy>] = &[
    PolicyKey {
        name: "backends",
        about: "Backends that review in addition to the rules: built-in names, or names of [backend.NAME] tables. If the list is empty, only the rules run and nothing is sent; a listed backend that does not answer makes the review incomplete.",
        kind: ValueKind::BackendNames,
        trust: Trust::Open,
        weaker: Weaker::Shrinks,
        get: |p| PolicyValue::List(p.review.backends.clone()),
        set: |p, v| p.review.backends = v.list().to_vec(),
    },
    PolicyKey {
        name: "mode",
        about: "Whether all backends review (all), or only the first that answers (first).",
        kind: ValueKind::Choice(MODES),
        trust: Trust::Open,
        weaker: Weaker::Steps(MODES),
        get: |p| PolicyValue::Text(p.review.mode.name().to_owned()),
        set: |p, v| {
            p.review.mode = if v.text() == "first" {
                Mode::First
            } else {
                Mode::All
            }
        },
    },
    PolicyKey {
        name: "depth",
        about: "Depth of a model's review: quick sends the change; thorough also lets the model read other files.",
        kind: ValueKind::Choice(DEPTHS),
        trust: Trust::Open,
        weaker: Weaker::Steps(DEPTHS),
        get: |p| {
            PolicyValue::Text(
                if p.review.depth == Depth::Quick {
                    "quick"
                } else {
                    "thorough"
                }
                .to_owned(),
            )
        },
        set: |p, v| {
            p.review.depth = if v.text() == "quick" {
                Depth::Quick
            } else {
                Depth::Thorough
            }
        },
    },
    PolicyKey {
        name: "focus",
        about: "Categories that a model reviews first: bug, security, performance, style, architecture, design, missing-requirement, best-practice, test. Empty: all.",
        kind: ValueKind::Categories,
        trust: Trust::Open,
        weaker: Weaker::Narrows,
        get: |p| PolicyValue::names(p.review.focus.iter().map(|c| c.name())),
        set: |p, v| p.review.focus = v.to_categories(),
    },
    PolicyKey {
        name: "conventions",
        about: "Files of the repository with the project's conventions. Models receive those that exist.",
        kind: ValueKind::Files,
        trust: Trust::Open,
        weaker: Weaker::Shrinks,
        get: |p| PolicyValue::List(p.review.conventions.clone()),
        set: |p, v| p.review.conventions = v.list().to_vec(),
    },
    PolicyKey {
        name: "max_files",
        about: "Most files in one request to a model. A larger change takes more requests.",
        kind: ValueKind::Count(1, 10_000),
        trust: Trust::Open,
        weaker: Weaker::Never,
        get: |p| PolicyValue::Count(p.review.max_files),
        set: |p, v| p.review.max_files = v.count(),
    },
    PolicyKey {
        name: "max_lines",
        about: "Most lines shown in one request to a model: changed lines and their context. A larger change takes more requests.",
        kind: ValueKind::Count(1, 1_000_000),
        trust: Trust::Open,
        weaker: Weaker::Never,
        get: |p| PolicyValue::Count(p.review.max_lines),
        set: |p, v| p.review.max_lines = v.count(),
    },
    PolicyKey {
        name: "max_requests",
        about: "Most requests of one review, including tool calls, retries and second looks. The default at depth thorough is 400.",
        kind: ValueKind::Count(1, 10_000),
        trust: Trust::Open,
        weaker: Weaker::Lowers,
        get: |p| PolicyValue::Count(p.review.max_requests),
        set: |p, v| p.review.max_requests = v.count(),
    },
    PolicyKey {
        name: "max_rounds",
        about: "Most rounds of one review session.",
        kind: ValueKind::Count(1, 1_000),
        trust: Trust::Open,
        weaker: Weaker::Never,
        get: |p| PolicyValue::Count(p.review.max_rounds),
        set: |p, v| p.review.max_rounds = v.count(),
    },
    PolicyKey {
        name: "timeout",
        about: "Total time limit for all model requests of a review.",
        kind: ValueKind::Span(1, 86_400),
        trust: Trust::Open,
        weaker: Weaker::Lowers,
        get: |p| PolicyValue::Span(p.review.timeout),
        set: |p, v| p.review.timeout = v.span(),
    },
    PolicyKey {
        name: "max_cost_usd",
        about: "Cost limit of one review in US dollars.",
        kind: ValueKind::Number(0.0, 10_000.0),
        trust: Trust::Personal,
        weaker: Weaker::Lowers,
        get: |p| PolicyValue::Number(p.review.max_cost_usd),
        set: |p, v| p.review.max_cost_usd = v.number(),
    },
    PolicyKey {
        name: "jobs",
        about: "Most requests to one backend at the same time.",
        kind: ValueKind::Count(1, 64),
        trust: Trust::Open,
        weaker: Weaker::Never,
        get: |p| PolicyValue::Count(p.review.jobs),
        set: |p, v| p.review.jobs = v.count(),
    },
];

static RULES: &[PolicyKey<Policy>] = &[
    PolicyKey {
        name: "disable",
        about: "IDs of rules that do not run. `claude-reviewer rules list` lists the IDs.",
        kind: ValueKind::RuleIds,
        trust: Trust::Open,
        weaker: Weaker::Grows,
        get: |p| PolicyValue::List(p.rules.disable.clone()),
        set: |p, v| p.rules.disable = v.list().to_vec(),
    },
    PolicyKey {
        name: "severity",
        about: "Severities that replace those of rules, by rule ID: { \"todo-comment\" = \"minor\" }.",
        kind: ValueKind::SeverityTable,
        trust: Trust::Open,
        weaker: Weaker::Severities,
        get: |p| {
            let rows = p
                .rules
                .severity
                .iter()
                .map(|(id, s)| (id.clone(), PolicyValue::Text(s.name().to_owned())));
            PolicyValue::Table(rows.collect())
        },
        set: |p, v| {
            let rows = v
                .table()
                .iter()
                .filter_map(|(id, s)| Severity::parse(s.text()).map(|s| (id.clone(), s)));
            p.rules.severity = rows.collect();
        },
    },
    PolicyKey {
        name: "paths",
        about: "Folders of the repository that contain team rules.",
        kind: ValueKind::Files,
        trust: Trust::Open,
        weaker: Weaker::Shrinks,
        get: |p| PolicyValue::List(p.rules.paths.clone()),
        set: |p, v| p.rules.paths = v.list().to_vec(),
    },
    PolicyKey {
        name: "profile",
        about: "With audit, rules run that report opinions and possible problems too, and a finding about a value of unknown origin is minor instead of a suggestion.",
        kind: ValueKind::Choice(PROFILES),
        trust: Trust::Open,
        weaker: Weaker::Steps(STRICTEST_FIRST),
        get: |p| PolicyValue::Text(p.rules.profile.name().to_owned()),
        set: |p, v| p.rules.profile = RuleProfile::parse(v.text()),
    },
];

static HISTORY: &[PolicyKey<Policy>] = &[
    PolicyKey {
        name: "path",
        about: "Folder of stored reviews.",
        kind: ValueKind::Storage,
        trust: Trust::Operator,
        weaker: Weaker::Changes,
        get: |p| PolicyValue::Text(p.history.path.clone()),
        set: |p, v| v.text().clone_into(&mut p.history.path),
    },
    PolicyKey {
        name: "commit",
        about: "Whether stored reviews can be committed. If false, git ignores the folder.",
        kind: ValueKind::Flag,
        trust: Trust::Open,
        weaker: Weaker::Never,
        get: |p| PolicyValue::Flag(p.history.commit),
        set: |p, v| p.history.commit = v.flag(),
    },
];

static TESTS: &[PolicyKey<Policy>] = &[
    PolicyKey {
        name: "command",
        about: "Command that runs the project's tests.",
        kind: ValueKind::Line(4096),
        trust: Trust::Operator,
        weaker: Weaker::Changes,
        get: |p| PolicyValue::optional(p.tests.command.as_ref()),
        set: |p, v| p.tests.command = v.to_optional(),
    },
    PolicyKey {
        name: "run",
        about: "Whether a review runs the tests. This executes the code under review.",
        kind: ValueKind::Flag,
        trust: Trust::Operator,
        weaker: Weaker::Steps(&["true", "false"]),
        get: |p| PolicyValue::Flag(p.tests.run),
        set: |p, v| p.tests.run = v.flag(),
    },
    PolicyKey {
        name: "on_failure",
        about: "Effect of failed tests: block (exit code 1) or warn. Tests that do not start or time out make the review incomplete.",
        kind: ValueKind::Choice(ON_FAILURE),
        trust: Trust::Open,
        weaker: Weaker::Steps(ON_FAILURE),
        get: |p| {
            PolicyValue::Text(
                if p.tests.on_failure == OnTestFailure::Block {
                    "block"
                } else {
                    "warn"
                }
                .to_owned(),
            )
        },
        set: |p, v| {
            p.tests.on_failure = if v.text() == "warn" {
                OnTestFailure::Warn
            } else {
                OnTestFailure::Block
            }
        },
    },
    PolicyKey {
        name: "reproduce",
        about: "Whether the backend writes a failing test for each critical or major finding, which runs in the sandbox. Never in gate mode or CI.",
        kind: ValueKind::Flag,
        trust: Trust::Operator,
        weaker: Weaker::Never,
        get: |p| {
            if p.tests.reproduce {
                PolicyValue::Flag(true)
            } else {
                PolicyValue::Unset
            }
        },
        set: |p, v| p.tests.reproduce = v.flag(),
    },
    PolicyKey {
        name: "sandbox",
        about: "Container command in front of a test that a model wrote: a program and its arguments, of which {tree} is the folder with the code. Unset: bubblewrap (bwrap).",
        kind: ValueKind::Sandbox,
        trust: Trust::Operator,
        weaker: Weaker::Changes,
        get: |p| PolicyValue::list_or_unset(&p.tests.sandbox),
        set: |p, v| p.tests.sandbox = v.list().to_vec(),
    },
    PolicyKey {
        name: "sandbox_paths",
        about: "Further folders that bubblewrap shows, read-only: absolute, below ~/, or of the worktree, such as node_modules.",
        kind: ValueKind::Folders,
        trust: Trust::Operator,
        weaker: Weaker::Grows,
        get: |p| PolicyValue::list_or_unset(&p.tests.sandbox_paths),
        set: |p, v| p.tests.sandbox_paths = v.list().to_vec(),
    },
];

static FIX: &[PolicyKey<Policy>] = &[
    PolicyKey {
        name: "max_attempts",
        about: "Most attempts of one fix. The next one learns why the one before failed. The default is 3.",
        kind: ValueKind::Count(1, 10),
        trust: Trust::Operator,
        weaker: Weaker::Never,
        get: |p| {
            if p.fix.max_attempts == MAX_ATTEMPTS {
                PolicyValue::Unset
            } else {
                PolicyValue::Count(p.fix.max_attempts)
            }
        },
        set: |p, v| p.fix.max_attempts = v.count(),
    },
    PolicyKey {
        name: "backend",
        about: "Backend that plans and writes fixes. Unset: the backends of the review, in their order, until one answers.",
        kind: ValueKind::Line(64),
        trust: Trust::Operator,
        weaker: Weaker::Never,
        get: |p| PolicyValue::optional(p.fix.backend.as_ref()),
        set: |p, v| p.fix.backend = v.to_optional(),
    },
];

static HOOKS: &[PolicyKey<Policy>] = &[
    PolicyKey {
        name: "pre_commit",
        about: "Mode of the pre-commit hook: rules only, backends too (full), or off.",
        kind: ValueKind::Choice(HOOK_MODES),
        trust: Trust::Open,
        weaker: Weaker::Steps(HOOK_MODES),
        get: |p| PolicyValue::Text(p.hooks.pre_commit.name().to_owned()),
        set: |p, v| p.hooks.pre_commit = HookMode::parse(v.text()),
    },
    PolicyKey {
        name: "pre_push",
        about: "Mode of the pre-push hook: rules only, backends too (full), or off.",
        kind: ValueKind::Choice(HOOK_MODES),
        trust: Trust::Open,
        weaker: Weaker::Steps(HOOK_MODES),
        get: |p| PolicyValue::Text(p.hooks.pre_push.name().to_owned()),
        set: |p, v| p.hooks.pre_push = HookMode::parse(v.text()),
    },
    PolicyKey {
        name: "post_commit",
        about: "What follows a commit: nothing (off), or a detached review by the backends (background).",
        kind: ValueKind::Choice(POST_COMMITS),
        trust: Trust::Operator,
        weaker: Weaker::Never,
        get: |p| PolicyValue::Text(p.hooks.post_commit.name().to_owned()),
        set: |p, v| p.hooks.post_commit = PostCommit::parse(v.text()),
    },
    PolicyKey {
        name: "max_cost_per_day",
        about: "US dollars that all background reviews of a user may cost in a day (UTC).",
        kind: ValueKind::Number(0.0, 10_000.0),
        trust: Trust::Operator,
        weaker: Weaker::Never,
        get: |p| PolicyValue::Number(p.hooks.max_cost_per_day),
        set: |p, v| p.hooks.max_cost_per_day = v.number(),
    },
];

static MCP: &[PolicyKey<Policy>] = &[
    PolicyKey {
        name: "tools",
        about: "Tools that serve-mcp offers. Unset: all.",
        kind: ValueKind::Tools,
        trust: Trust::Narrows,
        weaker: Weaker::Never,
        get: |p| {
            p.mcp
                .tools
                .as_ref()
                .map_or(PolicyValue::Unset, |t| PolicyValue::List(t.clone()))
        },
        set: |p, v| p.mcp.tools = Some(v.list().to_vec()),
    },
    PolicyKey {
        name: "agent_review",
        about: "What submit_findings is worth if backends have to review: adds its findings, or counts as the review of the backends.",
        kind: ValueKind::Choice(AGENT_REVIEWS),
        trust: Trust::Operator,
        weaker: Weaker::Steps(AGENT_REVIEWS),
        get: |p| PolicyValue::Text(p.mcp.agent_review.name().to_owned()),
        set: |p, v| {
            p.mcp.agent_review = if v.text() == "counts" {
                AgentReview::Counts
            } else {
                AgentReview::Adds
            };
        },
    },
];

static RECEIPT: &[PolicyKey<Policy>] = &[
    PolicyKey {
        name: "signers",
        about: "Accepted signers of receipts, as lines of an OpenSSH allowed-signers file: \"alice@example.com ssh-ed25519 AAAA…\". Unset: no receipt is accepted.",
        kind: ValueKind::Signers,
        trust: Trust::Open,
        weaker: Weaker::Grows,
        // Without signers the key is unset, so that the hash of such a policy does not change.
        get: |p| PolicyValue::list_or_unset(&p.receipt.signers),
        set: |p, v| p.receipt.signers = v.list().to_vec(),
    },
    PolicyKey {
        name: "key",
        about: "SSH key that `review --receipt` signs with: the path of a private key, or of a public key whose private key is in the SSH agent.",
        kind: ValueKind::Line(4096),
        trust: Trust::Operator,
        weaker: Weaker::Never,
        get: |p| PolicyValue::optional(p.receipt.key.as_ref()),
        set: |p, v| p.receipt.key = v.to_optional(),
    },
];

static FORGE: &[PolicyKey<Policy>] = &[
    PolicyKey {
        name: "github_api",
        about: "API URL of a GitHub Enterprise Server.",
        kind: ValueKind::Url,
        trust: Trust::Operator,
        weaker: Weaker::Changes,
        get: |p| PolicyValue::optional(p.forge.github_api.as_ref()),
        set: |p, v| p.forge.github_api = v.to_optional(),
    },
    PolicyKey {
        name: "gitlab_api",
        about: "API URL of a self-managed GitLab.",
        kind: ValueKind::Url,
        trust: Trust::Operator,
        weaker: Weaker::Changes,
        get: |p| PolicyValue::optional(p.forge.gitlab_api.as_ref()),
        set: |p, v| p.forge.gitlab_api = v.to_optional(),
    },
    PolicyKey {
        name: "bitbucket_api",
        about: "API URL of a Bitbucket Data Center.",
        kind: ValueKind::Url,
        trust: Trust::Operator,
        weaker: Weaker::Changes,
        get: |p| PolicyValue::optional(p.forge.bitbucket_api.as_ref()),
        set: |p, v| p.forge.bitbucket_api = v.to_optional(),
    },
    PolicyKey {
        name: "token_command",
        about: "Command that prints the token for the host in its variable FORGE_HOST, if no environment variable contains a token. A command that does not use FORGE_HOST runs only for the single host that [forge] names.",
        kind: ValueKind::Line(4096),
        trust: Trust::Operator,
        weaker: Weaker::Changes,
        get: |p| PolicyValue::optional(p.forge.token_command.as_ref()),
        set: |p, v| p.forge.token_command = v.to_optional(),
    },
    PolicyKey {
        name: "comment_commands",
        about: "Whether replies of maintainers to comments on findings (/accept, /reject REASON, /defer DATE) waive a finding for the head under review. Critical findings are never waived.",
        kind: ValueKind::Flag,
        trust: Trust::Operator,
        weaker: Weaker::Steps(&["false", "true"]),
        get: |p| PolicyValue::Flag(p.forge.comment_commands),
        set: |p, v| p.forge.comment_commands = v.flag(),
    },
];

/// Returns true if a key of `[backend.NAME]` is valid for a kind of backend.
pub(super) fn is_valid_for(key: &str, kind: BackendKind) -> bool {
    match key {
        "path" => kind == BackendKind::Claude,
        "base_url" | "api_key_env" | "api_key_command" | "key_header" => {
            kind != BackendKind::Claude
        }
        "api" | "api_version" => kind == BackendKind::OpenAi,
        _ => true,
    }
}

/// `[[path]]`.
pub(super) static PATH: &[PolicyKey<PathRule>] = &[
    PolicyKey {
        name: "glob",
        about: "Paths that the entry applies to: a pattern or a list of patterns. Required.",
        kind: ValueKind::PatternOrPatterns,
        trust: Trust::Open,
        weaker: Weaker::Never,
        get: |r| PolicyValue::List(r.glob.clone()),
        set: |r, v| r.glob = v.list().to_vec(),
    },
    PolicyKey {
        name: "block_on",
        about: "Severities that block in these paths.",
        kind: ValueKind::Severities,
        trust: Trust::Open,
        weaker: Weaker::Never,
        get: |r| {
            r.block_on
                .as_ref()
                .map_or(PolicyValue::Unset, |l| PolicyValue::severities(l))
        },
        set: |r, v| r.block_on = Some(v.to_severities()),
    },
    PolicyKey {
        name: "warn_on",
        about: "Severities that warn in these paths.",
        kind: ValueKind::Severities,
        trust: Trust::Open,
        weaker: Weaker::Never,
        get: |r| {
            r.warn_on
                .as_ref()
                .map_or(PolicyValue::Unset, |l| PolicyValue::severities(l))
        },
        set: |r, v| r.warn_on = Some(v.to_severities()),
    },
    PolicyKey {
        name: "min_confidence",
        about: "Confidence that a model's finding needs to block in these paths.",
        kind: ValueKind::Choice(CONFIDENCES),
        trust: Trust::Open,
        weaker: Weaker::Never,
        get: |r| {
            r.min_confidence.map_or(PolicyValue::Unset, |c| {
                PolicyValue::Text(c.name().to_owned())
            })
        },
        set: |r, v| r.min_confidence = Some(v.to_confidence()),
    },
];

/// `[[guideline]]`.
pub(super) static GUIDELINE: &[PolicyKey<Guideline>] = &[
    PolicyKey {
        name: "glob",
        about: "Paths that the guideline applies to: a pattern or a list of patterns. Required.",
        kind: ValueKind::PatternOrPatterns,
        trust: Trust::Open,
        weaker: Weaker::Never,
        get: |g| PolicyValue::List(g.glob.clone()),
        set: |g, v| g.glob = v.list().to_vec(),
    },
    PolicyKey {
        name: "text",
        about: "Instruction for models that review a matching file. Required.",
        kind: ValueKind::Text(8192),
        trust: Trust::Open,
        weaker: Weaker::Never,
        get: |g| PolicyValue::Text(g.text.clone()),
        set: |g, v| v.text().clone_into(&mut g.text),
    },
];

/// Flags that set a key, by the full name of the key. `--backend` is applied by the review itself.
pub(super) static FLAGS: &[(&str, &str)] = &[
    ("block_on", "--block-on"),
    ("warn_on", "--warn-on"),
    ("on_incomplete", "--on-incomplete"),
    ("review.backends", "--backend"),
    ("review.focus", "--focus"),
    ("review.depth", "--depth"),
    ("review.jobs", "--jobs"),
    ("review.timeout", "--timeout"),
    ("review.max_cost_usd", "--max-cost"),
    ("backend.NAME.model", "--model"),
];

/// Environment variables that set a key.
pub(super) struct Variables {
    /// The full name of the key; `backend.NAME.` stands for all backends of `kinds`.
    pub(super) key: &'static str,
    /// The first one that is set counts.
    pub(super) names: &'static [&'static str],
    pub(super) kinds: &'static [BackendKind],
}

pub(super) static VARIABLES: &[Variables] = &[
    Variables {
        key: "backend.NAME.path",
        names: &["CLAUDE_CLI_PATH", "PATH_TO_CLAUDE"],
        kinds: &[BackendKind::Claude],
    },
    Variables {
        key: "review.max_rounds",
        names: &["MAX_REVIEW_ROUNDS"],
        kinds: &[],
    },
    Variables {
        key: "tests.run",
        names: &["AUTO_RUN_TESTS"],
        kinds: &[],
    },
    Variables {
        key: "backend.NAME.model",
        names: &["REVIEW_MODEL"],
        kinds: &[BackendKind::Claude, BackendKind::Anthropic],
    },
];

/// Returns the flag that sets a key, by the full name of the key.
pub(super) fn flag_of(key: &str) -> Option<&'static str> {
    FLAGS.iter().find(|(k, _)| *k == key).map(|(_, flag)| *flag)
}

/// Returns the environment variables that set a key, by the full name of the key.
pub(super) fn variables_of(key: &str) -> Option<&'static Variables> {
    VARIABLES.iter().find(|v| v.key == key)
}

/// Returns the full name of a key.
pub(super) fn full(table: &str, key: &str) -> String {
    if table.is_empty() {
        key.to_owned()
    } else {
        format!("{table}.{key}")
    }
}

/// Returns a key of the fixed tables by its full name.
pub(super) fn find(name: &str) -> Option<&'static PolicyKey<Policy>> {
    let (table, key) = name.split_once('.').unwrap_or(("", name));
    TABLES
        .iter()
        .find(|t| t.name == table)?
        .keys
        .iter()
        .find(|k| k.name == key)
}

/// Returns a key of `[backend.NAME]`.
pub(super) fn backend_key(name: &str) -> Option<&'static PolicyKey<Backend>> {
    BACKEND.iter().find(|k| k.name == name)
}

fn completion(v: OnIncomplete) -> PolicyValue {
    PolicyValue::Text(
        if v == OnIncomplete::Fail {
            "fail"
        } else {
            "warn"
        }
        .to_owned(),
    )
}
fn to_completion(v: &PolicyValue) -> OnIncomplete {
    if v.text() == "warn" {
        OnIncomplete::Warn
    } else {
        OnIncomplete::Fail
    }
}

impl Mode {
    /// Returns the name in policy files.
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::First => "first",
        }
    }
}

impl RuleProfile {
    /// Returns the name in policy files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Audit => "audit",
        }
    }

    fn parse(name: &str) -> Self {
        if name == "audit" {
            Self::Audit
        } else {
            Self::Default
        }
    }
}

impl HookMode {
    /// Returns the name in policy files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rules => "rules",
            Self::Full => "full",
            Self::Off => "off",
        }
    }
    fn parse(name: &str) -> Self {
        match name {
            "rules" => Self::Rules,
            "off" => Self::Off,
            _ => Self::Full,
        }
    }
}

impl PostCommit {
    /// Returns the name in policy files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Background => "background",
        }
    }

    fn parse(name: &str) -> Self {
        match name {
            "background" => Self::Background,
            _ => Self::Off,
        }
    }
}
