//! `definition`, `references` and `callers`: the definitions and uses of a name.
//!
//! Names are parsed with tree-sitter and compared as text. A definition or call with the same name
//! can belong to something else.

use super::page::{ResultPage, cut};
use super::{argument, list};
use crate::ai::tree::{Tree, Unread};
use crate::diff::{LineNo, RepoPath};
use crate::symbols::{self, Kind, Symbols, Usage};
use memchr::memmem;
use serde_json::Value;
use std::time::{Duration, Instant};

/// Bytes of a name, at most.
const MAX_NAME: usize = 200;
/// Bytes that one call reads, at most.
const MAX_BYTES: usize = 48 << 20;
/// Files that one call parses, at most.
const MAX_PARSED: usize = 400;
/// Timeout of one call.
const TIME: Duration = Duration::from_secs(4);
/// Definitions that one call shows with their lines, at most.
const MAX_DEFINITIONS: usize = 5;
/// Lines of a definition, at most.
const DEFINITION_LINES: u32 = 120;
/// Lines with the name in one result, at most.
const MAX_LINES: usize = 120;
/// Bytes of a line, at most.
const MAX_LINE: usize = 300;

/// The target of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NameSearch {
    Definitions,
    /// Every line with the name as a whole word.
    References,
    Calls,
}

/// Progress of a call.
#[derive(Debug)]
struct Searched {
    end: Instant,
    bytes: usize,
    parsed: usize,
    /// Files that were not read because of the limits of one call.
    late: usize,
    /// Files that could not be read.
    unread: usize,
    /// Definitions or lines in the result.
    shown: usize,
    /// Definitions or lines that were found but are not in the result.
    more: usize,
}

pub(super) fn definition(
    tree: &Tree<'_>,
    arguments: &Value,
    page: ResultPage,
) -> Result<ResultPage, String> {
    call(tree, arguments, page, NameSearch::Definitions)
}

pub(super) fn references(
    tree: &Tree<'_>,
    arguments: &Value,
    page: ResultPage,
) -> Result<ResultPage, String> {
    call(tree, arguments, page, NameSearch::References)
}

pub(super) fn callers(
    tree: &Tree<'_>,
    arguments: &Value,
    page: ResultPage,
) -> Result<ResultPage, String> {
    call(tree, arguments, page, NameSearch::Calls)
}

fn call(
    tree: &Tree<'_>,
    arguments: &Value,
    mut page: ResultPage,
    wanted: NameSearch,
) -> Result<ResultPage, String> {
    let given = argument::string(arguments, "name")?;
    let name = last_part(given).filter(|n| n.len() <= MAX_NAME);
    let name = name.ok_or("name must be one identifier, such as load or Store")?;
    let files = list::matching(tree, argument::string(arguments, "glob")?.trim())?;
    let known: Vec<&RepoPath> = files
        .into_iter()
        .filter(|path| symbols::is_supported(path))
        .collect();
    if known.is_empty() {
        return Err("no file of a known language matches: use search".to_owned());
    }
    let mut searched = Searched {
        end: Instant::now() + TIME,
        bytes: 0,
        parsed: 0,
        late: 0,
        unread: 0,
        shown: 0,
        more: 0,
    };
    let finder = memmem::Finder::new(name);
    for (at, path) in known.iter().enumerate() {
        if searched.bytes > MAX_BYTES
            || searched.parsed >= MAX_PARSED
            || Instant::now() > searched.end
        {
            searched.late = known.len() - at;
            break;
        }
        let bytes = match tree.bytes(path) {
            Ok(bytes) => bytes,
            Err(Unread::Exhausted) => {
                searched.late = known.len() - at;
                break;
            }
            Err(why) => {
                searched.unread += usize::from(matches!(why, Unread::Failed(_)));
                continue;
            }
        };
        searched.bytes += bytes.len();
        if finder.find(&bytes).is_none() {
            continue;
        }
        // Search only the redacted text, so that a name cannot match a part of a secret.
        let text = tree.show(path, &bytes);
        let Some(symbols) = tree.symbols(path, text.as_bytes()) else {
            continue;
        };
        searched.parsed += 1;
        let file = FileWithName {
            path,
            name: tree.name(path),
            text: &text,
            symbols: &symbols,
        };
        match wanted {
            NameSearch::Definitions => file.definitions(name, &mut searched, &mut page),
            NameSearch::References => {
                file.lines(&whole_words(&text, name), &mut searched, &mut page);
            }
            NameSearch::Calls => file.lines(&calls(&symbols, name), &mut searched, &mut page),
        }
    }
    page.close(&searched.summary(wanted));
    Ok(page)
}

