//! The kinds of values of the policy keys: how they are validated, and how errors describe them.

pub(super) mod context;
mod path;
mod sandbox;
mod signer;
mod store;
mod table;
mod url;

use super::value::{PolicyValue, closest, parse_duration, show_duration};
use super::{glob, preset};
use crate::finding::{Category, Severity};
use path::inside;
use sandbox::{check_command, folder};
use signer::signer;
use std::ops::Range;
use std::time::Duration;
use store::{cache_signer, store_url};
use toml::Spanned;
use toml::de::DeValue;
pub(super) use url::Url;

/// The type and bounds of a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum ValueKind {
    Flag,
    /// Both ends included.
    Count(u32, u32),
    /// Both ends included.
    Number(f64, f64),
    /// Seconds, both ends included.
    Span(u64, u64),
    Choice(&'static [&'static str]),
    Severities,
    SeverityTable,
    Categories,
    Patterns,
    /// One pattern or a list of them.
    PatternOrPatterns,
    /// Paths inside the repository.
    Files,
    /// A path inside the repository, or an absolute path.
    Storage,
    BackendNames,
    RuleIds,
    Tools,
    /// Lines of an OpenSSH allowed-signers file.
    Signers,
    /// A container command: a program and its arguments, one of which contains `{tree}`.
    Sandbox,
    /// Folders: absolute, below `~/`, or inside the repository.
    Folders,
    /// One line of at most this many bytes.
    Line(usize),
    /// Text of at most this many bytes.
    Text(usize),
    /// A program's name or absolute path.
    Program,
    Variable,
    Url,
    Price,
    /// A program and its arguments.
    Words,
    /// Names of environment variables.
    Variables,
    /// Keys of ticket projects, and paths of projects of a forge.
    Projects,
    /// A regular expression.
    Pattern,
    /// MCP servers by name.
    Servers,
    /// The URL of a store of shared answers.
    StoreUrl,
    /// Lines of an OpenSSH allowed-signers file with Ed25519 keys.
    CacheSigners,
}

/// Why a value is invalid. The text follows the name of the key.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Complaint {
    pub(super) text: String,
    pub(super) hint: Option<String>,
    /// Byte range in the file; `None`: the whole value.
    pub(super) span: Option<Range<usize>>,
}

/// The tools of `serve-mcp`.
pub(super) const TOOLS: [&str; 19] = [
    "request_review",
    "get_review_history",
    "mark_review_complete",
    "review_code",
    "review_staged",
    "review_unstaged",
    "review_commit",
    "review_branch",
    "claude_judge_review",
    "claude_validate_proposal",
    "claude_security_audit",
    "claude_resolve_conflict",
    "claude_health",
    "review_plan",
    "submit_findings",
    "propose_disposition",
    "apply_finding",
    "verify_fix",
    "plan_fix",
];

/// Bytes of the patterns of one list, at most. A review compiles that many in milliseconds.
const MAX_PATTERNS: usize = 1 << 16;
/// Entries of a list, at most.
pub(super) const MAX_LIST: usize = 1000;

type ReadValue = Result<PolicyValue, Complaint>;

impl ValueKind {
    /// Describes the expected value, to follow `must be`.
    pub(super) fn expects(self) -> String {
        match self {
            Self::Flag => "true or false".to_owned(),
            Self::Count(min, max) => format!("a whole number from {min} to {max}"),
            Self::Number(min, max) => format!("a number from {min} to {max}"),
            Self::Span(min, max) => {
                let [min, max] =
                    [min, max].map(|seconds| show_duration(Duration::from_secs(seconds)));
                format!("a duration from {min} to {max}, such as \"2m\"")
            }
            Self::Choice(names) => one_of(names),
            Self::Severities => "a list of severities".to_owned(),
            Self::SeverityTable => "a table of rule IDs and severities".to_owned(),
            Self::Categories => "a list of categories".to_owned(),
            Self::Patterns => "a list of path patterns".to_owned(),
            Self::PatternOrPatterns => "a path pattern or a list of path patterns".to_owned(),
            Self::Files => "a list of paths inside the repository".to_owned(),
            Self::Storage => "a path inside the repository, or an absolute path".to_owned(),
            Self::BackendNames => "a list of backend names".to_owned(),
            Self::RuleIds => "a list of rule IDs".to_owned(),
            Self::Tools => "a list of tool names".to_owned(),
            Self::Signers => {
                "a list of lines in the format of an OpenSSH allowed-signers file".to_owned()
            }
            Self::Sandbox => {
                "a list of a program and its arguments, one of which contains {tree}".to_owned()
            }
            Self::Folders => "a list of folders".to_owned(),
            Self::Line(max) => format!("one line of text, at most {max} bytes"),
            Self::Text(max) => format!("text, at most {max} bytes"),
            Self::Program => "the name or the absolute path of a program".to_owned(),
            Self::Variable => "the name of an environment variable".to_owned(),
            Self::Url => "an https URL, or an http URL of this machine".to_owned(),
            Self::Price => {
                "a table of input, cached and output, in USD per million tokens".to_owned()
            }
            Self::Words => "a list of a program and its arguments".to_owned(),
            Self::Variables => "a list of names of environment variables".to_owned(),
            Self::Projects => "a list of projects".to_owned(),
            Self::Pattern => "a regular expression of at most 512 bytes".to_owned(),
            Self::Servers => "tables: [context.servers.NAME]".to_owned(),
            Self::StoreUrl => {
                "a URL such as s3://BUCKET/PREFIX, rediss://HOST or file:///FOLDER".to_owned()
            }
            Self::CacheSigners => {
                "a list of names and Ed25519 public keys: \"ci ssh-ed25519 AAAA…\"".to_owned()
            }
        }
    }

