//! Runs the functions and constructors of the file at their calls.

use super::call::Callee;
use super::paths::Calling;
use super::run::{CallFrame, FlowRun, THIS};
use super::shape::{Annotation, ByteSpan, ClassId, FunctionId, Sym};
use super::sink::{CallInfo, GivenArg};
use super::value::{Env, FlowValue, Items, Taints, What, join, join_taints};
use std::hash::{Hash, Hasher};
use std::rc::Rc;

/// Depth of nested calls of functions, at most.
const CALLS: usize = 4;
/// Distinct calls of one function that are analysed, at most.
const RUNS: u32 = 12;
impl<'m> FlowRun<'m> {
    /// Calls a function or class of this file.
    pub(super) fn local(
        &mut self,
        target: &Callee,
        given: &[GivenArg],
        span: ByteSpan,
    ) -> Option<FlowValue> {
        match target.value.what {
            What::Function(f) => {
                let function = self.module.functions.get(f.0 as usize)?;
                let this = match (&target.receiver, function.class) {
                    (Some((_, v)), Some(_)) if matches!(v.what, What::Instance(_)) => {
                        Some(v.clone())
                    }
                    (None, Some(_)) if !function.is_static => self.env.get(THIS).cloned(),
                    _ => None,
                };
                let has_this = this.is_some();
                let (v, after) = self.invoke(f, this, given, span);
                if let (true, Some(after)) = (has_this, after) {
                    match &target.receiver {
                        Some((e, _)) => self.store(*e, after),
                        None => self.env.set(THIS, after),
                    }
                }
                Some(v)
            }
            What::Class(c) => Some(self.construct(c, given, span)),
            What::Instance(_) | What::Other => None,
        }
    }

    /// Creates an object of a class of this file.
    fn construct(&mut self, class: ClassId, given: &[GivenArg], span: ByteSpan) -> FlowValue {
        let path = self.base_path(class);
        let fresh = self.fresh(class);
        let mut object = FlowValue {
            what: What::Instance(class),
            path,
            ..fresh
        };
        let constructor = self.constructor(class);
        match constructor {
            Some(f) => {
                let (_, after) = self.invoke(f, Some(object.clone()), given, span);
                if let Some(after) = after {
                    object = after;
                }
            }
            None => {
                // A record contains its arguments.
                for a in given {
                    match a.keyword {
                        Some(k) => {
                            object.put(
                                Some(super::value::ItemKey::Text(self.module.word(k).into())),
                                a.value.clone(),
                            );
                        }
                        None => object.taints = join_taints(&object.taints, &a.value.deep()),
                    }
                }
            }
        }
        FlowValue {
            what: What::Instance(class),
            ..object
        }
    }

    pub(super) fn constructor(&self, class: ClassId) -> Option<FunctionId> {
        let mut at = class;
        for _ in 0..6 {
            let c = self.module.classes.get(at.0 as usize)?;
            if let Some(f) = c.methods.iter().find(|f| self.is_constructor(**f)) {
                return Some(*f);
            }
            at = *c.bases.iter().find_map(|b| self.classes.get(b))?;
        }
        None
    }

    /// Returns true if a function is the constructor of its class.
    pub(super) fn is_constructor(&self, id: FunctionId) -> bool {
        self.module
            .functions
            .get(id.0 as usize)
            .is_some_and(|f| f.is_constructor)
    }

    /// Calls a function with arguments. Returns its result and the object after the call.
    pub(super) fn invoke(
        &mut self,
        f: FunctionId,
        this: Option<FlowValue>,
        given: &[GivenArg],
        span: ByteSpan,
    ) -> (FlowValue, Option<FlowValue>) {
        let Some(function) = self.module.functions.get(f.0 as usize) else {
            return (FlowValue::default(), this);
        };
        let running = self.frames.iter().filter(|x| x.function.is_some()).count();
        let is_recursive = self.frames.iter().any(|x| x.function == Some(f));
        if running > CALLS || is_recursive || !self.enter() {
            let mut taints: Taints = None;
            given
                .iter()
                .for_each(|a| taints = join_taints(&taints, &a.value.deep()));
            return (FlowValue::tainted(taints), this);
        }
        let is_nested = self.nested.get(f.0 as usize).copied().unwrap_or_default();
        let mut hasher = std::hash::DefaultHasher::new();
        (self.silence > 0, self.frames.is_empty()).hash(&mut hasher);
        for a in given {
            a.keyword.hash(&mut hasher);
            a.is_spread.hash(&mut hasher);
            a.value.feed(&mut hasher, 0);
        }
        if let Some(t) = &this {
            t.feed(&mut hasher, 0);
        }
        let key = (f, hasher.finish());
        if !is_nested && let Some((v, after)) = self.memo.get(&key) {
            let out = (v.clone(), after.clone());
            self.leave();
            return out;
        }
        // Of a function that is called with many different arguments, only the first calls are
        // analysed.
        let runs = self.runs.get_mut(f.0 as usize).map_or(0, count_up);
        if runs > RUNS {
            let taints = given
                .iter()
                .fold(None, |t, a| join_taints(&t, &a.value.deep()));
            self.leave();
            return (FlowValue::tainted(taints), this);
        }
        let params = self.bound(f, given, span);
        self.invoked += 1;
        let (v, after) = self.body(f, this, params, Vec::new());
        let v = match function.ty {
            Some(ty) if v.path.is_none() => self.typed(v, ty),
            _ => v,
        };
        if !is_nested {
            self.memo.insert(key, (v.clone(), after.clone()));
        }
        self.leave();
        (v, after)
    }

