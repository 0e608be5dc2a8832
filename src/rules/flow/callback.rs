//! Functions that are passed to calls, and the checks that functions of this file make on their
//! parameters.

use super::call::Callee;
use super::run::{FlowRun, THIS};
use super::shape::{ByteSpan, ExprId, ExprKind, FunctionId, Param};
use super::sink::{CallInfo, GivenArg};
use super::value::{Env, FlowValue, Items, What, join};
use std::rc::Rc;

/// Functions and methods that run a function for each item of their receiver, or with its result.
const ITERATING: [&str; 40] = [
    "map",
    "forEach",
    "filter",
    "reduce",
    "then",
    "flatMap",
    "some",
    "every",
    "find",
    "each",
    "select",
    "collect",
    "reject",
    "let",
    "also",
    "run",
    "apply",
    "with",
    "use",
    "tap",
    "each_with_index",
    "inject",
    "sort_by",
    "any",
    "all",
    "ifPresent",
    "Select",
    "Where",
    "ForEach",
    "array_map",
    "mapNotNull",
    "each_pair",
    "each_line",
    "takeIf",
    "findIndex",
    "peek",
    "anyMatch",
    "sorted",
    "associate",
    "each_value",
];
impl FlowRun<'_> {
    /// Returns the function of this file to which a callee refers.
    pub(super) fn local_function(&mut self, callee: ExprId) -> Option<FunctionId> {
        let what = match &self.module.expr(callee).kind {
            ExprKind::Name(name) => self.callable_name(*name).what,
            // A chain of calls is not evaluated again.
            ExprKind::Member { of, name } if self.is_simple(*of) => {
                let base = self.quiet(*of);
                self.callable(&base, *name).what
            }
            _ => What::Other,
        };
        match what {
            What::Function(f) => Some(f),
            _ => None,
        }
    }

    /// Returns true for names and members of names.
    fn is_simple(&self, id: ExprId) -> bool {
        match &self.module.expr(id).kind {
            ExprKind::Name(_) | ExprKind::This | ExprKind::Super => true,
            ExprKind::Member { of, .. } => matches!(
                self.module.expr(*of).kind,
                ExprKind::Name(_) | ExprKind::This
            ),
            _ => false,
        }
    }

    /// Returns the kinds for which each argument is harmless if a function returns with an outcome.
    pub(super) fn says(
        &mut self,
        f: FunctionId,
        given: &[GivenArg],
        outcome: Option<bool>,
    ) -> Rc<[u32]> {
        let Some(function) = self.module.functions.get(f.0 as usize) else {
            return Rc::default();
        };
        let is_recursive = self.frames.iter().any(|x| x.function == Some(f));
        if is_recursive || given.iter().all(|a| a.value.taints.is_none()) || !self.enter() {
            return Rc::default();
        }
        let params = self.bound(f, given, function.span);
        let this = self.env.get(THIS).cloned();
        let key = self.check_key(f, &params, this.as_ref(), outcome);
        if let Some(known) = key.and_then(|key| self.known_check(key)) {
            self.leave();
            return known;
        }
        let started = key.map(|key| self.start_check(key));
        self.silence += 1;
        self.wanted = outcome;
        let ends = self.body_ends(f, this, params.clone());
        self.wanted = None;
        self.silence -= 1;
        let kinds: Rc<[u32]> = ends.map_or_else(Rc::default, |ends| {
            let params = function.params.iter().zip(&params);
            params
                .map(|(p, old)| kinds_of_param(p, old, &ends))
                .collect()
        });
        if let Some(started) = started {
            self.end_check(&started, &kinds);
        }
        self.leave();
        kinds
    }

    fn body_ends(
        &mut self,
        f: FunctionId,
        this: Option<FlowValue>,
        params: Vec<FlowValue>,
    ) -> Option<Env> {
        let kept = self.last_ends.take();
        self.body(f, this, params, Vec::new());
        std::mem::replace(&mut self.last_ends, kept)
    }

    /// Runs function literals and named functions that are passed to a call. Returns the call's
    /// result if the functions determine it.
    pub(super) fn run_callbacks(
        &mut self,
        target: &Callee,
        given: &[GivenArg],
        span: ByteSpan,
    ) -> Option<FlowValue> {
        let word = target.name.map(|n| self.module.word(n)).unwrap_or_default();
        let mut result = None;
        for a in given {
            let What::Function(f) = a.value.what else {
                continue;
            };
            let is_literal = matches!(self.module.expr(a.expr).kind, ExprKind::Function(_));
            let info = CallInfo {
                args: given,
                receiver: target.receiver.as_ref().map(|(e, v)| (*e, v)),
                span,
            };
            let handlers = target
                .path
                .map(|p| self.handlers_of_callee(p, &info))
                .unwrap_or_default();
            if !handlers.is_empty() {
                self.run_handler(f, &handlers);
            } else if ITERATING.contains(&word) && (is_literal || target.receiver.is_some()) {
                result = self.run_iteration(word, f, a, target, given, span);
            } else if is_literal {
                self.run_entry(f, None);
            }
        }
        result
    }

    /// Runs a function for each item of the receiver of a method. Returns the method's result if it
    /// consists of the function's results.
    fn run_iteration(
        &mut self,
        word: &str,
        f: FunctionId,
        a: &GivenArg,
        target: &Callee,
        given: &[GivenArg],
        span: ByteSpan,
    ) -> Option<FlowValue> {
        let is_whole = matches!(
            word,
            "then"
                | "let"
                | "also"
                | "run"
                | "apply"
                | "with"
                | "use"
                | "tap"
                | "ifPresent"
                | "takeIf"
        );
        let mut item = FlowValue::default();
        if let Some((_, base)) = &target.receiver {
            item = if is_whole {
                base.clone()
            } else {
                self.element(base, span)
            };
        }
        for other in given
            .iter()
            .filter(|o| o.expr != a.expr && (word == "array_map" || target.receiver.is_none()))
        {
            let e = if is_whole {
                other.value.clone()
            } else {
                self.element(&other.value, span)
            };
            item = join(&item, &e);
        }
        let params = self
            .module
            .functions
            .get(f.0 as usize)
            .map_or(1, |f| f.params.len());
        let count = if matches!(word, "reduce" | "inject") || word.contains("pair") {
            2
        } else {
            1
        };
        let one = GivenArg {
            keyword: None,
            value: item,
            expr: a.expr,
            is_spread: false,
        };
        let many = [one.clone(), one];
        // Kotlin's `run`, `apply` and `with`: the value is the object.
        let this = if params == 0 && is_whole {
            many.first().map(|m| m.value.clone())
        } else {
            self.env.get(THIS).cloned()
        };
        let (v, _) = self.invoke(
            f,
            this,
            many.get(..count.min(params.max(1))).unwrap_or_default(),
            span,
        );
        match word {
            "then" | "let" | "run" | "with" | "use" | "reduce" | "inject" => Some(v),
            "map" | "flatMap" | "select" | "collect" | "Select" | "array_map" | "mapNotNull"
                if target.receiver.is_some() || word == "array_map" =>
            {
                if word == "select" && self.language == super::FlowLanguage::Ruby {
                    return None;
                }
                let mut list = FlowValue::collection(Items::default());
                list.put(
                    None,
                    FlowValue {
                        constant: None,
                        ..v
                    },
                );
                Some(list)
            }
            _ => None,
        }
    }
}

/// Returns the kinds for which a parameter is harmless at the end of a function. `old`: its value
/// at the start.
fn kinds_of_param(p: &Param, old: &FlowValue, ends: &Env) -> u32 {
    match (p.name.and_then(|n| ends.get(n)), &old.taints) {
        (Some(new), Some(_)) => kinds_between(old, new),
        _ => 0,
    }
}

/// Returns the kinds for which data became harmless.
fn kinds_between(old: &FlowValue, new: &FlowValue) -> u32 {
    let mut out = u32::MAX;
    for t in old.taints.iter().flat_map(|l| l.iter()) {
        let now = new
            .taints
            .iter()
            .flat_map(|l| l.iter())
            .find(|n| n.origin == t.origin);
        out &= now.map_or(u32::MAX, |n| n.clean & !t.clean);
    }
    out
}
