//! Tests of the page: its content, and text that must never appear unescaped.

use super::*;
use crate::error::ExitStatus;
use crate::finding::{Category, Reproduction, arrange};
use crate::report::sample::{clean, empty, full, incomplete, sketch, warned};
use crate::review::{Record, SourceInfo, SourceKind};
use crate::verdict::FailureCause;
use std::fmt::Write as _;

fn page(review: &Review) -> String {
    let mut out = Vec::new();
    render(review, &mut out).unwrap();
    String::from_utf8(out).expect("a page is UTF-8")
}

/// Returns the page without our own style and script, which contain the markup that untrusted text
/// must not have.
fn foreign(review: &Review) -> String {
    page(review).replace(STYLE, "").replace(SCRIPT, "")
}

#[test]
fn what_stands_in_the_page_is_what_its_policy_lets_run() {
    let out = page(&full());
    for (tag, text) in [("script", SCRIPT), ("style", STYLE)] {
        assert_eq!(out.matches(&format!("<{tag}>")).count(), 1);
        let inside = out
            .split_once(&format!("<{tag}>"))
            .unwrap()
            .1
            .split_once(&format!("</{tag}>"))
            .unwrap()
            .0;
        assert_eq!(inside, text);
        let allowed = format!("{tag}-src {}", hash(inside)).replace('\'', "&#39;");
        assert!(out.contains(&allowed), "{allowed}");
    }
    assert!(out.contains("content=\"default-src &#39;none&#39;; script-src "));
    for handler in [
        " style=\"",
        " onclick",
        " onload",
        " src=",
        "<link rel=stylesheet",
        "@import",
        "url(",
        "http-equiv=refresh",
    ] {
        assert!(!out.contains(handler), "{handler}");
    }
}

#[test]
fn inj_16_hostile_text_is_shown_and_does_nothing() {
    const HOSTILE: &str = "<script>alert(1)</script><img src=x onerror=alert(1)>\" onmouseover=\"x' =cmd() ]]> </textarea>";
    let mut review = warned();
    let mut f = sketch(HOSTILE, Severity::Major, Category::Bug, HOSTILE, HOSTILE)
        .code(HOSTILE, 1, 1, "script", &[b"+<script>alert(1)</script>"])
        .suggest(HOSTILE)
        .done();
    f.disputed = Some(HOSTILE.to_owned());
    let file = (HOSTILE.to_owned(), HOSTILE.to_owned());
    f.reproduction = Some(Reproduction {
        command: HOSTILE.to_owned(),
        files: vec![file],
    });
    review.findings = arrange(vec![f]);
    review.source.label = HOSTILE.to_owned();
    review.policy.origin = HOSTILE.to_owned();
    review.models.asked = vec![HOSTILE.to_owned()];
    review
        .notes
        .push(crate::review::Note::general(HOSTILE, HOSTILE));
    review
        .coverage
        .fail(FailureCause::Other(HOSTILE.to_owned()));
    let out = foreign(&review);
    assert_eq!(out.matches("<script").count(), 1, "ours");
    for evil in [
        "<img",
        "onerror=alert(1)>",
        "\" onmouseover",
        "' =cmd",
        "]]>",
        "</textarea>",
    ] {
        assert!(!out.contains(evil), "{evil}");
    }
    assert!(out.matches("&lt;script&gt;alert(1)&lt;/script&gt;").count() > 8);
}

#[test]
fn inj_16_only_addresses_on_the_web_are_links() {
    for (reference, is_link) in [
        ("https://cwe.mitre.org/data/definitions/798.html", true),
        ("http://a.example/?q=1&r=2#x", true),
        ("javascript:alert(1)", false),
        ("JavaScript:alert(1)", false),
        ("data:text/html,x", false),
        ("https://a.example/\" onclick=\"x", false),
        ("https://", false),
        ("https:///x", false),
        ("https://a.example/\u{202e}x", false),
        ("https://ä.example/", false),
        ("docs/design.md#Pools", false),
    ] {
        let mut m = Markup::default();
        card::link(reference, &mut m);
        assert_eq!(m.as_str().contains("<a "), is_link, "{}", m.as_str());
    }
}

