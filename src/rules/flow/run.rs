//! Runs statements with abstract values.

use super::check_memo::CheckMemo;
use super::declared::Declared;
use super::derivations::Derivations;
use super::doubt::Doubt;
use super::eval::doubted_taint;
use super::near::Entries;
use super::paths::{PathId, Paths};
use super::shape::{
    ByteSpan, Catch, ClassId, CodeBlock, ExprId, ExprKind, FunctionId, Module, Stmt, StmtKind,
    SwitchCase, Sym,
};
use super::sink::FoundFlow;
use super::table::{Condition, Table};
use super::value::{Const, Env, FlowValue, Taint, TaintOrigin, Taints, What, join};
use super::{FlowLanguage, FlowSubject, TaintKind, guard};
use foldhash::HashMap;
use std::collections::BTreeSet;
use std::rc::Rc;

/// The object of a method, as a variable.
pub(super) const THIS: Sym = Sym(u32::MAX);
/// Depth of nested expressions, statements and calls, at most.
const DEPTH: u32 = 220;
/// Times that the body of a loop runs, at most.
const ROUNDS: u32 = 3;

/// A loop or switch that is open.
#[derive(Default)]
pub(super) struct Loop {
    breaks: Option<Env>,
    continues: Option<Env>,
    is_switch: bool,
}

/// A running function.
#[derive(Default)]
pub(super) struct CallFrame {
    pub(super) function: Option<FunctionId>,
    pub(super) class: Option<ClassId>,
    /// The name of the object in the body.
    pub(super) receiver: Option<Sym>,
    pub(super) result: Option<FlowValue>,
    /// The object at the return statements.
    pub(super) this: Option<FlowValue>,
    /// The variables at the return statements.
    pub(super) ends: Option<Env>,
    /// The frameworks that send the result to the client.
    pub(super) frameworks: Vec<&'static str>,
    /// Only returns with this outcome count, because a condition requires it.
    pub(super) outcome: Option<bool>,
    pub(super) loops: Vec<Loop>,
}

/// The state of an analysis.
pub(super) struct FlowRun<'m> {
    pub(super) language: FlowLanguage,
    pub(super) module: &'m Module,
    pub(super) text: &'m [u8],
    pub(super) table: &'static Table,
    pub(super) paths: Paths,
    pub(super) env: Env,
    /// False if this point is unreachable.
    pub(super) is_alive: bool,
    pub(super) globals: Env,
    /// True if the statements of the file have run.
    pub(super) has_globals: bool,
    pub(super) origins: Vec<TaintOrigin>,
    pub(super) origin_numbers: HashMap<(ByteSpan, *const u8), u32>,
    pub(super) found: HashMap<(FlowSubject, u32), FoundFlow>,
    pub(super) frames: Vec<CallFrame>,
    pub(super) functions: HashMap<Sym, FunctionId>,
    pub(super) classes: HashMap<Sym, ClassId>,
    pub(super) imports: HashMap<Sym, PathId>,
    /// Functions nested in other functions, whose variables they can read.
    pub(super) nested: Vec<bool>,
    /// The object of each class after its methods have run.
    pub(super) objects: Vec<FlowValue>,
    pub(super) memo: HashMap<(FunctionId, u64), (FlowValue, Option<FlowValue>)>,
    /// The name that the evaluated expression is assigned to.
    pub(super) into: Option<Sym>,
    /// Number of running functions at a literal that is an argument of a call.
    pub(super) options_at: Option<usize>,
    /// The key of the evaluated item of such a literal, with the number of running functions.
    pub(super) option_key: Option<(usize, Rc<str>)>,
    /// Variables of open loops over a collection that the program chose.
    pub(super) listed: Vec<Sym>,
    /// Variables of open loops over the parts of a path.
    pub(super) segments: Vec<Sym>,
    /// The value that is written to a member.
    pub(super) written: Option<ExprId>,
    /// The expressions that the running function assigned to its variables.
    pub(super) derived: Rc<Derivations>,
    /// The expressions that the statements of the file assigned, while a function runs.
    pub(super) derived_of_file: Rc<Derivations>,
    /// The results of checks by functions of the file.
    pub(super) checks: CheckMemo,
    /// Number of bodies that calls ran, and did not find in `memo`.
    pub(super) invoked: u64,
    /// Classes whose methods have run.
    pub(super) has_run: Vec<bool>,
    /// The classes whose fields are being evaluated for a new object.
    pub(super) unfinished: Vec<ClassId>,
    /// True if the file is short and imports nothing, so that it is a part of a file.
    pub(super) is_snippet: bool,
    /// The outcome that a condition requires of the function that runs next.
    pub(super) wanted: Option<bool>,
    /// The variables at the end of the function that ran last.
    pub(super) last_ends: Option<Env>,
    /// Number of runs of each function with arguments.
    pub(super) runs: Vec<u32>,
    /// True for modules that the tables name.
    pub(super) known_modules: HashMap<String, bool>,
    /// True while a condition is followed to the check whose outcome it holds.
    pub(super) is_in_outcome: bool,
    /// Checked sources, with the kinds of the checks.
    pub(super) checked: Vec<(u32, u32)>,
    /// Nothing is reported while this is above 0.
    pub(super) silence: u32,
    /// The classes of the file, by names.
    pub(super) declared: Declared,
    /// Bytes at which the calls and writes start that are sinks and were run.
    pub(super) judged: BTreeSet<u32>,
    pub(super) depth: u32,
    pub(super) work: u64,
    pub(super) is_complete: bool,
    /// The functions and classes that run. `None`: all of them.
    pub(super) entries: Option<Entries>,
}