/// Returns the identifier at the end of a qualified name: `load` in `Store::load()`. Returns `None`
/// if it has none.
fn last_part(given: &str) -> Option<&str> {
    let bare = given.trim().trim_matches('`').trim_end_matches("()");
    let part = bare
        .rsplit(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '$' | '?' | '!'))
        .next()?;
    (!part.is_empty()).then_some(part)
}

/// Returns the numbers of the lines that contain the name as a whole word.
fn whole_words(text: &str, name: &str) -> Vec<u32> {
    let lines = (1..)
        .zip(text.lines())
        .filter(|(_, line)| has_whole_word(line, name));
    lines.map(|(number, _)| number).collect()
}

/// Returns true if a line contains the name as a whole word.
fn has_whole_word(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| {
        !line[..at].ends_with(is_of_word) && !line[at + name.len()..].starts_with(is_of_word)
    })
}

/// Returns true if a character next to a name continues the name.
fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the numbers of the lines that call the name, or an alias that an import gives to it.
fn calls(symbols: &Symbols, name: &str) -> Vec<u32> {
    let calls = symbols.uses.iter().filter(|u| u.usage == Usage::Call);
    let calls = calls.filter(|u| u.name == name || symbols.original(&u.name) == name);
    let mut lines: Vec<u32> = calls.map(|u| u.line).collect();
    lines.dedup();
    lines
}

/// A file that contains the name.
struct FileWithName<'f> {
    path: &'f RepoPath,
    /// Redacted path.
    name: String,
    text: &'f str,
    symbols: &'f Symbols,
}

impl FileWithName<'_> {
    /// Writes the definitions of a name: the first ones in full, the others as signatures.
    fn definitions(&self, name: &str, searched: &mut Searched, page: &mut ResultPage) {
        let definitions = self.symbols.definitions.iter();
        for d in definitions.filter(|d| d.name == name && !matches!(d.kind, Kind::Test)) {
            let all =
                *d.lines.start()..=(*d.lines.end()).min(d.lines.start() + DEFINITION_LINES - 1);
            let lines = if searched.shown < MAX_DEFINITIONS {
                all
            } else {
                d.signature.clone()
            };
            let lines: Vec<u32> = lines.collect();
            let is_shown = page.say(&format!("{}:", self.name)) && self.show(&lines, page);
            if is_shown {
                searched.shown += 1;
            } else {
                searched.more += 1;
            }
        }
    }

    /// Writes lines, each below a heading with its function.
    fn lines(&self, numbers: &[u32], searched: &mut Searched, page: &mut ResultPage) {
        let mut above: Option<String> = None;
        for number in numbers {
            let inside = self
                .symbols
                .function_at(*number)
                .map(|f| format!(" in {}", f.name))
                .unwrap_or_default();
            let heading = format!("{}{inside}:", self.name);
            let is_new = above.as_ref() != Some(&heading);
            let has_room = searched.shown < MAX_LINES && (!is_new || page.say(&heading));
            if has_room && self.show(&[*number], page) {
                searched.shown += 1;
                above = Some(heading);
            } else {
                searched.more += 1;
            }
        }
    }

    /// Writes lines of the file. Returns false if not all of them fit.
    fn show(&self, numbers: &[u32], page: &mut ResultPage) -> bool {
        let Some(first) = numbers.first() else {
            return true;
        };
        let lines = self.text.lines().skip(*first as usize - 1);
        numbers.iter().zip(lines).all(|(number, line)| {
            LineNo::new(*number)
                .is_some_and(|number| page.show(self.path, number, &cut(line, MAX_LINE)))
        })
    }
}

impl Searched {
    fn summary(&self, wanted: NameSearch) -> String {
        let what = match wanted {
            NameSearch::Definitions => "definition",
            NameSearch::References => "line",
            NameSearch::Calls => "call",
        };
        let mut out = match self.shown {
            0 => format!("no {what} found"),
            1 => format!("1 {what} shown"),
            n => format!("{n} {what}s shown"),
        };
        if self.more > 0 {
            out += &format!("; {} more: give a glob", self.more);
        }
        if self.late > 0 {
            out += &format!("; {} files were not read: give a glob", self.late);
        }
        if self.unread > 0 {
            out += &format!("; {} files could not be read", self.unread);
        }
        format!("({out})")
    }
}
