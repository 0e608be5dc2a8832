//! Writes the knowledge as static tables, in Rust.

use super::{
    Condition, Guard, Handler, KINDS, KnowledgeFile, Many, Params, Places, Presence, Propagator,
    SOURCES, Sanitizer, Sink, Type, WrittenCall, WrittenPlace, WrittenSource, faults,
};
use crate::slot::{SLOTS, slot};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A pattern as Rust source.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Written {
    /// Last word of its path. Tables are sorted by it.
    last: String,
    text: String,
    /// Index of the type of the value that it returns.
    ty: Option<usize>,
}

/// Names, handlers and patterns that show that a value has a type.
#[derive(Default)]
struct Makers<'f> {
    /// Conventional names of variables.
    names: Vec<&'f str>,
    /// Indexes of handlers whose parameters have the type.
    handlers: Vec<usize>,
    /// Indexes of patterns.
    patterns: Vec<usize>,
}

/// Returns the table of a file as a Rust value.
pub(crate) fn table(name: &str, file: &KnowledgeFile) -> String {
    let mut patterns: Vec<Written> = Vec::new();
    let mut out = String::new();
    let _ = writeln!(out, "pub(super) static {name}: Table = Table {{");
    let _ = writeln!(out, "usual: &{:?},", file.usual);
    // Of modules with one last name, the last one in the file counts.
    let last_names: BTreeMap<&str, &str> = file
        .usual
        .iter()
        .map(|path| (path.rsplit(['.', '/']).next().unwrap_or(path), &**path))
        .collect();
    list(
        &mut out,
        "usual_names",
        last_names.iter().map(|entry| format!("{entry:?}")),
    );
    list(
        &mut out,
        "sources",
        file.source
            .iter()
            .enumerate()
            .map(|(i, s)| source(&mut patterns, i, s)),
    );
    list(&mut out, "handlers", file.handler.iter().map(handler));
    list(
        &mut out,
        "types",
        file.types
            .iter()
            .enumerate()
            .map(|(i, t)| ty(&mut patterns, i, t)),
    );
    let mut names: Vec<(String, usize)> = Vec::new();
    for (i, t) in file.types.iter().enumerate() {
        names.extend(t.names.iter().map(|n| (n.clone(), i)));
    }
    names.sort();
    list(
        &mut out,
        "names",
        names.iter().map(|(n, i)| format!("({n:?}, {i})")),
    );
    list(
        &mut out,
        "sinks",
        file.sink
            .iter()
            .enumerate()
            .map(|(i, s)| sink(&mut patterns, i, s)),
    );
    list(
        &mut out,
        "sanitizers",
        file.sanitizer
            .iter()
            .enumerate()
            .map(|(i, s)| sanitizer(&mut patterns, i, s)),
    );
    list(
        &mut out,
        "guards",
        file.guard
            .iter()
            .enumerate()
            .map(|(i, s)| guard(&mut patterns, i, s)),
    );
    list(
        &mut out,
        "propagators",
        file.propagator
            .iter()
            .enumerate()
            .map(|(i, s)| propagator(&mut patterns, i, s)),
    );
    list(
        &mut out,
        "calls",
        file.call
            .iter()
            .enumerate()
            .map(|(i, s)| call(&mut patterns, i, s)),
    );
    patterns.sort();
    patterns.dedup();
    list(
        &mut out,
        "patterns",
        patterns.iter().map(|p| p.text.clone()),
    );
    let _ = writeln!(out, "slots: &{:?},", slots(&patterns));
    list(
        &mut out,
        "makers",
        makers(file, &patterns)
            .iter()
            .map(|(ty, makers)| maker(ty, makers)),
    );
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
fn pattern(patterns: &mut Vec<Written>, text: &str, role: &str, i: usize, is_write: bool) {
    let (is_new, rest) = text
        .strip_prefix("new ")
        .map_or((false, text), |r| (true, r));
    let (is_call, rest) = rest
        .strip_suffix("()")
        .map_or((is_new, rest), |r| (true, r));
    let (prefix, last) = rest
        .rsplit_once('.')
        .filter(|(p, _)| !p.is_empty())
        .unwrap_or(("", rest));
    let (any, prefix) = match prefix.strip_prefix('*') {
        Some(p) => (true, p.trim_start_matches('.')),
        None => (false, prefix),
    };
    let item = format!(
        "Pattern {{ last: {last:?}, prefix: {prefix:?}, any: {any}, call: {is_call}, new: {is_new}, write: {is_write}, role: Role::{role}({i}) }}"
    );
    let ty = (role == "Type").then_some(i);
    patterns.push(Written {
        last: last.to_owned(),
        text: item,
        ty,
    });
}

/// Returns the filter of the last words of patterns.
fn slots(patterns: &[Written]) -> Vec<u64> {
    let mut out = vec![0; SLOTS / 64];
    for slot in patterns.iter().map(|p| slot(p.last.as_bytes())) {
        out[slot / 64] |= 1 << (slot % 64);
    }
    out
}

/// Returns the makers of each type, sorted by the type. `patterns`: in the order of the written
/// table.
fn makers<'f>(file: &'f KnowledgeFile, patterns: &[Written]) -> BTreeMap<&'f str, Makers<'f>> {
    let mut out: BTreeMap<&str, Makers<'_>> = BTreeMap::new();
    for ty in &file.types {
        out.entry(&ty.is)
            .or_default()
            .names
            .extend(ty.names.iter().map(String::as_str));
    }
    for (i, handler) in file.handler.iter().enumerate() {
        if let Some(ty) = &handler.ty {
            out.entry(ty).or_default().handlers.push(i);
        }
    }
    for (i, pattern) in patterns.iter().enumerate() {
        if let Some(ty) = pattern.ty.and_then(|ty| file.types.get(ty)) {
            out.entry(&ty.is).or_default().patterns.push(i);
        }
    }
    out
}

