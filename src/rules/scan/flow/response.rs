//! Responses of Python whose type the program sets after it made them.

use super::line_around;
use crate::finding::Severity;
use crate::rules::flow::{Flow, FlowSubject, SinkKind};
use crate::rules::language::Languages;

/// Lines below a response in which its type is searched, at most.
const LINES: usize = 12;

/// Returns the highest severity of a flow into a response to which the next statements of the same
/// block give a type that browsers show as text or do not show; `None`: that of its rule.
///
/// A condition can leave the statement out, so the finding stays as a suggestion.
pub(super) fn severity(f: &Flow, languages: Languages, text: &[u8]) -> Option<Severity> {
    if f.subject != FlowSubject::Flow(SinkKind::Html) || !languages.any_of(&["python"]) {
        return None;
    }
    let sink = f.sink().filter(|sink| sink.start <= text.len())?;
    let line = line_around(text, sink.start);
    let name = assigned(&text[line.start..sink.start])?;
    let indentation = indentation(&text[line.clone()]);
    let end = sink.end.clamp(line.start, text.len());
    let rest = &text[line_around(text, end).end..];
    rest.split(|b| *b == b'\n')
        .skip(1)
        .take(LINES)
        .filter(|next| !is_blank_or_comment(next))
        .take_while(|next| self::indentation(next) >= indentation)
        .take_while(|next| !leaves(next.trim_ascii()))
        .filter(|next| set_type(next.trim_ascii(), name).is_some())
        .last()
        .is_some_and(|last| {
            self::indentation(last) == indentation && gives_type(last.trim_ascii(), name)
        })
        .then_some(Severity::Suggestion)
}

/// Returns the name to which the code before a call assigns its result: `response = `.
fn assigned(before: &[u8]) -> Option<&[u8]> {
    let (name, rest) = before.split_at(before.iter().position(|b| *b == b'=')?);
    let name = name.trim_ascii();
    let is_name = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    (!name.is_empty() && name.iter().all(is_name) && !rest.starts_with(b"==")).then_some(name)
}

/// Returns true if a statement gives a response a type other than that of a page:
/// `response.mimetype = "text/plain"`, `response.headers["Content-Type"] = "image/png"`. A type
/// behind a name is that of stored data, which the sender does not choose.
fn gives_type(statement: &[u8], name: &[u8]) -> bool {
    set_type(statement, name).is_some_and(|value| {
        let is_literal = value.starts_with(['"', '\'']);
        let shows_markup = ["html", "xml", "svg"].iter().any(|ty| value.contains(ty));
        is_literal && value.contains('/') && !shows_markup
    })
}

/// Returns true if a statement can leave the block, so that the statements below it may not run.
fn leaves(statement: &[u8]) -> bool {
    const WORDS: [&str; 5] = ["return", "yield", "raise", "break", "continue"];
    let statement = String::from_utf8_lossy(statement);
    let mut words = statement.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.any(|word| WORDS.contains(&word))
}

/// Returns the code to the right of `=` in a statement that sets the type of a response, in lower
/// case.
fn set_type(statement: &[u8], name: &[u8]) -> Option<String> {
    const PROPERTIES: [&str; 4] = [
        ".mimetype",
        ".content_type",
        ".headers[\"content-type\"]",
        ".headers['content-type']",
    ];
    let statement = String::from_utf8_lossy(statement).to_ascii_lowercase();
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    let rest = statement.strip_prefix(&name)?;
    let rest = PROPERTIES
        .iter()
        .find_map(|property| rest.strip_prefix(property))?;
    Some(rest.trim_start().strip_prefix('=')?.trim_start().to_owned())
}

fn is_blank_or_comment(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    line.is_empty() || line.starts_with(b"#")
}

/// Returns the bytes of white space at the start of a line.
fn indentation(line: &[u8]) -> usize {
    line.len() - line.trim_ascii_start().len()
}

#[cfg(test)]
mod tests {
    use crate::finding::Severity;
    use crate::policy::RuleProfile;
    use crate::rules::scan::layout::tests::changed;

    /// Returns the severities of the pages that a handler builds, in a function whose last lines
    /// are given.
    fn severities(lines: &str) -> Vec<Severity> {
        let code = format!(
            "from flask import Flask, make_response, request\n\napp = Flask(__name__)\n\n\n@app.route('/a')\ndef a():\n    response = make_response(request.args['a'], 200)\n{lines}    return response\n"
        );
        changed(RuleProfile::Default, "web/a.py", "", &code)
            .into_iter()
            .filter(|finding| finding.rule_id() == "html-injection-flow")
            .map(|finding| finding.severity())
            .collect()
    }

    #[test]
    fn a_response_that_gets_the_type_of_text_is_a_suggestion() {
        for lines in [
            "    response.headers['Content-Type'] = 'text/plain; charset=utf-8'\n",
            "    response.mimetype = \"text/plain\"\n",
            "    # The answer is data.\n\n    response.content_type = 'application/json'\n",
        ] {
            assert_eq!(severities(lines), [Severity::Suggestion], "{lines}");
        }
    }

    #[test]
    fn a_response_that_is_or_may_be_a_page_keeps_its_severity() {
        for lines in [
            "",
            "    response.headers['Content-Type'] = 'text/html'\n",
            "    response.mimetype = 'image/svg+xml'\n",
            "    other.mimetype = 'text/plain'\n",
            "    # response.mimetype = 'text/plain'\n",
            "    if request.args.get('b'):\n        response.mimetype = 'text/plain'\n",
            "    response.mimetype = kind\n",
            "    if x:\n        return response\n    response.mimetype = 'text/plain'\n",
            "    return response\n    response.mimetype = 'text/plain'\n",
            "    response.mimetype = 'text/plain'\n    response.mimetype = 'text/html'\n",
            "    response.mimetype = 'text/plain'\n    if x:\n        response.mimetype = 'text/html'\n",
        ] {
            assert_eq!(severities(lines), [Severity::Critical], "{lines}");
        }
    }
}
