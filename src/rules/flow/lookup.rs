//! Values of names: variables, fields of the own object, imports and types.

use super::paths::{Calling, PathId, Root};
use super::run::{FlowRun, THIS};
use super::shape::{ByteSpan, ExprId, ExprKind, Sym};
use super::value::{FlowValue, ItemKey, What};
use super::{FlowLanguage, TaintKind};

impl<'m> FlowRun<'m> {
    /// Returns true for an expression that refers to the object of the method.
    pub(super) fn is_this(&self, id: ExprId) -> bool {
        match &self.module.expr(id).kind {
            ExprKind::This => true,
            ExprKind::Name(n) => self.variable(*n) == THIS || self.module.word(*n) == "self",
            _ => false,
        }
    }

    /// Returns the path `self.name`, `this.name` or `conn.name` of a variable, for table entries
    /// that start with it.
    pub(super) fn own_path(&mut self, of: ExprId, name: Sym) -> Option<PathId> {
        let own = if self.is_this(of) {
            if self.language == FlowLanguage::Python {
                "self"
            } else {
                "this"
            }
        } else {
            match &self.module.expr(of).kind {
                ExprKind::Name(n) => self.module.word(*n),
                _ => return None,
            }
        };
        let path = self.paths.root(own, Root::Free);
        Some(self.paths.member(Some(path), name, self.module.word(name)))
    }

    pub(super) fn this(&mut self) -> FlowValue {
        if let Some(v) = self.env.get(THIS) {
            return v.clone();
        }
        match self.class() {
            Some(c) => FlowValue {
                what: What::Instance(c),
                path: self.base_path(c),
                ..FlowValue::default()
            },
            None => {
                let path = self.paths.root(
                    if self.language == FlowLanguage::Python {
                        "self"
                    } else {
                        "this"
                    },
                    Root::Free,
                );
                FlowValue::at(path)
            }
        }
    }

    pub(super) fn parent(&mut self) -> FlowValue {
        let v = self.this();
        let path = self.class().and_then(|c| self.base_path(c)).or(v.path);
        FlowValue {
            what: What::Other,
            path,
            ..v
        }
    }

    /// Returns the value of a name.
    pub(super) fn name(&mut self, name: Sym, span: ByteSpan) -> FlowValue {
        let variable = self.variable(name);
        if variable == THIS {
            return self.this();
        }
        if let Some(v) = self.env.get(name).or_else(|| self.globals.get(name)) {
            let v = v.clone();
            return self.conventional(v, name);
        }
        if let Some(f) = self.functions.get(&name) {
            return FlowValue::defined(What::Function(*f));
        }
        if let Some(c) = self.classes.get(&name).copied() {
            let path = self.base_path(c);
            return FlowValue {
                what: What::Class(c),
                path,
                ..FlowValue::default()
            };
        }
        // A field without `this.`.
        if let Some(v) = self.own_field(name) {
            return self.conventional(v, name);
        }
        let path = self.free(name);
        let v = self.read(path, FlowValue::default(), span);
        let v = self.conventional(v, name);
        // A name that a snippet does not define comes from code outside of it.
        let is_elsewhere = self.is_snippet
            && v.taints.is_none()
            && v.path == Some(path)
            && self.paths.root_of(path) == Root::Free;
        if is_elsewhere
            && self
                .module
                .word(name)
                .trim_start_matches('$')
                .starts_with(|c: char| c.is_ascii_lowercase())
        {
            let data = self.origin(span, "variable", TaintKind::Parameter, 0);
            return v.with(&data);
        }
        v
    }

    fn own_field(&mut self, name: Sym) -> Option<FlowValue> {
        self.class()?;
        let key = ItemKey::Text(self.module.word(name).into());
        let this = self.env.get(THIS)?;
        this.items.as_ref()?.keys.get(&key).cloned()
    }

