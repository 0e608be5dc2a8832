//! Properties of each CI format for any content and size of a review.

use super::super::sample::{clean, empty, full, incomplete, sketch, warned};
use super::super::{ReportFormat, Style};
use super::text;
use crate::diff::{LineNo, RepoPath};
use crate::error::ExitStatus;
use crate::finding::{
    Also, Category, Disposition, Finding, FlowRole, FlowStep, LineSpan, Location, Reproduction,
    Severity, Suppression, Waiver, arrange,
};
use crate::review::{Note, Review};
use crate::untrusted;
use crate::verdict::{CoverageFailure, FailureCause};
use serde_json::Value;
use std::collections::HashSet;

/// Builds the failure of a file, or of the change as a whole.
fn failure(file: Option<&str>, why: &str) -> CoverageFailure {
    CoverageFailure {
        file: file.map(RepoPath::from),
        cause: FailureCause::Other(why.to_owned()),
    }
}

/// A workflow command as GitHub's runner parses it.
#[derive(Debug)]
pub(super) struct WorkflowCommand {
    pub(super) name: String,
    properties: Vec<(String, String)>,
    pub(super) data: String,
}

impl WorkflowCommand {
    pub(super) fn property(&self, key: &str) -> Option<&str> {
        self.properties
            .iter()
            .find(|(k, _)| k == key)
            .map(|(_, v)| v.as_str())
    }
}

/// Parses a line as the runner does: white space first, `::`, a name, a space, properties between
/// commas, `::`, the data. Percent-encoding is decoded last.
fn command(line: &str) -> Option<WorkflowCommand> {
    let (head, data) = line.trim_start().strip_prefix("::")?.split_once("::")?;
    let (name, properties) = head.split_once(' ').unwrap_or((head, ""));
    let lines = [("%0D", "\r"), ("%0A", "\n")];
    let within = [lines[0], lines[1], ("%3A", ":"), ("%2C", ",")];
    let properties = properties.split(',').filter_map(|p| p.split_once('='));
    Some(WorkflowCommand {
        name: name.to_owned(),
        properties: properties
            .map(|(k, v)| (k.trim().to_owned(), decoded(v, &within)))
            .collect(),
        data: decoded(data, &lines),
    })
}

/// Replaces codes by their signs, and `%25` last.
fn decoded(text: &str, signs: &[(&str, &str)]) -> String {
    signs
        .iter()
        .fold(text.to_owned(), |text, (code, sign)| {
            text.replace(code, sign)
        })
        .replace("%25", "%")
}

/// Returns true if a line is a workflow command that our log uses.
pub(super) fn is_ours(line: &str) -> bool {
    const OURS: [&str; 5] = ["group", "endgroup", "error", "warning", "notice"];
    line.starts_with("::") && command(line).is_some_and(|c| OURS.contains(&c.name.as_str()))
}

pub(super) fn commands(review: &Review) -> Vec<WorkflowCommand> {
    text(review, ReportFormat::Github, &Style::default())
        .lines()
        .filter_map(command)
        .collect()
}

pub(super) fn json(review: &Review, format: ReportFormat) -> Value {
    serde_json::from_str(&text(review, format, &Style::default())).unwrap()
}

/// Returns a path that starts with a number.
fn numbered_path(n: usize, bytes: &[u8]) -> RepoPath {
    RepoPath::new([format!("{n:02}").as_bytes(), bytes].concat())
}