/// Returns the position of a text in a page.
#[track_caller]
fn position(out: &str, what: &str) -> usize {
    out.find(what).unwrap_or_else(|| panic!("{what}"))
}

#[test]
fn a_finding_stands_below_its_last_line_or_with_its_own_code() {
    let out = foreign(&full());
    // A conflict of five lines, all of them marked.
    let conflict = position(
        &out,
        "<span class=sev>critical</span> Conflict markers</h4>",
    );
    let topic = position(&out, "&gt;&gt;&gt;&gt;&gt;&gt;&gt; topic");
    assert!(topic < conflict && conflict < position(&out, "</span> d() {}"));
    assert_eq!(
        out.matches(" class=m data-n=\"   9\"").count()
            + out.matches(" class=m data-n=\"    9\"").count(),
        1
    );
    // The file is in the change, the line is not. This is the fourth note.
    let notes = out
        .split("<h3>src/notes.rs</h3>")
        .nth(1)
        .unwrap()
        .split("</section>")
        .next()
        .unwrap();
    assert_eq!(notes.matches("<article").count(), 6);
    assert_eq!(notes.matches("Same as <a href=#F").count(), 5);
    assert!(notes.contains("data-n=\"30\""), "{notes}");
    // A file that is not in the change.
    let deploy = out
        .split("<h3>deploy.sh</h3>")
        .nth(1)
        .unwrap()
        .split("</section>")
        .next()
        .unwrap();
    assert!(
        deploy.contains("commit 1a2b3c4d5e6f") && deploy.contains("PASSWORD=********"),
        "{deploy}"
    );
}

#[test]
fn what_is_not_in_the_record_is_named() {
    let out = foreign(&full());
    let env = out
        .split("<h3>config/production.env</h3>")
        .nth(1)
        .unwrap()
        .split("</section>")
        .next()
        .unwrap();
    assert!(
        env.contains("The lines of this file were not stored"),
        "{env}"
    );
    let mut review = full();
    review.record = None;
    assert!(foreign(&review).contains("The lines of this change were not stored"));
    review.record = Some(Record {
        text: b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-x\n".to_vec(),
        left_out: vec![],
    });
    let out = foreign(&review);
    assert!(out.contains("Cannot read the stored change"));
    assert!(
        out.contains("AKIA****************"),
        "its own lines stand with the finding"
    );
}

/// Returns the title of a page.
fn title(review: &Review) -> String {
    let out = foreign(review);
    out.split("<title>")
        .nth(1)
        .unwrap()
        .split("</title>")
        .next()
        .unwrap()
        .to_owned()
}

#[test]
fn the_title_names_the_repository_and_the_change() {
    let mut review = full();
    assert!(
        title(&review).starts_with("Blocked: ")
            && title(&review).ends_with(" – branch HEAD against origin/main")
    );
    let top = std::path::PathBuf::from("/work/<shop>");
    let history = crate::policy::Policy::default().history;
    review.place = Some(crate::review::StoreLocation {
        top,
        history,
        max_rounds: 1,
        actor: String::new(),
        head: None,
        branch: None,
        remotes: Vec::new(),
    });
    assert!(
        title(&review).ends_with(" – &lt;shop&gt; – branch HEAD against origin/main"),
        "{}",
        title(&review)
    );
    assert!(foreign(&review).contains("<dt>Repository</dt><dd>&lt;shop&gt;</dd>"));
    // Only a review of the worktree has the checked-out branch.
    review.place.as_mut().unwrap().branch = Some("fix/<x>".to_owned());
    assert!(!foreign(&review).contains("fix/"));
    review.source = SourceInfo {
        kind: SourceKind::Staged,
        label: "staged changes".to_owned(),
        ..review.source
    };
    assert!(
        title(&review).ends_with(" – &lt;shop&gt; – fix/&lt;x&gt; – staged changes"),
        "{}",
        title(&review)
    );
    assert!(foreign(&review).contains("<dt>Branch</dt><dd>fix/&lt;x&gt;</dd>"));
}

