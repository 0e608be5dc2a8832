//! The table of keys: what each takes, says, is worth to whom, and when it is weaker.
//!
//! Reading, showing, the schema, trust and the comparison of two policies all go by this table; a new key is
//! one entry here and one field in [`super`].

use super::kind::Kind;
use super::value::Value;
use super::{Backend, BackendKind, Guideline, HookMode, Mode, PathRule, Policy, Price};
use crate::finding::Severity;
use crate::request::{Depth, OnIncomplete, OnTestFailure};

/// A table of the file.
pub(super) struct Table {
    /// Empty: the top level.
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) keys: &'static [Key<Policy>],
}

/// A key of a table that describes a `T`.
pub(super) struct Key<T: 'static> {
    pub(super) name: &'static str,
    /// For people in an editor: one or two sentences.
    pub(super) about: &'static str,
    pub(super) kind: Kind,
    pub(super) trust: Trust,
    pub(super) weaker: Weaker,
    pub(super) get: fn(&T) -> Value,
    pub(super) set: fn(&mut T, &Value),
}

/// Whose word a key takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// The team's file stands above the person's.
    Open,
    /// The person's file stands above the team's, whether trusted or not: it is their money.
    Personal,
    /// The person's file stands above the team's, and the team's must be trusted.
    Operator,
    /// Like `Operator`, but an address of this machine is taken from anybody, without a key.
    OperatorUnlessLoopback,
}

impl Trust {
    /// Tells whether the person's file stands above the team's.
    pub(super) fn prefers_user(self) -> bool {
        self != Self::Open
    }
    pub(super) fn is_operator(self) -> bool {
        matches!(self, Self::Operator | Self::OperatorUnlessLoopback)
    }
}

/// What makes a new value weaker than an old one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Weaker {
    /// Never, or it cannot be decided.
    Never,
    /// An entry is gone.
    Shrinks,
    /// A severity blocks no more: the least that is named counts, with all that is worse.
    Blocks,
    /// A severity warns no more, and does not block instead.
    Warns,
    /// An entry is new.
    Grows,
    /// A pattern is new that leaves out what was reviewed.
    Ignores,
    /// The number or duration is smaller.
    Lowers,
    /// A later name than before.
    Steps(&'static [&'static str]),
    /// Not everything is looked at any more, or an area is gone.
    Narrows,
    /// A rule's severity is lower.
    Severities,
    /// It is another value: once merged, it is the operator's word.
    Changes,
}

/// The only version of the format.
pub(super) const VERSION: u32 = 1;

/// Every table but the repeated ones.
pub(super) static TABLES: &[Table] = &[
    Table { name: "", about: "The reviewed change, the severities that block, and the limits.", keys: TOP },
    Table { name: "review", about: "How a review is made.", keys: REVIEW },
    Table { name: "rules", about: "The built-in rules and a team's own.", keys: RULES },
    Table { name: "history", about: "Where reviews are stored.", keys: HISTORY },
    Table { name: "tests", about: "The project's tests, run during a review.", keys: TESTS },
    Table { name: "hooks", about: "Modes of the installed git hooks.", keys: HOOKS },
    Table { name: "mcp", about: "Options of serve-mcp.", keys: MCP },
    Table { name: "receipt", about: "Reviews that are signed, so that models need not be paid twice.", keys: RECEIPT },
    Table {
        name: "forge",
        about: "Addresses of self-hosted forges, and where their tokens come from. Operator only.",
        keys: FORGE,
    },
];

const ON_FAILURE: &[&str] = &["block", "warn"];
const COMPLETION: &[&str] = &["fail", "warn"];
const CONFIDENCES: &[&str] = &["low", "medium", "high"];
const HOOK_MODES: &[&str] = &["full", "rules", "off"];
const MODES: &[&str] = &["all", "first"];
const DEPTHS: &[&str] = &["thorough", "quick"];
const KINDS: &[&str] = &["anthropic", "claude", "google", "openai"];

