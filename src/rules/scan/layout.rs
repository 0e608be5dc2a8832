//! Findings on lines whose layout changed and nothing else: formatting a file adds no flaw to it.

use super::{Pass, reading};
use crate::diff::{Body, Entry, FileChange, LineEdit, LineNo, LineRange, Text, TextChange};
use crate::finding::listing::Floor;
use crate::finding::{Finding, Severity};
use crate::rules::catalog::Matcher;
use crate::rules::suppress::Counting;
use crate::rules::{RuleSet, Scope};

/// Rule that reads text for a reviewer, in which white space does not matter.
pub(super) const INSTRUCTIONS: &str = "prompt-injection";

/// Drops each finding of `out`, from the index `from` on, on lines that differ from the removed
/// ones only in layout, if the rule has as many findings in the removed lines, each at least as
/// severe. A finding that can block by default is kept: the comparison ignores comments and
/// interpolation, and a value can have another origin than before. Findings of teams, of data flow,
/// of secrets and of hidden characters are kept too.
pub(super) fn drop_laid_out(
    rules: &RuleSet,
    file: &FileChange,
    floor: &Floor,
    out: &mut Vec<Finding>,
    from: usize,
) {
    let Some(text) = file
        .text()
        .filter(|text| text.old.whole().is_some() && text.new.whole().is_some())
    else {
        return;
    };
    if !out[from..]
        .iter()
        .any(|finding| is_minor_of_code(rules, finding))
    {
        return;
    }
    let parts = laid_out(text);
    if !out[from..]
        .iter()
        .any(|finding| parts.iter().any(|part| is_within(finding, &part.new)))
    {
        return;
    }
    let before = before(rules, file, text, Counting::None, floor);
    let new = out.split_off(from);
    let kept = new.iter().filter(|finding| {
        let mut parts = parts.iter().filter(|part| is_within(finding, &part.new));
        !is_minor_of_code(rules, finding)
            || !parts.any(|part| is_known(text, part, finding, &new, &before))
    });
    out.extend(kept.cloned());
}

/// Returns true if the rule of a finding of `new` has as many findings of `before` in the removed
/// lines of a part, each at least as severe, and one on the same code.
fn is_known(
    text: &TextChange,
    part: &LineEdit,
    finding: &Finding,
    new: &[Finding],
    before: &[Finding],
) -> bool {
    let id = finding.rule_id();
    let old: Vec<_> = before
        .iter()
        .filter(|old| old.rule_id() == id && is_within(old, &part.old))
        .collect();
    let count = new
        .iter()
        .filter(|new| new.rule_id() == id && is_within(new, &part.new))
        .count();
    let of = code_of(&text.new, finding);
    old.len() >= count
        && old.iter().all(|old| old.severity() >= finding.severity())
        && old.iter().map(|old| code_of(&text.old, old)).any(|old| {
            memchr::memmem::find(&old, &of).is_some() || memchr::memmem::find(&of, &old).is_some()
        })
}

/// Returns the code on the lines of a finding, without layout.
fn code_of(text: &Text, finding: &Finding) -> Vec<u8> {
    let numbers = finding
        .lines()
        .map(|lines| lines.first.get()..=lines.last.get());
    let lines = numbers
        .into_iter()
        .flatten()
        .filter_map(|number| text.line(LineNo::new(number)?));
    lines.flat_map(code).collect()
}

fn is_within(finding: &Finding, part: &LineRange) -> bool {
    finding.lines().is_some_and(|lines| {
        part.start <= lines.first.get() && lines.last.get() < part.start + part.count
    })
}

/// Returns true if a finding is below the severities that block by default, and about code in which
/// layout has no meaning for the rule.
fn is_minor_of_code(rules: &RuleSet, finding: &Finding) -> bool {
    let rule = rules
        .index_of(finding.rule_id())
        .filter(|index| rules.is_of_catalogue(*index));
    let rule = rule.map(|index| rules.rule(index));
    finding.severity() < Severity::Major
        && rule.is_some_and(|rule| {
            matches!(rule.matcher, Matcher::Pattern | Matcher::Structural)
                && !rule.secret
                && rule.id != INSTRUCTIONS
        })
}

