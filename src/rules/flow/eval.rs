//! Evaluates expressions to abstract values.

use super::doubt::Doubt;
use super::names::is_number;
use super::paths::{PathId, Root};
use super::run::{FlowRun, join_envs};
use super::shape::{Arm, ByteSpan, CollectionItem, ExprId, ExprKind, Op, Sym};
use super::table::{Place, Role};
use super::value::{
    Const, FlowValue, ItemKey, Items, Taint, Taints, Trail, What, join, join_taints,
};
use super::{FlowLanguage, SinkKind, constant, guard};
use std::rc::Rc;

/// Steps of a path that are kept, at most.
const MOST_STEPS: u32 = 14;

impl<'m> FlowRun<'m> {
    /// Returns the value of an expression.
    pub(super) fn eval(&mut self, id: ExprId) -> FlowValue {
        if !self.tick() || !self.enter() {
            return FlowValue::default();
        }
        let v = self.eval_inside(id);
        self.leave();
        if v.taints.is_some() && self.env.has_checks() {
            return self.apply_checks(id, v);
        }
        v
    }

    fn apply_checks(&mut self, id: ExprId, v: FlowValue) -> FlowValue {
        let hash = guard::hash(self, id);
        match self.env.checks(hash) {
            0 => v,
            kinds => v.clean(kinds),
        }
    }

    fn eval_inside(&mut self, id: ExprId) -> FlowValue {
        let module = self.module;
        let e = module.expr(id);
        match &e.kind {
            ExprKind::Text(t) => FlowValue::constant(Const::Text(Rc::clone(t))),
            ExprKind::Int(i) => FlowValue::constant(Const::Int(*i)),
            ExprKind::Float(f) => FlowValue::constant(Const::Float(*f)),
            ExprKind::Bool(b) => FlowValue::constant(Const::Bool(*b)),
            ExprKind::Null => FlowValue::constant(Const::Null),
            ExprKind::Regex(t) => FlowValue::constant(Const::Regex(Rc::clone(t))),
            ExprKind::Name(name) => self.name(*name, e.span),
            ExprKind::This => self.this(),
            ExprKind::Super => self.parent(),
            ExprKind::Member { of, name } => {
                let base = self.eval(*of);
                let v = self.member_of(&base, *name, e.span);
                if v.items.is_none()
                    && v.what == What::Other
                    && v.path.is_none_or(|p| self.paths.hits(p).is_empty())
                    && let Some(own) = self.own_path(*of, *name)
                    && !self.paths.hits(own).is_empty()
                {
                    return self.read(own, v, e.span);
                }
                v
            }
            ExprKind::Index { of, key } => self.index(*of, *key, e.span),
            ExprKind::Call { callee, args } => self.call(*callee, args, e.span),
            ExprKind::New { class, args } => self.create(*class, args, e.span),
            ExprKind::Concat(parts) => {
                let values: Vec<FlowValue> = parts.iter().map(|p| self.eval(*p)).collect();
                self.concat(&values)
            }
            ExprKind::Binary { op, left, right } => self.binary(*op, *left, *right),
            ExprKind::Not(of) => {
                let v = self.eval(*of);
                let truth = v.constant.as_ref().and_then(Const::truth);
                truth.map_or_else(FlowValue::default, |t| FlowValue::constant(Const::Bool(!t)))
            }
            ExprKind::Negate(of) => {
                let v = self.eval(*of);
                match v.constant {
                    Some(Const::Int(i)) => FlowValue::constant(Const::Int(i.wrapping_neg())),
                    Some(Const::Float(f)) => FlowValue::constant(Const::Float(-f)),
                    _ => self.number(&v.taints),
                }
            }
            ExprKind::Conditional { test, yes, no } => self.conditional(*test, *yes, *no),
            ExprKind::Collection(items) => self.collection(items),
            ExprKind::Function(f) => {
                self.run_entry(*f, None);
                FlowValue::defined(What::Function(*f))
            }
            ExprKind::Cast { of, ty } => self.cast(*of, *ty),
            ExprKind::Pass(of) => self.eval(*of),
            ExprKind::Assign { target, op, value } => self.assignment(*target, *op, *value),
            ExprKind::Comprehension {
                target,
                iterable,
                tests,
                element,
            } => self.comprehension(*target, *iterable, tests, *element),
            ExprKind::Block { body, value } => {
                self.block(body);
                match value {
                    Some(v) if self.is_alive => self.eval(*v),
                    _ => FlowValue::default(),
                }
            }
            ExprKind::Match { subject, arms } => self.choose(*subject, arms),
            ExprKind::IsType { of, .. } => {
                self.eval(*of);
                FlowValue::default()
            }
            ExprKind::Unknown(parts) => {
                let mut taints: Taints = None;
                for p in parts {
                    let v = self.eval(*p);
                    taints = join_taints(&taints, &v.deep());
                }
                FlowValue::tainted(taints)
            }
        }
    }

