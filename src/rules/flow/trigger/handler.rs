//! Functions whose parameters or results a framework connects to requests.

use super::super::table::Handler;
use super::super::word::words;
use super::super::{FlowLanguage, is_word};
use super::{Trigger, has_any, is_whole, last_of};

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
impl<'t> Trigger<'t> {
    /// Returns true if a function of the file can be a handler that a framework calls with data.
    pub(super) fn has_handler(&self) -> bool {
        *self.has_handler.get_or_init(|| {
            self.table
                .handlers
                .iter()
                .any(|handler| self.may_have_handler(handler))
        })
    }

    /// Returns true if the file has a word for each condition of a handler.
    pub(super) fn may_have_handler(&self, h: &Handler) -> bool {
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
    pub(super) fn is_returned(&self, text: &[u8]) -> bool {
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
}

/// Returns true if a text has the keyword `return`.
fn has_return(text: &[u8]) -> bool {
    words(text).any(|word| word.text == "return")
}

/// Returns true if a word of Python, JavaScript, Go or C can be the name of a parameter: `=>` or a
/// brace follows it or its parentheses, or `def` or `func` precedes the parentheses. If the text is
/// ambiguous, the word counts as a parameter.
pub(super) fn is_parameter(text: &[u8], at: usize, len: usize) -> bool {
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
