//! Import circles between files, and type names that mean several things.

use super::{Source, sources};
use std::collections::{BTreeMap, BTreeSet};

/// Files that import each other, each group as a line. A file and the files of its folder are not a
/// circle.
///
/// A group may shrink or go. New ones are to be broken: move what both need into a file of its own.
const KNOWN_CIRCLES: &[&str] = &[
    // Functions that call each other, split by the kind of syntax.
    "rules/flow/declared rules/flow/eval rules/flow/guard rules/flow/names rules/flow/run rules/flow/sink",
    "rules/flow/lower/javascript/callback rules/flow/lower/javascript/class \
     rules/flow/lower/javascript/expression rules/flow/lower/javascript/function \
     rules/flow/lower/javascript/markup rules/flow/lower/javascript/output \
     rules/flow/lower/javascript/validated rules/flow/lower/javascript/waited",
    // To be broken.
];

/// The modules that a file names, by path below `src`, without extension.
type Imports = BTreeMap<String, BTreeSet<String>>;

fn module_path(source: &Source) -> String {
    source.path.trim_end_matches(".rs").to_owned()
}

/// Splits the list of a `use` tree at its own commas.
fn parts(list: &str) -> Vec<&str> {
    let (mut depth, mut from, mut out) = (0, 0, Vec::new());
    for (i, b) in list.bytes().enumerate() {
        match b {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b',' if depth == 0 => {
                out.push(&list[from..i]);
                from = i + 1;
            }
            _ => {}
        }
    }
    out.push(&list[from..]);
    out.into_iter()
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect()
}

/// Returns the paths of a `use` tree.
fn expanded(tree: &str) -> Vec<String> {
    match tree.trim().split_once('{') {
        None => vec![tree.split(" as ").next().unwrap_or(tree).trim().to_owned()],
        Some((prefix, rest)) => {
            let list = rest.trim_end().strip_suffix('}').unwrap_or(rest);
            parts(list)
                .into_iter()
                .flat_map(expanded)
                .map(|path| format!("{}{path}", prefix.trim()))
                .collect()
        }
    }
}

/// Returns every path that code names: those of `use`, and those that begin with `crate`, `super`
/// or `self`.
fn paths(code: &str) -> Vec<String> {
    let (mut out, mut rest) = (Vec::new(), String::new());
    for (i, statement) in code.split("use ").enumerate() {
        let is_import = i > 0 && statement.starts_with(|c: char| c.is_alphabetic());
        let (tree, others) = if is_import {
            statement.split_once(';').unwrap_or(("", statement))
        } else {
            ("", statement)
        };
        out.extend(expanded(tree));
        rest.push_str(others);
        rest.push('\n');
    }
    let words = rest.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
    out.extend(
        words
            .filter(|w| {
                ["crate::", "super::", "self::"]
                    .iter()
                    .any(|p| w.starts_with(p))
            })
            .map(str::to_owned),
    );
    out
}

/// Returns the file that a path in a file leads to.
fn target(from: &str, path: &str, all: &BTreeSet<String>) -> Option<String> {
    let mut base: Vec<&str> = from.split('/').collect();
    let mut segments = path.split("::").map(str::trim).peekable();
    match segments.peek().copied()? {
        "crate" => {
            base.clear();
            segments.next();
        }
        "self" => drop(segments.next()),
        "super" => {
            while segments.next_if_eq(&"super").is_some() {
                base.pop();
            }
        }
        first => {
            if !all.contains(&format!("{from}/{first}")) {
                return None;
            }
        }
    }
    let mut found = None;
    loop {
        let here = base.join("/");
        if all.contains(&here) {
            found = Some(here);
        } else if !base.is_empty() {
            return found;
        }
        match segments.next() {
            Some(segment) => base.push(segment),
            None => return found,
        }
    }
}

fn imports(sources: &[Source]) -> Imports {
    let all: BTreeSet<String> = sources.iter().map(module_path).collect();
    let mut out = Imports::new();
    for source in sources {
        let from = module_path(source);
        let mut named: BTreeSet<String> = paths(&source.code)
            .iter()
            .filter_map(|path| target(&from, path, &all))
            .collect();
        named.retain(|to| *to != from && !is_below(to, &from) && !is_below(&from, to));
        out.insert(from, named);
    }
    out
}

