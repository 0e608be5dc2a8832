//! Values of operators: concatenation, formatting, logic and conditions.

use super::eval::map_taints;
use super::run::{FlowRun, join_envs};
use super::shape::{ExprId, Op};
use super::value::{Const, FlowValue, GAP, Taints, join, join_taints};
use super::{FlowLanguage, SinkKind, constant, guard};

/// Properties that are the path of the page: what follows them can no longer set the host.
const PAGE_PATHS: [&str; 3] = [
    "location.pathname",
    "window.location.pathname",
    "document.location.pathname",
];
/// Properties that are the fragment of the page. It starts with `#`, so it does not change where an
/// address leads.
const PAGE_HASHES: [&str; 3] = [
    "location.hash",
    "window.location.hash",
    "document.location.hash",
];
/// The known text of `location.pathname`: a path of some page.
const PAGE_PATH: &str = "/\u{2026}";
/// Bytes of a known text, at most.
const MOST_KNOWN: usize = 400;
impl<'m> FlowRun<'m> {
    /// Joins parts to one text.
    pub(super) fn concat(&mut self, parts: &[FlowValue]) -> FlowValue {
        let constants: Option<Vec<String>> = parts
            .iter()
            .map(|p| p.constant.as_ref().and_then(constant::shown))
            .collect();
        if let Some(texts) = constants {
            let text = texts.concat();
            if text.len() <= 4096 {
                return FlowValue::text(&text);
            }
        }
        let mut known = String::new();
        let mut taints: Taints = None;
        // A single part is converted to text.
        let empty = parts
            .iter()
            .filter(|p| matches!(&p.constant, Some(Const::Text(t)) if t.is_empty()));
        let is_text = parts.len() == empty.count() + 1;
        let coerced = if is_text {
            SinkKind::NoSql.bit() | SinkKind::MassAssignment.bit()
        } else {
            0
        };
        for p in parts {
            let deep = p.deep();
            if deep.is_some() {
                let mut kinds = constant::fixed_by(&known);
                // The functions of PHP for files read an address instead.
                let is_address = known.starts_with("https://") || known.starts_with("http://");
                if kinds != 0 && is_address && self.language == FlowLanguage::Php {
                    kinds |= SinkKind::Path.bit();
                }
                if self.is_at(p, &PAGE_HASHES) {
                    kinds |= SinkKind::Redirect.bit() | SinkKind::Url.bit();
                }
                let part = map_taints(&deep, kinds | coerced, true);
                taints = join_taints(&taints, &part);
            }
            if known.len() < MOST_KNOWN {
                match (p.constant.as_ref().and_then(constant::shown), &p.known) {
                    (Some(t), _) => {
                        known.push_str(t.get(..t.len().min(MOST_KNOWN)).unwrap_or_default());
                    }
                    (None, Some(k)) => known.push_str(k),
                    (None, None) if known.is_empty() && self.is_at(p, &PAGE_PATHS) => {
                        known.push_str(PAGE_PATH);
                    }
                    (None, None) => known.push(GAP),
                }
            }
        }
        FlowValue {
            taints,
            known: Some(known.into()),
            ..FlowValue::default()
        }
    }

    /// Returns true for one of these properties of a page in a script.
    fn is_at(&self, v: &FlowValue, properties: &[&str]) -> bool {
        use super::FlowLanguage as L;
        let is_script = matches!(self.language, L::JavaScript | L::TypeScript | L::Tsx);
        let path = v.path.filter(|_| is_script).map(|p| self.paths.text(p));
        path.is_some_and(|path| properties.contains(&path.as_str()))
    }

    pub(super) fn binary(&mut self, op: Op, left: ExprId, right: ExprId) -> FlowValue {
        let a = self.eval(left);
        if matches!(op, Op::And | Op::Or | Op::Else) {
            return self.logic(op, left, right, a);
        }
        let b = self.eval(right);
        if let (Some(x), Some(y)) = (&a.constant, &b.constant)
            && let Some(c) = constant::binary(op, x, y)
        {
            return FlowValue::constant(c);
        }
        match op {
            Op::Add => self.add(&a, &b),
            // A format: `"%s" % x`.
            Op::Rem if matches!(a.constant, Some(Const::Text(_))) || a.known.is_some() => {
                self.format(&a, &b)
            }
            Op::Mul
                if matches!(
                    (&a.constant, &a.items),
                    (Some(Const::Text(_)), _) | (_, Some(_))
                ) =>
            {
                a
            }
            Op::Sub | Op::Mul | Op::Div | Op::Rem | Op::Bits => {
                let taints = join_taints(&a.taints, &b.taints);
                // Paths of Python and Scala join with `/`.
                if op == Op::Div && self.language == FlowLanguage::Python {
                    return FlowValue {
                        taints: map_taints(&taints, 0, true),
                        path: a.path,
                        ..FlowValue::default()
                    };
                }
                self.number(&taints)
            }
            _ => FlowValue::default(),
        }
    }

