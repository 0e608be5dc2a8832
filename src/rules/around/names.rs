//! Checks of the names on a line.

use super::LineSurroundings;
use super::lines::{
    FAR, WINDOW, above, below, block, first_word, function_above, has, has_word, head, indentation,
    is_word, last_word, outer, rest, same_block, tail,
};

/// Returns true if a text declares a variable or a parameter of that name.
fn declares(text: &[u8], name: &[u8]) -> bool {
    memchr::memmem::find_iter(text, name).any(|at| is_declaration(text, at, name.len()))
}

/// Returns true if the name at a place of a text is a variable or a parameter that the text
/// declares there.
fn is_declaration(text: &[u8], at: usize, length: usize) -> bool {
    let before = text[..at].last().copied().unwrap_or(b' ');
    let after = &text[at + length..];
    let next = after.trim_ascii_start();
    if is_word(before) || b".\"'{$#".contains(&before) || after.first().is_some_and(|b| is_word(*b))
    {
        return false;
    }
    match next.first() {
        Some(b'=') => next.get(1) != Some(&b'='),
        Some(b',' | b')' | b':' | b'|' | b'?') => matches!(before, b'(' | b' ' | b'|' | b','),
        _ => next.starts_with(b"in ") || next.starts_with(b"of "),
    }
}

/// Returns the name in the braces that open before a text.
fn placeholder(text: &[u8]) -> Option<&[u8]> {
    let text = text.trim_ascii_start();
    let name = &text[..text.iter().position(|b| !is_word(*b)).unwrap_or(text.len())];
    let is_closed = text.get(name.len()).is_some_and(|b| b"}.[(".contains(b));
    (is_closed && name.first().is_some_and(|b| !b.is_ascii_digit())).then_some(name)
}

/// Returns true if a string of the line has a placeholder with the name of a variable.
pub(super) fn has_known_placeholder(around: &LineSurroundings<'_>) -> bool {
    let places = memchr::memchr_iter(b'{', around.line)
        .filter(|at| !is_in_formatted_string(&around.line[..*at]));
    let names: Vec<_> = places
        .filter_map(|at| placeholder(&around.line[at + 1..]))
        .take(MOST_WORDS)
        .collect();
    let function: &[u8] = if names.is_empty() {
        b""
    } else {
        function_above(around)
    };
    names.iter().any(|name| declares(function, name))
}

/// Returns true if the last quote of a text opens a formatted string of Python.
fn is_in_formatted_string(before: &[u8]) -> bool {
    let quote = before.iter().rposition(|b| matches!(b, b'"' | b'\''));
    quote.is_some_and(|quote| matches!(before[..quote].last(), Some(b'f' | b'F')))
}

/// Returns true if the line passes a function by the name of a local definition.
pub(super) fn passes_local_function(around: &LineSurroundings<'_>) -> bool {
    let line = around.line.trim_ascii_end();
    let Some(line) = line.strip_suffix(b")") else {
        return false;
    };
    let start = line
        .iter()
        .rposition(|b| !is_word(*b))
        .map_or(0, |at| at + 1);
    let needle = [b"def ", &line[start..], b"("].concat();
    start < line.len() && memchr::memmem::find(tail(around.before, WINDOW), &needle).is_some()
}

/// Returns true if the line declares a constant, and a later line of the block assigns to it.
pub(super) fn constant_is_assigned(around: &LineSurroundings<'_>) -> bool {
    let Some(rest) = around.line.trim_ascii_start().strip_prefix(b"const ") else {
        return false;
    };
    let name = &rest[..rest.iter().position(|b| !is_word(*b)).unwrap_or(rest.len())];
    !name.is_empty()
        && same_block(head(around.after, WINDOW), around.line)
            .split(|b| *b == b'\n')
            .any(|line| assigns(line, name))
}

/// Returns true if a line starts with a name and an assignment to it.
fn assigns(line: &[u8], name: &[u8]) -> bool {
    let Some(rest) = line.trim_ascii_start().strip_prefix(name) else {
        return false;
    };
    let rest = rest.trim_ascii_start();
    let is_plain = rest.starts_with(b"=") && !rest.starts_with(b"==") && !rest.starts_with(b"=>");
    let is_compound = rest.get(1) == Some(&b'=') && b"+-*/%|&^".contains(&rest[0]);
    is_plain || is_compound || rest.starts_with(b"++") || rest.starts_with(b"--")
}

/// Words of a line that are read, at most: each is searched in [`FAR`] bytes.
const MOST_WORDS: usize = 12;

