//! Parses a policy file into validated settings, or into a list of problems with their lines.

use super::keys::{BACKEND, GUIDELINE, PATH, PolicyKey, TABLES, VERSION, full};
use super::kind::{Complaint, MAX_LIST, backend_name, did_you_mean};
use super::value::{PolicyValue, closest};
use super::{Backend, Guideline, Layer, PathRule, Policy, PolicyFile, SettingOrigin};
use crate::error::Error;
use std::borrow::Cow;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The content of a policy file.
#[derive(Debug, Default)]
pub(super) struct ParsedPolicy {
    /// In the order of the file.
    pub(super) settings: Vec<Setting>,
    /// Every `[backend.NAME]`, with its line.
    pub(super) backends: Vec<(String, u32)>,
    pub(super) paths: Vec<PathRule>,
    pub(super) guidelines: Vec<Guideline>,
}

/// A key that a file sets.
#[derive(Debug)]
pub(super) struct Setting {
    pub(super) slot: Slot,
    pub(super) value: PolicyValue,
    pub(super) line: u32,
}

/// The target of a value.
#[derive(Clone)]
pub(super) enum Slot {
    Policy(&'static str, &'static PolicyKey<Policy>),
    Backend(String, &'static PolicyKey<Backend>),
}

impl Slot {
    /// Returns the full key: `review.jobs`, `backend.local.base_url`.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Policy(table, key) => full(table, key.name),
            Self::Backend(name, key) => format!("backend.{name}.{}", key.name),
        }
    }
}

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name())
    }
}

/// An error in a policy file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyProblem {
    /// 1-based.
    pub line: Option<u32>,
    /// Names file, line and key.
    pub message: String,
    pub hint: Option<String>,
}

impl PolicyProblem {
    /// Returns a usage error with the first problem and its hint. It counts the others.
    pub(super) fn error(problems: &[Self]) -> Error {
        let Some(first) = problems.first() else {
            return Error::usage("cannot read the policy");
        };
        let mut e = Error::usage(first.message.clone());
        if let Some(h) = &first.hint {
            e = e.hint_person(h.clone());
        }
        // An agent must not change the policy that governs its own calls.
        e = e.hint_agent("ask the user to fix the policy file");
        match problems.len() - 1 {
            0 => e,
            1 => e
                .hint_person("show the other problem: claude-reviewer policy check")
                .hint_agent("the file has another problem; report it to the user"),
            n => e
                .hint_person(format!(
                    "show the other {n} problems: claude-reviewer policy check"
                ))
                .hint_agent(format!(
                    "the file has {n} other problems; report them to the user"
                )),
        }
    }
}

/// Problems that are reported, at most.
const MAX_PROBLEMS: usize = 50;
/// Tables `[backend.NAME]`, at most.
const MAX_BACKENDS: usize = 100;
/// Bytes of a policy file, at most.
pub const MAX_BYTES: usize = 1 << 20;

/// Parses a policy file. `layer` becomes part of the origins of `[[path]]` and `[[guideline]]`.
///
/// # Errors
///
/// At least one problem, in the order of lines; at most [`MAX_PROBLEMS`].
pub(super) fn parse(file: &PolicyFile, layer: Layer) -> Result<ParsedPolicy, Vec<PolicyProblem>> {
    let text = text_of(file).map_err(|problem| vec![problem])?;
    let lines = LineStarts::new(text.as_bytes());
    let document = match DeTable::parse(&text) {
        Ok(document) => document,
        Err(e) => return Err(vec![malformed(file, &text, &lines, &e)]),
    };
    let mut reader = PolicyReader {
        file,
        layer,
        lines,
        parsed: ParsedPolicy::default(),
        problems: Vec::new(),
    };
    if reader.version(document.get_ref()) {
        reader.document(document.get_ref());
    }
    let PolicyReader {
        mut parsed,
        mut problems,
        ..
    } = reader;
    if problems.is_empty() {
        parsed.settings.sort_by_key(|s| s.line);
        parsed.paths.sort_by_key(|p| p.origin.line);
        parsed.guidelines.sort_by_key(|g| g.origin.line);
        Ok(parsed)
    } else {
        problems.sort_by_key(|p| p.line);
        problems.truncate(MAX_PROBLEMS);
        Err(problems)
    }
}

