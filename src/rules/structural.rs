//! Structural rules of a team: ast-grep's YAML, matched on the syntax tree.
//!
//! The libraries of ast-grep parse a rule and match it (<https://ast-grep.github.io/reference/yaml.html>). Which matches are
//! findings is decided in `scan/structural`.

mod file;
mod language;

pub(super) use file::{is_structural, parse};
pub(super) use language::TreeLanguage;

use ast_grep_config::{Fixer, GlobalRules, RuleConfig, SerializableRuleConfig};
use ast_grep_core::replacer::Replacer as _;
use ast_grep_core::tree_sitter::StrDoc;
use ast_grep_core::{AstGrep, NodeMatch};
use std::fmt;
use std::ops::Range;

/// Files with more bytes are not parsed.
const MAX_BYTES: usize = 1 << 20;

/// Matches of one rule in one file that are read.
const MAX_MATCHES: usize = 1000;

/// A structural rule that can be matched.
pub(super) struct StructuralRule {
    config: RuleConfig<TreeLanguage>,
}

impl fmt::Debug for StructuralRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StructuralRule").field("id", &self.config.id).finish_non_exhaustive()
    }
}

/// A text with its syntax tree.
pub(super) struct Parsed {
    tree: AstGrep<StrDoc<TreeLanguage>>,
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

impl Parsed {
    /// Parses a text. `None`: it is too large.
    pub(super) fn new(text: &str, language: TreeLanguage) -> Option<Self> {
        let parse = |text| StrDoc::try_new(text, language).ok();
        let doc = Some(text).filter(|t| t.len() <= MAX_BYTES).and_then(parse)?;
        Some(Self { tree: AstGrep::doc(doc) })
    }
}

impl StructuralRule {
    /// Compiles a rule.
    ///
    /// # Errors
    ///
    /// A lower-case text with the cause: a pattern that does not parse, an unknown kind of nodes, an undefined variable.
    pub(super) fn new(config: SerializableRuleConfig<TreeLanguage>) -> Result<Self, String> {
        match RuleConfig::try_from(config, &GlobalRules::default()) {
            Ok(config) => Ok(Self { config }),
            Err(e) => Err(causes(&e)),
        }
    }

    pub(super) fn language(&self) -> TreeLanguage {
        self.config.language
    }

    /// Returns the matches in order of their starts.
    pub(super) fn find(&self, parsed: &Parsed) -> Vec<StructuralMatch> {
        let root = parsed.tree.root();
        root.find_all(&self.config.matcher).take(MAX_MATCHES).map(|node| self.matched(parsed, &node)).collect()
    }

    fn matched(&self, parsed: &Parsed, node: &NodeMatch<'_, StrDoc<TreeLanguage>>) -> StructuralMatch {
        let range = node.range();
        let text = parsed.tree.source().get(range.clone()).unwrap_or_default();
        let start = range.start + (text.len() - text.trim_start().len());
        let fix = self.config.fixer.first().map(|fixer| self.replaced(fixer, node));
        StructuralMatch { range: start..start + text.trim().len(), message: self.config.get_message(node), fix }
    }

    fn replaced(&self, fixer: &Fixer, node: &NodeMatch<'_, StrDoc<TreeLanguage>>) -> (Range<usize>, String) {
        let range = fixer.get_replaced_range(node, &self.config.matcher);
        (range, String::from_utf8_lossy(&fixer.generate_replacement(node)).into_owned())
    }
}

/// Returns an error and its causes on one line, in lower case as fragments of error messages are.
fn causes(error: &dyn std::error::Error) -> String {
    let mut texts = Vec::new();
    // The outermost error only says which file has the cause.
    let mut next = error.source().or(Some(error));
    while let Some(e) = next {
        let text = e.to_string();
        texts.push(text.lines().next().unwrap_or_default().trim_end_matches('.').to_owned());
        next = e.source();
    }
    let text = texts.join(": ");
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

#[cfg(test)]
mod tests;
