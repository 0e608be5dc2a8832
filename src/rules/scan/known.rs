//! Findings on code that the change moves within a file: the file had the same weakness before.

use super::layout::before;
use crate::diff::{FileChange, Text, trim_line_end};
use crate::finding::listing::Floor;
use crate::finding::{Finding, Severity};
use crate::rules::catalog::Matcher;
use crate::rules::language::Languages;
use crate::rules::suppress::Counting;
use crate::rules::{RuleSet, lexer};
use std::collections::HashMap;
use std::ops::Range;

/// Rule that reads text for a reviewer: a moved instruction is read all the same.
const INSTRUCTIONS: &str = "prompt-injection";
/// Reason why such a finding is a suggestion.
const KNOWN: &str = "the file had the same finding on the same code before the change";

/// Lines above a finding that are searched for the blocks around it, at most. A large file can have
/// thousands of findings in one block.
const REACH: u32 = 1000;

/// One side of a change, with what is not code in it.
struct CodeSide<'t> {
    /// All lines without their ends.
    lines: Vec<&'t [u8]>,
    /// Numbers of the lines that start inside of a comment or of a string, in order.
    inside: Vec<Range<u32>>,
}

/// The lines of a finding and those that say where it is, without indentation.
#[derive(Debug, PartialEq, Eq, Hash)]
struct CodeInPlace<'t> {
    lines: Vec<&'t [u8]>,
    /// The nearest line above that is not blank.
    above: Option<&'t [u8]>,
    /// The nearest line below that is not blank.
    below: Option<&'t [u8]>,
    /// The lines above that open the blocks around the finding, from the innermost one on: each is
    /// the nearest one with less indentation.
    headers: Vec<&'t [u8]>,
}