fn maker(ty: &str, makers: &Makers<'_>) -> String {
    let Makers {
        names,
        handlers,
        patterns,
    } = makers;
    format!(
        "({ty:?}, Makers {{ names: &{names:?}, handlers: &{handlers:?}, patterns: &{patterns:?} }})"
    )
}

fn optional<T: std::fmt::Debug>(v: &Option<T>) -> String {
    format!("{v:?}")
}

fn places(p: &Option<Places>, default: &str) -> String {
    let Some(p) = p else {
        return default.to_owned();
    };
    let items: Vec<String> = p.list().iter().map(place).collect();
    format!("&[{}]", items.join(", "))
}

fn place(p: &WrittenPlace) -> String {
    match p {
        WrittenPlace::Index(i) => format!("Place::Arg({i})"),
        WrittenPlace::Word(w) if w == "receiver" => "Place::Receiver".to_owned(),
        WrittenPlace::Word(w) if w == "all" => "Place::All".to_owned(),
        WrittenPlace::Word(w) if w == "result" => "Place::Result".to_owned(),
        WrittenPlace::Word(w) if w == "value" => "Place::Arg(0)".to_owned(),
        WrittenPlace::Word(w) if w == "**" => "Place::Spread".to_owned(),
        WrittenPlace::Word(w) if w.ends_with("..") => {
            format!(
                "Place::From({})",
                w.trim_end_matches('.').parse().unwrap_or(0u8)
            )
        }
        WrittenPlace::Word(w) => format!("Place::Keyword({w:?})"),
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
    let items: Vec<String> = c
        .iter()
        .flat_map(Many::list)
        .map(|c| condition(&c))
        .collect();
    format!("&[{}]", items.join(", "))
}

fn condition(c: &Condition) -> String {
    let values: Option<Vec<String>> = c
        .value
        .as_ref()
        .map(|v| v.list().iter().map(constant).collect());
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
        "Condition {{ arg: {arg}, element: {:?}, values: {values}, pattern: {:?}, text: {:?}, types: &{types:?}, present: {present:?}, has: {has:?}, absent: {:?}, constant: {:?}, requested: {:?}, count_min: {:?}, count_max: {:?}, into: {:?}, or_imported: {:?} }}",
        c.element,
        c.pattern,
        c.text,
        c.absent,
        c.constant,
        c.requested,
        c.count.or(c.count_min),
        c.count.or(c.count_max),
        c.into,
        c.or_imported
    )
}

/// Returns the words that a constant is compared with.
fn constant(v: &toml::Value) -> String {
    match v {
        toml::Value::String(s) => s.clone(),
        toml::Value::Integer(i) => i.to_string(),
        toml::Value::Boolean(b) => b.to_string(),
        toml::Value::Float(f) => f.to_string(),
        _ => String::new(),
    }
}

fn source(patterns: &mut Vec<Written>, i: usize, s: &WrittenSource) -> String {
    s.r#match
        .iter()
        .for_each(|m| pattern(patterns, m, "Source", i, false));
    let args = places(&s.to, "&[Place::Result]");
    let kind = taint_kind(Some(&s.kind));
    format!(
        "Source {{ label: {:?}, kind: TaintKind::{kind}, args: {args}, clean: {}, when: {}, unless: {} }}",
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
        Some(Params::Several(l)) => {
            format!("&[{}]", l.iter().map(place).collect::<Vec<_>>().join(", "))
        }
    };
    let kind = taint_kind(h.kind.as_deref());
    format!(
        "Handler {{ framework: {:?}, decorator: &{:?}, callee: &{:?}, annotation: &{:?}, param_type: &{:?}, param_name: &{:?}, function: &{:?}, base: &{:?}, class_annotation: &{:?}, params: {params}, ty: {}, label: {:?}, kind: TaintKind::{kind}, not_type: &{:?}, except_default: &{:?}, clean: {}, returns: &{:?}, when: {} }}",
        h.framework.as_deref().unwrap_or_default(),
        bare_names(&h.decorator),
        bare_names(&h.callee),
        bare_names(&h.annotation),
        h.param_type,
        h.param_name,
        h.function,
        h.base,
        bare_names(&h.class_annotation),
        optional(&h.ty),
        h.label.as_deref().unwrap_or("request data"),
        h.not_type,
        bare_names(&h.except_default),
        complement(&h.kinds) | kinds(&h.clean),
        h.returns,
        conditions_of(&h.when),
    )
}

