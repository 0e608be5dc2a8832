//! Creates findings of rules: severity by policy, masked quotes, suppressions.

use super::catalog::{Matcher, Rule};
use super::language::Languages;
use super::pins::Pins;
use super::suppress::{Counting, Directives, Sought};
use super::{RuleSet, Unlisted, rewrite};
use crate::diff::{FileChange, LineNo, RepoPath, blank_all};
use crate::finding::listing::{self, Counted, Floor};
use crate::finding::{
    Category, Confidence, Draft, Finding, FlowStep, LineSpan, Location, Proof, Severity,
};
use std::borrow::Cow;

/// The destination of findings.
#[derive(Debug)]
pub(super) struct Reporter<'a> {
    pub(super) rules: &'a RuleSet,
    out: &'a mut Vec<Finding>,
    /// The scanned file.
    file: Option<&'a FileChange>,
    languages: Option<Languages>,
    directives: Directives,
    counting: Counting,
    /// Index of the first finding of this file. Findings before it belong to other files.
    from: usize,
    /// By rule, without suppressed findings. Empty until the first finding.
    counts: Vec<u32>,
    /// Suppressed findings of all rules.
    suppressed: u32,
    floor: Floor,
    counted: Vec<Counted>,
}

/// Findings of a scan that are not listed.
#[derive(Debug, Default)]
pub struct Rest {
    /// Rules with more findings in the file than are listed for one rule, with the number of the
    /// others. Suppressed findings are not counted.
    pub by_rule: Vec<Unlisted>,
    pub counted: Vec<Counted>,
    /// A limit of time or size ended the analysis of data flow before the end of the file.
    pub is_flow_partial: bool,
    /// A limit ended the search for matches of structural rules.
    pub is_tree_partial: bool,
}

/// The match of a rule, with details that its catalogue entry lacks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sighting<'a> {
    /// `None`: the change as a whole.
    pub(super) file: Option<&'a RepoPath>,
    /// `None`: the file as a whole.
    pub(super) lines: Option<LineSpan>,
    /// The offending text, which is masked here.
    pub(super) quote: &'a [u8],
    /// The bytes of the quote that are shown. A secret that is cut in two is only recognised with
    /// the text around the cut.
    pub(super) shown: Option<(usize, usize)>,
    /// Detail of the match, appended to the rule's message.
    pub(super) detail: Option<&'a str>,
    /// Bytes of the quote that are masked regardless of the rules.
    pub(super) hide: Option<(usize, usize)>,
    /// True if the path casts doubt on the rule's result, which lowers the severity.
    pub(super) in_doubt: bool,
    /// Origin of the value, if it decides the severity.
    pub(super) origin: ValueOrigin,
    /// The path of the value. Its quotes are masked.
    pub(super) flow: &'a [FlowStep],
    /// The weakness, if it differs from the rule's.
    pub(super) cwe: Option<u32>,
    /// Highest confidence of the finding.
    pub(super) confidence_max: Option<Confidence>,
    /// The title of the finding, if it differs from the rule's.
    pub(super) title: Option<&'a str>,
    /// The message of the finding, if it differs from the rule's.
    pub(super) message: Option<&'a str>,
    /// The suggestion of the finding, if it differs from the rule's.
    pub(super) suggestion: Option<&'a str>,
    /// Highest severity of the finding, unless policy sets the severity of the rule.
    pub(super) severity_max: Option<Severity>,
    /// The new lines, if the rule itself has computed them.
    pub(super) replacement: Option<&'a str>,
}

/// The origin of a value that the change shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ValueOrigin {
    /// From outside, or its origin does not matter: severity and confidence are those of the rule.
    #[default]
    Outside,
    /// From files or storage of the program, not from a request: at most major, at most medium.
    Local,
    /// From the person who runs the program, who has its rights already: at most major, at most
    /// medium.
    Caller,
    /// The analysis is not certain: a suggestion of low confidence.
    Doubtful,
    /// The change does not show it: a suggestion of low confidence.
    Unknown,
}

/// Listed findings of one rule in one file, at most, and listed suppressed findings of all rules,
/// at most.
pub(super) const FINDINGS_MAX: u32 = 1000;
/// Bytes of a quote, at most.
const QUOTE_MAX: usize = 400;
/// Reason why a finding is a suggestion.
pub(super) const UNKNOWN: &str = "the change does not show where the value comes from";
/// Reason why the severity of a finding is lower than that of its rule.
const LOCAL: &str = "the value does not come from a request";
/// Reason why a value of the command line or of the environment weighs less.
const CALLER: &str = "the value comes from the person who runs the program";
/// Bytes on each side of a secret that distinguish it from an equal one elsewhere.
const IDENTITY_SIDE: usize = 256;
/// Reason why the severity of a finding is lowered.
const DOUBT: &str = "by its path the file may be a test, an example or a build script";