    /// Returns the values of the parameters of a call.
    pub(super) fn bound(
        &mut self,
        f: FunctionId,
        given: &[GivenArg],
        span: ByteSpan,
    ) -> Vec<FlowValue> {
        let Some(function) = self.module.functions.get(f.0 as usize) else {
            return Vec::new();
        };
        let mut positional = given.iter().filter(|a| a.keyword.is_none());
        let mut spread: Option<FlowValue> = None;
        let mut out = Vec::new();
        for p in &function.params {
            let named = given
                .iter()
                .find(|a| a.keyword.is_some() && a.keyword == p.name);
            let v = if let Some(a) = named {
                a.value.clone()
            } else if p.is_variadic {
                let mut list = FlowValue::collection(Items::list());
                positional.by_ref().for_each(|a| list.push(a.value.clone()));
                for a in given.iter().filter(|a| a.keyword.is_some()) {
                    list.taints = join_taints(&list.taints, &a.value.taints);
                }
                list
            } else if let Some(s) = &spread {
                s.clone()
            } else {
                match positional.next() {
                    Some(a) if a.is_spread => {
                        let item = a.value.item(None);
                        spread = Some(item.clone());
                        item
                    }
                    Some(a) => a.value.clone(),
                    None => p.default.map(|d| self.eval(d)).unwrap_or_default(),
                }
            };
            let v = match p.ty {
                Some(ty) => self.typed(v, ty),
                None => v,
            };
            let v = self.through(v, span);
            out.push(self.through(v, p.span));
        }
        out
    }

    /// Runs a function's body with values of its parameters.
    pub(super) fn body(
        &mut self,
        f: FunctionId,
        this: Option<FlowValue>,
        params: Vec<FlowValue>,
        frameworks: Vec<&'static str>,
    ) -> (FlowValue, Option<FlowValue>) {
        let Some(function) = self.module.functions.get(f.0 as usize) else {
            return (FlowValue::default(), this);
        };
        let is_nested = self.nested.get(f.0 as usize).copied().unwrap_or_default();
        self.spend();
        let outer = (self.env.clone(), self.is_alive);
        // While the statements of the file run, a function can read the variables that they have
        // set so far.
        let is_first = !self.has_globals && self.frames.iter().all(|f| f.function.is_none());
        if is_first {
            self.globals = self.env.clone();
            self.derived_of_file = Rc::clone(&self.derived);
            self.checks.clear();
        }
        // Variables of different functions that have the same name are different variables.
        let derived = (!is_nested).then(|| std::mem::take(&mut self.derived));
        if !is_nested {
            self.env = Env::default();
        }
        self.is_alive = true;
        if let Some(t) = this {
            self.env.set(THIS, t);
        }
        self.frames.push(CallFrame {
            function: Some(f),
            class: function.class,
            receiver: function.receiver,
            frameworks,
            outcome: self.wanted.take(),
            ..CallFrame::default()
        });
        for (p, v) in function.params.iter().zip(params) {
            if let Some(name) = p.name {
                self.env.set(name, v.clone());
            }
            if let Some(pattern) = p.pattern {
                self.bind(pattern, v);
            }
        }
        let last = match function.body.last() {
            Some(s) if function.returns_last => match &s.kind {
                super::shape::StmtKind::Expr(id) => Some(*id),
                _ => None,
            },
            _ => None,
        };
        let count = function.body.len() - usize::from(last.is_some());
        self.block(function.body.get(..count).unwrap_or_default());
        // A function that ends without a value does not have the outcome that the condition
        // requires.
        if self.is_alive && last.is_none() && self.frame().outcome == Some(true) {
            self.is_alive = false;
        }
        if self.is_alive {
            let v = last.map(|id| self.eval(id)).unwrap_or_default();
            if last.is_some() || self.frame().result.is_none() {
                if !self.frame().frameworks.is_empty()
                    && let Some(id) = last
                {
                    self.check_returned(id, &v, function.span);
                }
                self.give_value(v);
            } else {
                let this = self.env.get(THIS).cloned();
                let env = std::mem::take(&mut self.env);
                let frame = self.frame();
                frame.this = match (&frame.this, this) {
                    (Some(a), Some(b)) => Some(join(a, &b)),
                    (a, b) => b.or_else(|| a.clone()),
                };
                frame.ends = super::run::join_envs(frame.ends.take(), Some(env));
            }
        }
        let mut frame = self.frames.pop().unwrap_or_default();
        (self.env, self.is_alive) = outer;
        if let Some(derived) = derived {
            self.derived = derived;
        }
        if is_first {
            self.globals = Env::default();
            self.derived_of_file = Rc::default();
            self.checks.clear();
        }
        if is_nested && let Some(ends) = &frame.ends {
            let names: Vec<Sym> = function.params.iter().filter_map(|p| p.name).collect();
            self.env.absorb(ends, &names);
        }
        self.last_ends = frame.ends.take();
        (frame.result.unwrap_or_default(), frame.this)
    }

    /// Evaluates decorators and annotations as calls, for structural entries.
    pub(super) fn run_marks(&mut self, marks: &'m [Annotation]) {
        for m in marks {
            let given: Vec<GivenArg> = m.args.iter().map(|a| self.argument(a)).collect();
            let target = self.callee(m.name);
            if let Some(p) = target.path {
                let path = self.paths.call(p, Calling::Plain);
                let span = self.module.expr(m.name).span;
                let info = CallInfo {
                    args: &given,
                    receiver: None,
                    span,
                };
                self.check_call(path, &info, false);
            }
        }
    }
}

fn count_up(n: &mut u32) -> u32 {
    *n += 1;
    *n
}
