//! Which functions and classes of a file can pass data through an added line.
//!
//! A flow that a change completes has a step on an added line. Only the functions that contain such
//! a line, and those that reach them by calls, can have one, so the others need not run. The search
//! errs on the side of more: any word of a function that is the name of another one counts as a
//! call, also in comments and texts, because functions are called by name too.

use super::FlowLanguage;
use super::shape::{ByteSpan, ClassId, FunctionId, Module, StmtKind, Sym};
use crate::rules::elide::{NameGraph, is_name, words};
use std::ops::Range;

/// Words that start a line which adds no statement to the file: imports and the like.
const DECLARATIONS: [&[u8]; 10] = [
    b"import ",
    b"import(",
    b"from ",
    b"package ",
    b"using ",
    b"namespace ",
    b"use ",
    b"require ",
    b"require_relative ",
    b"export {",
];

/// The functions and classes of a file that run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entries {
    functions: Vec<bool>,
    classes: Vec<bool>,
}

/// A part of the file that is connected with others by names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnitKind {
    /// A function without a class.
    Function(FunctionId),
    /// A class with its methods.
    Class(ClassId),
    /// A statement of the file, which always runs.
    Statement,
}

/// A part of the text that belongs to a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
struct UnitPart {
    bytes: Range<usize>,
    unit: usize,
}

impl Entries {
    /// Returns true if outside code calls a function.
    pub(super) fn has_function(&self, id: FunctionId) -> bool {
        self.functions.get(id.0 as usize) == Some(&true)
    }

    /// Returns true if the methods of a class run.
    pub(super) fn has_class(&self, id: ClassId) -> bool {
        self.classes.get(id.0 as usize) == Some(&true)
    }
}

/// Returns the functions and classes that can pass data through an added line. `None`: all of them
/// can, or too many. `added`: ranges of bytes in order. `is_nested`: for each function, true if it
/// is in another one.
pub(super) fn entries(
    language: FlowLanguage,
    module: &Module,
    text: &[u8],
    added: &[Range<usize>],
    is_nested: &[bool],
) -> Option<Entries> {
    let units = Units::of(module, is_nested);
    let (touched, between) = units.touched(added);
    let mut between = between
        .into_iter()
        .map(|part| text.get(part).unwrap_or_default());
    if units.are_most(&touched) || between.any(|part| has_statement(language, part)) {
        return None;
    }
    let graph = units.graph(module, text);
    let mut is_wanted = graph.with_users(touched);
    // The objects of a class have the values that its methods give them.
    let objects = graph.with_used(is_wanted.clone());
    for (unit, is_object) in objects.into_iter().enumerate() {
        is_wanted[unit] |= is_object && matches!(units.kinds[unit], UnitKind::Class(_));
    }
    if units.are_most(&is_wanted) {
        return None;
    }
    let mut out = Entries {
        functions: vec![false; module.functions.len()],
        classes: vec![false; module.classes.len()],
    };
    for (kind, _) in units.kinds.iter().zip(is_wanted).filter(|(_, is)| *is) {
        let (list, index) = match kind {
            UnitKind::Function(id) => (&mut out.functions, id.0),
            UnitKind::Class(id) => (&mut out.classes, id.0),
            UnitKind::Statement => continue,
        };
        if let Some(is_entry) = list.get_mut(index as usize) {
            *is_entry = true;
        }
    }
    Some(out)
}

/// The units of a file, and the parts of its text that belong to them.
struct Units {
    kinds: Vec<UnitKind>,
    /// In order, without overlaps.
    parts: Vec<UnitPart>,
    /// The parts of statements of the file that are in none of these.
    between: Vec<UnitPart>,
    /// Classes that are in another unit, with that unit.
    inside: Vec<(usize, usize)>,
}

impl Units {
    fn of(module: &Module, is_nested: &[bool]) -> Self {
        let mut kinds: Vec<_> = (0..module.classes.len())
            .filter_map(|index| u32::try_from(index).ok())
            .map(|index| UnitKind::Class(ClassId(index)))
            .collect();
        let classes = module.classes.iter().enumerate();
        let mut parts: Vec<_> = classes.map(|(unit, c)| part(c.span, unit)).collect();
        for (index, function) in module.functions.iter().enumerate() {
            if let Some(class) = function.class {
                parts.push(part(function.span, class.0 as usize));
            } else if is_nested.get(index) == Some(&false)
                && let Ok(id) = u32::try_from(index)
            {
                parts.push(part(function.span, kinds.len()));
                kinds.push(UnitKind::Function(FunctionId(id)));
            }
        }
        parts.sort_by_key(|part| (part.bytes.start, std::cmp::Reverse(part.bytes.end)));
        let mut outer: Vec<UnitPart> = Vec::new();
        let mut inside = Vec::new();
        for part in parts {
            match outer.last() {
                Some(last) if part.bytes.start < last.bytes.end => {
                    if part.unit != last.unit {
                        inside.push((part.unit, last.unit));
                    }
                }
                _ => outer.push(part),
            }
        }
        let mut between = Vec::new();
        for statement in &module.body {
            if matches!(statement.kind, StmtKind::Function(_) | StmtKind::Class(_)) {
                continue;
            }
            let bytes = statement.span.start as usize..statement.span.end as usize;
            let unit = kinds.len();
            kinds.push(UnitKind::Statement);
            let gaps = gaps(&outer, bytes);
            between.extend(gaps.into_iter().map(|bytes| UnitPart { bytes, unit }));
        }
        Self {
            kinds,
            parts: outer,
            between,
            inside,
        }
    }

