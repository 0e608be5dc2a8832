//! Decides by words alone whether a change can complete a flow, so that most files are never
//! parsed.
//!
//! A pattern of the tables counts if its last word is in the text, followed by a parenthesis if it
//! is a call. The file must also have the word before the last one (`requests` of
//! `requests.get()`), or a word that creates a value of that type. A sink whose only argument is a
//! literal does not count.

use super::prefilter::{has_index, has_stand_in};
use super::sink::same;
use super::table::{Condition, Handler, Pattern, Place, Role, Sink, Table};
use super::word::{CodeWord, is_indirect, words, words_where};
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

/// Annotations of Spring and JAX-RS, of classes and methods whose result is a page or the name of
/// one.
const PAGES: [&str; 5] = [
    "Controller",
    "RestController",
    "ResponseBody",
    "ControllerAdvice",
    "Produces",
];

/// Occurrences of a name that are checked, at most. A file with more counts as a match.
const MOST_PLACES: usize = 500;

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
    expressions: RefCell<HashMap<&'static str, Option<regex::Regex>>>,
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
            expressions: RefCell::default(),
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

    /// Returns false if the text shows that the conditions of a call of interest do not hold for
    /// its first argument.
    fn may_hold(&self, call: u16, word: CodeWord<'_>) -> bool {
        let Some(call) = self.table.calls.get(usize::from(call)) else {
            return true;
        };
        let is_direct = !is_indirect(word.whole, word.start, word.end);
        call.when.iter().all(|condition| {
            let needed = condition.text.and_then(needed_word);
            let is_first =
                is_direct && condition.arg == Some(Place::Arg(0)) && condition.element.is_none();
            needed.is_none_or(|name| self.words().contains(name))
                && option_of(condition).is_none_or(|name| self.may_have_option(name))
                && (!is_first || self.may_hold_first(condition, word))
        })
    }

    /// Returns true if the file can name an option. `name`: keys of nested options, separated by
    /// dots.
    fn may_have_option(&self, name: &str) -> bool {
        name.split('.')
            .all(|key| !key.bytes().all(is_word) || self.words().contains(key))
    }

    /// Returns false if a condition on the first argument of a call does not hold.
    fn may_hold_first(&self, condition: &'static Condition, word: CodeWord<'_>) -> bool {
        let start = condition
            .text
            .and_then(|text| text.strip_prefix('^'))
            .and_then(needed_word);
        if let (Some(start), Some(arguments)) = (
            start.filter(|start| starts_with_word(condition, start)),
            word.arguments(),
        ) && !arguments.is_empty()
            && !matches!(arguments.first(), Some(b'/' | b'#'))
            && !arguments.starts_with(start.as_bytes())
        {
            return false;
        }
        let asks = condition.values.is_some() || condition.pattern.is_some();
        let Some(literal) = word.literal(self.language).filter(|_| asks) else {
            return true;
        };
        condition
            .values
            .is_none_or(|values| values.iter().any(|value| same(value, &literal)))
            && condition
                .pattern
                .is_none_or(|pattern| self.fits(pattern, &literal))
    }

    /// Returns true if an expression of the tables matches a text.
    fn fits(&self, pattern: &'static str, text: &str) -> bool {
        let mut expressions = self.expressions.borrow_mut();
        let expression = expressions
            .entry(pattern)
            .or_insert_with(|| regex::Regex::new(pattern).ok());
        expression
            .as_ref()
            .is_none_or(|expression| expression.is_match(text))
    }

    /// Returns true if the file can have data from outside.
    fn has_source(&self) -> bool {
        *self.has_source.get_or_init(|| {
            self.has_handler()
                || self
                    .candidates(self.text)
                    .any(|(p, _)| matches!(p.role, Role::Source(_)))
        })
    }

    /// Returns true if a function of the file can be a handler that a framework calls with data.
    fn has_handler(&self) -> bool {
        *self.has_handler.get_or_init(|| {
            self.table
                .handlers
                .iter()
                .any(|handler| self.may_have_handler(handler))
        })
    }

    /// Returns true if the file has a word for each condition of a handler.
    fn may_have_handler(&self, h: &Handler) -> bool {
        let marks = [h.decorator, h.annotation, h.class_annotation];
        // A snippet of C# is treated as part of the usual class.
        let is_snippet = self.language == FlowLanguage::CSharp && !self.words().contains("class");
        let base = if is_snippet { &[][..] } else { h.base };
        let functions = h.function;
        let has_parameter = h.param_type.is_empty() && h.param_name.is_empty()
            || has_any(self.words(), h.param_type)
            || h.param_name.iter().any(|name| self.has_parameter(name));
        has_parameter
            && (h.callee.is_empty() || h.callee.iter().any(|callee| self.may_have_callee(callee)))
            && (base.is_empty() || base.iter().any(|base| self.has_base(base)))
            && marks
                .iter()
                .all(|names| names.is_empty() || has_any(self.marks(), names))
            && (functions.is_empty() || functions.iter().any(|name| self.has_function(name)))
            && (h.returns.is_empty() || has_any(self.words(), h.returns))
    }

    /// Returns true if the file can pass a function to a callee, such as `web.App.get()`.
    fn may_have_callee(&self, callee: &'static str) -> bool {
        let callee = callee.trim_end_matches("()");
        let (prefix, last) = callee.rsplit_once('.').unwrap_or(("", callee));
        let is_any = prefix.starts_with('*');
        self.words().contains(last_of(last))
            && (prefix.is_empty() || is_any || self.has_value_of(prefix, LEVELS))
    }

    /// Returns true if the file can have a function of a name, which may end with `*`.
    fn has_function(&self, name: &'static str) -> bool {
        let (name, is_start) = match name.strip_suffix('*') {
            Some(start) => (start, true),
            None => (last_of(name), false),
        };
        let mut found = memchr::memmem::find_iter(self.text, name);
        name.is_empty()
            || found.any(|at| {
                let rest = &self.text[at + name.len()..];
                let more = rest.iter().take_while(|b| is_start && is_word(**b)).count();
                let rest = &rest[more..];
                !at.checked_sub(1).is_some_and(|i| is_word(self.text[i]))
                    && matches!(
                        rest.trim_ascii_start().first(),
                        Some(b'(' | b'=' | b':' | b'<')
                    )
            })
    }

    /// Returns true if the file can have a class that extends a class of this path.
    fn has_base(&self, base: &'static str) -> bool {
        let name = last_of(base);
        self.words().contains(name)
            && memchr::memmem::find_iter(self.text, name).any(|at| {
                let near = &self.text[at.saturating_sub(200)..at];
                let path = near
                    .iter()
                    .rev()
                    .take_while(|b| is_word(**b) || matches!(b, b'.' | b'\\'))
                    .count();
                let before = self.text[..at - path].trim_ascii_end();
                matches!(before.last(), Some(b'(' | b':' | b',' | b'<'))
                    || [&b"extends"[..], b"implements", b"with"]
                        .iter()
                        .any(|word| before.ends_with(word))
            })
    }

    /// Returns true if the file can have a parameter of this name: it is a word between parentheses
    /// that a body follows.
    fn has_parameter(&self, name: &str) -> bool {
        self.words().contains(name)
            && match self.language {
                FlowLanguage::JavaScript
                | FlowLanguage::TypeScript
                | FlowLanguage::Tsx
                | FlowLanguage::Python
                | FlowLanguage::Go
                | FlowLanguage::C => memchr::memmem::find_iter(self.text, name)
                    .filter(|at| is_whole(self.text, *at, name.len()))
                    .enumerate()
                    .any(|(n, at)| n > MOST_PLACES || is_parameter(self.text, at, name.len())),
                _ => true,
            }
    }

    /// Returns true if a text can be the end of a handler that returns a page. In Ruby, the last
    /// expression is the end.
    fn is_returned(&self, text: &[u8]) -> bool {
        match self.language {
            FlowLanguage::Ruby => self.words().contains("sinatra"),
            FlowLanguage::Python => {
                has_return(text)
                    && self
                        .table
                        .handlers
                        .iter()
                        .any(|h| self.has_pages(h) && self.may_have_handler(h))
            }
            FlowLanguage::Java | FlowLanguage::Kotlin => {
                has_return(text) && PAGES.iter().any(|word| self.words().contains(word))
            }
            _ => false,
        }
    }

    /// Returns true if the framework of a handler sends what the handler returns as a page.
    fn has_pages(&self, handler: &Handler) -> bool {
        self.table
            .sinks
            .iter()
            .any(|s| s.returns.is_some_and(|r| r == handler.framework))
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

/// Returns true if a text has the keyword `return`.
fn has_return(text: &[u8]) -> bool {
    words(text).any(|word| word.text == "return")
}

/// Returns true if a bracket follows a word.
fn opens_index(rest: &[u8]) -> bool {
    rest.iter().find(|b| !matches!(b, b' ' | b'\t')) == Some(&b'[')
}

/// Returns true if a word of Python, JavaScript, Go or C can be the name of a parameter: `=>` or a
/// brace follows it or its parentheses, or `def` or `func` precedes the parentheses. If the text is
/// ambiguous, the word counts as a parameter.
fn is_parameter(text: &[u8], at: usize, len: usize) -> bool {
    /// Bytes of a parameter list that are searched in each direction, at most.
    const MOST: usize = 2000;
    let end = at + len;
    let rest = text[end..].trim_ascii_start();
    let line = text[at.saturating_sub(MOST)..at]
        .rsplit(|b| *b == b'\n')
        .next()
        .unwrap_or_default();
    if rest.starts_with(b"=>") || memchr::memmem::find(line, b"lambda ").is_some() {
        return true;
    }
    let Some(open) = opening(&text[at.saturating_sub(MOST)..at]) else {
        return at > MOST;
    };
    let before = open.trim_ascii_end();
    let line = before.rsplit(|b| *b == b'\n').next().unwrap_or_default();
    if [&b"def "[..], b"func"]
        .iter()
        .any(|word| memchr::memmem::find(line, word).is_some())
    {
        return true;
    }
    let Some(after) = closing(&text[end..text.len().min(end + MOST)]) else {
        return text.len() > end + MOST;
    };
    let after = after.trim_ascii_start();
    after.starts_with(b"=>") || after.starts_with(b"{") || after.starts_with(b":")
}

/// Returns true if a part of a text starts and ends at word boundaries.
fn is_whole(text: &[u8], at: usize, len: usize) -> bool {
    let before = at.checked_sub(1).and_then(|i| text.get(i));
    !text.get(at + len).is_some_and(|b| is_word(*b)) && !before.is_some_and(|b| is_word(*b))
}

/// Returns the text before the parenthesis that is open at the end of a text.
fn opening(text: &[u8]) -> Option<&[u8]> {
    let mut open = 0;
    for (at, byte) in text.iter().enumerate().rev() {
        match byte {
            b')' => open += 1,
            b'(' if open == 0 => return Some(&text[..at]),
            b'(' => open -= 1,
            _ => {}
        }
    }
    None
}

/// Returns the text after the parenthesis that closes the one before a text.
fn closing(text: &[u8]) -> Option<&[u8]> {
    let mut open = 0;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'(' => open += 1,
            b')' if open == 0 => return Some(&text[at + 1..]),
            b')' => open -= 1,
            _ => {}
        }
    }
    None
}