/// Returns the words of a text with the place of each.
fn words(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    (0..text.len())
        .filter(|at| is_word(text[*at]) && (*at == 0 || !is_word(text[at - 1])))
        .map(|at| (at, first_word(&text[at..])))
        .take(MOST_WORDS)
}

/// Returns true if the file defines a function of that name near the line.
fn is_defined(around: &LineSurroundings<'_>, start: &[u8], name: &[u8], end: &[u8]) -> bool {
    let needle = [start, name, end].concat();
    has(head(around.after, FAR), &needle) || has(tail(around.before, FAR), &needle)
}

/// Returns true if the condition names a local function without calling it.
pub(super) fn condition_names_function(around: &LineSurroundings<'_>) -> bool {
    let line = around.line;
    words(line).any(|(at, word)| {
        let is_end = line.get(at + word.len()).is_none_or(|b| b": )".contains(b));
        is_end && is_defined(around, b"def ", word, b"(")
    })
}

/// Returns true if the line calls an asynchronous function of the file.
pub(super) fn calls_async_function(around: &LineSurroundings<'_>) -> bool {
    let line = around.line;
    words(line)
        .filter(|(at, word)| line.get(at + word.len()) == Some(&b'('))
        .any(|(_, word)| {
            is_defined(around, b"async function ", word, b"")
                || is_defined(around, b"async ", word, b"(")
                || is_defined(around, b"", word, b" = async")
        })
}

/// Returns the text before and after each mention of a name above the line and on it.
fn mentions<'a>(around: &LineSurroundings<'a>, name: &[u8]) -> Vec<(&'a [u8], &'a [u8])> {
    let texts = [tail(around.before, FAR), around.line]
        .into_iter()
        .filter(|_| !name.is_empty());
    let all = texts.flat_map(|text| {
        memchr::memmem::find_iter(text, name)
            .map(move |at| (&text[..at], &text[at + name.len()..]))
            .collect::<Vec<_>>()
    });
    all.filter(|(before, after)| {
        before.last().is_none_or(|b| !is_word(*b)) && after.first().is_none_or(|b| !is_word(*b))
    })
    .collect()
}

/// Returns true if the name is declared with one of the classes: `Long a`.
fn is_declared(around: &LineSurroundings<'_>, classes: &[&[u8]], name: &[u8]) -> bool {
    mentions(around, name).into_iter().any(|(before, _)| {
        before.ends_with(b" ") && classes.contains(&last_word(before.trim_ascii_end()))
    })
}

/// Returns true if both sides of a comparison are declared with a class of values.
pub(super) fn objects_are_compared(around: &LineSurroundings<'_>) -> bool {
    const CLASSES: [&[u8]; 6] = [
        b"String", b"Integer", b"Long", b"Short", b"Double", b"Float",
    ];
    let line = around.line;
    let signs =
        memchr::memmem::find_iter(line, b" == ").chain(memchr::memmem::find_iter(line, b" != "));
    signs.take(8).any(|at| {
        let right = line[at + 4..]
            .strip_prefix(b"this.")
            .unwrap_or(&line[at + 4..]);
        is_declared(around, &CLASSES, last_word(&line[..at]))
            && is_declared(around, &CLASSES, first_word(right))
    })
}

/// Returns the names before the members of a line: `a` and `b` in `a.c(b.d())`.
fn receivers(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    memchr::memchr_iter(b'.', line)
        .map(|at| last_word(&line[..at]))
        .filter(|name| !name.is_empty())
        .take(MOST_WORDS)
}

/// Returns true if a receiver of the line is declared as an array.
pub(super) fn receiver_is_array(around: &LineSurroundings<'_>) -> bool {
    receivers(around.line).any(|name| mentions(around, name).into_iter().any(declares_array))
}

/// Returns true for the text before and after a name that is declared as an array: `int[] a`,
/// `int... a`, `int a[]`.
fn declares_array((before, after): (&[u8], &[u8])) -> bool {
    before.ends_with(b"[] ") || before.ends_with(b"... ") || after.starts_with(b"[]")
}

/// Returns true if a receiver of the line is declared with a class whose values do not change.
pub(super) fn receiver_is_immutable(around: &LineSurroundings<'_>) -> bool {
    const CLASSES: [&[u8]; 10] = [
        b"BigDecimal",
        b"BigInteger",
        b"LocalDate",
        b"LocalDateTime",
        b"LocalTime",
        b"ZonedDateTime",
        b"OffsetDateTime",
        b"Instant",
        b"Duration",
        b"Period",
    ];
    receivers(around.line).any(|name| is_declared(around, &CLASSES, name))
}