/// Returns the text of a file. Some editors write a byte order mark; spaces replace it, so that
/// offsets stay valid.
fn text_of(file: &PolicyFile) -> Result<Cow<'_, str>, PolicyProblem> {
    if file.bytes.len() > MAX_BYTES {
        return Err(PolicyProblem {
            line: None,
            message: format!("{} is larger than 1 MiB", file.name),
            hint: None,
        });
    }
    match std::str::from_utf8(&file.bytes) {
        Ok(text) => Ok(match text.strip_prefix('\u{feff}') {
            Some(rest) => Cow::Owned(format!("   {rest}")),
            None => Cow::Borrowed(text),
        }),
        Err(e) => {
            let line = LineStarts::new(&file.bytes).of(e.valid_up_to());
            Err(PolicyProblem {
                line: Some(line),
                message: format!("{}:{line} is not UTF-8", file.name),
                hint: None,
            })
        }
    }
}

/// Returns the problem of a text that is not TOML. The hint names the key on the line.
fn malformed(
    file: &PolicyFile,
    text: &str,
    lines: &LineStarts,
    error: &toml::de::Error,
) -> PolicyProblem {
    let at = error.span().map_or(text.len(), |s| s.start);
    let line = lines.of(at);
    PolicyProblem {
        line: Some(line),
        message: format!(
            "malformed TOML in {}:{line}: {}",
            file.name,
            error.message()
        ),
        hint: key_on(text, at).map(|key| format!("check the line that starts with {key:?}")),
    }
}

/// Returns the key on the line of a byte offset.
fn key_on(text: &str, at: usize) -> Option<&str> {
    let start = text.get(..at)?.rfind('\n').map_or(0, |i| i + 1);
    let word = text[start..].trim_start_matches([' ', '\t', '[']);
    let end = word
        .find(|c: char| !c.is_ascii_alphanumeric() && !"_-.".contains(c))
        .unwrap_or(word.len());
    (end > 0 && end <= 64).then(|| &word[..end])
}

/// The byte offsets of line starts.
struct LineStarts(Vec<usize>);

impl LineStarts {
    fn new(text: &[u8]) -> Self {
        Self(
            std::iter::once(0)
                .chain(memchr::memchr_iter(b'\n', text).map(|i| i + 1))
                .collect(),
        )
    }
    /// Returns the 1-based line of a byte offset.
    fn of(&self, at: usize) -> u32 {
        u32::try_from(self.0.partition_point(|start| *start <= at)).unwrap_or(u32::MAX)
    }
}

/// The state of reading one file.
struct PolicyReader<'a> {
    file: &'a PolicyFile,
    layer: Layer,
    lines: LineStarts,
    parsed: ParsedPolicy,
    problems: Vec<PolicyProblem>,
}

type KeyName<'i> = Spanned<Cow<'i, str>>;

