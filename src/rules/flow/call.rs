//! Calls of functions in this file, and of functions that the tables describe.

use super::doubt::Doubt;
use super::eval::{doubted, map_taints};
use super::joining::cleaned_like;
use super::method::matched;
use super::paths::{Calling, PathId, Root};
use super::run::FlowRun;
use super::shape::{Arg, ByteSpan, ClassId, ExprId, ExprKind, FunctionId, Sym};
use super::sink::{CallInfo, GivenArg};
use super::table::{Place, Role};
use super::value::{Const, FlowValue, Taints, What, join_taints};
use super::{FlowLanguage as L, Proof, names};

/// The kind of a callee.
pub(super) struct Callee {
    pub(super) path: Option<PathId>,
    pub(super) name: Option<Sym>,
    pub(super) receiver: Option<(ExprId, FlowValue)>,
    pub(super) value: FlowValue,
}

impl<'m> FlowRun<'m> {
    /// Evaluates an argument.
    pub(super) fn argument(&mut self, a: &Arg) -> GivenArg {
        let value = match &self.module.expr(a.value).kind {
            // A function literal runs when its caller is known.
            ExprKind::Function(f) => FlowValue::defined(What::Function(*f)),
            ExprKind::Collection(_) => {
                let before = self.options_at.replace(self.frames.len());
                let value = self.eval(a.value);
                self.options_at = before;
                value
            }
            _ => self.eval(a.value),
        };
        GivenArg {
            keyword: a.keyword,
            value,
            expr: a.value,
            is_spread: a.is_spread,
        }
    }

    /// Evaluates an argument again, without effects.
    pub(super) fn given(&mut self, a: &Arg) -> GivenArg {
        let value = self.quiet(a.value);
        GivenArg {
            keyword: a.keyword,
            value,
            expr: a.value,
            is_spread: a.is_spread,
        }
    }

    /// Evaluates an expression again, without effects and findings.
    pub(super) fn quiet(&mut self, id: ExprId) -> FlowValue {
        match &self.module.expr(id).kind {
            ExprKind::Text(t) => return FlowValue::constant(Const::Text(t.clone())),
            ExprKind::Int(i) => return FlowValue::constant(Const::Int(*i)),
            ExprKind::Bool(b) => return FlowValue::constant(Const::Bool(*b)),
            ExprKind::Null => return FlowValue::constant(Const::Null),
            ExprKind::Function(f) => return FlowValue::defined(What::Function(*f)),
            _ => {}
        }
        self.spend();
        let (env, is_alive) = (self.env.clone(), self.is_alive);
        self.silence += 1;
        let v = self.eval(id);
        self.silence -= 1;
        (self.env, self.is_alive) = (env, is_alive);
        v
    }

    pub(super) fn callee(&mut self, id: ExprId) -> Callee {
        let module = self.module;
        match &module.expr(id).kind {
            ExprKind::Member { of, name } => {
                let base = self.eval(*of);
                let path = self.paths.member(base.path, *name, module.word(*name));
                let value = self.callable(&base, *name);
                Callee {
                    path: Some(path),
                    name: Some(*name),
                    receiver: Some((*of, base)),
                    value,
                }
            }
            ExprKind::Name(name) => {
                let value = self.callable_name(*name);
                let path = match (&value.what, value.path) {
                    (_, Some(p)) => Some(p),
                    (What::Other, None) => None,
                    (_, None) => Some(self.free(*name)),
                };
                Callee {
                    path,
                    name: Some(*name),
                    receiver: None,
                    value,
                }
            }
            _ => {
                let value = self.eval(id);
                Callee {
                    path: value.path,
                    name: None,
                    receiver: None,
                    value,
                }
            }
        }
    }

    /// Returns the function of this file to which a member of a value refers.
    pub(super) fn callable(&mut self, base: &FlowValue, name: Sym) -> FlowValue {
        if let What::Instance(c) | What::Class(c) = base.what {
            if let Some(f) = self.method(c, name) {
                return FlowValue::defined(What::Function(f));
            }
            // `Class.new(…)`.
            if let (What::Class(_), "new") = (base.what, self.module.word(name)) {
                return base.clone();
            }
        }
        // `supplier.get()`: the function itself.
        let words = [
            "get", "call", "apply", "run", "accept", "invoke", "test", "Invoke",
        ];
        let is_typed = matches!(self.language, L::Java | L::Kotlin | L::CSharp);
        if is_typed
            && matches!(base.what, What::Function(_))
            && words.contains(&self.module.word(name))
        {
            return base.clone();
        }
        let key = super::value::ItemKey::Text(self.module.word(name).into());
        base.items
            .as_ref()
            .and_then(|i| i.keys.get(&key))
            .cloned()
            .unwrap_or_default()
    }

