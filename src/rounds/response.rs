//! Parses a coder's response to the findings of a round: JSON, the Markdown format of the
//! instructions, or free text. Untrusted text: bounded here, masked before it is stored.

use crate::error::{Error, Result};
use crate::rules::RuleSet;
use crate::wire::stored::{Explanation, Response, STORED_VERSION};
use serde_json::Value;

/// Bytes of a response, at most; a larger one is rejected.
pub const MOST: usize = 256 << 10;
/// Bytes of one item, of free text, and items of a list, at most. Longer ones are truncated.
const ITEM: usize = 4 << 10;
const TEXT: usize = 16 << 10;
const ITEMS: usize = 200;

/// A coder's response.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GivenResponse {
    /// IDs (`F1`) or fingerprints of findings.
    pub addressed: Vec<String>,
    pub explanations: Vec<Explanation>,
    pub modified_files: Vec<String>,
    pub questions: Vec<String>,
    /// Text outside of the other fields.
    pub text: Option<String>,
}

impl GivenResponse {
    /// Parses a response: JSON, Markdown with the headings of the review response, or free text.
    ///
    /// # Errors
    ///
    /// Usage: too large, or JSON in another format.
    pub fn parse(text: &str) -> Result<Self> {
        if text.len() > MOST {
            let size = text.len();
            return Err(Error::usage(format!(
                "the response has {size} bytes, more than {MOST}"
            )));
        }
        let text = text.trim_start_matches('\u{feff}').trim();
        if text.starts_with(['{', '[', '"']) {
            match serde_json::from_str(text) {
                Ok(value) => return Self::from_json(&value),
                // A Markdown list may begin like this too.
                Err(e) if text.starts_with('{') => {
                    return Err(Error::usage("the response is not valid JSON")
                        .caused_by(&e)
                        .hint(HINT));
                }
                Err(_) => {}
            }
        }
        Ok(markdown(text).bounded())
    }

    /// Parses a response from a JSON value.
    ///
    /// # Errors
    ///
    /// Usage: not in the format of a response.
    pub fn from_json(value: &Value) -> Result<Self> {
        let mut out = Self::default();
        match value {
            Value::Null => {}
            Value::String(text) => return Self::parse_text(text),
            Value::Array(items) => items.iter().try_for_each(|i| out.explain(i, None))?,
            Value::Object(fields) => {
                for (name, value) in fields {
                    out.field(name, value)?;
                }
            }
            Value::Bool(_) | Value::Number(_) => {
                return Err(Error::usage("the response is neither an object nor a text").hint(HINT));
            }
        }
        Ok(out.bounded())
    }

    /// Parses a text in a JSON value. JSON in the text is not parsed again.
    fn parse_text(text: &str) -> Result<Self> {
        if text.len() > MOST {
            return Err(Error::usage(format!(
                "the response has {} bytes, more than {MOST}",
                text.len()
            )));
        }
        Ok(markdown(text.trim()).bounded())
    }

    /// Returns true if the response is empty.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Converts the response for storage, to `round` of a session, with secrets masked.
    pub fn stored(
        &self,
        review_id: &str,
        round: u32,
        timestamp: &str,
        rules: &RuleSet,
    ) -> Response {
        Response {
            schema_version: STORED_VERSION,
            review_id: review_id.to_owned(),
            round,
            timestamp: timestamp.to_owned(),
            addressed: all_masked(&self.addressed, rules),
            explanations: self
                .explanations
                .iter()
                .map(|e| Explanation {
                    finding: e.finding.as_ref().map(|name| rules.masked(name)),
                    text: rules.masked(&e.text),
                })
                .collect(),
            modified_files: all_masked(&self.modified_files, rules),
            questions: all_masked(&self.questions, rules),
            text: self.text.as_ref().map(|text| rules.masked(text)),
        }
    }

