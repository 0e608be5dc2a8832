//! Declarations and assignments: to names, members, elements and patterns.

use super::run::{FlowRun, THIS};
use super::shape::{ByteSpan, ExprId, Sym};
use super::value::{Const, FlowValue, ItemKey, What};
use super::{SinkKind, names};

impl<'m> FlowRun<'m> {
    pub(super) fn declare(&mut self, target: ExprId, ty: Option<Sym>, value: Option<ExprId>) {
        self.into = self.name_of(target);
        let mut v = value.map(|id| self.eval(id)).unwrap_or_default();
        self.into = None;
        if let Some(id) = value {
            self.remember(target, id);
        }
        if let Some(ty) = ty {
            v = self.typed(v, ty);
        }
        self.bind(target, v);
    }

    /// Returns a value with the facts of a declared type.
    pub(super) fn typed(&mut self, v: FlowValue, ty: Sym) -> FlowValue {
        let word = self.module.word(ty);
        if names::is_number(word) {
            return FlowValue {
                constant: v.constant,
                ..self.number(&v.taints)
            };
        }
        if v.what != What::Other || matches!(v.constant, Some(Const::Text(_))) {
            return v;
        }
        let has_type = v.path.is_some_and(|p| {
            self.paths.root_of(p) != super::paths::Root::Unknown && !self.paths.is_call(p)
        });
        if has_type || names::is_text(word) {
            return v;
        }
        let path = self.type_path(ty);
        FlowValue {
            path: path.or(v.path),
            ..v
        }
    }

    /// Assigns to a target.
    pub(super) fn bind(&mut self, target: ExprId, v: FlowValue) {
        use super::shape::ExprKind;
        let module = self.module;
        match &module.expr(target).kind {
            ExprKind::Name(name) => {
                let name = self.variable(*name);
                let v = self.through(v, module.expr(target).span);
                self.check_global(target, name, &v);
                self.env.set(name, v);
            }
            ExprKind::This => self.env.set(THIS, v),
            ExprKind::Pass(of) | ExprKind::Cast { of, .. } => self.bind(*of, v),
            ExprKind::Member { of, name } => {
                let word: std::rc::Rc<str> = module.word(*name).into();
                self.check_write(target, *of, *name, &v);
                let v = if self.is_part_after_host(*of, *name) {
                    v.clean(SinkKind::Redirect.bit() | SinkKind::Url.bit())
                } else {
                    v
                };
                let v = self.through(v, module.expr(target).span);
                self.update(*of, Some(ItemKey::Text(word)), v);
            }
            ExprKind::Index { of, key } => {
                let k = self.eval(*key);
                if let Some(Const::Text(t)) = &k.constant {
                    self.check_item_write(target, *of, t, &v);
                }
                let key = k.constant.as_ref().and_then(super::constant::key);
                self.update(*of, key, v);
            }
            ExprKind::Collection(items) => {
                for (i, item) in items.iter().enumerate() {
                    let key = match item.key {
                        Some(k) => match &module.expr(k).kind {
                            ExprKind::Text(t) => Some(ItemKey::Text(t.clone())),
                            ExprKind::Name(n) => Some(ItemKey::Text(module.word(*n).into())),
                            _ => None,
                        },
                        None => i64::try_from(i).ok().map(ItemKey::Int),
                    };
                    let part = if item.is_spread {
                        v.clone()
                    } else {
                        self.part(&v, key.as_ref(), module.expr(item.value).span)
                    };
                    self.bind(item.value, part);
                }
            }
            // A default in a pattern: `{ a = 1 }`.
            ExprKind::Assign { target, value, .. } => {
                let default = self.eval(*value);
                let v = if v.is_empty() {
                    default
                } else {
                    FlowValue {
                        constant: None,
                        ..v
                    }
                };
                self.bind(*target, v);
            }
            _ => {
                self.eval(target);
            }
        }
    }

