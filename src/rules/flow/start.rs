//! Runs a file: its statements, and every function as outside code may call it.

use super::check_memo::CheckMemo;
use super::declared::Declared;
use super::doubt::Doubt;
use super::eval::doubted_taint;
use super::names::is_number;
use super::near;
use super::paths::{PathId, Paths, Root};
use super::run::{CallFrame, FlowRun, THIS};
use super::shape::{
    Annotation, ClassId, CodeBlock, ExprId, ExprKind, Function, FunctionId, Module, Param, Stmt,
    StmtKind,
};
use super::sink::{CallInfo, FoundFlow, way};
use super::table::{Handler, Place, Table};
use super::value::{Env, FlowValue, ItemKey, What, join};
use super::{Flow, FlowLanguage, FlowSubject, PathStep, StepRole, TaintKind};
use foldhash::{HashMap, HashMapExt as _};
use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;

/// Steps of work for every file, and for each of its expressions.
const WORK: u64 = 60_000;
const WORK_PER_EXPRESSION: u64 = 60;
/// Steps of work for a file, at most.
const MOST_WORK: u64 = 1_200_000;

/// The result of a run.
pub(super) struct RunOutcome {
    pub(super) flows: Vec<Flow>,
    /// False: the work limit was reached.
    pub(super) is_complete: bool,
    /// Bytes at which the sinks start that were run.
    pub(super) judged: BTreeSet<u32>,
}

/// Finds the flows in a file.
pub(super) fn run(language: FlowLanguage, module: &Module, text: &[u8]) -> RunOutcome {
    let mut run = prepared(language, module, text);
    run.file();
    run.finished()
}

/// Runs only what can pass data through an added line. `None`: a flow has a step on one, or the
/// change touches too much, so that the whole file has to run.
pub(super) fn run_near(
    language: FlowLanguage,
    module: &Module,
    text: &[u8],
    added: &[Range<usize>],
) -> Option<RunOutcome> {
    let mut run = prepared(language, module, text);
    run.entries = Some(near::entries(language, module, text, added, &run.nested)?);
    run.file();
    let outcome = run.finished();
    let mut steps = outcome.flows.iter().flat_map(|flow| &flow.steps);
    let passes = steps.any(|step| step.added_part(added).is_some());
    (!passes).then_some(outcome)
}

/// Returns the state of an analysis before the file runs.
pub(super) fn prepared<'m>(
    language: FlowLanguage,
    module: &'m Module,
    text: &'m [u8],
) -> FlowRun<'m> {
    let is_strict =
        !module.imports.is_empty() && module.imports.iter().all(|i| module.word(i.alias) != "*");
    let mut run = FlowRun {
        language,
        module,
        text,
        table: Table::of(language),
        paths: Paths::new(language, is_strict),
        env: Env::default(),
        is_alive: true,
        globals: Env::default(),
        has_globals: false,
        origins: Vec::new(),
        origin_numbers: HashMap::new(),
        found: HashMap::new(),
        frames: Vec::new(),
        functions: HashMap::new(),
        classes: HashMap::new(),
        imports: HashMap::new(),
        nested: vec![true; module.functions.len()],
        objects: vec![FlowValue::default(); module.classes.len()],
        has_run: vec![false; module.classes.len()],
        unfinished: Vec::new(),
        memo: HashMap::new(),
        into: None,
        options_at: None,
        option_key: None,
        listed: Vec::new(),
        segments: Vec::new(),
        written: None,
        derived: Rc::default(),
        derived_of_file: Rc::default(),
        checks: CheckMemo::default(),
        invoked: 0,
        is_snippet: module.imports.is_empty() && text.len() < 6000,
        checked: Vec::new(),
        is_in_outcome: false,
        runs: vec![0; module.functions.len()],
        known_modules: HashMap::new(),
        wanted: None,
        last_ends: None,
        silence: 0,
        declared: Declared::of(module),
        judged: BTreeSet::new(),
        depth: 0,
        work: (WORK + WORK_PER_EXPRESSION * module.exprs.len() as u64).min(MOST_WORK),
        is_complete: true,
        entries: None,
    };
    run.prepare();
    run
}

impl<'m> FlowRun<'m> {
    /// Returns the result after the file has run.
    fn finished(mut self) -> RunOutcome {
        RunOutcome {
            flows: self.flows(),
            is_complete: self.is_complete,
            judged: self.judged,
        }
    }