/// Returns the sample with a text in every text field.
pub(super) fn filled(with: &str, bytes: &[u8]) -> Review {
    let mut review = full();
    let findings = review.findings.iter().enumerate().map(|(n, f)| {
        let mut draft = f.draft().clone();
        for field in [
            &mut draft.rule_id,
            &mut draft.title,
            &mut draft.message,
            &mut draft.quote,
        ] {
            *field = with.to_owned();
        }
        for field in [
            &mut draft.failure,
            &mut draft.suggestion,
            &mut draft.replacement,
            &mut draft.convention,
        ] {
            *field = Some(with.to_owned());
        }
        draft.references = vec![with.to_owned(), format!("https://{with}")];
        if let Some(at) = &mut draft.location {
            at.file = numbered_path(n, bytes);
        }
        draft.also = vec![Also {
            file: numbered_path(50, bytes),
            line: LineNo::new(1).unwrap(),
            quote: with.to_owned(),
        }];
        draft.flow = FlowRole::ALL
            .map(|role| FlowStep {
                line: LineNo::FIRST,
                role,
                quote: with.to_owned(),
            })
            .to_vec();
        let mut made = Finding::sample(draft, f.confidence());
        made.frame = f.frame.clone();
        for line in made.frame.iter_mut().flat_map(|f| &mut f.lines) {
            line.text = bytes.to_vec();
        }
        made.commit = f.commit;
        made.suppressed = f.suppressed.as_ref().map(|_| Suppression {
            by: "inline",
            reason: with.to_owned(),
        });
        made.waived = f.waived.as_ref().map(|_| Waiver {
            reason: with.to_owned(),
            actor: with.to_owned(),
            link: f.waived.as_ref().map(|_| with.to_owned()),
        });
        made.disputed = Some(with.to_owned());
        made.disposition = f.disposition.as_ref().map(|d| Disposition {
            reason: with.to_owned(),
            owner: with.to_owned(),
            ..d.clone()
        });
        made.reproduction = Some(Reproduction {
            command: with.to_owned(),
            files: vec![(with.to_owned(), with.to_owned())],
        });
        made.blocking = f.blocking;
        made
    });
    review.findings = arrange(findings.collect());
    review.notes = vec![Note {
        file: Some(numbered_path(90, bytes)),
        line: LineNo::new(1),
        text: with.to_owned(),
        origin: with.to_owned(),
    }];
    for (n, failure) in review.coverage.failed.iter_mut().enumerate() {
        failure.file = failure.file.as_ref().map(|_| numbered_path(70 + n, bytes));
        failure.cause = FailureCause::Other(with.to_owned());
    }
    for (n, (file, _)) in review.coverage.skipped.iter_mut().enumerate() {
        *file = numbered_path(80 + n, bytes);
    }
    let first = LineSpan {
        first: LineNo::new(3).unwrap(),
        last: LineNo::new(3).unwrap(),
        columns: None,
    };
    review.first_change = Some(Location {
        file: numbered_path(60, bytes),
        lines: Some(first),
    });
    review.source.label = with.to_owned();
    review.policy.origin = with.to_owned();
    let models = &mut review.models;
    for usage in &mut models.usage {
        (usage.backend, usage.model) = (with.to_owned(), with.to_owned());
    }
    for d in &mut models.dropped {
        (d.backend, d.claim) = (with.to_owned(), with.to_owned());
    }
    for v in models.compliance.iter_mut().flat_map(|c| &mut c.violations) {
        (v.issue, v.description, v.reference) =
            (with.to_owned(), with.to_owned(), Some(with.to_owned()));
        v.recommendation = Some(with.to_owned());
    }
    for m in &mut models.missing {
        (m.requirement, m.reference) = (with.to_owned(), Some(with.to_owned()));
    }
    for o in &mut models.opinions {
        (o.backend, o.text) = (with.to_owned(), with.to_owned());
    }
    models.asked = vec![with.to_owned()];
    if let Some(tests) = &mut review.tests {
        (tests.summary, tests.failing, tests.coverage) = (
            with.to_owned(),
            vec![with.to_owned()],
            Some(with.to_owned()),
        );
    }
    review
}