#[test]
fn code_of_the_change_of_findings_and_of_replacements_has_syntax_colours() {
    let out = foreign(&full());
    // An added line, with the changed word marked.
    assert!(
        out.contains(
            "<span class=k>export</span> <span class=k>function</span> total(cart: Cart) {"
        ),
        "{out}"
    );
    assert!(
        out.contains("return</span> client(<span class=s>&quot;s3&quot;</span>, key)"),
        "{out}"
    );
    let mut review = full();
    review.record = None;
    let out = foreign(&review);
    assert!(
        out.contains("<span class=k>export</span>") && out.contains("<span class=c>// "),
        "{out}"
    );
    // A page with many lines has no colours, so that it stays small.
    assert!(!foreign(&large(7, 1_000, 1)).contains("<span class=k>"));
}

/// Returns a button that copies a text.
fn button(label: &str, text: &str) -> String {
    format!(
        "<button type=button class=copy hidden aria-label=\"{label}\" data-copy=\"{text}\">Copy</button>"
    )
}

#[test]
fn what_a_finding_offers_can_be_copied_and_buttons_wait_for_the_script() {
    let mut f = sketch("x", Severity::Major, Category::Bug, "t", "m")
        .code("a.go", 1, 1, "x", &[b"+x"])
        .replace("if x {\n\treturn \"<b>\"\n}")
        .done();
    f.blocking = true;
    let mut review = warned();
    review.findings = vec![f.clone()];
    let out = foreign(&review);
    for expected in [
        button(
            "Copy the replacement",
            "if x {&#10;&#9;return &quot;&lt;b&gt;&quot;&#10;}",
        ),
        button(
            "Copy the comment",
            "// claude-reviewer: ignore[sample-x] reason",
        ),
        button("Copy the fingerprint", f.fingerprint().as_str()),
    ] {
        assert!(out.contains(&expected), "{expected}\n{out}");
    }
    // No comment suppresses a finding without a line, and hidden characters are never copied.
    let mut hidden = sketch("x", Severity::Major, Category::Bug, "t", "m")
        .file("a.go")
        .replace("a\u{202e}b")
        .done();
    hidden.blocking = true;
    review.findings = vec![hidden.clone()];
    let out = foreign(&review);
    assert!(
        out.contains(&button(
            "Copy the flag",
            &format!("--waive {}=REASON", hidden.fingerprint())
        )),
        "{out}"
    );
    assert!(!out.contains("Copy the replacement"), "{out}");
    // A finding that does not block has neither button.
    review.findings[0].blocking = false;
    assert!(!foreign(&review).contains("class=copy"));
}

#[test]
fn commits_of_a_range_keep_their_findings() {
    let id = [
        "1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d",
        "2a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d",
    ];
    let mut text = String::new();
    for (i, id) in id.iter().enumerate() {
        let _ = write!(
            text,
            "commit {id}\ndiff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-line {i}\n+line {i} new\n"
        );
    }
    let mut review = warned();
    review.record = Some(Record {
        text: text.into_bytes(),
        left_out: Vec::new(),
    });
    let mut f = sketch("x", Severity::Minor, Category::Bug, "here", "It is.")
        .code("x", 1, 1, "", &[b"+line 1 new"])
        .done();
    f.commit = crate::diff::ObjectId::from_hex(id[1]);
    review.findings = vec![f];
    let out = foreign(&review);
    let files: Vec<&str> = out.split("<section class=file").skip(1).collect();
    assert_eq!(files.len(), 2);
    assert!(files[0].contains("commit 1a2b3c4d5e6f") && !files[0].contains("<article"));
    assert!(files[1].contains("commit 2a2b3c4d5e6f") && files[1].contains("<article"));
    assert!(files[1].find("line 1<b> new</b>").unwrap() < files[1].find("<article").unwrap());
}

