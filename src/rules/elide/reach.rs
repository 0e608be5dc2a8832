//! The parts of a file through which data can reach its added lines, without a syntax tree.
//!
//! In languages whose functions are at the top of a file, most functions have nothing to do with
//! an added line: they neither call its function, directly or by others, nor does it call them. The
//! insides of their braces are omitted, so that the rest remains correct code. Any word of a
//! function that is the name of another one counts as a call.

use super::complement;
use super::name_graph::{NameGraph, is_name, words};
use crate::rules::language::Languages;
use crate::rules::{lexer, parse};
use std::ops::Range;

/// Languages whose functions are at the top of a file.
const FLAT: &[&str] = &["c", "cpp", "go"];
/// A smaller file is parsed as a whole.
const SMALL: usize = 4000;
/// Bytes of an omitted part, at least.
const SHORTEST: usize = 100;
/// Bytes before a parenthesis in which its name is searched, and after it for a receiver, at most.
const NAME_MAX: usize = 300;
/// Words of statements and of types, which nearly every function has and which name no function.
const NOT_NAMES: &[&[u8]] = &[
    b"func",
    b"if",
    b"for",
    b"while",
    b"switch",
    b"return",
    b"sizeof",
    b"static",
    b"struct",
    b"const",
    b"enum",
    b"union",
    b"extern",
    b"typedef",
    b"inline",
    b"volatile",
    b"unsigned",
    b"signed",
    b"char",
    b"int",
    b"long",
    b"short",
    b"void",
    b"float",
    b"double",
    b"bool",
    b"size_t",
    b"var",
    b"type",
    b"string",
    b"error",
    b"byte",
    b"interface",
    b"map",
    b"chan",
    b"class",
    b"namespace",
    b"public",
    b"private",
    b"protected",
    b"C",
];

/// A block in braces at the top of a file.
#[derive(Clone, Debug)]
struct TopBlock {
    /// From the end of the block above to the opening brace.
    head: Range<usize>,
    /// Between the braces.
    inside: Range<usize>,
}

/// Returns the parts of a file to parse, in order. `added`: ranges of bytes in order. `None`: parse
/// the whole file.
pub(in crate::rules) fn reaching(
    languages: Languages,
    text: &[u8],
    added: &[Range<usize>],
) -> Option<Vec<Range<usize>>> {
    let unchanged = text.len() - added.iter().map(Range::len).sum::<usize>().min(text.len());
    let may_save = text.len() >= SMALL && saves(unchanged, text);
    if !(may_save && languages.any_of(FLAT) && parse::is_bounded(text)) {
        return None;
    }
    let blocks = blocks(text, &lexer::not_code(languages, text))?;
    let mut graph = NameGraph::new(blocks.len());
    for (index, block) in blocks.iter().enumerate() {
        let (head, inside) = (&text[block.head.clone()], &text[block.inside.clone()]);
        for name in names(head, inside) {
            graph.declare(index, name);
        }
    }
    for (index, block) in blocks.iter().enumerate() {
        graph.use_words(index, &text[block.head.start..block.inside.end]);
    }
    let touched = blocks.iter().map(|block| is_touched(block, added));
    let is_kept = graph.with_used(graph.with_users(touched.collect()));
    let omitted: Vec<_> = blocks
        .into_iter()
        .zip(is_kept)
        .filter(|(block, is_kept)| !is_kept && is_function(&text[block.head.clone()]))
        .map(|(block, _)| block.inside)
        .filter(|inside| inside.len() >= SHORTEST)
        .collect();
    let size = omitted.iter().map(Range::len).sum();
    saves(size, text).then(|| complement(&omitted, text.len()))
}

/// Returns true if a number of bytes is so much of a text that omitting them pays.
fn saves(bytes: usize, text: &[u8]) -> bool {
    bytes * 4 > text.len()
}

