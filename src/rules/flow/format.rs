//! File format of the knowledge in `src/rules/knowledge/*.toml`, and its checks.
//!
//! Only the build script includes this file. Nothing here may use the rest of the crate.

#[path = "format/tables.rs"]
mod tables;
#[path = "format/texts.rs"]
mod texts;

use serde::Deserialize;
pub(crate) use tables::tables;
use texts::WrittenTexts;

/// Kinds of flows, in the order of `SinkKind`.
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

/// Kinds of sources, each with its variant of `TaintKind`.
const SOURCES: [(&str, &str); 8] = [
    ("request", "Request"),
    ("arguments", "Arguments"),
    ("environment", "Environment"),
    ("file", "File"),
    ("socket", "Socket"),
    ("queue", "Queue"),
    ("stored", "Stored"),
    ("parameter", "Parameter"),
];

/// A file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KnowledgeFile {
    pub(crate) language: String,
    #[serde(default)]
    pub(crate) usual: Vec<String>,
    #[serde(default)]
    pub(crate) source: Vec<WrittenSource>,
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
    pub(crate) call: Vec<WrittenCall>,
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
pub(crate) enum WrittenPlace {
    Index(u8),
    Word(String),
}

type Places = Many<WrittenPlace>;

/// A condition on a call. All parts that are given must hold.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Condition {
    /// The argument: a keyword (or key of an object literal, dotted if nested), or a position,
    /// `receiver`, `value`.
    #[serde(default)]
    pub(crate) keyword: Option<String>,
    #[serde(default)]
    pub(crate) arg: Option<WrittenPlace>,
    /// This item of the argument, which is a list literal.
    #[serde(default)]
    pub(crate) element: Option<u8>,
    /// The argument is this constant.
    #[serde(default)]
    pub(crate) value: Option<Many<toml::Value>>,
    /// A regular expression on the text of the constant; if it is not a constant, on the path of a
    /// name or member; else on the text that is known, with U+FFFC for the parts that are not.
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
    /// A regular expression on the name that the result is assigned to, or the name of the function
    /// around.
    #[serde(default)]
    pub(crate) into: Option<String>,
    /// A regular expression on the paths that the file imports. If one matches, the condition holds
    /// without its other parts.
    #[serde(default)]
    pub(crate) or_imported: Option<String>,
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
pub(crate) struct WrittenSource {
    pub(crate) label: String,
    pub(crate) kind: String,
    pub(crate) r#match: Vec<String>,
    /// Parts of the call that receive the data. Default: the result.
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
    Several(Vec<WrittenPlace>),
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
    /// Kinds of sinks that the data is harmless for.
    #[serde(default)]
    pub(crate) clean: Vec<String>,
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
    /// `receiver`: the object on which the method is called has this type from here on.
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
    /// True: not reported if the function checks the data later. For constructors that do no harm
    /// by themselves.
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
    /// Replaces the title of the rule in the finding.
    #[serde(default)]
    pub(crate) title: Option<String>,
    #[serde(default)]
    pub(crate) message: Option<String>,
    #[serde(default)]
    pub(crate) suggestion: Option<String>,
    /// Highest severity of the finding.
    #[serde(default)]
    pub(crate) severity: Option<String>,
    #[serde(default)]
    #[expect(dead_code, reason = "for readers of the table")]
    pub(crate) doc: Option<String>,
}