    /// Validates a value of a policy file.
    pub(super) fn read(self, value: &Spanned<DeValue<'_>>) -> ReadValue {
        match (self, value.get_ref()) {
            (Self::Flag, DeValue::Boolean(b)) => Ok(PolicyValue::Flag(*b)),
            (Self::Count(..), DeValue::Integer(i)) => self.count(
                i64::from_str_radix(i.as_str(), i.radix())
                    .map_err(|_| self.wrong("not a larger number"))?,
            ),
            (Self::Number(..), DeValue::Integer(_) | DeValue::Float(_)) => {
                self.number(value.get_ref())
            }
            (Self::Span(..), DeValue::Integer(i)) if i.radix() == 10 => Err(self
                .wrong_type(value.get_ref())
                .hinted(format!("add a unit: \"{}s\"", i.as_str()))),
            (Self::PatternOrPatterns, DeValue::String(s)) => self
                .item(s)
                .map(|s| PolicyValue::List(vec![s]))
                .map_err(|c| c.at(value.span())),
            (kind, DeValue::Array(items)) if kind.is_list() => self.list(items),
            (kind, DeValue::String(s)) if kind.is_list() => {
                let hint = format!("write it as a list: [{}]", super::value::quote(s));
                Err(self.wrong_type(value.get_ref()).hinted(hint))
            }
            (Self::SeverityTable, DeValue::Table(rows)) => table::severities(rows),
            (Self::Price, DeValue::Table(rows)) => table::price(rows),
            (Self::Servers, DeValue::Table(table)) => context::servers(table),
            (Self::Pattern, DeValue::String(s)) => context::pattern(s),
            (kind, DeValue::String(s)) if kind.is_text() => self.string(s),
            _ => Err(self.wrong_type(value.get_ref())),
        }
    }

    /// Returns true for a kind that is written as a list of strings.
    fn is_list(self) -> bool {
        matches!(
            self,
            Self::Severities
                | Self::Categories
                | Self::Patterns
                | Self::PatternOrPatterns
                | Self::Files
                | Self::BackendNames
                | Self::RuleIds
                | Self::Tools
                | Self::Signers
                | Self::Sandbox
                | Self::Folders
                | Self::Words
                | Self::Variables
                | Self::Projects
                | Self::CacheSigners
        )
    }

    /// Returns true for a kind that is written as one string, and that [`Self::string`] validates.
    fn is_text(self) -> bool {
        matches!(
            self,
            Self::Choice(_)
                | Self::Span(..)
                | Self::Storage
                | Self::Line(_)
                | Self::Text(_)
                | Self::Program
                | Self::Variable
                | Self::Url
                | Self::StoreUrl
        )
    }

    /// Validates a value of an environment variable.
    pub(super) fn read_variable(self, text: &str) -> ReadValue {
        match self {
            Self::Flag => match text.trim().to_ascii_lowercase().as_str() {
                "true" | "1" | "yes" | "on" => Ok(PolicyValue::Flag(true)),
                "false" | "0" | "no" | "off" => Ok(PolicyValue::Flag(false)),
                _ => Err(self.wrong_text(text)),
            },
            Self::Count(..) => match text.trim().parse() {
                Ok(n) => self.count(n),
                Err(_) => Err(self.wrong_text(text)),
            },
            _ => self.string(text),
        }
    }

    fn wrong(self, not: impl AsRef<str>) -> Complaint {
        complaint(format!("must be {}, {}", self.expects(), not.as_ref()))
    }

    /// Returns the complaint about a value of another type.
    fn wrong_type(self, value: &DeValue<'_>) -> Complaint {
        self.wrong(format!("not {}", article(value)))
    }

    /// Returns the complaint about a text, which it quotes.
    fn wrong_text(self, text: &str) -> Complaint {
        self.wrong(format!("not {text:?}"))
    }

