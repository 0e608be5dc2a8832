//! The only parser of replies. Pure.
//!
//! A reply is one JSON document that repeats the nonce of its prompt. A code fence around it is
//! removed, and so is the thinking that some open models write before it. Anything else is a
//! [`ReplyProblem`]: prose, a second document, a wrong nonce, an exceeded limit. Inside the
//! document the parser accepts everything that does not lose a claim, because a small model that
//! writes `"line": "42"` can still be right about the line.
//!
//! A document without the nonce, with another nonce, or with a second document after it is never
//! repaired. It may be an answer that the change itself dictates. If asked to repair it, the model
//! would add the correct nonce to text that the author of the change wrote.

mod consistent;
mod counsel;
mod extras;
mod fix;
mod json;
mod read;
mod reproduction;

use super::anchor::path::ChangedPaths;
use super::ask::Nonce;
use super::claim::{Rebuttal, Reply};
use super::material::Shown;
use crate::diff::RepoPath;
pub use counsel::{criteria, decision, proposal};
pub use fix::{fix_plan, fix_report};
use json::{Json, JsonFault, Object};
pub use reproduction::reproduction;
use serde_json::Value;

/// Bytes of a reply, at most.
pub const MAX_BYTES: usize = 16 << 20;
/// Findings of a reply, at most. The same limit applies to violations and to missing requirements.
pub const MAX_FINDINGS: usize = 1_000;

/// Reason why a reply is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyProblem {
    /// A lowercase fragment for people and for the repair request. It quotes only keys of the
    /// reply.
    pub message: String,
    /// True if a repair request can help.
    pub repairable: bool,
}

impl ReplyProblem {
    fn repairable(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            repairable: true,
        }
    }

    fn final_(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            repairable: false,
        }
    }
}

/// Parses the reply to a review prompt.
pub fn parse(text: &str, nonce: &Nonce) -> Result<Reply, ReplyProblem> {
    let (reply, extras) = read::reply(document(text, nonce)?)?;
    match consistent::contradiction(&reply, &extras) {
        Some(why) => Err(ReplyProblem::repairable(format!(
            "the reply is inconsistent: {why}"
        ))),
        None => Ok(Reply {
            nonce: nonce.as_str().to_owned(),
            ..reply
        }),
    }
}

/// Parses the reply to a request to refute a claim.
pub fn rebuttal(text: &str, nonce: &Nonce) -> Result<Rebuttal, ReplyProblem> {
    let rebuttal = read::rebuttal(document(text, nonce)?)?;
    Ok(Rebuttal {
        nonce: nonce.as_str().to_owned(),
        ..rebuttal
    })
}

/// Returns the files of the prompt that a reply does not list as reviewed, in order.
pub fn unaccounted<'a>(reply: &Reply, shown: impl IntoIterator<Item = &'a Shown>) -> Vec<RepoPath> {
    let shown: Vec<&Shown> = shown.into_iter().collect();
    let names = ChangedPaths::new(shown.iter().copied());
    let named: Vec<&RepoPath> = reply
        .files_reviewed
        .iter()
        .filter_map(|name| names.find(name))
        .map(|i| shown[i].path())
        .collect();
    let left = shown
        .iter()
        .map(|f| f.path())
        .filter(|path| !named.contains(path));
    let mut left: Vec<RepoPath> = left.cloned().collect();
    left.dedup();
    left
}

/// Extracts the only document from a reply and checks its nonce.
fn document(text: &str, nonce: &Nonce) -> Result<Object, ReplyProblem> {
    if text.len() > MAX_BYTES {
        return Err(ReplyProblem::final_("the reply is larger than 16 MiB"));
    }
    // A text that resembles a reply but does not contain the nonce is never repaired, even if its
    // syntax is invalid.
    let may_mend = text.contains(nonce.as_str()) || !text.contains("\"findings\"");
    let mut object = match split(text) {
        Ok(document) => match json::read(document) {
            Ok(Json::Object(object)) => object,
            Ok(_) => return Err(ReplyProblem::repairable("the reply is not a JSON object")),
            Err(JsonFault::Bound(bound)) => {
                return Err(ReplyProblem::final_(format!("the reply has {bound}")));
            }
            Err(JsonFault::Syntax(e)) => {
                let message = format!("the reply is not a JSON document: {e}");
                return Err(ReplyProblem {
                    message,
                    repairable: may_mend,
                });
            }
        },
        Err(problem) => {
            return Err(ReplyProblem {
                repairable: problem.repairable && may_mend,
                ..problem
            });
        }
    };
    match object.take("nonce") {
        Some(Json::Text(said)) if said.trim() == nonce.as_str() => Ok(object),
        Some(_) => Err(ReplyProblem::final_(
            "the reply has another nonce than the prompt",
        )),
        None => Err(ReplyProblem::final_("the reply does not repeat the nonce")),
    }
}

