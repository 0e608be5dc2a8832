//! Tests of anchoring claims, and the helpers that the submodules share.

mod caller;
mod draft;
mod equal;
mod other_file;
mod related;

use super::*;
use crate::ai::claim::{self, Claim};
use crate::ai::material::Shown;
use crate::ai::plan::{FilePiece, HunkPart};
use crate::ai::related::{Excerpt, Related, Why};
use crate::diff::{Attribute, Body, ChangeKind, Entry, FileChange, FileMode, Side};
use crate::finding::{Category, Severity};
use crate::policy::{Policy, RulesPolicy};

/// A change, with all input that claims are checked against.
pub(super) struct ClaimCase {
    pub(super) group: Group,
    chunk: Chunk,
    conventions: Vec<Document>,
    read: Vec<Read>,
    pub(super) rules: RuleSet,
    tree: Option<TreeTexts>,
}

/// A tree under review: its files, in byte order.
#[derive(Debug, Default)]
struct TreeTexts {
    paths: Vec<RepoPath>,
    texts: Vec<Rc<str>>,
}

impl TreeFiles for TreeTexts {
    fn text(&self, path: &RepoPath) -> Option<Rc<str>> {
        self.paths
            .iter()
            .position(|p| p == path)
            .map(|i| self.texts[i].clone())
    }

    fn paths(&self) -> &[RepoPath] {
        &self.paths
    }
}

impl ClaimCase {
    /// Builds a change from files: path, old content and new content (empty if the side does not
    /// exist).
    pub(super) fn new(files: &[(&str, &str, &str)]) -> Self {
        let rules = RuleSet::new(&RulesPolicy::default(), &[]).unwrap();
        let files: Vec<Shown> = files
            .iter()
            .map(|(path, old, new)| shown(path, path, old, new, &rules))
            .collect();
        let chunk = whole(&files);
        let group = Group {
            commit: None,
            tree: None,
            messages: Vec::new(),
            files,
            related: Related::default(),
        };
        Self {
            group,
            chunk,
            conventions: Vec::new(),
            read: Vec::new(),
            rules,
            tree: None,
        }
    }

    pub(super) fn convention(mut self, name: &str, text: &str) -> Self {
        self.conventions.push(Document {
            name: name.to_owned(),
            text: text.to_owned(),
            folder: Vec::new(),
        });
        self
    }

    pub(super) fn read(mut self, path: &str, first: u32, last: u32) -> Self {
        self.read.push(Read {
            path: RepoPath::from(path),
            first: line_no(first),
            last: line_no(last),
        });
        self
    }

    /// Adds a file of the tree that the change does not touch.
    fn unchanged(mut self, path: &str, text: &str) -> Self {
        let tree = self.tree.get_or_insert_default();
        tree.paths.push(RepoPath::from(path));
        tree.texts.push(text.into());
        self
    }

    pub(super) fn context(&self) -> Context<'_> {
        Context {
            group: &self.group,
            chunk: &self.chunk,
            conventions: &self.conventions,
            documents: &[],
            tickets: &[],
            read: &self.read,
            backend: "one",
            rules: &self.rules,
            tree: self.tree.as_ref().map(|t| t as &dyn TreeFiles),
        }
    }

    /// Anchors one claim.
    pub(super) fn anchor(&self, claim: Claim) -> Anchored {
        let reply = Reply {
            findings: vec![claim],
            ..Reply::default()
        };
        let mut all = claims(&reply, &self.context());
        assert_eq!(all.len(), 1);
        all.remove(0)
    }

    #[track_caller]
    pub(super) fn candidate(&self, claim: Claim) -> ClaimCandidate {
        match self.anchor(claim) {
            Anchored::Candidate(c) => *c,
            other => panic!("{other:?}"),
        }
    }
}

fn shown(old_path: &str, path: &str, old: &str, new: &str, rules: &RuleSet) -> Shown {
    let kind = match (old, new) {
        ("", _) => ChangeKind::Added,
        (_, "") => ChangeKind::Deleted,
        _ => ChangeKind::Modified,
    };
    let change = FileChange {
        entry: Entry {
            kind,
            old: side(old_path, old),
            new: side(path, new),
        },
        body: Body::between(content(old), content(new), Attribute::Unset),
    };
    Shown::new(change, rules, &Policy::default())
        .unwrap()
        .unwrap()
}