    /// Returns the value of data that became a number. It matters only for memory.
    pub(super) fn number(&self, taints: &Taints) -> FlowValue {
        if !matches!(self.language, FlowLanguage::C | FlowLanguage::Cpp) {
            return FlowValue::default();
        }
        FlowValue::tainted(taints.clone()).clean(!SinkKind::Memory.bit())
    }

    /// Applies the table entries of a path that is read.
    pub(super) fn read(&mut self, path: PathId, base: FlowValue, span: ByteSpan) -> FlowValue {
        let mut v = FlowValue {
            path: Some(path),
            ..base
        };
        for hit in self.paths.hits(path).iter().filter(|h| !h.write) {
            match hit.role {
                Role::Source(i) => {
                    let Some(s) = self.table.sources.get(usize::from(i)) else {
                        continue;
                    };
                    if s.args.contains(&Place::Result) {
                        let data = self.origin(span, s.label, s.kind, s.clean);
                        v.taints = join_taints(&v.taints, &data);
                    }
                }
                Role::Type(i) => {
                    if let Some(ty) = self.table.types.get(usize::from(i)) {
                        v.path = Some(self.paths.root(ty.is, Root::Known));
                    }
                }
                Role::Propagator(i) => {
                    if self
                        .table
                        .propagators
                        .get(usize::from(i))
                        .is_some_and(|p| p.from.is_empty())
                    {
                        v.taints = None;
                    }
                }
                Role::Sanitizer(i) => {
                    let kinds = self
                        .table
                        .sanitizers
                        .get(usize::from(i))
                        .map_or(0, |s| s.kinds);
                    v = v.clean(kinds);
                }
                Role::Sink(_) | Role::Guard(_) | Role::Call(_) => {}
            }
        }
        v
    }

    /// Returns a member of a value.
    pub(super) fn member_of(&mut self, base: &FlowValue, name: Sym, span: ByteSpan) -> FlowValue {
        let word = self.module.word(name);
        let key = ItemKey::Text(word.into());
        if let Some(v) = base.items.as_ref().and_then(|i| i.keys.get(&key)) {
            let v = v.with(&base.taints);
            return self.conventional(v, name);
        }
        if let What::Instance(c) | What::Class(c) = base.what {
            if let Some(f) = self.method(c, name) {
                let is_getter = self
                    .module
                    .functions
                    .get(f.0 as usize)
                    .is_some_and(|f| f.is_getter);
                if is_getter {
                    return self.invoke(f, Some(base.clone()), &[], span).0;
                }
                return FlowValue::defined(What::Function(f));
            }
            if let Some(v) = self
                .objects
                .get(c.0 as usize)
                .and_then(|o| o.items.as_ref()?.keys.get(&key).cloned())
            {
                return self.conventional(v, name);
            }
        }
        let is_script = matches!(
            self.language,
            FlowLanguage::JavaScript | FlowLanguage::TypeScript | FlowLanguage::Tsx
        );
        let is_size = word == "length"
            || word == "Length"
            || (matches!(word, "size" | "Count") && !is_script);
        if is_size && base.taints.is_some() {
            return self.number(&base.taints);
        }
        let path = self.paths.member(base.path, name, word);
        let rest = base
            .items
            .as_ref()
            .and_then(|i| i.rest.clone())
            .unwrap_or_default();
        let own = FlowValue::tainted(join_taints(&base.taints, &rest.taints));
        let harmless = self.kinds_of_field(base, name);
        let v = self.read(path, own, span).clean(harmless);
        self.conventional(v, name)
    }

