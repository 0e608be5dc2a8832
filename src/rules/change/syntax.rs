//! Files that a change breaks: the old version can be parsed, and the new one cannot.
//!
//! A grammar can lack a new piece of the syntax, so a file is reported only if the old version is
//! free of errors, and a file of code only if the change ends the balance of its brackets too.
//! Nearly all changes keep the balance, so that few files are parsed.

use super::{Added, added, at_line, removed};
use crate::diff::{RepoPath, TextChange};
use crate::rules::language::Languages;
use crate::rules::report::Reporter;
use crate::rules::structural::{TreeLanguage, yaml_error_line};
use crate::rules::{elide, lexer, markers, parse};
use crate::symbols;
use serde::de::IgnoredAny;

/// Bytes of each side of a file that is parsed, at most.
const MOST_BYTES: usize = 256 << 10;

/// The languages whose grammars read the code of public repositories without errors, by their names
/// in rules. TypeScript with JSX is missing, because texts such as `Q&A` are errors to the grammar.
const LANGUAGES: &[&str] = &[
    "python",
    "javascript",
    "typescript",
    "go",
    "java",
    "ruby",
    "php",
    "rust",
    "csharp",
];

/// Ends of names of JSON files whose readers accept comments or trailing commas.
const LENIENT_JSON: &[&[u8]] = &[
    b"config.json",
    b"rc.json",
    b"devcontainer.json",
    b"deno.json",
    b"settings.json",
    b"launch.json",
    b"tasks.json",
    b"extensions.json",
];

/// Reports a file that could be parsed before the change and cannot be parsed after it.
pub(super) fn scan(path: &RepoPath, text: &TextChange, out: &mut Reporter<'_>) {
    if out.rules.is_of_a_tree() || text.hidden.is_some() {
        return;
    }
    let Some((old, new)) = sides(text) else {
        return;
    };
    let Some(first) = added(text).next() else {
        return;
    };
    let error = match extension(path) {
        b"json" if !is_lenient_json(path) && !added(text).any(is_beyond_json) => {
            json_error(old, new)
        }
        b"yml" | b"yaml" => yaml_error(path, text, old, new),
        _ => code_error(path, text, old, new),
    };
    let Some(line) = error else { return };
    // The rule for conflict markers names the cause.
    if !markers::sets(new.as_bytes(), false).is_empty() {
        return;
    }
    let near = added(text)
        .take_while(|added| added.number.get() <= line)
        .last()
        .unwrap_or(first);
    let detail = (near.number.get() != line).then(|| format!("the error is on line {line}"));
    at_line(
        out,
        "syntax-broken",
        path,
        near.number,
        near.text,
        detail.as_deref(),
    );
}

/// Returns true if the code of a text has as many opening as closing brackets of each kind. The brace
/// that closes code within a string is read as the start of the rest of the string.
fn is_balanced(path: &RepoPath, text: &str) -> bool {
    let text = text.as_bytes();
    let other = lexer::not_code(Languages::of(path.as_bytes(), b""), text);
    let code = elide::complement(&other, text.len());
    let bytes = code.into_iter().flat_map(|part| {
        let close = text.get(part.end).filter(|byte| **byte == b'}');
        text[part].iter().chain(close).copied()
    });
    BracketBalance::of(bytes) == BracketBalance::default()
}

/// Returns both sides of a file if they are known completely, are UTF-8 and are small enough.
fn sides(text: &TextChange) -> Option<(&str, &str)> {
    let (old, new) = (text.old.whole()?, text.new.whole()?);
    let is_bounded = old.len().max(new.len()) <= MOST_BYTES && !old.trim_ascii().is_empty();
    if !is_bounded {
        return None;
    }
    std::str::from_utf8(old)
        .ok()
        .zip(std::str::from_utf8(new).ok())
}

/// Returns the extension of a file, or an empty text.
fn extension(path: &RepoPath) -> &[u8] {
    let name = path.file_name();
    memchr::memrchr(b'.', name).map_or(&[], |at| &name[at + 1..])
}

fn is_lenient_json(path: &RepoPath) -> bool {
    let name = path.file_name();
    let is_in_editor_folder = memchr::memmem::find(path.as_bytes(), b".vscode/").is_some();
    is_in_editor_folder
        || name.starts_with(b".")
        || name.starts_with(b"tsconfig")
        || LENIENT_JSON.iter().any(|end| name.ends_with(end))
}

/// Returns true for a line of what readers of other formats accept: a comment, or the placeholder of
/// a template.
fn is_beyond_json(line: Added<'_>) -> bool {
    let code = line.text.trim_ascii_start();
    let has = |part: &[u8]| memchr::memmem::find(code, part).is_some();
    code.starts_with(b"//") || code.starts_with(b"/*") || has(b"{{") || has(b"{%") || has(b"<%")
}

/// Returns the line of the first error of a JSON file, if the old version has none.
fn json_error(old: &str, new: &str) -> Option<u32> {
    let read = |text: &str| {
        serde_json::from_str::<IgnoredAny>(text.strip_prefix('\u{feff}').unwrap_or(text)).err()
    };
    let error = read(new)?;
    read(old)
        .is_none()
        .then(|| u32::try_from(error.line()).unwrap_or(u32::MAX))
}

