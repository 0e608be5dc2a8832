//! Findings on code that the change moves within a file: the file had the same weakness before.

use super::layout::{before, code_of, is_within};
use crate::diff::{FileChange, LineNo, Text, TextChange};
use crate::finding::listing::Floor;
use crate::finding::{Finding, Severity};
use crate::rules::RuleSet;
use crate::rules::catalog::Matcher;
use crate::rules::suppress::Counting;
use std::cmp::Ordering;

/// Rule that reads text for a reviewer: a moved instruction is read all the same.
const INSTRUCTIONS: &str = "prompt-injection";
/// Reason why such a finding is a suggestion.
const KNOWN: &str = "the file had the same finding on the same code before the change";

/// Lowers each finding of `out`, from the index `from` on, to a suggestion if its rule reported the
/// same code in the removed lines of the file.
///
/// Each removed finding covers one added finding. It must be at least as severe, and no comment may
/// have suppressed it. All lines of the two findings are equal without layout, and so are the steps
/// of a path of data. For a finding that is at most minor, an equal match within the line is enough,
/// and for a finding without a path, an edit in place that keeps most words of the lines.
/// A critical finding keeps its severity: a reader has to see that the code stays exploitable.
/// Findings of teams, of secrets, of hidden characters and of rules whose severity policy sets are
/// kept too.
pub(super) fn lower(
    rules: &RuleSet,
    file: &FileChange,
    floor: &Floor,
    out: &mut [Finding],
    from: usize,
) {
    let Some(text) = file
        .text()
        .filter(|text| text.old.whole().is_some() && text.new.whole().is_some())
    else {
        return;
    };
    let candidates: Vec<usize> = (from..out.len())
        .filter(|index| can_be_lowered(rules, &out[*index]))
        .collect();
    if candidates.is_empty() || text.removed().next().is_none() {
        return;
    }
    let mut old = before(rules, file, text, Counting::All, floor);
    old.retain(|finding| finding.suppressed.is_none());
    for index in candidates {
        let finding = &mut out[index];
        let known = old.iter().position(|old| {
            old.rule_id() == finding.rule_id()
                && old.severity() >= finding.severity()
                && (is_same_code((&text.old, old), (&text.new, finding))
                    || is_edited_in_place(text, old, finding))
        });
        if let Some(at) = known {
            old.swap_remove(at);
            finding.doubt(Severity::Suggestion, KNOWN);
        }
    }
}

/// Returns true if a finding is at least minor and not critical, and its rule judges code.
fn can_be_lowered(rules: &RuleSet, finding: &Finding) -> bool {
    let rule = rules
        .index_of(finding.rule_id())
        .filter(|index| rules.is_of_catalogue(*index) && rules.severity_set(*index).is_none());
    matches!(finding.severity(), Severity::Minor | Severity::Major)
        && finding.suppressed.is_none()
        && rule.map(|index| rules.rule(index)).is_some_and(|rule| {
            let judges_code = matches!(
                rule.matcher,
                Matcher::Pattern | Matcher::Structural | Matcher::Flow
            );
            judges_code && !rule.secret && rule.id != INSTRUCTIONS
        })
}

/// Returns true if the code of a new finding is part of that of an old one, apart from its layout.
fn is_same_code((old_text, old): (&Text, &Finding), (text, new): (&Text, &Finding)) -> bool {
    let code = code_of(text, new);
    let known = code_of(old_text, old);
    // A longer line can contain all of the code: `if (f(x)) {` and `f(x)`.
    let is_part = memchr::memmem::find(&known, &code).is_some() && 2 * code.len() >= known.len();
    let is_same = !code.is_empty() && is_part && have_same_path(old, new);
    is_same
        || new.severity() == Severity::Minor
            && new.flow().is_empty()
            && matched(text, new).is_some_and(|part| matched(old_text, old) == Some(part))
}

/// Returns true if one edit replaces the lines of an old finding by those of a new one, and most of
/// their words are the same: the edit keeps a weakness and does not add it.
fn is_edited_in_place(text: &TextChange, old: &Finding, new: &Finding) -> bool {
    let mut edits = text.hunks.iter().flat_map(|hunk| &hunk.edits);
    new.flow().is_empty()
        && edits.any(|edit| is_within(old, &edit.old) && is_within(new, &edit.new))
        && are_alike(&words(&text.old, old), &words(&text.new, new))
}

/// Returns the words on the lines of a finding, in order of their bytes.
fn words(text: &Text, finding: &Finding) -> Vec<Vec<u8>> {
    let lines = finding.lines();
    let numbers = lines.map(|lines| lines.first.get()..=lines.last.get());
    let mut words: Vec<Vec<u8>> = numbers
        .into_iter()
        .flatten()
        .filter_map(|number| text.line(LineNo::new(number)?))
        .flat_map(|line| line.split(|b| !b.is_ascii_alphanumeric() && *b != b'_'))
        .filter(|word| !word.is_empty())
        .map(<[u8]>::to_vec)
        .collect();
    words.sort();
    words
}

/// Returns true if two sorted lists of at least [`FEWEST`] words have four fifths of their words in
/// common.
fn are_alike(old: &[Vec<u8>], new: &[Vec<u8>]) -> bool {
    /// Words of a line, below which too few are left to compare.
    const FEWEST: usize = 4;
    let (mut i, mut j, mut common) = (0, 0, 0);
    while let (Some(a), Some(b)) = (old.get(i), new.get(j)) {
        match a.cmp(b) {
            Ordering::Less => i += 1,
            Ordering::Greater => j += 1,
            Ordering::Equal => (i, j, common) = (i + 1, j + 1, common + 1),
        }
    }
    let most = old.len().max(new.len());
    old.len().min(new.len()) >= FEWEST && common * 5 >= most * 4
}

