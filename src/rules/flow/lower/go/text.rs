//! Reads the text of Go: paths of packages, operators, formats, literals.

use super::super::super::shape::Op;
use super::super::unescape;
use std::ops::Range;

/// Returns the path of a package without major versions: `github.com/go-ldap/ldap/v3` is
/// `github.com/go-ldap/ldap`.
pub(super) fn module_path(path: &str) -> String {
    let is_version = |w: &str| {
        w.strip_prefix('v')
            .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    let mut out: Vec<&str> = Vec::new();
    for word in path.split('/').filter(|w| !is_version(w)) {
        // gopkg.in/yaml.v3
        let word = word
            .rsplit_once('.')
            .filter(|(_, v)| is_version(v))
            .map_or(word, |(name, _)| name);
        out.push(word);
    }
    out.join("/")
}

/// Returns the names that a package with this path probably has.
pub(super) fn package_names(path: &str) -> Vec<String> {
    let last = path.rsplit('/').next().unwrap_or(path);
    let plain = last.strip_prefix("go-").unwrap_or(last);
    let plain = plain
        .strip_suffix("-go")
        .or_else(|| plain.strip_suffix(".go"))
        .unwrap_or(plain);
    let mut out = vec![plain.replace('-', "")];
    if let Some((_, end)) = plain.rsplit_once('-') {
        out.push(end.to_owned());
    }
    out
}

/// Returns true for the name of a last result that carries no data: `err`, `ok`.
pub(super) fn is_flag(name: &str) -> bool {
    name.starts_with("err")
        || name.ends_with("Err")
        || matches!(
            name,
            "ok" | "exists" | "found" | "has" | "e" | "present" | "valid"
        )
}

/// Returns the operator of a binary expression.
pub(super) fn operator(text: &str) -> Op {
    match text {
        "+" => Op::Add,
        "-" => Op::Sub,
        "*" => Op::Mul,
        "/" => Op::Div,
        "%" => Op::Rem,
        "&&" => Op::And,
        "||" => Op::Or,
        "==" => Op::Equal,
        "!=" => Op::NotEqual,
        "<" => Op::Less,
        "<=" => Op::LessEqual,
        ">" => Op::Greater,
        ">=" => Op::GreaterEqual,
        _ => Op::Bits,
    }
}

/// Returns the operator of `+=` and others. None: a plain assignment.
pub(super) fn operator_of_assignment(text: &str) -> Option<Op> {
    match text.strip_suffix('=')? {
        "" | ":" => None,
        op => Some(operator(op)),
    }
}

/// Returns the text of a literal in quotes.
pub(super) fn literal(text: &str) -> String {
    match text.as_bytes() {
        [b'`', .., b'`'] => text.trim_matches('`').to_owned(),
        [b'"', .., b'"'] => unescape(text.get(1..text.len() - 1).unwrap_or_default()),
        [b'\'', .., b'\''] if text.len() > 2 => {
            unescape(text.get(1..text.len() - 1).unwrap_or_default())
        }
        _ => text.to_owned(),
    }
}

/// Returns the verbs of a format in order, with their bytes. None: the format refers to arguments
/// by number, or takes a width from an argument.
pub(super) fn verbs(format: &str) -> Option<Vec<(Range<usize>, char)>> {
    let mut out = Vec::new();
    let mut chars = format.char_indices();
    while let Some((start, c)) = chars.next() {
        if c != '%' {
            continue;
        }
        loop {
            let (at, c) = chars.next()?;
            match c {
                '%' => break,
                '*' | '[' => return None,
                c if c.is_ascii_alphabetic() => {
                    out.push((start..at + c.len_utf8(), c));
                    break;
                }
                _ => {}
            }
        }
    }
    Some(out)
}

/// Returns the constant part of a format as it is written.
pub(super) fn percent(text: &str) -> String {
    text.replace("%%", "%")
}

/// Returns the index of the format in the arguments of a function that formats.
pub(super) fn format_argument(callee: &str) -> Option<usize> {
    if callee == "fmt.Fprintf" {
        return Some(1);
    }
    // Loggers have the same names for their methods, under any name of the logger.
    let name = callee
        .rsplit('.')
        .next()
        .filter(|name| name.len() < callee.len())?;
    const FORMATS: &[&str] = &[
        "Printf", "Tracef", "Debugf", "Infof", "Noticef", "Warnf", "Warningf", "Errorf", "Fatalf",
        "Panicf",
    ];
    FORMATS.contains(&name).then_some(0)
}

/// Returns true if a text sets a content type such as `application/json`, and does not name
/// `text/html`.
pub(super) fn is_plain_response(text: &str) -> bool {
    let names = [
        "\"Content-Type\"",
        "\"content-type\"",
        "\"Content-type\"",
        "HeaderContentType",
        "HeaderContentDisposition",
        "\"Content-Disposition\"",
    ];
    names.iter().any(|n| text.contains(n))
        && !text.contains("text/html")
        && !text.contains("TextHTML")
}
