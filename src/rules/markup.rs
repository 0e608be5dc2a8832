//! Request data that a variable carries from the script of a component or a page into its markup.
//!
//! The analysis of data flow does not follow the markup of Vue, Svelte and JSP. Here a variable is
//! known by the statement that gives it request data, and is searched in the places that do not
//! escape.

use super::report::{Reporter, Sighting};
use super::role::{self, FileRole};
use crate::diff::{FileChange, LineNo};
use crate::finding::LineSpan;
use std::collections::HashSet;

const HTML: &str = "component-request-as-html";
const ADDRESS: &str = "component-request-as-address";
const PUG: &str = "pug-value-unescaped";
const PAGE: &str = "jsp-request-variable-unescaped";

/// Expressions of request data in components.
const SOURCES: [&str; 14] = [
    "route.query",
    "route.params",
    "route.hash",
    "$route.",
    "useRoute().query",
    "useRoute().params",
    "router.currentRoute.value.query",
    "$page.url",
    "page.url.searchParams",
    "page.url.hash",
    "location.search",
    "location.hash",
    "new URLSearchParams(location",
    "document.referrer",
];

/// Calls around an expression that keep its value.
const WRAPPERS: [&str; 10] = [
    "computed(",
    "computed<string>(",
    "ref(",
    "$derived(",
    "String(",
    "decodeURIComponent(",
    "() =>",
    "(",
    "toRef(",
    "this.",
];

/// Parts of words that make a value harmless.
const HARMLESS: [&str; 10] = [
    "sanit", "purif", "escap", "encod", "Number(", "parseInt", ".length", "===", ".has(", "xss(",
];

/// Expressions of request data in JSP.
const PARAMETERS: [&str; 4] = [
    "request.getParameter(",
    "request.getHeader(",
    "request.getQueryString(",
    "request.getParameterValues(",
];

/// Reports the lines of a component or a page that the change adds.
pub(super) fn scan(file: &FileChange, out: &mut Reporter<'_>) {
    let path = file.path();
    let is_component = [&b".vue"[..], b".svelte"]
        .iter()
        .any(|end| path.as_bytes().ends_with(end));
    let is_page = [&b".jsp"[..], b".jspf"]
        .iter()
        .any(|end| path.as_bytes().ends_with(end));
    let is_pug = [&b".pug"[..], b".jade"]
        .iter()
        .any(|end| path.as_bytes().ends_with(end));
    if !(is_component || is_page || is_pug) || role::of(path.as_bytes()) == FileRole::Test {
        return;
    }
    let Some(text) = file.text() else { return };
    let Some(whole) = text.new.whole().map(String::from_utf8_lossy) else {
        return;
    };
    let added: Vec<_> = text
        .hunks
        .iter()
        .flat_map(|hunk| &hunk.edits)
        .map(|edit| &edit.new)
        .collect();
    let names: HashSet<&str> = codes(&whole)
        .flat_map(|(_, code)| {
            if is_page {
                parameter(code)
            } else {
                carriers(code)
            }
        })
        .collect();
    for (number, code) in codes(&whole) {
        let rule = match () {
            () if is_page => of_page(code, &names),
            () if is_pug => of_pug(code),
            () => of_component(code, &names),
        };
        let (Some(rule), Some(number)) = (rule, LineNo::new(number)) else {
            continue;
        };
        let next = added.partition_point(|new| new.start + new.count <= number.get());
        if added.get(next).is_some_and(|new| new.start <= number.get()) {
            let lines = Some(LineSpan {
                first: number,
                last: number,
                columns: None,
            });
            out.report(
                rule,
                Sighting {
                    file: Some(path),
                    lines,
                    quote: code.as_bytes(),
                    ..Sighting::default()
                },
            );
        }
    }
}

/// Returns the lines of code of a text with the numbers of their lines in git. A carriage return
/// alone ends a line of code, but not a line of git.
fn codes(text: &str) -> impl Iterator<Item = (u32, &str)> {
    (1u32..)
        .zip(text.split('\n'))
        .flat_map(|(number, line)| line.split('\r').map(move |code| (number, code)))
}

