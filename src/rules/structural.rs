//! Structural rules of a team and of the catalogue: ast-grep's YAML, matched on the syntax tree.
//!
//! The libraries of ast-grep parse a rule and match it
//! (<https://ast-grep.github.io/reference/yaml.html>). `scan/structural` decides which rules check
//! a file, and which matches are findings.

#[cfg(test)]
mod ascii;
mod file;
mod language;

pub(super) use file::{is_structural, parse, yaml_error_line};
pub(super) use language::TreeLanguage;

use super::catalog::{self, Rule};
use super::parse::{self, Parse};
use ast_grep_config::{Fixer, GlobalRules, RuleConfig, SerializableRuleConfig};
use ast_grep_core::matcher::MatcherExt as _;
use ast_grep_core::replacer::Replacer as _;
use ast_grep_core::tree_sitter::StrDoc;
use ast_grep_core::{AstGrep, Matcher as _, NodeMatch};
use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Matches of one rule in one file that are read, at most.
const MAX_MATCHES: usize = 1000;
/// Nodes below this depth are not matched. Code that people write is less than 200 deep.
const MAX_DEPTH: usize = 1000;
/// Nodes that the rules of one file may visit, as an upper bound: see [`Work`]. Without it, rules
/// that search the whole subtree of a node would take quadratic time in deeply nested code. A
/// release build takes about a second for them.
const MAX_WORK: usize = 20_000_000;
/// Time for a file, at most. A rule that searches below a node that it found above or among the
/// siblings of another takes more time than its work shows. Usual files take milliseconds. A build
/// without optimization is more than ten times slower.
const TIME: Duration = Duration::from_secs(if cfg!(debug_assertions) { 60 } else { 2 });
/// The kinds of the root of a tree, and of types and their bodies. A built-in rule that names one
/// can search code that is unchanged.
const SURROUNDINGS: &[&str] = &[
    "program",
    "module",
    "source_file",
    "translation_unit",
    "compilation_unit",
    "class",
    "class_body",
    "class_declaration",
    "class_definition",
    "declaration_list",
    "field_declaration_list",
    "class_specifier",
    "struct_specifier",
    "impl_item",
    "interface_body",
    "enum_body",
];
/// The key of a rule that searches further than the adjacent nodes.
const STOP_BY: &str = "stopBy";
/// Units of work for a match that searches only the adjacent nodes, and bytes of its text for each
/// further unit.
const SHALLOW_WORK: usize = 8;
const BYTES_PER_WORK: usize = 64;

type Matched<'t> = NodeMatch<'t, StrDoc<TreeLanguage>>;

/// A compiled structural rule.
pub(super) struct StructuralRule {
    config: RuleConfig<TreeLanguage>,
    /// By kind of node: true if the rule can match it. `None`: the rule can match every kind.
    kinds: Option<Box<[bool]>>,
    /// True if the rule is built-in, so that it matches only code without syntax errors.
    is_built_in: bool,
    /// True if the rule searches all descendants, ancestors or siblings of a node.
    is_deep: bool,
}

impl fmt::Debug for StructuralRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StructuralRule")
            .field("id", &self.config.id)
            .finish_non_exhaustive()
    }
}

/// A text with its syntax tree.
pub(super) struct ParsedText {
    tree: AstGrep<StrDoc<TreeLanguage>>,
    /// True if the text is a whole file. A part can start inside of any construct.
    is_whole: bool,
}

/// A match of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StructuralMatch {
    /// Bytes of the text, without white space at their ends.
    pub(super) range: Range<usize>,
    /// The message of the rule, with the text of its variables.
    pub(super) message: String,
    /// Bytes of the text, and the text that replaces them.
    pub(super) fix: Option<(Range<usize>, String)>,
}

/// The remaining work for a file. A match of a rule with a node costs about as many units as the
/// number of nodes that it can visit. If the rule has `stopBy`, these are all descendants,
/// ancestors and siblings of the node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    left: usize,
    end: Instant,
}

impl Work {
    pub(super) fn new() -> Self {
        Self {
            left: MAX_WORK,
            end: Instant::now() + TIME,
        }
    }

    /// Returns true if the limit ended the search for matches.
    pub(super) fn is_exceeded(self) -> bool {
        self.left == 0
    }