    /// Returns false for a function that is left out because it passes no data through an added
    /// line.
    fn may_run(&self, id: FunctionId) -> bool {
        let Some(entries) = &self.entries else {
            return true;
        };
        let index = id.0 as usize;
        match self.module.functions.get(index).and_then(|f| f.class) {
            Some(class) => entries.has_class(class),
            None => self.nested.get(index) == Some(&true) || entries.has_function(id),
        }
    }

    fn prepare(&mut self) {
        for i in &self.module.imports {
            let path = self.module.word(i.path);
            let path = self.module_path(path);
            self.imports.insert(i.alias, path);
        }
        for (i, c) in self.module.classes.iter().enumerate() {
            let id = ClassId(u32::try_from(i).unwrap_or(u32::MAX));
            if let Some(name) = c.name {
                self.classes.insert(name, id);
            }
            for m in &c.methods {
                if let Some(n) = self.nested.get_mut(m.0 as usize) {
                    *n = false;
                }
            }
        }
        let module = self.module;
        self.top(&module.body);
    }

    /// Marks the functions of the file that cannot read variables of other functions.
    fn top(&mut self, block: &'m [Stmt]) {
        for s in block {
            match &s.kind {
                StmtKind::Function(id) => {
                    if let Some(n) = self.nested.get_mut(id.0 as usize) {
                        *n = false;
                    }
                    if let Some(name) = self
                        .module
                        .functions
                        .get(id.0 as usize)
                        .and_then(|f| f.name)
                    {
                        self.functions.insert(name, *id);
                    }
                }
                StmtKind::Block(b) => self.top(b),
                StmtKind::If {
                    then, otherwise, ..
                } => {
                    self.top(then);
                    self.top(otherwise);
                }
                _ => {}
            }
        }
    }

    fn file(&mut self) {
        let body: &'m CodeBlock = &self.module.body;
        self.block(body);
        self.is_alive = true;
        self.globals = std::mem::take(&mut self.env);
        self.derived_of_file = std::mem::take(&mut self.derived);
        self.has_globals = true;
        self.checks.clear();
        for (i, c) in self.module.classes.iter().enumerate() {
            let id = ClassId(u32::try_from(i).unwrap_or(u32::MAX));
            let _ = c;
            self.run_class(id);
        }
        for i in 0..self.module.functions.len() {
            let id = FunctionId(u32::try_from(i).unwrap_or(u32::MAX));
            let is_free = self
                .module
                .functions
                .get(i)
                .is_some_and(|f| f.class.is_none());
            if is_free && !self.nested.get(i).copied().unwrap_or_default() {
                self.is_alive = true;
                self.run_entry(id, None);
            }
        }
    }

    /// Runs the methods of a class. The constructor runs first, so that its fields are known.
    pub(super) fn run_class(&mut self, id: ClassId) {
        if self.entries.as_ref().is_some_and(|e| !e.has_class(id)) {
            return;
        }
        let index = id.0 as usize;
        match self.has_run.get_mut(index) {
            Some(has) if !*has => *has = true,
            _ => return,
        }
        let Some(class) = self.module.classes.get(index) else {
            return;
        };
        let mut object = self.fresh(id);
        self.run_fields(id);
        let mut methods: Vec<FunctionId> = class.methods.clone();
        methods.sort_by_key(|m| !self.is_constructor(*m));
        for round in 0..2 {
            let before = digest(&object);
            for m in &methods {
                self.set_object(index, &object);
                self.is_alive = true;
                if let Some(after) = self.run_entry(*m, Some(object.clone())) {
                    // Another method may run in a different request.
                    let after = if self.is_constructor(*m) {
                        after
                    } else {
                        after.map_taints(&|t| doubted_taint(t, Doubt::Unknown))
                    };
                    object = join(&object, &after);
                    object.what = What::Instance(id);
                }
            }
            self.set_object(index, &object);
            if round == 0 && digest(&object) == before {
                break;
            }
        }
    }

    /// Sets the object of a class, which functions of the file can read.
    fn set_object(&mut self, index: usize, object: &FlowValue) {
        if let Some(known) = self.objects.get_mut(index)
            && !known.is_same(object)
        {
            *known = object.clone();
            self.checks.clear();
        }
    }