    pub(super) fn callable_name(&mut self, name: Sym) -> FlowValue {
        let variable = self.variable(name);
        if let Some(v) = self
            .env
            .get(variable)
            .or_else(|| self.globals.get(variable))
        {
            return v.clone();
        }
        if let Some(f) = self.class().and_then(|c| self.method(c, name)) {
            return FlowValue::defined(What::Function(f));
        }
        if let Some(f) = self.functions.get(&name) {
            return FlowValue::defined(What::Function(*f));
        }
        if let Some(c) = self.classes.get(&name).copied() {
            return FlowValue {
                what: What::Class(c),
                path: self.base_path(c),
                ..FlowValue::default()
            };
        }
        // A method of a base class that is not in this file.
        let path = self.free(name);
        if self.paths.root_of(path) == Root::Free
            && let Some(base) = self.class().and_then(|c| self.base_path(c))
        {
            let member = self.paths.member(Some(base), name, self.module.word(name));
            let called = self.paths.call(member, Calling::Plain);
            let bare = self.paths.call(path, Calling::Plain);
            if self.paths.hits(bare).is_empty() && !self.paths.hits(called).is_empty() {
                return FlowValue::at(member);
            }
        }
        FlowValue::at(path)
    }

    /// Returns a method of a class or of its bases in this file.
    pub(super) fn method(&self, class: ClassId, name: Sym) -> Option<FunctionId> {
        let mut at = class;
        for _ in 0..6 {
            let c = self.module.classes.get(at.0 as usize)?;
            let functions = &self.module.functions;
            let found = c.methods.iter().find(|f| {
                functions
                    .get(f.0 as usize)
                    .is_some_and(|x| x.name == Some(name))
            });
            if let Some(f) = found {
                return Some(*f);
            }
            at = *c.bases.iter().find_map(|b| self.classes.get(b))?;
        }
        None
    }

    /// Returns the path of the first base of a class that is not in this file.
    pub(super) fn base_path(&mut self, class: ClassId) -> Option<PathId> {
        let mut at = class;
        for _ in 0..6 {
            let c = self.module.classes.get(at.0 as usize)?;
            match c.bases.iter().find_map(|b| self.classes.get(b)) {
                Some(next) if *next != at => at = *next,
                _ => {
                    let base = *c.bases.first()?;
                    return self.type_path(base);
                }
            }
        }
        None
    }

    /// Evaluates a call.
    pub(super) fn call(&mut self, callee: ExprId, args: &'m [Arg], span: ByteSpan) -> FlowValue {
        let mut target = self.callee(callee);
        let given: Vec<GivenArg> = args.iter().map(|a| self.argument(a)).collect();
        let mut path = target.path.map(|p| self.paths.call(p, Calling::Plain));
        if let (Some((of, _)), Some(name)) = (&target.receiver, target.name)
            && path.is_none_or(|p| self.paths.hits(p).is_empty())
            && let Some(own) = self.own_path(*of, name)
        {
            let called = self.paths.call(own, Calling::Plain);
            if !self.paths.hits(called).is_empty() {
                (target.path, path) = (Some(own), Some(called));
            }
        }
        let at = self.member_span(callee, span);
        if let Some(v) = self.bind_partial(path, &given, at) {
            return v;
        }
        let given = self.with_bound(&target.value, given, callee);
        self.check_indirect(&target, &given, at);
        let mut result = self.apply(&target, path, &given, at);
        if let Some(v) = self.run_callbacks(&target, &given, at) {
            result = v;
        }
        self.typed_result(result, path, &target, Calling::Plain)
    }

    /// Evaluates `new`.
    pub(super) fn create(&mut self, class: ExprId, args: &'m [Arg], span: ByteSpan) -> FlowValue {
        let target = self.callee(class);
        let given: Vec<GivenArg> = args.iter().map(|a| self.argument(a)).collect();
        let path = target.path.map(|p| self.paths.call(p, Calling::New));
        let target = Callee {
            receiver: None,
            ..target
        };
        let result = self.apply(&target, path, &given, span);
        self.run_callbacks(&target, &given, span);
        self.typed_result(result, path, &target, Calling::New)
    }

