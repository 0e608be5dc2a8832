//! Flow of data inside a file: from sources such as a request's parameters to sinks such as a
//! query's text.
//!
//! A file is parsed by tree-sitter, lowered to a small shape that is the same for every language
//! (`shape.rs`, `lower/`), and run with abstract values (`run.rs`). The sources, sinks and
//! sanitizers are tables in `knowledge/<language>.toml`. All limits are counts, so that the result
//! is the same on every machine.

mod assign;
mod call;
mod callback;
mod check_memo;
mod check_run;
mod constant;
mod declared;
mod derivations;
mod derive;
mod doubt;
mod eval;
mod expressions;
mod guard;
mod indirect;
mod invoke;
mod joining;
mod lookup;
mod lower;
mod mark;
mod method;
mod names;
mod near;
mod operator;
mod paths;
mod prefilter;
mod run;
mod shape;
mod sink;
mod slot;
mod start;
mod strictness;
mod table;
#[cfg(test)]
mod tests;
mod trigger;
mod unknown;
mod value;
mod word;

use super::parse::{self, Parse};
use crate::finding::Severity;
use std::ops::Range;
use table::Table;
use tree_sitter::{Language, Tree};

pub use mark::is_request_mark;
pub use trigger::{Trigger, has_sink};

/// A language whose files can be analysed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FlowLanguage {
    Python,
    /// JavaScript, with JSX.
    JavaScript,
    TypeScript,
    /// TypeScript with JSX.
    Tsx,
    Java,
    Kotlin,
    Go,
    Php,
    Ruby,
    CSharp,
    C,
    Cpp,
}

impl FlowLanguage {
    /// Returns the grammar for a text. A fragment of PHP may be without `<?php`.
    fn grammar(self, text: &[u8]) -> Language {
        match self {
            Self::Php if memchr::memmem::find(text, b"<?").is_none() => {
                tree_sitter_php::LANGUAGE_PHP_ONLY.into()
            }
            Self::Python => tree_sitter_python::LANGUAGE.into(),
            Self::JavaScript => tree_sitter_javascript::LANGUAGE.into(),
            Self::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
            Self::Tsx => tree_sitter_typescript::LANGUAGE_TSX.into(),
            Self::Java => tree_sitter_java::LANGUAGE.into(),
            Self::Kotlin => tree_sitter_kotlin_ng::LANGUAGE.into(),
            Self::Go => tree_sitter_go::LANGUAGE.into(),
            Self::Php => tree_sitter_php::LANGUAGE_PHP.into(),
            Self::Ruby => tree_sitter_ruby::LANGUAGE.into(),
            Self::CSharp => tree_sitter_c_sharp::LANGUAGE.into(),
            Self::C => tree_sitter_c::LANGUAGE.into(),
            Self::Cpp => tree_sitter_cpp::LANGUAGE.into(),
        }
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)*) => {
        /// The kind of the sink of a flow.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum SinkKind { $($(#[$doc])* $name,)* }

        impl SinkKind {
            /// Every kind, in the order of `format::KINDS`.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Returns the word of the tables.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }
        }
    };
}

kinds! {
    /// A statement of SQL.
    Sql = "sql",
    /// A query of a document database.
    NoSql = "nosql",
    /// A command of a shell or a program.
    Command = "command",
    /// Code that is run.
    Code = "code",
    /// Source of a template.
    Template = "template",
    /// A filter or name of LDAP.
    Ldap = "ldap",
    /// An XPath expression.
    XPath = "xpath",
    /// An XQuery expression.
    XQuery = "xquery",
    /// A header of a response.
    Header = "header",
    /// A line of a log.
    Log = "log",
    /// A format string.
    Format = "format",
    /// Markup that a browser reads.
    Html = "html",
    /// A path of a file.
    Path = "path",
    /// A path from an archive.
    ZipSlip = "zipslip",
    /// An address that the server requests.
    Url = "url",
    /// An address that the client is sent to.
    Redirect = "redirect",
    /// Data that becomes objects.
    Deserialization = "deserialization",
    /// XML whose entities are expanded.
    Xml = "xml",
    /// A regular expression.
    Regex = "regex",
    /// A class, method or property by name.
    Reflection = "reflection",
    /// Fields of a record, all at once.
    MassAssignment = "mass-assignment",
    /// Keys of an object that can change its prototype.
    Prototype = "prototype",
    /// A value stored in a session as trusted.
    Trust = "trust",
    /// A size, index or copy in memory.
    Memory = "memory",
    /// A header of a mail.
    Email = "email",
    /// A cell of a spreadsheet.
    Csv = "csv",
    /// An origin whose pages may read the response.
    Cors = "cors",
}