impl<'m> FlowRun<'m> {
    /// Counts a step. Returns false if the work limit is reached.
    pub(super) fn tick(&mut self) -> bool {
        if self.work == 0 {
            self.is_complete = false;
            return false;
        }
        self.work -= 1;
        true
    }

    /// Counts the work of copying the variables.
    pub(super) fn spend(&mut self) {
        self.work = self.work.saturating_sub(self.env.len() as u64 / 8);
    }

    /// Enters a level. Every `true` requires a [`Self::leave`].
    pub(super) fn enter(&mut self) -> bool {
        if self.depth >= DEPTH {
            self.is_complete = false;
            return false;
        }
        self.depth += 1;
        true
    }

    /// Leaves a level.
    pub(super) fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// Returns the running function.
    pub(super) fn frame(&mut self) -> &mut CallFrame {
        if self.frames.is_empty() {
            self.frames.push(CallFrame::default());
        }
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    /// Returns the class of the running method.
    pub(super) fn class(&self) -> Option<ClassId> {
        self.frames.iter().rev().find_map(|f| f.class)
    }

    /// Runs statements.
    pub(super) fn block(&mut self, block: &'m [Stmt]) {
        for s in block {
            if let StmtKind::Function(id) = &s.kind
                && let Some(name) = self
                    .module
                    .functions
                    .get(id.0 as usize)
                    .and_then(|f| f.name)
            {
                self.env.set(name, FlowValue::defined(What::Function(*id)));
            }
        }
        for s in block {
            if !self.is_alive || !self.tick() {
                return;
            }
            self.stmt(s);
        }
    }

    fn stmt(&mut self, s: &'m Stmt) {
        if !self.enter() {
            return;
        }
        self.stmt_inside(s);
        self.leave();
    }

    fn stmt_inside(&mut self, s: &'m Stmt) {
        match &s.kind {
            StmtKind::Expr(id) => {
                self.eval(*id);
                guard::after(self, *id);
            }
            StmtKind::Declare { target, ty, value } => self.declare(*target, *ty, *value),
            StmtKind::If {
                test,
                then,
                otherwise,
            } => self.branch(*test, then, otherwise),
            StmtKind::While {
                test,
                body,
                update,
                is_post_test,
            } => self.repeat(*test, body, update, *is_post_test),
            StmtKind::Each {
                target,
                key,
                iterable,
                body,
            } => self.each(*target, *key, *iterable, body),
            StmtKind::Switch {
                subject,
                cases,
                falls_through,
            } => self.switch(*subject, cases, *falls_through),
            StmtKind::Try {
                body,
                catches,
                finally,
            } => self.attempt(body, catches, finally),
            StmtKind::Return(value) => self.give(*value, s.span),
            StmtKind::Throw(value) => {
                if let Some(id) = value {
                    self.eval(*id);
                }
                self.is_alive = false;
            }
            StmtKind::Break => self.leap(true),
            StmtKind::Continue => self.leap(false),
            StmtKind::Function(id) => self.define(*id),
            StmtKind::Class(id) => self.class_body(*id),
            StmtKind::Block(b) => self.block(b),
            StmtKind::Assert(test) => {
                self.eval(*test);
                guard::assume(self, *test, true);
            }
        }
    }

    fn branch(&mut self, test: ExprId, then: &'m CodeBlock, otherwise: &'m CodeBlock) {
        let v = self.eval(test);
        match v.constant.as_ref().and_then(Const::truth) {
            Some(true) => return self.block(then),
            Some(false) => return self.block(otherwise),
            None => {}
        }
        self.spend();
        let before = self.env.clone();
        guard::assume(self, test, true);
        self.block(then);
        let after_then = self.take();
        self.put(Some(before));
        guard::assume(self, test, false);
        guard::assume_no_text(self, test);
        self.block(otherwise);
        let after_else = self.take();
        self.put(join_envs(after_then, after_else));
    }

    /// Takes the variables, if this point is reachable.
    pub(super) fn take(&mut self) -> Option<Env> {
        let env = std::mem::take(&mut self.env);
        if self.is_alive { Some(env) } else { None }
    }

    /// Continues with variables, or makes this point unreachable.
    pub(super) fn put(&mut self, env: Option<Env>) {
        self.is_alive = env.is_some();
        self.env = env.unwrap_or_default();
    }

    /// Returns true for a literal constant.
    fn is_literal(&self, id: ExprId) -> bool {
        match &self.module.expr(id).kind {
            ExprKind::Pass(of) => self.is_literal(*of),
            ExprKind::Bool(_) | ExprKind::Int(_) | ExprKind::Text(_) => true,
            _ => false,
        }
    }

    fn repeat(
        &mut self,
        test: Option<ExprId>,
        body: &'m CodeBlock,
        update: &'m CodeBlock,
        is_post_test: bool,
    ) {
        let mut out: Option<Env> = None;
        let mut digest = 0;
        for round in 0..ROUNDS {
            self.spend();
            let entry = self.env.clone();
            let is_free = is_post_test && round == 0;
            let truth = test
                .filter(|_| !is_free)
                .and_then(|t| self.eval(t).constant)
                .and_then(|c| c.truth());
            // A loop variable is not constant, even if the first round has a constant.
            let truth = truth.filter(|is| !is || test.is_some_and(|t| self.is_literal(t)));
            if let Some(t) = test
                && !is_free
                && truth != Some(true)
            {
                let kept = self.env.clone();
                guard::assume(self, t, false);
                out = join_envs(out, Some(std::mem::replace(&mut self.env, kept)));
                guard::assume(self, t, true);
            }
            if truth == Some(false) {
                break;
            }
            self.frame().loops.push(Loop::default());
            self.block(body);
            let Some(l) = self.frame().loops.pop() else {
                break;
            };
            out = join_envs(out, l.breaks);
            let end = self.take();
            self.put(join_envs(end, l.continues));
            if !self.is_alive {
                break;
            }
            self.block(update);
            if is_post_test && test.is_some() {
                out = join_envs(out, Some(self.env.clone()));
            }
            if entry.is_same(&self.env) {
                break;
            }
            let next = entry.join(&self.env);
            let now = next.digest();
            self.env = next;
            if now == digest {
                break;
            }
            digest = now;
        }
        self.put(out);
    }

    fn each(&mut self, target: ExprId, key: Option<ExprId>, iterable: ExprId, body: &'m CodeBlock) {
        let v = self.eval(iterable);
        let span = self.module.expr(target).span;
        let item = self.element(&v, span);
        // The keys of a list that a call returned are numbers.
        let is_list = v.path.is_some_and(|p| self.paths.is_call(p));
        let key_value = FlowValue::tainted(v.taints.clone().filter(|_| !is_list));
        let (listed, segments) = (self.listed.len(), self.segments.len());
        if let ExprKind::Name(name) = &self.module.expr(target).kind {
            if v.deep().is_none() && guard::is_fixed(self, iterable) {
                self.listed.push(*name);
            } else if self.is_split_path(iterable) {
                self.segments.push(*name);
            }
        }
        let before = self.env.clone();
        let mut out = Some(before);
        let mut digest = 0;
        for _ in 0..ROUNDS {
            self.spend();
            let entry = self.env.clone();
            self.bind(target, item.clone());
            if let Some(k) = key {
                self.bind(k, key_value.clone());
            }
            self.frame().loops.push(Loop::default());
            self.block(body);
            let Some(l) = self.frame().loops.pop() else {
                break;
            };
            out = join_envs(out, l.breaks);
            let end = self.take();
            self.put(join_envs(end, l.continues));
            if !self.is_alive {
                break;
            }
            out = join_envs(out, Some(self.env.clone()));
            self.env = entry.join(&self.env);
            let now = self.env.digest();
            if now == digest {
                break;
            }
            digest = now;
        }
        self.listed.truncate(listed);
        self.segments.truncate(segments);
        self.put(out);
    }

    /// Returns an item of an iterated value.
    pub(super) fn element(&mut self, v: &FlowValue, span: ByteSpan) -> FlowValue {
        let mut item = v.item(None);
        if v.items.is_none() {
            item = FlowValue {
                taints: v.taints.clone(),
                ..FlowValue::default()
            };
            if let Some(p) = v.path {
                let sym = Sym(u32::MAX - 1);
                let path = self.paths.member(Some(p), sym, "[]");
                item = self.read(path, item, span);
            }
        }
        item.constant = None;
        item
    }

    fn switch(&mut self, subject: Option<ExprId>, cases: &'m [SwitchCase], falls_through: bool) {
        let v = subject.map(|s| self.eval(s));
        self.frame().loops.push(Loop {
            is_switch: true,
            ..Loop::default()
        });
        let chosen = v
            .as_ref()
            .and_then(|v| v.constant.clone())
            .and_then(|c| self.chosen(&c, cases));
        let mut out: Option<Env> = None;
        if let Some(at) = chosen {
            for case in cases.get(at..).unwrap_or_default() {
                self.block(&case.body);
                if !falls_through || !self.is_alive {
                    break;
                }
            }
            out = self.take();
        } else {
            let before = self.env.clone();
            let mut has_default = false;
            let mut previous: Option<Env> = None;
            for case in cases {
                self.put(Some(before.clone()));
                has_default |= case.tests.is_empty();
                self.assume_case(subject, case);
                if let Some(p) = previous.take() {
                    self.env = self.env.join(&p);
                }
                self.block(&case.body);
                let end = self.take();
                if falls_through {
                    previous = end;
                } else {
                    out = join_envs(out, end);
                }
            }
            out = join_envs(out, previous);
            if !has_default {
                out = join_envs(out, Some(before));
            }
        }
        let breaks = self.frame().loops.pop().and_then(|l| l.breaks);
        self.put(join_envs(out, breaks));
    }

    /// Returns the case of a constant. `None`: a case is not a constant.
    fn chosen(&mut self, c: &Const, cases: &'m [SwitchCase]) -> Option<usize> {
        let mut default = None;
        for (i, case) in cases.iter().enumerate() {
            if case.tests.is_empty() {
                default = Some(i);
            }
            for t in &case.tests {
                let test = self.eval(*t).constant?;
                if test == *c {
                    return Some(i);
                }
            }
        }
        // Without a match and without a default, no case runs.
        Some(default.unwrap_or(cases.len()))
    }

    fn assume_case(&mut self, subject: Option<ExprId>, case: &'m SwitchCase) {
        let mut is_constant = !case.tests.is_empty();
        for t in &case.tests {
            let v = self.eval(*t);
            is_constant &= v.constant.is_some();
            if subject.is_none() {
                guard::assume(self, *t, true);
            }
        }
        if let Some(s) = subject
            && is_constant
        {
            guard::cleanse(self, s, u32::MAX);
        }
    }

    fn attempt(&mut self, body: &'m CodeBlock, catches: &'m [Catch], finally: &'m CodeBlock) {
        let before = self.env.clone();
        self.block(body);
        let end = self.take();
        let thrown = match &end {
            Some(e) => before.join(e),
            None => before,
        };
        let mut out = end;
        for c in catches {
            self.put(Some(thrown.clone()));
            if let Some(name) = c.name {
                let path = c.ty.and_then(|t| self.type_path(t));
                self.env.set(
                    name,
                    FlowValue {
                        path,
                        ..FlowValue::default()
                    },
                );
            }
            self.block(&c.body);
            let after = self.take();
            out = join_envs(out, after);
        }
        if !finally.is_empty() {
            let is_reached = out.is_some();
            self.put(Some(out.unwrap_or(thrown)));
            self.block(finally);
            out = self.take().filter(|_| is_reached);
        }
        self.put(out);
    }

    fn give(&mut self, value: Option<ExprId>, span: ByteSpan) {
        let v = value.map(|id| self.eval(id)).unwrap_or_default();
        if !self.frame().frameworks.is_empty()
            && let Some(id) = value
        {
            self.check_returned(id, &v, span);
        }
        if let (Some(wanted), Some(id)) = (self.frame().outcome, value) {
            match v.constant.as_ref().and_then(Const::truth) {
                Some(is) if is != wanted => {
                    self.is_alive = false;
                    return;
                }
                Some(_) => {}
                None => guard::assume(self, id, wanted),
            }
        }
        self.give_value(v);
    }

    /// Ends the function with a value.
    pub(super) fn give_value(&mut self, v: FlowValue) {
        let this = self.env.get(THIS).cloned();
        let env = std::mem::take(&mut self.env);
        self.is_alive = false;
        let frame = self.frame();
        frame.result = Some(match &frame.result {
            Some(r) => join(r, &v),
            None => v,
        });
        frame.this = match (&frame.this, this) {
            (Some(a), Some(b)) => Some(join(a, &b)),
            (a, b) => b.or_else(|| a.clone()),
        };
        frame.ends = join_envs(frame.ends.take(), Some(env));
    }

    fn leap(&mut self, is_break: bool) {
        let env = std::mem::take(&mut self.env);
        self.is_alive = false;
        let target = self
            .frame()
            .loops
            .iter_mut()
            .rev()
            .find(|l| is_break || !l.is_switch);
        let Some(l) = target else { return };
        let place = if is_break {
            &mut l.breaks
        } else {
            &mut l.continues
        };
        *place = join_envs(place.take(), Some(env));
    }

    /// Runs a nested function at its definition, with the variables of the enclosing function.
    fn define(&mut self, id: FunctionId) {
        let Some(f) = self.module.functions.get(id.0 as usize) else {
            return;
        };
        if let Some(name) = f.name {
            self.env.set(name, FlowValue::defined(What::Function(id)));
        }
        self.run_marks(&f.marks);
        if self.nested.get(id.0 as usize).copied().unwrap_or_default() {
            let before = self.is_handler(id).then(|| self.env.clone());
            if before.is_some() {
                // All variables are copied for each handler. See below for the second copy.
                self.spend();
                self.spend();
            }
            self.run_entry(id, None);
            // The next request may run in another process, and find nothing of this one.
            if let Some(before) = before.filter(|before| !self.env.is_same(before)) {
                let mut after = std::mem::replace(&mut self.env, before);
                after.map_taints(&|t| doubted_taint(t, Doubt::Stated));
                self.env.absorb(&after, &[]);
            }
        }
    }

    fn class_body(&mut self, id: ClassId) {
        let Some(c) = self.module.classes.get(id.0 as usize) else {
            return;
        };
        if let Some(name) = c.name {
            self.env.set(name, FlowValue::defined(What::Class(id)));
        }
        self.run_marks(&c.marks);
        let kept = self.env.clone();
        self.frames.push(CallFrame {
            class: Some(id),
            ..CallFrame::default()
        });
        self.block(&c.body);
        self.frames.pop();
        self.put(Some(kept));
        for m in &c.methods {
            if let Some(f) = self.module.functions.get(m.0 as usize) {
                self.run_marks(&f.marks);
                for p in &f.params {
                    self.run_marks(&p.marks);
                }
            }
        }
        for f in &c.fields {
            self.run_marks(&f.marks);
        }
        if self.silence == 0 {
            self.run_class(id);
        }
    }

    /// Returns the source text of an expression.
    pub(super) fn source_text(&self, span: ByteSpan) -> &'m str {
        let bytes = self
            .text
            .get(span.start as usize..span.end as usize)
            .unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }

