//! Decides by words alone whether a change can complete a flow, so that most files are never
//! parsed.
//!
//! A pattern of the tables counts if its last word is in the text, followed by a parenthesis if it
//! is a call. The file must also have the word before the last one (`requests` of
//! `requests.get()`), or a word that creates a value of that type. A sink whose only argument is a
//! literal does not count.

mod condition;
mod handler;

use super::prefilter::{has_index, has_stand_in};
use super::table::{Pattern, Place, Role, Sink, Table};
use super::word::{CodeWord, words, words_where};
use super::{FlowLanguage, is_word};
use foldhash::fast::RandomState;
use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};

/// Words with which a module declares the modules it uses.
const IMPORTS: [&str; 8] = [
    "import", "require", "using", "use", "include", "from", "package", "export",
];

/// Receivers that every object and module has. Their members can belong to a base class, or be
/// plain names.
const OBJECTS: [&[u8]; 10] = [
    b"self",
    b"this",
    b"cls",
    b"super",
    b"window",
    b"globalThis",
    b"global",
    b"root",
    b"builtins",
    b"__builtins__",
];

/// Depth of types that create other types, at most.
const LEVELS: u32 = 4;

/// The words of a file. A megabyte of text can have many words, and all of them are hashed.
type Words<'t> = HashSet<&'t str, RandomState>;

/// Returns true if a text has the name of a sink, so that the analysis follows the data into it.
pub fn has_sink(language: FlowLanguage, text: &[u8]) -> bool {
    let table = Table::of(language);
    words(text).any(|w| {
        table
            .ending(w.text)
            .iter()
            .any(|p| matches!(p.role, Role::Sink(_)))
    })
}

/// Returns true if values of unknown origin are reported for a sink.
fn reports_unknown(sink: &Sink) -> bool {
    sink.unknown != Some(false)
}

/// A file whose words decide which parts of it can complete a flow. A change can have thousands of
/// parts, so the words are collected once.
#[derive(Debug)]
pub struct Trigger<'t> {
    language: FlowLanguage,
    table: &'static Table,
    text: &'t [u8],
    words: OnceCell<Words<'t>>,
    marks: OnceCell<Words<'t>>,
    /// By type: true if the file can have a value of it.
    types: RefCell<HashMap<&'static str, bool>>,
    has_imports: OnceCell<bool>,
    has_source: OnceCell<bool>,
    has_handler: OnceCell<bool>,
    settings: OnceCell<Vec<&'static str>>,
}

impl<'t> Trigger<'t> {
    /// `text`: the whole file, with its imports.
    pub fn new(language: FlowLanguage, text: &'t [u8]) -> Self {
        Self {
            language,
            table: Table::of(language),
            text,
            words: OnceCell::new(),
            marks: OnceCell::new(),
            types: RefCell::default(),
            has_imports: OnceCell::new(),
            has_source: OnceCell::new(),
            has_handler: OnceCell::new(),
            settings: OnceCell::new(),
        }
    }

    /// Returns true if the file can contain a sink or a call of interest.
    pub fn may_match_file(&self) -> bool {
        self.may_match(self.text)
    }

    /// Returns true if a part of the file can contain a sink or a call of interest.
    pub fn may_match(&self, part: &[u8]) -> bool {
        if has_stand_in(self.language, part) {
            return true;
        }
        let mut has_weak = false;
        for (found, word) in self.candidates(part) {
            match found.role {
                Role::Call(at) if self.may_hold(at, word) => return true,
                Role::Sink(at) => {
                    let sink = self
                        .table
                        .sinks
                        .get(usize::from(at))
                        .filter(|sink| !self.is_constant(sink, found, word));
                    match sink {
                        Some(sink) if reports_unknown(sink) => return true,
                        Some(_) => has_weak = true,
                        None => {}
                    }
                }
                _ => {}
            }
        }
        // The other sinks need data from outside. The result of a handler is a page.
        let may_have_item = matches!(self.language, FlowLanguage::C | FlowLanguage::Cpp);
        (has_weak || may_have_item && has_index(part)) && self.has_source()
            || self.is_returned(part)
    }