/// Lowers each finding of `out`, from the index `from` on, to a suggestion if its rule reported the
/// same code in the removed lines of the file, in a block with the same name and conditions.
///
/// Each removed finding covers one added finding. It must be at least as severe, and no comment may
/// have suppressed it. All lines of the two findings are equal without indentation, and so are the
/// lines around them ([`CodeInPlace`]) and the steps of a path of data. An edit of the line, of a
/// condition around it or of its function makes it new code.
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
    let Some(text) = file.text() else {
        return;
    };
    let candidates: Vec<usize> = (from..out.len())
        .filter(|index| can_be_lowered(rules, &out[*index]))
        .collect();
    if candidates.is_empty() || text.removed().next().is_none() {
        return;
    }
    let languages = Languages::of(file.path().as_bytes(), b"");
    let sides = (
        CodeSide::new(&text.old, languages),
        CodeSide::new(&text.new, languages),
    );
    let (Some(old_side), Some(new_side)) = sides else {
        return;
    };
    let mut old = before(rules, file, text, Counting::All, floor);
    old.retain(|finding| finding.suppressed.is_none());
    let mut known: HashMap<(Option<u16>, CodeInPlace<'_>), Vec<&Finding>> = HashMap::new();
    for finding in &old {
        if let Some(code) = old_side.code_of(finding) {
            let rule = rules.index_of(finding.rule_id());
            known.entry((rule, code)).or_default().push(finding);
        }
    }
    for index in candidates {
        let finding = &mut out[index];
        let rule = rules.index_of(finding.rule_id());
        let code = new_side.code_of(finding);
        let Some(same) = code.and_then(|code| known.get_mut(&(rule, code))) else {
            continue;
        };
        let covering = same
            .iter()
            .position(|old| old.severity() >= finding.severity() && have_same_path(old, finding));
        if let Some(at) = covering {
            same.swap_remove(at);
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

impl<'t> CodeSide<'t> {
    /// Returns a side that is known as a whole.
    fn new(text: &'t Text, languages: Languages) -> Option<Self> {
        let whole = text.whole()?;
        let lines = whole.split_inclusive(|b| *b == b'\n').map(trim_line_end);
        let inside = lexer::not_code(languages, whole).into_iter();
        let inside = inside.filter_map(|range| {
            let first = text.line_number(range.start)?.get();
            let last = text.line_number(range.end.checked_sub(1)?)?.get();
            (first < last).then_some(first + 1..last + 1)
        });
        Some(Self {
            lines: lines.collect(),
            inside: inside.collect(),
        })
    }

    /// Returns the code of a finding and its place. `None`: the finding has no lines, or a line
    /// around it that looks like the start of a block is in a comment or a string, where an author
    /// can write anything, or its outermost block starts more than [`REACH`] lines above.
    fn code_of(&self, finding: &Finding) -> Option<CodeInPlace<'t>> {
        let span = finding.lines()?;
        let (first, last) = (span.first.get(), span.last.get());
        let lines = (first..=last).filter_map(|n| self.line(n));
        let mut level = self.line(first).map(indentation)?;
        let mut headers = Vec::new();
        for number in (1..first).rev() {
            if level == 0 {
                break;
            }
            if first - number > REACH {
                return None;
            }
            let Some(line) = self.line(number).filter(|line| is_lower(line, level)) else {
                continue;
            };
            let next = self.inside.partition_point(|lines| lines.end <= number);
            if self.inside.get(next).is_some_and(|l| l.start <= number) {
                return None;
            }
            level = indentation(line);
            headers.push(line.trim_ascii());
        }
        Some(CodeInPlace {
            lines: lines.map(<[u8]>::trim_ascii).collect(),
            above: (1..first)
                .rev()
                .filter_map(|n| self.line(n))
                .map(<[u8]>::trim_ascii)
                .find(|line| !line.is_empty()),
            below: (last + 1..)
                .map_while(|n| self.line(n))
                .map(<[u8]>::trim_ascii)
                .find(|line| !line.is_empty()),
            headers,
        })
    }

    fn line(&self, number: u32) -> Option<&'t [u8]> {
        self.lines.get(number.checked_sub(1)? as usize).copied()
    }
}

/// Returns true if a line is not blank and has less indentation than `level` bytes.
fn is_lower(line: &[u8], level: usize) -> bool {
    !line.trim_ascii().is_empty() && indentation(line) < level
}

/// Returns the bytes of white space at the start of a line.
fn indentation(line: &[u8]) -> usize {
    line.len() - line.trim_ascii_start().len()
}

/// Returns true if the paths of data of two findings have the same steps, or neither has a path.
fn have_same_path(old: &Finding, new: &Finding) -> bool {
    let (old, new) = (old.flow(), new.flow());
    old.len() == new.len() && old.iter().zip(new).all(|(a, b)| a.quote == b.quote)
}

#[cfg(test)]
mod tests {
    use super::super::layout::tests::changed;
    use crate::finding::Severity;
    use crate::policy::RuleProfile;

    /// Returns the severities of the findings of a rule in the change of a file.
    fn severities(path: &str, rule: &str, old: &str, new: &str) -> Vec<Severity> {
        changed(RuleProfile::Audit, path, old, new)
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

    /// A body that is longer than the others, so that a comparison moves the others.
    const LONG: &str = "\ta()\n\tb()\n\tc()\n\td()\n\te()\n\tf()\n\treturn nil\n";

    #[test]
    fn a_function_that_moves_within_a_file_is_a_suggestion() {
        let old = go(TLS, LONG);
        let function = format!("func one() *tls.Config {{\n{TLS}}}\n\n");
        let rest = old.replace(&function, "");
        let new = format!("{rest}\n{}", function.trim_end());
        assert_eq!(severities("a.go", RULE, "", &old), [Severity::Major]);
        assert_eq!(severities("a.go", RULE, &old, &new), [Severity::Suggestion]);
    }

    #[test]
    fn a_line_that_leaves_one_function_covers_none_in_another_function() {
        let old = go(TLS, "\treturn nil\n");
        let new = go("\treturn nil\n", TLS);
        assert_eq!(severities("a.go", RULE, &old, &new), [Severity::Major]);
        let old = go(&format!("\tx()\n{TLS}"), "\treturn nil\n");
        let decoy = format!("/*\nfunc one() *tls.Config {{\n\t*/\n\tx()\n{TLS}");
        let new = go("\treturn nil\n", &decoy);
        let found = severities("a.go", RULE, &old, &new);
        assert_eq!(found, [Severity::Major], "a function in a comment");
    }

    #[test]
    fn a_finding_without_the_condition_around_it_is_new() {
        let guarded = format!("\tif dev {{\n\t{TLS}\t}}\n\treturn nil\n");
        let bare = format!("{TLS}\treturn nil\n");
        let (old, new) = (go(&guarded, LONG), go(&bare, LONG));
        assert_eq!(severities("a.go", RULE, &old, &new), [Severity::Major]);
        let guarded = TLS
            .replace("return", "if dev { use(")
            .replace("}\n", "}) }\n");
        let bare = TLS.replace("return", "use(").replace("}\n", "})\n");
        let (old, new) = (go(&guarded, LONG), go(&bare, LONG));
        assert_eq!(severities("a.go", RULE, &old, &new), [Severity::Major]);
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
            let found = changed(RuleProfile::Audit, "a.py", old, new);
            found.iter().any(|f| f.severity() == Severity::Critical)
        };
        assert!(is_critical("", eval));
        assert!(is_critical(eval, moved));
    }

    /// Returns lines of Go that call functions with other names than those of another prefix.
    fn calls(prefix: &str, count: u32) -> String {
        (0..count).map(|i| format!("\t{prefix}{i}()\n")).collect()
    }

    #[test]
    fn a_finding_far_below_the_start_of_its_function_is_new_wherever_it_moves() {
        for (count, expected) in [(100, Severity::Suggestion), (1_100, Severity::Major)] {
            let one = format!("func one() *tls.Config {{\n{}{TLS}}}\n", calls("a", count));
            let two = format!("func two() {{\n{}}}\n", calls("b", 2 * count));
            let old = format!("package a\n\n{one}\n{two}");
            let new = format!("package a\n\n{two}\n{one}");
            assert_eq!(severities("a.go", RULE, &old, &new), [expected], "{count}");
        }
    }

    // Each finding was compared with each removed one, and searched all lines of the function for
    // both: hours for a function of some thousand lines.
    #[test]
    fn the_findings_of_a_function_are_compared_in_linear_time() {
        let body = |host: &str| -> String {
            let line = |i| {
                format!("\tuse(&tls.Config{{ServerName: {host}{i}, InsecureSkipVerify: true}})\n")
            };
            (0..900).map(line).collect()
        };
        let file = |host: &str| format!("package a\n\nfunc one() {{\n{}}}\n", body(host));
        let found = severities("a.go", RULE, &file("old"), &file("new"));
        assert_eq!(found, [Severity::Major; 900]);
    }

    #[test]
    fn an_edit_in_place_keeps_the_severity() {
        let line = "\treturn &tls.Config{ServerName: host, InsecureSkipVerify: true}\n";
        let edited = line.replace("ServerName: host", "ServerName: bank");
        let old = go(line, "\treturn nil\n");
        let found = severities("a.go", RULE, &old, &go(&edited, "\treturn nil\n"));
        assert_eq!(found, [Severity::Major]);
        let line = "ANSIBLE_HOST_KEY_CHECKING=False ansible-playbook a.yml\n";
        let edited = line.replace(" a.yml", " b.yml");
        let found = severities("deploy.sh", "ansible-host-key-check-off", line, &edited);
        assert_eq!(found, [Severity::Minor]);
    }
}