    pub(super) fn add(&mut self, a: &FlowValue, b: &FlowValue) -> FlowValue {
        // Lists.
        if let (Some(x), Some(y)) = (&a.items, &b.items) {
            let mut out = a.clone();
            let _ = x;
            for v in y.keys.values() {
                out.push(v.clone());
            }
            return out;
        }
        if a.items.is_some() {
            let mut out = a.clone();
            out.put(None, FlowValue::tainted(b.taints.clone()));
            return out;
        }
        if matches!(b.constant, Some(Const::Int(_) | Const::Float(_)))
            && a.taints.is_none()
            && a.known.is_none()
        {
            return FlowValue::default();
        }
        self.concat(&[a.clone(), b.clone()])
    }

    /// Returns the text of a format with its values.
    pub(super) fn format(&mut self, format: &FlowValue, values: &FlowValue) -> FlowValue {
        let mut parts = Vec::new();
        let text = format.constant.as_ref().and_then(Const::text).cloned();
        let text = text.or_else(|| format.known.clone()).unwrap_or_default();
        let list: Vec<FlowValue> = match &values.items {
            Some(i) if i.rest.is_none() => i.keys.values().cloned().collect(),
            _ => vec![values.clone()],
        };
        let mut rest: &str = &text;
        let mut i = 0;
        while let Some(at) = rest.find('%') {
            parts.push(FlowValue::text(rest.get(..at).unwrap_or_default()));
            rest = rest.get(at + 1..).unwrap_or_default();
            if let Some(after) = rest.strip_prefix('%') {
                parts.push(FlowValue::text("%"));
                rest = after;
                continue;
            }
            let end = rest
                .find(|c: char| c.is_ascii_alphabetic() && c != 'l')
                .unwrap_or(rest.len());
            let is_key = rest.starts_with('(');
            let end = if is_key {
                rest.find(')').map_or(rest.len(), |p| p + 1)
            } else {
                end
            };
            let verb = rest
                .get(end..)
                .and_then(|r| r.chars().next())
                .unwrap_or('s');
            let value = if is_key {
                list.iter().fold(FlowValue::default(), |a, v| join(&a, v))
            } else {
                list.get(i).cloned().unwrap_or_else(|| values.clone())
            };
            i += 1;
            parts.push(
                if matches!(verb, 'd' | 'i' | 'f' | 'x' | 'X' | 'o' | 'u' | 'e' | 'g') {
                    FlowValue::default()
                } else {
                    value
                },
            );
            rest = rest
                .get((end + verb.len_utf8()).min(rest.len())..)
                .unwrap_or_default();
        }
        parts.push(FlowValue::text(rest));
        let out = self.concat(&parts);
        if format.taints.is_some() {
            out.with(&format.taints)
        } else {
            out
        }
    }

    fn logic(&mut self, op: Op, left: ExprId, right: ExprId, a: FlowValue) -> FlowValue {
        let truth = a.constant.as_ref().and_then(Const::truth);
        match (op, truth) {
            (Op::And, Some(false)) | (Op::Or, Some(true)) => return a,
            (Op::And, Some(true)) | (Op::Or, Some(false)) => return self.eval(right),
            (Op::Else, _) if a.constant == Some(Const::Null) => return self.eval(right),
            _ => {}
        }
        self.spend();
        let before = self.env.clone();
        if op != Op::Else {
            guard::assume(self, left, op == Op::And);
        }
        let b = self.eval(right);
        let after = self.take();
        self.put(join_envs(after, Some(before)));
        let mut v = join(&a, &b);
        // The result of `valid && x` is `x` or a false left side.
        if op == Op::And {
            v = b;
        }
        v.constant = None;
        v
    }

    pub(super) fn conditional(&mut self, test: ExprId, yes: ExprId, no: ExprId) -> FlowValue {
        let t = self.eval(test);
        match t.constant.as_ref().and_then(Const::truth) {
            Some(true) => return self.eval(yes),
            Some(false) => return self.eval(no),
            None => {}
        }
        self.spend();
        let before = self.env.clone();
        guard::assume(self, test, true);
        let a = self.eval(yes);
        let first = self.take();
        self.put(Some(before));
        guard::assume(self, test, false);
        let b = self.eval(no);
        let second = self.take();
        self.put(join_envs(first, second));
        join(&a, &b)
    }
}