    fn index(&mut self, of: ExprId, key: ExprId, span: ByteSpan) -> FlowValue {
        let base = self.eval(of);
        let k = self.eval(key);
        let Some(c) = &k.constant else {
            // A table of constants is harmless for every key.
            let item = self.element(&base, span);
            return FlowValue {
                constant: None,
                ..item
            };
        };
        if let (Some(Const::Text(text)), Some(Const::Int(i))) = (&base.constant, &k.constant) {
            return constant::char_at(text, *i)
                .map_or_else(FlowValue::default, FlowValue::constant);
        }
        let key = constant::key(c);
        if let Some(v) = base
            .items
            .as_ref()
            .zip(key.as_ref())
            .and_then(|(i, k)| i.keys.get(k))
        {
            return v.with(&base.taints);
        }
        match (&key, base.path) {
            (Some(ItemKey::Text(t)), Some(path)) => {
                let member = self.paths.member_word(path, t);
                if self.paths.hits(member).is_empty() {
                    let item = base.item(key.as_ref());
                    let list = self.paths.member(Some(path), Sym(u32::MAX - 1), "[]");
                    if self.paths.hits(list).is_empty() {
                        // An item keeps the type that the tables assign to the collection.
                        let is_type =
                            self.paths.root_of(path) == Root::Known && !self.paths.is_call(path);
                        return FlowValue {
                            path: Some(if is_type { path } else { member }),
                            ..item
                        };
                    }
                    self.read(list, item, span)
                } else {
                    self.read(member, base.item(key.as_ref()), span)
                }
            }
            (_, Some(path)) => {
                let list = self.paths.member(Some(path), Sym(u32::MAX - 1), "[]");
                self.read(list, base.item(key.as_ref()), span)
            }
            _ => base.item(key.as_ref()),
        }
    }

    fn choose(&mut self, subject: Option<ExprId>, arms: &'m [Arm]) -> FlowValue {
        let v = subject.map(|s| self.eval(s));
        let constant = v.and_then(|v| v.constant);
        let before = self.env.clone();
        let mut out: Option<FlowValue> = None;
        let mut env = None;
        for arm in arms {
            self.put(Some(before.clone()));
            let mut is_constant = !arm.tests.is_empty();
            let mut is_it = false;
            for t in &arm.tests {
                let test = self.eval(*t);
                is_constant &= test.constant.is_some();
                is_it |= constant.is_some() && test.constant == constant;
                if subject.is_none() {
                    guard::assume(self, *t, true);
                }
            }
            if constant.is_some() && is_constant && !is_it {
                continue;
            }
            if let Some(s) = subject
                && is_constant
            {
                guard::cleanse(self, s, u32::MAX);
            }
            let value = self.eval(arm.value);
            if self.is_alive {
                out = Some(match out {
                    Some(o) => join(&o, &value),
                    None => value,
                });
            }
            let end = self.take();
            env = join_envs(env, end);
            if is_it || (constant.is_some() && arm.tests.is_empty()) {
                break;
            }
        }
        self.put(Some(env.unwrap_or(before)));
        out.unwrap_or_default()
    }

    fn collection(&mut self, list: &'m [CollectionItem]) -> FlowValue {
        let mut v = FlowValue::collection(if list.iter().all(|i| i.key.is_none()) {
            Items::list()
        } else {
            Items::default()
        });
        for item in list {
            let value = self.item_value(item);
            if item.is_spread {
                self.spread(&mut v, &value);
                continue;
            }
            match item.key {
                None => v.push(value),
                Some(k) => {
                    let key = match &self.module.expr(k).kind {
                        ExprKind::Text(t) => Some(ItemKey::Text(Rc::clone(t))),
                        _ => {
                            let key = self.eval(k);
                            // Data in a key becomes data of the collection.
                            v.taints = join_taints(&v.taints, &key.taints);
                            key.constant.as_ref().and_then(constant::key)
                        }
                    };
                    v.put(key, value);
                }
            }
        }
        v
    }

    /// Evaluates the value of an item of a literal.
    fn item_value(&mut self, item: &'m CollectionItem) -> FlowValue {
        let key = match item.key.map(|k| &self.module.expr(k).kind) {
            Some(ExprKind::Text(key)) if self.options_at == Some(self.frames.len()) => key,
            _ => return self.eval(item.value),
        };
        let before = self.option_key.replace((self.frames.len(), Rc::clone(key)));
        let value = self.eval(item.value);
        self.option_key = before;
        value
    }

    fn spread(&mut self, v: &mut FlowValue, from: &FlowValue) {
        v.taints = join_taints(&v.taints, &from.taints);
        let Some(items) = &from.items else {
            // The spread data may replace every key.
            if from.taints.is_some()
                && let Some(items) = &v.items
            {
                let old: Vec<(ItemKey, FlowValue)> = items
                    .keys
                    .iter()
                    .filter(|(k, _)| matches!(k, ItemKey::Text(_)))
                    .map(|(k, w)| (k.clone(), w.clone()))
                    .collect();
                for (k, w) in old {
                    v.put(
                        Some(k),
                        FlowValue {
                            constant: None,
                            ..w.with(&from.taints)
                        },
                    );
                }
            }
            v.put(None, FlowValue::tainted(from.taints.clone()));
            return;
        };
        for (k, item) in &items.keys {
            match k {
                ItemKey::Text(_) => v.put(Some(k.clone()), item.clone()),
                ItemKey::Int(_) => v.push(item.clone()),
            }
        }
        if let Some(r) = &items.rest {
            v.put(None, r.clone());
        }
    }

