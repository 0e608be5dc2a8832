//! Knowledge as static tables. The build script generates them from `knowledge/*.toml`.

use super::slot::{SLOTS, slot};
use super::{EntryTexts, FlowCertainty, FlowLanguage, SinkKind, TaintKind};
use crate::finding::Severity;

/// A part of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Arg(u8),
    Keyword(&'static str),
    /// This position and all after it.
    From(u8),
    /// `**options`.
    Spread,
    Receiver,
    All,
    Result,
}

/// The role of an expression that a pattern matches, with its index in the list of that role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Source(u16),
    Type(u16),
    Sink(u16),
    Sanitizer(u16),
    Guard(u16),
    Propagator(u16),
    Call(u16),
}

/// A path of names.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) last: &'static str,
    /// Path without `*.`.
    pub(super) prefix: &'static str,
    /// True if the pattern starts with `*`.
    pub(super) any: bool,
    pub(super) call: bool,
    pub(super) new: bool,
    /// A write to a member, or an attribute of markup.
    pub(super) write: bool,
    pub(super) role: Role,
}

/// A condition on an argument.
#[derive(Debug)]
pub(super) struct Condition {
    pub(super) arg: Option<Place>,
    pub(super) element: Option<u8>,
    pub(super) values: Option<&'static [&'static str]>,
    pub(super) pattern: Option<&'static str>,
    pub(super) text: Option<&'static str>,
    pub(super) types: &'static [&'static str],
    pub(super) present: Option<bool>,
    pub(super) has: Option<&'static str>,
    pub(super) absent: Option<&'static str>,
    pub(super) constant: Option<bool>,
    pub(super) requested: Option<bool>,
    pub(super) count_min: Option<u8>,
    pub(super) count_max: Option<u8>,
    pub(super) into: Option<&'static str>,
    pub(super) or_imported: Option<&'static str>,
}

#[derive(Debug)]
pub(super) struct Source {
    pub(super) label: &'static str,
    pub(super) kind: TaintKind,
    pub(super) args: &'static [Place],
    /// Kinds for which the data is harmless.
    pub(super) clean: u32,
    pub(super) when: &'static [Condition],
    pub(super) unless: &'static [Condition],
}

#[derive(Debug)]
pub(super) struct Handler {
    pub(super) framework: &'static str,
    pub(super) decorator: &'static [&'static str],
    pub(super) callee: &'static [&'static str],
    pub(super) annotation: &'static [&'static str],
    pub(super) param_type: &'static [&'static str],
    pub(super) param_name: &'static [&'static str],
    pub(super) function: &'static [&'static str],
    pub(super) base: &'static [&'static str],
    pub(super) class_annotation: &'static [&'static str],
    pub(super) params: &'static [Place],
    pub(super) ty: Option<&'static str>,
    pub(super) label: &'static str,
    pub(super) kind: TaintKind,
    pub(super) not_type: &'static [&'static str],
    pub(super) except_default: &'static [&'static str],
    pub(super) clean: u32,
    pub(super) returns: &'static [&'static str],
    pub(super) when: &'static [Condition],
}

/// Makers of values of a type. A text that contains none of them has no value of the type.
#[derive(Debug)]
pub(super) struct Makers {
    /// Conventional names of variables.
    pub(super) names: &'static [&'static str],
    /// Indexes of handlers whose parameters have the type.
    pub(super) handlers: &'static [u16],
    /// Indexes of patterns of calls and reads.
    pub(super) patterns: &'static [u16],
}

/// The type of a call or read.
#[derive(Debug)]
pub(super) struct Type {
    pub(super) is: &'static str,
    pub(super) to: &'static [Place],
    pub(super) when: &'static [Condition],
    pub(super) unless: &'static [Condition],
}

#[derive(Debug)]
pub(super) struct Sink {
    pub(super) kind: SinkKind,
    pub(super) label: &'static str,
    pub(super) args: &'static [Place],
    pub(super) when: &'static [Condition],
    pub(super) unless: &'static [Condition],
    /// Reports values of unknown origin always, never, or (none) if they are joined with text.
    pub(super) unknown: Option<bool>,
    pub(super) element: Option<u8>,
    pub(super) literal: bool,
    /// The framework whose handlers return the value to the client.
    pub(super) returns: Option<&'static str>,
    pub(super) late: bool,
    pub(super) cwe: Option<u32>,
    pub(super) confidence: FlowCertainty,
    pub(super) texts: EntryTexts,
}