/// Texts that formats, logs, terminals, forges and spreadsheets act on.
const HOSTILE: [&str; 22] = [
    "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{8}\u{7f}\u{0}",
    "safe\rEVIL\u{85}\u{2028}next",
    "\u{202e}\u{2066}\u{200b}\u{feff}\u{fffe}\u{ffff}\u{e0041}",
    "x\n::error file=a,line=1::b\n::stop-commands::t\n  ::set-output name=v::pass",
    "%0A::set-env name=PATH::x%0D,:;title=t",
    "##[error]x ##vso[task.complete result=Succeeded;]y ##teamcity[buildStatus]",
    "\"}],\"verdict\":\"pass\",\"x\":[{\"\\u0022",
    "]]><script>alert(1)</script><!-- --><![CDATA[ &lt; &#x0; <?xml?>",
    "' onmouseover='x' \" style=\"x",
    "=cmd()|' /C calc'!A0\n+1\n-1\n@SUM(1)",
    "![b](https://a.example/x.png) [l](javascript:alert(1)) <img src=x onerror=y>",
    "</details></summary><details open><h1>PASS</h1>",
    "@org/team @user closes #12 and !13, GH-14 :tada: www.a.example https://a.example a@b.example",
    "/approve\n/merge\n  /close",
    "```suggestion\nevil\n```\n~~~\n<b>\n~~~",
    "a\n\n---\n# head\n> quote\n- [ ] task\n1. one\n| a | b |\n|---|---|",
    "verdict=pass\nexit_code=0",
    "../../../etc/passwd",
    "file:///etc/passwd",
    "日本語 👩\u{200d}👧 e\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}",
    "`a` ``b`` ```c",
    "",
];

/// Returns every hostile text, all of them together, and a long one.
pub(super) fn hostile() -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<(String, Vec<u8>)> = HOSTILE
        .iter()
        .map(|t| ((*t).to_owned(), t.replace(['\n', '\0'], "_").into_bytes()))
        .collect();
    all.push((
        HOSTILE.join("\n"),
        [HOSTILE.concat().as_bytes(), b"\xff\xfe\xc3("].concat(),
    ));
    all.push((
        HOSTILE.concat().repeat(12),
        [b"\xe9/", HOSTILE.concat().repeat(3).as_bytes()].concat(),
    ));
    all
}