static TOP: &[Key<Policy>] = &[
    Key {
        name: "ignore",
        about: "Path patterns to exclude from the review, in the syntax of .gitignore. Every report counts the excluded files.",
        kind: Kind::Patterns,
        trust: Trust::Open,
        weaker: Weaker::Ignores,
        get: |p| Value::List(p.ignore.clone()),
        set: |p, v| p.ignore = v.list().to_vec(),
    },
    Key {
        name: "block_on",
        about: "Severities of findings that block, and with each what is worse: critical, major, minor, suggestion.",
        kind: Kind::Severities,
        trust: Trust::Open,
        weaker: Weaker::Blocks,
        get: |p| Value::severities(&p.block_on),
        set: |p, v| p.block_on = v.to_severities(),
    },
    Key {
        name: "warn_on",
        about: "Severities of findings that make the verdict a warning, and with each what is worse; a warning does not block.",
        kind: Kind::Severities,
        trust: Trust::Open,
        weaker: Weaker::Warns,
        get: |p| Value::severities(&p.warn_on),
        set: |p, v| p.warn_on = v.to_severities(),
    },
    Key {
        name: "min_confidence",
        about: "A model's finding below this confidence may warn but not block. Rules are not held to it.",
        kind: Kind::Choice(CONFIDENCES),
        trust: Trust::Open,
        weaker: Weaker::Steps(CONFIDENCES),
        get: |p| Value::Text(p.min_confidence.name().to_owned()),
        set: |p, v| p.min_confidence = v.to_confidence(),
    },
    Key {
        name: "on_incomplete",
        about: "Exit code of an incomplete review: fail (3) or warn (0, with a note in the summary).",
        kind: Kind::Choice(COMPLETION),
        trust: Trust::Open,
        weaker: Weaker::Steps(COMPLETION),
        get: |p| completion(p.on_incomplete),
        set: |p, v| p.on_incomplete = to_completion(v),
    },
    Key {
        name: "on_truncated",
        about: "Effect of a limit on requests, cost or time that cuts a model's review short: fail makes the review incomplete, warn makes it a warning that states how many files were reviewed.",
        kind: Kind::Choice(COMPLETION),
        trust: Trust::Open,
        weaker: Weaker::Steps(COMPLETION),
        get: |p| completion(p.on_truncated),
        set: |p, v| p.on_truncated = to_completion(v),
    },
];

