//! How a person dismisses one finding: with a comment in the code, or with a waiver on the command
//! line.

use crate::finding::Finding;
use crate::rules;

/// Masked bytes in a quote, which mean that the line has a secret.
const MASKED: &str = "****";

/// Returns the comment that suppresses a finding, ready to be pasted above its line. `None` if no
/// comment can: the finding has no line, is in an earlier commit, shows a secret, or is in a file
/// without a known comment syntax.
pub(super) fn comment(f: &Finding) -> Option<String> {
    // Suppressing a secret would hide it from the report and leave it readable in the repository.
    if f.lines().is_none() || f.commit.is_some() || f.quote().contains(MASKED) {
        return None;
    }
    rules::comment(f.rule_id(), f.file()?)
}

/// Returns the flag that waives a finding in one run.
pub(super) fn waiver(f: &Finding) -> String {
    format!("--waive {}=REASON", f.fingerprint())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{Category, Severity};
    use crate::report::sample::{Sketch, sketch};

    fn on_line(path: &str, line: &str) -> Sketch {
        sketch("x", Severity::Major, Category::Bug, "t", "m").code(
            path,
            1,
            1,
            "",
            &[format!("+{line}").as_bytes()],
        )
    }

    #[test]
    fn a_comment_names_the_rule_in_the_syntax_of_the_file() {
        for (path, expected) in [
            ("a.py", Some("# claude-reviewer: ignore[sample-x] reason")),
            ("a.ts", Some("// claude-reviewer: ignore[sample-x] reason")),
            (
                "a.md",
                Some("<!-- claude-reviewer: ignore[sample-x] reason -->"),
            ),
            (
                "a.css",
                Some("/* claude-reviewer: ignore[sample-x] reason */"),
            ),
            ("a.json", None),
            ("a.bin", None),
        ] {
            assert_eq!(
                comment(&on_line(path, "x").done()).as_deref(),
                expected,
                "{path}"
            );
        }
    }

    #[test]
    fn secrets_and_findings_without_a_line_of_the_head_get_no_comment() {
        assert!(comment(&on_line("a.py", "x").rule("python-shell-injection").done()).is_some());
        for id in ["aws-access-key-id", "policy-weakened", "not an id]"] {
            assert_eq!(comment(&on_line("a.py", "x").rule(id).done()), None, "{id}");
        }
        let masked = on_line("a.py", "key = 'AKIA************'").done();
        let whole_file = sketch("x", Severity::Major, Category::Bug, "t", "m")
            .file("a.py")
            .done();
        let mut earlier = on_line("a.py", "x").done();
        earlier.commit =
            crate::diff::ObjectId::from_hex("1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d");
        for f in [masked, whole_file, earlier] {
            assert_eq!(comment(&f), None);
            assert_eq!(waiver(&f), format!("--waive {}=REASON", f.fingerprint()));
        }
    }
}
