//! Parses rule files and collects every problem, so that an author fixes a file in one pass.

use crate::error::Error;
use crate::policy::value::closest;
use crate::rules::format::{self, RuleFault};
use crate::rules::structural::is_structural;
use serde::Deserialize as _;
use std::fmt;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

/// Problems that an error lists, at most.
const LISTED: usize = 50;

/// A key of a rule or of a sample.
struct RuleKey {
    name: &'static str,
    is_required: bool,
}

const fn required(name: &'static str) -> RuleKey {
    RuleKey {
        name,
        is_required: true,
    }
}

const fn optional(name: &'static str) -> RuleKey {
    RuleKey {
        name,
        is_required: false,
    }
}

/// Keys of a `[[rule]]`: the fields of [`format::Rule`].
const RULE: &[RuleKey] = &[
    required("id"),
    required("title"),
    required("category"),
    required("severity"),
    optional("confidence"),
    optional("languages"),
    optional("paths"),
    optional("not_paths"),
    optional("weak_paths"),
    optional("in_tests"),
    optional("in_bundles"),
    optional("place"),
    required("literals"),
    required("pattern"),
    optional("matcher"),
    optional("tree"),
    optional("profile"),
    optional("audit_severity"),
    optional("not_pattern"),
    optional("harmless"),
    optional("guarded_by"),
    optional("weak_if"),
    optional("file_has"),
    optional("file_lacks"),
    optional("near_has"),
    optional("near_lacks"),
    optional("line_has"),
    optional("checks"),
    optional("secret"),
    optional("decoded"),
    optional("judges_origin"),
    required("message"),
    optional("why"),
    optional("suggestion"),
    optional("fix"),
    optional("cwe"),
    optional("references"),
    optional("bad"),
    optional("good"),
    optional("sample"),
];

/// Keys of a `[[rule.sample]]`: the fields of [`format::Sample`].
const SAMPLE: &[RuleKey] = &[
    required("matches"),
    optional("path"),
    required("text"),
    optional("fixed"),
    optional("also"),
];

/// Keys of a `[[rule.fix]]`: the fields of [`format::Fix`].
const FIX: &[RuleKey] = &[required("find"), required("replace")];

/// One problem of a rule file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::rules) struct FileProblem {
    file: String,
    line: u32,
    /// The rule that has it.
    rule: Option<String>,
    text: String,
}

impl fmt::Display for FileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.file, self.line)?;
        if let Some(rule) = &self.rule {
            write!(f, "rule {rule:?}: ")?;
        }
        f.write_str(&self.text)
    }
}

impl FileProblem {
    pub(in crate::rules) fn new(file: &str, line: u32, rule: Option<&str>, text: String) -> Self {
        Self {
            file: file.to_owned(),
            line,
            rule: rule.map(str::to_owned),
            text,
        }
    }

    /// Returns true if the problem is one of the rule of that ID, or of a rule without a known ID.
    pub(in crate::rules) fn may_be_about(&self, id: &str) -> bool {
        self.rule.as_deref().is_none_or(|rule| rule == id)
    }

    pub(in crate::rules) fn line(&self) -> u32 {
        self.line
    }

    /// Returns one usage error that lists all problems in the given order.
    pub(in crate::rules) fn error(problems: &[Self]) -> Error {
        let error = match problems {
            [one] => Error::usage(one.to_string()),
            _ => Error::usage(format!("{} problems in rule files", problems.len())),
        };
        let is_structural = problems.first().is_some_and(|p| is_structural(&p.file));
        let example = match is_structural {
            true => "see a complete rule: claude-reviewer rules new ID --structural",
            false => {
                "see a complete rule: claude-reviewer rules explain python-flask-debug --format toml"
            }
        };
        let mut error = error
            .hint_person(example)
            .hint_agent("tell the user that the rule files need to be fixed");
        if problems.len() > 1 {
            error
                .causes
                .extend(problems.iter().take(LISTED).map(Self::to_string));
            let left = problems.len().saturating_sub(LISTED);
            error
                .causes
                .extend((left > 0).then(|| format!("{left} more")));
        }
        error
    }
}

/// A rule with its place in a file.
#[derive(Clone, Debug)]
pub(in crate::rules) struct Written {
    pub(in crate::rules) file: String,
    /// Line of its `[[rule]]`.
    pub(in crate::rules) line: u32,
    /// The lines of its keys.
    lines: Vec<(String, u32)>,
    pub(in crate::rules) rule: format::Rule,
}

