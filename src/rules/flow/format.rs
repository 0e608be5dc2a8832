//! File format of the knowledge in `src/rules/knowledge/*.toml`, its checks, and how it becomes static tables.
//!
//! Only the build script includes this file. Nothing here may use the rest of the crate.

#[path = "format/texts.rs"]
mod texts;

use serde::Deserialize;
use std::fmt::Write as _;
use texts::Texts;

/// Kinds of flows, in the order of `Kind`.
pub(crate) const KINDS: [&str; 27] = [
    "sql",
    "nosql",
    "command",
    "code",
    "template",
    "ldap",
    "xpath",
    "xquery",
    "header",
    "log",
    "format",
    "html",
    "path",
    "zipslip",
    "url",
    "redirect",
    "deserialization",
    "xml",
    "regex",
    "reflection",
    "mass-assignment",
    "prototype",
    "trust",
    "memory",
    "email",
    "csv",
    "cors",
];

/// Kinds of sources.
const SOURCES: [&str; 8] = ["request", "arguments", "environment", "file", "socket", "queue", "stored", "parameter"];

/// A file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    pub(crate) language: String,
    #[serde(default)]
    pub(crate) usual: Vec<String>,
    #[serde(default)]
    pub(crate) source: Vec<Source>,
    #[serde(default)]
    pub(crate) handler: Vec<Handler>,
    #[serde(default, rename = "type")]
    pub(crate) types: Vec<Type>,
    #[serde(default)]
    pub(crate) sink: Vec<Sink>,
    #[serde(default)]
    pub(crate) sanitizer: Vec<Sanitizer>,
    #[serde(default)]
    pub(crate) guard: Vec<Guard>,
    #[serde(default)]
    pub(crate) propagator: Vec<Propagator>,
    #[serde(default)]
    pub(crate) call: Vec<Call>,
}

/// One value or several.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Many<T> {
    Several(Vec<T>),
    One(T),
}

impl<T: Clone> Many<T> {
    fn list(&self) -> Vec<T> {
        match self {
            Self::One(v) => vec![v.clone()],
            Self::Several(v) => v.clone(),
        }
    }
}

/// An argument: a position, a keyword, or `receiver`, `all`, `result`.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Place {
    Index(u8),
    Word(String),
}

type Places = Many<Place>;

/// A condition on a call. All parts that are given must hold.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Condition {
    /// The argument: a keyword (or key of an object literal, dotted if nested), or a position, `receiver`, `value`.
    #[serde(default)]
    pub(crate) keyword: Option<String>,
    #[serde(default)]
    pub(crate) arg: Option<Place>,
    /// This item of the argument, which is a list literal.
    #[serde(default)]
    pub(crate) element: Option<u8>,
    /// The argument is this constant.
    #[serde(default)]
    pub(crate) value: Option<Many<toml::Value>>,
    /// A regular expression on the text of the constant; if it is not a constant, on the path of a name or member; else on
    /// the text that is known, with U+FFFC for the parts that are not.
    #[serde(default)]
    pub(crate) pattern: Option<String>,
    /// A regular expression on the source text of the argument.
    #[serde(default)]
    pub(crate) text: Option<String>,
    /// The path of the argument's type.
    #[serde(default, rename = "type")]
    pub(crate) ty: Option<Many<String>>,
    /// The argument is given or not; or: the named option is given.
    #[serde(default)]
    pub(crate) present: Option<Presence>,
    /// The named option is not given.
    #[serde(default)]
    pub(crate) absent: Option<String>,
    /// The argument is a constant or not.
    #[serde(default)]
    pub(crate) constant: Option<bool>,
    /// The argument has data of a request or not.
    #[serde(default)]
    pub(crate) requested: Option<bool>,
    /// The number of positional arguments.
    #[serde(default)]
    pub(crate) count: Option<u8>,
    /// The number of positional arguments, at least and at most.
    #[serde(default)]
    pub(crate) count_min: Option<u8>,
    #[serde(default)]
    pub(crate) count_max: Option<u8>,
    /// A regular expression on the name that the result is assigned to, or the name of the function around.
    #[serde(default)]
    pub(crate) into: Option<String>,
}

