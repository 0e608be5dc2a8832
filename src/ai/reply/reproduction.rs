//! Builds a test that proves a claim from the members of a document.

use super::counsel::list;
use super::json::{Json, Object};
use super::read::text;
use super::{ReplyProblem, document};
use crate::ai::ask::Nonce;
use crate::ai::claim::reproduction::{FixEdit, NewFile, TestProposal};

/// Parses the reply to a request for a test. A document without files means that the claim cannot
/// be tested.
pub fn reproduction(reply: &str, nonce: &Nonce) -> Result<TestProposal, ReplyProblem> {
    let mut o = document(reply, nonce)?;
    let reason = text(&mut o, &["reason"]).unwrap_or_default();
    let files = list(&mut o, "files", |mut o| NewFile {
        path: text(&mut o, &["path", "file"]).unwrap_or_default(),
        text: verbatim(&mut o, &["text", "content"]),
    })?;
    let command = text(&mut o, &["command"]).unwrap_or_default();
    let fix = list(&mut o, "fix", |mut o| FixEdit {
        path: text(&mut o, &["path", "file"]).unwrap_or_default(),
        old: verbatim(&mut o, &["old"]),
        new: verbatim(&mut o, &["new"]),
    })?;
    if !files.is_empty() && (command.is_empty() || fix.is_empty()) {
        return Err(ReplyProblem::repairable(
            "the reply is inconsistent: files without `command` or `fix`",
        ));
    }
    Ok(TestProposal {
        nonce: nonce.as_str().to_owned(),
        reason,
        files,
        command,
        fix,
    })
}

/// Returns the first text of several keys unchanged, or an empty string.
fn verbatim(o: &mut Object, keys: &[&str]) -> String {
    keys.iter()
        .find_map(|k| o.take(k).and_then(Json::into_text))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(members: &str) -> Result<TestProposal, ReplyProblem> {
        let nonce = Nonce::new([7; 16]);
        reproduction(
            &format!("{{\"nonce\": \"{}\", {members}}}", nonce.as_str()),
            &nonce,
        )
    }

    #[test]
    fn texts_stay_verbatim() {
        let said = read(
            r#""reason": "r", "files": [{"path": "t.py", "text": "\n  assert x \n"}], "command": "python3 t.py",
               "fix": [{"path": "a.py", "old": "  a\n", "new": ""}]"#,
        )
        .unwrap();
        assert_eq!(
            (said.files[0].path.as_str(), said.files[0].text.as_str()),
            ("t.py", "\n  assert x \n")
        );
        let edit = FixEdit {
            path: "a.py".to_owned(),
            old: "  a\n".to_owned(),
            new: String::new(),
        };
        assert_eq!(
            (said.command.as_str(), &said.fix[..]),
            ("python3 t.py", &[edit][..])
        );
    }

    #[test]
    fn no_test_is_an_answer_and_half_a_test_is_not() {
        assert!(
            read(r#""reason": "r", "files": [], "command": "", "fix": []"#)
                .unwrap()
                .files
                .is_empty()
        );
        let one = r#""files": [{"path": "t.py", "text": "x"}]"#;
        for half in [
            format!(
                "{one}, \"command\": \"\", \"fix\": [{{\"path\": \"a\", \"old\": \"a\", \"new\": \"b\"}}]"
            ),
            format!("{one}, \"command\": \"python3 t.py\", \"fix\": []"),
            r#""files": "t.py", "command": "x", "fix": []"#.to_owned(),
            r#""reason": "r""#.to_owned(),
        ] {
            assert!(read(&half).unwrap_err().repairable, "{half}");
        }
    }
}