/// Returns true if the paths of data of two findings have the same steps, or neither has a path.
fn have_same_path(old: &Finding, new: &Finding) -> bool {
    let (old, new) = (old.flow(), new.flow());
    old.len() == new.len() && old.iter().zip(new).all(|(a, b)| a.quote == b.quote)
}

/// Returns the part of its line that a finding is about. `None`: the finding is about whole lines.
fn matched<'a>(text: &'a Text, finding: &Finding) -> Option<&'a [u8]> {
    let lines = finding.lines()?;
    let (start, end) = lines.columns?;
    text.line(lines.first)?
        .get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
        .filter(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::layout::tests::changed;
    use crate::finding::Severity;

    /// Returns the severities of the findings of a rule in the change of a file.
    fn severities(path: &str, rule: &str, old: &str, new: &str) -> Vec<Severity> {
        changed(path, old, new)
            .into_iter()
            .filter(|finding| finding.rule_id() == rule)
            .map(|finding| finding.severity())
            .collect()
    }

    const RULE: &str = "go-tls-verify-off";
    const TLS: &str = "\treturn &tls.Config{InsecureSkipVerify: true}\n";

    /// Returns a file of Go with two functions of given bodies.
    fn go(first: &str, second: &str) -> String {
        format!(
            "package a\n\nfunc one() *tls.Config {{\n{first}}}\n\nfunc two() *tls.Config {{\n{second}}}\n"
        )
    }

    #[test]
    fn code_that_moves_within_a_file_is_a_suggestion() {
        let (old, new) = (go(TLS, "\treturn nil\n"), go("\treturn nil\n", TLS));
        assert_eq!(severities("a.go", RULE, "", &old), [Severity::Major]);
        assert_eq!(severities("a.go", RULE, &old, &new), [Severity::Suggestion]);
    }

    #[test]
    fn one_more_finding_than_before_keeps_its_severity() {
        let old = go(TLS, "\treturn nil\n");
        let new = go(&format!("\tlog.Print(1)\n{TLS}"), TLS);
        let found = severities("a.go", RULE, &old, &new);
        assert!(found.contains(&Severity::Major), "{found:?}");
    }

    #[test]
    fn other_code_with_the_same_weakness_keeps_its_severity() {
        let old = go(TLS, "\treturn nil\n");
        let new = go(
            "\treturn nil\n",
            "\treturn &tls.Config{ServerName: bank, InsecureSkipVerify: true}\n",
        );
        assert_eq!(severities("a.go", RULE, &old, &new), [Severity::Major]);
    }

    #[test]
    fn a_finding_that_a_comment_suppressed_is_new_without_the_comment() {
        let suppressed = TLS.replace(
            '\n',
            " // claude-reviewer: ignore[go-tls-verify-off] test server\n",
        );
        let (old, new) = (go(&suppressed, "\treturn nil\n"), go("\treturn nil\n", TLS));
        let found = severities("a.go", RULE, &old, &new);
        assert_eq!(found, [Severity::Major]);
    }

    #[test]
    fn a_critical_finding_keeps_its_severity_wherever_it_moves() {
        let eval = "import os\nfrom flask import request\n\ndef a():\n    os.system('ls ' + request.args['a'])\n\ndef b():\n    x = 1\n    y = 2\n    z = 3\n    return x + y + z\n";
        let moved = "import os\nfrom flask import request\n\ndef b():\n    x = 1\n    y = 2\n    z = 3\n    return x + y + z\n\ndef a():\n    os.system('ls ' + request.args['a'])\n";
        let is_critical = |old: &str, new: &str| {
            let found = changed("a.py", old, new);
            found.iter().any(|f| f.severity() == Severity::Critical)
        };
        assert!(is_critical("", eval));
        assert!(is_critical(eval, moved));
    }

    #[test]
    fn an_edit_in_place_that_keeps_most_words_is_a_suggestion() {
        let line = "\treturn &tls.Config{ServerName: host, InsecureSkipVerify: true}\n";
        let edited = line.replace("ServerName: host", "ServerName: name");
        let other =
            "\treturn dial(bank, &tls.Config{Certificates: all, InsecureSkipVerify: true})\n";
        let old = go(line, "\treturn nil\n");
        let of = |new: &str| severities("a.go", RULE, &old, &go(new, "\treturn nil\n"));
        assert_eq!(of(&edited), [Severity::Suggestion]);
        assert_eq!(of(other), [Severity::Major]);
    }

    #[test]
    fn an_edit_beside_an_equal_minor_match_is_a_suggestion() {
        let line = "scp -o StrictHostKeyChecking=no a host:/a\n";
        let found = severities(
            "deploy.sh",
            "ssh-host-key-check-off",
            line,
            &line.replace(" a ", " b "),
        );
        assert_eq!(found, [Severity::Suggestion]);
        let other = "scp -o StrictHostKeyChecking=yes a host:/a\n";
        let found = severities("deploy.sh", "ssh-host-key-check-off", other, line);
        assert_eq!(found, [Severity::Minor]);
    }
}
