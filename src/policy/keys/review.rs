//! The keys of `[review]`.

use super::{PolicyKey, ReceiptBinding, Trust, Weaker};
use crate::policy::kind::ValueKind;
use crate::policy::value::PolicyValue;
use crate::policy::{Mode, Policy};
use crate::request::Depth;

/// Strictest first.
const MODES: &[&str] = &["all", "first"];
/// Strictest first.
const DEPTHS: &[&str] = &["thorough", "quick"];

pub(in crate::policy) static REVIEW: &[PolicyKey<Policy>] = &[
    PolicyKey {
        name: "backends",
        about: "Backends that review in addition to the rules: built-in names, or names of [backend.NAME] tables. If the list is empty, only the rules run and nothing is sent; a listed backend that does not answer makes the review incomplete.",
        kind: ValueKind::BackendNames,
        trust: Trust::Open,
        weaker: Weaker::EntryRemoved,
        receipt: ReceiptBinding::Bound,
        get: |p| PolicyValue::List(p.review.backends.clone()),
        set: |p, v| p.review.backends = v.list().to_vec(),
    },
    PolicyKey {
        name: "mode",
        about: "Whether all backends review (all), or only the first that answers (first).",
        kind: ValueKind::Choice(MODES),
        trust: Trust::Open,
        weaker: Weaker::Later(MODES),
        receipt: ReceiptBinding::Bound,
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
        weaker: Weaker::Later(DEPTHS),
        receipt: ReceiptBinding::Bound,
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
        weaker: Weaker::CoversLess,
        receipt: ReceiptBinding::Bound,
        get: |p| PolicyValue::names(p.review.focus.iter().map(|c| c.name())),
        set: |p, v| p.review.focus = v.to_categories(),
    },
    PolicyKey {
        name: "conventions",
        about: "Files of the repository with the project's conventions. Models receive those that exist.",
        kind: ValueKind::Files,
        trust: Trust::Open,
        weaker: Weaker::EntryRemoved,
        receipt: ReceiptBinding::Bound,
        get: |p| PolicyValue::List(p.review.conventions.clone()),
        set: |p, v| p.review.conventions = v.list().to_vec(),
    },
    PolicyKey {
        name: "max_files",
        about: "Most files in one request to a model. A larger change takes more requests.",
        kind: ValueKind::Count(1, 10_000),
        trust: Trust::Open,
        weaker: Weaker::Never,
        receipt: ReceiptBinding::Limit,
        get: |p| PolicyValue::Count(p.review.max_files),
        set: |p, v| p.review.max_files = v.count(),
    },
    PolicyKey {
        name: "max_lines",
        about: "Most lines shown in one request to a model: changed lines and their context. A larger change takes more requests.",
        kind: ValueKind::Count(1, 1_000_000),
        trust: Trust::Open,
        weaker: Weaker::Never,
        receipt: ReceiptBinding::Limit,
        get: |p| PolicyValue::Count(p.review.max_lines),
        set: |p, v| p.review.max_lines = v.count(),
    },
    PolicyKey {
        name: "max_requests",
        about: "Most requests of one review, including tool calls, retries and second looks. The default at depth thorough is 400.",
        kind: ValueKind::Count(1, 10_000),
        trust: Trust::Open,
        weaker: Weaker::Lower,
        receipt: ReceiptBinding::Limit,
        get: |p| PolicyValue::Count(p.review.max_requests),
        set: |p, v| p.review.max_requests = v.count(),
    },
    PolicyKey {
        name: "max_rounds",
        about: "Most rounds of one review session.",
        kind: ValueKind::Count(1, 1_000),
        trust: Trust::Open,
        weaker: Weaker::Never,
        receipt: ReceiptBinding::Limit,
        get: |p| PolicyValue::Count(p.review.max_rounds),
        set: |p, v| p.review.max_rounds = v.count(),
    },
    PolicyKey {
        name: "timeout",
        about: "Total time limit for all model requests of a review.",
        kind: ValueKind::Span(1, 86_400),
        trust: Trust::Open,
        weaker: Weaker::Lower,
        receipt: ReceiptBinding::Limit,
        get: |p| PolicyValue::Span(p.review.timeout),
        set: |p, v| p.review.timeout = v.span(),
    },
    PolicyKey {
        name: "max_cost_usd",
        about: "Cost limit of one review in US dollars.",
        kind: ValueKind::Number(0.0, 10_000.0),
        trust: Trust::Personal,
        weaker: Weaker::Lower,
        receipt: ReceiptBinding::Limit,
        get: |p| PolicyValue::Number(p.review.max_cost_usd),
        set: |p, v| p.review.max_cost_usd = v.number(),
    },
    PolicyKey {
        name: "jobs",
        about: "Most requests to one backend at the same time.",
        kind: ValueKind::Count(1, 64),
        trust: Trust::Open,
        weaker: Weaker::Never,
        receipt: ReceiptBinding::Limit,
        get: |p| PolicyValue::Count(p.review.jobs),
        set: |p, v| p.review.jobs = v.count(),
    },
];

impl Mode {
    /// Returns the name in policy files.
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::First => "first",
        }
    }
}