impl<'a> Reporter<'a> {
    pub(super) fn new(
        rules: &'a RuleSet,
        file: Option<&'a FileChange>,
        out: &'a mut Vec<Finding>,
    ) -> Self {
        let counting = rules.suppressions.within_net();
        let from = out.len();
        Self {
            rules,
            out,
            file,
            languages: None,
            directives: Directives::default(),
            counting,
            from,
            counts: Vec::new(),
            suppressed: 0,
            floor: Floor::default(),
            counted: Vec::new(),
        }
    }

    /// Returns the commits of actions that replacements may name.
    pub(super) fn pins(&self) -> &'a Pins {
        &self.rules.pins
    }

    /// Lists only findings that the floor admits, and counts the others.
    pub(super) fn above(self, floor: &Floor) -> Self {
        Self {
            floor: floor.clone(),
            ..self
        }
    }

    /// Returns the findings that are not listed.
    pub(super) fn rest(self) -> Rest {
        let mut by_rule = Vec::new();
        for (i, count) in self.counts.iter().enumerate() {
            let left = count.checked_sub(FINDINGS_MAX).filter(|n| *n > 0);
            let (Some(count), Ok(index)) = (left, u16::try_from(i)) else {
                continue;
            };
            by_rule.push(Unlisted {
                rule: self.rules.rule(index).id.clone().into_owned(),
                count,
            });
        }
        Rest {
            by_rule,
            counted: self.counted,
            is_flow_partial: false,
            is_tree_partial: false,
        }
    }

    /// Returns the number of listed findings so far, including those of other files.
    pub(super) fn count(&self) -> usize {
        self.out.len()
    }

    /// Sets which suppressing comments count, if the change is not the net one.
    pub(super) fn counting(self, counting: Counting) -> Self {
        Self { counting, ..self }
    }

    /// Returns the languages of the scanned file.
    pub(super) fn languages(&mut self) -> Languages {
        let file = self.file;
        *self.languages.get_or_insert_with(|| {
            let start = file
                .and_then(FileChange::text)
                .and_then(|t| t.new.line(LineNo::FIRST));
            file.map_or(Languages::NONE, |f| {
                Languages::of(f.path().as_bytes(), start.unwrap_or_default())
            })
        })
    }

    /// Returns true if the rule with an ID runs.
    pub(super) fn wants(&self, id: &str) -> bool {
        self.rules
            .index_of(id)
            .is_some_and(|i| self.rules.is_enabled(i))
    }

    /// Returns true if the pattern of a rule matches a text that is not a line of the file.
    pub(super) fn matches(&self, id: &str, text: &[u8]) -> bool {
        let compiled = self.rules.index_of(id).and_then(|i| self.rules.compiled(i));
        compiled.is_some_and(|c| c.pattern.is_match(text))
    }

    /// Reports a sighting of the rule with an ID, unless policy disabled the rule.
    pub(super) fn report(&mut self, id: &str, sighting: Sighting<'_>) {
        if let Some(index) = self.rules.index_of(id) {
            self.report_index(index, sighting);
        }
    }

    pub(super) fn report_index(&mut self, index: u16, sighting: Sighting<'_>) {
        if !self.rules.is_enabled(index) {
            return;
        }
        let rule = self.rules.rule(index);
        let mut suppressed = None;
        if let (Some(text), Some(lines)) = (self.file.and_then(FileChange::text), sighting.lines)
            && self.file.map(FileChange::path) == sighting.file
        {
            let languages = self.languages();
            let sought = Sought {
                rule: &rule.id,
                lines,
            };
            suppressed = self.directives.find(text, languages, sought, self.counting);
        }
        let identity = identity(&sighting);
        let severity = severity_of(self.rules, index, &sighting);
        if !self.lists(index, severity, suppressed.is_some(), &sighting) {
            let is_suppressed = suppressed.is_some();
            let counted = Counted::new(
                &rule.id,
                sighting.file,
                sighting.lines,
                identity,
                severity,
                is_suppressed,
            );
            return self.counted.push(counted);
        }
        let masked = self.masked(sighting.quote);
        let replacement = self.replacement(index, &sighting);
        let mut finding = make(
            rule,
            self.rules,
            index,
            sighting,
            ShownText {
                quote: masked,
                replacement,
            },
        );
        finding.identity = identity;
        finding.suppressed = suppressed;
        self.out.push(finding);
        if self.file.is_some() {
            let counted = &mut self.counted;
            self.floor
                .settle(self.out, self.from, |f| counted.push(Counted::of(f)));
        }
    }

    /// Counts a finding, and returns true if it must be listed.
    fn lists(
        &mut self,
        index: u16,
        severity: Severity,
        is_suppressed: bool,
        sighting: &Sighting<'_>,
    ) -> bool {
        // Only the scan of a file returns findings that are not listed.
        if self.file.is_none() {
            return true;
        }
        if self.counts.is_empty() {
            self.counts = vec![0; self.rules.len()];
        }
        let count = if is_suppressed {
            &mut self.suppressed
        } else {
            &mut self.counts[usize::from(index)]
        };
        *count = count.saturating_add(1);
        *count <= FINDINGS_MAX
            && self
                .floor
                .admits(is_suppressed, severity, sighting.file, sighting.lines)
    }

    /// Returns the rule's replacement for the lines of a finding, if one is certain.
    fn replacement(&mut self, index: u16, sighting: &Sighting<'_>) -> Option<String> {
        if let Some(new) = sighting.replacement {
            return matches!(self.rules.mask(new.as_bytes()), Cow::Borrowed(_))
                .then(|| new.to_owned());
        }
        if self.rules.rule(index).fixes.is_empty() {
            return None;
        }
        let languages = self.languages();
        let file = self.file.filter(|f| Some(f.path()) == sighting.file)?;
        let compiled = self.rules.compiled(index)?;
        let place = (&file.text()?.new, languages);
        rewrite::replacement(self.rules, compiled, place, sighting.lines?, &|new| {
            rewrite::is_matched(compiled, new)
        })
    }

    /// Returns a part of the file with its secrets hidden. The text around the part can reveal a
    /// secret, so the whole file is searched once.
    pub(super) fn masked<'q>(&self, quote: &'q [u8]) -> Cow<'q, [u8]> {
        let text = self.file.and_then(FileChange::text).map(|t| &t.new);
        let part = text.and_then(|t| t.masked_part(quote, &|text| self.rules.hidden(text)));
        part.unwrap_or_else(|| self.rules.mask(quote))
    }
}