    /// Subtracts work. Returns false if less work remains.
    fn spend(&mut self, work: usize) -> bool {
        self.left = if Instant::now() < self.end {
            self.left.saturating_sub(work)
        } else {
            0
        };
        self.left > 0
    }
}

/// A node during a walk over a tree.
#[derive(Clone, Copy)]
struct Visited<'t> {
    node: tree_sitter::Node<'t>,
    /// True if the node is in a part of the text that the grammar cannot read.
    is_broken: bool,
    /// Number of ancestors and siblings.
    around: usize,
}

impl ParsedText {
    /// Parses a text. `None`: it is too large, or a limit ended the parser. `is_whole`: the text is
    /// a whole file.
    pub(super) fn new(text: &str, language: TreeLanguage, is_whole: bool) -> Option<Self> {
        Self::of_parts(text, &[], language, is_whole)
    }

    /// Parses the parts of a text, in order; without parts, the whole text.
    pub(super) fn of_parts(
        text: &str,
        parts: &[Range<usize>],
        language: TreeLanguage,
        is_whole: bool,
    ) -> Option<Self> {
        if !parse::is_bounded(text.as_bytes()) {
            return None;
        }
        let tree = parse::tree_of_parts(&language.grammar(), text.as_bytes(), parts)?;
        Some(Self {
            tree: AstGrep::doc(StrDoc {
                src: text.to_owned(),
                lang: language,
                tree,
            }),
            is_whole,
        })
    }

    /// Returns the tree for other rules. `text`: the text that was parsed.
    pub(super) fn share<'t>(&self, text: &'t str) -> Parse<'t> {
        let tree = self.tree.root().get_doc().tree.clone();
        Parse::new(self.tree.lang().grammar(), text.as_bytes(), tree)
    }

    /// Returns the matches of each rule in order of their starts. `near`: ranges of bytes in order.
    /// Only nodes that touch one of them are matched.
    pub(super) fn find(
        &self,
        rules: &[&StructuralRule],
        near: Option<&[Range<usize>]>,
        work: &mut Work,
    ) -> Vec<Vec<StructuralMatch>> {
        let mut out = vec![Vec::new(); rules.len()];
        let mut cursor = self.tree.root().get_inner_node().walk();
        // For each ancestor of the current node: the number of its children, and true if it is in a
        // broken part.
        let mut above: Vec<(usize, bool)> = Vec::new();
        loop {
            let node = cursor.node();
            let is_broken = self.is_whole
                && (node.is_error() || above.last().is_some_and(|(_, is_broken)| *is_broken));
            if near.is_none_or(|ranges| touches(ranges, &node.byte_range())) {
                let around = above.len() + above.last().map_or(0, |(children, _)| *children);
                self.visit(
                    Visited {
                        node,
                        is_broken,
                        around,
                    },
                    rules,
                    work,
                    &mut out,
                );
                if work.is_exceeded() {
                    return out;
                }
                if above.len() < MAX_DEPTH && cursor.goto_first_child() {
                    above.push((node.child_count() as usize, is_broken));
                    continue;
                }
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return out;
                }
                above.pop();
            }
        }
    }

    /// Adds the kinds of the nodes that touch some ranges of bytes, which are in order.
    pub(super) fn add_kinds_near(&self, near: &[Range<usize>], kinds: &mut NodeKinds) {
        let mut cursor = self.tree.root().get_inner_node().walk();
        let mut depth = 0;
        loop {
            let node = cursor.node();
            if touches(near, &node.byte_range()) {
                kinds.add(node.kind_id());
                if depth < MAX_DEPTH && cursor.goto_first_child() {
                    depth += 1;
                    continue;
                }
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return;
                }
                depth -= 1;
            }
        }
    }

    /// Matches each rule with a node.
    fn visit(
        &self,
        at: Visited<'_>,
        rules: &[&StructuralRule],
        work: &mut Work,
        out: &mut [Vec<StructuralMatch>],
    ) {
        for (rule, found) in rules.iter().zip(out) {
            if !rule.may_match(&at) || found.len() == MAX_MATCHES {
                continue;
            }
            if !work.spend(rule.work(&at)) {
                return;
            }
            let node = self.tree.adopt(at.node);
            found.extend(
                rule.config
                    .matcher
                    .match_node(node)
                    .map(|node| rule.matched(self, &node)),
            );
        }
    }
}