/// Returns the edits, and the hunks as edits, that only change the layout.
fn laid_out(text: &TextChange) -> Vec<LineEdit> {
    let edits = text.hunks.iter().flat_map(|hunk| {
        let whole = LineEdit {
            old: hunk.old.clone(),
            new: hunk.new.clone(),
        };
        hunk.edits.iter().cloned().chain([whole])
    });
    edits
        .filter(|edit| is_same_code(text.old.slice(&edit.old), text.new.slice(&edit.new)))
        .collect()
}

/// Returns true if two texts are equal without white space, marks that end a statement or an
/// element, and the kind of their quotes.
fn is_same_code(old: &[u8], new: &[u8]) -> bool {
    !old.is_empty() && code(old).eq(code(new))
}

fn code(text: &[u8]) -> impl Iterator<Item = u8> {
    let code = text
        .iter()
        .filter(|b| !b.is_ascii_whitespace() && !matches!(b, b';' | b','));
    code.map(|b| if *b == b'\'' { b'"' } else { *b })
}

/// Returns the findings in the removed lines, from a scan of the reversed change. The old path says
/// what the old file was: a test that becomes a part of the program had weaker findings.
pub(super) fn before(
    rules: &RuleSet,
    file: &FileChange,
    text: &TextChange,
    counting: Counting,
    floor: &Floor,
) -> Vec<Finding> {
    let file = FileChange {
        entry: Entry {
            kind: file.entry.kind,
            old: file.entry.new.clone(),
            new: file.entry.old.clone(),
        },
        body: Body::Text(text.reversed()),
    };
    let mut out = Vec::new();
    reading(
        rules,
        &file,
        Pass {
            scope: Scope::All,
            is_first: true,
        },
        counting,
        floor,
        &mut out,
    );
    out
}

#[cfg(test)]
pub(super) mod tests {
    use super::is_same_code;
    use crate::diff::{Attribute, Body, ChangeKind, Entry, FileChange, FileMode, RepoPath, Side};
    use crate::finding::Finding;
    use crate::policy::{RuleProfile, RulesPolicy};
    use crate::rules::{RuleSet, Scope};

    /// Returns the findings in the change of a file from one text to another.
    pub(in crate::rules::scan) fn changed(
        profile: RuleProfile,
        path: &str,
        old: &str,
        new: &str,
    ) -> Vec<Finding> {
        let kind = ChangeKind::Modified;
        scanned(profile, kind, (path, old), (path, new))
    }

    /// Returns the findings of the default profile in a file that a change renames and edits.
    pub(in crate::rules::scan) fn renamed(
        from: &str,
        to: &str,
        old: &str,
        new: &str,
    ) -> Vec<Finding> {
        let kind = ChangeKind::Renamed { similarity: 60 };
        scanned(RuleProfile::Default, kind, (from, old), (to, new))
    }

    /// Returns the findings in the change of a file, given the path and text of each side.
    fn scanned(
        profile: RuleProfile,
        kind: ChangeKind,
        old: (&str, &str),
        new: (&str, &str),
    ) -> Vec<Finding> {
        let policy = RulesPolicy {
            profile,
            ..RulesPolicy::default()
        };
        let rules = RuleSet::new(&policy, &[]).unwrap();
        let path = RepoPath::from(new.0);
        let texts = [old.1, new.1].map(|text| Some(text.into()));
        let [before, after] = texts;
        let body = Body::of_file(&path, before, after, Attribute::Unset);
        let side = |path: &str| Side {
            path: RepoPath::from(path),
            mode: FileMode::Regular,
            id: None,
        };
        let entry = Entry {
            kind,
            old: Some(side(old.0)),
            new: Some(side(new.0)),
        };
        let mut out = Vec::new();
        rules.scan(&FileChange { entry, body }, Scope::All, &mut out);
        out
    }