    /// Returns the path of a name that is not a variable.
    pub(super) fn free(&mut self, name: Sym) -> PathId {
        if let Some(p) = self.imports.get(&name) {
            return *p;
        }
        let word = self.module.word(name);
        let usual = self.table.usual_names;
        let path = match usual.binary_search_by_key(&word, |(last, _)| last) {
            Ok(at) => self.paths.root(usual[at].1, Root::Known),
            Err(_) => self
                .imported_with_all(name)
                .unwrap_or_else(|| self.paths.root(word, Root::Free)),
        };
        self.imports.insert(name, path);
        path
    }

    /// Returns true if the file imports a path that matches a regular expression of the tables.
    pub(super) fn imports(&mut self, pattern: &'static str) -> bool {
        let module = self.module;
        let mut paths = module.imports.iter().map(|i| module.word(i.path));
        paths.any(|path| self.fits(pattern, path))
    }

    /// Returns the path of a name that the tables list in a package whose names are all imported:
    /// `import . "os/exec"`, `from os import *`.
    fn imported_with_all(&mut self, name: Sym) -> Option<PathId> {
        if !matches!(self.language, FlowLanguage::Go | FlowLanguage::Python) {
            return None;
        }
        let module = self.module;
        for import in module
            .imports
            .iter()
            .filter(|i| module.word(i.alias) == "*")
        {
            let package = self.module_path(module.word(import.path));
            let path = self.paths.member(Some(package), name, module.word(name));
            let called = self.paths.call(path, Calling::Plain);
            let is_known = self.paths.root_of(path) == Root::Known;
            if is_known
                && [path, called]
                    .into_iter()
                    .any(|p| !self.paths.hits(p).is_empty())
            {
                return Some(path);
            }
        }
        None
    }

    /// Gives a value of unknown type the type that its name suggests.
    pub(super) fn conventional(&mut self, v: FlowValue, name: Sym) -> FlowValue {
        if v.what != What::Other || v.items.is_some() || v.constant.is_some() {
            return v;
        }
        // A declared type is more specific than the name.
        let is_typed = matches!(
            self.language,
            FlowLanguage::Java | FlowLanguage::Kotlin | FlowLanguage::CSharp
        );
        if is_typed
            && v.path.is_some_and(|p| {
                self.paths
                    .text(p)
                    .starts_with(|c: char| c.is_ascii_uppercase())
            })
        {
            return v;
        }
        let is_unknown = v.path.is_none_or(|p| self.paths.root_of(p) != Root::Known);
        if !is_unknown || v.path.is_some_and(|declared| self.is_other(declared, name)) {
            return v;
        }
        match self.table.named(self.module.word(name)) {
            Some(ty) => {
                let path = self.paths.root(ty, Root::Known);
                FlowValue {
                    path: Some(path),
                    ..v
                }
            }
            None => v,
        }
    }

    /// Returns true if the declared type of a parameter says that it is not what its name suggests:
    /// a `RequestInterface` of PHP is a request that a client sends.
    fn is_other(&mut self, declared: PathId, name: Sym) -> bool {
        let word = self.module.word(name);
        let mut handlers = self.table.handlers.iter();
        handlers.any(|h| {
            h.param_name.contains(&word) && h.not_type.iter().any(|t| self.paths.is(declared, t))
        })
    }

    /// Returns the path of a type by its name.
    pub(super) fn type_path(&mut self, ty: Sym) -> Option<PathId> {
        let word = self.module.word(ty);
        if word.is_empty() {
            return None;
        }
        let (first, rest) = word
            .split_once('.')
            .map_or((word, None), |(f, r)| (f, Some(r)));
        let Some(sym) = self.module.find(first) else {
            return Some(self.paths.root(word, Root::Free));
        };
        let mut path = self.free(sym);
        for part in rest.into_iter().flat_map(|r| r.split('.')) {
            path = match self.module.find(part) {
                Some(s) => self.paths.member(Some(path), s, part),
                None => {
                    let text = format!("{}.{part}", self.paths.text(path));
                    let root = self.paths.root_of(path);
                    self.paths.root(&text, root)
                }
            };
        }
        Some(path)
    }
}