/// Returns true if the last word of one of the paths is in a set of words.
fn has_any(words: &Words<'_>, paths: &[&'static str]) -> bool {
    paths.iter().any(|path| words.contains(last_of(path)))
}

/// Returns the option that a call must have for a condition to hold.
fn option_of(condition: &Condition) -> Option<&'static str> {
    let asks =
        condition.values.is_some() || condition.pattern.is_some() || condition.text.is_some();
    let asks = asks
        || condition.constant.is_some()
        || condition.requested.is_some()
        || !condition.types.is_empty();
    match condition.arg {
        Some(Place::Keyword(name)) if asks || condition.present == Some(true) => Some(name),
        _ => condition.has,
    }
}

/// Returns a word that the text of an argument must contain to match a regular expression:
/// `forEach` of `^[^({]*\.forEach\(`. `None`: the expression has alternatives or groups, or no
/// word.
fn needed_word(expression: &'static str) -> Option<&'static str> {
    let bytes = expression.as_bytes();
    if bytes.iter().any(|b| matches!(b, b'|' | b'?')) {
        return None;
    }
    let (mut best, mut start, mut at, mut is_class) = (0..0, None, 0, false);
    while at <= bytes.len() {
        let byte = bytes.get(at).copied();
        let is_letter = byte.is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_') && !is_class;
        match (is_letter, start) {
            (true, None) => start = Some(at),
            (false, Some(from)) => {
                // The last letter can be repeated.
                let end = if matches!(byte, Some(b'*' | b'+' | b'{')) {
                    at - 1
                } else {
                    at
                };
                if end > from && end - from > best.len() {
                    best = from..end;
                }
                start = None;
            }
            _ => {}
        }
        match byte {
            Some(b'[') => is_class = true,
            Some(b']') => is_class = false,
            Some(b'(') if !is_class => return None,
            Some(b'\\') => at += 1,
            _ => {}
        }
        at += 1;
    }
    expression.get(best).filter(|word| word.len() > 2)
}

/// Returns true if the text of a condition is `^word$` or `^word\b`.
fn starts_with_word(condition: &Condition, word: &str) -> bool {
    let rest = condition
        .text
        .and_then(|text| text.strip_prefix('^')?.strip_prefix(word));
    matches!(rest, Some("$" | "\\b"))
}

/// Returns the last word of a path: `get` of `requests.get`, `exec` of `os/exec`.
fn last_of(path: &'static str) -> &'static str {
    path.rsplit(['.', '/', '\\', '*', '-', '(', ')'])
        .find(|word| !word.is_empty())
        .unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns true if a part of a file can contain a sink or a call of interest.
    fn may_match(language: FlowLanguage, file: &str, part: &str) -> bool {
        let text = format!("{file}\n{part}");
        Trigger::new(language, text.as_bytes()).may_match(part.as_bytes())
    }

    #[test]
    fn a_sink_that_gets_a_literal_does_not_count() {
        let python = "import os, subprocess, hashlib, re";
        for part in [
            "os.system(x)",
            "os.system('ls ' + x)",
            "os.system(f'ls {x}')",
            "os.system(\n",
            "run = os.system",
        ] {
            assert!(may_match(FlowLanguage::Python, python, part), "{part}");
        }
        assert!(!may_match(FlowLanguage::Python, python, "os.system('ls')"));
    }

    #[test]
    fn a_call_counts_if_its_conditions_can_hold_for_a_literal() {
        let python = "import hashlib, re";
        assert!(may_match(
            FlowLanguage::Python,
            python,
            "re.compile(r'^(\\w+)+$')"
        ));
        assert!(!may_match(
            FlowLanguage::Python,
            python,
            "re.compile(r'^(\\w+)$')"
        ));
        assert!(may_match(
            FlowLanguage::JavaScript,
            "",
            "a.forEach(async (b) => {})"
        ));
        assert!(may_match(
            FlowLanguage::JavaScript,
            "async function f() {}",
            "a.forEach(\n"
        ));
        assert!(!may_match(
            FlowLanguage::JavaScript,
            "async function f() {}",
            "a.forEach((b) => {})"
        ));
    }

    #[test]
    fn a_call_counts_if_the_file_names_the_option_that_makes_it_dangerous() {
        let update = "app.config.update(JSON_SORT_KEYS=x)";
        assert!(!may_match(FlowLanguage::Python, "", update));
        assert!(may_match(
            FlowLanguage::Python,
            "",
            "app.config.update(SESSION_COOKIE_SECURE=False)"
        ));
        assert!(may_match(
            FlowLanguage::Python,
            "options = {'SESSION_COOKIE_SECURE': False}",
            "a.config.update(**options)"
        ));
    }

    #[test]
    fn the_member_of_a_value_is_not_a_function_without_a_receiver() {
        let express = "const session = require('express-session');";
        assert!(may_match(
            FlowLanguage::JavaScript,
            express,
            "app.use(session({ secret: 'a' }))"
        ));
        assert!(!may_match(
            FlowLanguage::JavaScript,
            "import { store } from './store';",
            "store.session({})"
        ));
    }

    #[test]
    fn the_receiver_of_a_member_can_be_that_of_the_pattern() {
        let flask =
            "from flask import Flask\nimport subprocess\napp = Flask(__name__)\n# the application";
        assert!(may_match(
            FlowLanguage::Python,
            flask,
            "app.run(debug=True)"
        ));
        for part in [
            "application.run(debug=True)",
            "tool = application\ntool.run(debug=True)",
        ] {
            assert!(
                may_match(
                    FlowLanguage::Python,
                    "import subprocess, bottle\n# the application",
                    part
                ),
                "{part}"
            );
        }
        assert!(!may_match(
            FlowLanguage::Python,
            "import tool\n# the application",
            "tool.run(debug=True)"
        ));
    }

    #[test]
    fn words_of_comments_do_not_count() {
        let python = "import os";
        assert!(may_match(
            FlowLanguage::Python,
            python,
            "f()\nos.system(x)  # why"
        ));
        assert!(!may_match(
            FlowLanguage::Python,
            python,
            "f()\n    # os.system(x)"
        ));
        assert!(!may_match(
            FlowLanguage::JavaScript,
            "",
            "// before scripts exec (they commit)"
        ));
    }

    #[test]
    fn a_base_and_a_callee_are_where_a_framework_is_used() {
        fn has(language: FlowLanguage, text: &str) -> bool {
            Trigger::new(language, text.as_bytes()).has_handler()
        }
        assert!(has(
            FlowLanguage::CSharp,
            "class A : Controller { public string B(string c) => c; }"
        ));
        assert!(!has(
            FlowLanguage::CSharp,
            "using Media.Controller.Library;\nclass A : Library { string B(string c) => c; }"
        ));
        assert!(has(
            FlowLanguage::JavaScript,
            "const app = express();\napp.get('/', f);"
        ));
        assert!(!has(
            FlowLanguage::JavaScript,
            "import { a } from './a';\nstore.get('/', f);"
        ));
    }

    #[test]
    fn a_parameter_has_a_body_behind_its_parentheses() {
        fn has_parameter(text: &str) -> bool {
            is_parameter(text.as_bytes(), text.find("req").unwrap(), 3)
        }
        for text in [
            "app.get('/', (req, res) => {})",
            "req => req.body",
            "function f(a, { req }) {}",
            "handler(req: Request): void {}",
            "def view(self, req, *args):\n    pass",
            "def view(\n    req,\n):\n    pass",
            "view = lambda req: req.GET",
        ] {
            assert!(has_parameter(text), "{text}");
        }
        for text in ["f(req);", "const req = 1;", "# the req of a client\n"] {
            assert!(!has_parameter(text), "{text}");
        }
    }

    #[test]
    fn the_needed_word_of_an_expression_is_in_every_match() {
        for (expression, word) in [
            ("^async\\b", Some("async")),
            ("^parseInt$", Some("parseInt")),
            ("^[^({]*\\.forEach\\(", Some("forEach")),
            ("abcd*e", Some("abc")),
            ("a|bcd", None),
            ("(?i)abc", None),
            ("[abc]+", None),
        ] {
            assert_eq!(needed_word(expression), word, "{expression}");
        }
    }
}