impl PolicyReader<'_> {
    /// Checks `version` before anything else: a newer file may contain keys that are unknown here.
    fn version(&mut self, document: &DeTable<'_>) -> bool {
        let Some((_, value)) = document.iter().find(|(k, _)| k.get_ref() == "version") else {
            return true;
        };
        let line = self.lines.of(value.span().start);
        let place = format!("{}:{line}", self.file.name);
        let number = value
            .get_ref()
            .as_integer()
            .and_then(|i| i64::from_str_radix(i.as_str(), i.radix()).ok());
        let (message, hint) = match number {
            Some(n) if n == i64::from(VERSION) => return true,
            Some(n) if n > i64::from(VERSION) => (
                format!("\"version\" in {place} is {n}; this program supports version {VERSION}"),
                "update claude-reviewer".to_owned(),
            ),
            _ => (
                format!("\"version\" in {place} must be {VERSION}"),
                "write: version = 1".to_owned(),
            ),
        };
        self.problems.push(PolicyProblem {
            line: Some(line),
            message,
            hint: Some(hint),
        });
        false
    }

    /// Reads every table and every key of the top level.
    fn document(&mut self, document: &DeTable<'_>) {
        for (name, value) in document {
            match (name.get_ref().as_ref(), value.get_ref()) {
                ("version", _) => {}
                ("backend", DeValue::Table(backends)) if backends.len() > MAX_BACKENDS => {
                    self.too_many(name, backends.len(), MAX_BACKENDS);
                }
                ("path" | "guideline", DeValue::Array(entries)) if entries.len() > MAX_LIST => {
                    self.too_many(name, entries.len(), MAX_LIST);
                }
                ("backend", DeValue::Table(backends)) => {
                    for (name, value) in backends {
                        self.backend(name, value);
                    }
                }
                ("path", DeValue::Array(entries)) => {
                    for entry in entries {
                        self.path(entry);
                    }
                }
                ("guideline", DeValue::Array(entries)) => {
                    for entry in entries {
                        self.guideline(entry);
                    }
                }
                ("backend", _) => self.wrong(name, "must be tables: [backend.NAME]"),
                ("path", _) => self.wrong(name, "must be a list of tables: [[path]]"),
                ("guideline", _) => self.wrong(name, "must be a list of tables: [[guideline]]"),
                _ => self.table_or_key(name, value),
            }
        }
    }

    /// Reads a fixed table, or a key of the top level.
    fn table_or_key(&mut self, name: &KeyName<'_>, value: &Spanned<DeValue<'_>>) {
        let table = TABLES
            .iter()
            .find(|t| !t.name.is_empty() && t.name == name.get_ref());
        match (table, value.get_ref()) {
            (Some(table), DeValue::Table(entries)) => {
                for (name, value) in entries {
                    let key = table.keys.iter().find(|k| k.name == name.get_ref());
                    let slot = key.map(|k| Slot::Policy(table.name, k));
                    self.setting(table.name, name, value, slot);
                }
            }
            (Some(table), _) => self.wrong(name, &format!("must be a table: [{}]", table.name)),
            (None, _) => {
                let key = TABLES[0].keys.iter().find(|k| k.name == name.get_ref());
                self.setting("", name, value, key.map(|k| Slot::Policy("", k)));
            }
        }
    }

    /// Reads a key of a fixed table or of a backend. Without a slot, the key is unknown.
    fn setting(
        &mut self,
        table: &str,
        name: &KeyName<'_>,
        value: &Spanned<DeValue<'_>>,
        slot: Option<Slot>,
    ) {
        let Some(slot) = slot else {
            return self.unknown(table, name);
        };
        let kind = match &slot {
            Slot::Policy(_, key) => key.kind,
            Slot::Backend(_, key) => key.kind,
        };
        let line = self.lines.of(name.span().start);
        match kind.read(value) {
            Ok(value) => self.parsed.settings.push(Setting { slot, value, line }),
            Err(complaint) => self.complain(&slot.name(), &value.span(), complaint),
        }
    }

    /// Reads a `[backend.NAME]`.
    fn backend(&mut self, name: &KeyName<'_>, value: &Spanned<DeValue<'_>>) {
        let line = self.lines.of(name.span().start);
        if let Err(complaint) = backend_name(name.get_ref()) {
            return self.complain("backend", &name.span(), complaint);
        }
        let DeValue::Table(entries) = value.get_ref() else {
            return self.wrong(
                name,
                &format!("must be a table: [backend.{}]", name.get_ref()),
            );
        };
        let backend = name.get_ref().to_string();
        if let Some((name, _)) = entries
            .iter()
            .find(|(k, _)| k.get_ref() == "api_key_command")
            && entries.iter().any(|(k, _)| k.get_ref() == "api_key_env")
        {
            self.wrong(name, "conflicts with api_key_env: set only one of them");
        }
        for (name, value) in entries {
            let key = BACKEND.iter().find(|k| k.name == name.get_ref());
            self.setting(
                &format!("backend.{backend}"),
                name,
                value,
                key.map(|k| Slot::Backend(backend.clone(), k)),
            );
        }
        self.parsed.backends.push((backend, line));
    }

    /// Reads a `[[path]]`.
    fn path(&mut self, entry: &Spanned<DeValue<'_>>) {
        let origin = self.origin(entry);
        let mut rule = PathRule {
            glob: Vec::new(),
            block_on: None,
            warn_on: None,
            min_confidence: None,
            origin,
        };
        if self.entry("path", PATH, entry, &mut rule) {
            if rule.glob.is_empty() {
                self.problem(rule.origin.line, "[[path]]", "has no glob");
            }
            self.parsed.paths.push(rule);
        }
    }

    /// Reads a `[[guideline]]`.
    fn guideline(&mut self, entry: &Spanned<DeValue<'_>>) {
        let mut guideline = Guideline {
            glob: Vec::new(),
            text: String::new(),
            origin: self.origin(entry),
        };
        if self.entry("guideline", GUIDELINE, entry, &mut guideline) {
            if guideline.glob.is_empty() {
                self.problem(guideline.origin.line, "[[guideline]]", "has no glob");
            }
            if guideline.text.is_empty() {
                self.problem(guideline.origin.line, "[[guideline]]", "has no text");
            }
            self.parsed.guidelines.push(guideline);
        }
    }

    /// Parses an entry of a list of tables. Returns false if it has a problem.
    fn entry<T>(
        &mut self,
        list: &str,
        keys: &'static [PolicyKey<T>],
        entry: &Spanned<DeValue<'_>>,
        to: &mut T,
    ) -> bool {
        let DeValue::Table(entries) = entry.get_ref() else {
            let line = self.lines.of(entry.span().start);
            self.problem(
                Some(line),
                &format!("{list:?}"),
                &format!("must contain tables: [[{list}]]"),
            );
            return false;
        };
        let before = self.problems.len();
        for (name, value) in entries {
            match keys.iter().find(|k| k.name == name.get_ref()) {
                None => self.unknown(list, name),
                Some(key) => match key.kind.read(value) {
                    Ok(value) => (key.set)(to, &value),
                    Err(complaint) => {
                        self.complain(&full(list, key.name), &value.span(), complaint);
                    }
                },
            }
        }
        self.problems.len() == before
    }

    /// Returns the origin of an entry of a list of tables.
    fn origin(&self, entry: &Spanned<DeValue<'_>>) -> SettingOrigin {
        let line = Some(self.lines.of(entry.span().start));
        SettingOrigin {
            layer: self.layer,
            place: self.file.name.clone(),
            line,
        }
    }

    /// Reports an unknown key.
    fn unknown(&mut self, table: &str, name: &KeyName<'_>) {
        if self.problems.len() >= MAX_PROBLEMS {
            return;
        }
        let line = self.lines.of(name.span().start);
        let typed = name.get_ref().as_ref();
        let message = format!(
            "unknown key {:?} in {}:{line}",
            full(table, typed),
            self.file.name
        );
        self.problems.push(PolicyProblem {
            line: Some(line),
            message,
            hint: Some(suggest(table, typed)),
        });
    }

    /// Reports a list or table with more entries than allowed.
    fn too_many(&mut self, name: &KeyName<'_>, entries: usize, limit: usize) {
        self.wrong(
            name,
            &format!("has {entries} entries; the limit is {limit}"),
        );
    }

    /// Reports a key or table with a problem, at its own position.
    fn wrong(&mut self, name: &KeyName<'_>, what: &str) {
        let line = self.lines.of(name.span().start);
        self.problem(Some(line), &format!("{:?}", name.get_ref()), what);
    }

    /// Reports an invalid value, at its own position or that of a part of it.
    fn complain(&mut self, key: &str, value: &Range<usize>, complaint: Complaint) {
        let Complaint { text, hint, span } = complaint;
        let line = self.lines.of(span.unwrap_or(value.clone()).start);
        let message = format!("{key:?} in {}:{line} {text}", self.file.name);
        self.problems.push(PolicyProblem {
            line: Some(line),
            message,
            hint,
        });
    }

    /// Reports a problem with its subject and place.
    fn problem(&mut self, line: Option<u32>, subject: &str, what: &str) {
        let place = line.map_or_else(
            || self.file.name.clone(),
            |l| format!("{}:{l}", self.file.name),
        );
        self.problems.push(PolicyProblem {
            line,
            message: format!("{subject} in {place} {what}"),
            hint: None,
        });
    }
}