    /// Gives the result of a call a path or a type.
    fn typed_result(
        &mut self,
        v: FlowValue,
        path: Option<PathId>,
        target: &Callee,
        calling: Calling,
    ) -> FlowValue {
        // A builder of texts keeps its class beside the text that it starts with.
        let is_typed = v.constant.is_some() && calling != Calling::New;
        if v.path.is_some() || is_typed || v.what != What::Other {
            return v;
        }
        let Some(path) = self.form_path(target).or(path) else {
            return v;
        };
        let is_class = |w: &str| {
            w.starts_with(|c: char| c.is_ascii_uppercase())
                && w.contains(|c: char| c.is_ascii_lowercase())
        };
        let is_new = calling == Calling::New
            || target.name.is_some_and(|n| {
                is_class(self.module.word(n))
                    && target.receiver.as_ref().is_none_or(|(_, r)| {
                        r.path.is_some_and(|p| {
                            self.paths.root_of(p) != Root::Unknown
                                && !self.paths.text(p).ends_with("()")
                        })
                    })
            });
        if is_new && !matches!(self.language, L::Go | L::CSharp) || calling == Calling::New {
            return FlowValue {
                path: target.path,
                ..v
            };
        }
        FlowValue {
            path: Some(path),
            ..v
        }
    }

    /// Evaluates a call of a callee.
    fn apply(
        &mut self,
        target: &Callee,
        path: Option<PathId>,
        given: &[GivenArg],
        span: ByteSpan,
    ) -> FlowValue {
        let receiver = target.receiver.as_ref().map(|(e, v)| (*e, v));
        let info = CallInfo {
            args: given,
            receiver,
            span,
        };
        if let Some(p) = path {
            self.check_call(p, &info, false);
        }
        if let Some(v) = self.local(target, given, span) {
            return v;
        }
        let word = target.name.map(|n| self.module.word(n)).unwrap_or_default();
        if let Some(v) = self.module_of(word, target, given) {
            return v;
        }
        let hits = path
            .map(|p| self.paths.hits(p))
            .unwrap_or_else(|| [].into());
        let mut sources: Taints = None;
        let mut ty: Option<PathId> = None;
        let mut clean: Vec<(u32, Taints)> = Vec::new();
        // The contents of a collection are known more exactly than the tables describe them.
        let mut result = match &target.receiver {
            Some((e, base)) => self
                .collection_method(word, *e, base, given)
                .or_else(|| self.builder_method(word, (*e, base), given, span)),
            None => None,
        };
        for hit in hits.iter().filter(|h| !h.write) {
            match hit.role {
                Role::Source(i) => {
                    let Some(s) = self.table.sources.get(usize::from(i)) else {
                        continue;
                    };
                    if !self.applies(s.when, s.unless, &info) {
                        continue;
                    }
                    let data = self.origin(span, s.label, s.kind, s.clean);
                    for place in s.args {
                        match place {
                            Place::Result => sources = join_taints(&sources, &data),
                            _ => self.fill(*place, &info, &data, true),
                        }
                    }
                }
                Role::Type(i) => {
                    let Some(t) = self.table.types.get(usize::from(i)) else {
                        continue;
                    };
                    if !self.applies(t.when, t.unless, &info) {
                        continue;
                    }
                    let path = self.paths.root(t.is, Root::Known);
                    for place in t.to {
                        match (place, info.receiver) {
                            (Place::Receiver, Some((e, old))) => {
                                let old = FlowValue {
                                    path: Some(path),
                                    ..old.clone()
                                };
                                self.store(e, old);
                            }
                            (Place::Result, _) if ty.is_none() => ty = Some(path),
                            (Place::Arg(n), _) => {
                                if let Some((e, v)) = info.at(*n).map(|a| (a.expr, a.value.clone()))
                                {
                                    self.store(
                                        e,
                                        FlowValue {
                                            path: Some(path),
                                            ..v
                                        },
                                    );
                                }
                            }
                            _ => {}
                        }
                    }
                }
                Role::Sanitizer(i) => {
                    let Some(s) = self.table.sanitizers.get(usize::from(i)) else {
                        continue;
                    };
                    if self.applies(s.when, s.unless, &info) {
                        clean.push((s.kinds, self.data_of(s.args, &info)));
                    }
                }
                Role::Propagator(i) => {
                    let Some(p) = self.table.propagators.get(usize::from(i)) else {
                        continue;
                    };
                    if result.is_some() || !self.applies(p.when, p.unless, &info) {
                        continue;
                    }
                    if let Some(a) = p.same.and_then(|n| info.at(n)) {
                        result = Some(a.value.clone());
                        continue;
                    }
                    let data = self.data_of(p.from, &info);
                    let mut to_result: Taints = None;
                    for place in p.to {
                        match place {
                            Place::Result => to_result = join_taints(&to_result, &data),
                            _ => self.fill(*place, &info, &data, p.strong),
                        }
                    }
                    result = Some(FlowValue::tainted(to_result).exposed(p.exposes));
                }
                Role::Sink(_) | Role::Guard(_) | Role::Call(_) => {}
            }
        }
        let is_tabled = result.is_some();
        let mut v = match result {
            Some(v) => self.with_known_text(v, word, target.receiver.as_ref(), given, span),
            None => match self.builtin(word, target.receiver.as_ref(), given, span) {
                Some(v) => v,
                None => self.default_result(word, target, given, span),
            },
        };
        if clean.is_empty() && !is_tabled && v.taints.is_some() && hits.is_empty() {
            v = names::cleaned(word, v);
        }
        for (kinds, data) in clean {
            v = v.clean_data(kinds, &data);
            // The call itself filters the data that it reads.
            if data.is_none() {
                sources = map_taints(&sources, kinds, false);
            }
        }
        // The text that a strict expression matched is harmless.
        if v.taints.is_some()
            && let Some(kinds) = matched(word, target.receiver.as_ref().map(|(_, b)| b), given)
        {
            v = v.clean(kinds);
        }
        if sources.is_some() {
            v = v.with(&sources);
        }
        if let Some(ty) = ty {
            v.path = Some(ty);
        }
        v
    }