/// Returns the rule that a line of a component breaks.
fn of_component(line: &str, names: &HashSet<&str>) -> Option<&'static str> {
    let markup = between(line, "v-html=\"", '"').or_else(|| between(line, "{@html ", '}'));
    // A template literal in braces has braces of its own.
    let markup = if line.contains("{@html `") {
        line.split_once("{@html ").map(|(_, rest)| rest)
    } else {
        markup
    };
    let markup = markup.or_else(|| line.split_once(".innerHTML = ").map(|(_, value)| value));
    if markup.is_some_and(|value| is_tainted(value, names)) {
        return Some(HTML);
    }
    let address = [
        (" :href=\"", '"'),
        (" v-bind:href=\"", '"'),
        (" href={", '}'),
    ];
    let address = address
        .iter()
        .find_map(|(open, close)| between(line, open, *close));
    let whole = address.filter(|value| !value.contains([' ', '+', '`', '?']));
    whole
        .is_some_and(|value| is_tainted(value, names))
        .then_some(ADDRESS)
}

/// Returns true if a value has request data, in a variable or directly, and no call that makes it
/// harmless.
fn is_tainted(value: &str, names: &HashSet<&str>) -> bool {
    let has_name = words(value).any(|(_, word)| names.contains(word));
    (has_name || SOURCES.iter().any(|source| value.contains(source))) && !is_harmless(value)
}

/// Returns the rule that a line of a JSP page breaks.
fn of_page(line: &str, names: &HashSet<&str>) -> Option<&'static str> {
    let printed = line
        .split_once("out.print")
        .map(|(_, rest)| rest)
        .or_else(|| between(line, "<%=", '%'))?;
    let printed = printed.trim_start_matches("ln");
    let is_printed = words(printed)
        .any(|(at, word)| names.contains(word) && is_printed_itself(printed, at, word));
    (is_printed && !is_harmless(printed)).then_some(PAGE)
}

/// Returns true if a name is not the argument of a call: it does not directly follow a parenthesis,
/// or it is the only argument of the statement that prints.
fn is_printed_itself(printed: &str, at: usize, name: &str) -> bool {
    let is_argument = printed[..at].ends_with('(');
    !is_argument || at == 1 && printed[at + name.len()..].starts_with(')')
}

/// Returns the rule that a line of a Pug template breaks.
fn of_pug(line: &str) -> Option<&'static str> {
    let code = line.trim_start_matches('\u{feff}').trim_start();
    if code.starts_with("//") || code.starts_with('-') || is_harmless(line) {
        return None;
    }
    (prints_variable(code) || between(line, "!{", '}').is_some_and(is_variable)).then_some(PUG)
}

/// Returns true if a line of Pug is a tag whose content is a variable: `p!= name`.
fn prints_variable(code: &str) -> bool {
    let Some((tag, value)) = code.split_once("!=") else {
        return false;
    };
    let is_word = tag
        .split('(')
        .next()
        .is_some_and(|name| !name.contains(' '));
    let is_tag = is_word
        && (tag.is_empty() || tag.ends_with(|c: char| c.is_ascii_alphanumeric() || c == ')'));
    is_tag && is_variable(value)
}

/// Returns true for a variable with members and indices, as opposed to a literal or a call.
fn is_variable(value: &str) -> bool {
    let value = value.trim();
    let is_path = value
        .bytes()
        .all(|b| is_name(b) || matches!(b, b'.' | b'[' | b']'));
    is_path && value.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
}

/// Returns the names that a line of a script gives request data.
fn carriers(line: &str) -> Vec<&str> {
    let Some((left, right)) = line.split_once(" = ") else {
        return Vec::new();
    };
    let mut value = right.trim_start();
    while let Some(rest) = WRAPPERS
        .iter()
        .find_map(|wrapper| value.strip_prefix(wrapper))
    {
        value = rest.trim_start();
    }
    if is_harmless(right) || !SOURCES.iter().any(|source| value.starts_with(source)) {
        return Vec::new();
    }
    let left = left.trim_start();
    let starts = ["const ", "let ", "var ", "$: "];
    let Some(left) = starts.iter().find_map(|start| left.strip_prefix(start)) else {
        return Vec::new();
    };
    let left = left.split(':').next().unwrap_or_default();
    let names = left.trim_matches(['{', '}', ' ']).split(',').map(str::trim);
    names
        .filter(|name| !name.is_empty() && name.bytes().all(is_name))
        .collect()
}

