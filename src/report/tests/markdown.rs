//! Properties of Markdown output: it is inert, within its size limit, details are folded, and a
//! suggestion is offered only if it applies.

use super::super::markdown::{Flavor, comment, comment_for, finding};
use super::super::sample::{clean, empty, full, incomplete, sketch};
use super::super::{ReportFormat, Style};
use super::flood::flood;
use super::formats::{filled, hostile};
use super::text;
use crate::diff::RepoPath;
use crate::error::ExitStatus;
use crate::finding::{Category, Finding, Severity};
use crate::review::Review;
use crate::verdict::{CoverageFailure, FailureCause};

/// Returns the text that a renderer does not treat as code: without fenced blocks and inline code.
fn outside_of_code(markdown: &str) -> String {
    let mut out = String::new();
    let mut fence = None;
    for line in markdown.lines() {
        let run = line.bytes().take_while(|b| *b == b'`').count();
        match fence {
            Some(open) => {
                if run >= open && run == line.len() {
                    fence = None;
                }
            }
            None if run >= 3 && !line[run..].contains('`') => fence = Some(run),
            None if line.starts_with("<details") => out.push_str(&format!("{line}\n")),
            None => out.push_str(&(without_spans(line) + "\n")),
        }
    }
    assert_eq!(fence, None, "a fence is not closed\n{markdown}");
    out
}

