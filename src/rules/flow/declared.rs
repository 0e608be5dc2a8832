//! Declarations that make a value harmless: types, annotations and converters of parameters and
//! fields.

use super::names::is_number;
use super::run::FlowRun;
use super::shape::{Annotation, Arg, ExprId, ExprKind, Field, Function, Module, Param, Sym};
use super::strictness::strictness;
use super::value::FlowValue;
use super::{FlowLanguage, SinkKind};
use std::collections::{HashMap, HashSet};

/// All kinds of sinks.
const ALL: u32 = u32::MAX;
/// A type that lowering gives to a field whose tag names a check.
pub(super) const CHECKED: &str = "checked value";

/// Classes with a field of one name, at most: in a file with more, the types of such fields are not
/// known.
const MOST_OWNERS: usize = 32;

/// The declarations of the classes of a file, by name.
#[derive(Debug, Default)]
pub(super) struct Declared {
    enums: HashSet<Sym>,
    /// Indexes of a class and of a field in it.
    fields: HashMap<Sym, Vec<(usize, usize)>>,
}

impl Declared {
    /// Reads the classes of a file.
    pub(super) fn of(module: &Module) -> Self {
        let mut out = Self::default();
        for (c, class) in module.classes.iter().enumerate() {
            out.enums.extend(class.name.filter(|_| class.is_enum));
            for (f, field) in class.fields.iter().enumerate() {
                out.fields.entry(field.name).or_default().push((c, f));
            }
        }
        out.fields.retain(|_, owners| owners.len() <= MOST_OWNERS);
        out
    }
}

/// Attributes of a function and its class that are read, at most.
const ROUTES: usize = 16;
/// Arguments of the attribute `Route` of Symfony without placeholders.
const OF_ROUTE: [&str; 12] = [
    "name",
    "methods",
    "requirements",
    "defaults",
    "options",
    "condition",
    "priority",
    "locale",
    "format",
    "utf8",
    "stateless",
    "schemes",
];

impl<'m> FlowRun<'m> {
    /// Returns the kinds of sinks for which a parameter is harmless, because the framework converts
    /// or checks it. `marks`: the annotations of the function.
    pub(super) fn kinds_of_param(&self, p: &Param, marks: &[Annotation]) -> u32 {
        match self.is_harmless_type(p.ty) || self.is_converted(p, marks) {
            true => ALL,
            false => self.kinds_of_checks(&p.marks, p.default) | self.kinds_of_text(p.ty),
        }
    }

    /// Returns the kinds of sinks that need an object, if a parameter of Python is declared as a
    /// text: frameworks reject an object there. A text that is parsed later is harmful again.
    fn kinds_of_text(&self, ty: Option<Sym>) -> u32 {
        let is_text = ty.is_some_and(|ty| self.module.word(ty) == "str");
        match is_text && self.language == FlowLanguage::Python {
            true => SinkKind::NoSql.bit() | SinkKind::MassAssignment.bit(),
            false => 0,
        }
    }

    /// Returns the kinds of sinks for which a field is harmless, if the file declares the class of
    /// the value.
    pub(super) fn kinds_of_field(&mut self, base: &FlowValue, name: Sym) -> u32 {
        let Some(path) = base.path.filter(|_| base.taints.is_some()) else {
            return 0;
        };
        let owners = self.declared.fields.get(&name).cloned().unwrap_or_default();
        for (class, field) in owners {
            let Some(class) = self.module.classes.get(class) else {
                continue;
            };
            let (Some(field), Some(class)) = (class.fields.get(field), class.name) else {
                continue;
            };
            if self.type_path(class) == Some(path) {
                return self.kinds_of_declaration(field);
            }
        }
        0
    }

    fn kinds_of_declaration(&self, field: &Field) -> u32 {
        match self.is_harmless_type(field.ty) {
            true => ALL,
            false => self.kinds_of_checks(&field.marks, field.value),
        }
    }

    /// Returns true for a number, a date, a UUID, and an enum of the file.
    fn is_harmless_type(&self, ty: Option<Sym>) -> bool {
        let Some(ty) = ty else { return false };
        let word = self.module.word(ty);
        is_number(word) || word == CHECKED || self.declared.enums.contains(&ty)
    }

    /// Returns the kinds of annotations such as `@Pattern(regexp = "…")` and of defaults such as
    /// `Query(pattern="…")`.
    fn kinds_of_checks(&self, marks: &[Annotation], default: Option<ExprId>) -> u32 {
        let of_default = match default.map(|d| &self.module.expr(d).kind) {
            Some(ExprKind::Call { args, .. }) => {
                self.kinds_of_expressions(args, &["pattern", "regex"], false)
            }
            _ => 0,
        };
        let checks = marks
            .iter()
            .filter(|m| matches!(self.name_of_mark(m), "Pattern" | "RegularExpression"));
        let of_marks =
            checks.map(|m| self.kinds_of_expressions(&m.args, &["regexp", "pattern"], true));
        of_marks.fold(of_default, |all, kinds| all | kinds)
    }