fn whole(files: &[Shown]) -> Chunk {
    let pieces = files.iter().enumerate().map(|(file, of)| FilePiece {
        file,
        hunks: of
            .hunks
            .iter()
            .enumerate()
            .map(|(hunk, h)| HunkPart {
                hunk,
                lines: 0..h.lines.len(),
            })
            .collect(),
        split: false,
    });
    Chunk {
        group: 0,
        pieces: pieces.collect(),
        room: 0,
    }
}

/// Returns a side of a change. A side without text does not exist.
fn side(path: &str, text: &str) -> Option<Side> {
    (!text.is_empty()).then(|| Side {
        path: RepoPath::from(path),
        mode: FileMode::Regular,
        id: None,
    })
}

/// Returns the content of a side. A side without text does not exist.
fn content(text: &str) -> Option<Vec<u8>> {
    (!text.is_empty()).then(|| text.as_bytes().to_vec())
}

fn line_no(n: u32) -> LineNo {
    LineNo::new(n).unwrap()
}

/// Builds a claim about a line.
pub(super) fn claim(file: &str, line: i64, quote: &str) -> Claim {
    Claim {
        file: Some(file.to_owned()).filter(|f| !f.is_empty()),
        line: Some(line).filter(|n| *n != 0),
        quote: Some(quote.to_owned()).filter(|q| !q.is_empty()),
        severity: "major".to_owned(),
        category: "bug".to_owned(),
        title: "It is wrong".to_owned(),
        message: "It does the wrong thing.".to_owned(),
        ..Claim::default()
    }
}

/// Formats the position of a claim.
fn place(anchored: &Anchored) -> String {
    match anchored {
        Anchored::Candidate(c) => {
            let how = match c.certainty {
                PositionCertainty::Certain => "exactly",
                PositionCertainty::Likely => "as numbered",
                PositionCertainty::Doubtful => "loosely",
            };
            match &c.draft.location {
                None => format!("change {how}"),
                Some(l) => {
                    let lines = l.lines.map_or(String::new(), |s| match s.first == s.last {
                        true => format!(":{}", s.first),
                        false => format!(":{}-{}", s.first, s.last),
                    });
                    format!("{}{lines} {how}", l.file.to_wire())
                }
            }
        }
        Anchored::Remark { file, line, .. } => {
            let line = line.map(|n| format!(":{n}")).unwrap_or_default();
            format!(
                "remark {}{line}",
                file.as_ref().map_or("-".to_owned(), RepoPath::to_wire)
            )
        }
        Anchored::Dropped { .. } => "dropped".to_owned(),
    }
}

/// Returns a file of 60 numbered lines before and after edits.
fn sixty(edit: impl Fn(usize) -> Option<String>) -> (String, String) {
    fn line(i: usize) -> String {
        format!("    let value_{i} = compute_{i}(input);\n")
    }
    let old = (1..=60).map(line).collect();
    (
        old,
        (1..=60)
            .map(|i| edit(i).unwrap_or_else(|| line(i)))
            .collect(),
    )
}

fn case() -> ClaimCase {
    let (old, new) = sixty(|i| match i {
        20 => Some("    let total = sum(&values[1..]);\n    free(buffer);\n".to_owned()),
        30 => Some("    free(buffer);\n".to_owned()),
        40 => Some(String::new()),
        _ => None,
    });
    ClaimCase::new(&[
        ("src/a.rs", &old, &new),
        (
            "src/b.rs",
            "use std::fmt;\nfn b() {}\n",
            "use std::fmt;\nfn b() { open(path, MODE) }\nfn c() {}\n",
        ),
        ("gone.rs", "fn gone() {\n    never();\n}\n", ""),
        ("new.rs", "", "fn fresh() {\n    loop_forever(1, 2);\n}\n"),
    ])
}