/// Returns a hint for an unknown key.
fn suggest(table: &str, typed: &str) -> String {
    // `[backend.x]` and the lists of tables are not in `TABLES`.
    let lists: [(&str, Vec<&str>); 3] = [
        ("backend.", BACKEND.iter().map(|k| k.name).collect()),
        ("path", PATH.iter().map(|k| k.name).collect()),
        ("guideline", GUIDELINE.iter().map(|k| k.name).collect()),
    ];
    let fixed = TABLES
        .iter()
        .find(|t| t.name == table)
        .map(|t| t.keys.iter().map(|k| k.name).collect());
    let here: Vec<&str> = fixed.unwrap_or_else(|| {
        lists
            .iter()
            .find(|(t, _)| table.starts_with(t))
            .map(|(_, keys)| keys.clone())
            .unwrap_or_default()
    });
    let tables = TABLES.iter().map(|t| t.name).filter(|t| !t.is_empty());
    let tables: Vec<&str> = tables
        .chain(["backend", "path", "guideline", "version"])
        .collect();
    let typed_folded = typed.replace('-', "_");
    if table.starts_with("backend.")
        && ["api_key", "key", "token", "apikey"].contains(&typed_folded.as_str())
    {
        return "remove the key from the policy file; set api_key_env or api_key_command instead"
            .to_owned();
    }
    if let Some(name) = closest(typed, here.iter().copied()) {
        return did_you_mean(name);
    }
    let elsewhere = TABLES
        .iter()
        .find(|t| t.name != table && t.keys.iter().any(|k| k.name == typed_folded));
    if let Some(t) = elsewhere {
        let name = &typed_folded;
        return if t.name.is_empty() {
            format!("move {name:?} to the top level, before the first [table]")
        } else {
            format!("move {name:?} to [{}]", t.name)
        };
    }
    if table.is_empty() {
        if let Some(name) = closest(typed, tables.iter().copied()) {
            return did_you_mean(name);
        }
        return "list all keys: claude-reviewer policy show".to_owned();
    }
    format!("valid keys here: {}", here.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_text(bytes: &[u8]) -> Result<ParsedPolicy, Vec<PolicyProblem>> {
        parse(
            &PolicyFile {
                name: "p".to_owned(),
                bytes: bytes.to_vec(),
            },
            Layer::Project,
        )
    }

    /// Returns the next pseudorandom number below a limit.
    fn random(seed: &mut u64, below: usize) -> usize {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        (*seed % below as u64) as usize
    }

    #[test]
    fn no_file_makes_the_reader_panic() {
        let good = include_bytes!("../../fixtures/policy/valid/everything.toml");
        let parsed = parse_text(good).unwrap();
        assert_eq!(
            (
                parsed.paths.len(),
                parsed.guidelines.len(),
                parsed.backends.len()
            ),
            (2, 1, 2)
        );
        // Every prefix, and many damaged copies.
        for end in 0..good.len() {
            let _ = parse_text(&good[..end]);
        }
        let mut seed = 1_u64;
        let bits = [
            "[",
            "]",
            "{",
            "}",
            "\"",
            "'''",
            "=",
            ".",
            "\n",
            "\0",
            "99999999999999999999",
            "\u{202e}",
            "é",
        ];
        for _ in 0..2000 {
            let mut text = good.to_vec();
            for _ in 0..=random(&mut seed, 4) {
                let at = random(&mut seed, text.len());
                let with = bits[random(&mut seed, bits.len())].as_bytes();
                let until = (at + random(&mut seed, 20)).min(text.len());
                text.splice(at..until, with.iter().copied());
            }
            if let Err(problems) = parse_text(&text) {
                assert!(!problems.is_empty());
                assert!(
                    problems.iter().all(|p| p.message.contains("p:")),
                    "{problems:?}"
                );
            }
        }
    }

    #[test]
    fn lines_are_right_behind_a_byte_order_mark_and_crlf() {
        let problems =
            parse_text(b"\xef\xbb\xbfversion = 1\r\n\r\n[review]\r\njob = 3\r\n").unwrap_err();
        assert_eq!(problems[0].line, Some(4));
        assert_eq!(problems[0].hint.as_deref(), Some("did you mean \"jobs\"?"));
    }

    #[test]
    fn an_entry_knows_the_line_of_its_header() {
        let parsed = parse_text(b"\n[[path]]\nglob = 'a'\n\n[[path]]\nglob = 'b'\n").unwrap();
        let lines: Vec<_> = parsed.paths.iter().map(|p| p.origin.line).collect();
        assert_eq!(lines, [Some(2), Some(5)]);
    }

    #[test]
    fn reading_a_file_takes_well_under_a_millisecond() {
        let good = include_bytes!("../../fixtures/policy/valid/everything.toml");
        let best = (0..20).map(|_| {
            let start = std::time::Instant::now();
            parse_text(good).unwrap();
            start.elapsed()
        });
        // Unoptimized; an optimized build takes about a tenth.
        let best = best.min().unwrap();
        assert!(best < std::time::Duration::from_millis(5), "{best:?}");
    }
}