    /// Evaluates the values of fields to report findings in them.
    fn run_fields(&mut self, id: ClassId) {
        let Some(class) = self.module.classes.get(id.0 as usize) else {
            return;
        };
        self.frames.push(CallFrame {
            class: Some(id),
            ..CallFrame::default()
        });
        for f in &class.fields {
            let Some(value) = f.value else { continue };
            self.into = Some(f.name);
            self.is_alive = true;
            self.eval(value);
            self.into = None;
        }
        self.frames.pop();
        self.is_alive = true;
    }

    /// Returns an object of a class in its state before the constructor.
    pub(super) fn fresh(&mut self, id: ClassId) -> FlowValue {
        let Some(class) = self.module.classes.get(id.0 as usize) else {
            return FlowValue::default();
        };
        let path = self.base_path(id);
        let mut object = FlowValue {
            what: What::Instance(id),
            path,
            ..FlowValue::default()
        };
        // The value of a field can create an object of the same class, as in a singleton. The fields
        // of that object have no values here.
        let is_inner = self.unfinished.contains(&id);
        self.unfinished.push(id);
        for f in &class.fields {
            let value = f.value.filter(|_| !is_inner);
            let mut v = value.map(|v| self.quiet(v)).unwrap_or_default();
            if let Some(ty) = f.ty {
                v = self.typed(v, ty);
            }
            for m in &f.marks {
                let Some(path) = self.mark_path(m) else {
                    continue;
                };
                for h in self.table.handlers.iter().filter(|h| h.ty.is_none()) {
                    if h.annotation.iter().any(|a| self.paths.is(path, a))
                        && !f.ty.is_some_and(|t| is_number(self.module.word(t)))
                    {
                        let data =
                            self.origin(self.module.expr(m.name).span, h.label, h.kind, h.clean);
                        v = v.with(&data);
                    }
                }
            }
            if v.is_empty() && f.value.is_none() && v.path.is_none() {
                continue;
            }
            object.put(Some(ItemKey::Text(self.module.word(f.name).into())), v);
        }
        self.unfinished.pop();
        object
    }

    /// Runs a function as outside code may call it. Returns the object after the call.
    pub(super) fn run_entry(
        &mut self,
        id: FunctionId,
        this: Option<FlowValue>,
    ) -> Option<FlowValue> {
        let function = self.module.functions.get(id.0 as usize)?;
        if self.silence > 0 || !self.may_run(id) {
            return None;
        }
        if self.frames.iter().any(|f| f.function == Some(id))
            || self.frames.len() > 12
            || !self.enter()
        {
            return None;
        }
        let handlers = self.handlers_of(id);
        let mut params = Vec::new();
        for (i, p) in function.params.iter().enumerate() {
            params.push(self.entry_param(p, i, &handlers, function));
        }
        let frameworks: Vec<&'static str> = handlers.iter().map(|h| h.framework).collect();
        let this = if function.is_static { None } else { this };
        let (_, after) = self.body(id, this, params, frameworks);
        self.leave();
        after
    }

