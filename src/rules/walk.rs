//! Runs patterns over text: the prefilter finds literals, and only then a rule's expression is
//! matched against the line.
//!
//! A long line is searched in windows around the literals, so that the work is linear for any
//! content.

use super::catalog::{Filter, Matcher, Rule, RuleFix, TextList};
use super::check;
use super::expression::{Expression, compile};
use super::needs::Lowered;
use super::secret::{SecretCandidate, published};
use super::{MARK, RuleSet};
use regex::bytes::Regex;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;

/// Bytes of a line that is searched as a whole, at most.
const LONG: usize = 16 * 1024;
/// Bytes before and after a literal that are searched in a longer line.
const BEFORE: usize = 1024;
const AFTER: usize = LONG - BEFORE;
/// A literal at this distance before the end of a window needs no window of its own.
const COVERED: usize = 4096;
/// Bytes of a line before and after a match that checks read, at most. They read them for every
/// match, so this bounds the work on a line full of matches.
const CHECKED: usize = 512;
/// Bytes after that part of a line that checks read, at most: four times the body of an RSA key of
/// 16,384 bits. A check that reads them for every match stops at the next match.
const FOLLOWING: usize = 64 << 10;

/// A rule's patterns, each compiled on first use.
#[derive(Debug)]
pub(super) struct RulePatterns {
    pub(super) pattern: Expression,
    /// The number of the group `secret`.
    pub(super) secret: Option<usize>,
    not: Several,
    has: Several,
    lacks: Several,
    harmless: Several,
    guards: Several,
    weak_if: Several,
    near_has: Several,
    near_lacks: Several,
    fixes: Cow<'static, [RuleFix]>,
    compiled_fixes: OnceLock<Vec<Option<Regex>>>,
}

/// Patterns that are compiled together.
#[derive(Debug)]
struct Several {
    patterns: TextList,
    lines: bool,
    compiled: OnceLock<Vec<Expression>>,
}

impl Several {
    fn new(patterns: &TextList, lines: bool) -> Self {
        Self {
            patterns: patterns.clone(),
            lines,
            compiled: OnceLock::new(),
        }
    }

    fn all(&self) -> &[Expression] {
        self.compiled.get_or_init(|| {
            self.patterns
                .iter()
                .filter_map(|p| Expression::new(p, self.lines))
                .collect()
        })
    }
}

impl RulePatterns {
    /// Returns a rule's patterns. `None`: its first pattern is invalid.
    pub(super) fn of(rule: &Rule) -> Option<Self> {
        let pattern = Expression::new(&rule.pattern, false)?;
        Some(Self {
            secret: pattern.group("secret"),
            not: Several::new(&rule.not_pattern, false),
            has: Several::new(&rule.file_has, true),
            lacks: Several::new(&rule.file_lacks, true),
            harmless: Several::new(&rule.harmless, false),
            guards: Several::new(&rule.guarded_by, false),
            weak_if: Several::new(&rule.weak_if, false),
            near_has: Several::new(&rule.near_has, true),
            near_lacks: Several::new(&rule.near_lacks, true),
            fixes: rule.fixes.clone(),
            compiled_fixes: OnceLock::new(),
            pattern,
        })
    }

    /// Compiles a rule's patterns only to validate them. The error names the key.
    pub(super) fn check(rule: &Rule) -> Result<(), (&'static str, regex::Error)> {
        compile(&rule.pattern, false).map_err(|e| ("pattern", e))?;
        for (key, list, lines) in [
            ("not_pattern", &rule.not_pattern, false),
            ("file_has", &rule.file_has, true),
            ("file_lacks", &rule.file_lacks, true),
            ("harmless", &rule.harmless, false),
            ("guarded_by", &rule.guarded_by, false),
            ("weak_if", &rule.weak_if, false),
            ("near_has", &rule.near_has, true),
            ("near_lacks", &rule.near_lacks, true),
        ] {
            for pattern in list.iter() {
                compile(pattern, lines).map_err(|e| (key, e))?;
            }
        }
        for fix in rule.fixes.iter() {
            compile(&fix.find, true).map_err(|e| ("fix", e))?;
        }
        Ok(())
    }

