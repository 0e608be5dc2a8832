//! Findings on code that the file had before the change: an edit around the code, a new layout or
//! a move within the file adds no weakness.

use super::layout::{INSTRUCTIONS, before};
use crate::diff::{ChangeKind, FileChange, RepoPath, TextChange};
use crate::finding::listing::Floor;
use crate::finding::{Finding, Severity};
use crate::rules::RuleSet;
use crate::rules::catalog::{Matcher, Rule};
use crate::rules::elide::words;
use crate::rules::suppress::Counting;
use side::{CodeInPlace, CodeSide};
use std::collections::HashMap;

mod moved;
mod secret;
mod side;
mod spelling;

/// Reason why such a finding is a suggestion.
const KNOWN: &str = "the file had this before the change";

/// Removed findings that are compared with an added one, at most, and findings of a change whose
/// code is searched in other files.
const COMPARED_MAX: usize = 64;

/// Bytes of a line without layout that can be divided into several, at least, and of one that can
/// be joined with the next. A shorter one, such as `return null`, is in too many others.
const LEAST_OF_DIVIDED: usize = 16;
const LEAST_OF_JOINED: usize = 10;
/// Words of statements that leave a function, a loop or the program.
const EXITS: &[&[u8]] = &[
    b"return",
    b"raise",
    b"throw",
    b"exit",
    b"die",
    b"abort",
    b"panic",
    b"continue",
    b"break",
    b"next",
    b"goto",
    b"assert",
    b"require",
    b"guard",
];
/// Words that start a label, a condition of one line, or one of a job of a pipeline.
const CONDITIONS: &[&[u8]] = &[
    b"case", b"default", b"unless", b"rules", b"only", b"except", b"when",
];

/// A finding in the removed lines that covers no added finding yet.
struct RemovedFinding<'f> {
    finding: &'f Finding,
    code: CodeInPlace,
}

/// The findings in the removed lines, by rule and code.
type RemovedFindings<'f> = HashMap<(Option<u16>, Vec<u8>), Vec<RemovedFinding<'f>>>;

/// Lowers each finding of `out`, from the index `from` on, to a suggestion if its rule reported the
/// same code in the removed lines of the file, in the same function and under the same conditions.
///
/// Each removed finding covers one added finding, so that one more than before keeps its severity.
/// It must be at least as severe, by the old path and the old text of the file, and no comment may
/// have suppressed it. The code ([`CodeInPlace`]) is the statement without its layout, because what
/// is beside a match can make it harmless: another host, another argument. The blocks around it
/// are the same, or the new ones add conditions. The steps of a path of data are equal.
/// A critical finding keeps its severity: a reader has to see that the code stays exploitable.
/// Findings of teams, of hidden characters and of rules whose severity policy sets are kept too.
/// Secrets are compared by their bytes alone ([`secret::lower`]).
pub(super) fn lower(
    rules: &RuleSet,
    file: &FileChange,
    floor: &Floor,
    out: &mut [Finding],
    from: usize,
) {
    // The original of a copy is still there.
    let is_copy = matches!(file.entry.kind, ChangeKind::Copied { .. });
    let Some(text) = file.text().filter(|_| !is_copy) else {
        return;
    };
    if text.removed().next().is_none() {
        return;
    }
    let has_secrets = out[from..].iter().any(|f| secret::is_compared(rules, f));
    let mut candidates: Vec<usize> = (from..out.len())
        .filter(|index| can_be_lowered(rules, &out[*index]))
        .collect();
    // A removed guard changes what code does, and not who can read a secret.
    if !candidates.is_empty() && removes_guard(text) {
        candidates.clear();
    }
    if candidates.is_empty() && !has_secrets {
        return;
    }
    let mut old = before(rules, file, text, Counting::All, floor);
    old.retain(|finding| finding.suppressed.is_none());
    if has_secrets {
        secret::lower(rules, text, &old, &mut out[from..]);
    }
    if candidates.is_empty() {
        return;
    }
    let sides = (
        CodeSide::new(old_path(file).as_bytes(), text, true),
        CodeSide::new(file.path().as_bytes(), text, false),
    );
    let (Some(old_side), Some(new_side)) = sides else {
        return;
    };
    let mut removed = RemovedFindings::new();
    for finding in &old {
        if let Some(code) = code_of(rules, &old_side, finding) {
            let key = (rules.index_of(finding.rule_id()), code.code.clone());
            let known = removed.entry(key).or_default();
            known.push(RemovedFinding { finding, code });
        }
    }
    let codes = candidates
        .into_iter()
        .filter_map(|index| Some((index, code_of(rules, &new_side, &out[index])?)));
    let mut codes: Vec<_> = codes.collect();
    // Added code in the same blocks comes first: other code may not use up what covers it.
    for is_exact in [true, false] {
        codes.retain(|(index, code)| {
            let finding = &mut out[*index];
            let rule = rules.index_of(finding.rule_id());
            let same = removed.get_mut(&(rule, code.code.clone()));
            let is_known = same.is_some_and(|same| is_covered(same, finding, code, is_exact));
            if is_known {
                finding.doubt(Severity::Suggestion, KNOWN);
            }
            !is_known
        });
    }
}