static REVIEW: &[Key<Policy>] = &[
    Key {
        name: "backends",
        about: "AI backends that review in addition to the rules: claude, anthropic, openai, google, or the name of a [backend.NAME] table. If empty, only the rules run and nothing is uploaded. A named backend that does not answer makes the review incomplete.",
        kind: Kind::BackendNames,
        trust: Trust::Open,
        weaker: Weaker::Shrinks,
        get: |p| Value::List(p.review.backends.clone()),
        set: |p, v| p.review.backends = v.list().to_vec(),
    },
    Key {
        name: "mode",
        about: "Whether all backends review, or only the first that answers.",
        kind: Kind::Choice(MODES),
        trust: Trust::Open,
        weaker: Weaker::Steps(MODES),
        get: |p| Value::Text(p.review.mode.name().to_owned()),
        set: |p, v| p.review.mode = if v.text() == "first" { Mode::First } else { Mode::All },
    },
    Key {
        name: "depth",
        about: "How hard a model looks: quick sends the change, thorough lets it read around it.",
        kind: Kind::Choice(DEPTHS),
        trust: Trust::Open,
        weaker: Weaker::Steps(DEPTHS),
        get: |p| Value::Text(if p.review.depth == Depth::Quick { "quick" } else { "thorough" }.to_owned()),
        set: |p, v| p.review.depth = if v.text() == "quick" { Depth::Quick } else { Depth::Thorough },
    },
    Key {
        name: "focus",
        about: "Categories that a model checks first: bug, security, performance, style, architecture, design, missing-requirement, best-practice, test. Empty: all.",
        kind: Kind::Categories,
        trust: Trust::Open,
        weaker: Weaker::Narrows,
        get: |p| Value::names(p.review.focus.iter().map(|c| c.name())),
        set: |p, v| p.review.focus = v.to_categories(),
    },
    Key {
        name: "conventions",
        about: "Files of the repository with the project's conventions, given to a model where they exist.",
        kind: Kind::Files,
        trust: Trust::Open,
        weaker: Weaker::Shrinks,
        get: |p| Value::List(p.review.conventions.clone()),
        set: |p, v| p.review.conventions = v.list().to_vec(),
    },
    Key {
        name: "max_files",
        about: "The most files in one request to a model. A larger change takes more requests.",
        kind: Kind::Count(1, 10_000),
        trust: Trust::Open,
        weaker: Weaker::Never,
        get: |p| Value::Count(p.review.max_files),
        set: |p, v| p.review.max_files = v.count(),
    },
    Key {
        name: "max_lines",
        about: "The most changed lines in one request to a model. A larger change takes more requests.",
        kind: Kind::Count(1, 1_000_000),
        trust: Trust::Open,
        weaker: Weaker::Never,
        get: |p| Value::Count(p.review.max_lines),
        set: |p, v| p.review.max_lines = v.count(),
    },
    Key {
        name: "max_requests",
        about: "Maximum number of requests in one review, including tool calls, retries and verification. The report names the parts that were not reached; on_truncated decides what that means. At depth thorough the default is 400.",
        kind: Kind::Count(1, 10_000),
        trust: Trust::Open,
        weaker: Weaker::Lowers,
        get: |p| Value::Count(p.review.max_requests),
        set: |p, v| p.review.max_requests = v.count(),
    },
    Key {
        name: "max_rounds",
        about: "The most rounds of one review session. MAX_REVIEW_ROUNDS in the environment stands above it.",
        kind: Kind::Count(1, 1_000),
        trust: Trust::Open,
        weaker: Weaker::Never,
        get: |p| Value::Count(p.review.max_rounds),
        set: |p, v| p.review.max_rounds = v.count(),
    },
    Key {
        name: "timeout",
        about: "How long a model's review may take as a whole, such as \"90s\", \"2m\" or \"1h\".",
        kind: Kind::Span(1, 86_400),
        trust: Trust::Open,
        weaker: Weaker::Lowers,
        get: |p| Value::Span(p.review.timeout),
        set: |p, v| p.review.timeout = v.span(),
    },
    Key {
        name: "max_cost_usd",
        about: "The most that one review may cost, in US dollars. A person's own file stands above the project's.",
        kind: Kind::Number(0.0, 10_000.0),
        trust: Trust::Personal,
        weaker: Weaker::Lowers,
        get: |p| Value::Number(p.review.max_cost_usd),
        set: |p, v| p.review.max_cost_usd = v.number(),
    },
    Key {
        name: "jobs",
        about: "Requests to models at the same time.",
        kind: Kind::Count(1, 64),
        trust: Trust::Open,
        weaker: Weaker::Never,
        get: |p| Value::Count(p.review.jobs),
        set: |p, v| p.review.jobs = v.count(),
    },
];

static RULES: &[Key<Policy>] = &[
    Key {
        name: "disable",
        about: "Ids of rules that do not run. `claude-reviewer rules list` shows them.",
        kind: Kind::RuleIds,
        trust: Trust::Open,
        weaker: Weaker::Grows,
        get: |p| Value::List(p.rules.disable.clone()),
        set: |p, v| p.rules.disable = v.list().to_vec(),
    },
    Key {
        name: "severity",
        about: "Another severity for a rule, by its id.",
        kind: Kind::SeverityTable,
        trust: Trust::Open,
        weaker: Weaker::Severities,
        get: |p| {
            let row = |(id, s): &(String, Severity)| (id.clone(), Value::Text(s.name().to_owned()));
            Value::Table(p.rules.severity.iter().map(row).collect())
        },
        set: |p, v| {
            let row = |(id, s): &(String, Value)| Severity::parse(s.text()).map(|s| (id.clone(), s));
            p.rules.severity = v.table().iter().filter_map(row).collect();
        },
    },
    Key {
        name: "paths",
        about: "Files or folders of the repository that hold a team's own rules.",
        kind: Kind::Files,
        trust: Trust::Open,
        weaker: Weaker::Shrinks,
        get: |p| Value::List(p.rules.paths.clone()),
        set: |p, v| p.rules.paths = v.list().to_vec(),
    },
];

static HISTORY: &[Key<Policy>] = &[
    Key {
        name: "path",
        about: "The folder that reviews are stored in. Operator only.",
        kind: Kind::Storage,
        trust: Trust::Operator,
        weaker: Weaker::Changes,
        get: |p| Value::Text(p.history.path.clone()),
        set: |p, v| v.text().clone_into(&mut p.history.path),
    },
    Key {
        name: "commit",
        about: "Whether stored reviews are meant to be committed. If not, the folder ignores itself.",
        kind: Kind::Flag,
        trust: Trust::Open,
        weaker: Weaker::Never,
        get: |p| Value::Flag(p.history.commit),
        set: |p, v| p.history.commit = v.flag(),
    },
];