    /// Returns the lines after all fixes of the rule, applied in order. Line ends are `\n`.
    pub(super) fn fixed(&self, lines: &[u8]) -> Vec<u8> {
        let compiled = self.compiled_fixes.get_or_init(|| {
            self.fixes
                .iter()
                .map(|f| compile(&f.find, true).ok())
                .collect()
        });
        let all = compiled
            .iter()
            .zip(self.fixes.iter())
            .filter_map(|(find, fix)| Some((find.as_ref()?, fix)));
        all.fold(lines.to_vec(), |lines, (find, fix)| {
            find.replace_all(&lines, fix.replace.as_bytes())
                .into_owned()
        })
    }

    /// Returns true if one of the rule's excluding patterns matches a text.
    fn refuses(&self, text: &[u8]) -> bool {
        self.not.all().iter().any(|n| n.is_match(text))
    }

    /// Returns true if the rule's conditions on the whole file hold.
    pub(super) fn file_fits(&self, whole: Option<&[u8]>) -> bool {
        whole.is_none_or(|text| {
            let text = text.strip_prefix(MARK).unwrap_or(text);
            self.has_all(text) && !self.lacks.all().iter().any(|r| r.is_match(text))
        })
    }

    /// Returns true if the rule would apply to the file, except for a property that makes its
    /// matches harmless there.
    pub(super) fn file_spares(&self, whole: Option<&[u8]>) -> bool {
        whole.is_some_and(|text| {
            let text = text.strip_prefix(MARK).unwrap_or(text);
            self.has_all(text) && self.lacks.all().iter().any(|r| r.is_match(text))
        })
    }

    /// Returns a text with every harmless value replaced by zeros, byte for byte. `None`: it has
    /// none.
    fn blanked(&self, text: &[u8]) -> Option<Vec<u8>> {
        let mut out: Option<Vec<u8>> = None;
        for expression in self.harmless.all() {
            let mut from = 0;
            while let Some(found) = expression.find_at(text, from) {
                out.get_or_insert_with(|| text.to_vec())[found.clone()].fill(b'0');
                from = found.end.max(from + 1);
                if from > text.len() {
                    break;
                }
            }
        }
        out
    }

    /// Returns true if the rule judges matches by the lines above.
    pub(super) fn judges_lines_above(&self) -> bool {
        !self.guards.patterns.is_empty()
    }

    /// Returns true if the lines above a match make it harmless.
    pub(super) fn is_guarded(&self, above: &[u8]) -> bool {
        self.guards.all().iter().any(|r| r.is_match(above))
    }

    /// Returns true if the rule judges matches by the conditions around them.
    pub(super) fn judges_conditions(&self) -> bool {
        !self.weak_if.patterns.is_empty()
    }

    /// Returns true if a condition around a match makes it a suggestion.
    pub(super) fn is_weak_if(&self, condition: &[u8]) -> bool {
        self.weak_if.all().iter().any(|r| r.is_match(condition))
    }

    /// Returns true if the rule judges matches by the block around them.
    pub(super) fn judges_block(&self) -> bool {
        !(self.near_has.patterns.is_empty() && self.near_lacks.patterns.is_empty())
    }

    /// Returns true if the block around a match makes it a finding.
    pub(super) fn block_fits(&self, block: &[u8]) -> bool {
        self.near_has.all().iter().all(|r| r.is_match(block)) && !self.block_spares(block)
    }

    /// Returns true if the block around a match has what makes the match harmless.
    pub(super) fn block_spares(&self, block: &[u8]) -> bool {
        self.near_lacks.all().iter().any(|r| r.is_match(block))
    }

    fn has_all(&self, text: &[u8]) -> bool {
        self.has.all().iter().all(|r| r.is_match(text))
    }
}

/// A match of a rule. Ranges are bytes of the searched text.
#[derive(Clone, Debug)]
pub(super) struct Match {
    pub(super) rule: u16,
    /// The line without its line end.
    pub(super) line: Range<usize>,
    /// Lines before this one.
    pub(super) line_index: u32,
    pub(super) span: Range<usize>,
    /// The group `secret`, or the whole match.
    pub(super) secret: Range<usize>,
}