#[test]
fn inj_10_to_16_no_text_acts_in_any_format() {
    for (with, bytes) in hostile() {
        let review = filled(&with, &bytes);
        for format in ReportFormat::ALL {
            // Colour only affects what people read.
            let colors = if matches!(format, ReportFormat::Human | ReportFormat::Github) {
                &[false, true][..]
            } else {
                &[false]
            };
            for &color in colors {
                let out = text(
                    &review,
                    format,
                    &Style {
                        color,
                        ..Style::default()
                    },
                );
                let out = if color { super::strip(&out) } else { out };
                let active = out
                    .chars()
                    .find(|c| *c != '\n' && untrusted::is_active(*c) && !super::honest(*c));
                assert_eq!(active, None, "{format:?} {with:?}");
                for line in out.lines() {
                    assert!(
                        !line.contains("##[") && !line.contains("##vso["),
                        "{format:?}: {line:?}"
                    );
                    let ours = format == ReportFormat::Github && is_ours(line);
                    assert!(
                        ours || !line.trim_start().starts_with("::"),
                        "{format:?}: {line:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn inj_11_and_12_the_log_for_github_holds_its_own_commands_and_no_other() {
    let calm = shape_of_commands(&filled("calm", b"calm"));
    assert!(calm.len() > 20, "{calm:?}");
    for (with, bytes) in hostile() {
        assert_eq!(shape_of_commands(&filled(&with, &bytes)), calm, "{with:?}");
    }
    let told = commands(&filled("x\n::stop-commands::t", b"a,line=7::b%0A"));
    let error = told.iter().find(|c| c.property("file").is_some()).unwrap();
    assert!(
        error.data.contains("x\n::stop-commands::t"),
        "whoever reads the command has the text: {error:?}"
    );
    assert!(
        error.property("file").unwrap().ends_with("a,line=7::b%0A"),
        "{error:?}"
    );
}

/// Returns the names of the commands, and of their properties except columns.
fn shape_of_commands(review: &Review) -> Vec<(String, Vec<String>)> {
    let shapes = commands(review).into_iter().map(|c| {
        let keys = c.properties.into_iter().map(|(k, _)| k);
        (
            c.name,
            keys.filter(|k| !k.starts_with("col") && k != "endColumn")
                .collect(),
        )
    });
    shapes.collect()
}

/// Returns the keys of each entry, except the suggestions.
fn keys(entries: &Value) -> Vec<Vec<String>> {
    let objects = entries
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e.as_object().unwrap());
    objects
        .map(|e| e.keys().filter(|k| *k != "suggestions").cloned().collect())
        .collect()
}

#[test]
fn json_formats_hold_what_they_were_given() {
    let calm = filled("calm", b"calm");
    for (with, bytes) in hostile() {
        let review = filled(&with, &bytes);
        assert_eq!(
            keys(&json(&review, ReportFormat::Gitlab)).len(),
            keys(&json(&calm, ReportFormat::Gitlab)).len()
        );
        let (theirs, ours) = (
            json(&review, ReportFormat::Rdjson),
            json(&calm, ReportFormat::Rdjson),
        );
        assert_eq!(
            keys(&theirs["diagnostics"]).len(),
            keys(&ours["diagnostics"]).len()
        );
        for entry in json(&review, ReportFormat::Gitlab).as_array().unwrap() {
            assert!(
                !entry["description"].as_str().unwrap().contains('\n'),
                "{entry}"
            );
            let path = entry["location"]["path"].as_str().unwrap();
            assert!(
                !path.starts_with(['/', '.']) && !path.split('/').any(|s| s == ".."),
                "{path:?}"
            );
        }
        for diagnostic in theirs["diagnostics"].as_array().unwrap() {
            let path = diagnostic["location"]["path"].as_str().unwrap();
            assert!(
                !path.starts_with('/') && !path.split('/').any(|s| s == ".."),
                "{path:?}"
            );
        }
    }
}

#[test]
fn inj_16_junit_stays_xml_and_keeps_its_shape() {
    let calm = elements(&filled("calm", b"calm"));
    for (with, bytes) in hostile() {
        assert_eq!(elements(&filled(&with, &bytes)), calm, "{with:?}");
    }
    let xml = text(
        &filled("]]><a b='c'>\u{1b}", b"x"),
        ReportFormat::Junit,
        &Style::default(),
    );
    let document = roxmltree::Document::parse(&xml).unwrap();
    let failure = document
        .descendants()
        .find(|n| n.has_tag_name("failure"))
        .unwrap();
    assert!(
        failure.text().unwrap().contains("]]><a b='c'>\\x1b"),
        "{:?}",
        failure.text()
    );
}

/// Returns the names of the elements of the report for JUnit.
fn elements(review: &Review) -> Vec<String> {
    let xml = text(review, ReportFormat::Junit, &Style::default());
    let document = roxmltree::Document::parse(&xml).unwrap_or_else(|e| panic!("{e}\n{xml}"));
    document
        .descendants()
        .filter(roxmltree::Node::is_element)
        .map(|n| n.tag_name().name().to_owned())
        .collect()
}

/// Returns the number of descendants with a name, as an attribute states it.
fn count_of(node: roxmltree::Node<'_, '_>, name: &str) -> String {
    node.descendants()
        .filter(|n| n.has_tag_name(name))
        .count()
        .to_string()
}

#[test]
fn junit_counts_what_it_holds() {
    for review in [
        full(),
        warned(),
        clean(),
        empty(),
        incomplete(ExitStatus::Incomplete),
    ] {
        let xml = text(&review, ReportFormat::Junit, &Style::default());
        let document = roxmltree::Document::parse(&xml).unwrap();
        for suite in document
            .descendants()
            .filter(|n| n.tag_name().name().starts_with("testsuite"))
        {
            for (attribute, element) in [
                ("tests", "testcase"),
                ("failures", "failure"),
                ("errors", "error"),
            ] {
                assert_eq!(
                    suite.attribute(attribute),
                    Some(count_of(suite, element).as_str()),
                    "{attribute}"
                );
            }
            let skipped = suite
                .has_tag_name("testsuite")
                .then(|| count_of(suite, "skipped"));
            assert_eq!(suite.attribute("skipped"), skipped.as_deref());
        }
        let cases: Vec<_> = document
            .descendants()
            .filter(|n| n.has_tag_name("testcase"))
            .collect();
        assert!(
            !cases.is_empty(),
            "a report without a case is a broken one to Jenkins"
        );
        let failures = document
            .descendants()
            .filter(|n| n.has_tag_name("failure"))
            .count();
        // One for all tests, and one for each listed test.
        let tests = review.tests.as_ref().map_or(0, |t| 1 + t.failing.len());
        assert_eq!(
            failures,
            review.findings.iter().filter(|f| f.blocking).count() + tests
        );
        let errors = document
            .descendants()
            .filter(|n| n.has_tag_name("error"))
            .count();
        assert_eq!(errors, review.coverage.failed.len());
    }
}

#[test]
fn dotenv_holds_words_and_numbers() {
    for (with, bytes) in hostile() {
        let out = text(
            &filled(&with, &bytes),
            ReportFormat::Dotenv,
            &Style::default(),
        );
        assert_eq!(out, text(&full(), ReportFormat::Dotenv, &Style::default()));
    }
    let out = text(&full(), ReportFormat::Dotenv, &Style::default());
    for line in out.lines() {
        let (key, value) = line.split_once('=').unwrap();
        assert!(
            key.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'),
            "{line}"
        );
        assert!(
            !value.is_empty()
                && value
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'_'),
            "{line}"
        );
    }
    // The limits of GitLab for one file.
    assert!(out.lines().count() <= 20 && out.len() < 5_120);
    assert!(
        out.starts_with("verdict=block\noutcome=incomplete\nfindings=16\nblocking=8\n"),
        "{out}"
    );
}

#[test]
fn what_a_person_let_through_is_not_annotated() {
    let review = full();
    for f in review.findings.iter().filter(|f| !f.counts()) {
        let github = text(&review, ReportFormat::Github, &Style::default());
        assert!(
            !github
                .lines()
                .any(|l| is_ours(l) && l.contains(f.rule_id())),
            "{github}"
        );
        for format in [ReportFormat::Gitlab, ReportFormat::Rdjson] {
            assert!(
                !json(&review, format).to_string().contains(f.rule_id()),
                "{format:?}"
            );
        }
    }
}

#[test]
fn an_incomplete_review_says_so_in_every_format() {
    let review = incomplete(ExitStatus::Incomplete);
    let told = commands(&review);
    let error = told.iter().find(|c| c.name == "error").unwrap();
    assert!(
        error.data.contains("data/dump.sql: the object is damaged"),
        "{error:?}"
    );
    assert!(
        !commands(&incomplete(ExitStatus::Pass))
            .iter()
            .any(|c| c.name == "error"),
        "the step is green"
    );
    let entries = json(&review, ReportFormat::Gitlab);
    assert_eq!(entries[0]["severity"], "blocker");
    assert_eq!(entries[0]["location"]["path"], "data/dump.sql");
    let result = json(&review, ReportFormat::Rdjson);
    assert_eq!(
        (&result["severity"], &result["diagnostics"][0]["severity"]),
        (&"ERROR".into(), &"ERROR".into())
    );
    let xml = text(&review, ReportFormat::Junit, &Style::default());
    assert!(
        xml.contains("<error message=\"Not reviewed: the object is damaged\""),
        "{xml}"
    );
    assert!(
        text(&review, ReportFormat::Dotenv, &Style::default()).contains("verdict=incomplete\n")
    );
    // Without any position, this format cannot report the failure.
    let mut nowhere = review;
    nowhere.coverage.failed = vec![failure(None, "backend claude did not answer")];
    assert_eq!(json(&nowhere, ReportFormat::Gitlab), serde_json::json!([]));
}

#[test]
fn a_clean_review_is_empty_where_that_means_clean() {
    for review in [clean(), empty()] {
        assert_eq!(
            text(&review, ReportFormat::Gitlab, &Style::default()),
            "[]\n"
        );
        assert_eq!(
            json(&review, ReportFormat::Rdjson)["diagnostics"],
            serde_json::json!([])
        );
        assert!(commands(&review).is_empty());
    }
}

#[test]
fn code_quality_fingerprints_are_unique_and_stable() {
    let mut review = full();
    // The same finding in two branches of a push.
    let twin = sketch("twin", Severity::Major, Category::Bug, "twin", "Twice.")
        .file("a.rs")
        .done();
    let mut other = sketch("twin", Severity::Major, Category::Bug, "twin", "Twice.")
        .file("a.rs")
        .done();
    other.commit = crate::diff::ObjectId::from_hex("1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d");
    review.findings.extend([twin, other]);
    review.findings = arrange(review.findings);
    let entries = json(&review, ReportFormat::Gitlab);
    let prints: Vec<&str> = entries
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["fingerprint"].as_str().unwrap())
        .collect();
    assert_eq!(
        prints.iter().collect::<HashSet<_>>().len(),
        prints.len(),
        "{prints:?}"
    );
    assert!(prints.iter().any(|p| p.ends_with("-1")), "{prints:?}");
    assert_eq!(entries, json(&review, ReportFormat::Gitlab));
    let whole = entries
        .as_array()
        .unwrap()
        .iter()
        .find(|e| e["check_name"] == "sample-lockfile-drift")
        .unwrap();
    assert_eq!(
        whole["location"],
        serde_json::json!({ "path": "cmd/serve/main.go", "lines": { "begin": 42 } })
    );
}

/// Returns the diagnostic of a rule.
fn diagnostic<'v>(result: &'v Value, rule: &str) -> &'v Value {
    let all = result["diagnostics"].as_array().unwrap();
    all.iter()
        .find(|d| d["code"]["value"] == rule)
        .unwrap_or_else(|| panic!("{rule}: {result}"))
}