    /// Returns the kinds for which a text is harmless that the expressions in arguments match.
    /// `keywords`: names of these arguments; one without a name counts too. `is_full`: an
    /// expression has to match the whole text, as `javax.validation` and ASP.NET define it.
    fn kinds_of_expressions(&self, args: &[Arg], keywords: &[&str], is_full: bool) -> u32 {
        let named = args.iter().filter(|a| {
            a.keyword
                .is_none_or(|k| keywords.contains(&self.module.word(k)))
        });
        let texts = named.filter_map(|a| match &self.module.expr(a.value).kind {
            ExprKind::Text(text) => Some(text),
            _ => None,
        });
        texts
            .map(|text| strictness(text, is_full))
            .fold(0, |all, kinds| all | kinds)
    }

    fn name_of_mark(&self, mark: &Annotation) -> &'m str {
        match self.module.expr(mark.name).kind {
            ExprKind::Name(name) | ExprKind::Member { name, .. } => self.module.word(name),
            _ => "",
        }
    }

    /// Returns true if a route's converter admits numbers or UUIDs only: `/user/<int:id>`, and with
    /// a converter of the program itself `/user/<uuid_str:id>`.
    fn is_converted(&self, p: &Param, marks: &[Annotation]) -> bool {
        let Some(name) = p.name.map(|name| self.module.word(name)) else {
            return false;
        };
        marks
            .iter()
            .flat_map(|m| &m.args)
            .any(|a| match &self.module.expr(a.value).kind {
                ExprKind::Text(path) => {
                    converter_of(path, name).is_some_and(admits_identifiers_only)
                }
                _ => false,
            })
    }

    /// Returns true if a parameter of an action of Symfony is not in the path of its routes: then
    /// the container of services passes the value
    /// (<https://symfony.com/doc/current/controller.html#fetching-services>). A path that is not
    /// written out may have every name.
    pub(super) fn is_beside_route(&self, p: &Param, function: &Function) -> bool {
        let is_plain = self.language == FlowLanguage::Php && p.marks.is_empty();
        let Some(name) = p.name.filter(|_| is_plain) else {
            return false;
        };
        let name = self.module.word(name).trim_start_matches('$');
        let class = function
            .class
            .and_then(|c| self.module.classes.get(c.0 as usize));
        let class_marks = class.map(|c| &c.marks[..]).unwrap_or_default();
        let mut texts = Vec::new();
        let marks = function.marks.iter().chain(class_marks).take(ROUTES);
        for mark in marks {
            let is_route = match &self.module.expr(mark.name).kind {
                ExprKind::Name(word) | ExprKind::Member { name: word, .. } => {
                    self.module.word(*word) == "Route"
                }
                _ => false,
            };
            if is_route && !self.add_texts_of_route(mark, &mut texts) {
                return false;
            }
        }
        let is_complete = function.marks.len() + class_marks.len() <= ROUTES;
        is_complete && !texts.is_empty() && !texts.iter().any(|text| has_placeholder(text, name))
    }

    /// Adds the texts of an attribute `Route` that can have placeholders. Returns false if one is not
    /// written out, or if the attribute has arguments that are unknown.
    fn add_texts_of_route(&self, mark: &Annotation, texts: &mut Vec<&'m str>) -> bool {
        let module = self.module;
        let mut is_first = true;
        for argument in &mark.args {
            let keyword = argument.keyword.map(|k| module.word(k));
            let is_path = matches!(keyword, Some("path" | "host")) || keyword.is_none() && is_first;
            is_first = false;
            match &module.expr(argument.value).kind {
                _ if argument.is_spread => return false,
                ExprKind::Text(text) if is_path => texts.push(text),
                _ if keyword.is_some_and(|k| OF_ROUTE.contains(&k)) => {}
                _ => return false,
            }
        }
        true
    }
}

/// Returns true if a path of Symfony has a placeholder: `{id}`, `{id?1}`, `{id<\d+>}`, `{!id}`,
/// `{id:post}`.
fn has_placeholder(path: &str, name: &str) -> bool {
    path.split('{').skip(1).any(|part| {
        let rest = part.trim_start_matches('!').strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with(['}', '?', '<', ':', '.']))
    })
}

/// Returns the name of the converter of a parameter in the pattern of a route. `None`: the
/// parameter has none.
fn converter_of<'p>(path: &'p str, parameter: &str) -> Option<&'p str> {
    let end = path.find(&format!(":{parameter}>"))?;
    let start = path[..end].rfind('<')?;
    Some(&path[start + 1..end])
}

/// Returns true if the name of a converter says that it admits numbers or UUIDs only: converters of
/// Werkzeug, and the usual name of a converter for UUIDs as texts.
fn admits_identifiers_only(converter: &str) -> bool {
    matches!(converter, "int" | "float" | "uuid" | "uuid_str")
}