impl SinkKind {
    /// Returns the bit of the kind.
    fn bit(self) -> u32 {
        1 << (self as u32)
    }
}

/// The subject of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FlowSubject {
    /// Data reaches a sink.
    Flow(SinkKind),
    /// A call is dangerous by itself: the ID of a rule.
    Rule(&'static str),
}

/// Strength of the proof of a flow. A later variant is stronger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Proof {
    /// The value comes from the caller of an ordinary function.
    Unknown,
    /// The value comes from arguments, the environment, a file or a database.
    Local,
    /// The value comes from a request, a socket or a queue. Also: a call that is dangerous by
    /// itself.
    Request,
}

/// The kind of a source. The words of the tables are in `format::SOURCES`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TaintKind {
    Request,
    Arguments,
    Environment,
    File,
    Socket,
    Queue,
    Stored,
    /// A value of unknown origin.
    Parameter,
}

impl TaintKind {
    /// Returns the strength of the proof that a source of this kind gives.
    fn proof(self) -> Proof {
        match self {
            Self::Request | Self::Socket | Self::Queue => Proof::Request,
            Self::Arguments | Self::Environment | Self::File | Self::Stored => Proof::Local,
            Self::Parameter => Proof::Unknown,
        }
    }

    /// Returns true for the command line and the environment of the program.
    fn is_of_caller(self) -> bool {
        matches!(self, Self::Arguments | Self::Environment)
    }
}

/// How certain a finding is. Later is more certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FlowCertainty {
    Low,
    Medium,
    High,
}

/// The role of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StepRole {
    /// The data enters.
    Source,
    /// The data passes through.
    Through,
    /// The data does harm.
    Sink,
}

/// A position that the data passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathStep {
    /// The first byte in the file.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
    pub role: StepRole,
}

impl PathStep {
    /// Returns the part of the step that is on added lines, from its first such line on. `added`:
    /// ranges of bytes in order.
    pub(super) fn added_part(&self, added: &[Range<usize>]) -> Option<Range<usize>> {
        let first = added.partition_point(|block| block.end <= self.start);
        let block = added.get(first).filter(|_| self.start < self.end)?;
        (block.start < self.end).then(|| self.start.max(block.start)..self.end.min(block.end))
    }
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    pub subject: FlowSubject,
    /// From the source to the sink. The sink is last.
    pub steps: Vec<PathStep>,
    pub proof: Proof,
    /// Name of the source in messages.
    pub source_label: &'static str,
    /// The source is the command line or the environment of the program.
    pub is_of_caller: bool,
    /// Name of the sink in messages.
    pub sink_label: &'static str,
    /// CWE number of the weakness, if it differs from the weakness of the subject.
    pub cwe: Option<u32>,
    pub confidence: FlowCertainty,
    /// The text at the sink starts with a constant character that starts no tag.
    pub starts_as_text: bool,
    /// Texts of the table entry.
    pub texts: &'static EntryTexts,
}

/// Texts of a table entry that replace the texts of its rule, and the highest severity of the
/// finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryTexts {
    pub title: Option<&'static str>,
    pub message: Option<&'static str>,
    pub suggestion: Option<&'static str>,
    pub severity_max: Option<Severity>,
}

