//! The rules in the form that the engine uses, and the built-in rules from the build script.

use super::format;
use super::language::Languages;
use super::lexer::Place;
use super::needs::Needs;
use super::prefilter::{LiteralWindow, Prefilter};
use crate::finding::{Category, Confidence, Severity};
use std::borrow::Cow;

/// A rule.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) id: Cow<'static, str>,
    pub(crate) title: Cow<'static, str>,
    pub(crate) category: Category,
    pub(crate) severity: Severity,
    pub(crate) confidence: Confidence,
    /// None: every language.
    pub(crate) languages: Languages,
    pub(crate) paths: TextList,
    pub(crate) not_paths: TextList,
    pub(crate) weak_paths: TextList,
    pub(crate) in_tests: bool,
    pub(crate) in_bundles: bool,
    pub(crate) place: Place,
    pub(crate) matcher: Matcher,
    /// The condition of a built-in structural rule, in YAML, and the languages that it names.
    pub(crate) tree: Cow<'static, str>,
    pub(crate) tree_languages: TextList,
    /// The rule runs only in the profile `audit`.
    pub(crate) is_audit: bool,
    /// The severity in that profile, if it differs.
    pub(crate) audit_severity: Option<Severity>,
    pub(crate) pattern: Cow<'static, str>,
    /// The build script derives it from the pattern; empty for rules of teams.
    pub(crate) needs: Needs,
    pub(crate) not_pattern: TextList,
    pub(crate) harmless: TextList,
    pub(crate) guarded_by: TextList,
    pub(crate) weak_if: TextList,
    pub(crate) file_has: TextList,
    pub(crate) file_lacks: TextList,
    pub(crate) near_has: TextList,
    pub(crate) near_lacks: TextList,
    pub(crate) checks: TextList,
    pub(crate) secret: bool,
    pub(crate) decoded: bool,
    pub(crate) judges_origin: bool,
    pub(crate) line_has: TextList,
    pub(crate) message: Cow<'static, str>,
    pub(crate) why: Option<Cow<'static, str>>,
    pub(crate) suggestion: Option<Cow<'static, str>>,
    pub(crate) fixes: Cow<'static, [RuleFix]>,
    pub(crate) cwe: Option<u32>,
    pub(crate) references: TextList,
    pub(crate) bad: Option<Cow<'static, str>>,
    pub(crate) good: Option<Cow<'static, str>>,
}

impl Rule {
    /// Returns the profile of the policy in which the rule runs.
    pub(crate) fn profile(&self) -> &'static str {
        if self.is_audit {
            format::AUDIT_PROFILE
        } else {
            format::DEFAULT_PROFILE
        }
    }
}

/// A replacement in the lines of a match; see `format::Fix`.
#[derive(Clone, Debug)]
pub(crate) struct RuleFix {
    pub(crate) find: Cow<'static, str>,
    pub(crate) replace: Cow<'static, str>,
}

/// Texts of a rule: static, or a team's.
pub(crate) type TextList = Cow<'static, [Cow<'static, str>]>;

/// The kind of a rule's matcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Matcher {
    /// Literals and a regular expression.
    Pattern,
    UnicodeBidi,
    UnicodeTags,
    UnicodeVariation,
    UnicodeZeroWidth,
    UnicodeMixedScript,
    ConflictMarkers,
    HiddenNul,
    HiddenUtf16,
    /// Base64 of 40 characters near an AWS access key ID: `super::leak::pair`.
    AwsSecretHalf,
    /// The data of Kubernetes Secrets: `super::leak::kube`.
    KubernetesData,
    /// The analysis of data flow: `super::flow`, by the table of `super::scan::flow`.
    Flow,
    /// Code that checks the change itself: `super::change`.
    Change,
    /// The statements of database migrations: `super::migration`.
    Migration,
    /// Request data in variables of components and pages: `super::markup`.
    Markup,
    /// Settings of Terraform resources: `super::settings`.
    Settings,
    /// A condition on the syntax tree: `super::structural`.
    Structural,
}

/// A prefilter with the rules that use each of its literals.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filter<'a> {
    pub(super) prefilter: Prefilter<'a>,
    /// By literal: indexes of rules.
    pub(super) users: &'a [&'a [u16]],
}

/// The filter of the built-in rules.
pub(super) static FILTER: Filter<'static> = Filter {
    prefilter: Prefilter {
        bitmap: &BITMAP,
        slots: &SLOTS,
        candidates: &CANDIDATES,
        literals: &LITERALS,
    },
    users: &USERS,
};

/// Returns the index of the built-in rule with an ID. Every finding and every check of a file asks
/// for some rules, so this is a binary search and not a walk over the catalogue.
pub(super) fn index_of(id: &str) -> Option<u16> {
    let at = BY_ID.binary_search_by(|i| RULES[usize::from(*i)].id.as_ref().cmp(id));
    at.ok().map(|at| BY_ID[at])
}

/// Returns a pattern of the catalogue as the build script parsed it: see `expression::decode`.
/// `None`: the catalogue has no such pattern.
pub(super) fn parsed_pattern(pattern: &str, lines: bool) -> Option<&'static [u8]> {
    let at = PATTERNS.binary_search_by(|(other, text, ..)| (*other, *text).cmp(&(lines, pattern)));
    let (.., start, end) = at.ok().map(|at| PATTERNS[at])?;
    PARSED_PATTERNS.get(start..end)
}

static PARSED_PATTERNS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/patterns.bin"));

include!(concat!(env!("OUT_DIR"), "/catalog.rs"));
