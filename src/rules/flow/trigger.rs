//! Decides by words alone whether a change can complete a flow, so that most files are never parsed.
//!
//! A pattern of the tables counts if its last word is in the text, followed by a parenthesis if it is a call, and if the file
//! has the word before the last one (`requests` of `requests.get()`), or a word that makes a value of that type. A sink that
//! gets nothing but a literal does not count.

use super::prefilter::has_stand_in;
use super::table::{Condition, Handler, Pattern, Place, Role, Sink, Table};
use super::{FlowLanguage, is_word};
use foldhash::fast::RandomState;
use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};

/// Words that call without parentheses.
const STATEMENTS: [&str; 9] =
    ["die", "echo", "exit", "include", "include_once", "print", "require", "require_once", "return"];

/// Words of a module: it names what it uses.
const IMPORTS: [&str; 8] = ["import", "require", "using", "use", "include", "from", "package", "export"];

/// Levels of types that make types.
const LEVELS: u32 = 4;

/// The words of a file. It can have as many as a megabyte of text has, and all of them are hashed.
type Words<'t> = HashSet<&'t str, RandomState>;

/// Returns true if a text has the name of a sink: the analysis knows where its data goes.
pub fn has_sink(language: FlowLanguage, text: &[u8]) -> bool {
    let table = Table::of(language);
    words(text).any(|w| table.ending(w.text).iter().any(|p| matches!(p.role, Role::Sink(_))))
}

/// Returns true if values of unknown origin are reported for a sink.
fn reports_unknown(sink: &Sink) -> bool {
    sink.unknown != Some(false)
}

/// A word of a text, and the bytes around it.
#[derive(Clone, Copy)]
struct Word<'t> {
    text: &'t str,
    /// The text that contains it, and its bytes there.
    whole: &'t [u8],
    start: usize,
    end: usize,
}

impl<'t> Word<'t> {
    fn before(&self) -> Option<u8> {
        self.start.checked_sub(1).map(|i| self.whole[i])
    }

    /// Returns the next byte that is not a blank.
    fn after(&self) -> Option<u8> {
        self.whole[self.end..].iter().copied().find(|b| !matches!(b, b' ' | b'\t'))
    }

    /// Returns true if the word is the name of a member.
    fn is_member(&self) -> bool {
        matches!(self.before(), Some(b'.' | b'>' | b':' | b'?'))
    }

    /// Returns true if the word can be called here.
    fn is_called(&self, language: FlowLanguage) -> bool {
        let is_called = match language {
            FlowLanguage::Ruby | FlowLanguage::Cpp => true,
            FlowLanguage::Python => matches!(self.next(), None | Some(b'(' | b'\\' | b'"' | b'\'')),
            // The last word of an import is a call of the tables: `_ "net/http/pprof"`.
            FlowLanguage::Go => matches!(self.next(), None | Some(b'(' | b'{' | b'[' | b'"')),
            FlowLanguage::Java => matches!(self.next(), None | Some(b'(' | b'<')),
            FlowLanguage::JavaScript => matches!(self.next(), None | Some(b'(' | b'`' | b'?')),
            FlowLanguage::TypeScript | FlowLanguage::Tsx => {
                matches!(self.next(), None | Some(b'(' | b'`' | b'?' | b'<' | b'!'))
            }
            FlowLanguage::C => matches!(self.next(), None | Some(b'(' | b'\\')),
            FlowLanguage::Kotlin | FlowLanguage::Php | FlowLanguage::CSharp => {
                matches!(self.next(), None | Some(b'\\' | b'(' | b'<' | b'{' | b'[' | b'!' | b'?' | b'"' | b'\''))
            }
        };
        is_called || is_indirect(self.whole, self.start, self.end) || STATEMENTS.contains(&self.text)
    }

    /// Returns the next byte behind blanks, line ends and comments. `None`: the text ends there, or is too long to say.
    fn next(&self) -> Option<u8> {
        /// Bytes that are searched.
        const MOST: usize = 4096;
        let mut at = self.end;
        let limit = self.whole.len().min(self.end + MOST);
        while at < limit {
            let rest = &self.whole[at..limit];
            at += match rest {
                [b' ' | b'\t' | b'\r' | b'\n' | 0x0c, ..] => 1,
                [b'/', b'*', ..] => memchr::memmem::find(rest, b"*/").map_or(rest.len(), |i| i + 2),
                [b'/', b'/', ..] | [b'#', ..] => memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len()),
                [byte, ..] => return Some(*byte),
                [] => return None,
            };
        }
        None
    }

    /// Returns true if the first argument of the call of this word is a literal and nothing else: `open("settings.json", mode)`.
    fn has_literal(&self, language: FlowLanguage) -> bool {
        let rest = self.whole[self.end..].trim_ascii_start();
        let Some(rest) = rest.strip_prefix(b"(").map(<[u8]>::trim_ascii_start) else { return false };
        let end = match rest.first() {
            Some(quote @ (b'"' | b'\'')) => literal_end(rest, *quote, language),
            Some(b'0'..=b'9') => Some(rest.iter().take_while(|b| b.is_ascii_digit()).count()),
            _ => None,
        };
        let next = end.and_then(|end| rest[end..].trim_ascii_start().first());
        matches!(next, Some(b',' | b')'))
    }
}