/// Selects rules and receives matches.
pub(super) trait Visitor {
    /// Returns true if a rule applies to this text. Called at every literal, so it must be fast.
    fn accepts(&mut self, rule: u16) -> bool;
    /// Receives a rule whose pattern matches, before its conditions and checks. Returns false if the
    /// rest of the search is not needed.
    fn matched(&mut self, _rule: u16) -> bool {
        true
    }
    /// Receives a match, and returns true if it counts. A match that counts ends a rule's search of
    /// the line, unless the rule finds secrets.
    fn found(&mut self, found: &Match) -> bool;
    /// Receives a match that the rule does not report because of other text on the line.
    fn spared(&mut self, _found: &Match) {}
    /// Returns the part of a line that can make a match harmless: its statement, without comments.
    fn statement(&mut self, line: Range<usize>, _span: &Range<usize>) -> Range<usize> {
        line
    }
    /// Receives a line with a literal of a rule whose matcher is code.
    fn literal(&mut self, _rule: u16, _line: Range<usize>, _line_index: u32) {}
}

/// State of a rule during a walk.
#[derive(Clone, Copy, Debug)]
struct RuleWalk {
    /// Start of the line that was searched last.
    line: usize,
    /// End of the searched part of the line.
    until: usize,
    /// End of the last match in the line.
    matched: usize,
    /// True if a match in this line counted, and one suffices.
    done: bool,
}

impl RuleWalk {
    /// No line was searched.
    const NOT: Self = Self {
        line: usize::MAX,
        until: 0,
        matched: 0,
        done: false,
    };
}

/// Memory that walks reuse.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// By rule. Empty until the first literal.
    seen: Vec<RuleWalk>,
    /// The rules that the current walk has evaluated.
    touched: Vec<u16>,
    /// The window that the current walk searched last.
    lowered: Lowered,
}

/// A text to search, and the text after it in its file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hay<'a> {
    /// The text, followed by the unchanged part of the file, which checks may read.
    all: &'a [u8],
    /// Bytes of the text.
    length: usize,
    path: &'a [u8],
}

impl<'a> Hay<'a> {
    /// Returns a text without following text. `path` is empty if it is unknown.
    pub(super) fn whole(text: &'a [u8], path: &'a [u8]) -> Self {
        Self {
            all: text,
            length: text.len(),
            path,
        }
    }

    /// Returns the first `length` bytes of a text.
    pub(super) fn start_of(all: &'a [u8], length: usize, path: &'a [u8]) -> Self {
        Self {
            all,
            length: length.min(all.len()),
            path,
        }
    }
}

/// Searches a text with one filter.
pub(super) fn walk(
    rules: &RuleSet,
    filter: &Filter<'_>,
    hay: Hay<'_>,
    scratch: &mut Scratch,
    visitor: &mut impl Visitor,
) {
    for rule in scratch.touched.drain(..) {
        scratch.seen[usize::from(rule)] = RuleWalk::NOT;
    }
    scratch.lowered = Lowered::default();
    let text = &hay.all[..hay.length];
    let mut walk = LineWalk {
        rules,
        hay,
        text,
        scratch,
        line: 0..0,
        line_end: 0,
        indented: 0,
        line_index: 0,
        counted: 0,
    };
    filter.prefilter.scan(text, |literal, at| {
        for rule in filter.users[usize::from(literal)] {
            if visitor.accepts(*rule) {
                let length = filter.prefilter.literals[usize::from(literal)].len();
                walk.hit(*rule, at..at + length, visitor);
            }
        }
    });
}

struct LineWalk<'a> {
    rules: &'a RuleSet,
    hay: Hay<'a>,
    text: &'a [u8],
    scratch: &'a mut Scratch,
    /// The current line without its line end, and the start of the next one.
    line: Range<usize>,
    line_end: usize,
    /// The end of the blanks that a long line starts with; the start of other lines.
    indented: usize,
    /// Number of line feeds before the line, all within the first `counted` bytes.
    line_index: u32,
    counted: usize,
}

