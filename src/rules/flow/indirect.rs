//! Calls of a function through another one: `exec.call(…)`, `call_user_func("system", …)`,
//! `functools.partial(…)`.

use super::FlowLanguage as L;
use super::FlowSubject;
use super::call::Callee;
use super::paths::{Calling, PathId, Root};
use super::run::FlowRun;
use super::shape::{ByteSpan, ExprId, ExprKind};
use super::sink::{CallInfo, GivenArg};
use super::table::Role;
use super::value::{FlowValue, ItemKey};

/// The key that marks a value as a function with bound arguments. No program can contain this key.
const BOUND: &str = "\u{fffc}bound";

impl FlowRun<'_> {
    /// Reports the table entries of the function to which a call passes its arguments.
    pub(super) fn check_indirect(&mut self, target: &Callee, given: &[GivenArg], span: ByteSpan) {
        let found = match self.language {
            L::JavaScript | L::TypeScript | L::Tsx => self.through_method(target, given),
            L::Php => self.through_name(target, given),
            _ => None,
        };
        let Some((function, args)) = found else {
            return;
        };
        let path = self.paths.call(function, Calling::Plain);
        let info = CallInfo {
            args: &args,
            receiver: None,
            span,
        };
        self.check_call(path, &info, false);
    }

    /// `f.call(this, a)`, `f.apply(this, [a])`, `Reflect.apply(f, this, [a])`.
    fn through_method(
        &mut self,
        target: &Callee,
        given: &[GivenArg],
    ) -> Option<(PathId, Vec<GivenArg>)> {
        let (_, base) = target.receiver.as_ref()?;
        let word = self.module.word(target.name?);
        let (function, args) = match word {
            "call" => (base, given.get(1..)?.to_vec()),
            "apply" => {
                let is_reflect = target
                    .path
                    .is_some_and(|p| self.paths.text(p) == "Reflect.apply");
                let (function, list) = if is_reflect {
                    (&given.first()?.value, given.get(2)?)
                } else {
                    (base, given.get(1)?)
                };
                (function, self.items_of(list))
            }
            _ => return None,
        };
        let path = function
            .path
            .filter(|p| self.paths.root_of(*p) != Root::Unknown && !self.paths.is_call(*p))?;
        Some((path, args))
    }

    /// `call_user_func("f", a)`, `array_map("f", $list)`, `$f = "f"; $f($a)`.
    fn through_name(
        &mut self,
        target: &Callee,
        given: &[GivenArg],
    ) -> Option<(PathId, Vec<GivenArg>)> {
        if target.receiver.is_some() {
            return None;
        }
        let called = target
            .name
            .map(|n| self.module.word(n).to_ascii_lowercase())
            .unwrap_or_default();
        let (function, args) = match called.as_str() {
            "call_user_func" | "forward_static_call" | "register_shutdown_function" => {
                (given.first()?.value.clone(), given.get(1..)?.to_vec())
            }
            "call_user_func_array" | "forward_static_call_array" => {
                (given.first()?.value.clone(), self.items_of(given.get(1)?))
            }
            "array_map" => (
                given.first()?.value.clone(),
                given.get(1..)?.iter().map(item_of).collect(),
            ),
            "array_walk" | "array_filter" => {
                (given.get(1)?.value.clone(), vec![item_of(given.first()?)])
            }
            _ => (target.value.clone(), given.to_vec()),
        };
        let name = function
            .constant
            .as_ref()?
            .text()?
            .trim_start_matches('\\')
            .to_ascii_lowercase();
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            return None;
        }
        Some((self.paths.root(&name, Root::Free), args))
    }

    /// Returns the items of a list that a call gets as its arguments.
    fn items_of(&self, list: &GivenArg) -> Vec<GivenArg> {
        let literal = match &self.module.expr(list.expr).kind {
            ExprKind::Collection(items) => items.as_slice(),
            _ => &[],
        };
        match list.value.items.as_ref().filter(|i| i.is_list) {
            Some(items) => {
                let values = items.keys.values().enumerate();
                values
                    .map(|(i, v)| GivenArg {
                        keyword: None,
                        value: v.with(&list.value.taints),
                        expr: literal.get(i).map_or(list.expr, |item| item.value),
                        is_spread: false,
                    })
                    .collect()
            }
            None => vec![GivenArg {
                is_spread: true,
                ..list.clone()
            }],
        }
    }

    /// Returns the function of `partial(f, a, k=b)` with its bound arguments.
    ///
    /// Bound data is reported here if it reaches the sinks of the function. Table entries about
    /// calls without data are checked only when all arguments are known.
    pub(super) fn bind_partial(
        &mut self,
        path: Option<PathId>,
        given: &[GivenArg],
        span: ByteSpan,
    ) -> Option<FlowValue> {
        if self.language != L::Python || self.paths.text(path?) != "functools.partial()" {
            return None;
        }
        let (function, args) = given.split_first()?;
        if function.is_spread {
            return None;
        }
        let mut out = function.value.clone();
        let args = self.with_bound(&function.value, args.to_vec(), function.expr);
        if let Some(f) = out.path {
            let path = self.paths.call(f, Calling::Plain);
            let hits = self.paths.hits(path);
            let info = CallInfo {
                args: &args,
                receiver: None,
                span,
            };
            for hit in hits.iter().filter(|h| !h.write) {
                if let Role::Sink(i) = hit.role
                    && let Some(sink) = self.table.sinks.get(usize::from(i))
                {
                    self.check_sink(sink, hit.is_wild, &info);
                }
            }
        }
        let is_reported = self
            .found
            .keys()
            .any(|(subject, at)| *at == span.start && matches!(subject, FlowSubject::Flow(_)));
        out.items = None;
        out.put(Some(ItemKey::Text(BOUND.into())), FlowValue::default());
        let mut position = 0;
        for a in args {
            let key = match a.keyword {
                Some(k) => ItemKey::Text(self.module.word(k).into()),
                None => {
                    position += 1;
                    ItemKey::Int(position)
                }
            };
            // The call of the result does not report the same data again.
            let value = if is_reported {
                a.value.without_data()
            } else {
                a.value
            };
            out.put(Some(key), value);
        }
        Some(out)
    }

    /// Returns the arguments of a call of a function, preceded by the arguments that
    /// [`FlowRun::bind_partial`] has bound.
    pub(super) fn with_bound(
        &self,
        function: &FlowValue,
        given: Vec<GivenArg>,
        expr: ExprId,
    ) -> Vec<GivenArg> {
        let Some(items) = function
            .items
            .as_ref()
            .filter(|i| i.keys.contains_key(&ItemKey::Text(BOUND.into())))
        else {
            return given;
        };
        let mut out = Vec::new();
        for (key, value) in &items.keys {
            let keyword = match key {
                ItemKey::Int(_) => None,
                ItemKey::Text(k) => match self.module.find(k) {
                    Some(k) if given.iter().all(|a| a.keyword != Some(k)) => Some(k),
                    _ => continue,
                },
            };
            out.push(GivenArg {
                keyword,
                value: value.clone(),
                expr,
                is_spread: false,
            });
        }
        out.extend(given);
        out
    }
}

/// Returns an item of a list as an argument.
fn item_of(list: &GivenArg) -> GivenArg {
    GivenArg {
        value: list.value.item(None),
        ..list.clone()
    }
}
