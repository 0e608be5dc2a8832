//! Compares the flows of a changed file with those of its old text: an edit inside of a call adds
//! no flow that was there before, and a removed check can expose one.

use super::{line_around, readable, shift, word_of};
use crate::diff::{LineNo, TextChange};
use crate::rules::flow::{self, Flow, FlowLanguage, FlowSubject, PathStep, Trigger};
use crate::rules::language::Languages;
use crate::rules::parse;
use std::cell::OnceCell;
use std::collections::HashSet;
use std::ops::Range;

/// The flows of the old text of a file, computed on first use.
pub(super) struct OldFlows<'a> {
    language: FlowLanguage,
    languages: Languages,
    change: &'a TextChange,
    /// The old path made the file as much a part of the program as the new one does. A flow of a
    /// test that becomes a part of the program is new.
    has_same_role: bool,
    flows: OnceCell<Option<Vec<Flow>>>,
    lose_protection: OnceCell<bool>,
}

/// The steps that two flows are compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compared {
    AllSteps,
    /// Source and sink.
    Ends,
}

/// Returns true if the change adds the first line of no step of a flow: it edits a later line of a
/// call, such as the body of a function that is an argument.
pub(super) fn is_inside(added: &[Range<usize>], f: &Flow) -> bool {
    !f.steps.iter().any(|step| starts_on_added(added, step))
}

/// Returns true if the change adds the line on which a step starts.
fn starts_on_added(added: &[Range<usize>], step: &PathStep) -> bool {
    let first = added.partition_point(|block| block.end <= step.start);
    added
        .get(first)
        .is_some_and(|block| block.start <= step.start)
}

impl<'a> OldFlows<'a> {
    pub(super) fn new(
        language: FlowLanguage,
        languages: Languages,
        change: &'a TextChange,
        has_same_role: bool,
    ) -> Self {
        Self {
            language,
            languages,
            change,
            has_same_role,
            flows: OnceCell::new(),
            lose_protection: OnceCell::new(),
        }
    }

    /// Returns the old text, if it is known as a whole and can be parsed.
    fn text(&self) -> Option<&'a [u8]> {
        self.change
            .old
            .whole()
            .filter(|old| !old.is_empty() && parse::is_bounded(old))
    }

    /// Returns the flows of the old text. `None`: the text is not known, or a limit ended the
    /// analysis.
    fn flows(&self) -> Option<&[Flow]> {
        let flows = self.flows.get_or_init(|| {
            let (text, base) = readable(self.languages, self.text()?);
            let mut before = flow::analyse(self.language, &text);
            if !before.is_complete {
                return None;
            }
            shift(&mut before.flows, base);
            Some(before.flows)
        });
        flows.as_deref()
    }

    /// Returns true if the old text has a flow like `f`, and at least as many as the new flows
    /// `all` have.
    pub(super) fn has_as_many(&self, all: &[Flow], f: &Flow) -> bool {
        self.covers(all, f, Compared::AllSteps)
    }

    /// Returns true if the old text has a flow from the same source to the same sink as `f`, and at
    /// least as many of them as the new flows `all`. Calls that are dangerous by themselves have no
    /// source.
    pub(super) fn has_ends_of(&self, all: &[Flow], f: &Flow) -> bool {
        f.steps.len() > 1
            && !matches!(f.subject, FlowSubject::Rule(_))
            && self.covers(all, f, Compared::Ends)
    }

    fn covers(&self, all: &[Flow], f: &Flow, compared: Compared) -> bool {
        if !self.has_same_role {
            return false;
        }
        let text = self.change.new.known();
        let key = identity(f, text, compared);
        let (Some(old), Some(flows)) = (self.text(), self.flows()) else {
            return false;
        };
        let before = count(flows, old, &key, compared);
        before > 0 && before >= count(all, text, &key, compared)
    }

    /// Returns true if the change removes a line with a check or a sanitizer, so that flows of
    /// unchanged lines can be new.
    pub(super) fn lose_protection(&self) -> bool {
        *self.lose_protection.get_or_init(|| {
            let Some(old) = self.text() else {
                return false;
            };
            let before = Trigger::new(self.language, old);
            let mut removed = self.change.removed();
            removed.any(|block| before.has_protection_in(block.text))
        })
    }

    /// Returns the flows of unchanged lines that the old text did not have: the change removes a
    /// check or a sanitizer.
    pub(super) fn exposed<'f>(&self, mut flows: Vec<&'f Flow>) -> Vec<&'f Flow> {
        if flows.is_empty() || !self.lose_protection() {
            return Vec::new();
        }
        let change = self.change;
        let Some(before) = self.flows() else {
            return Vec::new();
        };
        let known: HashSet<(&str, Option<LineNo>)> = before
            .iter()
            .map(|f| {
                (
                    word_of(f.subject),
                    f.sink().and_then(|s| change.old.line_number(s.start)),
                )
            })
            .collect();
        flows.retain(|f| {
            let line = f
                .sink()
                .and_then(|s| change.new.line_number(s.start))
                .and_then(|n| change.old_line(n));
            !known.contains(&(word_of(f.subject), line))
        });
        flows
    }
}

/// Returns the number of flows of a text with an identity.
fn count(flows: &[Flow], text: &[u8], key: &str, compared: Compared) -> usize {
    flows
        .iter()
        .filter(|f| identity(f, text, compared) == key)
        .count()
}

/// Returns a text that is equal for flows of one subject with the same strength, whose compared
/// steps start with the same code. Only the first line of a step counts, without its layout.
fn identity(f: &Flow, text: &[u8], compared: Compared) -> String {
    let mut out = format!(
        "{} {:?} {:?} {} {}",
        word_of(f.subject),
        f.proof,
        f.confidence,
        f.sink_label,
        f.texts.title.unwrap_or_default(),
    );
    let last = f.steps.len().saturating_sub(1);
    for (index, step) in f.steps.iter().enumerate() {
        if compared == Compared::Ends && index > 0 && index < last {
            continue;
        }
        let line = line_around(text, step.start);
        let code = text.get(step.start..step.end.min(line.end).max(step.start));
        out.push('\n');
        let code = String::from_utf8_lossy(code.unwrap_or_default());
        // Layout and the kind of quotes do not matter.
        let code = code.chars().filter(|c| !c.is_whitespace());
        out.extend(code.map(|c| if c == '\'' { '"' } else { c }));
    }
    out
}
