//! The table of policy keys: type, description, trust, and when a value is weaker than another.
//!
//! The parser, `policy show`, the schema, the configuration reference, trust and the comparison of
//! two policies and the terms of receipts all use this table. A new key is one entry in the file of
//! its table below, and one field in [`super`].

mod backend;
mod cache;
mod context;
mod entries;
mod fix;
mod forge;
mod history;
mod hooks;
mod mcp;
mod project_tests;
mod receipt;
mod review;
mod rules;
mod top;

use super::kind::ValueKind;
use super::value::PolicyValue;
use super::{Backend, BackendKind, Policy};
pub(super) use backend::{BACKEND, is_valid_for};
use cache::CACHE;
use context::CONTEXT;
pub(super) use entries::{GUIDELINE, PATH};
use fix::FIX;
use forge::FORGE;
use history::HISTORY;
use hooks::HOOKS;
use mcp::MCP;
use project_tests::TESTS;
use receipt::RECEIPT;
use review::REVIEW;
use rules::RULES;
use top::TOP;

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
    pub(super) receipt: ReceiptBinding,
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

/// When a new value of a key is weaker than the old one. [`super::weaken`] applies it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Weaker {
    /// Never: the key weakens no review, or a comparison cannot decide it.
    Never,
    /// An entry of the list is removed.
    EntryRemoved,
    /// An entry is added to the list.
    EntryAdded,
    /// A pattern is added that matches files which no old pattern matches.
    MatchesMore,
    /// The list selects less: it was empty, which selects everything, or an entry is removed.
    CoversLess,
    /// A severity no longer blocks. The lowest severity in the list counts, and all above it.
    BlocksLess,
    /// A severity no longer warns, and does not block instead.
    WarnsLess,
    /// The severity of a rule is lower, in a table of rule IDs and severities.
    RuleSeverityLower,
    /// The number or duration is smaller.
    Lower,
    /// The duration is longer. A duration that is unset has this number of seconds.
    Longer(u64),
    /// The value is later in this list, which starts with the strictest value.
    Later(&'static [&'static str]),
    /// The value is set and different: it decides which programs run or where data goes, and gate
    /// mode trusts it after the merge.
    Different,
}

/// Whether receipts are bound to the value of a key. A receipt is accepted only under a policy that
/// has the same value in every bound key: see [`Policy::bound_by_receipts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReceiptBinding {
    /// The value decides about a change, on every machine in the same way.
    Bound,
    /// Not bound: the limit does not change the result of a complete review.
    Limit,
    /// Not bound: the value is of one machine or one user, or decides nothing about a change.
    Unbound,
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
    KeyTable {
        name: "cache",
        about: "Answers that several machines share.",
        keys: CACHE,
    },
];

/// The confidences, strictest threshold first: at `low`, every finding of a model can block.
const CONFIDENCES: &[&str] = &["low", "medium", "high"];

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
    ("review.max_requests", "--max-requests"),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the names of keys that receipts are bound to and that not every file may set.
    fn bound_to_one_machine<T>(keys: &'static [PolicyKey<T>]) -> Vec<&'static str> {
        keys.iter()
            .filter(|k| k.receipt == ReceiptBinding::Bound && k.trust != Trust::Open)
            .map(|k| k.name)
            .collect()
    }

    #[test]
    fn receipts_are_bound_to_no_value_of_one_machine() {
        for table in TABLES {
            assert_eq!(bound_to_one_machine(table.keys), [""; 0], "{}", table.name);
        }
        assert_eq!(bound_to_one_machine(BACKEND), [""; 0]);
        assert_eq!(bound_to_one_machine(PATH), [""; 0]);
        assert_eq!(bound_to_one_machine(GUIDELINE), [""; 0]);
    }
}
