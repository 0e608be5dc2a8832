//! Scans one file: selects the rules that apply, finds their matches, and reports or drops each
//! match.

mod condition;
mod copied;
mod hidden;
mod inline_tests;
mod matches;

use super::catalog::{self, FILTER, Matcher};
use super::language::Languages;
use super::lexer::{Place, Readings};
use super::origin::Origins;
use super::parse::Parse;
use super::prose::{self, Purpose};
use super::report::{self, Reporter, Rest};
use super::role::{self, FileRole};
use super::secret::overlap::Spared;
use super::section::Outline;
use super::suppress::Counting;
use super::walk::{self, Hay, Match, Scratch, Visitor};
use super::{
    RuleSet, Scope, blob, block, bundle, change, glob, markers, markup, migration, secret, settings,
};
use crate::diff::{Body, FileChange, LineBlock, LineNo, TextChange};
use crate::finding::listing::{Counted, Floor};
use crate::finding::{Category, Finding, Severity};
use flow::Followed;
use matches::{RuleHit, offsets};
use statement::KnownStatement;
use std::cell::OnceCell;
use std::collections::HashSet;
use std::ops::Range;

pub(super) mod flow;
pub(super) mod join;
mod known;
mod layout;
mod place;
mod stand_in;
mod statement;
mod structural;

/// Scans a changed file in every reading of its bytes. Returns the rest: the findings that are
/// counted but not listed.
pub(super) fn file(
    rules: &RuleSet,
    file: &FileChange,
    scope: Scope,
    counting: Counting,
    floor: &Floor,
    out: &mut Vec<Finding>,
) -> Rest {
    let from = out.len();
    let mut rest = reading(
        rules,
        file,
        Pass {
            scope,
            is_first: true,
        },
        counting,
        floor,
        out,
    );
    let of_blob = blob::scan(rules, file, counting, floor, out);
    rest.by_rule.extend(of_blob.by_rule);
    rest.counted.extend(of_blob.counted);
    for text in file
        .text()
        .map(TextChange::further_readings)
        .unwrap_or_default()
    {
        let other = FileChange {
            entry: file.entry.clone(),
            body: Body::Text(text.into_owned()),
        };
        let mut found = Vec::new();
        let mut more = reading(
            rules,
            &other,
            Pass {
                scope,
                is_first: false,
            },
            counting,
            floor,
            &mut found,
        );
        more.by_rule
            .retain(|m| rest.by_rule.iter().all(|u| u.rule != m.rule));
        rest.by_rule.extend(more.by_rule);
        let mut known: HashSet<u64> = out[from..]
            .iter()
            .map(|f| Counted::of(f).on_line())
            .collect();
        known.extend(rest.counted.iter().map(Counted::on_line));
        found.retain(|f| !Counted::line_keys(f).any(|key| known.contains(&key)));
        rest.counted.extend(
            more.counted
                .into_iter()
                .filter(|c| !known.contains(&c.on_line())),
        );
        out.extend(found);
    }
    layout::drop_laid_out(rules, file, floor, out, from);
    known::lower(rules, file, floor, out, from);
    join::same_flaws(rules, out, from);
    rest
}

/// One pass over a file.
#[derive(Clone, Copy)]
struct Pass {
    scope: Scope,
    /// The text is that of the file itself. In a further reading, only patterns are searched.
    is_first: bool,
}

