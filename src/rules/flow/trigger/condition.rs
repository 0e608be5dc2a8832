//! Conditions of sinks that the text of a file can rule out.

use super::super::expressions::expression;
use super::super::is_word;
use super::super::sink::same;
use super::super::table::{Condition, Place};
use super::super::word::{CodeWord, is_indirect};
use super::Trigger;

impl<'t> Trigger<'t> {
    /// Returns false if the text shows that the conditions of a call of interest do not hold for
    /// its first argument.
    pub(super) fn may_hold(&self, call: u16, word: CodeWord<'_>) -> bool {
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
        expression(pattern).is_none_or(|expression| expression.is_match(text))
    }
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
pub(super) fn needed_word(expression: &'static str) -> Option<&'static str> {
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
