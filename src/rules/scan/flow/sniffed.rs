//! Responses of Go whose type the server guesses from their first bytes.

use crate::finding::Severity;
use crate::rules::flow::{Flow, FlowSubject, SinkKind};
use crate::rules::language::Languages;
use memchr::memmem;

/// Parts of the code of a program that writes markup or sets a type. Behind them, a response that
/// starts with a word can be a page.
const WRITES_PAGES: &[&[u8]] = &[
    b"text/html",
    b"application/xhtml",
    b"image/svg",
    b"Content-Type",
    b"ContentType",
    b"Execute(",
    b"ExecuteTemplate(",
];
/// Label of the body of a response of `net/http` in the table of Go.
const BODY: &str = "response body";

/// Returns the highest severity of a flow into a response that starts with a constant text, in a
/// file that neither sets a type nor writes markup; `None`: that of its rule.
///
/// `net/http` takes a response for a page only if it starts with a tag, behind white space
/// (<https://pkg.go.dev/net/http#DetectContentType>). A handler of another file can have set the
/// type or written the start, so the finding stays as a suggestion.
pub(super) fn severity(f: &Flow, languages: Languages, text: &[u8]) -> Option<Severity> {
    let is_page = f.subject == FlowSubject::Flow(SinkKind::Html) && languages.any_of(&["go"]);
    if !is_page || f.sink_label != BODY || !f.starts_as_text {
        return None;
    }
    let writes_pages = WRITES_PAGES
        .iter()
        .any(|part| memmem::find(text, part).is_some());
    (!writes_pages && !has_tag(text)).then_some(Severity::Suggestion)
}

/// Returns true if a text has the start of a tag of HTML.
fn has_tag(text: &[u8]) -> bool {
    let is_start = |b: &u8| b.is_ascii_alphabetic() || matches!(b, b'!' | b'/' | b'?');
    memchr::memchr_iter(b'<', text).any(|at| text.get(at + 1).is_some_and(is_start))
}

#[cfg(test)]
mod tests {
    use crate::finding::Severity;
    use crate::policy::RuleProfile;
    use crate::rules::scan::layout::tests::changed;

    /// Returns the severities of the pages of a handler with these statements.
    fn severities(statements: &str) -> Vec<Severity> {
        let code = format!(
            "package a\n\nimport (\n\t\"fmt\"\n\t\"net/http\"\n)\n\nfunc show(w http.ResponseWriter, r *http.Request) {{\n\tname := r.FormValue(\"name\")\n{statements}}}\n"
        );
        changed(RuleProfile::Default, "web/show.go", "", &code)
            .into_iter()
            .filter(|finding| finding.rule_id() == "html-injection-flow")
            .map(|finding| finding.severity())
            .collect()
    }

    #[test]
    fn a_response_that_starts_with_a_word_is_no_page() {
        for statements in [
            "\tfmt.Fprintf(w, \"Unknown name: %s\", name)\n",
            "\tw.Write([]byte(\"no such host: \" + name))\n",
        ] {
            assert_eq!(
                severities(statements),
                [Severity::Suggestion],
                "{statements}"
            );
        }
    }

    #[test]
    fn a_response_that_can_be_a_page_keeps_its_severity() {
        for statements in [
            "\tfmt.Fprintf(w, \"<p>%s</p>\", name)\n",
            "\tfmt.Fprint(w, name)\n",
            "\tfmt.Fprintf(w, \" %s\", name)\n",
            "\tw.Header().Set(\"Content-Type\", \"text/html\")\n\tfmt.Fprintf(w, \"Name: %s\", name)\n",
            "\tfmt.Fprint(w, \"\\n<html>\")\n\tfmt.Fprintf(w, \"Name: %s\", name)\n",
        ] {
            let found = severities(statements);
            assert!(
                found.contains(&Severity::Critical),
                "{statements}: {found:?}"
            );
        }
    }
}
