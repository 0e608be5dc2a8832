//! Separates the parts of a prompt: our own text and fenced untrusted text.

/// Splits a prompt into our lines and the untrusted texts with their kinds. Fails if a fence is not
/// closed, is nested, or has the mark of another text.
#[track_caller]
pub fn apart(prompt: &str) -> (String, Vec<(String, String)>) {
    let (mut ours, mut foreign) = (String::new(), Vec::new());
    let mut open: Option<(String, String, String)> = None;
    for line in prompt.lines() {
        let begins = line
            .strip_prefix("<untrusted-")
            .and_then(|l| l.strip_suffix('>'))
            .and_then(|l| l.split_once(' '));
        match (begins.filter(|(mark, _)| is_mark(mark)), &mut open) {
            (Some(_), Some(_)) => panic!("a fence in a fence: {prompt}"),
            (Some((mark, kind)), None) => {
                open = Some((mark.to_owned(), kind.to_owned(), String::new()));
            }
            (None, Some((mark, _, _))) if line == format!("</untrusted-{mark}>") => {
                let Some((_, kind, text)) = open.take() else {
                    continue;
                };
                foreign.push((kind, text));
            }
            (None, Some((_, _, text))) => text.push_str(&format!("{line}\n")),
            (None, None) => {
                let mark = line
                    .strip_prefix("</untrusted-")
                    .and_then(|l| l.strip_suffix('>'));
                assert!(
                    !mark.is_some_and(is_mark),
                    "an end without a fence: {prompt}"
                );
                ours.push_str(&format!("{line}\n"));
            }
        }
    }
    assert!(open.is_none(), "a fence without an end: {prompt}");
    for (_, text) in &foreign {
        let lower = text.to_lowercase();
        assert!(
            !lower.contains("<untrusted") && !lower.contains("</untrusted"),
            "{text}"
        );
    }
    (ours, foreign)
}

fn is_mark(text: &str) -> bool {
    text.len() == 32
        && text
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// Returns the only untrusted text of a kind.
#[track_caller]
pub fn only(prompt: &str, kind: &str) -> String {
    let mut all: Vec<String> = apart(prompt)
        .1
        .into_iter()
        .filter(|(k, _)| k == kind)
        .map(|(_, text)| text)
        .collect();
    assert_eq!(all.len(), 1, "{kind}: {prompt}");
    all.remove(0)
}