impl LineWalk<'_> {
    fn hit(&mut self, index: u16, at: Range<usize>, visitor: &mut impl Visitor) {
        self.go_to_line(at.start);
        if self.scratch.seen.is_empty() {
            self.scratch.seen = vec![RuleWalk::NOT; self.rules.len()];
        }
        let seen = &mut self.scratch.seen[usize::from(index)];
        if seen.line != self.line.start {
            if seen.line == RuleWalk::NOT.line {
                self.scratch.touched.push(index);
            }
            *seen = RuleWalk {
                line: self.line.start,
                until: self.line.start,
                matched: self.line.start,
                done: false,
            };
        } else if seen.done || at.end + COVERED <= seen.until || seen.until >= self.line.end {
            return;
        }
        let rule = self.rules.rule(index);
        if rule.matcher != Matcher::Pattern {
            seen.until = self.line.end;
            visitor.literal(index, self.line.clone(), self.line_index);
            return;
        }
        let window = if self.line.len() <= LONG {
            self.line.clone()
        } else {
            at.start.saturating_sub(BEFORE).max(self.line.start)
                ..(at.start + AFTER).min(self.line.end)
        };
        seen.until = window.end;
        let near = &self.text[window.clone()];
        let has_sign = rule
            .line_has
            .iter()
            .any(|s| memchr::memmem::find(near, s.as_bytes()).is_some());
        if !rule.line_has.is_empty() && !has_sign {
            return;
        }
        if !self.scratch.lowered.meets(rule.needs, self.text, &window) {
            return;
        }
        let Some(compiled) = self.rules.compiled(index) else {
            return;
        };
        self.search(index, rule, compiled, window, visitor);
    }

    /// Makes the line that contains `at` the current one.
    fn go_to_line(&mut self, at: usize) {
        if at < self.line_end {
            return;
        }
        let from = self.line_end;
        let start =
            memchr::memrchr2(b'\n', b'\r', &self.text[from..at]).map_or(from, |i| from + i + 1);
        self.line_index +=
            memchr::memchr_iter(b'\n', &self.text[self.counted..start]).count() as u32;
        self.counted = start;
        // Many languages end a line at a single carriage return, so text before one cannot hide
        // text after it. Line numbers count line feeds, as git does.
        let end =
            memchr::memchr2(b'\n', b'\r', &self.text[at..]).map_or(self.text.len(), |i| at + i);
        let length = if self.text[end..].starts_with(b"\r\n") {
            2
        } else {
            1
        };
        self.line = start..end;
        self.indented = start;
        if self.line.len() > LONG {
            if start == 0 && self.text.starts_with(MARK) {
                self.indented = MARK.len();
            }
            self.indented += self.text[self.indented..end]
                .iter()
                .take_while(|b| b.is_ascii_whitespace())
                .count();
        }
        self.line_end = (end + length).min(self.text.len());
    }

    fn search(
        &mut self,
        index: u16,
        rule: &Rule,
        compiled: &RulePatterns,
        window: Range<usize>,
        visitor: &mut impl Visitor,
    ) {
        // One byte before the window gives `^` and `\b` their context.
        let base = match window.start.saturating_sub(1).max(self.line.start) {
            // The text below an indentation starts a line.
            _ if window.start > self.line.start && window.start <= self.indented => window.start,
            0 if self.text.starts_with(MARK) => MARK.len().min(window.end),
            base => base,
        };
        let mut hay = &self.text[base..window.end];
        let mut from = window
            .start
            .max(self.scratch.seen[usize::from(index)].matched)
            .saturating_sub(base);
        let mut blanked = None;
        if !rule.harmless.is_empty() && compiled.pattern.find_at(hay, from).is_some() {
            blanked = compiled.blanked(hay);
        }
        hay = blanked.as_deref().unwrap_or(hay);
        // The statement that was judged last. A long one with many matches is judged once.
        let mut judged: Option<(Range<usize>, bool)> = None;
        loop {
            let found = compiled.pattern.find_at(hay, from);
            let Some(found) = found else { return };
            if !visitor.matched(index) {
                return;
            }
            let span = base + found.start..base + found.end;
            from = if found.is_empty() {
                found.end + 1
            } else {
                found.end
            };
            if !rule.secret && !compiled.not.patterns.is_empty() {
                let statement = visitor.statement(base..window.end, &span);
                let known = judged.take().filter(|(of, _)| *of == statement);
                let refused = known.map_or_else(
                    || compiled.refuses(&self.text[statement.clone()]),
                    |(_, refused)| refused,
                );
                judged = Some((statement, refused));
                if refused {
                    if from > hay.len() {
                        return;
                    }
                    continue;
                }
            }
            // If the window cuts a long line, a match at the cut may be incomplete or invalid.
            if span.end == window.end && window.end < self.line.end && span.len() < AFTER / 4 {
                return;
            }
            // Groups are searched only after a match, because most lines have none.
            let group = compiled
                .secret
                .and_then(|g| compiled.pattern.group_at(hay, span.start - base, g));
            let secret = group.map_or(span.clone(), |g| base + g.start..base + g.end);
            let value = &self.text[secret.clone()];
            let refused =
                rule.secret && (compiled.refuses(value) || published::is_published(value));
            let found = Match {
                rule: index,
                line: self.line.clone(),
                line_index: self.line_index,
                span,
                secret,
            };
            let near = self.near(&found.secret, &(base..window.end));
            if refused {
                if self.holds(rule, near, &found) {
                    visitor.spared(&found);
                }
            } else if self.holds(rule, near, &found) && visitor.found(&found) {
                let seen = &mut self.scratch.seen[usize::from(index)];
                seen.matched = found.span.end;
                if !rule.secret {
                    seen.done = true;
                    return;
                }
            }
            if from > hay.len() {
                return;
            }
        }
    }

    /// Returns the part of a window that checks of a match read. Inside of the line, it starts at a
    /// word, so that no check reads its first characters as the start of a comment line.
    fn near(&self, secret: &Range<usize>, window: &Range<usize>) -> Range<usize> {
        let mut start = secret.start.saturating_sub(CHECKED).max(window.start);
        if start > window.start {
            let word = self.text[start..secret.start]
                .iter()
                .position(u8::is_ascii_alphanumeric);
            start = word.map_or(secret.start, |i| start + i);
        }
        start..secret.end.saturating_add(CHECKED).min(window.end)
    }

    /// Returns true if a match passes the rule's checks, which read the part of the line in `near`.
    fn holds(&self, rule: &Rule, near: Range<usize>, found: &Match) -> bool {
        // Blanks after a header must not prevent checks from reading the body of a key.
        let rest = self.hay.all[near.end..].trim_ascii_start();
        let start = self.hay.all.len() - rest.len();
        let start = if rest.is_empty() { near.end } else { start };
        let after = start..start.saturating_add(FOLLOWING).min(self.hay.all.len());
        let candidate = SecretCandidate {
            secret: &self.text[found.secret.clone()],
            line: &self.text[near.clone()],
            at: found.secret.start - near.start,
            after: &self.hay.all[after],
            path: self.hay.path,
        };
        rule.checks.iter().all(|c| check::passes(c, &candidate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::RulesPolicy;
    use crate::rules::catalog::{FILTER, RULES};

    struct Count {
        rule: u16,
        matches: usize,
    }
    impl Visitor for Count {
        fn accepts(&mut self, rule: u16) -> bool {
            rule == self.rule
        }
        fn found(&mut self, _found: &Match) -> bool {
            self.matches += 1;
            true
        }
    }

    /// Counts the matches of a rule of the team in a text.
    fn count(pattern: &str, not_pattern: &str, text: &[u8]) -> usize {
        let team = format!(
            "[[rule]]\nid = \"needle\"\ntitle = \"t\"\ncategory = \"bug\"\nseverity = \"major\"\n\
             literals = [\"needle\"]\npattern = '{pattern}'\n{not_pattern}\nsecret = true\nmessage = \"m\"\n"
        );
        let rules = RuleSet::new(&RulesPolicy::default(), &[("t.toml".to_owned(), team)]).unwrap();
        let mut count = Count {
            rule: RULES.len() as u16,
            matches: 0,
        };
        rules.team.with_filter(|f| {
            walk(
                &rules,
                f,
                Hay::whole(text, b""),
                &mut Scratch::default(),
                &mut count,
            );
        });
        count.matches
    }

    #[test]
    fn hid_07_every_match_of_a_line_is_tried_however_many_there_are() {
        for (before, length) in [(300, 10), (5_000, 10), (40_000, 10), (300, 40_000)] {
            // Only the last match passes the check.
            let text = "needle=aaaaaaaa ".repeat(before) + &" ".repeat(length) + "needle=a8Kx2Lq9";
            let checks = "checks = [\"entropy:2.5\"]";
            assert_eq!(
                count("needle=(?P<secret>[a-zA-Z0-9]{8})", checks, text.as_bytes()),
                1,
                "{before} {length}"
            );
            let all = "needle=a8Kx2Lq9 ".repeat(before);
            assert_eq!(
                count("needle=(?P<secret>[a-zA-Z0-9]{8})", checks, all.as_bytes()),
                before
            );
        }
    }

    /// Without optimization, work that is worse than linear takes minutes here.
    #[test]
    fn dif_16_no_rule_is_slow_on_a_line_full_of_its_literals() {
        let rules = RuleSet::new(&RulesPolicy::default(), &[]).unwrap();
        for (literal, users) in FILTER.prefilter.literals.iter().zip(FILTER.users) {
            for rule in users
                .iter()
                .copied()
                .filter(|r| RULES[usize::from(*r)].matcher == Matcher::Pattern)
            {
                let line = [*literal, b"aaaa \"'=(1"]
                    .concat()
                    .repeat(8_000 / (literal.len() + 10));
                let started = std::time::Instant::now();
                let mut count = Count { rule, matches: 0 };
                walk(
                    &rules,
                    &FILTER,
                    Hay::whole(&line, b""),
                    &mut Scratch::default(),
                    &mut count,
                );
                let id = &RULES[usize::from(rule)].id;
                assert!(
                    started.elapsed().as_secs() < 10,
                    "{id} took {:?}",
                    started.elapsed()
                );
            }
        }
    }

    #[test]
    #[expect(clippy::single_range_in_vec_init, reason = "one range is meant")]
    fn a_match_far_into_a_long_line_is_found_where_it_stands() {
        let team = r#"
            [[rule]]
            id = "needle"
            title = "t"
            category = "bug"
            severity = "major"
            literals = ["needle"]
            pattern = '\bneedle[0-9]+$'
            secret = true
            message = "m"
        "#;
        let rules = RuleSet::new(
            &RulesPolicy::default(),
            &[("t.toml".to_owned(), team.to_owned())],
        )
        .unwrap();
        struct FoundSpans(Vec<Range<usize>>);
        impl Visitor for FoundSpans {
            fn accepts(&mut self, _rule: u16) -> bool {
                true
            }
            fn found(&mut self, found: &Match) -> bool {
                self.0.push(found.span.clone());
                true
            }
        }
        let search = |text: &[u8]| {
            let mut at = FoundSpans(Vec::new());
            rules.team.with_filter(|f| {
                walk(
                    &rules,
                    f,
                    Hay::whole(text, b""),
                    &mut Scratch::default(),
                    &mut at,
                );
            });
            at.0
        };
        assert_eq!(search(b"xneedle1\nneedle2\r\n"), [9..16]);
        assert_eq!(search(b"needle1\rxneedle2\r\r\nneedle3\r"), [0..7, 19..26]);
        // A byte order mark before the first line is not part of it.
        assert_eq!(
            search("\u{feff}needle1\n\u{feff}xneedle1".as_bytes()),
            [3..10]
        );
        assert!(search("\u{feff}".as_bytes()).is_empty());
        // The end of a window is not the end of a line.
        let long = ["needle1 ".repeat(40_000).into_bytes(), b"needle23".to_vec()].concat();
        assert_eq!(search(&long), [320_000..320_008]);
    }
}