#[test]
fn a_quote_finds_its_line() {
    let case = case();
    let total = "    let total = sum(&values[1..]);";
    for (claim, expected) in [
        // The number is right, wrong, absurd or missing: the quote decides.
        (claim("src/a.rs", 20, total), "src/a.rs:20 exactly"),
        (claim("src/a.rs", 37, total), "src/a.rs:20 exactly"),
        (claim("src/a.rs", 4_000, total), "src/a.rs:20 exactly"),
        (claim("src/a.rs", 0, total), "src/a.rs:20 exactly"),
        (claim("src/a.rs", -3, total), "src/a.rs:20 exactly"),
        (claim("src/a.rs", 1 << 53, total), "src/a.rs:20 exactly"),
        // Diff markers and line numbers around the line are ignored.
        (
            claim("src/a.rs", 20, "+    let total = sum(&values[1..]);"),
            "src/a.rs:20 exactly",
        ),
        (
            claim("src/a.rs", 20, "20+    let total = sum(&values[1..]);"),
            "src/a.rs:20 exactly",
        ),
        (
            claim("src/a.rs", 20, "20 | let total = sum(&values[1..]);"),
            "src/a.rs:20 exactly",
        ),
        (
            claim("src/a.rs", 20, "`let total = sum(&values[1..]);`\n"),
            "src/a.rs:20 exactly",
        ),
        // So are differences in white space.
        (
            claim("src/a.rs", 20, "let total = sum( &values[1..] );"),
            "src/a.rs:20 exactly",
        ),
        (
            claim("src/a.rs", 37, "let total=sum(&values[1..]);"),
            "src/a.rs:20 exactly",
        ),
        // A part of the line matches if the number agrees or no other changed line contains it.
        (
            claim("src/a.rs", 20, "sum(&values[1..])"),
            "src/a.rs:20 as numbered",
        ),
        (
            claim("src/a.rs", 24, "sum(&values[1..])"),
            "src/a.rs:20 as numbered",
        ),
        (
            claim("src/a.rs", 20, "let total = sum(&val…"),
            "src/a.rs:20 as numbered",
        ),
        (
            claim("src/a.rs", 20, "let total = ... values[1..]);"),
            "src/a.rs:20 as numbered",
        ),
        (claim("src/a.rs", 20, "&values["), "src/a.rs:20 as numbered"),
        // One token, or fewer than eight characters, is not enough.
        (claim("src/a.rs", 20, "values"), "src/a.rs:20 loosely"),
        (claim("src/a.rs", 20, "values["), "src/a.rs:20 loosely"),
        // All other quotes are only similar.
        (
            claim(
                "src/a.rs",
                20,
                "let total = sum(&values[1..]); // skips the first",
            ),
            "src/a.rs:20 loosely",
        ),
        (
            claim("src/a.rs", 21, "let total = add(&values[1..]);"),
            "src/a.rs:20 loosely",
        ),
        // The claim names another file of the change, or none.
        (claim("src/b.rs", 20, total), "src/a.rs:20 exactly"),
        (claim("", 0, total), "src/a.rs:20 exactly"),
        (
            claim("new.rs", 1, "let total = sum( &values[1..] );"),
            "src/a.rs:20 exactly",
        ),
        // Two consecutive lines.
        (
            claim(
                "src/a.rs",
                20,
                "let total = sum(&values[1..]);\n    free(buffer);",
            ),
            "src/a.rs:20-21 exactly",
        ),
        (
            claim(
                "src/a.rs",
                20,
                "20+let total = sum(&values[1..]);\n21+free(buffer);",
            ),
            "src/a.rs:20-21 exactly",
        ),
        (
            claim(
                "src/a.rs",
                19,
                "let value_19 = compute_19(input);\nlet total = sum(&values[1..]);",
            ),
            "src/a.rs:20 exactly",
        ),
        (
            claim(
                "src/a.rs",
                20,
                "let total = sum(&values[1..]);\n...\nfree(buffer);",
            ),
            "src/a.rs:20-21 loosely",
        ),
        (
            claim(
                "src/a.rs",
                20,
                "let total = sum(&values[1..]);\nsomething_else();",
            ),
            "src/a.rs:20 loosely",
        ),
        // In a new file, every line is changed.
        (
            claim("b/new.rs", 9, "loop_forever(1, 2);"),
            "new.rs:2 exactly",
        ),
    ] {
        let said = format!("{:?} {:?} {:?}", claim.file, claim.line, claim.quote);
        assert_eq!(place(&case.anchor(claim)), expected, "{said}");
    }
}

#[test]
fn a_claim_about_a_deleted_line_is_shown_at_what_is_left() {
    let case = case();
    for (claim, expected) in [
        (
            claim("src/a.rs", 40, "let value_40 = compute_40(input);"),
            "src/a.rs:41 exactly",
        ),
        (
            claim("src/a.rs", 40, "-    let value_40 = compute_40(input);"),
            "src/a.rs:41 exactly",
        ),
        (
            claim("src/a.rs", 20, "let value_20 = compute_20(input);"),
            "src/a.rs:20 exactly",
        ),
        (claim("gone.rs", 2, "never();"), "gone.rs exactly"),
        (claim("gone.rs", 2, ""), "gone.rs loosely"),
    ] {
        let anchored = case.anchor(claim.clone());
        assert_eq!(place(&anchored), expected, "{claim:?}");
        let Anchored::Candidate(c) = anchored else {
            unreachable!()
        };
        assert!(
            c.draft.message.contains("This is about the deleted line"),
            "{}",
            c.draft.message
        );
    }
}