/// Returns the variant of `TaintKind` for a word. Without a word, the source is a request.
fn taint_kind(word: Option<&str>) -> &'static str {
    let mut kinds = SOURCES.iter();
    kinds
        .find(|(known, _)| Some(*known) == word)
        .map_or("Request", |(_, variant)| variant)
}

/// Returns names without the sign of an annotation and without parentheses.
fn bare_names(names: &[String]) -> Vec<String> {
    names
        .iter()
        .map(|n| n.trim_start_matches('@').trim_end_matches("()").to_owned())
        .collect()
}

fn ty(patterns: &mut Vec<Written>, i: usize, t: &Type) -> String {
    t.r#match
        .iter()
        .for_each(|m| pattern(patterns, m, "Type", i, false));
    let to = places(&t.to, "&[Place::Result]");
    let (when, unless) = (conditions_of(&t.when), conditions_of(&t.unless));
    format!(
        "Type {{ is: {:?}, to: {to}, when: {when}, unless: {unless} }}",
        t.is
    )
}

fn confidence(c: &Option<String>) -> &'static str {
    match c.as_deref() {
        Some("low") => "FlowCertainty::Low",
        Some("medium") => "FlowCertainty::Medium",
        _ => "FlowCertainty::High",
    }
}

fn sink(patterns: &mut Vec<Written>, i: usize, s: &Sink) -> String {
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
        "Sink {{ kind: SinkKind::ALL[{kind}], label: {:?}, args: {args}, when: {}, unless: {}, unknown: {unknown:?}, element: {:?}, literal: {}, returns: {:?}, late: {}, cwe: {:?}, confidence: {}, texts: {} }}",
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

fn sanitizer(patterns: &mut Vec<Written>, i: usize, s: &Sanitizer) -> String {
    s.r#match
        .iter()
        .for_each(|m| pattern(patterns, m, "Sanitizer", i, false));
    let args = places(&s.arg, "&[Place::Arg(0), Place::Receiver]");
    format!(
        "Sanitizer {{ kinds: {}, args: {args}, when: {}, unless: {} }}",
        kinds(&s.kinds.list()),
        conditions_of(&s.when),
        conditions_of(&s.unless)
    )
}

fn guard(patterns: &mut Vec<Written>, i: usize, s: &Guard) -> String {
    s.r#match
        .iter()
        .for_each(|m| pattern(patterns, m, "Guard", i, false));
    let args = places(&s.arg, "&[Place::Arg(0)]");
    format!(
        "Guard {{ kinds: {}, args: {args}, negative: {}, when: {}, unless: {} }}",
        kinds(&s.kinds.list()),
        s.negative,
        conditions_of(&s.when),
        conditions_of(&s.unless)
    )
}

fn propagator(patterns: &mut Vec<Written>, i: usize, s: &Propagator) -> String {
    s.r#match
        .iter()
        .for_each(|m| pattern(patterns, m, "Propagator", i, false));
    let from = places(&s.from, "&[]");
    let to = places(&s.to, "&[Place::Result]");
    format!(
        "Propagator {{ from: {from}, to: {to}, same: {:?}, strong: {}, exposes: {}, when: {}, unless: {} }}",
        s.same,
        s.strong,
        kinds(&s.exposes),
        conditions_of(&s.when),
        conditions_of(&s.unless)
    )
}

fn call(patterns: &mut Vec<Written>, i: usize, s: &WrittenCall) -> String {
    s.r#match
        .iter()
        .for_each(|m| pattern(patterns, m, "Call", i, s.assign));
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

/// Reads and checks all files in a folder and returns their tables as Rust source.
pub(crate) fn tables(folder: &str) -> Result<String, Vec<String>> {
    let mut out = String::new();
    let mut wrong = Vec::new();
    for (stem, name) in FILES {
        let path = format!("{folder}/{stem}.toml");
        let text = std::fs::read_to_string(&path).map_err(|e| vec![format!("{path}: {e}")])?;
        match toml::from_str::<KnowledgeFile>(&text) {
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
    if wrong.is_empty() {
        Ok(out)
    } else {
        Err(wrong)
    }
}