fn is_below(file: &str, folder: &str) -> bool {
    file.strip_prefix(folder)
        .is_some_and(|rest| rest.starts_with('/'))
}

/// Returns for each file whether a file reaches it by its imports and those of others. `named` has
/// the imports of each file, by index.
fn reached(named: &[Vec<usize>], from: usize) -> Vec<bool> {
    let (mut seen, mut left) = (vec![false; named.len()], vec![from]);
    while let Some(file) = left.pop() {
        for &to in &named[file] {
            if !std::mem::replace(&mut seen[to], true) {
                left.push(to);
            }
        }
    }
    seen
}

/// Returns the groups of files that reach each other.
fn circles(imports: &Imports) -> BTreeSet<BTreeSet<String>> {
    let files: Vec<&String> = imports.keys().collect();
    let named: Vec<Vec<usize>> = imports
        .values()
        .map(|to| to.iter().flat_map(|t| files.binary_search(&t)).collect())
        .collect();
    let reach: Vec<Vec<bool>> = (0..files.len()).map(|f| reached(&named, f)).collect();
    (0..files.len())
        .filter(|&file| reach[file][file])
        .map(|file| {
            (0..files.len())
                .filter(|&other| reach[file][other] && reach[other][file])
                .map(|other| files[other].clone())
                .collect()
        })
        .collect()
}

#[test]
fn a_circle_of_imports_is_found() {
    let file = |path: &str, code: &str| Source {
        path: path.to_owned(),
        text: String::new(),
        code: code.to_owned(),
    };
    let sources = [
        file("a.rs", "mod b;\nmod c;\nuse b::{X, Y as Z};"),
        file("a/b.rs", "use super::c::{self, d::E};\nuse std::fmt;"),
        file("a/c.rs", "fn f() { super::b::g(); self::x() }"),
        file("e.rs", "use crate::{a::c::C, f};"),
        file("f.rs", "use crate::a;"),
    ];
    let found = imports(&sources);
    assert_eq!(found["e"], BTreeSet::from(["a/c", "f"].map(str::to_owned)));
    let expected = BTreeSet::from(["a/b", "a/c"].map(str::to_owned));
    assert_eq!(circles(&found), BTreeSet::from([expected]));
}

#[test]
fn files_import_each_other_in_no_new_circle() {
    let known: Vec<BTreeSet<&str>> = KNOWN_CIRCLES
        .iter()
        .map(|c| c.split_whitespace().collect())
        .collect();
    let found = circles(&imports(sources()));
    let is_known = |circle: &BTreeSet<String>| {
        known
            .iter()
            .any(|k| circle.iter().all(|file| k.contains(file.as_str())))
    };
    let new: Vec<String> = found
        .iter()
        .filter(|c| !is_known(c))
        .map(|c| c.iter().cloned().collect::<Vec<_>>().join(" "))
        .collect();
    assert!(
        new.is_empty(),
        "these files import each other:\n{}",
        new.join("\n")
    );
    for circle in &known {
        let is_there = found
            .iter()
            .any(|c| c.iter().any(|file| circle.contains(file.as_str())));
        assert!(is_there, "no longer a circle: {circle:?}");
    }
}

#[test]
fn a_type_name_means_one_thing() {
    let mut defined: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for source in sources() {
        for line in source.code.lines() {
            let mut words = line
                .split(|c: char| !(c.is_alphanumeric() || c == '_'))
                .filter(|w| !w.is_empty());
            let kind = words
                .by_ref()
                .find(|w| !["pub", "crate", "super", "in"].contains(w));
            let Some(name) = kind
                .filter(|k| ["struct", "enum", "trait"].contains(k))
                .and_then(|_| words.next())
            else {
                continue;
            };
            defined
                .entry(name.to_owned())
                .or_default()
                .insert(source.path.clone());
        }
    }
    assert!(defined.len() > 500, "the definitions were not found");
    defined.retain(|_, files| files.len() > 2);
    assert!(
        defined.is_empty(),
        "type names in more than two files: {defined:#?}"
    );
}