/// `present = true` or `present = "secure"`.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Presence {
    Is(bool),
    Option(String),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Source {
    pub(crate) label: String,
    pub(crate) kind: String,
    pub(crate) r#match: Vec<String>,
    /// The parts of the call that get the data. Default: the result.
    #[serde(default)]
    pub(crate) to: Option<Places>,
    /// Kinds of sinks that the data is harmless for.
    #[serde(default)]
    pub(crate) clean: Vec<String>,
    /// The only kinds of sinks that the data matters for.
    #[serde(default)]
    pub(crate) kinds: Vec<String>,
    #[serde(default)]
    pub(crate) when: Option<Many<Condition>>,
    #[serde(default)]
    pub(crate) unless: Option<Many<Condition>>,
    #[serde(default)]
    #[expect(dead_code, reason = "for readers of the table")]
    pub(crate) doc: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Params {
    Word(String),
    Several(Vec<Place>),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Handler {
    #[serde(default)]
    pub(crate) framework: Option<String>,
    #[serde(default)]
    pub(crate) decorator: Vec<String>,
    #[serde(default)]
    pub(crate) callee: Vec<String>,
    #[serde(default)]
    pub(crate) annotation: Vec<String>,
    #[serde(default)]
    pub(crate) param_type: Vec<String>,
    #[serde(default)]
    pub(crate) param_name: Vec<String>,
    /// Names of functions or methods.
    #[serde(default)]
    pub(crate) function: Vec<String>,
    /// Base classes of the class of the method.
    #[serde(default)]
    pub(crate) base: Vec<String>,
    /// Annotations of the class of the method.
    #[serde(default)]
    pub(crate) class_annotation: Vec<String>,
    #[serde(default)]
    pub(crate) params: Option<Params>,
    #[serde(default, rename = "type")]
    pub(crate) ty: Option<String>,
    #[serde(default)]
    pub(crate) label: Option<String>,
    #[serde(default)]
    pub(crate) kind: Option<String>,
    /// Types of parameters that are not data: services that a framework passes in.
    #[serde(default)]
    pub(crate) not_type: Vec<String>,
    /// Callees of defaults of parameters that are not data: `Depends()`.
    #[serde(default)]
    pub(crate) except_default: Vec<String>,
    /// The only kinds of sinks that the data matters for.
    #[serde(default)]
    pub(crate) kinds: Vec<String>,
    /// Declared types of the result.
    #[serde(default)]
    pub(crate) returns: Vec<String>,
    /// On the call that takes the function.
    #[serde(default)]
    pub(crate) when: Option<Many<Condition>>,
    #[serde(default)]
    #[expect(dead_code, reason = "for readers of the table")]
    pub(crate) doc: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Type {
    #[serde(default)]
    pub(crate) r#match: Vec<String>,
    #[serde(default)]
    pub(crate) names: Vec<String>,
    pub(crate) is: String,
    /// `receiver`: what the method is called on has this type from here on.
    #[serde(default)]
    pub(crate) to: Option<Places>,
    #[serde(default)]
    pub(crate) when: Option<Many<Condition>>,
    #[serde(default)]
    pub(crate) unless: Option<Many<Condition>>,
    #[serde(default)]
    #[expect(dead_code, reason = "for readers of the table")]
    pub(crate) doc: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sink {
    pub(crate) kind: String,
    pub(crate) label: String,
    #[serde(default)]
    pub(crate) r#match: Vec<String>,
    #[serde(default)]
    pub(crate) arg: Option<Places>,
    #[serde(default)]
    pub(crate) when: Option<Many<Condition>>,
    #[serde(default)]
    pub(crate) unless: Option<Many<Condition>>,
    /// The value that a handler returns.
    #[serde(default)]
    pub(crate) returns: Option<toml::Value>,
    /// When a value of unknown origin is reported: `built` (joined with text), `any`, `never`.
    #[serde(default)]
    pub(crate) unknown: Option<String>,
    /// True: not reported if the function checks the data later. For constructors that do no harm yet.
    #[serde(default)]
    pub(crate) late: bool,
    /// Only this item counts if the argument is a list literal.
    #[serde(default)]
    pub(crate) element: Option<u8>,
    /// False: an object or list literal is harmless.
    #[serde(default)]
    pub(crate) literal: Option<bool>,
    #[serde(default)]
    pub(crate) assign: bool,
    #[serde(default)]
    pub(crate) jsx: bool,
    #[serde(default)]
    pub(crate) cwe: Option<u32>,
    #[serde(default)]
    pub(crate) confidence: Option<String>,
    /// These texts replace those of the rule in the finding.
    #[serde(default)]
    pub(crate) title: Option<String>,
    #[serde(default)]
    pub(crate) message: Option<String>,
    #[serde(default)]
    pub(crate) suggestion: Option<String>,
    /// The severity of the finding is at most this.
    #[serde(default)]
    pub(crate) severity: Option<String>,
    #[serde(default)]
    #[expect(dead_code, reason = "for readers of the table")]
    pub(crate) doc: Option<String>,
}

impl Sink {
    fn texts(&self) -> Texts<'_> {
        Texts {
            word: &self.kind,
            name: self.r#match.first(),
            title: self.title.as_deref(),
            message: self.message.as_deref(),
            suggestion: self.suggestion.as_deref(),
            severity: self.severity.as_deref(),
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sanitizer {
    pub(crate) kinds: Many<String>,
    pub(crate) r#match: Vec<String>,
    #[serde(default)]
    pub(crate) arg: Option<Places>,
    #[serde(default)]
    pub(crate) when: Option<Many<Condition>>,
    #[serde(default)]
    pub(crate) unless: Option<Many<Condition>>,
    #[serde(default)]
    #[expect(dead_code, reason = "for readers of the table")]
    pub(crate) doc: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Guard {
    pub(crate) kinds: Many<String>,
    pub(crate) r#match: Vec<String>,
    #[serde(default)]
    pub(crate) arg: Option<Places>,
    #[serde(default)]
    pub(crate) negative: bool,
    #[serde(default)]
    pub(crate) when: Option<Many<Condition>>,
    #[serde(default)]
    pub(crate) unless: Option<Many<Condition>>,
    #[serde(default)]
    #[expect(dead_code, reason = "for readers of the table")]
    pub(crate) doc: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Propagator {
    pub(crate) r#match: Vec<String>,
    #[serde(default)]
    pub(crate) from: Option<Places>,
    #[serde(default)]
    pub(crate) to: Option<Places>,
    /// The result is a copy of this argument, also if it is a constant.
    #[serde(default)]
    pub(crate) same: Option<u8>,
    /// The previous data of `to` is dropped.
    #[serde(default)]
    pub(crate) strong: bool,
    #[serde(default)]
    pub(crate) when: Option<Many<Condition>>,
    #[serde(default)]
    pub(crate) unless: Option<Many<Condition>>,
    #[serde(default)]
    #[expect(dead_code, reason = "for readers of the table")]
    pub(crate) doc: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Call {
    pub(crate) rule: String,
    pub(crate) r#match: Vec<String>,
    #[serde(default)]
    pub(crate) when: Option<Many<Condition>>,
    #[serde(default)]
    pub(crate) unless: Option<Many<Condition>>,
    #[serde(default)]
    pub(crate) absent: Vec<String>,
    /// As in a condition.
    #[serde(default)]
    pub(crate) into: Option<String>,
    /// True: the match is an assignment to a member or a setting, and the conditions are on argument 0, its value.
    #[serde(default)]
    pub(crate) assign: bool,
    #[serde(default)]
    pub(crate) cwe: Option<u32>,
    #[serde(default)]
    pub(crate) confidence: Option<String>,
    #[serde(default)]
    pub(crate) label: Option<String>,
    /// These texts replace those of the rule in the finding.
    #[serde(default)]
    pub(crate) title: Option<String>,
    #[serde(default)]
    pub(crate) message: Option<String>,
    #[serde(default)]
    pub(crate) suggestion: Option<String>,
    /// The severity of the finding is at most this.
    #[serde(default)]
    pub(crate) severity: Option<String>,
    #[serde(default)]
    #[expect(dead_code, reason = "for readers of the table")]
    pub(crate) doc: Option<String>,
}

impl Call {
    fn texts(&self) -> Texts<'_> {
        Texts {
            word: &self.rule,
            name: self.r#match.first(),
            title: self.title.as_deref(),
            message: self.message.as_deref(),
            suggestion: self.suggestion.as_deref(),
            severity: self.severity.as_deref(),
        }
    }
}

/// Returns what is wrong with the values of a file.
pub(crate) fn faults(file: &File) -> Vec<String> {
    let mut out = Vec::new();
    let mut kind = |k: &str| {
        if !KINDS.contains(&k) && k != "all" {
            out.push(format!("kind {k:?} not found"));
        }
    };
    file.sink.iter().for_each(|s| kind(&s.kind));
    file.sanitizer.iter().flat_map(|s| s.kinds.list()).for_each(|k| kind(&k));
    file.guard.iter().flat_map(|s| s.kinds.list()).for_each(|k| kind(&k));
    file.source.iter().flat_map(|s| &s.clean).for_each(|k| kind(k));
    let kinds = file.source.iter().map(|s| Some(&s.kind)).chain(file.handler.iter().map(|h| h.kind.as_ref()));
    for k in kinds.flatten().filter(|k| !SOURCES.contains(&k.as_str())) {
        out.push(format!("kind of source {k:?} not found"));
    }
    for p in paths(file) {
        if p.trim().is_empty() || p.trim() != p {
            out.push(format!("pattern {p:?} is empty or has spaces around it"));
        }
    }
    for c in conditions(file) {
        if c.pattern.as_ref().is_some_and(|p| p.len() > 400) {
            out.push("pattern of a condition is longer than 400 bytes".to_owned());
        }
    }
    for h in &file.handler {
        let has = [&h.decorator, &h.callee, &h.annotation, &h.param_type, &h.param_name, &h.function, &h.base];
        if has.iter().all(|l| l.is_empty()) && h.class_annotation.is_empty() && h.returns.is_empty() {
            out.push("handler without a condition".to_owned());
        }
    }
    out.extend(file.sink.iter().flat_map(|s| s.texts().faults()));
    out.extend(file.call.iter().flat_map(|c| c.texts().faults()));
    out
}

fn paths(file: &File) -> Vec<&String> {
    let mut out: Vec<&String> = Vec::new();
    out.extend(file.source.iter().flat_map(|s| &s.r#match));
    out.extend(file.sink.iter().flat_map(|s| &s.r#match));
    out.extend(file.types.iter().flat_map(|s| &s.r#match));
    out.extend(file.sanitizer.iter().flat_map(|s| &s.r#match));
    out.extend(file.guard.iter().flat_map(|s| &s.r#match));
    out.extend(file.propagator.iter().flat_map(|s| &s.r#match));
    out.extend(file.call.iter().flat_map(|s| &s.r#match));
    out
}

fn conditions(file: &File) -> Vec<Condition> {
    let mut out = Vec::new();
    let mut add = |c: &Option<Many<Condition>>| out.extend(c.iter().flat_map(Many::list));
    file.sink.iter().for_each(|s| [&s.when, &s.unless].into_iter().for_each(&mut add));
    file.call.iter().for_each(|s| [&s.when, &s.unless].into_iter().for_each(&mut add));
    file.sanitizer.iter().for_each(|s| [&s.when, &s.unless].into_iter().for_each(&mut add));
    out
}

/// Writes the table of a file as a Rust value.
pub(crate) fn table(name: &str, file: &File) -> String {
    let mut patterns: Vec<(String, String)> = Vec::new();
    let mut out = String::new();
    let _ = writeln!(out, "pub(super) static {name}: Table = Table {{");
    let _ = writeln!(out, "usual: &{:?},", file.usual);
    list(&mut out, "sources", file.source.iter().enumerate().map(|(i, s)| source(&mut patterns, i, s)));
    list(&mut out, "handlers", file.handler.iter().map(handler));
    list(&mut out, "types", file.types.iter().enumerate().map(|(i, t)| ty(&mut patterns, i, t)));
    let mut names: Vec<(String, usize)> = Vec::new();
    for (i, t) in file.types.iter().enumerate() {
        names.extend(t.names.iter().map(|n| (n.clone(), i)));
    }
    names.sort();
    list(&mut out, "names", names.iter().map(|(n, i)| format!("({n:?}, {i})")));
    list(&mut out, "sinks", file.sink.iter().enumerate().map(|(i, s)| sink(&mut patterns, i, s)));
    list(&mut out, "sanitizers", file.sanitizer.iter().enumerate().map(|(i, s)| sanitizer(&mut patterns, i, s)));
    list(&mut out, "guards", file.guard.iter().enumerate().map(|(i, s)| guard(&mut patterns, i, s)));
    list(&mut out, "propagators", file.propagator.iter().enumerate().map(|(i, s)| propagator(&mut patterns, i, s)));
    list(&mut out, "calls", file.call.iter().enumerate().map(|(i, s)| call(&mut patterns, i, s)));
    patterns.sort();
    patterns.dedup();
    list(&mut out, "patterns", patterns.iter().map(|(_, p)| p.clone()));
    out.push_str("};\n");
    out
}

fn list(out: &mut String, name: &str, items: impl Iterator<Item = String>) {
    let _ = writeln!(out, "{name}: &[");
    for item in items {
        let _ = writeln!(out, "{item},");
    }
    out.push_str("],\n");
}

/// Adds a pattern for a role: `new a.b.C()`, `*.m()`, `a.b`.
fn pattern(patterns: &mut Vec<(String, String)>, text: &str, role: &str, i: usize, is_write: bool) {
    let (is_new, rest) = text.strip_prefix("new ").map_or((false, text), |r| (true, r));
    let (is_call, rest) = rest.strip_suffix("()").map_or((is_new, rest), |r| (true, r));
    let (prefix, last) = rest.rsplit_once('.').filter(|(p, _)| !p.is_empty()).unwrap_or(("", rest));
    let (any, prefix) = match prefix.strip_prefix('*') {
        Some(p) => (true, p.trim_start_matches('.')),
        None => (false, prefix),
    };
    let item = format!(
        "Pattern {{ last: {last:?}, prefix: {prefix:?}, any: {any}, call: {is_call}, new: {is_new}, write: {is_write}, role: Role::{role}({i}) }}"
    );
    patterns.push((last.to_owned(), item));
}

fn optional<T: std::fmt::Debug>(v: &Option<T>) -> String {
    format!("{v:?}")
}

fn places(p: &Option<Places>, default: &str) -> String {
    let Some(p) = p else { return default.to_owned() };
    let items: Vec<String> = p.list().iter().map(place).collect();
    format!("&[{}]", items.join(", "))
}

fn place(p: &Place) -> String {
    match p {
        Place::Index(i) => format!("Place::Arg({i})"),
        Place::Word(w) if w == "receiver" => "Place::Receiver".to_owned(),
        Place::Word(w) if w == "all" => "Place::All".to_owned(),
        Place::Word(w) if w == "result" => "Place::Result".to_owned(),
        Place::Word(w) if w == "value" => "Place::Arg(0)".to_owned(),
        Place::Word(w) if w == "**" => "Place::Spread".to_owned(),
        Place::Word(w) if w.ends_with("..") => {
            format!("Place::From({})", w.trim_end_matches('.').parse().unwrap_or(0u8))
        }
        Place::Word(w) => format!("Place::Keyword({w:?})"),
    }
}

fn kinds(list: &[String]) -> u32 {
    let mut bits = 0;
    for k in list {
        match KINDS.iter().position(|n| n == k) {
            Some(i) => bits |= 1 << i,
            None => bits = u32::MAX,
        }
    }
    bits
}

/// Returns the kinds that are not in a list. An empty list means all kinds.
fn complement(list: &[String]) -> u32 {
    if list.is_empty() { 0 } else { !kinds(list) }
}

fn conditions_of(c: &Option<Many<Condition>>) -> String {
    let items: Vec<String> = c.iter().flat_map(Many::list).map(|c| condition(&c)).collect();
    format!("&[{}]", items.join(", "))
}

fn condition(c: &Condition) -> String {
    let values: Option<Vec<String>> = c.value.as_ref().map(|v| v.list().iter().map(constant).collect());
    let values = values.map_or("None".to_owned(), |v| format!("Some(&{v:?})"));
    let arg = match (&c.arg, &c.keyword) {
        (Some(p), _) => format!("Some({})", place(p)),
        (None, Some(k)) => format!("Some(Place::Keyword({k:?}))"),
        (None, None) => "None".to_owned(),
    };
    let types = c.ty.as_ref().map(Many::list).unwrap_or_default();
    let (present, has) = match &c.present {
        None => (None, None),
        Some(Presence::Is(b)) => (Some(*b), None),
        Some(Presence::Option(o)) => (None, Some(o)),
    };
    format!(
        "Condition {{ arg: {arg}, element: {:?}, values: {values}, pattern: {:?}, text: {:?}, types: &{types:?}, present: {present:?}, has: {has:?}, absent: {:?}, constant: {:?}, requested: {:?}, count_min: {:?}, count_max: {:?}, into: {:?} }}",
        c.element,
        c.pattern,
        c.text,
        c.absent,
        c.constant,
        c.requested,
        c.count.or(c.count_min),
        c.count.or(c.count_max),
        c.into
    )
}

/// Returns the words that a constant is compared by.
fn constant(v: &toml::Value) -> String {
    match v {
        toml::Value::String(s) => s.clone(),
        toml::Value::Integer(i) => i.to_string(),
        toml::Value::Boolean(b) => b.to_string(),
        toml::Value::Float(f) => f.to_string(),
        _ => String::new(),
    }
}

fn source(patterns: &mut Vec<(String, String)>, i: usize, s: &Source) -> String {
    s.r#match.iter().for_each(|m| pattern(patterns, m, "Source", i, false));
    let args = places(&s.to, "&[Place::Result]");
    let kind = SOURCES.iter().position(|k| *k == s.kind).unwrap_or_default();
    format!(
        "Source {{ label: {:?}, kind: {kind}, args: {args}, clean: {}, when: {}, unless: {} }}",
        s.label,
        kinds(&s.clean) | complement(&s.kinds),
        conditions_of(&s.when),
        conditions_of(&s.unless)
    )
}

fn handler(h: &Handler) -> String {
    let params = match &h.params {
        None => "&[]".to_owned(),
        Some(Params::Word(_)) => "&[Place::All]".to_owned(),
        Some(Params::Several(l)) => format!("&[{}]", l.iter().map(place).collect::<Vec<_>>().join(", ")),
    };
    let kind = h.kind.as_ref().and_then(|k| SOURCES.iter().position(|n| n == k)).unwrap_or_default();
    let strip = |l: &[String]| -> Vec<String> {
        l.iter().map(|p| p.trim_start_matches('@').trim_end_matches("()").to_owned()).collect()
    };
    format!(
        "Handler {{ framework: {:?}, decorator: &{:?}, callee: &{:?}, annotation: &{:?}, param_type: &{:?}, param_name: &{:?}, function: &{:?}, base: &{:?}, class_annotation: &{:?}, params: {params}, ty: {}, label: {:?}, kind: {kind}, not_type: &{:?}, except_default: &{:?}, clean: {}, returns: &{:?}, when: {} }}",
        h.framework.as_deref().unwrap_or_default(),
        strip(&h.decorator),
        strip(&h.callee),
        strip(&h.annotation),
        h.param_type,
        h.param_name,
        h.function,
        h.base,
        strip(&h.class_annotation),
        optional(&h.ty),
        h.label.as_deref().unwrap_or("request data"),
        h.not_type,
        strip(&h.except_default),
        complement(&h.kinds),
        h.returns,
        conditions_of(&h.when),
    )
}

fn ty(patterns: &mut Vec<(String, String)>, i: usize, t: &Type) -> String {
    t.r#match.iter().for_each(|m| pattern(patterns, m, "Type", i, false));
    let to = places(&t.to, "&[Place::Result]");
    let (when, unless) = (conditions_of(&t.when), conditions_of(&t.unless));
    format!("Type {{ is: {:?}, to: {to}, when: {when}, unless: {unless} }}", t.is)
}

fn confidence(c: &Option<String>) -> &'static str {
    match c.as_deref() {
        Some("low") => "Confidence::Low",
        Some("medium") => "Confidence::Medium",
        _ => "Confidence::High",
    }
}

fn sink(patterns: &mut Vec<(String, String)>, i: usize, s: &Sink) -> String {
    for m in &s.r#match {
        pattern(patterns, m, "Sink", i, s.assign || s.jsx);
    }
    let args = places(&s.arg, "&[Place::Arg(0)]");
    let kind = KINDS.iter().position(|k| *k == s.kind).unwrap_or_default();
    let unknown = match s.unknown.as_deref() {
        Some("any") => Some(true),
        Some("never") => Some(false),
        _ => None,
    };
    format!(
        "Sink {{ kind: {kind}, label: {:?}, args: {args}, when: {}, unless: {}, unknown: {unknown:?}, element: {:?}, literal: {}, returns: {:?}, late: {}, cwe: {:?}, confidence: {}, texts: {} }}",
        s.label,
        conditions_of(&s.when),
        conditions_of(&s.unless),
        s.element,
        s.literal.unwrap_or(true),
        s.returns.as_ref().map(constant),
        s.late,
        s.cwe,
        confidence(&s.confidence),
        s.texts().written(),
    )
}

fn sanitizer(patterns: &mut Vec<(String, String)>, i: usize, s: &Sanitizer) -> String {
    s.r#match.iter().for_each(|m| pattern(patterns, m, "Sanitizer", i, false));
    let args = places(&s.arg, "&[Place::Arg(0), Place::Receiver]");
    format!(
        "Sanitizer {{ kinds: {}, args: {args}, when: {}, unless: {} }}",
        kinds(&s.kinds.list()),
        conditions_of(&s.when),
        conditions_of(&s.unless)
    )
}

fn guard(patterns: &mut Vec<(String, String)>, i: usize, s: &Guard) -> String {
    s.r#match.iter().for_each(|m| pattern(patterns, m, "Guard", i, false));
    let args = places(&s.arg, "&[Place::Arg(0)]");
    format!(
        "Guard {{ kinds: {}, args: {args}, negative: {}, when: {}, unless: {} }}",
        kinds(&s.kinds.list()),
        s.negative,
        conditions_of(&s.when),
        conditions_of(&s.unless)
    )
}

fn propagator(patterns: &mut Vec<(String, String)>, i: usize, s: &Propagator) -> String {
    s.r#match.iter().for_each(|m| pattern(patterns, m, "Propagator", i, false));
    let from = places(&s.from, "&[]");
    let to = places(&s.to, "&[Place::Result]");
    format!(
        "Propagator {{ from: {from}, to: {to}, same: {:?}, strong: {}, when: {}, unless: {} }}",
        s.same,
        s.strong,
        conditions_of(&s.when),
        conditions_of(&s.unless)
    )
}

fn call(patterns: &mut Vec<(String, String)>, i: usize, s: &Call) -> String {
    s.r#match.iter().for_each(|m| pattern(patterns, m, "Call", i, s.assign));
    format!(
        "Call {{ rule: {:?}, label: {:?}, when: {}, unless: {}, absent: &{:?}, into: {:?}, cwe: {:?}, confidence: {}, texts: {} }}",
        s.rule,
        s.label.as_deref().unwrap_or_default(),
        conditions_of(&s.when),
        conditions_of(&s.unless),
        s.absent,
        s.into,
        s.cwe,
        confidence(&s.confidence),
        s.texts().written(),
    )
}

/// The files, and the names of their tables.
pub(crate) const FILES: [(&str, &str); 8] = [
    ("python", "PYTHON"),
    ("javascript", "JAVASCRIPT"),
    ("java", "JAVA"),
    ("go", "GO"),
    ("php", "PHP"),
    ("ruby", "RUBY"),
    ("csharp", "CSHARP"),
    ("c", "C"),
];

/// Reads and checks all files in a folder and writes their tables.
pub(crate) fn tables(folder: &str) -> Result<String, Vec<String>> {
    let mut out = String::new();
    let mut wrong = Vec::new();
    for (stem, name) in FILES {
        let path = format!("{folder}/{stem}.toml");
        let text = std::fs::read_to_string(&path).map_err(|e| vec![format!("{path}: {e}")])?;
        match toml::from_str::<File>(&text) {
            Ok(file) => {
                wrong.extend(faults(&file).into_iter().map(|f| format!("{path}: {f}")));
                if file.language != stem {
                    wrong.push(format!("{path}: language is {:?}", file.language));
                }
                out.push_str(&table(name, &file));
            }
            Err(e) => wrong.push(format!("{path}: {e}")),
        }
    }
    if wrong.is_empty() { Ok(out) } else { Err(wrong) }
}