/// Returns the name that a line of a page gives request data.
fn parameter(line: &str) -> Vec<&str> {
    let Some((left, right)) = line.split_once('=') else {
        return Vec::new();
    };
    let is_request = PARAMETERS
        .iter()
        .any(|source| right.trim_start().starts_with(source));
    let name = left.trim().strip_prefix("String ").map(str::trim);
    name.filter(|name| is_request && !name.is_empty() && name.bytes().all(is_name))
        .into_iter()
        .collect()
}

/// Returns the text between an opening text and the next closing character.
fn between<'a>(line: &'a str, open: &str, close: char) -> Option<&'a str> {
    let (_, rest) = line.split_once(open)?;
    rest.split_once(close).map(|(value, _)| value)
}

fn is_harmless(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    HARMLESS
        .iter()
        .any(|part| lower.contains(&part.to_ascii_lowercase()))
}

/// Returns the words of a text, without properties and starts of literals, with their positions.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    let parts = text
        .split(|c: char| !c.is_ascii() || !is_name(c as u8))
        .map(move |word| {
            let start = at;
            let separator = text[start + word.len()..]
                .chars()
                .next()
                .map_or(0, char::len_utf8);
            at = start + word.len() + separator;
            (start, word)
        });
    parts.filter(|(start, word)| !word.is_empty() && !text[..*start].ends_with(['.', '\'', '"']))
}

fn is_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_carries_request_data_only_if_it_is_that_data() {
        assert_eq!(
            carriers("const q = computed(() => String(route.query.q ?? ''));"),
            ["q"]
        );
        assert_eq!(
            carriers("  const { q, page } = route.query;"),
            ["q", "page"]
        );
        assert_eq!(
            carriers("$: q = $page.url.searchParams.get('q') ?? '';"),
            ["q"]
        );
        for line in [
            "const post = await load(route.params.id);",
            "const q = sanitize(route.query.q);",
            "const n = Number(route.query.n);",
            "const is = route.query.a === 'b';",
        ] {
            assert_eq!(carriers(line), [""; 0], "{line}");
        }
        assert_eq!(
            parameter("String name = request.getParameter(\"name\");"),
            ["name"]
        );
        assert_eq!(
            parameter("String name = escape(request.getParameter(\"name\"));"),
            [""; 0]
        );
    }

    #[test]
    fn places_that_do_not_escape_are_known() {
        assert_eq!(
            of_component("<p v-html=\"`<b>${q}</b>`\"></p>", &HashSet::from(["q"])),
            Some(HTML)
        );
        assert_eq!(
            of_component("<p>{@html `<b>${q}</b>`}</p>", &HashSet::from(["q"])),
            Some(HTML)
        );
        assert_eq!(
            of_component("<a :href=\"route.query.back\">x</a>", &HashSet::new()),
            Some(ADDRESS)
        );
        assert_eq!(
            of_component("<a :href=\"'/x/' + q\">x</a>", &HashSet::from(["q"])),
            None
        );
        assert_eq!(
            of_component("<p v-html=\"clean(post.q)\"></p>", &HashSet::from(["q"])),
            None
        );
        assert_eq!(
            of_component(
                "<p v-html=\"DOMPurify.sanitize(q)\"></p>",
                &HashSet::from(["q"])
            ),
            None
        );
        assert_eq!(
            of_page(
                "out.println(\"<p>\" + name + \"</p>\");",
                &HashSet::from(["name"])
            ),
            Some(PAGE)
        );
        assert_eq!(
            of_page(
                "out.println(\"<p>\" + Encode.forHtml(name));",
                &HashSet::from(["name"])
            ),
            None
        );
        assert_eq!(
            of_page(
                "<input name=\"name\" value=\"<%= count %>\">",
                &HashSet::from(["name"])
            ),
            None
        );
    }
}