/// Scans one reading of a file.
fn reading(
    rules: &RuleSet,
    file: &FileChange,
    pass: Pass,
    counting: Counting,
    floor: &Floor,
    out: &mut Vec<Finding>,
) -> Rest {
    let Pass { scope, is_first } = pass;
    let mut scan = FileScan {
        file,
        scope,
        is_first,
        role: None,
        is_bundle: None,
        is_served: None,
        is_library: None,
        was_minified: None,
        inline_tests: None,
        purpose: None,
        fits: Vec::new(),
        doubts: Vec::new(),
        block: LineBlock {
            first: LineNo::FIRST,
            text: b"",
        },
        statement: None,
        run: None,
        secrets: Vec::new(),
        spared: Vec::new(),
        added: None,
        sets: None,
        placed: None,
        parse: None,
        is_tree_partial: false,
        is_followed: None,
        reaching: OnceCell::new(),
        is_foreign: None,
        conditions: condition::ConditionReader::default(),
        texts_read: 0,
        reporter: Reporter::new(rules, Some(file), out)
            .counting(counting)
            .above(floor),
    };
    let from = scan.reporter.count();
    let mut followed = Followed::Not;
    if let Some(text) = file.text() {
        scan.lines(text);
        if scope == Scope::All && is_first {
            followed = scan.flows(text);
        }
    }
    if scope == Scope::All && is_first {
        change::scan(file, &mut scan.reporter);
        migration::scan(file, &mut scan.reporter);
        markup::scan(file, &mut scan.reporter);
        settings::scan(file, &mut scan.reporter);
    }
    let is_tree_partial = scan.is_tree_partial;
    let rest = scan.reporter.rest();
    // A flow that is not listed proves as much as a listed one.
    let mut unlisted = rest
        .by_rule
        .iter()
        .filter_map(|unlisted| rules.index_of(&unlisted.rule));
    let is_listed = !unlisted.any(|i| rules.rule(i).matcher == Matcher::Flow);
    if let Followed::Whole(judged) = &followed
        && is_listed
    {
        join::trust_flows(rules, judged, &mut out[from..]);
    }
    Rest {
        is_flow_partial: followed == Followed::Partly,
        is_tree_partial,
        ..rest
    }
}

/// The fit of a rule to this file, as evaluated so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RuleFit {
    Unknown,
    /// Language, path and scope fit. The conditions on the whole file are not evaluated yet.
    FitsPath,
    /// The conditions on the whole file fit too: the rule reports its matches.
    Reports,
    /// The rule applies, but its matches in this file are harmless.
    Spares,
    /// A structural rule with a literal near the added lines: it is matched on the tree.
    Structural,
    Not,
}

/// Detail in the report of text that was found by decoding.
const ENCODED: &str = "it is written in an encoding";

/// An unbroken part of the text, and the results of its analysis so far.
struct TextRun<'a> {
    text: &'a [u8],
    readings: Readings<'a>,
    origins: Origins<'a>,
    /// Blocks of the run, by the languages of the rules that requested them.
    outlines: Vec<(Languages, Outline)>,
    /// Whether the run is an OpenAPI document, once that is known.
    is_api_document: Option<bool>,
    /// Secrets for which the keys above them in the document were read.
    examples_asked: u32,
    /// Bytes of the blocks around secrets that were read so far.
    blocks_read: usize,
}

impl TextRun<'_> {
    /// Returns the blocks of the run as rules for these languages read it.
    fn outline(&mut self, languages: Languages, of_file: Languages) -> &mut Outline {
        let at = self
            .outlines
            .iter()
            .position(|(known, _)| *known == languages)
            .unwrap_or_else(|| {
                let outline = Outline::new(self.text, &mut self.readings, languages, of_file);
                self.outlines.push((languages, outline));
                self.outlines.len() - 1
            });
        &mut self.outlines[at].1
    }
}

struct FileScan<'a> {
    file: &'a FileChange,
    scope: Scope,
    is_first: bool,
    role: Option<FileRole>,
    is_bundle: Option<bool>,
    /// Whether a bundler wrote the script for a web server; `None` until a matcher asks.
    is_served: Option<bool>,
    /// Whether the script is a copied library that a web server sends; `None` until a rule asks.
    is_library: Option<bool>,
    /// Whether the script is minified and was before; `None` until a rule asks.
    was_minified: Option<bool>,
    /// Lines of the modules of tests in a file of Rust.
    inline_tests: Option<Vec<Range<u32>>>,
    purpose: Option<Purpose>,
    /// Fit by rule. Empty until the first literal is found.
    fits: Vec<RuleFit>,
    /// Whether the path casts doubt on the results of a rule, by rule; `None` until that is needed.
    doubts: Vec<Option<bool>>,
    block: LineBlock<'a>,
    /// The statement of the match that was judged last.
    statement: Option<KnownStatement>,
    /// Run that contains the block, and the offset of the block in it, computed on first use.
    run: Option<(TextRun<'a>, usize)>,
    /// Secrets of the block, reported when all of them are known. Of several rules that match one
    /// text, the most knowledgeable one reports it.
    secrets: Vec<RuleHit<'static>>,
    /// Matches in the block that issuer-specific rules do not report.
    spared: Vec<Spared>,
    /// Memory ranges of the blocks of added lines, computed on first use.
    added: Option<Vec<Range<usize>>>,
    /// Conflicts of the current run.
    sets: Option<Vec<Range<usize>>>,
    /// Secrets of the current run that their position identifies, in order.
    placed: Option<Vec<place::Placed>>,
    /// The new file with its tree, if a structural rule needed it.
    parse: Option<Parse<'a>>,
    /// A limit ended the search for matches of structural rules.
    is_tree_partial: bool,
    /// Whether the data of the file is followed, once that is known.
    is_followed: Option<bool>,
    /// The parts of the file through which data can reach its added lines.
    reaching: OnceCell<Option<Vec<Range<usize>>>>,
    /// Whether other people wrote the file, or it is data of tests; `None` until a rule asks.
    is_foreign: Option<bool>,
    /// The conditions around the matches of rules with `weak_if`.
    conditions: condition::ConditionReader,
    /// Texts around literals that were read so far.
    texts_read: u32,
    reporter: Reporter<'a>,
}

