//! Values of policy keys, with their text form in files, variables and flags.

use crate::finding::{Category, Confidence, Severity};
use crate::untrusted::is_active;
use std::time::Duration;

/// A validated value of the policy. Names are canonical.
#[derive(Clone, Debug, PartialEq)]
pub enum PolicyValue {
    /// An optional key that is not set.
    Unset,
    Flag(bool),
    Count(u32),
    Number(f64),
    Span(Duration),
    Text(String),
    List(Vec<String>),
    Table(Vec<(String, PolicyValue)>),
}

impl PolicyValue {
    pub(super) fn names(names: impl IntoIterator<Item = &'static str>) -> Self {
        Self::List(names.into_iter().map(str::to_owned).collect())
    }
    pub(super) fn optional(text: Option<&String>) -> Self {
        text.map_or(Self::Unset, |t| Self::Text(t.clone()))
    }
    /// Creates a list. An empty one is unset, so that the hash of a policy without the key does not
    /// change.
    pub(super) fn list_or_unset(list: &[String]) -> Self {
        if list.is_empty() {
            Self::Unset
        } else {
            Self::List(list.to_vec())
        }
    }
    pub(super) fn severities(list: &[Severity]) -> Self {
        Self::names(list.iter().map(|s| s.name()))
    }

    // `ValueKind::read` has validated the type. These functions return an empty value for any other
    // type.

    pub(super) fn flag(&self) -> bool {
        matches!(self, Self::Flag(true))
    }
    pub(super) fn count(&self) -> u32 {
        if let Self::Count(n) = self { *n } else { 0 }
    }
    pub(super) fn number(&self) -> f64 {
        if let Self::Number(n) = self { *n } else { 0.0 }
    }
    pub(super) fn span(&self) -> Duration {
        if let Self::Span(d) = self {
            *d
        } else {
            Duration::ZERO
        }
    }
    pub(super) fn text(&self) -> &str {
        if let Self::Text(t) = self { t } else { "" }
    }
    pub(super) fn to_optional(&self) -> Option<String> {
        if let Self::Text(t) = self {
            Some(t.clone())
        } else {
            None
        }
    }
    pub(super) fn list(&self) -> &[String] {
        if let Self::List(l) = self { l } else { &[] }
    }
    pub(super) fn table(&self) -> &[(String, PolicyValue)] {
        if let Self::Table(t) = self { t } else { &[] }
    }
    /// Returns the value of a row of a table.
    pub(super) fn row(&self, key: &str) -> Option<&Self> {
        self.table()
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value)
    }
    pub(super) fn to_severities(&self) -> Vec<Severity> {
        self.list()
            .iter()
            .filter_map(|s| Severity::parse(s))
            .collect()
    }
    pub(super) fn to_categories(&self) -> Vec<Category> {
        self.list()
            .iter()
            .filter_map(|s| Category::parse(s))
            .collect()
    }
    pub(super) fn to_confidence(&self) -> Confidence {
        Confidence::parse(self.text()).unwrap_or(Confidence::Medium)
    }

    /// Returns the value as TOML on one line; an empty string for an unset value.
    pub fn to_toml(&self) -> String {
        match self {
            Self::Unset => String::new(),
            Self::Flag(b) => b.to_string(),
            Self::Count(n) => n.to_string(),
            Self::Number(n) => format!("{n:?}"),
            Self::Span(d) => quote(&show_duration(*d)),
            Self::Text(t) => quote(t),
            Self::List(l) => format!(
                "[{}]",
                l.iter().map(|s| quote(s)).collect::<Vec<_>>().join(", ")
            ),
            Self::Table(t) if t.is_empty() => "{}".to_owned(),
            Self::Table(t) => {
                let inner: Vec<_> = t
                    .iter()
                    .map(|(k, v)| format!("{} = {}", bare_or_quoted(k), v.to_toml()))
                    .collect();
                format!("{{ {} }}", inner.join(", "))
            }
        }
    }

    /// Returns the value as JSON; null for an unset value.
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value as Json;
        match self {
            Self::Unset => Json::Null,
            Self::Flag(b) => Json::from(*b),
            Self::Count(n) => Json::from(*n),
            Self::Number(n) => Json::from(*n),
            Self::Span(d) => Json::from(show_duration(*d)),
            Self::Text(t) => Json::from(t.as_str()),
            Self::List(l) => Json::from(l.clone()),
            Self::Table(t) => {
                Json::Object(t.iter().map(|(k, v)| (k.clone(), v.to_json())).collect())
            }
        }
    }
}