/// Returns the blocks at the top of a file, in order; the last one is the text below them. `None`:
/// the braces do not match. `other`: comments and strings.
fn blocks(text: &[u8], other: &[Range<usize>]) -> Option<Vec<TopBlock>> {
    let (mut out, mut depth, mut start, mut from): (Vec<TopBlock>, usize, usize, usize) =
        (Vec::new(), 0, 0, 0);
    for part in complement(other, text.len()) {
        let braces = memchr::memchr2_iter(b'{', b'}', &text[part.clone()]).map(|i| part.start + i);
        for at in braces {
            if text[at] == b'{' {
                if depth == 0 {
                    start = at;
                }
                depth += 1;
                continue;
            }
            depth = depth.checked_sub(1)?;
            // The braces of a type, such as `interface{}`, are in the head of a function.
            if depth == 0 && !goes_on(&text[start + 1..]) {
                out.push(TopBlock {
                    head: from..start,
                    inside: start + 1..at,
                });
                from = at + 1;
            }
        }
    }
    out.push(TopBlock {
        head: from..text.len(),
        inside: text.len()..text.len(),
    });
    (depth == 0).then_some(out)
}

/// Returns true if another brace opens on the line after one that opens.
fn goes_on(rest: &[u8]) -> bool {
    let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
    memchr::memchr(b'{', &rest[..end]).is_some()
}

/// Returns the part of a head that belongs to the block: the rest is other statements. A semicolon
/// within a line can be in a comment.
fn own(head: &[u8]) -> &[u8] {
    let end = memchr::memrchr2_iter(b';', b'}', head).find(|at| ends_line(head, *at));
    // The statements of Go end without a mark.
    let start = memchr::memmem::rfind(head, b"\nfunc ");
    &head[end.max(start).map_or(0, |at| at + 1)..]
}

/// Returns true if only blanks follow a byte on its line.
fn ends_line(text: &[u8], at: usize) -> bool {
    let rest = &text[at + 1..];
    let line = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
    rest[..line].trim_ascii().is_empty()
}

/// Returns true if a head is that of a function.
fn is_function(head: &[u8]) -> bool {
    let own = own(head);
    own.contains(&b'(') && !own.contains(&b'=')
}

/// Returns the names that a block can declare: the words before a parenthesis of its head, the
/// types of receivers, whose methods share their fields, and variables that the statements above it
/// set. Other blocks can contain functions, so all words of their heads count.
fn names<'t>(head: &'t [u8], inside: &'t [u8]) -> Vec<&'t [u8]> {
    let own = own(head);
    let mut out = called(own);
    for line in head.split(|b| *b == b'\n') {
        let set = memchr::memchr(b'=', line).map(|at| &line[..at]);
        out.extend(set.into_iter().flat_map(words));
    }
    if !is_function(head) {
        out.extend(words(own));
        out.extend(called(inside));
    }
    out.retain(|name| !NOT_NAMES.contains(name));
    out
}

/// Returns the words before the parentheses of a text, and the types of receivers of Go.
fn called(text: &[u8]) -> Vec<&[u8]> {
    let mut out = Vec::new();
    for at in memchr::memchr_iter(b'(', text) {
        let mut before = text[at.saturating_sub(NAME_MAX)..at].trim_ascii_end();
        // Parameters of types are between the name and the parenthesis.
        let open = match before.last() {
            Some(b']') => memchr::memrchr(b'[', before),
            Some(b'>') => memchr::memrchr(b'<', before),
            _ => None,
        };
        before = before[..open.unwrap_or(before.len())].trim_ascii_end();
        let length = before.iter().rev().take_while(|b| is_name(**b)).count();
        let name = &before[before.len() - length..];
        if name == b"func" {
            let receiver = &text[at..text.len().min(at + NAME_MAX)];
            let close = memchr::memchr(b')', receiver).unwrap_or(receiver.len());
            out.extend(words(&receiver[..close]).next_back());
        } else if !name.is_empty() {
            out.push(name);
        }
    }
    out
}