/// Kinds of nodes of a grammar. A file has many nodes of few kinds, so a table is faster than a set.
#[derive(Debug, Default)]
pub(super) struct NodeKinds {
    /// By the ID of the kind.
    is_present: Vec<bool>,
}

impl NodeKinds {
    fn add(&mut self, kind: u16) {
        let kind = usize::from(kind);
        if kind >= self.is_present.len() {
            self.is_present.resize(kind + 1, false);
        }
        self.is_present[kind] = true;
    }

    fn has(&self, kind: u16) -> bool {
        self.is_present.get(usize::from(kind)) == Some(&true)
    }
}

/// Returns true if the YAML of a rule names a kind of nodes.
fn rule_names(yaml: &str, kind: &str) -> bool {
    yaml.match_indices("kind: ").any(|(at, key)| {
        let rest = yaml[at + key.len()..].strip_prefix(kind);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'))
    })
}

/// Returns true if a range touches one of several ranges, which are in order.
fn touches(ranges: &[Range<usize>], one: &Range<usize>) -> bool {
    let first = ranges.partition_point(|r| r.end < one.start);
    ranges.get(first).is_some_and(|r| r.start <= one.end)
}

impl StructuralRule {
    /// Compiles a rule of a team. `text`: the text of the rule.
    ///
    /// # Errors
    ///
    /// A lower-case text with the cause: a pattern that does not parse, an unknown kind of nodes,
    /// an undefined variable.
    pub(super) fn new(
        config: SerializableRuleConfig<TreeLanguage>,
        text: &str,
    ) -> Result<Self, String> {
        let config =
            RuleConfig::try_from(config, &GlobalRules::default()).map_err(|e| causes(&e))?;
        let kinds = config.matcher.potential_kinds().map(|kinds| {
            let mut known = vec![false; kinds.iter().max().map_or(0, |kind| kind + 1)];
            kinds.iter().for_each(|kind| known[kind] = true);
            known.into_boxed_slice()
        });
        Ok(Self {
            config,
            kinds,
            is_built_in: false,
            is_deep: text.contains(STOP_BY),
        })
    }

    /// Compiles a rule of the catalogue for a language.
    ///
    /// # Errors
    ///
    /// As [`Self::new`], and YAML that does not parse.
    pub(super) fn of_catalogue(rule: &Rule, language: TreeLanguage) -> Result<Self, String> {
        let text = format!(
            "id: {}\nlanguage: {}\n{}",
            rule.id,
            language.name(),
            rule.tree
        );
        let config = ast_grep_config::from_str::<SerializableRuleConfig<TreeLanguage>>(&text);
        let rule = Self::new(config.map_err(|e| e.to_string())?, &rule.tree)?;
        Ok(Self {
            is_built_in: true,
            ..rule
        })
    }

    pub(super) fn language(&self) -> TreeLanguage {
        self.config.language
    }

    fn may_match(&self, at: &Visited<'_>) -> bool {
        let kind = usize::from(at.node.kind_id());
        let is_kind = self
            .kinds
            .as_ref()
            .is_none_or(|kinds| kinds.get(kind) == Some(&true));
        is_kind && !(self.is_built_in && (at.is_broken || at.node.has_error()))
    }

    /// Returns the units of work for a match with a node.
    fn work(&self, at: &Visited<'_>) -> usize {
        let shallow = SHALLOW_WORK + at.node.byte_range().len() / BYTES_PER_WORK;
        if self.is_deep {
            shallow + at.node.descendant_count() + at.around
        } else {
            shallow
        }
    }

    fn matched(&self, parsed: &ParsedText, node: &Matched<'_>) -> StructuralMatch {
        let range = node.range();
        let text = parsed.tree.source().get(range.clone()).unwrap_or_default();
        let start = range.start + (text.len() - text.trim_start().len());
        let fix = self
            .config
            .fixer
            .first()
            .map(|fixer| self.replaced(fixer, node));
        StructuralMatch {
            range: start..start + text.trim().len(),
            message: self.config.get_message(node),
            fix,
        }
    }

    fn replaced(&self, fixer: &Fixer, node: &Matched<'_>) -> (Range<usize>, String) {
        let range = fixer.get_replaced_range(node, &self.config.matcher);
        (
            range,
            String::from_utf8_lossy(&fixer.generate_replacement(node)).into_owned(),
        )
    }
}