    /// Adds a source and returns its data.
    pub(super) fn origin(
        &mut self,
        span: ByteSpan,
        label: &'static str,
        kind: TaintKind,
        clean: u32,
    ) -> Taints {
        let key = (span, label.as_ptr());
        let next = u32::try_from(self.origins.len()).unwrap_or(u32::MAX);
        let number = *self.origin_numbers.entry(key).or_insert(next);
        if number == next {
            self.origins.push(TaintOrigin { span, label, kind });
        }
        let taint = Taint {
            origin: number,
            proof: kind.proof(),
            clean,
            doubt: Doubt::None,
            is_built: false,
            trail: None,
        };
        Some(Rc::new(vec![taint]))
    }

    /// Returns true if all conditions hold.
    pub(super) fn all_hold(
        &mut self,
        when: &'static [Condition],
        call: &super::sink::CallInfo<'_>,
    ) -> bool {
        when.iter().all(|c| self.holds(c, call))
    }

    /// Returns true if a table entry with these conditions applies to a call.
    pub(super) fn applies(
        &mut self,
        when: &'static [Condition],
        unless: &'static [Condition],
        call: &super::sink::CallInfo<'_>,
    ) -> bool {
        self.all_hold(when, call) && !unless.iter().any(|c| self.holds(c, call))
    }
}

/// Joins the variables at the end of two branches. `None`: a branch does not reach its end.
pub(super) fn join_envs(a: Option<Env>, b: Option<Env>) -> Option<Env> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.join(&b)),
        (a, b) => a.or(b),
    }
}
