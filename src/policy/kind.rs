//! The kinds of values of the policy keys: how they are validated, and how errors describe them.

pub(super) mod context;

use super::value::{PolicyValue, closest, parse_duration, show_duration};
use super::{glob, preset};
use crate::finding::{Category, Severity};
use base64::Engine as _;
use std::ops::Range;
use std::time::Duration;
use toml::Spanned;
use toml::de::DeValue;

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
            (
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
                | Self::Projects,
                DeValue::Array(items),
            ) => self.list(items),
            (
                Self::Severities
                | Self::Categories
                | Self::Patterns
                | Self::Files
                | Self::BackendNames
                | Self::RuleIds
                | Self::Tools
                | Self::Signers
                | Self::Sandbox
                | Self::Folders
                | Self::Words
                | Self::Variables
                | Self::Projects,
                DeValue::String(s),
            ) => {
                let hint = format!("write it as a list: [{}]", super::value::quote(s));
                Err(self.wrong_type(value.get_ref()).hinted(hint))
            }
            (Self::SeverityTable, DeValue::Table(table)) if table.len() > MAX_LIST => {
                Err(complaint(format!(
                    "has {} entries; the limit is {MAX_LIST}",
                    table.len()
                )))
            }
            (Self::SeverityTable, DeValue::Table(table)) => {
                let mut rows = Vec::new();
                for (id, v) in table {
                    let id = Self::RuleIds
                        .item(id.get_ref())
                        .map_err(|c| c.at(id.span()))?;
                    let DeValue::String(s) = v.get_ref() else {
                        let text = format!(
                            "must map {id:?} to a severity, not to {}",
                            article(v.get_ref())
                        );
                        return Err(complaint(text).at(v.span()));
                    };
                    rows.push((
                        id,
                        PolicyValue::Text(severity(s).map_err(|c| c.at(v.span()))?),
                    ));
                }
                Ok(PolicyValue::Table(rows))
            }
            (Self::Servers, DeValue::Table(table)) => context::servers(table),
            (Self::Pattern, DeValue::String(s)) => context::pattern(s),
            (Self::Price, DeValue::Table(table)) => {
                let mut rows = Vec::new();
                for (name, v) in table {
                    if !["input", "cached", "output"].contains(&name.get_ref().as_ref()) {
                        return Err(complaint(format!(
                            "has the unknown entry {:?}; it must be {}",
                            name.get_ref(),
                            self.expects()
                        ))
                        .at(name.span()));
                    }
                    rows.push((
                        name.get_ref().to_string(),
                        Self::Number(0.0, 1e6).read(v).map_err(|c| c.at(v.span()))?,
                    ));
                }
                Ok(PolicyValue::Table(rows))
            }
            (
                Self::Choice(_)
                | Self::Span(..)
                | Self::Storage
                | Self::Line(_)
                | Self::Text(_)
                | Self::Program
                | Self::Variable
                | Self::Url,
                DeValue::String(s),
            ) => self.string(s),
            _ => Err(self.wrong_type(value.get_ref())),
        }
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
            _ => Err(self.wrong_text(s)),
        }
    }
}

/// The URL of a server.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Url {
    /// Without a trailing slash.
    text: String,
    /// The host is this machine.
    pub(super) loopback: bool,
}

impl Url {
    pub(super) fn parse(s: &str) -> Result<Self, Complaint> {
        let s = s.trim();
        let Some((scheme, rest)) = s.split_once("://") else {
            return Err(bad_url("has no scheme"));
        };
        if s.len() > 2048
            || s.chars()
                .any(|c| c.is_control() || c.is_whitespace() || !c.is_ascii() || c == '\\')
        {
            return Err(bad_url("has invalid characters"));
        }
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            return Err(complaint("must not contain a user or a password")
                .hinted("set api_key_env or api_key_command instead"));
        }
        if rest.contains(['?', '#']) {
            return Err(bad_url("has a query or fragment"));
        }
        let (host, port) = if let Some(inner) = authority.strip_prefix('[') {
            match inner.split_once(']') {
                Some((h, p)) if h.parse::<std::net::Ipv6Addr>().is_ok() => {
                    (h, p.strip_prefix(':').unwrap_or(p))
                }
                _ => return Err(bad_url("has an invalid host")),
            }
        } else {
            authority.split_once(':').unwrap_or((authority, ""))
        };
        if host.is_empty() || !(port.is_empty() || port.parse::<u16>().is_ok()) {
            return Err(bad_url("has an invalid host or port"));
        }
        let loopback = host.eq_ignore_ascii_case("localhost")
            || host
                .parse::<std::net::IpAddr>()
                .is_ok_and(|a| a.is_loopback());
        match scheme.to_ascii_lowercase().as_str() {
            "https" => {}
            "http" if loopback => {}
            "http" => {
                return Err(complaint(
                    "must be an https URL: plain http sends code and keys unencrypted to another machine",
                )
                .hinted("write the URL with https://"));
            }
            _ => return Err(bad_url("has an unsupported scheme")),
        }
        Ok(Self {
            text: s.trim_end_matches('/').to_owned(),
            loopback,
        })
    }
}