impl Written {
    /// `lines`: the lines of its keys.
    pub(in crate::rules) fn new(
        file: &str,
        line: u32,
        lines: Vec<(String, u32)>,
        rule: format::Rule,
    ) -> Self {
        Self {
            file: file.to_owned(),
            line,
            lines,
            rule,
        }
    }

    /// Places a fault of the rule on the line of its key.
    pub(in crate::rules) fn problem(&self, fault: &RuleFault) -> FileProblem {
        let of_key = self
            .lines
            .iter()
            .find(|(key, _)| key == fault.key)
            .map(|(_, line)| *line);
        FileProblem {
            file: self.file.clone(),
            line: of_key.unwrap_or(self.line),
            rule: Some(self.rule.id.clone()),
            text: fault.to_string(),
        }
    }
}

/// Parses a rule file. Returns the rules that have all required keys and no unknown ones; for the
/// others, a problem for each key.
pub(in crate::rules) fn parse(name: &str, content: &str) -> (Vec<Written>, Vec<FileProblem>) {
    // An editor may put a byte order mark first. Spaces of its length keep the offsets right.
    let blanked;
    let content = match content.strip_prefix('\u{feff}') {
        Some(rest) => {
            blanked = format!("   {rest}");
            &blanked
        }
        None => content,
    };
    let mut reader = RuleReader {
        name,
        content,
        rules: Vec::new(),
        problems: Vec::new(),
    };
    match DeTable::parse(content) {
        Ok(document) => reader.document(document.get_ref()),
        Err(e) => {
            let at = e.span().map_or(content.len(), |s| s.start);
            reader.problem(at, None, format!("invalid TOML: {}", e.message()));
        }
    }
    reader.problems.sort_by_key(|p| p.line);
    (reader.rules, reader.problems)
}

struct RuleReader<'a> {
    name: &'a str,
    content: &'a str,
    rules: Vec<Written>,
    problems: Vec<FileProblem>,
}

impl RuleReader<'_> {
    fn document(&mut self, document: &DeTable<'_>) {
        for (key, value) in document {
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("rule", DeValue::Array(rules)) => rules.iter().for_each(|r| self.rule(r)),
                ("rule", other) => {
                    let text = format!("`rule` is {}, expected a list: [[rule]]", kind(other));
                    self.problem(value.span().start, None, text);
                }
                (other, _) => {
                    let text = format!("unknown key `{other}`: a rule starts with [[rule]]");
                    self.problem(key.span().start, None, text);
                }
            }
        }
    }

    fn rule(&mut self, value: &Spanned<DeValue<'_>>) {
        let at = value.span().start;
        let DeValue::Table(table) = value.get_ref() else {
            return self.problem(
                at,
                None,
                format!("a rule is {}, expected a table", kind(value.get_ref())),
            );
        };
        let before = self.problems.len();
        let id = table
            .get("id")
            .and_then(|v| v.get_ref().as_str())
            .map(str::to_owned);
        self.keys(table, at, (RULE, id.as_deref(), ""));
        for (name, known, of) in [("fix", FIX, "fix: "), ("sample", SAMPLE, "sample: ")] {
            let Some(DeValue::Array(items)) = table.get(name).map(Spanned::get_ref) else {
                continue;
            };
            for item in items.iter() {
                if let DeValue::Table(keys) = item.get_ref() {
                    self.keys(keys, item.span().start, (known, id.as_deref(), of));
                }
            }
        }
        if self.problems.len() > before {
            return;
        }
        match format::Rule::deserialize(ValueDeserializer::from(value.clone())) {
            Ok(rule) => {
                let lines = table
                    .keys()
                    .map(|k| (k.get_ref().to_string(), self.line(k.span().start)))
                    .collect();
                self.rules.push(Written {
                    file: self.name.to_owned(),
                    line: self.line(at),
                    lines,
                    rule,
                });
            }
            Err(e) => self.problem(
                e.span().map_or(at, |s| s.start),
                id.as_deref(),
                e.message().to_owned(),
            ),
        }
    }

    /// Reports each unknown key of a table, and each required key that it lacks.
    fn keys(
        &mut self,
        table: &DeTable<'_>,
        at: usize,
        (known, rule, of): (&[RuleKey], Option<&str>, &str),
    ) {
        for key in table.keys() {
            let name = key.get_ref();
            if !known.iter().any(|k| k.name == name) {
                let near = closest(name, known.iter().map(|k| k.name));
                let near = near.map_or(String::new(), |n| format!(", did you mean `{n}`?"));
                self.problem(
                    key.span().start,
                    rule,
                    format!("{of}unknown key `{name}`{near}"),
                );
            }
        }
        // A built-in rule with a matcher has neither; a team rule with one is rejected for that key
        // alone.
        let is_code = table.contains_key("matcher");
        for key in known
            .iter()
            .filter(|k| k.is_required && !table.contains_key(k.name))
        {
            if !(is_code && matches!(key.name, "literals" | "pattern")) {
                self.problem(at, rule, format!("{of}missing key `{}`", key.name));
            }
        }
    }

    fn problem(&mut self, at: usize, rule: Option<&str>, text: String) {
        let (file, rule) = (self.name.to_owned(), rule.map(str::to_owned));
        self.problems.push(FileProblem {
            file,
            line: self.line(at),
            rule,
            text,
        });
    }

    /// Returns the 1-based line of a byte offset.
    fn line(&self, at: usize) -> u32 {
        let before = &self.content.as_bytes()[..at.min(self.content.len())];
        u32::try_from(memchr::memchr_iter(b'\n', before).count())
            .unwrap_or(u32::MAX)
            .saturating_add(1)
    }
}