/// Returns the byte behind a quoted literal at the start of a text. `None`: it goes over lines, has an escape, or can contain
/// a value.
fn literal_end(text: &[u8], quote: u8, language: FlowLanguage) -> Option<usize> {
    let has_values = match language {
        FlowLanguage::Kotlin => true,
        FlowLanguage::Php | FlowLanguage::Ruby => quote == b'"',
        _ => false,
    };
    for (at, byte) in text.iter().enumerate().skip(1) {
        match byte {
            b'\\' | b'\n' | b'\r' => return None,
            b'$' | b'#' | b'{' if has_values => return None,
            // `""` may start a literal of several lines.
            byte if *byte == quote => return (at > 1 || text.get(2) != Some(&quote)).then_some(at + 1),
            _ => {}
        }
    }
    None
}

/// Returns the words of a text. A back-tick is one, too.
fn words(text: &[u8]) -> impl Iterator<Item = Word<'_>> {
    let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < text.len() {
            let start = at;
            let len = text[start..].iter().take_while(|b| is_word(**b)).count();
            at += len.max(1);
            let end = if len == 0 && text[start] == b'`' { start + 1 } else { start + len };
            if let Ok(word) = std::str::from_utf8(&text[start..end])
                && !word.is_empty()
            {
                return Some(Word { text: word, whole: text, start, end });
            }
        }
        None
    })
}

/// Returns true if a word is called by another name, or by what it is passed to: `system as run`, `run = os.system`,
/// `exec.call(…)`, `partial(os.system, …)`, `Reflect.apply(cp.exec, …)`, `@app.route`, `[Route]`.
fn is_indirect(text: &[u8], start: usize, end: usize) -> bool {
    let path = text[..start].iter().rev().take_while(|b| is_word(**b) || **b == b'.').count();
    let before = text[..start - path].trim_ascii_end();
    if matches!(before.last(), Some(b'@' | b'[')) {
        return true;
    }
    let rest = text[end..].trim_ascii_start();
    match rest.first() {
        Some(b'a') if rest.starts_with(b"as ") => true,
        Some(b'.') => rest.starts_with(b".call(") || rest.starts_with(b".apply("),
        Some(b',' | b')') => before.ends_with(b"partial(") || before.ends_with(b"Reflect.apply("),
        _ => before.ends_with(b"=") && ![b"==", b"!=", b"<=", b">="].iter().any(|end| before.ends_with(*end)),
    }
}