    /// Returns the rules with findings in the change of a file from one text to another, with their
    /// lines.
    fn found(path: &str, old: &str, new: &str) -> Vec<(String, u32)> {
        changed(RuleProfile::Default, path, old, new)
            .iter()
            .map(|f| {
                (
                    f.rule_id().to_owned(),
                    f.lines().map_or(0, |lines| lines.first.get()),
                )
            })
            .collect()
    }

    #[test]
    fn code_that_is_laid_out_anew_has_no_new_minor_findings() {
        let old = "def f():\n  assert (a, 'b')\n  return requests.get(u, verify=False)\n";
        let wrapped = "def f():\n    assert (\n        a,\n        'b',\n    )\n    return requests.get(u, verify=False)\n";
        fn of_assert(found: &[(String, u32)]) -> usize {
            found
                .iter()
                .filter(|(id, _)| id == "python-assert-tuple")
                .count()
        }
        assert_eq!(of_assert(&found("a.py", "", old)), 1);
        assert_eq!(of_assert(&found("a.py", old, wrapped)), 0, "wrapped");
        let twice = wrapped.replace("    return", "    assert (c, 'd')\n    return");
        assert!(of_assert(&found("a.py", old, &twice)) > 0, "one more");
        let old = "def f():\n    #\n    assert (a, 'b') #\n    # assert (c, 'd')\n";
        let new = "def f():\n    # assert (a, 'b') #\n    #\n    assert (c, 'd')\n";
        assert_eq!(
            of_assert(&found("a.py", old, new)),
            1,
            "a line break that opens a comment"
        );
    }

    #[test]
    fn a_finding_that_blocks_is_reported_whatever_the_layout() {
        let old = "const c = process.argv[2];\nconst d = 1;\nmodule.exports = (req, res) => {\n  return eval(c);\n};\n";
        let new = old
            .replace("process.argv[2]", "req.query.c")
            .replace("eval(c)", "eval( c )");
        assert_eq!(
            found("src/a.js", old, &new).len(),
            found("src/a.js", "", &new).len()
        );
        let old = "import os\nfrom flask import request\ndef f():\n  os.system('ls ' + request.args['a'])\n";
        let new = old.replace("  os.system(", "  os.system( ");
        assert_eq!(
            found("a.py", old, &new).len(),
            found("a.py", "", &new).len()
        );
    }

    #[test]
    fn a_line_whose_check_is_removed_is_reported() {
        let old = "const run = (req, res) => {\n  const a = req.query.a;\n  if (/^[a-z]+$/.test(a)) {\n    exec('ls ' + a);\n  }\n};\n";
        let new = "const run = (req, res) => {\n  const a = req.query.a;\n  exec('ls ' + a);\n};\n";
        let old = format!("const {{ exec }} = require('child_process');\n{old}");
        let new = format!("const {{ exec }} = require('child_process');\n{new}");
        assert!(!found("a.js", "", &new).is_empty());
        assert!(!found("a.js", &old, &new).is_empty());
    }

    #[test]
    fn a_secret_that_is_laid_out_anew_is_reported() {
        let key = format!("AKIA{}", "Q3EGRIHBUYXAPKMN");
        let old = format!("a = f('{key}')\n");
        let new = format!("a = f(\n    '{key}',\n)\n");
        assert!(!found("a.py", "", &old).is_empty());
        assert!(!found("a.py", &old, &new).is_empty());
    }

    #[test]
    fn layout_is_white_space_ends_and_the_kind_of_quotes() {
        assert!(is_same_code(
            b"f( 'a', b )",
            b"f(\n    \"a\",\n    b,\n);\n"
        ));
        assert!(!is_same_code(b"f('a')", b"f('b')"));
        assert!(!is_same_code(b"", b""));
    }
}