    /// Adds a field of a response in JSON.
    fn field(&mut self, name: &str, value: &Value) -> Result<()> {
        let name = name.trim().to_ascii_lowercase().replace([' ', '-'], "_");
        match ResponseSection::of(&name) {
            Some(ResponseSection::Addressed) => each(value, &mut |v| self.address(v)),
            Some(ResponseSection::Explanations) => match value {
                // {"F2": "because …"}
                Value::Object(map)
                    if !map
                        .keys()
                        .any(|k| FINDING.contains(&k.as_str()) || SAYS.contains(&k.as_str())) =>
                {
                    map.iter()
                        .try_for_each(|(name, v)| self.explain(v, Some(name)))
                }
                _ => each(value, &mut |v| self.explain(v, None)),
            },
            Some(ResponseSection::Files) => each(value, &mut |v| {
                self.modified_files
                    .extend(words_of(v, &["file", "path", "name"])?);
                Ok(())
            }),
            Some(ResponseSection::Questions) => each(value, &mut |v| {
                self.questions
                    .extend(words_of(v, &["question", "text", "message"])?);
                Ok(())
            }),
            None if ["text", "summary", "notes", "message", "comment", "response"]
                .contains(&name.as_str()) =>
            {
                each(value, &mut |v| {
                    words_of(v, SAYS)?.iter().for_each(|w| self.say(w));
                    Ok(())
                })
            }
            // An unknown or misspelled field of an agent is preserved.
            None => {
                let said = value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned);
                self.say(&format!("{name}: {said}"));
                Ok(())
            }
        }
    }

    /// Adds findings that the response lists as addressed.
    fn address(&mut self, value: &Value) -> Result<()> {
        match value {
            Value::Object(fields) => {
                let named = FINDING
                    .iter()
                    .find_map(|k| fields.get(*k))
                    .and_then(Value::as_str);
                self.addressed.extend(named.and_then(|n| {
                    name_at_start(n).map_or_else(|| Some(n.to_owned()), |(id, _)| Some(id))
                }));
                for text in SAYS
                    .iter()
                    .filter_map(|k| fields.get(*k))
                    .filter_map(Value::as_str)
                {
                    match named {
                        Some(name) => self.say(&format!("{name}: {text}")),
                        None => self.address_text(text),
                    }
                }
            }
            other => words_of(other, &[])?
                .iter()
                .for_each(|w| self.address_text(w)),
        }
        Ok(())
    }

    /// Parses `F1`, `F1, F2`, `F1: what was done`, or text without the name of a finding.
    fn address_text(&mut self, text: &str) {
        let names = names_in(text);
        let is_list = text
            .split([',', ' ', ';'])
            .filter(|w| !w.is_empty())
            .count()
            == names.len();
        match names.is_empty() {
            true => self.addressed.push(text.trim().to_owned()),
            false => {
                let new: Vec<_> = names
                    .into_iter()
                    .filter(|n| !self.addressed.contains(n))
                    .collect();
                self.addressed.extend(new);
                if !is_list {
                    self.say(text);
                }
            }
        }
    }

    /// Adds explanations. `finding` is the finding that they are about, if a key names it.
    fn explain(&mut self, value: &Value, finding: Option<&str>) -> Result<()> {
        match value {
            Value::Object(fields) => {
                let named = FINDING
                    .iter()
                    .find_map(|k| fields.get(*k))
                    .and_then(Value::as_str)
                    .or(finding);
                let text = SAYS
                    .iter()
                    .filter_map(|k| fields.get(*k))
                    .filter_map(Value::as_str);
                let text = text.collect::<Vec<_>>().join("\n");
                let finding = named
                    .map(|n| name_at_start(n).map_or_else(|| n.trim().to_owned(), |(id, _)| id));
                if finding.is_some() || !text.is_empty() {
                    self.explanations.push(Explanation { finding, text });
                }
            }
            other => {
                if let Some(text) = words_of(other, SAYS)? {
                    match finding {
                        Some(name) => {
                            let finding = name_at_start(name)
                                .map_or_else(|| name.trim().to_owned(), |(id, _)| id);
                            self.explanations.push(Explanation {
                                finding: Some(finding),
                                text,
                            });
                        }
                        None => self.explain_text(&text),
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds an explanation. A name at its start is that of its finding.
    fn explain_text(&mut self, text: &str) {
        let text = text.trim();
        let said = match name_at_start(text) {
            Some((id, rest)) => Explanation {
                finding: Some(id),
                text: rest.to_owned(),
            },
            None => Explanation {
                finding: None,
                text: text.to_owned(),
            },
        };
        self.explanations.push(said);
    }

    /// Adds text outside of all sections.
    fn say(&mut self, text: &str) {
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        match &mut self.text {
            Some(all) => {
                all.push('\n');
                all.push_str(text);
            }
            None => self.text = Some(text.to_owned()),
        }
    }

    /// Drops empty items, and limits the number and the length of the others.
    fn bounded(mut self) -> Self {
        for list in [
            &mut self.addressed,
            &mut self.modified_files,
            &mut self.questions,
        ] {
            list.retain(|item| !item.trim().is_empty());
            list.truncate(ITEMS);
            list.iter_mut().for_each(|item| cut(item, ITEM));
        }
        self.explanations.retain(|e| !e.text.trim().is_empty());
        self.explanations.truncate(ITEMS);
        for e in &mut self.explanations {
            cut(&mut e.text, ITEM);
            e.finding.iter_mut().for_each(|f| cut(f, ITEM));
        }
        self.text.iter_mut().for_each(|t| cut(t, TEXT));
        self.text = self.text.filter(|t| !t.trim().is_empty());
        self
    }
}

const HINT: &str = r#"write {"addressed": ["F1"], "explanations": [{"finding": "F2", "text": "…"}], "modified_files": ["…"], "questions": []}"#;
/// Field names of the finding in an object, and of the text about it.
const FINDING: &[&str] = &["finding", "id", "finding_id", "fingerprint", "issue"];
const SAYS: &[&str] = &[
    "text",
    "explanation",
    "reason",
    "message",
    "why",
    "description",
    "comment",
];

/// A part of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResponseSection {
    Addressed,
    Explanations,
    Files,
    Questions,
}

impl ResponseSection {
    /// Returns the part with a name in lowercase, with `_` for spaces.
    fn of(name: &str) -> Option<Self> {
        match name {
            _ if starts_with_any(name, &["addressed", "issues_addressed", "fixed"]) => {
                Some(Self::Addressed)
            }
            _ if starts_with_any(name, &["explanation", "not_addressed", "unaddressed"]) => {
                Some(Self::Explanations)
            }
            _ if starts_with_any(
                name,
                &[
                    "modified_files",
                    "files_modified",
                    "changed_files",
                    "modified",
                ],
            ) =>
            {
                Some(Self::Files)
            }
            _ if starts_with_any(name, &["question", "clarification"]) => Some(Self::Questions),
            _ => None,
        }
    }
}

/// Returns true if a name begins with one of the prefixes.
fn starts_with_any(name: &str, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}

/// Returns texts with secrets masked.
fn all_masked(texts: &[String], rules: &RuleSet) -> Vec<String> {
    texts.iter().map(|text| rules.masked(text)).collect()
}

/// Calls a function for the value, or for each item of a list.
fn each(value: &Value, take: &mut dyn FnMut(&Value) -> Result<()>) -> Result<()> {
    match value {
        Value::Null => Ok(()),
        Value::Array(items) => items.iter().try_for_each(take),
        other => take(other),
    }
}

/// Returns the text of a value; for an object, that of the first of these fields.
fn words_of(value: &Value, fields: &[&str]) -> Result<Option<String>> {
    match value {
        Value::Null => Ok(None),
        Value::String(s) => Ok(Some(s.trim().to_owned())),
        Value::Number(n) => Ok(Some(n.to_string())),
        Value::Object(map) => Ok(fields
            .iter()
            .find_map(|f| map.get(*f)?.as_str())
            .map(|s| s.trim().to_owned())),
        Value::Bool(_) | Value::Array(_) => Err(Error::usage(
            "the response holds a list in a list, or true or false, where a text belongs",
        )
        .hint(HINT)),
    }
}

/// Parses a response with headings; text under no heading is free text.
fn markdown(text: &str) -> GivenResponse {
    let mut out = GivenResponse::default();
    let mut section = None;
    let mut items: Vec<String> = Vec::new();
    for line in text.lines() {
        let heading = line
            .strip_prefix('#')
            .map(|l| l.trim_start_matches('#').trim().trim_end_matches(':'));
        if let Some(heading) = heading {
            let name = heading.to_ascii_lowercase().replace([' ', '/'], "_");
            let known = ResponseSection::of(&name);
            let is_title = name.starts_with("review_response");
            if known.is_some() || is_title {
                out.end(section, &mut items);
                section = known;
                continue;
            }
        }
        let trimmed = line.trim();
        let item = bullet(trimmed);
        match (item, items.last_mut()) {
            (Some(item), _) => items.push(item.to_owned()),
            (None, Some(last))
                if !trimmed.is_empty() && (section.is_none() || line.starts_with(' ')) =>
            {
                last.push('\n');
                last.push_str(trimmed);
            }
            (None, _) if !trimmed.is_empty() => items.push(trimmed.to_owned()),
            _ => {}
        }
    }
    out.end(section, &mut items);
    out
}

impl GivenResponse {
    /// Adds the items of a section that ended.
    fn end(&mut self, section: Option<ResponseSection>, items: &mut Vec<String>) {
        const NOTHING: [&str; 6] = ["none", "n/a", "-", "nothing", "no", "none."];
        for item in items
            .drain(..)
            .filter(|i| !NOTHING.contains(&i.to_ascii_lowercase().as_str()))
        {
            match section {
                Some(ResponseSection::Addressed) => self.address_text(&item),
                Some(ResponseSection::Explanations) => self.explain_text(&item),
                Some(ResponseSection::Files) => {
                    self.modified_files.push(item.trim_matches('`').to_owned());
                }
                Some(ResponseSection::Questions) => self.questions.push(item),
                None => self.say(&item),
            }
        }
    }
}

/// Returns the text after a list marker.
fn bullet(line: &str) -> Option<&str> {
    if let Some(rest) = ["- ", "* ", "+ "].iter().find_map(|m| line.strip_prefix(m)) {
        let rest = rest.trim_start();
        return Some(
            ["[x] ", "[X] ", "[ ] "]
                .iter()
                .find_map(|m| rest.strip_prefix(m))
                .unwrap_or(rest),
        );
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = &line[digits..];
    if (1..=3).contains(&digits) {
        rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") "))
    } else {
        None
    }
}

/// Returns the name of a finding at the start of a text, and the text after it.
fn name_at_start(text: &str) -> Option<(String, &str)> {
    let inner = text.trim_start_matches(['*', '`', '[', '(', '#', ' ']);
    let end = inner
        .find(|c: char| !c.is_ascii_alphanumeric())
        .unwrap_or(inner.len());
    let name = name(&inner[..end])?;
    let rest =
        inner[end..].trim_start_matches(['*', '`', ']', ')', ':', '-', '–', '—', ' ', '.', ',']);
    Some((name, rest))
}

/// Returns the names of findings in a text.
fn names_in(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for found in text
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter_map(name)
    {
        if !out.contains(&found) {
            out.push(found);
        }
    }
    out
}

/// Parses the name of a finding: `F12`, or a fingerprint.
fn name(word: &str) -> Option<String> {
    let id = word
        .strip_prefix(['F', 'f'])
        .filter(|n| (1..=5).contains(&n.len()) && n.bytes().all(|b| b.is_ascii_digit()));
    if let Some(number) = id {
        return Some(format!("F{number}"));
    }
    (word.len() == 32 && word.bytes().all(|b| b.is_ascii_hexdigit()))
        .then(|| word.to_ascii_lowercase())
}

/// Truncates a text to a number of bytes.
fn cut(text: &mut String, most: usize) {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
        text.push('…');
    }
}

#[cfg(test)]
mod tests;
