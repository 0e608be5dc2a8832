//! Restores the bytes of a file from the text that a model edited.
//!
//! A model sees a file with secrets replaced, hidden characters visible, and all lines ending in
//! `\n`. Unedited lines keep their bytes. In edited lines, each placeholder is replaced by its
//! original text, or the edit is rejected: a placeholder is never written to a file.

use super::redact;
use crate::diff;
use crate::rules::RuleSet;
use crate::untrusted::has_active;

/// Prefix of placeholders of secrets.
const SECRET: &str = "<secret:";
const NOT_UTF8: &str = "its encoding is not UTF-8";

/// A part of a line that the model sees as another text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct MaskedPart {
    /// Line number, from 0.
    line: u32,
    shown: String,
    original: Vec<u8>,
}

/// Returns the bytes of a file with the model's edits. `original` holds its bytes, and `edited` the
/// text from the model.
///
/// # Errors
///
/// Returns a message of one line if the file cannot be edited, or if a placeholder in an edit
/// matches no text or several texts of the file.
pub fn restored(rules: &RuleSet, original: &[u8], edited: &str) -> Result<Vec<u8>, String> {
    if std::str::from_utf8(original).is_err() || memchr::memchr(0, original).is_some() {
        return Err(NOT_UTF8.to_owned());
    }
    let shown = redact::text(rules, original).text;
    let old: Vec<&[u8]> = original.split_inclusive(|b| *b == b'\n').collect();
    let shown_lines: Vec<&str> = shown.split_inclusive('\n').collect();
    if old.len() != shown_lines.len() {
        return Err(unmatched());
    }
    let secrets = rules.secrets(original);
    let mut tokens = Vec::new();
    let mut start = 0;
    for (i, (line, shown)) in old.iter().zip(&shown_lines).enumerate() {
        let spans = secrets
            .iter()
            .map(|s| s.span.clone())
            .filter(|s| s.start >= start && s.end <= start + line.len());
        let spans: Vec<_> = spans.map(|s| s.start - start..s.end - start).collect();
        let number = u32::try_from(i).unwrap_or(u32::MAX);
        read_tokens(number, line, shown, &spans, &mut tokens)?;
        start += line.len();
    }
    let new: Vec<&str> = edited.split_inclusive('\n').collect();
    let mut out: Vec<Vec<u8>> = Vec::new();
    let mut at = 0;
    for (from, to) in diff::replaced(shown.as_bytes(), edited.as_bytes()) {
        let kept = old
            .get(at..from.start as usize)
            .ok_or("its lines cannot be matched")?;
        out.extend(kept.iter().map(|line| line.to_vec()));
        // The last line of a file may have no line end.
        let near = [
            Some(from.start as usize),
            (from.start as usize).checked_sub(1),
        ];
        let mut near = near
            .into_iter()
            .flatten()
            .filter_map(|i| old.get(i))
            .filter(|line| line.ends_with(b"\n"));
        let end: &[u8] = if near.next().is_some_and(|line| line.ends_with(b"\r\n")) {
            b"\r\n"
        } else {
            b"\n"
        };
        for line in new
            .get(to.start as usize..to.end as usize)
            .unwrap_or_default()
        {
            let text = line.strip_suffix('\n').unwrap_or(line);
            let mut bytes = resolved(text, &tokens, &from)?;
            bytes.extend_from_slice(end);
            out.push(bytes);
        }
        at = from.end as usize;
    }
    out.extend(
        old.get(at..)
            .unwrap_or_default()
            .iter()
            .map(|line| line.to_vec()),
    );
    Ok(joined(out, edited.ends_with('\n')))
}

/// Returns the bytes of a file that a model created.
///
/// # Errors
///
/// Returns a message of one line if it contains hidden characters or a placeholder.
pub fn created(text: &str) -> Result<Vec<u8>, String> {
    if has_active(text) {
        return Err("the model wrote hidden characters".to_owned());
    }
    match text.contains(SECRET) {
        true => Err("the model wrote the placeholder of a secret into a new file".to_owned()),
        false => Ok(text.as_bytes().to_vec()),
    }
}