/// Returns the severity of a sighting.
fn severity_of(rules: &RuleSet, index: u16, s: &Sighting<'_>) -> Severity {
    let severity = weigh(rules, index, s.in_doubt, s.origin);
    let most = s
        .severity_max
        .filter(|_| rules.severity_set(index).is_none());
    most.map_or(severity, |most| severity.min(most))
}

/// Returns the severity of a finding.
pub(super) fn weigh(rules: &RuleSet, index: u16, in_doubt: bool, origin: ValueOrigin) -> Severity {
    let severity = match origin {
        ValueOrigin::Outside => rules.severity_of(index),
        ValueOrigin::Local | ValueOrigin::Caller => rules
            .severity_set(index)
            .unwrap_or_else(|| rules.severity_of(index).min(Severity::Major)),
        ValueOrigin::Doubtful | ValueOrigin::Unknown => rules.severity_of_unknown(index),
    };
    match in_doubt {
        true if is_weak_in_doubt(rules, index) => Severity::Suggestion.min(severity),
        true => lowered(severity).unwrap_or(severity),
        false => severity,
    }
}

/// Returns true if a finding of a rule is a suggestion in a file that may be a test or an example:
/// the rule judges lines or statements for security, does not know the issuer of a secret, and is not
/// critical. Keys and passwords there are made for the test, and settings are those of a
/// developer's machine. Hidden characters and changes of files are attacks in any file.
fn is_weak_in_doubt(rules: &RuleSet, index: u16) -> bool {
    let rule = rules.rule(index);
    let is_key = rule
        .checks
        .iter()
        .any(|c| super::secret::is_for_key_headers(c));
    let knows_issuer = super::secret::overlap::knows_issuer(&rule.id);
    let is_proven = match rule.matcher {
        Matcher::Pattern | Matcher::Structural if rule.secret => knows_issuer && !is_key,
        Matcher::Pattern
        | Matcher::Structural
        | Matcher::Markup
        | Matcher::Settings
        | Matcher::Flow => rule.severity == Severity::Critical,
        _ => true,
    };
    rules.is_of_catalogue(index) && rule.category == Category::Security && !is_proven
}