impl Visitor for FileScan<'_> {
    /// Returns true if the matches of a rule are searched: also those of a rule that spares them,
    /// because they keep other rules from reporting the same text.
    fn accepts(&mut self, rule: u16) -> bool {
        if self.fits.is_empty() {
            self.fits = vec![RuleFit::Unknown; self.reporter.rules.len()];
        }
        let known = self.fits[usize::from(rule)];
        if known != RuleFit::Unknown {
            return !matches!(known, RuleFit::Not | RuleFit::Structural);
        }
        let fit = self.fit_by_path(rule);
        self.fits[usize::from(rule)] = fit;
        fit != RuleFit::Not
    }

    fn found(&mut self, found: &Match) -> bool {
        let rules = self.reporter.rules;
        let rule = rules.rule(found.rule);
        // A match within one line is found in the original text, and a match without an added line
        // is not new.
        let joined = self.file.text().map(|t| &t.new).filter(|t| t.is_joined());
        if joined.is_some_and(|t| {
            t.joined_lines(&self.block.text[found.span.clone()])
                .is_none()
        }) {
            return false;
        }
        if rule.place != Place::Any {
            // A pattern that starts at the line start includes the indentation, which is code
            // before a comment.
            let text = self.block.text[found.span.clone()].trim_ascii_start();
            if !self.admits(rule, found.span.start)
                && !self.admits(rule, found.span.end.saturating_sub(text.len().max(1)))
            {
                return false;
            }
        }
        if self.is_guarded(found) {
            return false;
        }
        match self.fit_by_content(found.rule) {
            RuleFit::Spares => self.spare(found),
            RuleFit::Reports => {
                if self.block_fits(found) {
                    self.report(RuleHit {
                        rule: found.rule,
                        line: found.line.clone(),
                        line_index: found.line_index,
                        span: found.secret.clone(),
                        detail: None,
                    });
                } else if can_spare(rule) {
                    self.spare(found);
                }
            }
            _ => {}
        }
        true
    }

    fn spared(&mut self, found: &Match) {
        let rules = self.reporter.rules;
        if can_spare(rules.rule(found.rule))
            && matches!(
                self.fit_by_content(found.rule),
                RuleFit::Reports | RuleFit::Spares
            )
        {
            self.spare(found);
        }
    }

    fn statement(&mut self, line: Range<usize>, span: &Range<usize>) -> Range<usize> {
        let (run, offset) = self.run();
        if run.readings.place_at(*offset + span.start) == Place::Comment {
            return line;
        }
        let text = &self.block.text[..line.end];
        let known = self.statement.take().and_then(|s| s.of(&line, span));
        let (run, offset) = self.run();
        let offset = *offset;
        let statement = known.unwrap_or_else(|| {
            statement::around(text, &line, span, |at| run.readings.place_at(offset + at))
        });
        let known = KnownStatement::new(text, line, span, statement.clone(), |at| {
            run.readings.place_at(offset + at)
        });
        self.statement = known;
        statement
    }

    fn literal(&mut self, rule: u16, line: Range<usize>, line_index: u32) {
        match self.reporter.rules.rule(rule).matcher {
            // Joined lines would place the conflict on the line that they start on.
            Matcher::ConflictMarkers if self.file.text().is_none_or(|t| !t.new.is_joined()) => {
                self.conflict(rule, line, line_index);
            }
            Matcher::Structural => {
                let text = self.block.text;
                self.want(rule, text, line);
            }
            _ => {}
        }
    }
}