    /// Returns true if the file can have data from outside and a sink that the data can reach. Each
    /// changed line can be a step between them.
    pub fn may_flow(&self) -> bool {
        self.has_source()
            && self
                .candidates(self.text)
                .any(|(pattern, word)| self.is_open_sink(pattern, word))
    }

    /// Returns true if a word can be a sink whose value is not a constant.
    fn is_open_sink(&self, pattern: &Pattern, word: CodeWord<'_>) -> bool {
        match pattern.role {
            Role::Sink(at) => self
                .table
                .sinks
                .get(usize::from(at))
                .is_some_and(|s| !self.is_constant(s, pattern, word)),
            _ => false,
        }
    }

    /// Returns true if a part has a word of a sanitizer, a check or a call of interest, or a
    /// setting whose absence makes a call dangerous. A change that removes such a word can complete
    /// a flow, or fulfil the conditions of a call.
    pub fn has_protection_in(&self, part: &[u8]) -> bool {
        has_stand_in(self.language, part)
            || self
                .candidates(part)
                .any(|(p, _)| matches!(p.role, Role::Sanitizer(_) | Role::Guard(_) | Role::Call(_)))
            || words(part).any(|word| self.settings().contains(&word.text))
    }

    /// Returns the names of the settings without which a call is dangerous.
    fn settings(&self) -> &[&'static str] {
        self.settings.get_or_init(|| {
            self.table
                .calls
                .iter()
                .flat_map(|call| call.absent.iter().copied())
                .collect()
        })
    }

    /// Returns true if the first argument of a sink is a literal, and the sink gets data only from
    /// that argument.
    fn is_constant(&self, sink: &Sink, pattern: &Pattern, word: CodeWord<'_>) -> bool {
        pattern.call
            && !sink.args.is_empty()
            && sink.args.iter().all(|place| self.is_first_or_absent(place))
            && word.literal(self.language).is_some()
    }

    /// Returns true for the first argument, and for a keyword that the file does not have.
    fn is_first_or_absent(&self, place: &Place) -> bool {
        match place {
            Place::Arg(0) => true,
            Place::Keyword(name) => name
                .split('.')
                .next_back()
                .is_some_and(|name| !self.words().contains(name)),
            _ => false,
        }
    }