/// Returns a TOML basic string without terminal control characters.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() || is_active(c) => out.push_str(&format!("\\U{:08X}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Returns a TOML key, quoted if necessary.
pub(super) fn bare_or_quoted(key: &str) -> String {
    let bare = !key.is_empty()
        && key
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    if bare { key.to_owned() } else { quote(key) }
}

/// Parses a duration: one or more numbers with a unit, largest first (`90s`, `2m`, `1h30m`,
/// `500ms`).
pub fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let (mut total, mut last) = (Duration::ZERO, u64::MAX);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let n: u64 = rest[..digits].parse().ok()?;
        rest = rest[digits..].trim_start();
        let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let unit = match &rest[..letters] {
            "ms" => 1,
            "s" | "sec" => 1_000,
            "m" | "min" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return None,
        };
        if unit >= last {
            return None;
        }
        last = unit;
        total = total.checked_add(Duration::from_millis(n.checked_mul(unit)?))?;
        rest = rest[letters..].trim_start();
    }
    Some(total)
}

/// Returns a duration in the format of [`parse_duration`].
pub fn show_duration(d: Duration) -> String {
    let mut left = d.as_millis();
    let mut text = String::new();
    for (unit, size) in [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)] {
        if left >= size {
            text.push_str(&format!("{}{unit}", left / size));
            left %= size;
        }
    }
    if text.is_empty() {
        "0s".to_owned()
    } else {
        text
    }
}

/// Returns the candidate that is closest to a typed name. It differs only in case, `-` and `_`, or
/// a few letters.
pub(crate) fn closest<'a>(
    typed: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let typed = fold_name(typed);
    if typed.is_empty() || typed.len() > 64 {
        return None;
    }
    candidates
        .into_iter()
        .map(|c| {
            let folded = fold_name(c);
            // A prefix counts like one wrong letter.
            let begun = typed.len() >= 3 && folded.starts_with(&typed);
            (
                if begun {
                    1
                } else {
                    strsim::damerau_levenshtein(&typed, &folded)
                },
                c,
            )
        })
        .filter(|(distance, c)| *distance <= (c.len().max(typed.len()) / 3).clamp(1, 3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, c)| c)
}

/// Returns a name in lower case with `_` in place of `-`.
fn fold_name(name: &str) -> String {
    name.to_ascii_lowercase().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_written_alike() {
        for (text, ms) in [
            ("2m", 120_000),
            ("90s", 90_000),
            ("1h30m", 5_400_000),
            ("500ms", 500),
            ("1m 5s", 65_000),
        ] {
            assert_eq!(
                parse_duration(text),
                Some(Duration::from_millis(ms)),
                "{text}"
            );
            assert_eq!(
                parse_duration(&show_duration(Duration::from_millis(ms))),
                Some(Duration::from_millis(ms))
            );
        }
        for text in [
            "",
            "2",
            "m",
            "2 fortnights",
            "30s1h",
            "1s1s",
            "-1s",
            "1.5h",
            "99999999999999999999s",
            "2µs",
        ] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }

    #[test]
    fn suggestions_are_near_misses_only() {
        let keys = ["block_on", "warn_on", "on_incomplete", "ignore"];
        for (typed, meant) in [
            ("block-on", Some("block_on")),
            ("Block_On", Some("block_on")),
            ("blockon", Some("block_on")),
            ("wran_on", Some("warn_on")),
            ("ignored", Some("ignore")),
            ("block", Some("block_on")),
            ("on", None),
            ("colour", None),
            ("x", None),
        ] {
            assert_eq!(closest(typed, keys), meant, "{typed}");
        }
    }

    #[test]
    fn written_strings_are_read_back_and_hide_nothing() {
        for text in [
            "plain",
            "a\"b\\c\nd\te\r",
            "\u{1b}[31m\u{7f}\u{85}",
            "\u{202e}abc\u{e0041}",
            "日本",
        ] {
            let written = quote(text);
            assert!(
                !written.chars().any(|c| c.is_control() || is_active(c)),
                "{written:?}"
            );
            let back = toml::de::DeValue::parse(&written).unwrap();
            assert_eq!(back.get_ref().as_str(), Some(text));
        }
    }
}