impl<'a> FileScan<'a> {
    /// Returns the fit of a rule to this file after checking the conditions on the whole file.
    fn fit_by_content(&mut self, rule: u16) -> RuleFit {
        let at = usize::from(rule);
        if self.fits[at] == RuleFit::FitsPath {
            let rules = self.reporter.rules;
            let whole = self.file.text().and_then(|t| t.new.whole());
            let (compiled, rule) = (rules.compiled(rule), rules.rule(rule));
            // A rule that reports a secret at a lower severity than another rule, because of the
            // file, needs the whole file.
            let sees = whole.is_some() || !(rule.secret && rule.severity == Severity::Suggestion);
            self.fits[at] = match compiled {
                Some(c) if c.file_fits(whole) && (sees || rule.file_has.is_empty()) => {
                    RuleFit::Reports
                }
                Some(c) if can_spare(rule) && c.file_spares(whole) => RuleFit::Spares,
                _ => RuleFit::Not,
            };
        }
        self.fits[at]
    }

    /// Returns true if a condition in the lines above makes a match harmless.
    fn is_guarded(&mut self, found: &Match) -> bool {
        const LINES: usize = 6;
        let rules = self.reporter.rules;
        let Some(compiled) = rules
            .compiled(found.rule)
            .filter(|c| c.judges_lines_above())
        else {
            return false;
        };
        let (run, offset) = self.run();
        let text = &run.text[..*offset + found.span.start];
        let start = memchr::memrchr_iter(b'\n', text)
            .nth(LINES)
            .map_or(0, |i| i + 1);
        // Binary data above the code can contain the words of a condition by chance.
        let data = text[start..]
            .iter()
            .rposition(|b| b.is_ascii_control() && !b.is_ascii_whitespace());
        let start = data.map_or(start, |at| start + at + 1);
        let mut above = text[start..].to_vec();
        // Comments do not guard a match of the catalogue. A team can want a comment that explains
        // the exception.
        let is_of_catalogue = rules.is_of_catalogue(found.rule);
        for (at, byte) in above.iter_mut().enumerate() {
            if is_of_catalogue
                && !byte.is_ascii_whitespace()
                && run.readings.is_known_comment(start + at)
            {
                *byte = b' ';
            }
        }
        compiled.is_guarded(&above)
    }

    /// Returns true if the block around a match makes it a finding.
    fn block_fits(&mut self, found: &Match) -> bool {
        let rules = self.reporter.rules;
        let Some(compiled) = rules.compiled(found.rule).filter(|c| c.judges_block()) else {
            return true;
        };
        let of_file = self.reporter.languages();
        let (run, offset) = self.run();
        let value = *offset + found.secret.start..*offset + found.secret.end;
        let rule = rules.rule(found.rule);
        // Most secrets stand in every kind of file, so their block is found without a grammar.
        if rule.secret && !rule.languages.any_of(&["yaml", "terraform"]) {
            let reach = block::reach(run.blocks_read, run.text.len());
            let block = block::without(run.text, &value, reach);
            run.blocks_read += block.len() + reach;
            // A shorter block can lack what makes a match a finding, so it counts as if it had it.
            return if reach < block::REACH {
                !compiled.block_spares(&block)
            } else {
                compiled.block_fits(&block)
            };
        }
        run.outline(rule.languages, of_file)
            .fits(found.rule, value.end.saturating_sub(1), |b| {
                compiled.block_fits(b)
            })
    }

    /// Remembers a match that an issuer-specific rule does not report.
    fn spare(&mut self, found: &Match) {
        self.spared.push((found.line_index, offsets(&found.secret)));
    }