#[test]
fn a_claim_about_unchanged_code_is_a_remark() {
    let case = case();
    for (claim, expected) in [
        // Shown as context, not shown, and outside the file.
        (
            claim("src/a.rs", 19, "let value_19 = compute_19(input);"),
            "remark src/a.rs:19",
        ),
        (
            claim("src/a.rs", 60, "let value_5 = compute_5(input);"),
            "remark src/a.rs:5",
        ),
        (claim("src/a.rs", 5, ""), "remark src/a.rs:5"),
        (claim("src/a.rs", 4_000, ""), "remark src/a.rs"),
        (claim("src/b.rs", 1, "use std::fmt;"), "remark src/b.rs:1"),
    ] {
        assert_eq!(place(&case.anchor(claim.clone())), expected, "{claim:?}");
    }
}

#[test]
fn out_04_a_file_that_is_not_part_of_the_change_is_a_remark_without_one() {
    let case = case();
    let total = "let total = sum(&values[1..]);";
    for named in [
        "../../etc/passwd",
        "/etc/passwd",
        "/a.rs",
        "SRC/A.RS",
        "src/A.rs",
        "src/other.rs",
        "x/../src/a.rs",
    ] {
        match case.anchor(claim(named, 20, total)) {
            Anchored::Remark {
                file: None,
                line: None,
                text,
            } => {
                assert!(
                    text.starts_with(&format!(
                        "about `{named}:20`, which is not part of the change: "
                    )),
                    "{text}"
                );
                assert!(
                    text.ends_with("It is wrong: It does the wrong thing."),
                    "{text}"
                );
            }
            other => panic!("{named}: {other:?}"),
        }
    }
}

#[test]
fn out_05_a_line_outside_of_the_hunks_never_becomes_a_place() {
    let case = case();
    for line in 1..80 {
        if let Anchored::Candidate(c) = case.anchor(claim("src/a.rs", line, "")) {
            let lines = c.draft.location.unwrap().lines.unwrap();
            let shown = &case.group.files[0].hunks;
            let there = shown
                .iter()
                .flat_map(|h| &h.lines)
                .any(|l| l.new == Some(lines.first));
            assert!(
                there && line.abs_diff(lines.first.get().into()) <= 3,
                "{line} {lines:?}"
            );
            assert_eq!(c.certainty, PositionCertainty::Doubtful);
        }
    }
}

#[test]
fn a_claim_without_a_line_is_about_the_file_and_one_without_a_file_about_the_change() {
    let case = case();
    assert_eq!(
        place(&case.anchor(claim("src/a.rs", 0, ""))),
        "src/a.rs loosely"
    );
    assert_eq!(place(&case.anchor(claim("", 0, ""))), "change loosely");
    assert_eq!(place(&case.anchor(claim("null", 3, ""))), "change loosely");
    assert_eq!(
        place(&case.anchor(claim("src/a.rs:20", 0, ""))),
        "src/a.rs:20 loosely"
    );
}

#[test]
fn what_is_tied_to_nothing_is_dropped_and_says_why() {
    let case = case();
    let (said, why) = dropped(&case, claim("src/a.rs", 4_000, "os.system(user_input)"));
    assert_eq!(
        (said.as_str(), why),
        (
            "src/a.rs: It is wrong",
            "its quote is not in the text sent to the model"
        )
    );
    assert_eq!(
        dropped(
            &case,
            Claim {
                title: " ".into(),
                message: String::new(),
                ..claim("src/a.rs", 20, "")
            }
        )
        .1,
        "it says nothing"
    );
    // A bracket in another file does not determine a position.
    assert_eq!(
        dropped(&case, claim("src/b.rs", 900, "}")).1,
        "its quote is not in the text sent to the model"
    );
}