    /// Runs a function that a framework calls.
    pub(super) fn run_handler(&mut self, id: FunctionId, handlers: &[&'static Handler]) {
        let Some(function) = self.module.functions.get(id.0 as usize) else {
            return;
        };
        if !self.may_run(id) || self.frames.iter().any(|f| f.function == Some(id)) || !self.enter()
        {
            return;
        }
        let mut params = Vec::new();
        for (i, p) in function.params.iter().enumerate() {
            params.push(self.entry_param(p, i, handlers, function));
        }
        let this = self.env.get(THIS).cloned();
        let frameworks = handlers.iter().map(|h| h.framework).collect();
        self.body(id, this, params, frameworks);
        self.leave();
    }

    /// Returns the value of a parameter of a function that outside code calls.
    fn entry_param(
        &mut self,
        p: &'m Param,
        i: usize,
        handlers: &[&'static Handler],
        function: &'m Function,
    ) -> FlowValue {
        let declared = p.ty.and_then(|t| self.type_path(t));
        let harmless = self.kinds_of_param(p, &function.marks);
        if harmless == u32::MAX {
            let unknown = self.origin(p.span, "parameter", TaintKind::Parameter, 0);
            return self.number(&unknown);
        }
        let mut v = FlowValue {
            path: declared,
            ..FlowValue::default()
        };
        let mut takers: Vec<&'static Handler> = Vec::new();
        let of_function = match self.is_beside_route(p, function) {
            true => &[][..],
            false => handlers,
        };
        for h in of_function.iter().copied() {
            if self.takes(h, p, i, declared) {
                takers.push(h);
            }
        }
        // Handlers that match the annotation, type or name of the parameter alone.
        let has_data = takers.iter().any(|h| h.ty.is_none());
        for h in self.table.handlers {
            let is_alone = h.decorator.is_empty()
                && h.callee.is_empty()
                && h.function.is_empty()
                && h.base.is_empty();
            let is_alone = is_alone && h.class_annotation.is_empty() && h.returns.is_empty();
            if is_alone
                && (takers.is_empty() || has_data && h.ty.is_some())
                && self.takes(h, p, i, declared)
            {
                takers.push(h);
            }
        }
        let is_known = !takers.is_empty();
        // A parameter with a known type is not the data itself.
        match takers.iter().find_map(|h| h.ty) {
            Some(ty) => v.path = Some(self.paths.root(ty, Root::Known)),
            None => {
                for h in takers {
                    let data = self.origin(p.span, h.label, h.kind, h.clean);
                    v = v.with(&data);
                }
            }
        }
        if !is_known {
            let data = self.origin(p.span, "parameter", TaintKind::Parameter, 0);
            v = v.with(&data);
            // A parameter whose type has its own table entries is a service, not data.
            if let Some(name) = p.name
                && self.table.named(self.module.word(name)).is_some()
            {
                v.taints = None;
            }
        }
        v.clean(harmless)
    }

    /// Returns true if a parameter has the data or the type of a handler.
    fn takes(
        &mut self,
        h: &'static Handler,
        p: &'m Param,
        i: usize,
        declared: Option<PathId>,
    ) -> bool {
        if let Some(d) = declared
            && h.not_type.iter().any(|t| self.paths.is(d, t))
        {
            return false;
        }
        if let Some(d) = p.default
            && let ExprKind::Call { callee, .. } = &self.module.expr(d).kind
        {
            let callee = self.quiet(*callee);
            if callee
                .path
                .is_some_and(|c| h.except_default.iter().any(|t| self.paths.is(c, t)))
            {
                return false;
            }
        }
        let word = p.name.map(|n| self.module.word(n)).unwrap_or_default();
        let by_param =
            !h.annotation.is_empty() || !h.param_type.is_empty() || !h.param_name.is_empty();
        if !by_param {
            return h.params.is_empty()
                || h.params.iter().any(|place| match place {
                    Place::All => true,
                    Place::Arg(n) => usize::from(*n) == i,
                    Place::From(n) => usize::from(*n) <= i,
                    Place::Keyword(k) => *k == word,
                    Place::Spread | Place::Receiver | Place::Result => false,
                });
        }
        if !h.annotation.is_empty() {
            let mut is_marked = false;
            for m in &p.marks {
                let path = self.mark_path(m);
                is_marked |=
                    path.is_some_and(|path| h.annotation.iter().any(|a| self.paths.is(path, a)));
            }
            if !is_marked {
                return false;
            }
            if h.param_type.is_empty() && h.param_name.is_empty() {
                return true;
            }
        }
        if let Some(d) = declared {
            return h.param_type.iter().any(|t| self.paths.is(d, t));
        }
        h.param_name.contains(&word)
    }

    fn mark_path(&mut self, m: &Annotation) -> Option<PathId> {
        self.path_of(m.name)
    }

    /// Returns the path of a name or of members of a name, without evaluating it.
    fn path_of(&mut self, id: ExprId) -> Option<PathId> {
        let module = self.module;
        match &module.expr(id).kind {
            ExprKind::Name(n) => match self
                .globals
                .get(*n)
                .or_else(|| self.env.get(*n))
                .and_then(|v| v.path)
            {
                Some(p) => Some(p),
                None => Some(self.free(*n)),
            },
            ExprKind::Member { of, name } => {
                let of = self.path_of(*of);
                Some(self.paths.member(of, *name, module.word(*name)))
            }
            _ => None,
        }
    }

    /// Returns true for a function that a framework calls for each request.
    pub(super) fn is_handler(&mut self, id: FunctionId) -> bool {
        !self.handlers_of(id).is_empty()
    }

    /// Returns the handlers that match a function's decorators, name or class.
    fn handlers_of(&mut self, id: FunctionId) -> Vec<&'static Handler> {
        let Some(f) = self.module.functions.get(id.0 as usize) else {
            return Vec::new();
        };
        let marks: Vec<PathId> = f.marks.iter().filter_map(|m| self.mark_path(m)).collect();
        let class = f.class.and_then(|c| self.module.classes.get(c.0 as usize));
        let class_marks: Vec<PathId> = class
            .map(|c| c.marks.iter().filter_map(|m| self.mark_path(m)).collect())
            .unwrap_or_default();
        let mut bases: Vec<PathId> = Vec::new();
        for b in class.iter().flat_map(|c| &c.bases) {
            bases.extend(self.type_path(*b));
        }
        bases.extend(f.class.and_then(|c| self.base_path(c)));
        let name = f.name.map(|n| self.module.word(n)).unwrap_or_default();
        let ty = f.ty.map(|t| self.module.word(t)).unwrap_or_default();
        let mut out = Vec::new();
        for h in self.table.handlers {
            let has = !h.decorator.is_empty()
                || !h.function.is_empty()
                || !h.base.is_empty()
                || !h.class_annotation.is_empty()
                || !h.returns.is_empty();
            if has
                && h.callee.is_empty()
                && self.admits(h.decorator, &marks)
                && self.admits(h.base, &bases)
                && self.admits(h.class_annotation, &class_marks)
                && (h.function.is_empty() || h.function.iter().any(|p| named(p, name)))
                && (h.returns.is_empty()
                    || h.returns
                        .iter()
                        .any(|r| ty == *r || ty.ends_with(&format!(".{r}"))))
            {
                out.push(h);
            }
        }
        out
    }

    /// Returns true if one of the paths matches one of the patterns, or there is no pattern.
    fn admits(&self, patterns: &[&str], paths: &[PathId]) -> bool {
        patterns.is_empty()
            || patterns
                .iter()
                .any(|p| paths.iter().any(|m| self.paths.is(*m, p)))
    }

    /// Returns the handlers that match a function because it is passed to a callee.
    pub(super) fn handlers_of_callee(
        &mut self,
        callee: PathId,
        info: &CallInfo<'_>,
    ) -> Vec<&'static Handler> {
        let mut out = Vec::new();
        for h in self.table.handlers {
            if h.callee.iter().any(|c| self.paths.is(callee, c)) && self.all_hold(h.when, info) {
                out.push(h);
            }
        }
        out
    }