    /// Returns the patterns that a part of the file can match.
    fn candidates<'s>(
        &'s self,
        part: &'s [u8],
    ) -> impl Iterator<Item = (&'static Pattern, CodeWord<'s>)> + 's {
        words_where(part, move |word, rest| {
            self.table.may_end(word) || opens_index(rest)
        })
        .flat_map(move |word| self.named(word).map(move |pattern| (pattern, word)))
    }

    /// Returns the patterns that a word can match.
    fn named<'s>(&'s self, word: CodeWord<'s>) -> impl Iterator<Item = &'static Pattern> + 's {
        let mut ending = self.table.ending(word.text);
        let mut is_indexed = word.after() == Some(b'[');
        if (is_indexed || !ending.is_empty()) && word.is_in_comment(self.language) {
            (ending, is_indexed) = (&[], false);
        }
        let indexed = is_indexed.then(|| self.indexed(word)).into_iter().flatten();
        ending
            .iter()
            .filter(move |p| self.may_be(p, word))
            .chain(indexed)
    }

    /// Returns the patterns that an index or key of a word can match: `session.[]=()` for
    /// `session[`.
    fn indexed(&self, word: CodeWord<'_>) -> impl Iterator<Item = &'static Pattern> + use<> {
        let (table, of_word) = (self.table, word.text.to_owned());
        let patterns = ["[]", "[]="].into_iter().flat_map(|end| table.ending(end));
        patterns.filter(move |p| !p.prefix.is_empty() && last_of(p.prefix) == of_word)
    }

    fn may_be(&self, pattern: &'static Pattern, word: CodeWord<'_>) -> bool {
        let is_named = match pattern.prefix.is_empty() {
            true => pattern.any || !self.is_of_object(word),
            false => {
                self.may_have(pattern.prefix, word)
                    && !self.is_bare_member(pattern, word)
                    && self.may_be_received(pattern, word)
            }
        };
        let is_used = match (pattern.call, pattern.new) {
            (true, true) => word.is_made(self.language),
            (true, false) => word.is_called(self.language),
            (false, _) => true,
        };
        is_named && is_used
    }

    /// Returns true if a word is the member of a value, and cannot be a function without a
    /// receiver: `store.session()`.
    fn is_of_object(&self, word: CodeWord<'_>) -> bool {
        let has_objects = !matches!(
            self.language,
            FlowLanguage::Ruby | FlowLanguage::Php | FlowLanguage::C | FlowLanguage::Cpp
        );
        let Some(name) = word.receiver().filter(|_| has_objects) else {
            return false;
        };
        // A class can be named with its package.
        !word.text.starts_with(|c: char| c.is_ascii_uppercase()) && !OBJECTS.contains(&name)
    }

    /// Returns false if the receiver of a member differs from the receiver of a pattern:
    /// `tool.run()` is not `app.run()` if no line gives `tool` a value or a type. Applies only to
    /// languages whose declarations show that.
    fn may_be_received(&self, pattern: &'static Pattern, word: CodeWord<'_>) -> bool {
        let shows = matches!(
            self.language,
            FlowLanguage::Python
                | FlowLanguage::JavaScript
                | FlowLanguage::TypeScript
                | FlowLanguage::Tsx
        );
        let Some(receiver) = word.receiver().filter(|_| shows && !pattern.any) else {
            return true;
        };
        let name = last_of(pattern.prefix).as_bytes();
        // `require("child_process").exec(…)`: the name is in the expression.
        let is_named = receiver == name || receiver.is_empty() && word.follows(name);
        is_named
            || OBJECTS.contains(&receiver)
            || self.has_maker_of(pattern.prefix, LEVELS)
            || !receiver.is_empty() && self.is_bound(receiver)
    }

    /// Returns true if the file can give a name a value or a type, other than by importing a module
    /// or member of that name.
    fn is_bound(&self, name: &[u8]) -> bool {
        let places = memchr::memmem::find_iter(self.text, name)
            .filter(|at| is_whole(self.text, *at, name.len()));
        let mut places = places;
        places.any(|at| {
            let (before, after) = (
                self.text[..at].trim_ascii_end(),
                self.text[at + name.len()..].trim_ascii_start(),
            );
            let is_set = matches!(after.first(), Some(b'=' | b':' | b',' | b'}' | b']'))
                && !after.starts_with(b"==");
            let is_next = [&b"in "[..], b"of ", b"from "]
                .iter()
                .any(|word| after.starts_with(word));
            let body = after.strip_prefix(b")").map(<[u8]>::trim_ascii_start);
            let is_parameter =
                body.is_some_and(|body| body.starts_with(b"=>") || body.starts_with(b"{"));
            is_set || is_next || is_parameter || before.ends_with(b" as")
        })
    }

    /// Returns true if a word has no receiver but the pattern is a member of a type, because a
    /// field has a receiver.
    fn is_bare_member(&self, pattern: &Pattern, word: CodeWord<'_>) -> bool {
        let has_receivers = matches!(self.language, FlowLanguage::Python | FlowLanguage::Go);
        let is_type = last_of(pattern.prefix).starts_with(|c: char| c.is_ascii_uppercase());
        let is_quoted = matches!(word.before(), Some(b'"' | b'\''));
        has_receivers && is_type && !pattern.call && !word.is_member() && !is_quoted
    }

    /// Returns true if the file can have a value or a module of this path before a word.
    fn may_have(&self, prefix: &'static str, word: CodeWord<'_>) -> bool {
        // A snippet without imports uses the usual modules, and names of C# need no import in the
        // file.
        let is_member = word.is_member();
        if !is_member && self.language == FlowLanguage::CSharp {
            return true;
        }
        if !is_member && !self.has_imports() {
            return true;
        }
        self.has_value_of(prefix, LEVELS)
    }

    /// Returns true if the file declares the modules that it uses.
    fn has_imports(&self) -> bool {
        *self
            .has_imports
            .get_or_init(|| IMPORTS.iter().any(|w| self.words().contains(w)))
    }

    /// Returns true if the file has the last word of a path, or a word that creates a value of that
    /// type.
    fn has_value_of(&self, path: &'static str, levels: u32) -> bool {
        let last = last_of(path);
        if last.is_empty() || self.words().contains(last) {
            return true;
        }
        self.has_maker_of(path, levels)
    }

    /// Returns true if the file has a word that creates a value of a type.
    fn has_maker_of(&self, path: &'static str, levels: u32) -> bool {
        if let Some(known) = self.types.borrow().get(path) {
            return *known;
        }
        self.types.borrow_mut().insert(path, false);
        let can = levels > 0 && self.can_make(path, levels - 1);
        self.types.borrow_mut().insert(path, can);
        can
    }

    /// Returns true if the file has a word that creates a value of a type: a call, a conventional
    /// name, or a handler's parameter.
    fn can_make(&self, ty: &'static str, levels: u32) -> bool {
        let Some(makers) = self.table.makers_of(ty) else {
            return false;
        };
        let handlers = makers
            .handlers
            .iter()
            .filter_map(|at| self.table.handlers.get(usize::from(*at)));
        let patterns = makers
            .patterns
            .iter()
            .filter_map(|at| self.table.patterns.get(usize::from(*at)));
        let is_used = |p: &Pattern| {
            self.words().contains(p.last)
                && (p.prefix.is_empty() || self.has_value_of(p.prefix, levels))
        };
        makers.names.iter().any(|name| self.words().contains(name))
            || handlers.into_iter().any(|h| self.may_have_handler(h))
            || patterns.into_iter().any(is_used)
    }

    /// Returns true if the file can have data from outside.
    pub fn has_source(&self) -> bool {
        *self.has_source.get_or_init(|| {
            self.has_handler()
                || self
                    .candidates(self.text)
                    .any(|(p, _)| matches!(p.role, Role::Source(_)))
        })
    }

    /// Returns true if the file can pass a function to a callee, such as `web.App.get()`.
    fn may_have_callee(&self, callee: &'static str) -> bool {
        let callee = callee.trim_end_matches("()");
        let (prefix, last) = callee.rsplit_once('.').unwrap_or(("", callee));
        let is_any = prefix.starts_with('*');
        self.words().contains(last_of(last))
            && (prefix.is_empty() || is_any || self.has_value_of(prefix, LEVELS))
    }

    fn words(&self) -> &Words<'t> {
        self.words
            .get_or_init(|| words(self.text).map(|w| w.text).collect())
    }

    /// Returns the words of decorators, annotations and attributes.
    fn marks(&self) -> &Words<'t> {
        self.marks.get_or_init(|| {
            let lines = self.text.split(|b| *b == b'\n');
            let marked = lines.filter(|line| {
                matches!(
                    line.trim_ascii_start(),
                    [b'@' | b'[', ..] | [b'#', b'[', ..]
                )
            });
            let inner = words(self.text).filter(|word| matches!(word.before(), Some(b'@' | b'[')));
            marked
                .flat_map(words)
                .chain(inner)
                .map(|word| word.text)
                .collect()
        })
    }
}

/// Returns true if a bracket follows a word.
fn opens_index(rest: &[u8]) -> bool {
    rest.iter().find(|b| !matches!(b, b' ' | b'\t')) == Some(&b'[')
}

/// Returns true if a part of a text starts and ends at word boundaries.
fn is_whole(text: &[u8], at: usize, len: usize) -> bool {
    let before = at.checked_sub(1).and_then(|i| text.get(i));
    !text.get(at + len).is_some_and(|b| is_word(*b)) && !before.is_some_and(|b| is_word(*b))
}

/// Returns true if the last word of one of the paths is in a set of words.
fn has_any(words: &Words<'_>, paths: &[&'static str]) -> bool {
    paths.iter().any(|path| words.contains(last_of(path)))
}

/// Returns the last word of a path: `get` of `requests.get`, `exec` of `os/exec`.
fn last_of(path: &'static str) -> &'static str {
    path.rsplit(['.', '/', '\\', '*', '-', '(', ')'])
        .find(|word| !word.is_empty())
        .unwrap_or("")
}

#[cfg(test)]
mod tests;