    /// Returns the result of a function of the tables, with the known parts of the text.
    fn with_known_text(
        &mut self,
        v: FlowValue,
        word: &str,
        receiver: Option<&(ExprId, FlowValue)>,
        given: &[GivenArg],
        span: ByteSpan,
    ) -> FlowValue {
        let builds = matches!(
            word,
            "format"
                | "Format"
                | "sprintf"
                | "Sprintf"
                | "concat"
                | "Concat"
                | "join"
                | "Join"
                | "joinToString"
                | "implode"
                | "vsprintf"
        );
        if !builds || v.taints.is_none() || v.known.is_some() {
            return v;
        }
        match self.builtin(word, receiver, given, span) {
            Some(FlowValue {
                known: Some(known),
                taints,
                ..
            }) => FlowValue {
                taints: cleaned_like(&v.taints, &taints),
                known: Some(known),
                ..v
            },
            _ => v,
        }
    }

    /// Returns the data of arguments to which table places refer.
    fn data_of(&self, places: &[Place], call: &CallInfo<'_>) -> Taints {
        let mut out: Taints = None;
        for p in places {
            match p {
                Place::Arg(i) => call
                    .at(*i)
                    .into_iter()
                    .for_each(|a| join_data(&mut out, &a.value)),
                Place::From(i) => call
                    .args
                    .iter()
                    .skip(usize::from(*i))
                    .for_each(|a| join_data(&mut out, &a.value)),
                Place::All => call.args.iter().for_each(|a| join_data(&mut out, &a.value)),
                Place::Receiver => call
                    .receiver
                    .into_iter()
                    .for_each(|(_, v)| join_data(&mut out, v)),
                Place::Keyword(k) => {
                    let named = call
                        .args
                        .iter()
                        .filter(|a| a.keyword.is_some_and(|n| self.module.word(n) == *k));
                    named.for_each(|a| join_data(&mut out, &a.value));
                }
                Place::Spread => call
                    .args
                    .iter()
                    .filter(|a| a.is_spread)
                    .for_each(|a| join_data(&mut out, &a.value)),
                Place::Result => {}
            }
        }
        out
    }