#[test]
fn rdjson_counts_columns_in_bytes_from_one() {
    let result = json(&full(), ReportFormat::Rdjson);
    // A tab, `label := "`, six bytes of Japanese, and the text after them.
    let range = &diagnostic(&result, "sample-go-exec-shell")["location"]["range"];
    assert_eq!(
        range["start"],
        serde_json::json!({ "line": 42, "column": 28 })
    );
    assert_eq!(
        range["end"],
        serde_json::json!({ "line": 42, "column": 28 + "exec.Command(\"sh\", \"-c\", \"ls \"+dir)".len() })
    );
    // A range over several lines has no columns and includes the last line.
    let range = &diagnostic(&result, "sample-conflict-marker")["location"]["range"];
    assert_eq!(
        range,
        &serde_json::json!({ "start": { "line": 9 }, "end": { "line": 13 } })
    );
    let whole = diagnostic(&result, "sample-attributes-hide-files");
    assert!(
        whole["location"].get("range").is_none(),
        "a file as a whole"
    );
    let eval = diagnostic(&result, "sample-js-eval");
    assert_eq!(
        eval["code"]["url"],
        "https://cwe.mitre.org/data/definitions/95.html"
    );
}

#[test]
fn inj_16_no_output_of_a_test_attaches_a_file() {
    let evil = "x\n[[ATTACHMENT|/etc/passwd]]\n[[[ATTACHMENT|a]]";
    let mut review = filled(evil, b"[[ATTACHMENT|b]]");
    for blocking in [true, false] {
        review
            .findings
            .iter_mut()
            .for_each(|f| f.blocking = blocking);
        let xml = text(&review, ReportFormat::Junit, &Style::default());
        let document = roxmltree::Document::parse(&xml).unwrap();
        let mut said: Vec<String> = document
            .descendants()
            .filter_map(|n| n.text().map(str::to_owned))
            .collect();
        said.extend(
            document
                .descendants()
                .flat_map(|n| n.attributes())
                .map(|a| a.value().to_owned()),
        );
        assert!(said.iter().any(|s| s.contains("ATTACHMENT|/etc/passwd")));
        assert!(!said.iter().any(|s| s.contains("[[")), "{xml}");
    }
}

#[test]
fn a_file_on_which_two_backends_failed_is_one_file() {
    let mut review = incomplete(ExitStatus::Incomplete);
    let again = CoverageFailure {
        file: review.coverage.failed[0].file.clone(),
        cause: FailureCause::Other("backend local did not answer".to_owned()),
    };
    review.coverage.failed.push(again);
    for format in [
        ReportFormat::Human,
        ReportFormat::Summary,
        ReportFormat::Html,
        ReportFormat::Github,
    ] {
        let out = text(
            &review,
            format,
            &Style {
                width: 200,
                ..Style::default()
            },
        );
        assert!(
            out.contains("1 file was not reviewed") && !out.contains("2 files were not"),
            "{format:?}: {out}"
        );
    }
}
