//! The built-in reviewer: finds proven findings in a change without network access or other
//! programs.

pub(crate) mod about;
mod api_document;
mod around;
mod beside;
mod blob;
mod block;
mod bundle;
#[cfg(test)]
mod calibration;
mod catalog;
mod change;
mod check;
mod decode;
mod elide;
pub mod eval;
mod evidence;
mod expression;
pub mod flow;
pub(crate) mod format;
mod glob;
mod language;
mod leak;
mod lexer;
mod line_ends;
mod markers;
mod markup;
mod mask;
mod migration;
mod needs;
mod origin;
mod parse;
mod pins;
mod prefilter;
mod prose;
mod report;
mod rewrite;
mod role;
mod sample;
mod scan;
pub(crate) mod secret;
mod section;
mod settings;
mod signs;
mod spans;
mod structural;
mod suppress;
mod team;
mod unicode;
mod verbs;
mod visits;
mod walk;
mod weaken;

pub use evidence::FlowWords;
pub(crate) use role::{
    is_data_of_tests, is_documentation, is_judged_leniently, is_program_text, is_test_path,
    is_vendored, may_be_test,
};
pub use sample::{Report, expand};

use crate::diff::{Entry, FileChange, LineNo, RepoPath};
use crate::error::{Error, Result};
use crate::finding::listing::Floor;
use crate::finding::{Category, Confidence, Finding, LineSpan, Severity, Suppression};
use crate::policy::{RuleProfile, RulesPolicy};
pub use about::doc_url;
use catalog::{Matcher, Rule};
/// The rule whose findings about very many files are one finding about the change.
pub(crate) use change::GATHERED;
pub use change::Tree;
use language::Languages;
pub use leak::Secret;
pub(crate) use lexer::{Place, languages_of, outline};
pub use pins::{Pins, can_use_actions, unpinned};
pub use report::Rest;
use report::{Reporter, Sighting};
pub use signs::SecretSigns;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;
use suppress::Counting;
pub(crate) use suppress::comment;
pub use weaken::{RuleFile, RuleWeakening, RulesVersion, weakened};

/// The rules of one run: the built-in catalogue and the team's rules, without the rules that policy
/// disables.
///
/// Creating a rule set is cheap: the catalogue is static, and each expression is compiled once per
/// process when one of its literals is found. Threads share a rule set by reference.
#[derive(Debug)]
pub struct RuleSet {
    team: team::Team,
    /// Folders of the team's rule files.
    folders: Vec<String>,
    /// By index of the rule. Empty: no rule is disabled.
    disabled: Vec<bool>,
    severity: Vec<(u16, Severity)>,
    profile: RuleProfile,
    suppressions: Suppressions,
    /// Commits of actions that replacements may name.
    pins: pins::Pins,
    hash: Cow<'static, str>,
    /// All files of a state are scanned, and not a change.
    is_of_a_tree: bool,
}

/// Byte order mark with which some editors start a file. It is not part of the first line.
const MARK: &[u8] = "\u{feff}".as_bytes();

/// The rules that run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    All,
    /// Only rules that find exposed secrets, for the commits inside a branch.
    Secrets,
}

/// Permissions of comments that suppress findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suppressions {
    /// True if suppressing comments that the change itself adds are valid. False in gate mode.
    pub honour_added: bool,
}

/// The view of a file in a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The file after the whole change.
    Net,
    /// The file in one commit of several, or in a patch, whose author also controls the context
    /// lines.
    Part,
}

impl Suppressions {
    /// Returns which suppressing comments count in a net change.
    fn within_net(self) -> Counting {
        if self.honour_added {
            Counting::Net
        } else {
            Counting::Base
        }
    }

    /// Returns which suppressing comments count in one commit of several. In gate mode none counts:
    /// the commit before this one is equally under review, and may have added the comments that
    /// this commit does not add.
    fn within_commit(self) -> Counting {
        if self.honour_added {
            Counting::All
        } else {
            Counting::None
        }
    }
}

/// The number of findings of a rule in a file that are not listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unlisted {
    pub rule: String,
    pub count: u32,
}

/// A message about a line that is not a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    pub line: LineNo,
    pub text: String,
}

/// The origin of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleOrigin<'a> {
    BuiltIn,
    /// A team's rule file, with the line of the rule.
    Team {
        file: &'a str,
        line: u32,
    },
}