fn bad_url(why: &str) -> Complaint {
    ValueKind::Url.unmet(&format!("this URL {why}"))
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

/// Validates `PRINCIPALS [OPTIONS] KEYTYPE KEY [COMMENT]`, the format of ssh-keygen(1) under
/// ALLOWED SIGNERS.
fn signer(s: &str) -> Result<String, Complaint> {
    const TYPES: [&str; 3] = ["ssh-", "ecdsa-sha2-", "sk-"];
    let s = s.trim();
    if s.len() > 16 << 10 || s.starts_with('#') || s.chars().any(char::is_control) {
        return Err(bad_signer("is not a line of an allowed-signers file"));
    }
    let words: Vec<&str> = s.split_whitespace().collect();
    let Some(at) = words
        .iter()
        .skip(1)
        .position(|w| TYPES.iter().any(|t| w.starts_with(t)))
    else {
        return Err(bad_signer("has no key"));
    };
    // The decoded key starts with its own type, which must be the same.
    let name = words[at + 1];
    let key = words
        .get(at + 2)
        .and_then(|w| base64::engine::general_purpose::STANDARD.decode(w).ok());
    let length = u32::try_from(name.len()).unwrap_or(0).to_be_bytes();
    match key {
        Some(key) if key.starts_with(&length) && key[4..].starts_with(name.as_bytes()) => {
            Ok(s.to_owned())
        }
        _ => Err(bad_signer("has an invalid key")),
    }
}

fn bad_signer(why: &str) -> Complaint {
    complaint(format!("has a signer that {why}"))
        .hinted("write \"alice@example.com ssh-ed25519 AAAA…\": the signer, then the public key")
}

/// Checks a container command.
fn check_command(words: &[String]) -> Result<(), Complaint> {
    let hint = "write [\"podman\", \"run\", \"--rm\", \"--network=none\", \"--volume={tree}:{tree}\", \"--workdir={tree}\", \"IMAGE\"]";
    let why = match words.split_first() {
        None => "it is empty",
        // A relative path would name a program of the repository under review.
        Some((program, _))
            if program.contains('/') && !std::path::Path::new(program).is_absolute() =>
        {
            "the program is a relative path"
        }
        Some((_, arguments)) if !arguments.iter().any(|a| a.contains("{tree}")) => {
            "{tree} is missing"
        }
        Some(_) => return Ok(()),
    };
    Err(ValueKind::Sandbox.unmet(why).hinted(hint))
}

/// Checks a folder that a sandbox shows. A relative one is inside the repository.
fn folder(s: &str) -> Result<String, Complaint> {
    let is_free = s == "~" || s.starts_with("~/") || std::path::Path::new(s).is_absolute();
    match inside(s) {
        _ if is_free => Ok(s.to_owned()),
        Some(path) => Ok(path),
        None => Err(
            complaint(format!("has {s:?}, which is outside of the repository")).hinted(
                "write an absolute folder, a folder below ~/, or a folder of the repository",
            ),
        ),
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

/// Returns the normalized path if it is inside the repository.
fn inside(s: &str) -> Option<String> {
    let path = s.trim_start_matches("./").trim_end_matches('/');
    let plain = !path.contains(['\\', '\0']) && !path.chars().any(char::is_control);
    let drive = path.as_bytes().get(1) == Some(&b':');
    (plain && !drive && path.len() <= 1024 && !path.split('/').any(is_forbidden_part))
        .then(|| path.to_owned())
}

/// Returns true for a part of a path that leaves the repository, is redundant, or is the folder of
/// git.
fn is_forbidden_part(part: &str) -> bool {
    part.is_empty() || part == ".." || part == "." || part.eq_ignore_ascii_case(".git")
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
mod tests {
    use super::*;

    fn read(kind: ValueKind, text: &str) -> Result<String, String> {
        let value = DeValue::parse(text).unwrap();
        kind.read(&value).map(|v| v.to_toml()).map_err(|c| {
            let hint = c.hint.map(|h| format!(" ({h})")).unwrap_or_default();
            c.text + &hint
        })
    }

    #[test]
    fn severities_take_synonyms_and_come_out_worst_first() {
        let list = read(
            ValueKind::Severities,
            r#"["warning", "High", "blocker", "major"]"#,
        );
        assert_eq!(list.unwrap(), r#"["critical", "major", "minor"]"#);
        let e = read(ValueKind::Severities, r#"["majr"]"#).unwrap_err();
        assert_eq!(
            e,
            r#"has the unknown severity "majr" (did you mean "major"?)"#
        );
        let e = read(ValueKind::Severities, r#""major""#).unwrap_err();
        assert!(e.contains(r#"write it as a list: ["major"]"#), "{e}");
    }

    #[test]
    fn bounds_are_named() {
        assert_eq!(read(ValueKind::Count(1, 64), "8").unwrap(), "8");
        assert_eq!(
            read(ValueKind::Count(1, 64), "0").unwrap_err(),
            "must be a whole number from 1 to 64, not 0"
        );
        assert_eq!(
            read(ValueKind::Count(1, 64), "-3").unwrap_err(),
            "must be a whole number from 1 to 64, not -3"
        );
        assert!(read(ValueKind::Count(1, 64), "9223372036854775807").is_err());
        assert!(read(ValueKind::Count(1, 64), "99999999999999999999999").is_err());
        assert_eq!(
            read(ValueKind::Count(1, 64), "4.0").unwrap_err(),
            "must be a whole number from 1 to 64, not a decimal number"
        );
        for bad in ["nan", "inf", "-0.5", "1e999", "true"] {
            assert!(read(ValueKind::Number(0.0, 10.0), bad).is_err(), "{bad}");
        }
        assert_eq!(read(ValueKind::Number(0.0, 10.0), "1").unwrap(), "1.0");
        assert_eq!(
            read(ValueKind::Span(1, 3600), r#""1m30s""#).unwrap(),
            r#""1m30s""#
        );
        assert!(
            read(ValueKind::Span(1, 3600), "90")
                .unwrap_err()
                .contains(r#"add a unit: "90s""#)
        );
        assert!(read(ValueKind::Span(1, 3600), r#""2h""#).is_err());
    }

    #[test]
    fn paths_stay_inside_the_repository() {
        for bad in [
            "../x",
            "a/../../x",
            "/etc",
            ".git/hooks",
            "a/.GIT/x",
            "",
            "a//b",
            "a\\\\b",
            "c:/x",
            "\\u0000",
        ] {
            assert!(
                read(ValueKind::Files, &format!("[\"{bad}\"]")).is_err(),
                "{bad}"
            );
        }
        assert_eq!(
            read(ValueKind::Files, r#"["./docs/a.md", "rules/"]"#).unwrap(),
            r#"["docs/a.md", "rules"]"#
        );
    }

    #[test]
    fn programs_are_names_or_absolute_paths() {
        for (good, text) in [
            (true, "claude"),
            (true, "/opt/claude"),
            (false, "./claude"),
            (false, "tools/claude"),
            (false, " "),
        ] {
            assert_eq!(
                read(ValueKind::Program, &format!("{text:?}")).is_ok(),
                good,
                "{text}"
            );
        }
    }

    #[test]
    fn a_container_command_names_a_program_and_the_folder() {
        let command = r#"["podman", "run", "-v", "{tree}:/a", "-v", "x:/b", "image"]"#;
        assert_eq!(
            read(ValueKind::Sandbox, command).unwrap(),
            command,
            "repeated words stay"
        );
        assert!(read(ValueKind::Sandbox, r#"["/usr/bin/docker", "{tree}"]"#).is_ok());
        for bad in [
            "[]",
            r#"["podman", "run"]"#,
            r#"["./podman", "{tree}"]"#,
            r#"["podman", "{tree}", ""]"#,
            r#""podman""#,
        ] {
            assert!(read(ValueKind::Sandbox, bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn folders_of_a_sandbox_are_absolute_of_the_home_or_of_the_repository() {
        let folders = r#"["node_modules", "~/.cargo", "/opt/tools"]"#;
        assert_eq!(read(ValueKind::Folders, folders).unwrap(), folders);
        for bad in ["../other", "a/../../b", ".git", "a\\u0000b", ""] {
            assert!(
                read(ValueKind::Folders, &format!("[\"{bad}\"]")).is_err(),
                "{bad}"
            );
        }
    }

    #[test]
    fn addresses_are_https_or_of_this_machine_and_hold_no_password() {
        for (text, loopback) in [
            ("https://api.example.com/v1/", false),
            ("http://127.0.0.1:11434/v1", true),
            ("http://127.9.9.9", true),
            ("http://[::1]:80/", true),
            ("http://LOCALHOST:1", true),
            ("https://localhost.example.com", false),
            ("https://127.0.0.1.example.com", false),
        ] {
            assert_eq!(Url::parse(text).map(|u| u.loopback), Ok(loopback), "{text}");
        }
        for bad in [
            "api.example.com",
            "ftp://example.com",
            "http://example.com",
            "http://10.0.0.1",
            "http://127.0.0.1.evil.example",
            "http://localhost@evil.example",
            "http://evil.example\\@localhost",
            "http://localhost:80@evil.example/",
            "https://",
            "https://h:99999",
            "https://a b",
            "https://h/?key=1",
            "http://[::1",
        ] {
            assert!(Url::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_key_in_place_of_its_variables_name_is_not_repeated() {
        let e = read(ValueKind::Variable, r#""not-a-name-but-a-key""#).unwrap_err();
        assert!(!e.contains("not-a-name-but-a-key"), "{e}");
        assert!(e.contains("not the key"), "{e}");
    }
}