    fn lines(&mut self, text: &'a TextChange) {
        let rules = self.reporter.rules;
        let path = self.file.path().as_bytes();
        let mut scratch = Scratch::default();
        for block in text.added() {
            self.enter(block);
            let hay = match text.new.around(block.text) {
                Some((run, offset)) => Hay::start_of(&run[offset..], block.text.len(), path),
                None => Hay::whole(block.text, path),
            };
            walk::walk(rules, &FILTER, hay, &mut scratch, self);
            rules
                .team
                .with_filter(|f| walk::walk(rules, f, hay, &mut scratch, self));
            if text.new.is_joined() {
                self.report_secrets();
                continue;
            }
            self.decoded(&mut scratch);
            self.report_placed();
            self.joined(&mut scratch);
            self.report_secrets();
            if self.scope == Scope::All && self.is_first {
                self.unicode();
            }
        }
        if self.scope == Scope::All && self.is_first {
            self.is_tree_partial = !self.structural(text);
        }
        // Undecoded bytes already make the review of the file incomplete, which is the stronger
        // result.
        if self.scope == Scope::All
            && self.is_first
            && text.undecoded.is_none()
            && let Some(hidden) = text.hidden
        {
            self.hidden(text, hidden);
        }
    }

    /// Makes a block the current one.
    fn enter(&mut self, block: LineBlock<'a>) {
        self.block = block;
        self.statement = None;
        self.secrets.clear();
        let around = self.file.text().and_then(|t| t.new.around(block.text));
        self.run = match (self.run.take(), around) {
            (Some((run, _)), Some((text, offset))) if std::ptr::eq(run.text, text) => {
                Some((run, offset))
            }
            _ => {
                (self.sets, self.placed) = (None, None);
                None
            }
        };
    }

    /// Returns the run of the current block.
    fn run(&mut self) -> &mut (TextRun<'a>, usize) {
        let languages = self.reporter.languages();
        let (file, block) = (self.file, self.block);
        let is_whole = file.text().is_some_and(|t| t.new.whole().is_some());
        self.run.get_or_insert_with(|| {
            let (text, offset) = file
                .text()
                .and_then(|t| t.new.around(block.text))
                .unwrap_or((block.text, 0));
            let readings = Readings::new(text, languages, is_whole);
            (
                TextRun {
                    text,
                    readings,
                    origins: Origins::new(text, languages),
                    outlines: Vec::new(),
                    is_api_document: None,
                    examples_asked: 0,
                    blocks_read: 0,
                },
                offset,
            )
        })
    }

    /// Returns the lexical position of a byte of the current block.
    fn place(&mut self, at: usize) -> Place {
        let (run, offset) = self.run();
        run.readings.place_at(*offset + at)
    }

    /// Returns true if a match of a rule counts at a byte of the current block, given the lexical
    /// position of that byte.
    fn admits(&mut self, rule: &catalog::Rule, at: usize) -> bool {
        let (run, offset) = self.run();
        run.readings
            .admits(rule.place, rule.languages, *offset + at)
    }

    /// Returns the fit of a rule to this file by language, path and scope.
    fn fit_by_path(&mut self, index: u16) -> RuleFit {
        let rules = self.reporter.rules;
        let rule = rules.rule(index);
        if !rules.is_enabled(index) || (self.scope == Scope::Secrets && !rule.secret) {
            return RuleFit::Not;
        }
        let path = self.file.path().as_bytes();
        if rules.skips_rule_file(index, path) {
            return RuleFit::Not;
        }
        let applies = (rule.languages.is_empty()
            || rule.languages.overlaps(self.reporter.languages()))
            && (rule.in_tests || self.role() != FileRole::Test)
            && (rule.in_bundles || !self.is_bundle())
            && !(rules.is_of_catalogue(index) && is_about_quality(rule) && self.is_foreign())
            && (rule.paths.is_empty() || rule.paths.iter().any(|g| glob::matches(g, path)))
            && (!self.in_doubt(index)
                || report::lowered(rules.severity_of(index)).is_some()
                || is_chosen_setting(rule));
        match rule.not_paths.iter().any(|g| glob::matches(g, path)) {
            _ if !applies => RuleFit::Not,
            false => RuleFit::FitsPath,
            true if can_spare(rule) => RuleFit::Spares,
            true => RuleFit::Not,
        }
    }

    fn role(&mut self) -> FileRole {
        let path = self.file.path().as_bytes();
        *self.role.get_or_insert_with(|| role::of(path))
    }

    fn is_test(&mut self) -> bool {
        self.role() == FileRole::Test
    }

    /// Returns true for code of other projects and for data of tests.
    fn is_foreign(&mut self) -> bool {
        let path = self.file.path().as_bytes();
        *self
            .is_foreign
            .get_or_insert_with(|| role::is_vendored(path) || role::is_data_of_tests(path))
    }