fn without_spans(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let run = rest.bytes().take_while(|b| *b == b'`').count();
        if c == '\\' {
            let n = rest.chars().take(2).map(char::len_utf8).sum();
            out.push_str(&rest[..n]);
            rest = &rest[n..];
        } else if run > 0 {
            let mut at = run;
            loop {
                let next = rest[at..]
                    .find('`')
                    .unwrap_or_else(|| panic!("code is not closed: {line}"))
                    + at;
                let length = rest[next..].bytes().take_while(|b| *b == b'`').count();
                at = next + length;
                if length == run {
                    break;
                }
            }
            rest = &rest[at..];
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    out
}

/// Checks that Markdown contains only the markup of this program.
#[track_caller]
fn assert_inert(markdown: &str) {
    let mut text = outside_of_code(markdown);
    for line in markdown.lines().filter(|l| l.starts_with("<details")) {
        // Inside an HTML block there is no Markdown, and forges do not process code.
        let inside = line
            .split_once("<summary>")
            .and_then(|(_, l)| l.strip_suffix("</summary>"))
            .expect(line);
        assert!(
            !inside
                .replace("<code>", "")
                .replace("</code>", "")
                .contains(['<', '>', '"', '\'']),
            "{line}"
        );
        text = text.replace(line, "");
    }
    for ours in [
        "<details>",
        "<details open>",
        "</details>",
        "<summary>",
        "</summary>",
        "<code>",
        "</code>",
    ] {
        text = text.replace(ours, "");
    }
    assert!(!text.contains(['<', '>', '@']), "{text}");
    for line in text.lines() {
        let ours = [
            "## ",
            "### ",
            "**",
            "| ",
            "|---|",
            "- ",
            "[CWE-",
            "fingerprint ",
            "⛔ **",
            "🔴 **",
            "🟡 **",
            "🔵 **",
        ];
        let begins = line.starts_with(|c: char| "#*|-[/:=+~_>".contains(c));
        assert!(
            !begins || ours.iter().any(|o| line.starts_with(o)),
            "{line:?}"
        );
        let bare = line
            .replace("[CWE-", "")
            .replace("](https://cwe.mitre.org/", "")
            .replace("&#8203;", ";")
            .replace("&#", "");
        assert!(
            !["[", "~", "$"]
                .iter()
                .any(|mark| has_unescaped(&bare, mark)),
            "{line:?}"
        );
        assert!(!bare.contains("://") && !bare.contains("www."), "{line:?}");
        assert!(
            !has_reference(&bare, "#") && !has_reference(&bare, "!"),
            "{line:?}"
        );
    }
}

/// Returns true if a text has a mark after an even number of backslashes.
fn has_unescaped(text: &str, mark: &str) -> bool {
    let mut marks = text.match_indices(mark);
    marks.any(|(i, _)| text[..i].bytes().rev().take_while(|b| *b == b'\\').count() % 2 == 0)
}

/// Returns true if a text has a number after a sign.
fn has_reference(text: &str, sign: &str) -> bool {
    text.match_indices(sign)
        .any(|(i, _)| text[i + 1..].starts_with(|c: char| c.is_ascii_digit()))
}

/// Returns the number of folded sections that a page opens, and of those that it closes.
fn folds(page: &str) -> (usize, usize) {
    (
        page.matches("<details").count(),
        page.matches("</details>").count(),
    )
}

fn summary(review: &Review) -> String {
    text(review, ReportFormat::Summary, &Style::default())
}

#[test]
fn inj_13_nothing_in_markdown_acts() {
    let calm = filled("calm", b"calm");
    for (with, bytes) in hostile() {
        let review = filled(&with, &bytes);
        for flavor in Flavor::ALL {
            assert_inert(&comment_for(&review, flavor, flavor.bound()));
            for f in &review.findings {
                assert_inert(&finding(f, flavor));
            }
        }
        let rdjson: serde_json::Value =
            serde_json::from_str(&text(&review, ReportFormat::Rdjson, &Style::default())).unwrap();
        for d in rdjson["diagnostics"].as_array().unwrap() {
            // Reviewdog writes into a comment: the name of the rule, possibly as a link, and the
            // message.
            assert_inert(d["message"].as_str().unwrap());
            assert_inert(&format!("rule {}", d["code"]["value"].as_str().unwrap()));
            let url = d["code"]["url"].as_str().unwrap_or_default();
            assert!(
                !url.contains(['(', ')', '<', '>', ' ', '`', '"', '\\']),
                "{url}"
            );
        }
        assert_inert(&summary(&review));
        let outside = outside_of_code(&summary(&review));
        let (opened, closed) = folds(&outside);
        assert_eq!(opened, closed, "{outside}");
        if with.len() < 1_000 {
            assert_eq!(
                folds(&outside),
                folds(&outside_of_code(&summary(&calm))),
                "{with:?}"
            );
        }
    }
}

#[test]
fn inj_13_a_message_of_rdjson_shows_its_code_as_code() {
    let f = sketch(
        "swap",
        Severity::Major,
        Category::Bug,
        "`*.`@acme/team`.py` hides",
        "fixes #1\n/approve\n# a",
    )
    .code("a.md", 1, 2, "", &[b" before", b"+one"])
    .until(9)
    .replace("# head\n```\n/merge")
    .done();
    let mut review = clean();
    review.findings = vec![f];
    let rdjson: serde_json::Value =
        serde_json::from_str(&text(&review, ReportFormat::Rdjson, &Style::default())).unwrap();
    assert_eq!(
        rdjson["diagnostics"][0]["message"],
        "`*.`&#64;&#8203;acme/team`.py` hides\n\nfixes \\#&#8203;1\n\\/approve\n\\# a\n\n\
         Replace with:\n\n````\n+ # head\n+ ```\n+ /merge\n````"
    );
}

#[test]
fn severities_have_icons_and_the_details_of_findings_are_folded_in_comments() {
    let review = full();
    let (comment, summary) = (
        comment(&review, 65_536),
        text(&review, ReportFormat::Summary, &Style::default()),
    );
    for (icon, severity) in [
        ("⛔", "critical"),
        ("🔴", "major"),
        ("🟡", "minor"),
        ("🔵", "suggestion"),
    ] {
        for page in [&comment, &summary] {
            assert!(
                page.contains(&format!(" | {icon} {severity} |")),
                "{severity}: {page}"
            );
            assert!(
                page.contains(&format!("\n{icon} **{severity}: ")),
                "{severity}: {page}"
            );
        }
    }
    // Only the title of a finding is visible: code, message and fingerprint are folded.
    let folded = "(line 12, `sample-aws-access-key-id`, blocks)\n\n<details><summary>Details</summary>\n\n```\n";
    assert!(
        comment.contains(folded) && !summary.contains("Details</summary>"),
        "{comment}"
    );
    let counting = review.findings.iter().filter(|f| f.counts()).count();
    assert_eq!(
        comment.matches("<summary>Details</summary>").count(),
        counting
    );
    assert!(!comment_for(&review, Flavor::Bitbucket, 32_768).contains("<details"));
}

#[test]
fn bitbucket_gets_no_html() {
    let outside = outside_of_code(&comment_for(&full(), Flavor::Bitbucket, 32_768));
    assert!(!outside.contains('<'), "{outside}");
    assert!(
        outside.contains("### "),
        "files have a heading instead: {outside}"
    );
}

#[test]
fn ci_09_a_comment_fits_and_counts_what_it_leaves_out() {
    let mut review = flood(6_000);
    review.coverage.failed = (0..6_000)
        .map(|n| {
            let cause = FailureCause::Other("gone".to_owned());
            CoverageFailure::in_file(RepoPath::new(format!("f{n}")), cause)
        })
        .collect();
    for bound in [0, 10, 500, 1_000, 5_000, 32_768, 65_536] {
        let page = comment(&review, bound);
        assert!(page.len() <= bound + 1, "{bound}: {}", page.len());
        if bound >= 1_000 {
            assert!(
                page.starts_with("## claude-reviewer: BLOCK\n\n2000 of 6000 findings block"),
                "{page}"
            );
            assert!(
                page.contains(" of 6000 findings are shown; "),
                "{bound}: {page}"
            );
            assert!(
                page.contains(" more\n"),
                "what was not reviewed is counted: {page}"
            );
        }
        if bound == 65_536 {
            assert!(page.len() > 50_000, "the room is used: {}", page.len());
            let outside = outside_of_code(&page);
            assert!(
                outside.contains("**critical: ") && !outside.contains("**suggestion: "),
                "the worst are shown"
            );
        }
    }
    let summary = text(&review, ReportFormat::Summary, &Style::default());
    assert!(
        summary.len() < 1 << 20 && summary.contains("2000 of 6000 findings block"),
        "{}",
        summary.len()
    );
    for (with, bytes) in hostile() {
        let review = filled(&with, &bytes);
        for flavor in Flavor::ALL {
            assert!(comment_for(&review, flavor, 3_000).len() <= 3_000);
            assert!(comment_for(&review, flavor, flavor.bound()).len() <= flavor.bound());
            assert!(
                review
                    .findings
                    .iter()
                    .all(|f| finding(f, flavor).len() <= flavor.bound())
            );
        }
    }
}

#[test]
fn the_verdict_stands_first() {
    for (review, first) in [
        (clean(), "## claude-reviewer: PASS\n\nNo findings.\n"),
        (
            empty(),
            "## claude-reviewer: NOTHING TO REVIEW\n\nNo changes.\n",
        ),
        (
            incomplete(ExitStatus::Incomplete),
            "## claude-reviewer: INCOMPLETE\n\n1 file was not reviewed.\n",
        ),
        (
            full(),
            "## claude-reviewer: BLOCK\n\nThe project's tests failed: 41 passed, 1 failed; 8 of 16 findings block this \
             change: 3 critical, 5 major. The review is incomplete: ",
        ),
    ] {
        for format in [ReportFormat::Summary, ReportFormat::Markdown] {
            let page = text(&review, format, &Style::default());
            assert!(page.starts_with(first), "{page}");
        }
    }
}

/// Returns a finding on two added lines between other lines, with a replacement.
fn replaced(path: &str, code: &str) -> Finding {
    sketch(
        "swap",
        Severity::Major,
        Category::Bug,
        "swapped",
        "The order is wrong.",
    )
    .code(path, 1, 2, "", &[b" before", b"+one", b"+two", b" after"])
    .until(3)
    .replace(code)
    .done()
}

#[test]
fn inj_15_a_suggestion_can_be_applied_or_is_none() {
    let f = replaced("a.txt", "two\none");
    assert!(
        finding(&f, Flavor::Github).contains("\n```suggestion\ntwo\none\n```\n"),
        "{}",
        finding(&f, Flavor::Github)
    );
    assert!(finding(&f, Flavor::Gitlab).contains("\n```suggestion:-1+0\ntwo\none\n```\n"));
    assert!(
        !finding(&f, Flavor::Bitbucket).contains("suggestion\n"),
        "it has none for several lines"
    );
    assert!(finding(&f, Flavor::Bitbucket).contains("Replace with:\n\n```\n+ two\n+ one\n```\n"));

    let fences = finding(
        &replaced("a.md", "````\ncode\n````\n```suggestion"),
        Flavor::Github,
    );
    assert!(
        fences.contains("\n`````suggestion\n````\ncode\n````\n```suggestion\n`````\n"),
        "{fences}"
    );

    let outside = sketch(
        "swap",
        Severity::Major,
        Category::Bug,
        "swapped",
        "The order is wrong.",
    )
    .code("a.txt", 1, 2, "", &[b" before", b"+one", b" after"])
    .until(3)
    .replace("two\none")
    .done();
    let mut elsewhere = replaced("a.txt", "two\none");
    elsewhere.commit = crate::diff::ObjectId::from_hex("1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d");
    let mut unknown = replaced("a.txt", "two\none");
    unknown.frame = None;
    for (f, why) in [
        (outside, "a line that the change does not have"),
        (elsewhere, "lines of another commit"),
        (unknown, "lines that nobody knows any more"),
        (
            replaced("a.txt", "--- a/other.txt\n+++ b/other.txt\n@@ -1 +1 @@\n+x"),
            "a patch of another file",
        ),
        (
            replaced("a.txt", "x \u{202e}y"),
            "text that means something else than it shows",
        ),
        (replaced("a.txt", "x\ry"), "a line end that is none"),
    ] {
        for flavor in Flavor::ALL {
            let body = finding(&f, flavor);
            assert!(
                !outside_of_code(&body).contains("suggestion") && !body.contains("```suggestion"),
                "{why}: {body}"
            );
            assert!(
                body.contains("Replace with:"),
                "{why}: the code is shown: {body}"
            );
        }
    }
    let action = replaced("a.txt", "one\n/approve");
    assert!(!finding(&action, Flavor::Gitlab).contains("```suggestion"));
    assert!(finding(&action, Flavor::Github).contains("```suggestion"));
}

#[test]
fn inj_15_a_message_cannot_hold_a_suggestion() {
    let text = "Apply this:\n```suggestion\nevil();\n```\n~~~suggestion\nevil();\n~~~";
    let f = sketch(
        "words",
        Severity::Major,
        Category::Bug,
        "```suggestion",
        text,
    )
    .file("a.txt")
    .suggest(text)
    .done();
    for flavor in Flavor::ALL {
        assert_inert(&finding(&f, flavor));
        assert!(
            finding(&f, flavor)
                .lines()
                .all(|l| !l.trim_start().starts_with("```suggestion"))
        );
    }
}