/// Returns a removed line and the added line that replaces it, as a page shows them.
fn shown(old: &str, new: &str) -> [String; 2] {
    let mut review = warned();
    let text =
        format!("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-{old}\n+{new}\n b\n");
    review.record = Some(Record {
        text: text.into_bytes(),
        left_out: Vec::new(),
    });
    let out = foreign(&review);
    ["<del ", "<ins "].map(|tag| {
        let line = out.split(tag).nth(1).unwrap().split_once('>').unwrap().1;
        line.split('\n').next().unwrap().to_owned()
    })
}

#[test]
fn a_change_of_line_ends_is_to_be_seen() {
    assert_eq!(shown("a\r", "a"), ["a<i>\\r</i>", "a"]);
    assert_eq!(shown("a", "a\r"), ["a", "a<i>\\r</i>"]);
    assert!(!shown("a", "c").concat().contains("\\r"));
}

/// Returns the text about the exit code.
fn exit_code(review: &Review) -> String {
    let out = foreign(review);
    out.split("<dt>Exit code</dt><dd>")
        .nth(1)
        .unwrap()
        .split("</dd>")
        .next()
        .unwrap()
        .to_owned()
}

#[test]
fn the_exit_code_0_is_explained_by_the_flag_or_key_that_made_it_0() {
    assert_eq!(exit_code(&clean()), "0: review complete, no finding blocks");
    assert_eq!(
        exit_code(&incomplete(ExitStatus::Pass)),
        "0: because of on_incomplete = &quot;warn&quot;"
    );
    let mut blocked = full();
    blocked.exit = ExitStatus::Pass;
    assert_eq!(exit_code(&blocked), "0: because of --exit-zero");
    blocked.exit = ExitStatus::Block;
    assert_eq!(exit_code(&blocked), "1: at least one finding blocks");
}

#[test]
fn files_and_findings_of_earlier_commits_are_told_from_those_of_the_head() {
    let id = "1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d";
    let change =
        "diff --git a/conf.py b/conf.py\n--- a/conf.py\n+++ b/conf.py\n@@ -3 +3 @@\n-a\n+b\n";
    let mut review = warned();
    review.source.head = Some("f".repeat(40));
    review.record = Some(Record {
        text: format!("{change}commit {id}\n{change}").into_bytes(),
        left_out: Vec::new(),
    });
    let findings = [None, crate::diff::ObjectId::from_hex(id)].map(|commit| {
        let sketch = sketch("x", Severity::Major, Category::Bug, "here", "It is.");
        let mut f = sketch.code("conf.py", 3, 3, "", &[b"+b"]).done();
        f.commit = commit;
        f.blocking = true;
        f
    });
    review.findings = findings.to_vec();
    let out = foreign(&review);
    let blocks = out
        .split(">Blocking findings<")
        .nth(1)
        .unwrap()
        .split("</section>")
        .next()
        .unwrap();
    assert!(
        blocks.contains(">conf.py:3</a>, <a href=#F2>conf.py:3 in commit 1a2b3c4d5e6f</a>"),
        "{blocks}"
    );
    let list = out
        .split("<nav")
        .nth(1)
        .unwrap()
        .split("</nav>")
        .next()
        .unwrap();
    let entries: Vec<&str> = list.split("<li>").skip(1).collect();
    assert!(
        !entries[0].contains("commit") && entries[1].contains("commit </span>1a2b3c4</span>"),
        "{list}"
    );
    review.source.head = Some(id.to_owned());
    assert!(
        !foreign(&review).contains("in commit 1a2b"),
        "that is the head"
    );
}