/// Returns true if a receiver of the line is the state of a component.
pub(super) fn receiver_is_state(around: &LineSurroundings<'_>) -> bool {
    receivers(around.line).any(|name| {
        mentions(around, name)
            .into_iter()
            .any(|(before, after)| before.ends_with(b"[") && after.starts_with(b","))
    })
}

/// Returns true if a loop around the line goes over a container that the line names.
pub(super) fn receiver_is_in_loop(around: &LineSurroundings<'_>) -> bool {
    let loops: Vec<_> = outer(around)
        .chain([around.line.trim_ascii_start()])
        .filter(|text| matches!(first_word(text), b"for" | b"foreach" | b"async"))
        .collect();
    !loops.is_empty()
        && words(around.line).any(|(_, name)| loops.iter().any(|text| iterates_over(text, name)))
}

/// Returns true if the head of a loop has a name after ` in ` or after a colon.
fn iterates_over(head: &[u8], name: &[u8]) -> bool {
    let places = [
        memchr::memmem::find(head, b" in "),
        memchr::memchr(b':', head),
    ];
    places
        .iter()
        .flatten()
        .any(|at| has_word(&head[*at..], name))
}

/// Returns true if the returned array is declared in the function, or the line returns an address.
pub(super) fn returns_local_array(around: &LineSurroundings<'_>) -> bool {
    let Some(at) = memchr::memmem::find(around.line, b"return ") else {
        return false;
    };
    let value = around.line[at + 7..].trim_ascii_start();
    value.starts_with(b"&")
        || mentions(around, first_word(value))
            .into_iter()
            .any(|(before, after)| before.ends_with(b" ") && after.starts_with(b"["))
}

/// Returns true if the variable of a `using` declaration is returned.
pub(super) fn disposed_is_returned(around: &LineSurroundings<'_>) -> bool {
    let Some(at) = memchr::memmem::find(around.line, b" =") else {
        return false;
    };
    let name = last_word(&around.line[..at]);
    rest(around).any(|(_, text)| text.starts_with(b"return") && has_word(text, name))
}

/// Returns true if a block around the line, or the line itself, has the name that the line returns
/// or assigns.
pub(super) fn is_around(around: &LineSurroundings<'_>) -> bool {
    let line = around.line;
    words(line).any(|(at, name)| {
        let is_upper = name[0].is_ascii_uppercase();
        is_upper
            && (has_word(&line[..at], name)
                || outer(around).take(3).any(|text| has_word(text, name)))
    })
}

/// Returns the name of the pointer that a line frees.
fn freed<'a>(around: &LineSurroundings<'a>) -> Option<&'a [u8]> {
    let at = memchr::memmem::find(around.line, b"free(")?;
    let name = first_word(around.line[at + 5..].trim_ascii_start());
    (!name.is_empty()).then_some(name)
}

/// Returns true if the next statement reads a member of the freed pointer.
pub(super) fn freed_is_used(around: &LineSurroundings<'_>) -> bool {
    let Some(name) = freed(around) else {
        return false;
    };
    let needle = [name, b"->"].concat();
    let line = around.line;
    let at = memchr::memmem::rfind(line, b"free(").map_or(0, |at| at + 5);
    let mut statements = below(around)
        .filter(|(_, text)| !text.starts_with(b"/"))
        .take(4);
    has(&line[at..], &needle) || statements.any(|(_, text)| has(text, &needle))
}

/// Returns true if a line above goes on to the next element from the freed one.
pub(super) fn freed_is_advanced(around: &LineSurroundings<'_>) -> bool {
    let Some(name) = freed(around) else {
        return false;
    };
    let needle = [name, b"->"].concat();
    is_loop_with(around.line, &needle)
        || above(around)
            .take(16)
            .any(|(_, text)| is_loop_with(text, &needle))
}

/// Returns true if a line is a `for` loop that has a text.
fn is_loop_with(line: &[u8], needle: &[u8]) -> bool {
    has_word(line, b"for") && has(line, needle)
}

/// Returns true if the line or the block below reads a member of the value that is `None`.
pub(super) fn none_is_dereferenced(around: &LineSurroundings<'_>) -> bool {
    let signs: [&[u8]; 3] = [b" is None", b" == None", b" is not None"];
    let places = signs
        .iter()
        .flat_map(|sign| memchr::memmem::find_iter(around.line, sign).take(4));
    places.into_iter().any(|at| {
        let before = &around.line[..at];
        let start = before
            .iter()
            .rposition(|b| !is_word(*b) && *b != b'.')
            .map_or(0, |at| at + 1);
        let needle = [&before[start..], b"."].concat();
        needle.len() > 1
            && (has(&around.line[at..], &needle) || block(around).any(|text| has(text, &needle)))
    })
}