/// Returns the type of a value with its article.
fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "[[rule]]\nid = 'no-sleep'\ntitle = 't'\ncategory = 'bug'\nseverity = 'minor'\n\
        literals = ['sleep']\npattern = 'sleep'\nmessage = 'm'\n[[rule.sample]]\nmatches = true\ntext = 'sleep'\n";

    #[derive(Debug, serde::Deserialize)]
    struct WrittenRules {
        #[expect(dead_code, reason = "only its errors are read")]
        rule: Vec<format::Rule>,
    }

    fn problems(content: &str) -> Vec<String> {
        parse("a.toml", content)
            .1
            .iter()
            .map(FileProblem::to_string)
            .collect()
    }

    #[test]
    fn the_lists_of_keys_are_the_fields_of_a_rule_and_of_a_sample() {
        assert_eq!(problems(WHOLE), [""; 0]);
        for (from, to, keys) in [("title", "titel", RULE), ("matches", "matchez", SAMPLE)] {
            let wrong = WHOLE.replacen(from, to, 1);
            let error = toml::from_str::<WrittenRules>(&wrong).unwrap_err();
            let names: Vec<_> = keys.iter().map(|k| format!("`{}`", k.name)).collect();
            let expected = format!("unknown field `{to}`, expected one of {}", names.join(", "));
            assert_eq!(
                error.message(),
                expected,
                "the list of keys here differs from the fields"
            );
        }
        for key in RULE.iter().chain(SAMPLE).filter(|k| k.is_required) {
            let line = WHOLE
                .lines()
                .find(|l| l.starts_with(&format!("{} =", key.name)))
                .unwrap();
            let found = problems(&WHOLE.replacen(&format!("{line}\n"), "", 1));
            let missing = format!("missing key `{}`", key.name);
            assert!(
                found.len() == 1 && found[0].ends_with(&missing),
                "{found:?}"
            );
        }
    }

    #[test]
    fn every_problem_of_every_rule_has_its_line() {
        let second = "[[rule]]\ntitle = 5\nplaec = 'code'\n[[rule.sample]]\nmatch = true\n";
        let text = format!(
            "\u{feff}rules = 1\n{}{second}",
            WHOLE
                .replace("severity = 'minor'\n", "")
                .replace("'m'", "3")
        );
        assert_eq!(
            problems(&text),
            [
                "a.toml:1: unknown key `rules`: a rule starts with [[rule]]",
                "a.toml:2: rule \"no-sleep\": missing key `severity`",
                "a.toml:12: missing key `id`",
                "a.toml:12: missing key `category`",
                "a.toml:12: missing key `severity`",
                "a.toml:12: missing key `literals`",
                "a.toml:12: missing key `pattern`",
                "a.toml:12: missing key `message`",
                "a.toml:14: unknown key `plaec`, did you mean `place`?",
                "a.toml:15: sample: missing key `matches`",
                "a.toml:15: sample: missing key `text`",
                "a.toml:16: sample: unknown key `match`, did you mean `matches`?",
            ]
        );
    }

    #[test]
    fn a_value_of_a_wrong_type_has_its_line() {
        assert_eq!(
            problems(&WHOLE.replace("'bug'", "1")),
            ["a.toml:4: rule \"no-sleep\": invalid type: integer `1`, expected a string"]
        );
        assert_eq!(
            problems("rule = 1"),
            ["a.toml:1: `rule` is a number, expected a list: [[rule]]"]
        );
        let found = problems("[[rule]]\nid = 'a\n");
        assert!(
            found.len() == 1 && found[0].starts_with("a.toml:2: invalid TOML: "),
            "{found:?}"
        );
    }
}