static TESTS: &[Key<Policy>] = &[
    Key {
        name: "command",
        about: "The command that runs the tests. Operator only.",
        kind: Kind::Line(4096),
        trust: Trust::Operator,
        weaker: Weaker::Changes,
        get: |p| Value::optional(p.tests.command.as_ref()),
        set: |p, v| p.tests.command = v.to_optional(),
    },
    Key {
        name: "run",
        about: "Whether a review runs the tests: that executes what is under review. Operator only. AUTO_RUN_TESTS in the environment stands above it.",
        kind: Kind::Flag,
        trust: Trust::Operator,
        weaker: Weaker::Steps(&["true", "false"]),
        get: |p| Value::Flag(p.tests.run),
        set: |p, v| p.tests.run = v.flag(),
    },
    Key {
        name: "on_failure",
        about: "Effect of failed tests on the verdict: block (exit 1) or warn. Tests that cannot start or time out make the review incomplete.",
        kind: Kind::Choice(ON_FAILURE),
        trust: Trust::Open,
        weaker: Weaker::Steps(ON_FAILURE),
        get: |p| Value::Text(if p.tests.on_failure == OnTestFailure::Block { "block" } else { "warn" }.to_owned()),
        set: |p, v| p.tests.on_failure = if v.text() == "warn" { OnTestFailure::Warn } else { OnTestFailure::Block },
    },
];

static HOOKS: &[Key<Policy>] = &[
    Key {
        name: "pre_commit",
        about: "Mode of the pre-commit hook: rules (milliseconds), full (rules and backends), or off.",
        kind: Kind::Choice(HOOK_MODES),
        trust: Trust::Open,
        weaker: Weaker::Steps(HOOK_MODES),
        get: |p| Value::Text(p.hooks.pre_commit.name().to_owned()),
        set: |p, v| p.hooks.pre_commit = HookMode::parse(v.text()),
    },
    Key {
        name: "pre_push",
        about: "Mode of the pre-push hook: full (rules and backends), rules, or off.",
        kind: Kind::Choice(HOOK_MODES),
        trust: Trust::Open,
        weaker: Weaker::Steps(HOOK_MODES),
        get: |p| Value::Text(p.hooks.pre_push.name().to_owned()),
        set: |p, v| p.hooks.pre_push = HookMode::parse(v.text()),
    },
];

static MCP: &[Key<Policy>] = &[Key {
    name: "tools",
    about: "The tools that an agent is offered. Absent: all.",
    kind: Kind::Tools,
    trust: Trust::Open,
    weaker: Weaker::Never,
    get: |p| p.mcp.tools.as_ref().map_or(Value::Unset, |t| Value::List(t.clone())),
    set: |p, v| p.mcp.tools = Some(v.list().to_vec()),
}];

static RECEIPT: &[Key<Policy>] = &[
    Key {
        name: "signers",
        about: "Who may sign receipts: lines as in OpenSSH's file of allowed signers, such as \"alice@example.com ssh-ed25519 AAAA…\". Absent: no receipt is taken.",
        kind: Kind::Signers,
        trust: Trust::Open,
        weaker: Weaker::Grows,
        // Unset as long as there are none, so that the hash of a policy without them is what it was.
        get: |p| match p.receipt.signers.as_slice() {
            [] => Value::Unset,
            all => Value::List(all.to_vec()),
        },
        set: |p, v| p.receipt.signers = v.list().to_vec(),
    },
    Key {
        name: "key",
        about: "The SSH key that `review --receipt` signs with: the path of a private key, or of a public one whose other half the agent has. Operator only.",
        kind: Kind::Line(4096),
        trust: Trust::Operator,
        weaker: Weaker::Never,
        get: |p| Value::optional(p.receipt.key.as_ref()),
        set: |p, v| p.receipt.key = v.to_optional(),
    },
];