/// A rule as the user sees it.
#[derive(Clone, Debug)]
pub struct Description<'a> {
    pub id: &'a str,
    pub defined: RuleOrigin<'a>,
    pub title: &'a str,
    pub category: Category,
    pub severity: Severity,
    pub confidence: Confidence,
    /// Empty: every file.
    pub languages: Vec<&'static str>,
    /// Globs of the only paths that it checks; empty: all.
    pub paths: Vec<&'a str>,
    pub not_paths: Vec<&'a str>,
    /// Globs of paths where its findings have a lower severity.
    pub weak_paths: Vec<&'a str>,
    pub in_tests: bool,
    pub in_bundles: bool,
    /// The profile of the policy in which the rule runs, and its severity in the profile `audit`,
    /// if that differs.
    pub profile: &'static str,
    pub audit_severity: Option<Severity>,
    /// Expressions that must all match in the file, and expressions that must not match in it.
    pub file_has: Vec<&'a str>,
    pub file_lacks: Vec<&'a str>,
    pub secret: bool,
    /// True if a value of unknown origin makes the finding a suggestion of low confidence.
    pub judges_origin: bool,
    pub message: &'a str,
    pub why: Option<&'a str>,
    pub suggestion: Option<&'a str>,
    pub cwe: Option<u32>,
    pub references: Vec<&'a str>,
    /// Example code, with generated text in place of templates.
    pub bad: Option<String>,
    pub good: Option<String>,
}

impl<'a> Description<'a> {
    fn of(r: &'a Rule) -> Self {
        let texts = |l: &'a catalog::TextList| l.iter().map(|t| &**t).collect::<Vec<_>>();
        let code = |c: &Option<Cow<'static, str>>| c.as_ref().map(|c| sample::expand(c, &r.id));
        Self {
            id: &r.id,
            defined: RuleOrigin::BuiltIn,
            title: &r.title,
            category: r.category,
            severity: r.severity,
            confidence: r.confidence,
            languages: r.languages.names().collect(),
            paths: texts(&r.paths),
            not_paths: texts(&r.not_paths),
            weak_paths: texts(&r.weak_paths),
            in_tests: r.in_tests,
            in_bundles: r.in_bundles,
            profile: r.profile(),
            audit_severity: r.audit_severity,
            file_has: texts(&r.file_has),
            file_lacks: texts(&r.file_lacks),
            secret: r.secret,
            judges_origin: r.judges_origin || r.id.ends_with("-flow") && r.matcher == Matcher::Flow,
            message: &r.message,
            why: r.why.as_deref(),
            suggestion: r.suggestion.as_deref(),
            cwe: r.cwe,
            references: texts(&r.references),
            bad: code(&r.bad),
            good: code(&r.good),
        }
    }
}

/// Describes every built-in rule, in the order of the catalogue.
pub fn describe_all() -> impl Iterator<Item = Description<'static>> {
    catalog::RULES.iter().map(Description::of)
}

/// Returns the names of languages that rules can specify.
pub fn languages() -> &'static [&'static str] {
    format::LANGUAGES
}

/// Returns true if a rename makes a file subject to rules that did not check its old path.
pub fn comes_alive(old: &RepoPath, new: &RepoPath) -> bool {
    let of = |p: &RepoPath| Languages::of(p.as_bytes(), b"");
    let family = ["javascript", "typescript"]
        .map(Languages::named)
        .into_iter()
        .flatten();
    let family = family.fold(Languages::NONE, Languages::with);
    let (before, after) = (of(old), of(new));
    // JavaScript and TypeScript have the same rules.
    let before = if before.overlaps(family) {
        before.with(family)
    } else {
        before
    };
    let leaves_tests =
        role::is_test_path(old.as_bytes()) && role::of(new.as_bytes()) == role::FileRole::Program;
    // Rules that skip tests also check files without a language, such as private keys.
    after.goes_beyond(before) || leaves_tests
}

/// Returns true if a path is that of a file in a language that rules support.
pub fn is_code(path: &RepoPath) -> bool {
    !language::Languages::of(path.as_bytes(), b"").is_empty()
}

/// Runs the samples of a team's rule files, given as name and content.
///
/// # Errors
///
/// Usage: one error that lists every problem of every file.
pub fn test(files: &[(String, String)]) -> Result<Report> {
    let mut rules = RuleSet::new(&RulesPolicy::default(), files)?;
    let written: Vec<_> = rules.team.written.iter().map(|w| w.rule.clone()).collect();
    Ok(sample::test(&mut rules, &written))
}