/// A structural rule of the catalogue in one of its languages. Its parts are found on first use.
struct CatalogueRule {
    language: TreeLanguage,
    outline: OnceLock<RuleOutline>,
    compiled: OnceLock<Option<StructuralRule>>,
}

/// What the YAML of a rule shows before it is compiled, which costs more than parsing a small file.
#[derive(Clone, Copy, Debug)]
struct RuleOutline {
    /// The kind that a node must have for the rule to match it, if there is only one.
    kind: Option<u16>,
    needs_file: bool,
}

/// The structural rules of the catalogue.
static CATALOGUE: [OnceLock<Vec<CatalogueRule>>; catalog::RULES.len()] =
    [const { OnceLock::new() }; catalog::RULES.len()];

/// Returns the structural rule of the catalogue with an index, and its form for a language. `None`:
/// it is not a structural rule, or does not name the language.
fn in_language(
    index: u16,
    language: TreeLanguage,
) -> Option<(&'static Rule, &'static CatalogueRule)> {
    let rule = catalog::RULES
        .get(usize::from(index))
        .filter(|rule| !rule.tree.is_empty())?;
    let known = CATALOGUE.get(usize::from(index))?.get_or_init(|| {
        TreeLanguage::of_rule(&rule.tree_languages)
            .map(CatalogueRule::new)
            .collect()
    });
    let own = known.iter().find(|own| own.language == language)?;
    Some((rule, own))
}

/// Returns true if the catalogue has a structural rule with that index for a language.
pub(super) fn is_for(index: u16, language: TreeLanguage) -> bool {
    in_language(index, language).is_some()
}

/// Returns true if a rule of the catalogue may need unchanged parts of the file that are distant
/// from the changed lines.
pub(super) fn needs_file(index: u16, language: TreeLanguage) -> bool {
    in_language(index, language).is_some_and(|(rule, own)| own.outline(rule).needs_file)
}

/// Returns true if a rule of the catalogue can match a node of one of some kinds.
pub(super) fn may_match(index: u16, language: TreeLanguage, kinds: &NodeKinds) -> bool {
    in_language(index, language)
        .is_some_and(|(rule, own)| own.outline(rule).kind.is_none_or(|kind| kinds.has(kind)))
}

/// Returns a rule of the catalogue for a language. `None`: it is not a structural rule, or does not
/// name the language.
pub(super) fn of_catalogue(index: u16, language: TreeLanguage) -> Option<&'static StructuralRule> {
    let (rule, own) = in_language(index, language)?;
    // A test compiles every rule for each of its languages.
    own.compiled
        .get_or_init(|| StructuralRule::of_catalogue(rule, language).ok())
        .as_ref()
}

impl CatalogueRule {
    fn new(language: TreeLanguage) -> Self {
        Self {
            language,
            outline: OnceLock::new(),
            compiled: OnceLock::new(),
        }
    }

    fn outline(&self, rule: &Rule) -> RuleOutline {
        *self.outline.get_or_init(|| RuleOutline {
            kind: required_kind(&rule.tree)
                .map(|kind| self.language.grammar().id_for_node_kind(kind, true)),
            needs_file: SURROUNDINGS.iter().any(|kind| rule_names(&rule.tree, kind)),
        })
    }
}

/// Returns the kind that a node must have for the YAML of a rule to match it. `None`: the YAML does
/// not begin with a single kind.
fn required_kind(yaml: &str) -> Option<&str> {
    let block = yaml.trim_start().strip_prefix("rule:\n")?;
    block
        .lines()
        .take_while(|line| line.is_empty() || line.starts_with(' '))
        .find_map(|line| line.strip_prefix("  kind: "))
        .map(str::trim)
        .filter(|kind| kind.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'))
}

/// Returns an error and its causes on one line, in lower case as fragments of error messages are.
fn causes(error: &dyn std::error::Error) -> String {
    let mut texts = Vec::new();
    // The outermost error states only the file that has the cause.
    let mut next = error.source().or(Some(error));
    while let Some(e) = next {
        let text = e.to_string();
        texts.push(
            text.lines()
                .next()
                .unwrap_or_default()
                .trim_end_matches('.')
                .to_owned(),
        );
        next = e.source();
    }
    let text = texts.join(": ");
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(chars).collect()
    })
}

#[cfg(test)]
mod tests;