/// Returns a number that is equal for equal texts, in one run. Of a long line, only the text around
/// the match counts.
fn identity(sighting: &Sighting<'_>) -> u64 {
    let all = 0..sighting.quote.len();
    let near = sighting.hide.map_or(all, |(start, end)| {
        start.saturating_sub(IDENTITY_SIDE)
            ..end.saturating_add(IDENTITY_SIDE).min(sighting.quote.len())
    });
    listing::hash(sighting.quote.get(near).unwrap_or(sighting.quote))
}

/// Returns a text as a quote that represents all of it. A quote that is too long ends with the
/// digest of the text, so that a waiver does not cover another text with the same start.
pub(super) fn whole(text: &str) -> Cow<'_, str> {
    use sha2::Digest as _;
    if text.len() <= QUOTE_MAX {
        return Cow::Borrowed(text);
    }
    let digest = crate::hex::encode(&sha2::Sha256::digest(text.as_bytes())[..16]);
    let mut end = QUOTE_MAX - digest.len() - " … ".len();
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    Cow::Owned(format!("{} … {digest}", &text[..end]))
}

/// Returns the severity of a finding whose path casts doubt on it. `None`: it is not worth
/// reporting there.
pub(super) fn lowered(severity: Severity) -> Option<Severity> {
    match severity {
        Severity::Critical | Severity::Major => Some(Severity::Minor),
        Severity::Minor => Some(Severity::Suggestion),
        Severity::Suggestion => None,
    }
}

/// The parts of a finding that show text of the file.
struct ShownText<'a> {
    /// The offending text, secrets masked.
    quote: Cow<'a, [u8]>,
    replacement: Option<String>,
}

fn make(
    rule: &Rule,
    rules: &RuleSet,
    index: u16,
    s: Sighting<'_>,
    shown: ShownText<'_>,
) -> Finding {
    let mut quote = shown.quote;
    let is_header = rule
        .checks
        .iter()
        .any(|c| super::secret::is_for_key_headers(c));
    if let Some((start, end)) = s.hide.filter(|_| !is_header) {
        let span = start.min(s.quote.len())..end.min(s.quote.len());
        let kept = super::leak::public_prefix(rule, &s.quote[span.clone()]);
        blank_all(quote.to_mut(), &[super::mask::without_prefix(span, kept)]);
    }
    let (start, end) = s.shown.unwrap_or((0, quote.len()));
    let end = end.min(quote.len()).min(start + QUOTE_MAX);
    let quote = quote.get(start..end).unwrap_or_default();
    // A structural rule without a note has its title as its message.
    let titled = s.title.filter(|_| rule.message == rule.title);
    let stated = s.message.or(titled).unwrap_or(&rule.message);
    let mut message = match s.detail {
        Some(d) => format!("{}: {d}", stated.trim_end().trim_end_matches('.')),
        None => stated.trim_end().to_owned(),
    };
    let severity = severity_of(rules, index, &s);
    let mut confidence = rule
        .confidence
        .min(s.confidence_max.unwrap_or(Confidence::High));
    let why = match s.origin {
        ValueOrigin::Outside | ValueOrigin::Doubtful => None,
        ValueOrigin::Local => Some((Confidence::Medium, LOCAL)),
        ValueOrigin::Caller => Some((Confidence::Medium, CALLER)),
        ValueOrigin::Unknown => Some((Confidence::Low, UNKNOWN)),
    };
    if let Some((most, why)) = why {
        confidence = confidence.min(most);
        message = format!("{} ({why})", message.trim_end_matches('.'));
    }
    if s.in_doubt {
        confidence = Confidence::Low;
        message = format!(
            "{} (it weighs less here: {DOUBT})",
            message.trim_end_matches('.')
        );
    }
    let draft = Draft {
        rule_id: rule.id.clone().into_owned(),
        location: s.file.map(|f| Location {
            file: f.clone(),
            lines: s.lines,
        }),
        severity,
        category: rule.category,
        title: s
            .title
            .map_or_else(|| rule.title.clone().into_owned(), str::to_owned),
        message,
        failure: None,
        suggestion: s
            .suggestion
            .or(rule.suggestion.as_deref())
            .map(|t| t.trim_end().to_owned()),
        replacement: shown.replacement,
        quote: String::from_utf8_lossy(quote.trim_ascii()).into_owned(),
        cwe: s.cwe.or(rule.cwe),
        convention: None,
        also: Vec::new(),
        flow: s.flow.to_vec(),
        references: rule
            .references
            .iter()
            .map(|r| r.clone().into_owned())
            .collect(),
    };
    Finding::new(Proof::rule(&rule.id, confidence), draft)
}