static FORGE: &[Key<Policy>] = &[
    Key {
        name: "github_api",
        about: "The API address of a GitHub Enterprise Server. Operator only.",
        kind: Kind::Url,
        trust: Trust::Operator,
        weaker: Weaker::Changes,
        get: |p| Value::optional(p.forge.github_api.as_ref()),
        set: |p, v| p.forge.github_api = v.to_optional(),
    },
    Key {
        name: "gitlab_api",
        about: "The API address of a self-managed GitLab. Operator only.",
        kind: Kind::Url,
        trust: Trust::Operator,
        weaker: Weaker::Changes,
        get: |p| Value::optional(p.forge.gitlab_api.as_ref()),
        set: |p, v| p.forge.gitlab_api = v.to_optional(),
    },
    Key {
        name: "bitbucket_api",
        about: "The API address of a Bitbucket Data Center. Operator only.",
        kind: Kind::Url,
        trust: Trust::Operator,
        weaker: Weaker::Changes,
        get: |p| Value::optional(p.forge.bitbucket_api.as_ref()),
        set: |p, v| p.forge.bitbucket_api = v.to_optional(),
    },
    Key {
        name: "token_command",
        about: "A command that prints the token of the host in the variable FORGE_HOST. It runs if no environment variable contains a token. If the command ignores FORGE_HOST, it runs only for the single address that [forge] names. Operator only.",
        kind: Kind::Line(4096),
        trust: Trust::Operator,
        weaker: Weaker::Changes,
        get: |p| Value::optional(p.forge.token_command.as_ref()),
        set: |p, v| p.forge.token_command = v.to_optional(),
    },
];

/// `[backend.NAME]`.
pub(super) static BACKEND: &[Key<Backend>] = &[
    Key {
        name: "kind",
        about: "How the backend is spoken to: claude (the Claude Code command line), anthropic, openai (Chat Completions of any compatible server), google. Needed unless the name is one of these.",
        kind: Kind::Choice(KINDS),
        trust: Trust::Open,
        weaker: Weaker::Changes,
        get: |b| b.kind.map_or(Value::Unset, |k| Value::Text(k.name().to_owned())),
        set: |b, v| b.kind = BackendKind::parse(v.text()),
    },
    Key {
        name: "model",
        about: "The model to ask. --model and, for claude and anthropic, REVIEW_MODEL in the environment stand above it.",
        kind: Kind::Line(256),
        trust: Trust::Open,
        weaker: Weaker::Never,
        get: |b| Value::optional(b.model.as_ref()),
        set: |b, v| b.model = v.to_optional(),
    },
    Key {
        name: "path",
        about: "The program of a claude backend: a name looked up in PATH, or an absolute path. Operator only. CLAUDE_CLI_PATH in the environment stands above it.",
        kind: Kind::Program,
        trust: Trust::Operator,
        weaker: Weaker::Changes,
        get: |b| Value::optional(b.path.as_ref()),
        set: |b, v| b.path = v.to_optional(),
    },
    Key {
        name: "base_url",
        about: "The server's address up to the version, such as https://api.example.com/v1. Operator only, unless it is an address of this machine, which is then asked without a key.",
        kind: Kind::Url,
        trust: Trust::OperatorUnlessLoopback,
        weaker: Weaker::Changes,
        get: |b| Value::optional(b.base_url.as_ref()),
        set: |b, v| b.base_url = v.to_optional(),
    },
    Key {
        name: "api_key_env",
        about: "The environment variable that holds the key; absent: the provider's usual one. Operator only.",
        kind: Kind::Variable,
        trust: Trust::Operator,
        weaker: Weaker::Changes,
        get: |b| Value::optional(b.api_key_env.as_ref()),
        set: |b, v| b.api_key_env = v.to_optional(),
    },
    Key {
        name: "api_key_command",
        about: "A command that prints the key. Operator only.",
        kind: Kind::Line(4096),
        trust: Trust::Operator,
        weaker: Weaker::Changes,
        get: |b| Value::optional(b.api_key_command.as_ref()),
        set: |b, v| b.api_key_command = v.to_optional(),
    },
    Key {
        name: "max_retries",
        about: "How often a request is tried again.",
        kind: Kind::Count(0, 20),
        trust: Trust::Open,
        weaker: Weaker::Never,
        get: |b| Value::Count(b.max_retries),
        set: |b, v| b.max_retries = v.count(),
    },
    Key {
        name: "context_tokens",
        about: "Context window of the model in tokens, prompt and answer together. Default: the smallest window of the backend's kind; 8000 for a local server.",
        kind: Kind::Count(2_000, 4_000_000),
        trust: Trust::Open,
        weaker: Weaker::Never,
        get: |b| b.context_tokens.map_or(Value::Unset, Value::Count),
        set: |b, v| b.context_tokens = Some(v.count()),
    },
    Key {
        name: "price",
        about: "US dollars per million tokens, where the provider reports no cost.",
        kind: Kind::Price,
        trust: Trust::Open,
        weaker: Weaker::Never,
        get: |b| {
            b.price.map_or(Value::Unset, |p| {
                let row = |name: &str, n| (name.to_owned(), Value::Number(n));
                Value::Table(vec![row("input", p.input), row("cached", p.cached), row("output", p.output)])
            })
        },
        set: |b, v| {
            let of = |name| v.table().iter().find(|(n, _)| n == name).map_or(0.0, |(_, v)| v.number());
            b.price = Some(Price { input: of("input"), cached: of("cached"), output: of("output") });
        },
    },
];