    /// Returns true for a part of an object of `URL` that cannot change its host: `url.pathname`.
    fn is_part_after_host(&mut self, of: ExprId, name: Sym) -> bool {
        use super::FlowLanguage as L;
        if !matches!(self.language, L::JavaScript | L::TypeScript | L::Tsx)
            || !matches!(self.module.word(name), "pathname" | "search" | "hash")
        {
            return false;
        }
        let path = self.quiet(of).path.map(|p| self.paths.text(p));
        path.is_some_and(|p| matches!(p.rsplit('.').next(), Some("URL" | "URL()")))
    }

    /// Returns a part of a destructured value: `{ query } = request`.
    fn part(&mut self, v: &FlowValue, key: Option<&ItemKey>, span: ByteSpan) -> FlowValue {
        match key {
            Some(ItemKey::Text(word)) => match self.module.find(word) {
                Some(name) => self.member_of(v, name, span),
                None => v.item(key),
            },
            _ => v.item(key),
        }
    }

    /// Stores a value under a key of the collection to which an expression refers.
    pub(super) fn update(&mut self, of: ExprId, key: Option<ItemKey>, v: FlowValue) {
        let mut holder = self.place(of);
        // A value that is put into an object of unknown content also becomes a part of it.
        holder.put(key, v);
        self.store(of, holder);
    }

    /// Returns the value of an assignable expression, without the roles of its path.
    fn place(&mut self, id: ExprId) -> FlowValue {
        use super::shape::ExprKind;
        match &self.module.expr(id).kind {
            ExprKind::Name(_)
            | ExprKind::This
            | ExprKind::Member { .. }
            | ExprKind::Index { .. } => self.eval(id),
            ExprKind::Pass(of) | ExprKind::Cast { of, .. } => self.place(*of),
            _ => self.eval(id),
        }
    }

    /// Replaces the value of a variable, field or item.
    pub(super) fn store(&mut self, id: ExprId, v: FlowValue) {
        use super::shape::ExprKind;
        if !self.enter() {
            return;
        }
        let module = self.module;
        match &module.expr(id).kind {
            ExprKind::Name(name) => {
                let name = self.variable(*name);
                self.env.set(name, v);
            }
            ExprKind::This => self.env.set(THIS, v),
            ExprKind::Pass(of) | ExprKind::Cast { of, .. } => self.store(*of, v),
            // `text.Append(a).Append(b)` changes `text`.
            ExprKind::Call { callee, .. } => {
                if let ExprKind::Member { of, name } = &module.expr(*callee).kind
                    && matches!(
                        module.word(*name),
                        "append" | "Append" | "AppendLine" | "AppendFormat"
                    )
                {
                    self.store(*of, v);
                }
            }
            ExprKind::Member { of, name } => {
                let word = module.word(*name).into();
                self.update(*of, Some(ItemKey::Text(word)), v);
            }
            ExprKind::Index { of, key } => {
                let key = self
                    .eval(*key)
                    .constant
                    .as_ref()
                    .and_then(super::constant::key);
                self.update(*of, key, v);
            }
            _ => {}
        }
        self.leave();
    }

    /// Returns the variable of a name. The receiver's name is the object.
    pub(super) fn variable(&self, name: Sym) -> Sym {
        if self.frames.iter().rev().any(|f| f.receiver == Some(name)) {
            THIS
        } else {
            name
        }
    }

    /// Returns the name of a target, for conditions on names.
    pub(super) fn name_of(&self, target: ExprId) -> Option<Sym> {
        use super::shape::ExprKind;
        match &self.module.expr(target).kind {
            ExprKind::Name(n) | ExprKind::Member { name: n, .. } => Some(*n),
            ExprKind::Collection(items) => items.first().and_then(|i| self.name_of(i.value)),
            ExprKind::Index { key, .. } => match &self.module.expr(*key).kind {
                ExprKind::Text(t) => self.module.find(t),
                _ => None,
            },
            _ => None,
        }
    }
}