/// Joins lines. Only the last one may have no line end.
fn joined(mut lines: Vec<Vec<u8>>, is_ended: bool) -> Vec<u8> {
    let end: &[u8] = if lines.first().is_some_and(|l| l.ends_with(b"\r\n")) {
        b"\r\n"
    } else {
        b"\n"
    };
    let count = lines.len();
    for (i, line) in lines.iter_mut().enumerate() {
        match (line.ends_with(b"\n"), i + 1 < count || is_ended) {
            (false, true) => line.extend_from_slice(end),
            (true, false) => {
                line.pop();
                if line.ends_with(b"\r") {
                    line.pop();
                }
            }
            _ => {}
        }
    }
    lines.concat()
}

/// Collects the parts of a line that the model sees as another text.
fn read_tokens(
    number: u32,
    line: &[u8],
    shown: &str,
    secrets: &[std::ops::Range<usize>],
    out: &mut Vec<MaskedPart>,
) -> Result<(), String> {
    let text = std::str::from_utf8(line).map_err(|_| NOT_UTF8.to_owned())?;
    let (mut at, mut rest) = (0, shown);
    while at < text.len() {
        if let Some(span) = secrets.iter().find(|s| s.start == at) {
            let length = rest
                .find('>')
                .map(|end| end + 1)
                .filter(|_| rest.starts_with(SECRET))
                .ok_or_else(unmatched)?;
            let original = text
                .as_bytes()
                .get(span.clone())
                .ok_or_else(unmatched)?
                .to_vec();
            out.push(MaskedPart {
                line: number,
                shown: rest[..length].to_owned(),
                original,
            });
            (at, rest) = (span.end, &rest[length..]);
            continue;
        }
        let c = text
            .get(at..)
            .and_then(|t| t.chars().next())
            .ok_or_else(unmatched)?;
        let next = at + c.len_utf8();
        if let Some(after) = rest.strip_prefix(c) {
            (at, rest) = (next, after);
        } else if c == '\r' && text[next..].starts_with('\n') {
            at = next;
        } else {
            let length = rest
                .find('}')
                .map(|end| end + 1)
                .filter(|_| rest.starts_with("\\u{"))
                .ok_or_else(unmatched)?;
            let original = text.as_bytes()[at..next].to_vec();
            out.push(MaskedPart {
                line: number,
                shown: rest[..length].to_owned(),
                original,
            });
            (at, rest) = (next, &rest[length..]);
        }
    }
    if rest.is_empty() {
        Ok(())
    } else {
        Err(unmatched())
    }
}

/// Returns the error for a file whose lines differ in number or text from those that the model saw.
fn unmatched() -> String {
    "its lines cannot be matched with those that the model saw".to_owned()
}

/// Replaces the placeholders in a line from the model by their original bytes. `lines` is the range
/// that it replaces.
fn resolved(
    line: &str,
    tokens: &[MaskedPart],
    lines: &std::ops::Range<u32>,
) -> Result<Vec<u8>, String> {
    if has_active(line) {
        return Err("the model wrote hidden characters".to_owned());
    }
    let own: Vec<&MaskedPart> = tokens.iter().filter(|t| lines.contains(&t.line)).collect();
    let mut out = Vec::new();
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        if rest.starts_with(SECRET) {
            let placeholder = &rest[..rest.find('>').map_or(rest.len(), |end| end + 1)];
            let near: Vec<&MaskedPart> = own
                .iter()
                .copied()
                .filter(|t| t.shown == placeholder)
                .collect();
            let all: Vec<&MaskedPart> = tokens.iter().filter(|t| t.shown == placeholder).collect();
            out.extend_from_slice(only(if near.is_empty() { &all } else { &near })?);
            rest = &rest[placeholder.len()..];
        } else if let Some(token) = own
            .iter()
            .find(|t| !t.shown.starts_with(SECRET) && rest.starts_with(&t.shown))
        {
            out.extend_from_slice(&token.original);
            rest = &rest[token.shown.len()..];
        } else {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            rest = &rest[c.len_utf8()..];
        }
    }
    Ok(out)
}