    fn is_bundle(&mut self) -> bool {
        let (path, text) = (self.file.path().as_bytes(), self.file.text());
        *self
            .is_bundle
            .get_or_insert_with(|| text.is_some_and(|t| bundle::is_one(path, t.new.known())))
    }

    fn purpose(&mut self) -> Purpose {
        let languages = self.reporter.languages();
        let path = self.file.path().as_bytes();
        *self
            .purpose
            .get_or_insert_with(|| prose::purpose(path, languages))
    }

    /// Returns true if the path casts doubt on the result of a rule in this file.
    fn in_doubt(&mut self, index: u16) -> bool {
        if self.doubts.is_empty() {
            self.doubts = vec![None; self.reporter.rules.len()];
        }
        if let Some(known) = self.doubts[usize::from(index)] {
            return known;
        }
        let rule = self.reporter.rules.rule(index);
        let path = self.file.path().as_bytes();
        let in_doubt = (!rule.in_tests && self.role() == FileRole::Doubt)
            || rule.weak_paths.iter().any(|g| glob::matches(g, path));
        self.doubts[usize::from(index)] = Some(in_doubt);
        in_doubt
    }

    /// Returns the rule of a matcher that is implemented in code, if the rule applies to this file.
    fn rule_of_matcher(&mut self, matcher: Matcher) -> Option<u16> {
        let rule = catalog::RULES.iter().position(|r| r.matcher == matcher)? as u16;
        self.accepts(rule).then_some(rule)
    }

    /// Reports the conflict that a marker line belongs to, at its first added line.
    fn conflict(&mut self, rule: u16, line: Range<usize>, line_index: u32) {
        let prose = self.reporter.languages().any_of(&["markdown", "text"]);
        let is_test = self.is_test();
        let (run, offset) = self.run();
        let (text, at) = (run.text, *offset + line.start);
        if self.sets.is_none() {
            self.sets = Some(markers::sets(text, prose));
        }
        let sets = self.sets.as_deref().unwrap_or_default();
        let i = sets.partition_point(|s| s.end < at);
        let Some(set) = sets.get(i).filter(|s| s.start <= at).cloned() else {
            return;
        };
        let is_end = at != set.start;
        if is_end
            && (memchr::memrchr(b'\n', &text[..set.end]).map_or(0, |n| n + 1) != at
                || self.adds(set.start))
        {
            return;
        }
        // A test of a merge tool has conflicts in its strings.
        if is_test && self.place(line.start) == Place::String {
            return;
        }
        self.report(RuleHit {
            rule,
            span: line.clone(),
            line,
            line_index,
            detail: None,
        });
    }

    /// Returns true if the change adds the line that starts at a byte of the current run.
    fn adds(&mut self, at: usize) -> bool {
        let Some(change) = self.file.text() else {
            return false;
        };
        // Blocks and runs are parts of one buffer, so their order in memory is their order in the
        // file.
        let at = self.run().0.text.as_ptr() as usize + at;
        let added = self.added.get_or_insert_with(|| {
            change
                .added()
                .map(|b| b.text.as_ptr_range())
                .map(address)
                .collect()
        });
        let i = added.partition_point(|b| b.end <= at);
        added.get(i).is_some_and(|b| b.start <= at)
    }
}

/// Returns true if a rule judges how code is written, which only the developers of the code can act
/// on.
fn is_about_quality(rule: &catalog::Rule) -> bool {
    let judges_code = matches!(rule.matcher, Matcher::Pattern | Matcher::Structural);
    judges_code && !rule.secret && rule.category != Category::Security
}

/// Returns true if a rule judges a setting that is written out, which is a suggestion by default and
/// `major` in the profile `audit`. It is reported wherever the file is.
fn is_chosen_setting(rule: &catalog::Rule) -> bool {
    rule.category == Category::Security && rule.audit_severity >= Some(Severity::Major)
}

/// Returns true if a rule knows the secrets of one issuer, so that the matches it spares are
/// harmless. A rule of severity suggestion does not count, because it may spare matches that are
/// not harmless.
fn can_spare(rule: &catalog::Rule) -> bool {
    rule.secret
        && rule.severity != Severity::Suggestion
        && rule.matcher == Matcher::Pattern
        && secret::overlap::knows_issuer(&rule.id)
}

fn address(range: Range<*const u8>) -> Range<usize> {
    range.start as usize..range.end as usize
}

#[cfg(test)]
mod tests;