    fn cast(&mut self, of: ExprId, ty: Sym) -> FlowValue {
        let v = self.eval(of);
        if is_number(self.module.word(ty)) {
            return match v.constant {
                Some(c) => FlowValue::constant(c),
                None => self.number(&v.taints),
            };
        }
        // A cast to a class is more specific than the declared type: `(HttpServletRequest) request`
        // of a filter.
        let is_class = matches!(
            self.language,
            FlowLanguage::Java | FlowLanguage::Kotlin | FlowLanguage::CSharp
        ) && v.what == What::Other
            && v.constant.is_none()
            && !super::names::is_text(self.module.word(ty));
        if is_class && let Some(path) = self.type_path(ty) {
            return FlowValue {
                path: Some(path),
                ..v
            };
        }
        self.typed(v, ty)
    }

    fn assignment(&mut self, target: ExprId, op: Option<Op>, value: ExprId) -> FlowValue {
        let before = self.into;
        self.into = self.name_of(target);
        let v = self.eval(value);
        self.into = before;
        let v = match op {
            None => v,
            Some(op) => {
                let old = self.eval(target);
                let folded = match (&old.constant, &v.constant) {
                    (Some(x), Some(y)) => constant::binary(op, x, y),
                    _ => None,
                };
                match (folded, op) {
                    (Some(c), _) => FlowValue::constant(c),
                    (None, Op::Add) => self.add(&old, &v),
                    (None, Op::And | Op::Or | Op::Else) => join(&old, &v),
                    (None, Op::Rem) => self.format(&old, &v),
                    (None, Op::Div) if self.language == FlowLanguage::Python => old.with(&v.taints),
                    (None, _) => self.number(&join_taints(&old.taints, &v.taints)),
                }
            }
        };
        self.remember(target, value);
        let kept = self.written.replace(value);
        self.bind(target, v.clone());
        self.written = kept;
        v
    }

    fn comprehension(
        &mut self,
        target: ExprId,
        iterable: ExprId,
        tests: &'m [ExprId],
        element: ExprId,
    ) -> FlowValue {
        let v = self.eval(iterable);
        let before = self.env.clone();
        let item = self.element(&v, self.module.expr(target).span);
        self.bind(target, item);
        for t in tests {
            self.eval(*t);
            guard::assume(self, *t, true);
        }
        let value = self.eval(element);
        self.env = before;
        let mut out = FlowValue::collection(Items::default());
        if value.items.is_some() || value.taints.is_some() || value.path.is_some() {
            out.put(None, value);
        }
        out
    }

    /// Adds a step to the path of a value's data.
    pub(super) fn through(&self, v: FlowValue, span: ByteSpan) -> FlowValue {
        if v.taints.is_none() {
            return v;
        }
        let taints = v
            .taints
            .as_ref()
            .map(|l| Rc::new(l.iter().map(|t| step(t, span)).collect::<Vec<_>>()));
        FlowValue { taints, ..v }
    }
}

fn step(t: &Taint, span: ByteSpan) -> Taint {
    let last = t.trail.as_ref();
    let len = last.map_or(0, |l| l.len);
    if len >= MOST_STEPS || last.is_some_and(|l| l.span == span) {
        return t.clone();
    }
    let trail = Trail {
        span,
        before: t.trail.clone(),
        len: len + 1,
    };
    Taint {
        trail: Some(Rc::new(trail)),
        ..t.clone()
    }
}

/// Returns data with at least this doubt.
pub(super) fn doubted(data: &Taints, doubt: Doubt) -> Taints {
    let data = data.as_ref()?.iter();
    Some(
        data.map(|t| doubted_taint(t, doubt))
            .collect::<Vec<_>>()
            .into(),
    )
}

/// Returns data of a source with at least this doubt.
pub(super) fn doubted_taint(t: &Taint, doubt: Doubt) -> Taint {
    Taint {
        doubt: t.doubt.max(doubt),
        ..t.clone()
    }
}

/// Marks data as harmless for more kinds, and as a part of a longer text.
pub(super) fn map_taints(taints: &Taints, kinds: u32, is_built: bool) -> Taints {
    let taints = taints.as_ref()?.iter();
    let changed = taints.map(|t| Taint {
        clean: t.clean | kinds,
        is_built: t.is_built || is_built,
        ..t.clone()
    });
    Some(Rc::new(changed.collect()))
}