/// Returns the text of a claim that is dropped, and the reason.
#[track_caller]
fn dropped(case: &ClaimCase, claim: Claim) -> (String, &'static str) {
    match case.anchor(claim) {
        Anchored::Dropped { claim, why } => (claim, why),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_quote_in_other_words_is_kept_at_a_line_of_the_change_with_low_confidence() {
    let case = case();
    for (line, quote, expected) in [
        (20, "os.system(user_input)", "src/a.rs:20 loosely"),
        (
            20,
            "the sum of all values but the first",
            "src/a.rs:20 loosely",
        ),
        (
            20,
            "let amount = total(&list[1..]);\nrelease(list);",
            "src/a.rs:20 loosely",
        ),
        // Context lines are not part of the change.
        (19, "os.system(user_input)", "src/a.rs:20 loosely"),
    ] {
        assert_eq!(
            place(&case.anchor(claim("src/a.rs", line, quote))),
            expected,
            "{line} {quote}"
        );
    }
}

fn elsewhere(file: &str, line: i64, quote: &str) -> claim::Elsewhere {
    claim::Elsewhere {
        file: Some(file.to_owned()),
        line: Some(line),
        quote: Some(quote.to_owned()),
    }
}

/// Returns a case with a changed definition, and an unchanged file at this path that calls it and
/// was read.
fn case_with(path: &str) -> ClaimCase {
    let mut case = case().unchanged(path, CALLERS).read(path, 1, 6);
    case.group.related.changed = vec![vec!["compute_20".to_owned()]];
    case
}

fn claim_at_caller() -> Claim {
    claim("callers.rs", 4, "let n = compute_20(v);")
}

#[test]
fn the_call_that_read_the_lines_is_evidence() {
    let case = case()
        .read("src/a.rs", 1, 50)
        .read("src/a.rs", 15, 25)
        .read("src/b.rs", 1, 9)
        .read("src/a.rs", 30, 50);
    let c = case.candidate(claim("src/a.rs", 20, "let total = sum(&values[1..]);"));
    let read = Evidence::Read {
        path: RepoPath::from("src/a.rs"),
        first: line_no(15),
        last: line_no(25),
    };
    assert_eq!(c.evidence, [read]);
}

const CALLERS: &str = "use a::sum;\n\nfn report(v: &[u32]) -> u32 {\n    let n = compute_20(v);\n    n + 1\n}\n\nfn other() {\n    n + 1;\n}\n";

/// Returns a case with a changed definition, and an unchanged file with this text that calls it.
fn case_with_callers(text: &str) -> ClaimCase {
    let mut case = case().unchanged("lib/callers.rs", text);
    case.group.related.changed = vec![vec!["compute_20".to_owned()], vec!["b".to_owned()]];
    case
}

#[test]
fn out_02_thousands_of_other_places_are_worked_through() {
    let mut case = case();
    for i in 0..2_000 {
        case = case.unchanged(&format!("lib/{i:04}.rs"), CALLERS);
    }
    let also: Vec<claim::Elsewhere> = (0..20)
        .map(|i| elsewhere(&format!("nowhere/{i}.rs"), i, "let n = compute_20(v);"))
        .collect();
    let findings = (0..1_000).map(|i| Claim {
        also: also.clone(),
        ..claim("src/a.rs", 20, &format!("free({i})"))
    });
    let reply = Reply {
        findings: findings.collect(),
        ..Reply::default()
    };
    assert_eq!(claims(&reply, &case.context()).len(), 1_000);
}

#[test]
fn out_02_a_thousand_claims_of_the_largest_size_are_worked_through() {
    let lines: String = (0..1_000)
        .map(|i| format!("    let value_{i} = compute_{}(input, {i});\n", i % 7))
        .collect();
    let document = format!(
        "# Rules\n{}",
        "Never call `free` twice in one function.\n".repeat(1_000)
    );
    let case =
        ClaimCase::new(&[("a.rs", "fn a() {}\n", &lines)]).convention("CLAUDE.md", &document);
    let words = "value \"compute of the\" `input` ".repeat(500);
    let large = (0..100_usize).map(|i| Claim {
        quote: Some(if i.is_multiple_of(2) {
            words.clone()
        } else {
            "let value = 1;\nlet other = 2;\n".repeat(500)
        }),
        convention: Some(format!("CLAUDE.md#Rule: {words}")),
        suggestion: Some(words.clone()),
        message: words.clone(),
        title: format!("Claim {i}"),
        ..claim("a.rs", i as i64 + 1, "")
    });
    let mut findings: Vec<Claim> = large.collect();
    findings.extend((0..900).map(|i| Claim {
        title: format!("Claim {i}"),
        message: format!("{i} is {words}"),
        ..claim("a.rs", 5, "")
    }));
    let reply = Reply {
        findings,
        ..Reply::default()
    };
    let anchored = claims(&reply, &case.context());
    assert_eq!(anchored.len(), 1_000);
    let candidates = anchored.into_iter().filter_map(|a| {
        if let Anchored::Candidate(c) = a {
            Some(*c)
        } else {
            None
        }
    });
    let merged = merge_claims(candidates.collect(), &[], &case.rules);
    assert!(!merged.findings.is_empty());
}