/// Returns true if a team rule can have this ID: its form is valid, and no built-in rule has it.
pub fn is_free_id(id: &str) -> bool {
    format::is_id(id) && catalog::index_of(id).is_none()
}

/// Returns true if the text has the form of a rule ID.
pub fn is_id(id: &str) -> bool {
    format::is_id(id)
}

/// The compiled expressions of the built-in rules, created on first use.
static COMPILED: [OnceLock<Option<walk::RulePatterns>>; catalog::RULES.len()] =
    [const { OnceLock::new() }; catalog::RULES.len()];

impl RuleSet {
    /// Creates the rule set. `team`: name and content of the team's rule files.
    pub fn new(policy: &RulesPolicy, team: &[(String, String)]) -> Result<Self> {
        let mut rules = Self {
            team: team::Team::parse(team)?,
            folders: policy
                .paths
                .iter()
                .map(|p| p.trim_end_matches('/').to_owned())
                .collect(),
            disabled: Vec::new(),
            severity: Vec::new(),
            profile: policy.profile,
            suppressions: Suppressions { honour_added: true },
            pins: pins::Pins::default(),
            hash: Cow::Borrowed(catalog::HASH),
            is_of_a_tree: false,
        };
        for id in &policy.disable {
            let index = rules.known(id, "disable")?;
            rules.disabled.resize(rules.len(), false);
            rules.disabled[usize::from(index)] = true;
        }
        for (id, severity) in &policy.severity {
            let index = rules.known(id, "severity")?;
            rules.severity.push((index, *severity));
        }
        let is_default = policy.profile == RuleProfile::Default;
        if !(team.is_empty()
            && policy.disable.is_empty()
            && policy.severity.is_empty()
            && is_default)
        {
            rules.hash = Cow::Owned(rules.hash_of(team));
        }
        Ok(rules)
    }

    /// Sets the permissions of suppressing comments. Without it, comments that the change adds
    /// count.
    #[must_use]
    pub fn with_suppressions(mut self, suppressions: Suppressions) -> Self {
        self.suppressions = suppressions;
        self
    }

    /// Sets the commits of actions that replacements may name. Without it, there are none.
    #[must_use]
    pub fn with_pins(mut self, pins: Pins) -> Self {
        self.pins = pins;
        self
    }

    /// Leaves out the rules about changes, for a scan of all files of a state. They would report
    /// every file as new. The hash stays the same, because the source of a review implies this.
    #[must_use]
    pub(crate) fn of_a_tree(mut self) -> Self {
        self.is_of_a_tree = true;
        self.disabled.resize(self.len(), false);
        for index in 0..self.len() as u16 {
            let is_builtin = usize::from(index) < catalog::RULES.len();
            if is_builtin && change::is_step(&self.rule(index).id) {
                self.disabled[usize::from(index)] = true;
            }
        }
        self
    }

    /// Returns true if all files of a state are scanned, and not a change.
    pub(crate) fn is_of_a_tree(&self) -> bool {
        self.is_of_a_tree
    }

    /// Scans one changed file, in time linear in its added bytes. Returns the findings that exceed
    /// the limits of the list.
    pub fn scan(&self, file: &FileChange, scope: Scope, out: &mut Vec<Finding>) -> Rest {
        self.scan_above(file, (scope, Seen::Net), &Floor::default(), out)
    }

    /// Scans one changed file, and lists only findings that the floor admits. `seen`:
    /// [`Seen::Part`] for a file of one of several commits under review.
    pub(crate) fn scan_above(
        &self,
        file: &FileChange,
        (scope, seen): (Scope, Seen),
        floor: &Floor,
        out: &mut Vec<Finding>,
    ) -> Rest {
        let counting = match seen {
            Seen::Net => self.suppressions.within_net(),
            Seen::Part => self.suppressions.within_commit(),
        };
        scan::file(self, file, scope, counting, floor, out)
    }

    /// Returns what whole lines of a file have for the rules for secrets. `around`: the same lines
    /// with three more on each side, `wide` with as many as a row of joined literals can have. Takes
    /// time linear in the texts.
    pub fn secret_signs(&self, lines: &[u8], around: &[u8], wide: &[u8]) -> SecretSigns {
        signs::of(self, lines, around, wide)
    }

