//! Selects the most informative lines of a definition. Pure.

use crate::symbols::{Definition, Kind};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::RangeInclusive;

/// Names of constructors. Callers use the name of the type instead.
pub(super) const CONSTRUCTORS: [&str; 5] = [
    "__init__",
    "constructor",
    "initialize",
    "__construct",
    "new",
];

/// Lines of a function that is included in full, at most.
const FUNCTION_LINES: u32 = 20;
/// Lines of a type that is included in full, at most.
const TYPE_LINES: u32 = 30;
/// Lines from the start of a longer type, if it has neither a constructor nor a field that the
/// change names.
const TYPE_START: u32 = 15;
/// Lines with fields that the change names, at most.
const MAX_FIELDS: usize = 12;
/// Lines of a type with the same word, at most; a more frequent word is not the name of a field.
const MAX_SAME: usize = 6;
/// Keywords, and built-in types.
const BASIC: [&str; 72] = [
    "Array",
    "Boolean",
    "Character",
    "Class",
    "Double",
    "Integer",
    "List",
    "Long",
    "Map",
    "Object",
    "Option",
    "Optional",
    "Result",
    "Self",
    "Set",
    "Some",
    "String",
    "Vec",
    "abstract",
    "any",
    "array",
    "async",
    "await",
    "bool",
    "boolean",
    "byte",
    "chan",
    "char",
    "class",
    "const",
    "def",
    "dict",
    "double",
    "enum",
    "error",
    "export",
    "false",
    "final",
    "float",
    "fn",
    "fun",
    "func",
    "function",
    "if",
    "int",
    "interface",
    "let",
    "list",
    "long",
    "map",
    "mut",
    "new",
    "nil",
    "null",
    "number",
    "object",
    "private",
    "protected",
    "pub",
    "public",
    "return",
    "rune",
    "self",
    "short",
    "static",
    "str",
    "string",
    "struct",
    "this",
    "true",
    "var",
    "void",
];
/// Prefixes of types with a number of bits in their name.
const SIZED: [&str; 6] = ["int", "uint", "i", "u", "f", "float"];
/// Bytes of a word, at least.
const MIN_WORD: usize = 2;

/// Returns the identifiers of a line.
pub(super) fn words(line: &str) -> impl Iterator<Item = &str> {
    let parts = line.split(|c: char| !c.is_alphanumeric() && c != '_');
    parts.filter(|word| word.len() >= MIN_WORD && !word.starts_with(|c: char| c.is_ascii_digit()))
}

/// Returns the lines of a definition to include: all if it is short, or else the signature. For a
/// type, also the constructor and the fields that the change names.
///
/// `all` holds the definitions of the file, `text` its lines, and `named` the identifiers of the
/// change.
pub(super) fn head(
    d: &Definition,
    all: &[Definition],
    text: &[&str],
    named: &HashSet<&str>,
) -> Vec<RangeInclusive<u32>> {
    let (start, end) = (*d.lines.start(), *d.lines.end());
    if d.kind != Kind::Type {
        return vec![if end - start < FUNCTION_LINES {
            start..=end
        } else {
            d.signature.clone()
        }];
    }
    if end - start < TYPE_LINES {
        return vec![start..=end];
    }
    let inner = all
        .iter()
        .filter(|other| *other.lines.start() > start && *other.lines.end() <= end);
    let inner: Vec<&Definition> = inner.collect();
    let constructor = inner.iter().find(|other| is_constructor(other, d));
    let mut shown: BTreeSet<u32> = d.signature.clone().collect();
    shown.extend(constructor.into_iter().flat_map(|c| c.signature.clone()));
    let without = shown.len();
    let fields = fields(start..=end, text, named, |line| {
        let mut around = inner
            .iter()
            .filter(|other| other.kind == Kind::Function && other.lines.contains(&line));
        around.all(|other| is_constructor(other, d))
    });
    shown.extend(fields.into_iter().take(MAX_FIELDS));
    if constructor.is_none() && shown.len() == without {
        return vec![start..=start + TYPE_START - 1];
    }
    ranges(&shown)
}

