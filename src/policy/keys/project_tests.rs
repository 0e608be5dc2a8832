//! The keys of `[tests]`.

use super::{PolicyKey, ReceiptBinding, Trust, Weaker};
use crate::policy::Policy;
use crate::policy::kind::ValueKind;
use crate::policy::value::PolicyValue;
use crate::request::OnTestFailure;

/// Strictest first.
const ON_FAILURE: &[&str] = &["block", "warn"];

pub(in crate::policy) static TESTS: &[PolicyKey<Policy>] = &[
    PolicyKey {
        name: "command",
        about: "Command that runs the project's tests.",
        kind: ValueKind::Line(4096),
        trust: Trust::Operator,
        weaker: Weaker::Different,
        receipt: ReceiptBinding::Unbound,
        get: |p| PolicyValue::optional(p.tests.command.as_ref()),
        set: |p, v| p.tests.command = v.to_optional(),
    },
    PolicyKey {
        name: "run",
        about: "Whether a review runs the tests. This executes the code under review.",
        kind: ValueKind::Flag,
        trust: Trust::Operator,
        weaker: Weaker::Later(&["true", "false"]),
        receipt: ReceiptBinding::Unbound,
        get: |p| PolicyValue::Flag(p.tests.run),
        set: |p, v| p.tests.run = v.flag(),
    },
    PolicyKey {
        name: "on_failure",
        about: "Effect of failed tests: block (exit code 1) or warn. Tests that do not start or time out make the review incomplete.",
        kind: ValueKind::Choice(ON_FAILURE),
        trust: Trust::Open,
        weaker: Weaker::Later(ON_FAILURE),
        receipt: ReceiptBinding::Unbound,
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
        receipt: ReceiptBinding::Unbound,
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
        weaker: Weaker::Different,
        receipt: ReceiptBinding::Unbound,
        get: |p| PolicyValue::list_or_unset(&p.tests.sandbox),
        set: |p, v| p.tests.sandbox = v.list().to_vec(),
    },
    PolicyKey {
        name: "sandbox_paths",
        about: "Further folders that bubblewrap shows, read-only: absolute, below ~/, or of the worktree, such as node_modules.",
        kind: ValueKind::Folders,
        trust: Trust::Operator,
        weaker: Weaker::EntryAdded,
        receipt: ReceiptBinding::Unbound,
        get: |p| PolicyValue::list_or_unset(&p.tests.sandbox_paths),
        set: |p, v| p.tests.sandbox_paths = v.list().to_vec(),
    },
];