/// `[[path]]`.
pub(super) static PATH: &[Key<PathRule>] = &[
    Key {
        name: "glob",
        about: "The paths it is about: a pattern or a list of them.",
        kind: Kind::PatternOrPatterns,
        trust: Trust::Open,
        weaker: Weaker::Never,
        get: |r| Value::List(r.glob.clone()),
        set: |r, v| r.glob = v.list().to_vec(),
    },
    Key {
        name: "block_on",
        about: "Severities that block in these paths.",
        kind: Kind::Severities,
        trust: Trust::Open,
        weaker: Weaker::Never,
        get: |r| r.block_on.as_ref().map_or(Value::Unset, |l| Value::severities(l)),
        set: |r, v| r.block_on = Some(v.to_severities()),
    },
    Key {
        name: "warn_on",
        about: "Severities that warn in these paths.",
        kind: Kind::Severities,
        trust: Trust::Open,
        weaker: Weaker::Never,
        get: |r| r.warn_on.as_ref().map_or(Value::Unset, |l| Value::severities(l)),
        set: |r, v| r.warn_on = Some(v.to_severities()),
    },
    Key {
        name: "min_confidence",
        about: "The confidence that a model's finding needs to block in these paths.",
        kind: Kind::Choice(CONFIDENCES),
        trust: Trust::Open,
        weaker: Weaker::Never,
        get: |r| r.min_confidence.map_or(Value::Unset, |c| Value::Text(c.name().to_owned())),
        set: |r, v| r.min_confidence = Some(v.to_confidence()),
    },
];

/// `[[guideline]]`.
pub(super) static GUIDELINE: &[Key<Guideline>] = &[
    Key {
        name: "glob",
        about: "The paths it is about: a pattern or a list of them.",
        kind: Kind::PatternOrPatterns,
        trust: Trust::Open,
        weaker: Weaker::Never,
        get: |g| Value::List(g.glob.clone()),
        set: |g, v| g.glob = v.list().to_vec(),
    },
    Key {
        name: "text",
        about: "Instructions for models when a matching file changes.",
        kind: Kind::Text(8192),
        trust: Trust::Open,
        weaker: Weaker::Never,
        get: |g| Value::Text(g.text.clone()),
        set: |g, v| v.text().clone_into(&mut g.text),
    },
];

/// Returns the full name of a key.
pub(super) fn full(table: &str, key: &str) -> String {
    if table.is_empty() { key.to_owned() } else { format!("{table}.{key}") }
}

/// Returns a key of the fixed tables by its full name.
pub(super) fn find(name: &str) -> Option<&'static Key<Policy>> {
    let (table, key) = name.split_once('.').unwrap_or(("", name));
    TABLES.iter().find(|t| t.name == table)?.keys.iter().find(|k| k.name == key)
}

/// Returns a key of `[backend.NAME]`.
pub(super) fn backend_key(name: &str) -> Option<&'static Key<Backend>> {
    BACKEND.iter().find(|k| k.name == name)
}

fn completion(v: OnIncomplete) -> Value {
    Value::Text(if v == OnIncomplete::Fail { "fail" } else { "warn" }.to_owned())
}
fn to_completion(v: &Value) -> OnIncomplete {
    if v.text() == "warn" { OnIncomplete::Warn } else { OnIncomplete::Fail }
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