    /// Returns the findings as flows.
    fn flows(&mut self) -> Vec<Flow> {
        let mut out = Vec::new();
        for ((subject, _), f) in &self.found {
            if self.is_checked_later(*subject, f) {
                continue;
            }
            let mut steps = Vec::new();
            let origin = f
                .taint
                .as_ref()
                .and_then(|t| self.origins.get(t.origin as usize));
            let mut last = f.span;
            if let Some(o) = origin {
                steps.push(step(o.span, StepRole::Source));
                last = o.span;
            }
            for span in f.taint.iter().flat_map(way) {
                if span != last && span != f.span {
                    steps.push(step(span, StepRole::Through));
                }
                last = span;
            }
            steps.push(step(f.span, StepRole::Sink));
            out.push(Flow {
                subject: *subject,
                steps,
                proof: f.proof,
                source_label: origin.map_or("", |o| o.label),
                is_of_caller: origin.is_some_and(|o| o.kind.is_of_caller()),
                sink_label: f.label,
                cwe: f.cwe,
                confidence: f.confidence,
                starts_as_text: f.starts_as_text,
                texts: f.texts,
            });
        }
        out.sort_by_key(|f| (f.sink().map(|s| (s.start, s.end)), f.subject));
        out
    }

    /// Returns true if a sink that does no harm by itself receives data that is checked later.
    fn is_checked_later(&self, subject: FlowSubject, f: &FoundFlow) -> bool {
        let (FlowSubject::Flow(kind), Some(t), true) = (subject, &f.taint, f.is_late) else {
            return false;
        };
        self.checked
            .iter()
            .any(|(origin, kinds)| *origin == t.origin && kinds & kind.bit() != 0)
    }
}

/// Returns true if a function's name matches the pattern of a handler. `On*` matches a start,
/// `*_handler` an end.
fn named(pattern: &str, name: &str) -> bool {
    if let Some(end) = pattern.strip_prefix('*') {
        return name.ends_with(end);
    }
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern.rsplit('.').next() == Some(name),
    }
}

fn digest(v: &FlowValue) -> u64 {
    use std::hash::Hasher as _;
    let mut h = std::hash::DefaultHasher::new();
    v.feed(&mut h, 0);
    h.finish()
}

fn step(span: super::shape::ByteSpan, role: StepRole) -> PathStep {
    PathStep {
        start: span.start as usize,
        end: span.end as usize,
        role,
    }
}