/// Returns true if a change removes a line that can end a function early, or that adds a condition
/// to code below it: no block shows that such code was guarded.
fn removes_guard(text: &TextChange) -> bool {
    let mut added = AddedLines::of(text);
    let removed = text.removed().flat_map(|block| lines(block.text));
    removed
        .filter(|line| is_guard(line))
        .any(|line| !added.take(&without_layout(line)))
}

/// The added lines of a change without their layout.
#[derive(Default)]
struct AddedLines {
    /// With the number of lines that are not taken yet.
    lines: HashMap<Vec<u8>, usize>,
    /// All lines in a row.
    whole: Vec<u8>,
    /// Searches for divided and joined lines so far. Each reads all lines.
    searches: usize,
}

impl AddedLines {
    fn of(text: &TextChange) -> Self {
        let mut out = Self::default();
        for line in text.added().flat_map(|block| lines(block.text)) {
            let line = without_layout(line);
            out.whole.extend_from_slice(&line);
            *out.lines.entry(line).or_default() += 1;
        }
        out
    }

    /// Returns true if a removed line was added again: as it is, divided into several lines, or
    /// joined with the next one. After [`COMPARED_MAX`] searches, only as it is.
    fn take(&mut self, line: &[u8]) -> bool {
        if let Some(count) = self.lines.get_mut(line).filter(|count| **count > 0) {
            *count -= 1;
            return true;
        }
        if line.len() < LEAST_OF_JOINED || self.searches == COMPARED_MAX {
            return false;
        }
        self.searches += 1;
        let is_divided = || memchr::memmem::find(&self.whole, line).is_some();
        self.lines.keys().any(|other| other.starts_with(line))
            || line.len() >= LEAST_OF_DIVIDED && is_divided()
    }
}

/// Returns true for a line that can be a guard of the code below it: it can leave a function or a
/// loop, or it is a decorator, a label or a condition of a job.
fn is_guard(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let line = line.strip_prefix(b"- ").unwrap_or(line);
    let mut words = words(line).map(<[u8]>::to_ascii_lowercase);
    let first = words.next().unwrap_or_default();
    // `except:` of a job is a condition of the lines below it. `except Error:` of Python is not.
    let is_handler = first == b"except" && !line.starts_with(b"except:");
    (CONDITIONS.contains(&first.as_slice()) && !is_handler)
        || matches!(line.first(), Some(b'@'))
        || line.starts_with(b"#[")
        || EXITS.contains(&first.as_slice())
        || words.any(|word| EXITS.contains(&word.as_slice()))
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|b| *b == b'\n')
}

/// Returns a line without white space and separators, and with one kind of quotes, which a formatter
/// changes. A variable or an escape can mean something in one kind of quotes only.
fn without_layout(line: &[u8]) -> Vec<u8> {
    let is_plain = !line
        .iter()
        .any(|b| matches!(b, b'$' | b'#' | b'`' | b'{' | b'@' | b'\\'));
    let bytes = line.iter().copied();
    bytes
        .filter(|b| !b.is_ascii_whitespace() && !matches!(b, b',' | b';'))
        .map(|b| if is_plain && b == b'\'' { b'"' } else { b })
        .collect()
}

/// Returns the path of a file before the change.
fn old_path(file: &FileChange) -> &RepoPath {
    let old = file.entry.old.as_ref();
    old.map_or_else(|| file.path(), |side| &side.path)
}