    /// Adds data to a place of a call.
    fn fill(&mut self, place: Place, call: &CallInfo<'_>, data: &Taints, is_strong: bool) {
        let mut targets: Vec<(ExprId, FlowValue)> = Vec::new();
        match place {
            Place::Arg(i) => targets.extend(call.at(i).map(|a| (a.expr, a.value.clone()))),
            Place::From(i) => targets.extend(
                call.args
                    .iter()
                    .skip(usize::from(i))
                    .map(|a| (a.expr, a.value.clone())),
            ),
            Place::All => targets.extend(call.args.iter().map(|a| (a.expr, a.value.clone()))),
            Place::Receiver => targets.extend(call.receiver.map(|(e, v)| (e, v.clone()))),
            Place::Keyword(_) | Place::Spread | Place::Result => {}
        }
        for (expr, old) in targets {
            let taints = if is_strong {
                data.clone()
            } else {
                join_taints(&old.taints, data)
            };
            let v = FlowValue {
                taints,
                path: old.path,
                what: old.what,
                ..FlowValue::default()
            };
            let v = self.through(v, call.span);
            self.store(expr, v);
        }
    }

    /// Returns the result of an unknown call: the data of the receiver and the arguments.
    fn default_result(
        &mut self,
        word: &str,
        target: &Callee,
        given: &[GivenArg],
        span: ByteSpan,
    ) -> FlowValue {
        let mut taints: Taints = None;
        let mut own: Taints = None;
        if let Some((of, base)) = &target.receiver {
            // Data in named fields of an object does not flow into the results of its other
            // methods.
            let is_object =
                matches!(base.what, What::Instance(_)) || base.path.is_some() || self.is_this(*of);
            own = if is_object { base.outer() } else { base.deep() };
        } else if target.name.is_none() {
            own = target.value.deep();
        }
        // If a method of a clean object looks up a record by data, the record is not that data.
        let is_clean = is_of_unknown_origin(&own);
        // A helper can have the mapping as its first argument: `json.Get(body, "name")`.
        let is_constant = |at: usize| given.get(at).is_some_and(|a| a.value.constant.is_some());
        let is_of_argument = is_constant(1) && !is_constant(0) && !word.ends_with("Default");
        let reads_key = is_clean && !is_of_argument && self.reads_key(word, target);
        if reads_key || !is_clean || !names::is_lookup(word) {
            for a in given.iter().skip(usize::from(reads_key)) {
                taints = join_taints(&taints, &a.value.deep());
            }
        }
        if names::is_question(word) {
            return FlowValue::default();
        }
        if names::says_number(word) {
            return self.number(&join_taints(&own, &taints));
        }
        if is_clean && taints.is_some() {
            let doubt = self.doubt_of_call(word, target, own.is_none());
            taints = doubted(&taints, doubt);
        }
        if own.is_some() && self.shows_form(word, target) {
            own = doubted(&own, Doubt::Stated);
        }
        if own.is_some() && !given.is_empty() && self.is_action_elsewhere(target) {
            own = doubted(&own, Doubt::Unknown);
        }
        taints = join_taints(&own, &taints);
        if taints.is_none() {
            return FlowValue::default();
        }
        self.through(FlowValue::tainted(taints), span)
    }

    /// Returns the module of `require("x")`.
    fn module_of(&mut self, word: &str, target: &Callee, given: &[GivenArg]) -> Option<FlowValue> {
        if !matches!(word, "require" | "import" | "__import__" | "import_module")
            || target.receiver.is_some() && word != "import_module"
        {
            return None;
        }
        let name = given.first()?.value.constant.as_ref()?.text()?.clone();
        Some(FlowValue::at(self.module_path(&name)))
    }

    /// Returns the path of a module. A module of the project itself is unknown.
    pub(super) fn module_path(&mut self, path: &str) -> PathId {
        let path = path.strip_prefix("node:").unwrap_or(path);
        if path.starts_with(['.', '/', '~']) {
            let last = path.rsplit(['.', '/']).next().unwrap_or_default();
            return self.paths.root(&format!("?.{last}"), Root::Unknown);
        }
        self.paths.root(path, Root::Known)
    }
}

/// Returns true for a value without data, or with the origin of an object that the caller passed.
fn is_of_unknown_origin(data: &Taints) -> bool {
    let mut data = data.iter().flat_map(|t| t.iter());
    data.all(|t| t.proof == Proof::Unknown)
}

/// Adds the data in a value and in its items.
fn join_data(taints: &mut Taints, value: &FlowValue) {
    *taints = join_taints(taints, &value.deep());
}