/// Returns every string of the document in a reply without its escapes, keys included; nothing if
/// there is no document.
pub fn texts(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    let document = split(text).ok();
    if let Some(value) = document.and_then(|d| serde_json::from_str(d).ok()) {
        add_strings(&value, &mut all);
    }
    all
}

/// Adds every string of a JSON value, keys included.
pub fn add_strings(value: &Value, all: &mut Vec<String>) {
    match value {
        Value::String(text) => all.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| add_strings(item, all)),
        Value::Object(members) => {
            for (key, value) in members {
                all.push(key.clone());
                add_strings(value, all);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Removes the permitted text around a document.
fn split(text: &str) -> Result<&str, ReplyProblem> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).trim();
    let text = match text
        .strip_prefix("<think>")
        .and_then(|t| t.split_once("</think>"))
    {
        Some((_, answer)) => answer.trim_start(),
        None => text,
    };
    let (body, fenced) = match text.strip_prefix("```").and_then(|t| t.split_once('\n')) {
        Some((info, body)) if matches!(info.trim().to_ascii_lowercase().as_str(), "" | "json") => {
            (body.trim_start(), true)
        }
        _ => (text, false),
    };
    if !body.starts_with('{') {
        return Err(ReplyProblem::repairable(match body {
            "" => "the reply is empty",
            _ => "the reply is not a JSON document: it begins with something else",
        }));
    }
    let Some(end) = json::end_of_object(body) else {
        return Ok(body);
    };
    let (document, rest) = body.split_at(end);
    let rest = rest.trim();
    let rest = if fenced {
        rest.strip_prefix("```").unwrap_or(rest).trim()
    } else {
        rest
    };
    if rest.is_empty() {
        Ok(document)
    } else if rest.contains(['{', '[']) {
        Err(ReplyProblem::final_("a second document follows the first"))
    } else {
        Err(ReplyProblem::repairable(
            "something follows the JSON document",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: &str = "000102030405060708090a0b0c0d0e0f";

    fn nonce() -> Nonce {
        Nonce::new(std::array::from_fn(|i| i as u8))
    }

    /// Returns a document with the given members, and valid defaults for the required ones.
    fn document(members: &str) -> String {
        let mut text = format!("{{\"nonce\": \"{NONCE}\", {members}");
        for (key, usual) in [("findings", "[]"), ("files_reviewed", "[]")] {
            if !members.contains(&format!("\"{key}\"")) {
                text.push_str(&format!(", \"{key}\": {usual}"));
            }
        }
        text + "}"
    }

    #[track_caller]
    fn problem(text: &str) -> (String, bool) {
        let problem = parse(text, &nonce()).unwrap_err();
        (problem.message, problem.repairable)
    }

    #[track_caller]
    fn claim(members: &str) -> crate::ai::claim::Claim {
        let text = document(&format!("\"findings\": [{{{members}}}]"));
        parse(&text, &nonce()).unwrap().findings.remove(0)
    }

    #[test]
    fn out_01_what_stands_around_a_document_is_taken_off_or_refused() {
        let good = document("\"summary\": \"ok\"");
        for text in [
            good.clone(),
            format!("\u{feff} {good}\n"),
            format!("```json\n{good}\n```\n"),
            format!("```\n{good}```"),
            format!("<think>\n{{}} hm\n</think>\n\n{good}"),
            format!("<think></think>```JSON\n{good}\n```"),
        ] {
            assert_eq!(
                parse(&text, &nonce()).map(|r| r.summary),
                Ok("ok".to_owned()),
                "{text}"
            );
        }
        for text in [
            "",
            " ",
            "null",
            "Looks good.",
            "[]",
            "\"a\"",
            "```\n```",
            "<think>{}",
            "```python\nx\n```",
        ] {
            assert!(problem(text).1, "{text} can be repaired");
        }
        for text in [
            format!("Sure:\n{good}"),
            format!("{good}\nDone."),
            format!("```json\n{good}\n```\nDone."),
        ] {
            assert!(problem(&text).1, "{text} can be repaired");
        }
    }

    #[test]
    fn out_11_a_second_document_is_never_mended() {
        let good = document("\"summary\": \"ok\"");
        for text in [
            format!("{good}{good}"),
            format!("{good}\n\n[]"),
            format!("```json\n{good}\n```\n```json\n{{}}\n```"),
        ] {
            assert_eq!(
                problem(&text),
                ("a second document follows the first".to_owned(), false)
            );
        }
    }

    #[test]
    fn out_12_what_does_not_carry_the_nonce_is_never_mended() {
        let other = NONCE.replace('0', "1");
        for text in [
            "{\"findings\": [], \"files_reviewed\": []}".to_owned(),
            format!("{{\"nonce\": \"{other}\", \"findings\": [], \"files_reviewed\": []}}"),
            format!("{{\"nonce\": null, \"summary\": \"{NONCE}\"}}"),
            format!("{{\"nonce\": [\"{NONCE}\"]}}"),
            // Invalid JSON and prose: their content may come from the change.
            "{\"findings\": [], }".to_owned(),
            "The result is {\"findings\": []}".to_owned(),
        ] {
            assert!(!problem(&text).1, "{text}");
        }
    }

    #[test]
    fn out_02_bounds_are_named_and_final() {
        let deep = document(&format!(
            "\"x\": {}{}",
            "[".repeat(100_000),
            "]".repeat(100_000)
        ));
        assert_eq!(
            problem(&deep),
            (
                "the reply has nesting deeper than 128 levels".to_owned(),
                false
            )
        );
        let many = document(&format!("\"findings\": [{}{{}}]", "{},".repeat(1_000)));
        assert_eq!(
            problem(&many),
            ("the reply has more than 1000 findings".to_owned(), false)
        );
        let wide = document(&format!("\"findings\": [{}0]", "0,".repeat(1_000_000)));
        assert_eq!(
            problem(&wide),
            (
                "the reply has a list of more than 10,000 members".to_owned(),
                false
            )
        );
        let long = |n: usize| document(&format!("\"summary\": \"{}\"", "a".repeat(n)));
        assert!(parse(&long(16 << 10), &nonce()).is_ok());
        assert_eq!(
            problem(&long((16 << 10) + 1)),
            (
                "the reply has a string longer than 16 KiB".to_owned(),
                false
            )
        );
        assert_eq!(
            problem(&long(MAX_BYTES)),
            ("the reply is larger than 16 MiB".to_owned(), false)
        );
        let full = document(&format!("\"findings\": [{}{{}}]", "{},".repeat(999)));
        assert_eq!(parse(&full, &nonce()).unwrap().findings.len(), 1_000);
    }

    #[test]
    fn out_03_numbers_that_are_none_are_told_of() {
        for (line, read) in [
            ("12", Some(12)),
            ("12.0", Some(12)),
            ("\"42\"", Some(42)),
            ("\" L42 \"", Some(42)),
            ("\"line 42\"", Some(42)),
            ("\"lines 42-45\"", Some(42)),
            ("-1", None),
            ("0", None),
            ("9007199254740992", None),
            ("99999999999999999999999", None),
            ("4294967295", Some(4_294_967_295)),
            ("2.5", None),
            ("true", None),
            ("\"x\"", None),
            ("[1]", None),
            ("{}", None),
        ] {
            let claim = claim(&format!("\"line\": {line}"));
            assert_eq!(
                (claim.line, claim.notes.len()),
                (read, usize::from(read.is_none())),
                "{line} {:?}",
                claim.notes
            );
        }
        assert_eq!(claim("\"line\": \"42-45\"").end_line, Some(45));
        assert_eq!(
            (claim("\"line\": null").line, claim("").notes.len()),
            (None, 0)
        );
        for wrong in ["NaN", "1e999", "Infinity", "01", "+1", "0x1"] {
            let (message, repairable) =
                problem(&document(&format!("\"findings\": [{{\"line\": {wrong}}}]")));
            assert!(
                repairable && message.starts_with("the reply is not a JSON document: "),
                "{wrong}: {message}"
            );
        }
        let twice = document("\"findings\": [], \"findings\": [{}]");
        assert!(problem(&twice).0.contains("duplicate key in an object"));
        let escaped = document("\"findings\": [], \"f\\u0069ndings\": [{}]");
        assert!(problem(&escaped).0.contains("duplicate key in an object"));
    }

    #[test]
    fn net_12_bytes_that_no_text_has_are_harmless() {
        for text in [
            "\0",
            "\u{feff}",
            "{\0}",
            "\u{feff}\u{feff}{}",
            "{\"nonce\": \"a\0b\"}",
            "\u{fffd}{",
        ] {
            assert!(parse(text, &nonce()).is_err());
        }
        let reply = parse(&document("\"summary\": \"a\\u0000b\\ud800\""), &nonce());
        assert!(reply.is_err(), "half of a pair is not text");
        assert_eq!(
            parse(&document("\"summary\": \"a\\u0000b\""), &nonce())
                .unwrap()
                .summary,
            "a\0b"
        );
    }

    #[test]
    fn what_small_models_write_is_read() {
        let c = claim(
            "\"path\": \"a.rs\", \"line_number\": 3, \"description\": \"It is wrong\", \"suggested_fix\": \"Mend it\", \
             \"cwe\": \"CWE-89\", \"severity\": \"High\", \"quote\": [\"a\", \"b\"], \"score\": 0.4, \"tags\": [\"x\"]",
        );
        assert_eq!(
            (c.file.as_deref(), c.line, c.message.as_str()),
            (Some("a.rs"), Some(3), "It is wrong")
        );
        assert_eq!(
            (c.suggestion.as_deref(), c.cwe, c.quote.as_deref()),
            (Some("Mend it"), Some(89), Some("a\nb"))
        );
        assert_eq!(claim("\"cwe\": 79.0").cwe, Some(79));
        assert_eq!(claim("\"cwe\": \"none\"").cwe, None);
        let reply = parse(
            &document("\"design_compliance\": {\"violations\": []}"),
            &nonce(),
        )
        .unwrap();
        assert!(reply.design_compliance.unwrap().follows_architecture);
    }

    #[test]
    fn what_may_hide_a_finding_is_a_problem_and_other_keys_are_told_of() {
        for members in [
            "\"issues\": [{\"title\": \"x\"}]",
            "\"issues\": [\"SQL injection in a.py\"]",
            "\"review\": {\"findings\": []}",
            "\"findings\": null",
            "\"findings\": {}",
            "\"findings\": [\"SQL injection\"]",
            "\"files_reviewed\": null",
            "\"design_compliance\": [1]",
            "\"missing_requirements\": \"many\"",
        ] {
            assert!(problem(&document(members)).1, "{members}");
        }
        let reply = parse(
            &document(
                "\"verdict\": \"lgtm\", \"score\": 3, \"empty\": \"\", \"none\": null, \"list\": []",
            ),
            &nonce(),
        );
        assert_eq!(
            reply.unwrap().notes,
            [
                "the reply also has verdict: lgtm",
                "the reply also has score: 3"
            ]
        );
    }

    fn read_rebuttal(members: &str) -> Result<Rebuttal, ReplyProblem> {
        rebuttal(&format!("{{\"nonce\": \"{NONCE}\", {members}}}"), &nonce())
    }

    #[test]
    fn a_rebuttal_is_true_or_false() {
        assert_eq!(
            read_rebuttal("\"refuted\": true, \"reason\": \"it is checked\"")
                .map(|r| (r.refuted, r.reason)),
            Ok((true, "it is checked".to_owned()))
        );
        assert_eq!(
            read_rebuttal("\"refuted\": \"false\"").map(|r| r.refuted),
            Ok(false)
        );
        assert!(read_rebuttal("\"refuted\": 1").is_err());
        assert!(
            read_rebuttal("\"reason\": \"it is checked\"")
                .unwrap_err()
                .repairable
        );
    }

    /// Returns the files that a reply does not account for if it names these files.
    fn left(files: &[Shown], named: &[&str]) -> Vec<String> {
        let reply = Reply {
            files_reviewed: named.iter().map(|n| (*n).to_owned()).collect(),
            ..Reply::default()
        };
        unaccounted(&reply, files)
            .iter()
            .map(RepoPath::to_wire)
            .collect()
    }

    #[test]
    fn out_09_files_are_accounted_for_by_whatever_they_are_called() {
        let rules =
            crate::rules::RuleSet::new(&crate::policy::RulesPolicy::default(), &[]).unwrap();
        let files = ["src/a.rs", "src/b.rs", "lib/b.rs"].map(|path| {
            let change = crate::diff::code::added(RepoPath::from(path), b"x = 1\n".to_vec());
            Shown::new(change, &rules, &crate::policy::Policy::default())
                .unwrap()
                .unwrap()
        });
        assert_eq!(
            left(&files, &["b/src/a.rs", "./src/b.rs", "`lib/b.rs`"]),
            Vec::<String>::new()
        );
        assert_eq!(
            left(&files, &["a.rs", "b.rs"]),
            ["src/b.rs", "lib/b.rs"],
            "which of the two is not said"
        );
        assert_eq!(
            left(&files, &["SRC/A.RS", "/src/../src/b.rs", "lib"]),
            ["src/a.rs", "src/b.rs", "lib/b.rs"]
        );
    }
}