#[derive(Debug)]
pub(super) struct Sanitizer {
    pub(super) kinds: u32,
    pub(super) args: &'static [Place],
    pub(super) when: &'static [Condition],
    pub(super) unless: &'static [Condition],
}

#[derive(Debug)]
pub(super) struct Guard {
    pub(super) kinds: u32,
    pub(super) args: &'static [Place],
    pub(super) negative: bool,
    pub(super) when: &'static [Condition],
    pub(super) unless: &'static [Condition],
}

#[derive(Debug)]
pub(super) struct Propagator {
    pub(super) from: &'static [Place],
    pub(super) to: &'static [Place],
    pub(super) same: Option<u8>,
    pub(super) strong: bool,
    pub(super) exposes: u32,
    pub(super) when: &'static [Condition],
    pub(super) unless: &'static [Condition],
}

#[derive(Debug)]
pub(super) struct Call {
    pub(super) rule: &'static str,
    pub(super) label: &'static str,
    pub(super) when: &'static [Condition],
    pub(super) unless: &'static [Condition],
    pub(super) absent: &'static [&'static str],
    pub(super) into: Option<&'static str>,
    pub(super) cwe: Option<u32>,
    pub(super) confidence: FlowCertainty,
    pub(super) texts: EntryTexts,
}

/// The knowledge about a language.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) usual: &'static [&'static str],
    /// The last name of each usual module with its path, sorted.
    pub(super) usual_names: &'static [(&'static str, &'static str)],
    pub(super) sources: &'static [Source],
    pub(super) handlers: &'static [Handler],
    /// The type of a call or read.
    pub(super) types: &'static [Type],
    /// Conventional names of variables, sorted, with numbers of `types`.
    pub(super) names: &'static [(&'static str, u16)],
    pub(super) sinks: &'static [Sink],
    pub(super) sanitizers: &'static [Sanitizer],
    pub(super) guards: &'static [Guard],
    pub(super) propagators: &'static [Propagator],
    pub(super) calls: &'static [Call],
    /// Patterns, sorted by `last`.
    pub(super) patterns: &'static [Pattern],
    /// The filter of `last`; see [`super::slot`].
    pub(super) slots: &'static [u64; SLOTS / 64],
    /// Makers of values of each type, sorted by the type.
    pub(super) makers: &'static [(&'static str, Makers)],
}

impl Table {
    /// Returns the table of a language.
    pub(super) fn of(language: FlowLanguage) -> &'static Self {
        match language {
            FlowLanguage::Python => &PYTHON,
            FlowLanguage::JavaScript | FlowLanguage::TypeScript | FlowLanguage::Tsx => &JAVASCRIPT,
            FlowLanguage::Java | FlowLanguage::Kotlin => &JAVA,
            FlowLanguage::Go => &GO,
            FlowLanguage::Php => &PHP,
            FlowLanguage::Ruby => &RUBY,
            FlowLanguage::CSharp => &CSHARP,
            FlowLanguage::C | FlowLanguage::Cpp => &C,
        }
    }

    /// Returns false if no pattern has this last word.
    pub(super) fn may_end(&self, last: &[u8]) -> bool {
        let slot = slot(last);
        self.slots
            .get(slot / 64)
            .is_none_or(|bits| bits >> (slot % 64) & 1 == 1)
    }

    /// Returns the patterns whose last word is `last`.
    pub(super) fn ending(&self, last: &str) -> &'static [Pattern] {
        if !self.may_end(last.as_bytes()) {
            return &[];
        }
        let start = self.patterns.partition_point(|p| p.last < last);
        let rest = self.patterns.get(start..).unwrap_or_default();
        let end = rest.partition_point(|p| p.last == last);
        rest.get(..end).unwrap_or_default()
    }

    /// Returns the makers of values of a type. `None`: the type has none.
    pub(super) fn makers_of(&self, ty: &str) -> Option<&'static Makers> {
        let at = self
            .makers
            .binary_search_by(|(name, _)| (*name).cmp(ty))
            .ok()?;
        self.makers.get(at).map(|(_, makers)| makers)
    }

    /// Returns the type that a conventional name suggests.
    pub(super) fn named(&self, name: &str) -> Option<&'static str> {
        let i = self.names.binary_search_by(|(n, _)| (*n).cmp(name)).ok()?;
        self.types
            .get(usize::from(self.names.get(i)?.1))
            .map(|t| t.is)
    }
}

include!(concat!(env!("OUT_DIR"), "/knowledge.rs"));