/// Returns true if added bytes are in a block or its head.
fn is_touched(block: &TopBlock, added: &[Range<usize>]) -> bool {
    let first = added.partition_point(|part| part.end <= block.head.start);
    added
        .get(first)
        .is_some_and(|part| part.start <= block.inside.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the parsed text of a file whose line with `HERE` is added.
    fn parsed(path: &str, text: &str) -> Option<String> {
        let at = text.find("HERE").unwrap();
        let ranges = reaching(
            Languages::of(path.as_bytes(), b""),
            text.as_bytes(),
            std::slice::from_ref(&(at..at + 4)),
        )?;
        Some(ranges.into_iter().map(|r| &text[r]).collect())
    }

    /// Returns functions that no other one names.
    fn others(head: &str) -> String {
        let body = "  a = b;\n".repeat(30);
        (0..20)
            .map(|n| format!("{} {{\n{body}}}\n", head.replace('N', &n.to_string())))
            .collect()
    }

    #[test]
    fn functions_that_reach_an_added_line_and_those_that_it_reaches_remain() {
        let kept = "static struct t table = {\n  { \"a\", run },\n};\n\
                    static int run(char *c)\n{\n  HERE(c);\n  return done(c);\n}\n\
                    int done(char *c)\n{\n  return puts(c);\n}\n\
                    int main(int argc, char **argv)\n{\n  run(argv[1]);\n}\n";
        let head = "static int other_N(int a)";
        let text = kept.to_owned() + &others(head);
        let rest: String = (0..20)
            .map(|n| format!("{} {{}}\n", head.replace('N', &n.to_string())))
            .collect();
        assert_eq!(parsed("a.c", &text).unwrap(), kept.to_owned() + &rest);
    }

    #[test]
    fn methods_of_one_type_remain_together() {
        let kept = "package a\n\nfunc (s *Store) Get() string {\n\treturn s.name // HERE\n}\n\
                    func (s *Store) Set(name string) {\n\ts.name = name + \"a long text that is not left out\"\n}\n";
        let text = kept.to_owned() + &others("func otherN(a int)");
        let parsed = parsed("a.go", &text).unwrap();
        assert!(parsed.starts_with(kept), "{parsed}");
        assert!(parsed.ends_with("func other19(a int) {}\n"), "{parsed}");
    }

    /// If a head were read wrongly, the body of the function that calls the added one would be left
    /// out.
    #[test]
    fn heads_of_many_forms_declare_their_functions() {
        let main = "int main(int argc, char **argv)\n{\n  NAME(argv[1]); /* a text that is longer than what is left out at most, so that it would be left out */\n}\n";
        let go = "func main() {\n\tNAME(os.Args[1]) // a text that is longer than what is left out at most, so that it would be left out\n}\n";
        for (path, run, name) in [
            (
                "a.c",
                "static char *run(char *c) /* runs; no check */\n{\n  HERE(c);\n}\n",
                "run",
            ),
            (
                "a.c",
                "static char *run(char *c) { HERE(c); }\nstatic char *(*hook)(char *) = run;\n",
                "hook",
            ),
            (
                "a.c",
                "extern \"C\" {\nchar *run(char *c) { HERE(c); }\n}\n",
                "run",
            ),
            (
                "a.cpp",
                "namespace {\nchar *run(char *c) {\n  HERE(c);\n}\n}\n",
                "run",
            ),
            (
                "a.cpp",
                "class A {\n  char *run(char *c) {\n    HERE(c);\n  }\n};\n",
                "run",
            ),
            (
                "a.cpp",
                "template <>\nchar *run<char *>(char *c) {\n  HERE(c);\n}\n",
                "run",
            ),
            (
                "a.go",
                "func run(c map[string]interface{}) string {\n\tHERE(c)\n}\n",
                "run",
            ),
            (
                "a.go",
                "func run[T any](c T) string {\n\tHERE(c)\n}\n",
                "run",
            ),
            (
                "a.go",
                "func run(c string) string {\n\tHERE(c)\n}\n\nvar mid = run\n\n",
                "mid",
            ),
        ] {
            let caller = if path == "a.go" { go } else { main }.replace("NAME", name);
            let other = if path == "a.go" {
                "func otherN(a int)"
            } else {
                "int other_N(int a)"
            };
            let text = format!("{run}{}{caller}", others(other));
            let parsed = parsed(path, &text).unwrap_or_else(|| panic!("{run}"));
            assert!(parsed.ends_with(&caller), "{run}{parsed}");
            assert!(parsed.len() * 2 < text.len(), "{run}{parsed}");
        }
    }

    #[test]
    fn a_file_without_a_clear_structure_is_parsed_as_a_whole() {
        let other = others("int other_N(int a)");
        assert_eq!(
            parsed("a.c", &format!("int a(void) {{ HERE\n{other}")),
            None
        );
        assert_eq!(parsed("a.py", &format!("def a(): HERE\n{other}")), None);
        assert_eq!(
            parsed("a.cpp", &format!("namespace a {{\nint HERE;\n{other}}}\n")),
            None
        );
    }
}