/// Returns the line of the first error of a YAML file, if the old version has none. Added lines of
/// templates are not YAML before they are filled in.
fn yaml_error(path: &RepoPath, text: &TextChange, old: &str, new: &str) -> Option<u32> {
    let is_workflow = path.as_bytes().starts_with(b".github/");
    let is_template = |line: Added<'_>| {
        let has = |part: &[u8]| memchr::memmem::find(line.text, part).is_some();
        has(b"{%") || has(b"{{") && !is_workflow || has_tag(line.text)
    };
    if added(text).any(is_template) {
        return None;
    }
    let line = yaml_error_line(new)?;
    yaml_error_line(old).is_none().then_some(line)
}

/// Returns true if a value of a line of YAML may have a tag of an application, such as `!Ref name`,
/// which the library does not read.
fn has_tag(line: &[u8]) -> bool {
    let end = memchr::memmem::find(line, b" #").unwrap_or(line.len());
    let code = &line[..end];
    memchr::memchr_iter(b'!', code).any(|at| starts_value(&code[..at]) && is_tag(&code[at + 1..]))
}

/// Returns true if a value can start behind a part of a line of YAML.
fn starts_value(before: &[u8]) -> bool {
    let start = before.trim_ascii_end();
    match start.last() {
        None | Some(b'[' | b'{' | b',') => true,
        Some(b':' | b'-') => start.len() < before.len(),
        Some(_) => false,
    }
}

/// Returns true if a text starts with the name of a tag, and not with a call of an expression.
fn is_tag(text: &[u8]) -> bool {
    let of_name = |b: &&u8| b.is_ascii_alphanumeric() || b"!<>_-.:/\\".contains(b);
    let name = text.iter().take_while(of_name).count();
    name > 0 && text.get(name) != Some(&b'(')
}

/// Returns the line of the first syntax error of a file of code, if the old version has none.
fn code_error(path: &RepoPath, text: &TextChange, old: &str, new: &str) -> Option<u32> {
    let language = TreeLanguage::of(path)
        .filter(|l| LANGUAGES.contains(&l.own_name()) && l.name() != "tsx")?;
    let is_markup = path.file_name().ends_with(b".blade.php") || extension(path) == b"jsx";
    if is_markup
        || is_beyond_grammar(text, new, language.own_name())
        || BracketBalance::of_lines(added(text)) == BracketBalance::of_lines(removed(text))
        || is_balanced(path, new)
        || !is_balanced(path, old)
    {
        return None;
    }
    let grammar = symbols::language(path)?;
    if has_error(old, &grammar)? {
        return None;
    }
    let row = first_error(new, &grammar)?;
    let line = new.lines().nth(row).unwrap_or_default();
    // The text of JSX can have characters that the grammar does not read.
    let is_text = language.own_name() == "javascript" && line.contains('&');
    u32::try_from(row + 1).ok().filter(|_| !is_text)
}

/// Returns true if a change has what the grammars read wrongly: a heredoc, which can contain another
/// one with the same end, and conditions of the preprocessor of C#, whose branches can be parts
/// of statements.
fn is_beyond_grammar(text: &TextChange, new: &str, language: &str) -> bool {
    match language {
        "ruby" | "php" => added(text).any(|line| memchr::memmem::find(line.text, b"<<").is_some()),
        "csharp" => new.lines().any(|line| line.trim_start().starts_with("#if")),
        _ => false,
    }
}

/// Returns true if a text has a syntax error. `None`: a limit ended the parser.
fn has_error(text: &str, grammar: &tree_sitter::Language) -> Option<bool> {
    let tree =
        parse::is_bounded(text.as_bytes()).then(|| parse::tree(grammar, text.as_bytes()))??;
    Some(tree.root_node().has_error())
}

/// Returns the row of the first syntax error of a text, counted from 0.
fn first_error(text: &str, grammar: &tree_sitter::Language) -> Option<usize> {
    if !parse::is_bounded(text.as_bytes()) {
        return None;
    }
    let tree = parse::tree(grammar, text.as_bytes())?;
    let mut node = tree.root_node();
    if !node.has_error() {
        return None;
    }
    let mut cursor = node.walk();
    while !node.is_error() && !node.is_missing() {
        let Some(child) = node
            .children(&mut cursor)
            .find(tree_sitter::Node::has_error)
        else {
            break;
        };
        node = child;
    }
    Some(node.start_position().row)
}

/// The number of opening brackets minus that of closing ones in some lines: round, square, curly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct BracketBalance([i64; 3]);

impl BracketBalance {
    /// Returns the balance of some lines.
    fn of_lines<'a>(lines: impl Iterator<Item = Added<'a>>) -> Self {
        Self::of(lines.flat_map(|line| line.text.iter().copied()))
    }

    /// Returns the balance of some bytes.
    fn of(bytes: impl IntoIterator<Item = u8>) -> Self {
        let mut out = Self::default();
        for byte in bytes {
            match byte {
                b'(' => out.0[0] += 1,
                b')' => out.0[0] -= 1,
                b'[' => out.0[1] += 1,
                b']' => out.0[1] -= 1,
                b'{' => out.0[2] += 1,
                b'}' => out.0[2] -= 1,
                _ => {}
            }
        }
        out
    }
}