/// Returns a change of `files` files with `lines` added lines each, and a finding on the last line
/// of every `nth` file.
fn large(files: usize, lines: usize, nth: usize) -> Review {
    let mut text = String::new();
    let mut findings = Vec::new();
    for n in 0..files {
        let _ = write!(
            text,
            "diff --git a/f{n:05} b/f{n:05}\nnew file mode 100644\n--- /dev/null\n+++ b/f{n:05}\n@@ -0,0 +1,{lines} @@\n"
        );
        for line in 1..=lines {
            let _ = writeln!(text, "+line {line} of file {n} <>");
        }
        if n % nth == 0 {
            let quote = format!("+line {lines} of file {n}");
            let at = u32::try_from(lines).unwrap();
            let title = format!("finding {n}");
            findings.push(
                sketch("x", Severity::Minor, Category::Bug, &title, "It is.")
                    .code(format!("f{n:05}"), at, at, "", &[quote.as_bytes()])
                    .done(),
            );
        }
    }
    let mut review = warned();
    review.findings = arrange(findings);
    review.record = Some(Record {
        text: text.into_bytes(),
        left_out: Vec::new(),
    });
    review
}

#[test]
fn a_large_change_is_bounded_and_what_is_around_findings_comes_first() {
    let out = foreign(&large(200, 1_000, 4));
    assert!(out.len() < 6 << 20, "{} bytes", out.len());
    for n in (0..200).step_by(4) {
        let file = out
            .split(&format!("<h3>f{n:05}</h3>"))
            .nth(1)
            .unwrap()
            .split("</section>")
            .next()
            .unwrap();
        assert!(
            file.contains(&format!(
                "line 1000 of file {n} &lt;&gt;\n</ins></div>\n<article"
            )),
            "{n}"
        );
        assert!(file.contains(&format!("line 993 of file {n} ")), "{n}");
    }
    let rows = out.matches("<ins data-n").count() + out.matches("<ins class=m data-n").count();
    assert_eq!(rows, 24_000);
    assert!(
        out.contains("176,000 lines. Lines around findings are shown first"),
        "{}",
        &out[out.len() - 3_000..]
    );
    assert!(out.contains(" lines not shown</div>"));
}

#[test]
fn a_flood_of_findings_and_of_files_is_bounded_and_counted() {
    let out = foreign(&large(8_400, 1, 1));
    assert_eq!(out.matches("<article").count(), 8_000);
    assert!(out.contains("400 findings. The page shows the worst"));
    let out = foreign(&large(2_500, 1, 2_500));
    assert_eq!(out.matches("<section class=file").count(), 2_001);
    assert!(out.contains("499 files without findings: <code>f02001</code>, "));
}

#[test]
fn a_line_without_end_is_cut_around_what_was_found() {
    let mut review = warned();
    let line = format!("{}eval(x){}", "a".repeat(100_000), "b".repeat(100_000));
    let text = format!(
        "diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+{line}\n"
    );
    review.record = Some(Record {
        text: text.into_bytes(),
        left_out: Vec::new(),
    });
    let code = [b"+".to_vec(), line.into_bytes()].concat();
    review.findings = vec![
        sketch("x", Severity::Minor, Category::Bug, "t", "m")
            .code("x", 1, 1, "eval(x)", &[&code])
            .done(),
    ];
    let out = foreign(&review);
    assert!(
        out.contains("<mark>eval(x)</mark>")
            && out.contains("bytes before")
            && out.contains("bytes more")
    );
    assert!(out.len() < 20_000, "{}", out.len());
}

#[test]
fn a_review_without_findings_has_no_empty_sections() {
    let out = foreign(&empty());
    assert!(
        out.contains("<h1>Nothing to review</h1>")
            && !out.contains("class=bar")
            && !out.contains("<article")
    );
    let out = foreign(&clean());
    assert!(
        out.contains("<h1>Passed</h1>") && out.contains("no findings") && !out.contains("<nav")
    );
}