/// A file whose words decide which parts of it can complete a flow. A change can have thousands of parts, so the words are
/// collected once.
#[derive(Debug)]
pub struct Trigger<'t> {
    language: FlowLanguage,
    table: &'static Table,
    text: &'t [u8],
    words: OnceCell<Words<'t>>,
    marks: OnceCell<Words<'t>>,
    /// By type: whether the file can have a value of it.
    types: RefCell<HashMap<&'static str, bool>>,
    has_source: OnceCell<bool>,
    has_handler: OnceCell<bool>,
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
            has_source: OnceCell::new(),
            has_handler: OnceCell::new(),
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
                Role::Call(at) if self.has_argument(at) => return true,
                Role::Sink(at) => {
                    let sink =
                        self.table.sinks.get(usize::from(at)).filter(|sink| !self.is_constant(sink, found, word));
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
        has_weak && self.has_source() || self.is_returned(part)
    }

    /// Returns true if a part has a word of a source, a sink, a sanitizer, a check or a call of interest: a change of it can
    /// complete a flow.
    pub fn touches(&self, part: &[u8]) -> bool {
        let counts = |p: &Pattern| !matches!(p.role, Role::Type(_) | Role::Propagator(_));
        has_stand_in(self.language, part) || self.candidates(part).any(|(p, _)| counts(p))
    }

    /// Returns true if a sink gets nothing but a literal in its first argument, and data only from there.
    fn is_constant(&self, sink: &Sink, pattern: &Pattern, word: Word<'_>) -> bool {
        let is_absent = |place: &Place| match place {
            Place::Arg(0) => true,
            Place::Keyword(name) => name.split('.').next_back().is_some_and(|name| !self.words().contains(name)),
            _ => false,
        };
        pattern.call && !sink.args.is_empty() && sink.args.iter().all(is_absent) && word.has_literal(self.language)
    }

    /// Returns the patterns that a part of the file can match.
    fn candidates<'s>(&'s self, part: &'s [u8]) -> impl Iterator<Item = (&'static Pattern, Word<'s>)> + 's {
        words(part).flat_map(move |word| {
            let named = self.table.ending(word.text).iter().filter(move |p| self.may_be(p, word));
            named.chain(self.indexed(word)).map(move |pattern| (pattern, word))
        })
    }

    /// Returns the patterns that an index or key of a word can match: `session.[]=()` for `session[`.
    fn indexed(&self, word: Word<'_>) -> impl Iterator<Item = &'static Pattern> + use<> {
        let ends: &[&str] = if word.after() == Some(b'[') { &["[]", "[]="] } else { &[] };
        let of_word = word.text.to_owned();
        let patterns = ends.iter().flat_map(|end| self.table.ending(end));
        patterns.filter(move |p| !p.prefix.is_empty() && last_of(p.prefix) == of_word)
    }

    fn may_be(&self, pattern: &'static Pattern, word: Word<'_>) -> bool {
        let is_named = match pattern.prefix.is_empty() {
            true => pattern.any || !self.is_of_object(word),
            false => self.may_have(pattern.prefix, word) && !self.is_bare_member(pattern, word),
        };
        is_named && (!pattern.call || pattern.new || word.is_called(self.language))
    }

    /// Returns true if a word is the member of a value, and cannot be a function without a receiver: `store.session()`.
    fn is_of_object(&self, word: Word<'_>) -> bool {
        /// Receivers whose members are also names by themselves.
        const GLOBALS: [&[u8]; 9] =
            [b"self", b"this", b"window", b"globalThis", b"global", b"builtins", b"__builtins__", b"super", b"root"];
        let has_objects =
            !matches!(self.language, FlowLanguage::Ruby | FlowLanguage::Php | FlowLanguage::C | FlowLanguage::Cpp);
        let before = &word.whole[..word.start];
        let Some(receiver) = before.strip_suffix(b".").filter(|_| has_objects) else { return false };
        let receiver = receiver.strip_suffix(b"?").unwrap_or(receiver);
        let name = receiver.iter().rev().take_while(|b| is_word(**b)).count();
        let name = &receiver[receiver.len() - name..];
        // A class can be named with its package.
        !word.text.starts_with(|c: char| c.is_ascii_uppercase()) && !GLOBALS.contains(&name)
    }

    /// Returns true for a word by itself where a pattern is the member of a type: a field has a receiver.
    fn is_bare_member(&self, pattern: &Pattern, word: Word<'_>) -> bool {
        let has_receivers = matches!(self.language, FlowLanguage::Python | FlowLanguage::Go);
        let is_type = last_of(pattern.prefix).starts_with(|c: char| c.is_ascii_uppercase());
        let is_quoted = matches!(word.before(), Some(b'"' | b'\''));
        has_receivers && is_type && !pattern.call && !word.is_member() && !is_quoted
    }

    /// Returns true if the file can have a value or a module of this path before a word.
    fn may_have(&self, prefix: &'static str, word: Word<'_>) -> bool {
        // A snippet without imports means the usual modules, and the names of C# need no import in the file.
        let is_member = word.is_member();
        if !is_member && self.language == FlowLanguage::CSharp {
            return true;
        }
        if !is_member && !IMPORTS.iter().any(|w| self.words().contains(w)) {
            return true;
        }
        self.has_value_of(prefix, LEVELS)
    }

    /// Returns true if the file has the last word of a path, or a word that makes a value of that type.
    fn has_value_of(&self, path: &'static str, levels: u32) -> bool {
        let last = last_of(path);
        if last.is_empty() || self.words().contains(last) {
            return true;
        }
        if let Some(known) = self.types.borrow().get(path) {
            return *known;
        }
        self.types.borrow_mut().insert(path, false);
        let can = levels > 0 && self.can_make(path, levels - 1);
        self.types.borrow_mut().insert(path, can);
        can
    }

    /// Returns true if the file has a word that makes a value of a type: a call, a conventional name, a handler's parameter.
    fn can_make(&self, ty: &'static str, levels: u32) -> bool {
        let is_of = |at: u16| self.table.types.get(usize::from(at)).is_some_and(|t| t.is == ty);
        let makes = |p: &&Pattern| matches!(p.role, Role::Type(at) if is_of(at)) && self.words().contains(p.last);
        self.table.names.iter().any(|(name, at)| is_of(*at) && self.words().contains(name))
            || self.table.handlers.iter().any(|h| h.ty == Some(ty) && self.may_have_handler(h))
            || self
                .table
                .patterns
                .iter()
                .filter(makes)
                .any(|p| p.prefix.is_empty() || self.has_value_of(p.prefix, levels))
    }

    /// Returns false if a call of interest needs an argument that is a name, such as `parseInt` of `map(parseInt)`, and the file
    /// does not have that.
    fn has_argument(&self, call: u16) -> bool {
        let conditions = self.table.calls.get(usize::from(call)).map_or(&[][..], |call| call.when);
        conditions.iter().filter_map(name_of).all(|name| self.words().contains(name))
    }

    /// Returns true if the file can have data from outside.
    fn has_source(&self) -> bool {
        let is_source = |p: &Pattern| matches!(p.role, Role::Source(_));
        *self.has_source.get_or_init(|| self.has_handler() || self.candidates(self.text).any(|(p, _)| is_source(p)))
    }

    /// Returns true if a function of the file can be one that a framework calls with data.
    fn has_handler(&self) -> bool {
        *self.has_handler.get_or_init(|| self.table.handlers.iter().any(|handler| self.may_have_handler(handler)))
    }

    /// Returns true if the file has a word for each condition of a handler.
    fn may_have_handler(&self, h: &Handler) -> bool {
        let marks = [h.decorator, h.annotation, h.class_annotation];
        // A snippet of C# is read as a part of the usual class.
        let base = if self.language == FlowLanguage::CSharp { &[][..] } else { h.base };
        let words = [h.callee, base, h.function, h.returns];
        let parameters = [h.param_type, h.param_name];
        let has_parameter =
            parameters.iter().all(|n| n.is_empty()) || parameters.iter().any(|n| has_any(self.words(), n));
        has_parameter
            && marks.iter().all(|names| names.is_empty() || has_any(self.marks(), names))
            && words.iter().all(|names| names.is_empty() || has_any(self.words(), names))
    }

    /// Returns true if a text can be the end of a handler that returns a page. In Ruby that is its last expression.
    fn is_returned(&self, text: &[u8]) -> bool {
        let returns = || words(text).any(|word| word.text == "return");
        let is_page = |h: &&Handler| self.table.sinks.iter().any(|s| s.returns.is_some_and(|r| r == h.framework));
        match self.language {
            FlowLanguage::Ruby => self.words().contains("sinatra"),
            FlowLanguage::Python => {
                returns() && self.table.handlers.iter().filter(is_page).any(|h| self.may_have_handler(h))
            }
            FlowLanguage::Java | FlowLanguage::Kotlin | FlowLanguage::CSharp => returns() && self.has_handler(),
            _ => false,
        }
    }

    fn words(&self) -> &Words<'t> {
        self.words.get_or_init(|| words(self.text).map(|w| w.text).collect())
    }

    /// Returns the words of decorators, annotations and attributes.
    fn marks(&self) -> &Words<'t> {
        self.marks.get_or_init(|| {
            let lines = self.text.split(|b| *b == b'\n');
            let marked = lines.filter(|line| matches!(line.trim_ascii_start(), [b'@' | b'[', ..] | [b'#', b'[', ..]));
            let inner = words(self.text).filter(|word| matches!(word.before(), Some(b'@' | b'[')));
            marked.flat_map(words).chain(inner).map(|word| word.text).collect()
        })
    }
}

/// Returns true if the last word of one of some paths is among some words.
fn has_any(words: &Words<'_>, paths: &[&'static str]) -> bool {
    paths.iter().any(|path| words.contains(last_of(path)))
}

/// Returns the name that an argument has to be: the text of the condition `^name$`.
fn name_of(condition: &Condition) -> Option<&'static str> {
    let name = condition.text?.strip_prefix('^')?.strip_suffix('$')?;
    name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_').then_some(name)
}

/// Returns the last word of a path: `get` of `requests.get`, `exec` of `os/exec`.
fn last_of(path: &'static str) -> &'static str {
    path.rsplit(['.', '/', '\\', '*', '-', '(', ')']).find(|word| !word.is_empty()).unwrap_or("")
}
