//! Validates the values of `[context]`: servers, projects, and the pattern of keys.

use super::{Complaint, ReadValue, ValueKind, article, complaint, is_name_byte};
use crate::policy::context::is_read_only;
use crate::policy::value::{PolicyValue, closest};
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// Servers, at most.
const MAX_SERVERS: usize = 16;
/// The keys of a server, and the kind of each.
pub(in crate::policy) const KEYS: [(&str, ValueKind); 7] = [
    ("command", ValueKind::Words),
    ("env", ValueKind::Variables),
    ("url", ValueKind::Url),
    ("token_env", ValueKind::Variable),
    ("tool", ValueKind::Line(128)),
    ("argument", ValueKind::Line(128)),
    ("reads", ValueKind::Choice(&["tickets", "pages"])),
];

/// Validates `[context.servers]`.
pub(super) fn servers(table: &DeTable<'_>) -> ReadValue {
    if table.len() > MAX_SERVERS {
        return Err(complaint(format!(
            "has {} entries; the limit is {MAX_SERVERS}",
            table.len()
        )));
    }
    let mut rows = Vec::new();
    for (name, value) in table {
        let typed = name.get_ref();
        if typed.is_empty() || typed.len() > 64 || !typed.bytes().all(is_name_byte) {
            let text = format!(
                "has {typed:?}, which is not a server name (lowercase letters, digits, - and _)"
            );
            return Err(complaint(text).at(name.span()));
        }
        let DeValue::Table(keys) = value.get_ref() else {
            return Err(complaint(format!(
                "must have a table {typed:?}, not {}",
                article(value.get_ref())
            ))
            .hinted(format!("write [context.servers.{typed}]"))
            .at(name.span()));
        };
        let row = server(typed, keys).map_err(|c| c.at(name.span()))?;
        rows.push((typed.to_string(), row));
    }
    Ok(PolicyValue::Table(rows))
}

fn server(server: &str, table: &DeTable<'_>) -> ReadValue {
    let mut rows: Vec<(String, PolicyValue)> = Vec::new();
    for (name, value) in table {
        let typed = name.get_ref().as_ref();
        let Some((_, kind)) = KEYS.iter().find(|(known, _)| *known == typed) else {
            let unknown = complaint(format!("has the unknown key {typed:?} in {server:?}"));
            let known = KEYS.map(|(known, _)| known);
            let hint = match closest(typed, known) {
                _ if ["token", "key", "password", "headers"].contains(&typed) => {
                    "write the name of a variable that contains it: token_env, or env".to_owned()
                }
                Some(meant) => super::did_you_mean(meant),
                None => format!("valid keys here: {}", known.join(", ")),
            };
            return Err(unknown.hinted(hint).at(name.span()));
        };
        let value = kind
            .read(value)
            .map_err(|c| named(c, &format!("{server}.{typed}")).at(value.span()))?;
        rows.push((typed.to_owned(), value));
    }
    check(server, &rows)?;
    Ok(PolicyValue::Table(rows))
}

/// Checks that the keys of a server are consistent.
fn check(server: &str, rows: &[(String, PolicyValue)]) -> Result<(), Complaint> {
    let (why, hint) = match (has(rows, "command"), has(rows, "url")) {
        (true, true) => ("has a command and a url", "set only one of them"),
        (false, false) => (
            "has neither a command nor a url",
            "write command = [\"PROGRAM\"]",
        ),
        (false, true) if has(rows, "env") => {
            ("has a url and env", "env is for command; set token_env")
        }
        (true, false) if has(rows, "token_env") => {
            ("has a command and token_env", "add the name to env")
        }
        _ if has(rows, "tool") != has(rows, "argument") => (
            "has a tool without argument, or the reverse",
            "set both: tool = \"get_ticket\", argument = \"key\"",
        ),
        _ if has(rows, "reads") && !has(rows, "tool") => (
            "has reads without tool",
            "set tool and argument, or remove reads",
        ),
        _ => return check_tool(server, rows),
    };
    Err(complaint(format!("has {server:?}, which {why}")).hinted(hint))
}

/// Checks that the tool of a server only reads.
fn check_tool(server: &str, rows: &[(String, PolicyValue)]) -> Result<(), Complaint> {
    match rows
        .iter()
        .find(|(key, _)| key == "tool")
        .map(|(_, value)| value.text())
    {
        Some(tool) if !is_read_only(tool) => {
            let why =
                format!("names the tool {tool:?}, whose name does not say that it only reads");
            Err(complaint(format!("has {server:?}, which {why}"))
                .hinted("name a tool such as get_ticket or read-page"))
        }
        _ => Ok(()),
    }
}

/// Returns true if the table of a server has a key.
fn has(rows: &[(String, PolicyValue)], key: &str) -> bool {
    rows.iter().any(|(name, _)| name == key)
}

/// Adds the name of the key to a complaint.
fn named(complaint: Complaint, key: &str) -> Complaint {
    Complaint {
        text: format!("has {key:?}, which {}", complaint.text),
        ..complaint
    }
}

/// Validates a program and its arguments.
pub(super) fn command(words: &[String]) -> Result<(), Complaint> {
    match words.first() {
        None => Err(ValueKind::Words.unmet("it is empty")),
        // A relative path would name a program of the repository under review.
        Some(program) if program.contains('/') && !Path::new(program).is_absolute() => {
            Err(ValueKind::Words.unmet("the program is a relative path"))
        }
        Some(_) => Ok(()),
    }
}

/// Validates the name of a project: `PROJ`, or `group/project` of a forge.
pub(super) fn project(s: &str) -> Result<String, Complaint> {
    let is_key = (1..=64).contains(&s.len())
        && s.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && s.bytes().next().is_some_and(|b| b.is_ascii_alphabetic());
    let is_path = s.contains('/') && s.len() <= 512 && s.split('/').all(is_part_of_path);
    if is_key || is_path {
        return Ok(s.to_owned());
    }
    Err(complaint(format!("has {s:?}, which is not a project"))
        .hinted("write the key of a ticket project (\"PROJ\"), or the path of a project of the forge (\"owner/name\")"))
}

/// Returns true for a part of the path of a forge's project.
fn is_part_of_path(part: &str) -> bool {
    let mut bytes = part.bytes();
    !part.is_empty()
        && !part.starts_with('.')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b"-_.~".contains(&b))
}

/// Validates a regular expression of ticket keys.
pub(super) fn pattern(s: &str) -> ReadValue {
    const MAX: usize = 512;
    if s.is_empty() || s.len() > MAX {
        return Err(complaint(format!(
            "must be {}",
            ValueKind::Pattern.expects()
        )));
    }
    match compiled(s) {
        Ok(regex) if regex.is_match("") => {
            Err(complaint("matches an empty text")
                .hinted("write a pattern such as \"PROJ-[0-9]+\""))
        }
        Ok(_) => Ok(PolicyValue::Text(s.to_owned())),
        Err(e) => Err(complaint(format!("is not a regular expression: {e}"))),
    }
}

fn compiled(pattern: &str) -> Result<regex::Regex, String> {
    let built = regex::RegexBuilder::new(pattern)
        .size_limit(1 << 20)
        .build();
    built.map_err(|e| {
        e.to_string()
            .lines()
            .last()
            .unwrap_or_default()
            .trim()
            .to_owned()
    })
}

/// Returns true if a command or an environment variable can contain the text.
pub(super) fn is_plain(s: &str) -> bool {
    !s.is_empty() && s.len() <= 4096 && !s.chars().any(char::is_control)
}