/// Returns true if the function that sets a state is called where the state is declared.
pub(super) fn setter_is_called(around: &LineSurroundings<'_>) -> bool {
    let depth = indentation(around.line).len();
    let Some(end) = memchr::memchr(b']', around.line) else {
        return true;
    };
    let needle = [last_word(around.line[..end].trim_ascii_end()), b"("].concat();
    rest(around).any(|(own, text)| own == depth && text.starts_with(&needle))
}

/// Returns true if the deferred call is between an assignment and the check of its error.
pub(super) fn error_is_unchecked(around: &LineSurroundings<'_>) -> bool {
    let depth = indentation(around.line).len();
    let statement =
        above(around).find(|(own, text)| *own <= depth && !matches!(text[0], b')' | b'}'));
    let assigns = statement.is_some_and(|(_, text)| has(text, b":="));
    assigns
        && below(around)
            .next()
            .is_some_and(|(_, text)| text.starts_with(b"if "))
}

/// Returns the name of the property that a line declares.
fn property(line: &[u8]) -> Option<&[u8]> {
    let start = [&b"val "[..], b"var "]
        .iter()
        .find_map(|word| memchr::memmem::find(line, word))?;
    Some(first_word(line[start + 4..].trim_ascii_start()))
}

/// Returns true if an accessor has the name of its property.
pub(super) fn accessor_names_property(around: &LineSurroundings<'_>) -> bool {
    let name = property(around.line)
        .or_else(|| above(around).take(8).find_map(|(_, text)| property(text)));
    let Some(name) = name else { return false };
    let accessor =
        memchr::memmem::find(around.line, b"et(").map_or(&b""[..], |at| &around.line[at..]);
    has_word(accessor, name) || block(around).any(|text| has_word(text, name))
}

/// Returns true if the coroutine that the line defines is named somewhere without `await`.
pub(super) fn coroutine_is_used(around: &LineSurroundings<'_>) -> bool {
    let Some(at) = memchr::memmem::find(around.line, b"async def ") else {
        return true;
    };
    let name = first_word(&around.line[at + 10..]);
    let call = [name, b"("].concat();
    has_plain_call(head(around.after, FAR), &call)
        || has_plain_call(tail(around.before, FAR), &call)
}

/// Returns true if a text has a call that is neither awaited nor a definition.
fn has_plain_call(text: &[u8], call: &[u8]) -> bool {
    memchr::memmem::find_iter(text, call).any(|at| !is_awaited(&text[..at]))
}

/// Returns true if the name after a text, with its receiver, is awaited or defined.
fn is_awaited(before: &[u8]) -> bool {
    let start = before
        .iter()
        .rposition(|b| !is_word(*b) && *b != b'.')
        .map_or(0, |at| at + 1);
    let before = before[..start].trim_ascii_end();
    before.ends_with(b"def") || before.ends_with(b"await")
}

/// Returns true if the constructor uses its object above the line that calls the parent's one.
pub(super) fn object_is_used_above_super(around: &LineSurroundings<'_>) -> bool {
    let mut lines = above(around).map(|(_, text)| text);
    has_word(around.line, b"this")
        || lines
            .find(|text| has_word(text, b"this") || has_word(text, b"constructor"))
            .is_some_and(|text| has_word(text, b"this"))
}

/// Returns true if the path of names on the left of a comparison is also on its right.
pub(super) fn is_compared_with_itself(around: &LineSurroundings<'_>) -> bool {
    let is_path = |b: u8| is_word(b) || matches!(b, b'.' | b'$' | b'?' | b'[' | b']');
    memchr::memmem::find_iter(around.line, b"==").any(|at| {
        let left = around.line[..at].trim_ascii_end();
        let length = left.iter().rev().take_while(|b| is_path(**b)).count();
        let left = &left[left.len() - length..];
        // The index is not a name: the syntax tree compares both sides.
        let count = |bracket: u8| left.iter().filter(|b| **b == bracket).count();
        if count(b']') > count(b'[') {
            return true;
        }
        let left = &left[left.iter().take_while(|b| **b == b'[').count()..];
        let right = &around.line[at..];
        let right = &right[right.iter().take_while(|b| **b == b'=').count()..];
        let rest = right.trim_ascii_start().strip_prefix(left);
        !left.is_empty()
            && rest.is_some_and(|rest| !rest.first().is_some_and(|b| is_word(*b) || *b == b'.'))
    })
}