    /// Returns true if some units are so much of the text that running the others costs little.
    fn are_most(&self, is_wanted: &[bool]) -> bool {
        let size = |part: &UnitPart| part.bytes.len();
        let wanted: usize = self
            .parts
            .iter()
            .filter(|part| is_wanted[part.unit])
            .map(size)
            .sum();
        wanted * 4 > self.parts.iter().map(size).sum::<usize>() * 3
    }

    /// Returns which units contain added bytes, and the added bytes between the units.
    fn touched(&self, added: &[Range<usize>]) -> (Vec<bool>, Vec<Range<usize>>) {
        let mut touched = vec![false; self.kinds.len()];
        let mut between = Vec::new();
        for block in added {
            let mut from = block.start;
            let first = self
                .parts
                .partition_point(|part| part.bytes.end <= block.start);
            for part in self.parts.iter().skip(first) {
                if part.bytes.start >= block.end {
                    break;
                }
                touched[part.unit] = true;
                between.push(from..part.bytes.start.max(from));
                from = part.bytes.end.min(block.end);
            }
            between.push(from..block.end);
        }
        between.retain(|range| !range.is_empty());
        (touched, between)
    }

    /// Returns the units, connected by their names and the names of their members.
    fn graph<'t>(&self, module: &'t Module, text: &'t [u8]) -> NameGraph<'t> {
        let mut graph = NameGraph::new(self.kinds.len());
        let bytes = |part: &UnitPart| text.get(part.bytes.clone()).unwrap_or_default();
        for part in &self.between {
            for word in words(set_by(bytes(part))) {
                graph.declare(part.unit, word);
            }
        }
        for (unit, kind) in self.kinds.iter().enumerate() {
            for name in kind.names(module) {
                graph.declare(unit, last_name(module.word(name)));
            }
        }
        for part in self.parts.iter().chain(&self.between) {
            graph.use_words(part.unit, bytes(part));
        }
        for (inner, outer) in &self.inside {
            graph.tie(*inner, *outer);
        }
        graph
    }
}

impl UnitKind {
    /// Returns the names of a function, or of a class and its members.
    fn names(self, module: &Module) -> Vec<Sym> {
        let function = |id: &FunctionId| module.functions.get(id.0 as usize)?.name;
        match self {
            Self::Function(id) => function(&id).into_iter().collect(),
            Self::Class(id) => {
                let class = module.classes.get(id.0 as usize);
                let names = class.into_iter().flat_map(|class| {
                    let fields = class.fields.iter().map(|field| field.name);
                    let methods = class.methods.iter().filter_map(function);
                    class.name.into_iter().chain(fields).chain(methods)
                });
                names.collect()
            }
            Self::Statement => Vec::new(),
        }
    }
}

/// Returns the bytes of a range that are in none of some parts, which are in order.
fn gaps(parts: &[UnitPart], of: Range<usize>) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    let mut from = of.start;
    let first = parts.partition_point(|part| part.bytes.end <= of.start);
    for part in parts.iter().skip(first) {
        if part.bytes.start >= of.end {
            break;
        }
        out.push(from..part.bytes.start.max(from));
        from = part.bytes.end.max(from);
    }
    out.push(from..of.end.max(from));
    out.retain(|range| !range.is_empty());
    out
}

/// Returns the part of a statement that can have the names that it sets: its left side if it has
/// one.
fn set_by(statement: &[u8]) -> &[u8] {
    let line = memchr::memchr(b'\n', statement).unwrap_or(statement.len());
    let mut equals = memchr::memchr_iter(b'=', &statement[..line]);
    let end = equals.find(|at| is_assignment(statement, *at));
    &statement[..end.unwrap_or(statement.len())]
}

/// Returns true if the equals sign at a byte is neither part of another operator nor sets an
/// argument.
fn is_assignment(text: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|at| text.get(at));
    !matches!(text.get(at + 1), Some(b'=' | b'>' | b'~'))
        && !before.is_some_and(|b| b"=!<>(,".contains(b))
}

fn part(span: ByteSpan, unit: usize) -> UnitPart {
    UnitPart {
        bytes: span.start as usize..span.end as usize,
        unit,
    }
}

/// Returns true if a part of a file outside of functions and classes can have a statement that
/// gives a variable of the file a value. In C, only what follows `=` is one, and a number is a
/// constant.
fn has_statement(language: FlowLanguage, part: &[u8]) -> bool {
    part.split(|b| matches!(b, b'\n' | b'\r'))
        .map(<[u8]>::trim_ascii)
        .any(|line| {
            line.iter().any(|b| is_name(*b))
                && (language != FlowLanguage::C || sets_name(line))
                && !line.starts_with(b"//")
                && (line.starts_with(b"#[") || !line.starts_with(b"#"))
                && !DECLARATIONS.iter().any(|start| line.starts_with(start))
        })
}

/// Returns true if a line has more than a number to the right of an equals sign.
fn sets_name(line: &[u8]) -> bool {
    let value = memchr::memchr(b'=', line).map_or(&[][..], |at| &line[at..]);
    value.iter().any(u8::is_ascii_alphabetic)
}

/// Returns the last name of a path: `run` of `Task::run`, `save` of `save!`.
fn last_name(path: &str) -> &[u8] {
    let mut names = path.as_bytes().rsplit(|b| !is_name(*b));
    names.find(|name| !name.is_empty()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