    /// Reports findings that only the whole change shows. `tree` reads the few files that the rules
    /// need.
    pub fn scan_change(
        &self,
        change: &crate::git::Change,
        tree: &Tree<'_>,
        out: &mut Vec<Finding>,
    ) {
        self.scan_entries(&change.entries, tree, out);
    }

    /// Reports findings that only the whole change shows, given its entries in git's order.
    pub fn scan_entries(&self, entries: &[Entry], tree: &Tree<'_>, out: &mut Vec<Finding>) {
        change::scan_change(entries, tree, &mut report::Reporter::new(self, None, out));
    }

    /// Masks every secret of a text; see [`Self::mask`].
    pub fn masked(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.mask(text.as_bytes())).into_owned()
    }

    /// Replaces similar findings of very many files by one finding. `may` returns true if a finding
    /// may be replaced.
    pub fn gather(&self, may: &dyn Fn(&Finding) -> bool, findings: &mut Vec<Finding>) {
        change::gather(self, may, findings);
    }

    /// Masks every secret and keeps all columns. At most four bytes of each secret, its public
    /// prefix, remain visible.
    pub fn mask<'t>(&self, text: &'t [u8]) -> Cow<'t, [u8]> {
        mask::mask(self, text)
    }

    /// Returns the ranges of a text that [`Self::mask`] overwrites, in order and without overlaps.
    pub fn hidden(&self, text: &[u8]) -> Vec<Range<usize>> {
        mask::hidden(self, text)
    }

    /// Returns every secret of a text, in order and without overlaps, each within one line.
    /// [`Self::mask`] hides the same secrets.
    pub fn secrets(&self, text: &[u8]) -> Vec<Secret<'_>> {
        leak::secrets(self, text)
    }

    /// Searches a text for instructions to a reviewer. A model reads the text in addition to the
    /// change: a commit message, a document, the name of a branch. `what` describes the text.
    /// `file` is its path if it is a file.
    pub fn scan_beside(
        &self,
        what: &str,
        file: Option<&RepoPath>,
        text: &[u8],
        out: &mut Vec<Finding>,
    ) {
        beside::scan(self, what, file, text, out);
    }

    /// Reports errors in the suppressing comments that a change adds: no reason, an unknown rule,
    /// or that the comments are invalid because the change adds them. Also reports comments of the
    /// base that do not cover a finding because its lines are new or changed.
    pub fn remarks(&self, file: &FileChange, seen: Seen, findings: &[Finding]) -> Vec<Remark> {
        let mut out = Vec::new();
        suppress::remarks(self, file, &mut out);
        if seen == Seen::Net {
            suppress::passed_by(file, findings, &mut out);
        }
        out
    }

    /// Returns the comment that suppresses a model's finding on these lines.
    pub fn suppression_of_claim(
        &self,
        file: &FileChange,
        id: &str,
        lines: LineSpan,
        seen: Seen,
    ) -> Option<Suppression> {
        let counting = match seen {
            Seen::Net => self.suppressions.within_net(),
            Seen::Part => self.suppressions.within_commit(),
        };
        suppress::of_claim(file, id, lines, counting)
    }

    /// Returns true if comments that the change adds can suppress findings: on a developer's
    /// machine, not in gate mode.
    pub fn trusts_the_change(&self) -> bool {
        self.suppressions.honour_added
    }

    /// Reports that the change weakens the policy. `text` describes the weakening, `line` is its
    /// line in the new file.
    pub fn policy_weakened(
        &self,
        file: &RepoPath,
        line: Option<LineNo>,
        text: &str,
        out: &mut Vec<Finding>,
    ) {
        let lines = line.map(|n| LineSpan {
            first: n,
            last: n,
            columns: None,
        });
        let quote = report::whole(text);
        let sighting = Sighting {
            file: Some(file),
            lines,
            quote: quote.as_bytes(),
            detail: Some(text),
            ..Sighting::default()
        };
        Reporter::new(self, None, out).report("policy-weakened", sighting);
    }

    /// Returns the default severity of a rule, without changes by policy.
    pub fn severity(&self, id: &str) -> Option<Severity> {
        self.index_of(id).map(|i| self.rule(i).severity)
    }

    /// Returns the hash of all active rules: 16 hexadecimal digits.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// Describes the rule with an ID, built-in or of the team, with the severity that policy sets.
    pub fn describe(&self, id: &str) -> Option<Description<'_>> {
        self.index_of(id).map(|i| self.description(i))
    }

    /// Returns true if the rule compares both sides of a change, or checks the change as a whole. A
    /// scan of a tree does not report all findings of such a rule.
    pub fn is_about_change(&self, id: &str) -> bool {
        self.index_of(id)
            .is_some_and(|i| self.rule(i).matcher == Matcher::Change)
    }

    /// Describes every rule: the built-in ones in the order of the catalogue, then the team's in
    /// the order of files.
    pub fn descriptions(&self) -> impl Iterator<Item = Description<'_>> {
        (0..self.len() as u16).map(|i| self.description(i))
    }

    fn description(&self, index: u16) -> Description<'_> {
        let defined = match self
            .team_index(index)
            .and_then(|i| self.team.written.get(i))
        {
            Some(written) => RuleOrigin::Team {
                file: &written.file,
                line: written.line,
            },
            None => RuleOrigin::BuiltIn,
        };
        Description {
            severity: self.severity_of(index),
            defined,
            ..Description::of(self.rule(index))
        }
    }

    /// Returns the rule with an ID as the text of a rule file.
    ///
    /// # Errors
    ///
    /// Usage: no rule has the ID, or the rule is implemented in code.
    pub fn to_toml(&self, id: &str) -> Result<String> {
        let index = self.index_of(id).ok_or_else(|| self.not_found(id))?;
        match self.team_index(index) {
            Some(i) if self.rule(index).matcher == Matcher::Structural => {
                let written = &self.team.written[i];
                Err(Error::usage(format!(
                    "cannot print {id} as TOML: it is a structural rule"
                ))
                .hint(format!("see {}:{}", written.file, written.line)))
            }
            Some(i) => Ok(team::to_toml(&self.team.written[i])),
            None if self.rule(index).matcher == Matcher::Structural => Err(Error::usage(format!(
                "cannot print {id} as TOML: it is a structural rule"
            ))
            .hint_person("write a structural rule: claude-reviewer rules new ID --structural")
            .hint_agent("a team's structural rule is a YAML file: see docs/structural-rules.md")),
            None => team::of_built_in(usize::from(index)).ok_or_else(|| {
                Error::usage(format!(
                    "cannot print {id} as TOML: code of the program decides what it matches"
                ))
                .hint_person(format!(
                    "read about the rule: claude-reviewer rules explain {id}"
                ))
                .hint_agent("a team rule cannot express this rule")
            }),
        }
    }

    /// Returns the error for an unknown rule, with the most similar ID.
    pub fn not_found(&self, id: &str) -> Error {
        let e = Error::usage(format!("unknown rule {id:?}"));
        match self.nearest(id) {
            Some(near) => e.hint(format!("did you mean {near:?}?")),
            None => e
                .hint_person("see all rules: claude-reviewer rules list")
                .hint_agent("check the id of the rule"),
        }
    }

    /// Counts the literals of built-in rules in a text. This measures the prefilter alone, for
    /// benchmarks.
    #[doc(hidden)]
    pub fn count_literals(&self, text: &[u8]) -> usize {
        let mut count = 0;
        catalog::FILTER.prefilter.scan(text, |_, _| count += 1);
        count
    }

    /// Returns the index within the team's rules; `None` for a built-in rule.
    fn team_index(&self, index: u16) -> Option<usize> {
        usize::from(index).checked_sub(catalog::RULES.len())
    }

    /// Returns true if the rule skips a file because it is a rule file, whose samples would match.
    ///
    /// Only team rules skip rule files. Built-in rules check them like all other files, above all
    /// for secrets.
    fn skips_rule_file(&self, index: u16, path: &[u8]) -> bool {
        let is_rule_file = [&b".toml"[..], b".yml", b".yaml"]
            .iter()
            .any(|extension| path.ends_with(extension));
        if self.team_index(index).is_none() || !is_rule_file {
            return false;
        }
        let folder = memchr::memrchr(b'/', path).map(|end| &path[..end]);
        folder.is_some_and(|folder| self.folders.iter().any(|f| f.as_bytes() == folder))
    }

    /// Returns the number of rules, including disabled ones.
    fn len(&self) -> usize {
        catalog::RULES.len() + self.team.rules.len()
    }

    fn rule(&self, index: u16) -> &Rule {
        match catalog::RULES.get(usize::from(index)) {
            Some(rule) => rule,
            None => &self.team.rules[usize::from(index) - catalog::RULES.len()],
        }
    }

    /// Returns the IDs of all rules.
    fn ids(&self) -> impl Iterator<Item = &str> {
        catalog::RULES
            .iter()
            .chain(&self.team.rules)
            .map(|r| &*r.id)
    }

    /// Returns the index of the rule with an ID, built-in or of the team.
    fn index_of(&self, id: &str) -> Option<u16> {
        catalog::index_of(id).or_else(|| {
            let of_team = self.team.rules.iter().position(|r| r.id == id)?;
            Some((catalog::RULES.len() + of_team) as u16)
        })
    }

    /// Returns the rule with an ID, built-in or of the team.
    fn rule_named(&self, id: &str) -> Option<&Rule> {
        self.index_of(id).map(|index| self.rule(index))
    }

    /// Returns true for a rule of the catalogue, false for a rule of a team.
    fn is_of_catalogue(&self, index: u16) -> bool {
        usize::from(index) < catalog::RULES.len()
    }

    fn is_enabled(&self, index: u16) -> bool {
        let is_disabled = self
            .disabled
            .get(usize::from(index))
            .copied()
            .unwrap_or(false);
        !is_disabled && (self.profile == RuleProfile::Audit || !self.rule(index).is_audit)
    }

    fn severity_of(&self, index: u16) -> Severity {
        let rule = self.rule(index);
        let of_profile = rule
            .audit_severity
            .filter(|_| self.profile == RuleProfile::Audit);
        self.severity_set(index)
            .or(of_profile)
            .unwrap_or(rule.severity)
    }

    /// Returns the severity of a finding of a rule if the origin of the value is unknown.
    fn severity_of_unknown(&self, index: u16) -> Severity {
        let of_profile = match self.profile {
            RuleProfile::Default => Severity::Suggestion,
            RuleProfile::Audit => Severity::Minor,
        };
        self.severity_set(index)
            .unwrap_or_else(|| of_profile.min(self.severity_of(index)))
    }

    /// Returns the severity that policy sets for a rule by its name.
    fn severity_set(&self, index: u16) -> Option<Severity> {
        self.severity
            .iter()
            .rev()
            .find(|(i, _)| *i == index)
            .map(|(_, s)| *s)
    }

    /// Returns a rule's expressions. `None`: the rule has none, or an invalid one (tests and the
    /// loading of team rules exclude that).
    fn compiled(&self, index: u16) -> Option<&walk::RulePatterns> {
        let slot = match COMPILED.get(usize::from(index)) {
            Some(slot) => slot,
            None => &self.team.compiled[usize::from(index) - catalog::RULES.len()],
        };
        let rule = self.rule(index);
        slot.get_or_init(|| match rule.matcher {
            Matcher::Pattern => walk::RulePatterns::of(rule),
            // The conditions of the rule on its file, and its fixes.
            Matcher::Flow => walk::RulePatterns::of(rule),
            Matcher::Structural if !rule.tree.is_empty() => walk::RulePatterns::of(rule),
            _ => None,
        })
        .as_ref()
    }

    /// Returns the index of a rule that policy names, or an error that suggests one.
    fn known(&self, id: &str, key: &str) -> Result<u16> {
        self.index_of(id).ok_or_else(|| {
            let e = Error::usage(format!("unknown rule {id:?} in [rules] {key}"));
            match self.nearest(id) {
                Some(near) => e.hint(format!("did you mean {near:?}?")),
                None => e
                    .hint_person("`claude-reviewer rules list` prints every rule")
                    .hint_agent("ask the user to fix the policy"),
            }
        })
    }

    /// Returns the rule ID that is most similar to an invalid one.
    pub(crate) fn nearest(&self, id: &str) -> Option<&str> {
        self.ids()
            .map(|known| (strsim::jaro_winkler(known, id), known))
            .filter(|(score, _)| *score > 0.8)
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, known)| known)
    }

    fn hash_of(&self, team: &[(String, String)]) -> String {
        use sha2::Digest as _;
        let mut hash = sha2::Sha256::new();
        let mut field = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        field(catalog::HASH.as_bytes());
        if self.profile != RuleProfile::Default {
            field(self.profile.name().as_bytes());
        }
        for i in 0..self.len() as u16 {
            field(if self.is_enabled(i) {
                self.severity_of(i).name().as_bytes()
            } else {
                b"off"
            });
        }
        for (name, content) in team {
            field(name.as_bytes());
            field(content.as_bytes());
        }
        crate::hex::encode(&hash.finalize()[..8])
    }
}