/// Returns the original text of placeholders if it is unique.
fn only<'t>(tokens: &[&'t MaskedPart]) -> Result<&'t [u8], String> {
    match tokens {
        [] => Err(
            "the model wrote the placeholder of a secret that the file does not have".to_owned(),
        ),
        [first, others @ ..] if others.iter().all(|t| t.original == first.original) => {
            Ok(&first.original)
        }
        _ => Err("the model wrote the placeholder of a secret that stands for several".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::RulesPolicy;

    fn rules() -> RuleSet {
        RuleSet::new(&RulesPolicy::default(), &[]).unwrap()
    }

    fn key(last: char) -> String {
        format!("AKIA{}{last}", "Q3EGRNDLK5V2TW7")
    }

    /// Applies an edit to the text of a file that a model sees.
    fn edited(original: &str, edit: impl Fn(&str) -> String) -> Result<String, String> {
        let rules = rules();
        let shown = redact::text(&rules, original.as_bytes()).text;
        restored(&rules, original.as_bytes(), &edit(&shown))
            .map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn lines_that_the_model_left_alone_keep_their_bytes() {
        let text = format!(
            "\u{feff}a = 1\r\nkey = \"{}\"\r\nx\u{202e}y\r\nb = 2",
            key('A')
        );
        let out = edited(&text, |shown| shown.replace("b = 2", "b = 3\nc = 4\n"));
        assert_eq!(out.unwrap(), text.replace("b = 2", "b = 3\r\nc = 4\r\n"));
        assert_eq!(edited(&text, str::to_owned).unwrap(), text);
        assert_eq!(edited("a\nb\n", |_| "a".to_owned()).unwrap(), "a");
        assert_eq!(
            edited("a\r\nb", |_| "a\nb\nc".to_owned()).unwrap(),
            "a\r\nb\r\nc"
        );
        assert_eq!(edited("", |_| "a\n".to_owned()).unwrap(), "a\n");
    }

    #[test]
    fn a_placeholder_becomes_the_secret_that_it_stands_for() {
        let text = format!("use = 1\nkey = \"{}\"\n", key('A'));
        let out = edited(&text, |shown| shown.replace("key = ", "API_KEY = ")).unwrap();
        assert_eq!(out, text.replace("key = ", "API_KEY = "));
        let moved = edited(&text, |shown| {
            let line = shown.lines().nth(1).unwrap();
            format!("{line}\nuse = 1\n")
        });
        assert_eq!(moved.unwrap(), format!("key = \"{}\"\nuse = 1\n", key('A')));
    }

    #[test]
    fn a_placeholder_that_stands_for_nothing_or_for_several_is_refused() {
        let two = format!("one = \"{}\"\ntwo = \"{}\"\n", key('A'), key('B'));
        let third = |shown: &str| {
            let placeholder = shown.lines().next().unwrap().split('"').nth(1).unwrap();
            format!("{shown}three = \"{placeholder}\"\n")
        };
        assert!(edited(&two, third).unwrap_err().contains("several"));
        assert!(
            edited("a\n", |_| "a = <secret:x:20>\n".to_owned())
                .unwrap_err()
                .contains("does not have")
        );
        assert!(edited("a\n", |_| "a = <secret:x\n".to_owned()).is_err());
        assert!(created("a = <secret:x:20>\n").is_err() && created("a\u{202e}\n").is_err());
    }

    #[test]
    fn hidden_characters_stay_in_edited_lines_and_new_ones_are_refused() {
        let out = edited("a\u{202e}b = 1\n", |shown| shown.replace("1", "2")).unwrap();
        assert_eq!(out, "a\u{202e}b = 2\n");
        assert_eq!(
            edited("a\u{202e}b = 1\n", |_| "ab = 1\n".to_owned()).unwrap(),
            "ab = 1\n"
        );
        assert!(edited("a\n", |_| "a\u{202e}\n".to_owned()).is_err());
        let code = "let a = '\\u{202e}';\n";
        assert_eq!(
            edited(code, |shown| shown.replace("a =", "b =")).unwrap(),
            code.replace("a =", "b =")
        );
    }
}