/// Returns true if a definition inside a type is likely its constructor.
fn is_constructor(definition: &Definition, of: &Definition) -> bool {
    CONSTRUCTORS.contains(&definition.name.as_str()) || definition.name == of.name
}

/// Returns the lines of a type that contain one of the words and can define a field.
fn fields(
    lines: RangeInclusive<u32>,
    text: &[&str],
    named: &HashSet<&str>,
    is_field: impl Fn(u32) -> bool,
) -> BTreeSet<u32> {
    let mut places: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for line in lines.filter(|line| is_field(*line)) {
        let Some(text) = text.get(line as usize - 1) else {
            break;
        };
        if is_comment(text) {
            continue;
        }
        for word in words(text).filter(|word| named.contains(*word) && !is_basic(word)) {
            places.entry(word).or_default().insert(line);
        }
    }
    places
        .into_values()
        .filter(|lines| lines.len() <= MAX_SAME)
        .flatten()
        .collect()
}

/// Returns true for keywords and types that every program uses. Their lines are unrelated to the
/// change.
fn is_basic(word: &str) -> bool {
    BASIC.contains(&word)
        || SIZED
            .iter()
            .any(|name| word.strip_prefix(name).is_some_and(is_size))
}

fn is_size(rest: &str) -> bool {
    ["8", "16", "32", "64", "128", "8_t", "16_t", "32_t", "64_t"].contains(&rest)
}

/// Returns true if a line is likely a comment or an attribute in one of the languages with symbols.
fn is_comment(line: &str) -> bool {
    ["//", "#", "*", "/*"]
        .iter()
        .any(|mark| line.trim_start().starts_with(mark))
}

/// Joins consecutive lines into ranges.
fn ranges(lines: &BTreeSet<u32>) -> Vec<RangeInclusive<u32>> {
    let mut out: Vec<RangeInclusive<u32>> = Vec::new();
    for line in lines {
        match out.last_mut().filter(|range| range.end() + 1 == *line) {
            Some(range) => *range = *range.start()..=*line,
            None => out.push(*line..=*line),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::head;
    use crate::diff::RepoPath;
    use crate::symbols::Symbols;
    use std::collections::HashSet;
    use std::ops::RangeInclusive;

    fn shown(path: &str, text: &str, named: &[&str]) -> Vec<RangeInclusive<u32>> {
        let symbols = Symbols::read(&RepoPath::from(path), text.as_bytes()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        head(
            &symbols.definitions[0],
            &symbols.definitions,
            &lines,
            &named.iter().copied().collect::<HashSet<&str>>(),
        )
    }

    #[test]
    fn a_long_struct_shows_the_fields_that_the_change_names() {
        let fields: String = (0..40).map(|i| format!("\tfield{i} int\n")).collect();
        let rest = "\tmu sync.RWMutex\n\t// keys are for one request\n\tkeys map[string]any\n";
        let text = format!("type Context struct {{\n{fields}{rest}}}\n");
        assert_eq!(
            shown("a.go", &text, &["keys", "field3"]),
            [1..=1, 5..=5, 44..=44]
        );
        assert_eq!(shown("a.go", &text, &[]), [1..=15], "its start");
        // A word that is frequent is not the name of a field.
        assert_eq!(shown("a.go", &text, &["int"]), [1..=15]);
    }

    #[test]
    fn a_long_class_shows_its_constructor_and_what_that_sets() {
        let methods: String = (0..20)
            .map(|i| format!("    def get_{i}(self):\n        return self.limit\n"))
            .collect();
        let text = format!(
            "class Store:\n    limit = 3\n    def __init__(self, path):\n        self.path = path\n        self.lock = Lock()\n{methods}"
        );
        assert_eq!(shown("a.py", &text, &["lock", "limit"]), [1..=3, 5..=5]);
        assert_eq!(shown("a.py", &text, &["other"]), [1..=1, 3..=3]);
    }
}