    /// Returns the complaint about a value of the right type, with the reason why it is invalid.
    fn unmet(self, why: &str) -> Complaint {
        complaint(format!("must be {}; {why}", self.expects()))
    }

    fn count(self, n: i64) -> ReadValue {
        match self {
            Self::Count(min, max) if (i64::from(min)..=i64::from(max)).contains(&n) => {
                Ok(PolicyValue::Count(u32::try_from(n).unwrap_or(max)))
            }
            _ => Err(self.wrong(format!("not {n}"))),
        }
    }

    fn number(self, value: &DeValue<'_>) -> ReadValue {
        let n: Option<f64> = match value {
            DeValue::Integer(i) => i64::from_str_radix(i.as_str(), i.radix())
                .ok()
                .map(|n| n as f64),
            DeValue::Float(f) => f.as_str().parse().ok(),
            _ => None,
        };
        match (self, n) {
            (Self::Number(min, max), Some(n)) if n >= min && n <= max => Ok(PolicyValue::Number(n)),
            (_, Some(n)) => Err(self.wrong(format!("not {n}"))),
            (_, None) => Err(self.wrong("not a larger number")),
        }
    }

    fn list(self, items: &[Spanned<DeValue<'_>>]) -> ReadValue {
        if items.len() > MAX_LIST {
            return Err(complaint(format!(
                "has {} entries; the limit is {MAX_LIST}",
                items.len()
            )));
        }
        let mut list = Vec::with_capacity(items.len());
        for item in items {
            let DeValue::String(s) = item.get_ref() else {
                return Err(complaint(format!(
                    "must be {}; it contains {}",
                    self.expects(),
                    article(item.get_ref())
                ))
                .at(item.span()));
            };
            let s = self.item(s).map_err(|c| c.at(item.span()))?;
            // The arguments of a command may repeat.
            if matches!(self, Self::Sandbox | Self::Words) || !list.contains(&s) {
                list.push(s);
            }
        }
        if let Self::Severities = self {
            // The worst severity comes first, whatever the order in the file.
            list.sort_by_key(|s| std::cmp::Reverse(Severity::parse(s)));
        }
        if let (Self::Patterns | Self::PatternOrPatterns, true) = (
            self,
            list.iter().map(String::len).sum::<usize>() > MAX_PATTERNS,
        ) {
            return Err(complaint(format!(
                "has patterns of more than {} KiB in total",
                MAX_PATTERNS >> 10
            )));
        }
        if let (Self::PatternOrPatterns, true) = (self, list.is_empty()) {
            return Err(complaint("must name at least one pattern"));
        }
        if let Self::Sandbox = self {
            check_command(&list)?;
        }
        if let Self::Words = self {
            context::command(&list)?;
        }
        Ok(PolicyValue::List(list))
    }

    /// Validates an entry of a list and returns its canonical form.
    fn item(self, s: &str) -> Result<String, Complaint> {
        match self {
            Self::Severities => severity(s),
            Self::Categories => match Category::parse(s) {
                Some(c) => Ok(c.name().to_owned()),
                None => Err(unknown("category", s, Category::ALL.map(Category::name))),
            },
            Self::Patterns | Self::PatternOrPatterns => match glob::check(s) {
                Ok(()) => Ok(s.to_owned()),
                Err(why) => {
                    let hint = s
                        .starts_with('!')
                        .then(|| "remove the ! and list the paths to match".to_owned());
                    Err(Complaint {
                        text: format!("has an invalid pattern: {why}"),
                        hint,
                        span: None,
                    })
                }
            },
            Self::Files => match inside(s) {
                Some(path) => Ok(path),
                None => Err(complaint(format!(
                    "has {s:?}, which is not a path inside the repository"
                ))),
            },
            Self::BackendNames => match backend_name(s) {
                Ok(()) => Ok(s.to_owned()),
                Err(why) => Err(why),
            },
            Self::RuleIds => {
                let mut bytes = s.bytes();
                let is_plain = bytes
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_./".contains(&b));
                if !s.is_empty() && s.len() <= 128 && is_plain {
                    Ok(s.to_owned())
                } else {
                    Err(complaint(format!("has {s:?}, which is not a rule ID"))
                        .hinted("list the rule IDs: claude-reviewer rules list"))
                }
            }
            Self::Tools if TOOLS.contains(&s) => Ok(s.to_owned()),
            Self::Tools => Err(unknown("tool", s, TOOLS)),
            Self::Signers => signer(s),
            Self::CacheSigners => cache_signer(s),
            Self::Sandbox | Self::Folders if s.is_empty() || s.chars().any(char::is_control) => {
                Err(self.unmet("an entry is empty or has a control character"))
            }
            Self::Folders => folder(s),
            Self::Words if !context::is_plain(s) => {
                Err(self.unmet("an entry is empty or has a control character"))
            }
            Self::Variables => Self::Variable.string(s).map(|v| v.text().to_owned()),
            Self::Projects => context::project(s),
            _ => Ok(s.to_owned()),
        }
    }

    fn string(self, s: &str) -> ReadValue {
        let plain = !s.trim().is_empty() && !s.chars().any(char::is_control);
        match self {
            Self::Choice(names) => {
                let folded = s.trim().to_ascii_lowercase();
                match names.iter().find(|n| **n == folded) {
                    Some(n) => Ok(PolicyValue::Text((*n).to_owned())),
                    None => Err(Complaint {
                        hint: closest(s, names.iter().copied()).map(did_you_mean),
                        ..self.wrong_text(s)
                    }),
                }
            }
            Self::Span(min, max) => match parse_duration(s) {
                Some(d) if d >= Duration::from_secs(min) && d <= Duration::from_secs(max) => {
                    Ok(PolicyValue::Span(d))
                }
                _ => Err(self.wrong_text(s)),
            },
            Self::Storage if s.starts_with('/') => {
                if plain && !s.split('/').any(|c| c == "..") {
                    Ok(PolicyValue::Text(s.to_owned()))
                } else {
                    Err(self.wrong_text(s))
                }
            }
            Self::Storage => inside(s)
                .map(PolicyValue::Text)
                .ok_or_else(|| self.wrong_text(s)),
            Self::Line(max) | Self::Text(max) if s.len() > max => Err(complaint(format!(
                "is {} bytes long; the limit is {max}",
                s.len()
            ))),
            Self::Line(_) if plain => Ok(PolicyValue::Text(s.to_owned())),
            Self::Text(_) if !s.trim().is_empty() && !s.contains('\0') => {
                Ok(PolicyValue::Text(s.to_owned()))
            }
            Self::Text(_) => Err(complaint("must not be empty")),
            // A relative path would name a program of the repository under review.
            Self::Program
                if plain && (!s.contains('/') || std::path::Path::new(s).is_absolute()) =>
            {
                Ok(PolicyValue::Text(s.to_owned()))
            }
            Self::Variable
                if s.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
                    && s.bytes().next().is_some_and(|b| !b.is_ascii_digit())
                    && s.len() <= 128 =>
            {
                Ok(PolicyValue::Text(s.to_owned()))
            }
            // The value may be the key itself, which must not appear in a log.
            Self::Variable => Err(complaint(format!("must be {}", self.expects())).hinted(
                "write the name of the variable that contains the key, not the key itself",
            )),
            Self::Url => Url::parse(s).map(|u| PolicyValue::Text(u.text)),
            Self::StoreUrl => store_url(s).map(PolicyValue::Text),
            _ => Err(self.wrong_text(s)),
        }
    }
}

impl Complaint {
    /// Sets the byte range, unless a narrower one is set.
    fn at(mut self, span: Range<usize>) -> Self {
        self.span.get_or_insert(span);
        self
    }
    pub(super) fn hinted(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

fn complaint(text: impl Into<String>) -> Complaint {
    Complaint {
        text: text.into(),
        hint: None,
        span: None,
    }
}

pub(super) fn did_you_mean(name: &str) -> String {
    format!("did you mean {name:?}?")
}

fn unknown<const N: usize>(what: &str, typed: &str, names: [&'static str; N]) -> Complaint {
    Complaint {
        text: format!("has the unknown {what} {typed:?}"),
        hint: Some(match closest(typed, names) {
            Some(name) => did_you_mean(name),
            None => format!("expected one of: {}", names.join(", ")),
        }),
        span: None,
    }
}

fn severity(s: &str) -> Result<String, Complaint> {
    match Severity::parse(s) {
        Some(s) => Ok(s.name().to_owned()),
        None => Err(unknown("severity", s, Severity::ALL.map(Severity::name))),
    }
}

/// Validates the name of a backend.
pub(super) fn backend_name(s: &str) -> Result<(), Complaint> {
    if s == "rules" {
        return Err(complaint(
            "names \"rules\", which is not a backend: the rules always run",
        ));
    }
    if s.is_empty() || s.len() > 64 || !s.bytes().all(is_name_byte) {
        let known: Vec<_> = preset::built_in_names().collect();
        return Err(complaint(format!(
            "has {s:?}, which is not a backend name (lowercase letters, digits, - and _)"
        ))
        .hinted(match closest(s, known.iter().copied()) {
            Some(name) => did_you_mean(name),
            None => format!("built-in backends: {}", known.join(", ")),
        }));
    }
    Ok(())
}

/// Returns true for the bytes of the names of backends and servers.
fn is_name_byte(b: u8) -> bool {
    b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_'
}

fn one_of(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|n| format!("{n:?}")).collect();
    match quoted.as_slice() {
        [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

fn article(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a decimal number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

#[cfg(test)]
mod tests;