impl Sink {
    fn texts(&self) -> WrittenTexts<'_> {
        WrittenTexts {
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
    /// The result is a copy of this argument, even if the argument is a constant.
    #[serde(default)]
    pub(crate) same: Option<u8>,
    /// The previous data of `to` is dropped.
    #[serde(default)]
    pub(crate) strong: bool,
    /// Kinds of sinks that the result can harm even if the data could not: a parser makes objects
    /// of a text.
    #[serde(default)]
    pub(crate) exposes: Vec<String>,
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
pub(crate) struct WrittenCall {
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
    /// True: the match is an assignment to a member or a setting, and the conditions are on
    /// argument 0, its value.
    #[serde(default)]
    pub(crate) assign: bool,
    #[serde(default)]
    pub(crate) cwe: Option<u32>,
    #[serde(default)]
    pub(crate) confidence: Option<String>,
    #[serde(default)]
    pub(crate) label: Option<String>,
    /// Replaces the title of the rule in the finding.
    #[serde(default)]
    pub(crate) title: Option<String>,
    #[serde(default)]
    pub(crate) message: Option<String>,
    #[serde(default)]
    pub(crate) suggestion: Option<String>,
    /// Highest severity of the finding.
    #[serde(default)]
    pub(crate) severity: Option<String>,
    #[serde(default)]
    #[expect(dead_code, reason = "for readers of the table")]
    pub(crate) doc: Option<String>,
}

impl WrittenCall {
    fn texts(&self) -> WrittenTexts<'_> {
        WrittenTexts {
            word: &self.rule,
            name: self.r#match.first(),
            title: self.title.as_deref(),
            message: self.message.as_deref(),
            suggestion: self.suggestion.as_deref(),
            severity: self.severity.as_deref(),
        }
    }
}

/// Returns the errors in the values of a file.
pub(crate) fn faults(file: &KnowledgeFile) -> Vec<String> {
    let mut out = Vec::new();
    out.extend(file.sink.iter().filter_map(|s| fault_of_kind(&s.kind)));
    out.extend(
        file.sanitizer
            .iter()
            .flat_map(|s| s.kinds.list())
            .filter_map(|k| fault_of_kind(&k)),
    );
    out.extend(
        file.guard
            .iter()
            .flat_map(|s| s.kinds.list())
            .filter_map(|k| fault_of_kind(&k)),
    );
    out.extend(
        file.source
            .iter()
            .flat_map(|s| &s.clean)
            .chain(file.handler.iter().flat_map(|h| &h.clean))
            .filter_map(|k| fault_of_kind(k)),
    );
    out.extend(
        file.propagator
            .iter()
            .flat_map(|p| &p.exposes)
            .filter_map(|k| fault_of_kind(k)),
    );
    let kinds = file
        .source
        .iter()
        .map(|s| Some(&s.kind))
        .chain(file.handler.iter().map(|h| h.kind.as_ref()));
    for k in kinds.flatten() {
        if !SOURCES.iter().any(|(word, _)| word == k) {
            out.push(format!("kind of source {k:?} not found"));
        }
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
        let has = [
            &h.decorator,
            &h.callee,
            &h.annotation,
            &h.param_type,
            &h.param_name,
            &h.function,
            &h.base,
        ];
        if has.iter().all(|l| l.is_empty()) && h.class_annotation.is_empty() && h.returns.is_empty()
        {
            out.push("handler without a condition".to_owned());
        }
    }
    out.extend(file.sink.iter().flat_map(|s| s.texts().faults()));
    out.extend(file.call.iter().flat_map(|c| c.texts().faults()));
    out
}

/// Returns the error for the name of a kind that does not exist.
fn fault_of_kind(kind: &str) -> Option<String> {
    (!KINDS.contains(&kind) && kind != "all").then(|| format!("kind {kind:?} not found"))
}

fn paths(file: &KnowledgeFile) -> Vec<&String> {
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

fn conditions(file: &KnowledgeFile) -> Vec<Condition> {
    let sinks = file.sink.iter().flat_map(|s| [&s.when, &s.unless]);
    let calls = file.call.iter().flat_map(|c| [&c.when, &c.unless]);
    let sanitizers = file.sanitizer.iter().flat_map(|s| [&s.when, &s.unless]);
    sinks
        .chain(calls)
        .chain(sanitizers)
        .flatten()
        .flat_map(Many::list)
        .collect()
}