impl Flow {
    /// Returns the last step: where the finding is.
    pub fn sink(&self) -> Option<&PathStep> {
        self.steps.last()
    }
}

/// The findings of a file.
#[derive(Clone, Debug, Default)]
pub struct Analysis {
    /// Flows in the order of their positions in the file.
    pub flows: Vec<Flow>,
    /// Bytes at which the calls and writes start that are sinks and can run, in order. The absence
    /// of a flow proves nothing about code that the analysis takes for dead.
    pub judged: Vec<usize>,
    /// False if a limit of size or work ended the analysis early.
    pub is_complete: bool,
    /// True if the grammar reads the whole file. If it does not, the absence of a flow proves
    /// nothing.
    pub is_readable: bool,
}

/// Returns the words of the rules that the tables name for calls.
pub fn call_words() -> impl Iterator<Item = &'static str> {
    // The other languages share the tables of these.
    let all = [
        FlowLanguage::Python,
        FlowLanguage::JavaScript,
        FlowLanguage::Java,
        FlowLanguage::Go,
        FlowLanguage::Php,
        FlowLanguage::Ruby,
        FlowLanguage::CSharp,
        FlowLanguage::C,
    ];
    all.into_iter()
        .flat_map(|language| Table::of(language).calls)
        .map(|call| call.rule)
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$' | b'!' | b'?') || b >= 0x80
}

/// Finds flows in a file.
pub fn analyse(language: FlowLanguage, text: &[u8]) -> Analysis {
    analyse_parsed(language, text, None, None)
}

/// The part of a file that a change adds.
#[derive(Clone, Copy, Debug)]
pub(super) struct AddedPart<'a> {
    /// Ranges of bytes, in order.
    pub(super) added: &'a [Range<usize>],
    /// The parts of the file through which data can reach them. `None`: the whole file.
    pub(super) parts: Option<&'a [Range<usize>]>,
}

/// Finds flows in a file that another rule may have parsed. `near`: what the change adds, if only
/// flows with a step in it matter. If there is no such flow, the result can be without the other
/// flows, and without the sinks of functions that reach no added line.
pub(super) fn analyse_parsed(
    language: FlowLanguage,
    text: &[u8],
    known: Option<&Parse<'_>>,
    near: Option<AddedPart<'_>>,
) -> Analysis {
    if !parse::is_bounded(text) {
        return Analysis::default();
    }
    let grammar = language.grammar(text);
    let known = known.and_then(|known| known.tree_of(&grammar, text));
    let parts = near.and_then(|near| near.parts).filter(|_| known.is_none());
    if let (Some(near), Some(parts)) = (near, parts)
        && let Some(tree) = parse::tree_of_parts(&grammar, text, parts)
    {
        let module = lower::module(language, tree.root_node(), text);
        if let Some(run) = start::run_near(language, &module, text, near.added) {
            return Analysis::of(run, &module, &tree);
        }
    }
    let Some(tree) = known.or_else(|| parse::tree(&grammar, text)) else {
        return Analysis::default();
    };
    let module = lower::module(language, tree.root_node(), text);
    // A run of the parts without a result has mostly found a flow through an added line. A run of
    // the same functions in the whole tree would find it too, so all functions run at once.
    let run = near
        .filter(|_| parts.is_none())
        .and_then(|near| start::run_near(language, &module, text, near.added))
        .unwrap_or_else(|| start::run(language, &module, text));
    Analysis::of(run, &module, &tree)
}

impl Analysis {
    fn of(run: start::RunOutcome, module: &shape::Module, tree: &Tree) -> Self {
        Self {
            flows: run.flows,
            judged: run.judged.into_iter().map(|at| at as usize).collect(),
            is_complete: run.is_complete && !module.is_partial,
            is_readable: !tree.root_node().has_error(),
        }
    }
}