/// Returns true if a removed finding with the code of an added one covers it, and takes it out of
/// `same`. `is_exact`: the blocks around the two must be the same.
fn is_covered(
    same: &mut Vec<RemovedFinding<'_>>,
    finding: &Finding,
    code: &CodeInPlace,
    is_exact: bool,
) -> bool {
    let covering = same.iter().take(COMPARED_MAX).position(|old| {
        old.finding.severity() >= finding.severity()
            && old.code.covers(code, is_exact)
            && have_same_path(old.finding, finding)
    });
    if let Some(at) = covering {
        same.remove(at);
    }
    covering.is_some()
}

/// Returns the code that a rule of the catalogue judges in a finding. Of a script that is piped to a
/// shell, it is the download: the options of the shell and the arguments of the script choose
/// nothing that runs.
fn code_of(rules: &RuleSet, side: &CodeSide<'_>, finding: &Finding) -> Option<CodeInPlace> {
    let rule = rule_of_finding(rules, finding)?;
    let mut code = side.code_of(rule, finding)?;
    if rule.id.ends_with("pipe-to-shell") {
        let mut statement = code.code.clone();
        statement.retain(|b| !b.is_ascii_whitespace());
        code.code = download(&statement).map_or(code.code, <[u8]>::to_vec);
    }
    Some(code)
}

/// Returns a statement without white space up to its pipe to a shell. `None`: more than the
/// arguments of the script follows the pipe.
fn download(statement: &[u8]) -> Option<&[u8]> {
    let pipe = memchr::memchr(b'|', statement)?;
    let rest = &statement[pipe + 1..];
    let rest = rest.strip_prefix(b"sudo").unwrap_or(rest);
    let shell = [&b"bash"[..], b"sh", b"zsh", b"dash", b"ksh"]
        .into_iter()
        .find_map(|shell| rest.strip_prefix(shell))?;
    let arguments = shell.strip_suffix(b"\"").unwrap_or(shell);
    let is_plain = |b: &u8| b.is_ascii_alphanumeric() || b"-_./=:".contains(b);
    let mut parts = arguments.splitn(2, |b| *b == b'$');
    let has_script = arguments.is_empty() || arguments.starts_with(b"-s");
    let first = parts.next().unwrap_or_default();
    let is_known = parts.next().is_none_or(|part| {
        part.strip_prefix(b"(goenvGOPATH)")
            .is_some_and(|rest| rest.iter().all(is_plain))
    });
    (has_script && is_known && first.iter().all(is_plain)).then_some(&statement[..pipe])
}

/// Returns the rule of the catalogue that made a finding, unless policy sets its severity.
fn rule_of_finding<'r>(rules: &'r RuleSet, finding: &Finding) -> Option<&'r Rule> {
    let index = rules
        .index_of(finding.rule_id())
        .filter(|index| rules.is_of_catalogue(*index) && rules.severity_set(*index).is_none());
    index.map(|index| rules.rule(index))
}

/// Returns true if a finding is at least minor and not critical, and its rule judges code.
fn can_be_lowered(rules: &RuleSet, finding: &Finding) -> bool {
    matches!(finding.severity(), Severity::Minor | Severity::Major)
        && finding.suppressed.is_none()
        && rule_of_finding(rules, finding).is_some_and(|rule| {
            let judges_code = matches!(
                rule.matcher,
                Matcher::Pattern | Matcher::Structural | Matcher::Flow
            );
            // Of a rule with `near_has`, the block around the match decides, and only the statement
            // is compared. A moved instruction for a reviewer is read all the same.
            judges_code && rule.near_has.is_empty() && !rule.secret && rule.id != INSTRUCTIONS
        })
}

/// Returns true if the paths of data of two findings have the same steps without layout, or neither
/// has a path.
fn have_same_path(old: &Finding, new: &Finding) -> bool {
    let (old, new) = (old.flow(), new.flow());
    old.len() == new.len()
        && old.iter().zip(new).all(|(old, new)| {
            let code = old.quote.split_whitespace().flat_map(str::bytes);
            code.eq(new.quote.split_whitespace().flat_map(str::bytes))
        })
}

#[cfg(test)]
mod tests;
