//! Reports data that reaches a sink, and calls that are dangerous by themselves.

use super::doubt::Doubt;
use super::expressions::expression;
use super::mark::is_request_mark;
use super::paths::{PathId, Root};
use super::run::FlowRun;
use super::shape::{ByteSpan, ExprId, ExprKind, Sym};
use super::table::{Call, Condition, Place, Role, Sink};
use super::value::{Const, FlowValue, GAP, ItemKey, Taint, Taints, join_taints};
use super::{EntryTexts, FlowCertainty, FlowSubject, Proof, SinkKind};
use crate::text::one_line;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::rc::Rc;

/// A finding before it becomes a flow.
#[derive(Clone, Debug)]
pub(super) struct FoundFlow {
    pub(super) taint: Option<Taint>,
    pub(super) span: ByteSpan,
    pub(super) label: &'static str,
    pub(super) cwe: Option<u32>,
    pub(super) confidence: FlowCertainty,
    pub(super) proof: Proof,
    /// True if the finding is not reported when the data is checked later.
    pub(super) is_late: bool,
    /// The first argument starts with a constant character that starts no tag.
    pub(super) starts_as_text: bool,
    pub(super) texts: &'static EntryTexts,
}

impl FoundFlow {
    /// Returns a value that is greater for the finding that is better proven, of the shorter trail
    /// among equals.
    fn rank(&self) -> (Proof, FlowCertainty, Reverse<u32>) {
        let trail = self.taint.as_ref().and_then(|t| t.trail.as_ref());
        (
            self.proof,
            self.confidence,
            Reverse(trail.map_or(0, |t| t.len)),
        )
    }
}

/// An evaluated argument.
#[derive(Clone, Debug)]
pub(super) struct GivenArg {
    pub(super) keyword: Option<Sym>,
    pub(super) value: FlowValue,
    pub(super) expr: ExprId,
    pub(super) is_spread: bool,
}

/// A call, as the conditions of the tables need it.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallInfo<'a> {
    pub(super) args: &'a [GivenArg],
    pub(super) receiver: Option<(ExprId, &'a FlowValue)>,
    pub(super) span: ByteSpan,
}

impl CallInfo<'_> {
    /// Returns the argument at a position.
    pub(super) fn at(&self, position: u8) -> Option<&GivenArg> {
        self.args
            .iter()
            .filter(|a| a.keyword.is_none())
            .nth(usize::from(position))
    }
}

/// A value to which a table entry refers by its place in a call.
struct PlacedValue {
    value: FlowValue,
    expr: Option<ExprId>,
}

impl PlacedValue {
    /// Returns the value of an argument.
    fn of(argument: &GivenArg) -> Self {
        Self {
            value: argument.value.clone(),
            expr: Some(argument.expr),
        }
    }
}

impl FlowRun<'_> {
    /// Returns the values at places of a call.
    fn parts(&self, places: &[Place], call: &CallInfo<'_>) -> Vec<PlacedValue> {
        let mut out = Vec::new();
        for place in places {
            self.part_of(*place, call, &mut out);
        }
        out
    }

    fn part_of(&self, place: Place, call: &CallInfo<'_>, out: &mut Vec<PlacedValue>) {
        match place {
            Place::Arg(i) => {
                // A spread list may provide any position after it.
                let spread = call
                    .args
                    .iter()
                    .take(usize::from(i) + 1)
                    .find(|a| a.is_spread);
                out.extend(call.at(i).or(spread).map(PlacedValue::of));
            }
            Place::From(i) => {
                out.extend(
                    call.args
                        .iter()
                        .filter(|a| a.keyword.is_none())
                        .skip(usize::from(i))
                        .map(PlacedValue::of),
                );
            }
            Place::All => out.extend(call.args.iter().map(PlacedValue::of)),
            Place::Spread => out.extend(
                call.args
                    .iter()
                    .filter(|a| a.is_spread)
                    .map(PlacedValue::of),
            ),
            Place::Receiver => {
                out.extend(call.receiver.map(|(e, v)| PlacedValue {
                    value: v.clone(),
                    expr: Some(e),
                }));
            }
            Place::Keyword(k) => {
                if let Some(p) = self.option(k, call) {
                    out.push(p);
                }
            }
            Place::Result => {}
        }
    }

    /// Returns a keyword argument, or an option of an object literal that is an argument.
    fn option(&self, name: &str, call: &CallInfo<'_>) -> Option<PlacedValue> {
        let named = call
            .args
            .iter()
            .find(|a| a.keyword.is_some_and(|k| self.module.word(k) == name));
        if let Some(a) = named {
            return Some(PlacedValue {
                value: a.value.clone(),
                expr: Some(a.expr),
            });
        }
        for a in call.args {
            let mut at = &a.value;
            let mut is_found = true;
            for word in name.split('.') {
                let key = ItemKey::Text(word.into());
                match at.items.as_ref().and_then(|i| i.keys.get(&key)) {
                    Some(v) => at = v,
                    None => {
                        is_found = false;
                        break;
                    }
                }
            }
            if is_found {
                return Some(PlacedValue {
                    value: at.clone(),
                    expr: self.literal_item(a.expr, name),
                });
            }
        }
        None
    }

    /// Returns the expression of an item in an object literal.
    fn literal_item(&self, id: ExprId, name: &str) -> Option<ExprId> {
        let mut at = id;
        for word in name.split('.') {
            let ExprKind::Collection(items) = &self.module.expr(at).kind else {
                return None;
            };
            at = items
                .iter()
                .find(|i| i.key.is_some_and(|k| self.is_key(k, word)))?
                .value;
        }
        Some(at)
    }

    /// Returns true if the key of an item is this word, with or without quotes.
    fn is_key(&self, id: ExprId, word: &str) -> bool {
        match &self.module.expr(id).kind {
            ExprKind::Text(t) => **t == *word,
            ExprKind::Name(n) => self.module.word(*n) == word,
            _ => false,
        }
    }

    /// Returns true if the call gets options that the file does not show.
    fn has_unknown_options(&self, call: &CallInfo<'_>) -> bool {
        call.args.iter().any(|a| {
            a.is_spread
                || (a.keyword.is_none()
                    && a.value
                        .items
                        .as_ref()
                        .is_some_and(|i| i.rest.is_some() && !i.is_list))
        })
    }

    /// Returns true if a condition of the tables holds.
    pub(super) fn holds(&mut self, c: &'static Condition, call: &CallInfo<'_>) -> bool {
        if c.or_imported.is_some_and(|p| self.imports(p)) {
            return true;
        }
        let count = call.args.iter().filter(|a| a.keyword.is_none()).count();
        if c.count_min.is_some_and(|n| count < usize::from(n))
            || c.count_max.is_some_and(|n| count > usize::from(n))
        {
            return false;
        }
        if c.has.is_some_and(|o| self.option(o, call).is_none()) {
            return false;
        }
        if c.absent
            .is_some_and(|o| self.option(o, call).is_some() || self.has_unknown_options(call))
        {
            return false;
        }
        if let Some(p) = c.into {
            let names = self.target_names();
            if !names.iter().any(|n| self.fits(p, n)) {
                return false;
            }
        }
        let Some(place) = c.arg else { return true };
        let mut parts = Vec::new();
        self.part_of(place, call, &mut parts);
        if let Some(is) = c.present
            && parts.is_empty() == is
        {
            return false;
        }
        let asks = c.values.is_some() || c.pattern.is_some() || c.text.is_some();
        let asks = asks || c.constant.is_some() || c.requested.is_some();
        if !asks && c.types.is_empty() {
            return true;
        }
        parts.iter().any(|p| self.part_holds(c, p))
    }

    fn part_holds(&mut self, c: &'static Condition, part: &PlacedValue) -> bool {
        let (mut value, mut expr) = (part.value.clone(), part.expr);
        if let Some(i) = c.element {
            let key = ItemKey::Int(i64::from(i));
            let Some(item) = value.items.as_ref().and_then(|l| l.keys.get(&key).cloned()) else {
                return false;
            };
            if let Some(ExprKind::Collection(items)) = expr.map(|e| &self.module.expr(e).kind) {
                expr = items.get(usize::from(i)).map(|i| i.value);
            }
            value = item;
        }
        if c.constant.is_some_and(|is| value.constant.is_some() != is) {
            return false;
        }
        if c.requested.is_some_and(|is| is_requested(&value) != is) {
            return false;
        }
        if let Some(values) = c.values {
            let written = value.constant.as_ref().map(Const::written);
            if !written.is_some_and(|w| values.iter().any(|v| same(v, &w))) {
                return false;
            }
        }
        if let Some(p) = c.pattern {
            let Some(text) = self.described(&value, expr) else {
                return false;
            };
            if !self.fits(p, &text) {
                return false;
            }
        }
        if let Some(p) = c.text {
            let text = expr
                .map(|e| self.source_text(self.module.expr(e).span))
                .unwrap_or_default();
            let text = one_line(text);
            if !self.fits(p, &text) {
                return false;
            }
        }
        c.types.is_empty() || value.path.is_some_and(|p| self.is_type(p, c.types))
    }

    fn is_type(&self, path: PathId, types: &[&str]) -> bool {
        let text = self.paths.text(path);
        types.iter().any(|t| {
            text == *t || text.ends_with(&format!(".{t}")) || t.ends_with(&format!(".{text}"))
        })
    }

    /// Returns the known description of an argument: a constant, a path, a partly known text, or
    /// the source.
    fn described(&mut self, value: &FlowValue, expr: Option<ExprId>) -> Option<String> {
        if let Some(c) = &value.constant {
            return Some(c.written());
        }
        if let Some(k) = &value.known {
            return Some(k.to_string());
        }
        if let Some(p) = value.path
            && self.paths.root_of(p) != Root::Unknown
        {
            return Some(self.paths.text(p));
        }
        let id = expr?;
        match &self.module.expr(id).kind {
            ExprKind::Name(_) if value.taints.is_some() => Some(GAP.to_string()),
            _ => Some(
                self.source_text(self.module.expr(id).span)
                    .split_whitespace()
                    .collect::<Vec<_>>()
                    .join(" "),
            ),
        }
    }

    fn target_names(&self) -> Vec<String> {
        let mut out = Vec::new();
        out.extend(self.into.map(|n| self.module.word(n).to_owned()));
        let function = self.frames.iter().rev().find_map(|f| f.function);
        let name = function
            .and_then(|f| self.module.functions.get(f.0 as usize))
            .and_then(|f| f.name);
        out.extend(name.map(|n| self.module.word(n).to_owned()));
        out
    }

    /// Returns true for a value in an option of a call whose key does not match an expression:
    /// `notify({ key: Math.random() })`. The value has the meaning of its key, and the names of the
    /// function and variable around the call say nothing about it.
    fn has_other_meaning(&mut self, names: &'static str) -> bool {
        let key = match &self.option_key {
            Some((depth, key)) if *depth == self.frames.len() => Rc::clone(key),
            _ => return false,
        };
        !matches!(&*key, "value" | "data" | "text") && !self.fits(names, &key)
    }

    /// Returns true if a regular expression of the tables matches a text.
    pub(super) fn fits(&mut self, pattern: &'static str, text: &str) -> bool {
        expression(pattern).is_some_and(|r| r.is_match(text))
    }

    /// Reports the table entries that match a call.
    pub(super) fn check_call(&mut self, path: PathId, call: &CallInfo<'_>, writes: bool) {
        let hits = self.paths.hits(path);
        let is_sink = hits
            .iter()
            .any(|h| h.write == writes && matches!(h.role, Role::Sink(_)));
        if is_sink && self.silence == 0 {
            self.judged.insert(call.span.start);
        }
        let mut has_sink = 0u32;
        for hit in hits.iter().filter(|h| h.write == writes) {
            match hit.role {
                Role::Sink(i) => {
                    let Some(sink) = self.table.sinks.get(usize::from(i)) else {
                        continue;
                    };
                    let bit = sink.kind.bit();
                    // The entry with a receiver is more specific than the entry without one.
                    if hit.is_wild && has_sink & bit != 0 {
                        continue;
                    }
                    if !hit.is_wild {
                        has_sink |= bit;
                    }
                    self.check_sink(sink, hit.is_wild, call);
                }
                Role::Call(i) => {
                    if let Some(entry) = self.table.calls.get(usize::from(i)) {
                        self.check_structure(entry, hit.is_wild, call);
                    }
                }
                _ => {}
            }
        }
    }

    fn check_structure(&mut self, entry: &'static Call, is_wild: bool, call: &CallInfo<'_>) {
        if !self.applies(entry.when, entry.unless, call) {
            return;
        }
        if !entry.absent.is_empty() {
            let is_given = entry.absent.iter().any(|o| self.option(o, call).is_some());
            if is_given || self.has_unknown_options(call) {
                return;
            }
        }
        if let Some(p) = entry.into {
            if entry.rule == "weak-random" && self.has_other_meaning(p) {
                return;
            }
            let names = self.target_names();
            // The name is the only evidence that the result is a secret, and the other uses of the
            // variable refute it.
            if !names.iter().any(|n| self.fits(p, n)) || self.is_request_mark() {
                return;
            }
        }
        let cap = if is_wild {
            FlowCertainty::Medium
        } else {
            FlowCertainty::High
        };
        let found = FoundFlow {
            taint: None,
            span: self.setting(entry, call).unwrap_or(call.span),
            label: entry.label,
            cwe: entry.cwe,
            confidence: entry.confidence.min(cap),
            proof: Proof::Request,
            is_late: false,
            starts_as_text: false,
            texts: &entry.texts,
        };
        if self.silence > 0 {
            return;
        }
        self.keep(FlowSubject::Rule(entry.rule), found);
    }

    /// Returns true if the result is assigned to a variable that only recognises the newest request
    /// of a component.
    fn is_request_mark(&self) -> bool {
        use super::FlowLanguage as L;
        let is_script = matches!(self.language, L::JavaScript | L::TypeScript | L::Tsx);
        let name = self
            .into
            .filter(|_| is_script)
            .map(|name| self.module.word(name));
        name.is_some_and(|name| !name.is_empty() && is_request_mark(name.as_bytes(), self.text))
    }

    /// Returns the bytes of the option to which an entry refers, if the option is on a later line
    /// than the call: calls of Python and JavaScript and literals of Go can have options over many
    /// lines. A text that matches inside of the option, such as one item of a list, is more exact.
    fn setting(&mut self, entry: &'static Call, call: &CallInfo<'_>) -> Option<ByteSpan> {
        use super::FlowLanguage as L;
        if !matches!(
            self.language,
            L::Python | L::JavaScript | L::TypeScript | L::Tsx | L::Go
        ) {
            return None;
        }
        let mut keywords = entry.when.iter().filter_map(|c| match c.arg {
            Some(Place::Keyword(name)) => Some((name, c.text)),
            _ => None,
        });
        let (name, text) = keywords.next_back()?;
        let span = self.module.expr(self.option(name, call)?.expr?).span;
        let mut start = span.start;
        if let Some(pattern) = text {
            let source = self.source_text(span);
            let found = expression(pattern).and_then(|r| r.find(source).map(|m| m.start()));
            start += found.and_then(|at| u32::try_from(at).ok()).unwrap_or(0);
        }
        let before = self.source_text(ByteSpan {
            start: call.span.start,
            end: start,
        });
        before.contains('\n').then_some(ByteSpan {
            start,
            end: span.end,
        })
    }

    pub(super) fn check_sink(&mut self, sink: &'static Sink, is_wild: bool, call: &CallInfo<'_>) {
        if !self.applies(sink.when, sink.unless, call) {
            return;
        }
        let mut taints: Taints = None;
        let mut starts_as_text = None;
        for part in self.parts(sink.args, call) {
            let mut value = part.value;
            starts_as_text.get_or_insert_with(|| is_text_at_start(&value));
            let is_literal = part
                .expr
                .is_some_and(|e| matches!(self.module.expr(e).kind, ExprKind::Collection(_)));
            if !sink.literal
                && (is_literal || value.items.as_ref().is_some_and(|i| !i.keys.is_empty()))
            {
                continue;
            }
            if let Some(i) = sink.element
                && value.items.is_some()
            {
                value = value.item(Some(&ItemKey::Int(i64::from(i))));
            }
            taints = join_taints(&taints, &value.deep());
        }
        let starts_as_text = starts_as_text.unwrap_or(false);
        self.report(sink, is_wild, starts_as_text, &taints, call.span);
    }

    /// Reports data at a sink. `is_wild`: the last word of the call alone names it.
    /// `starts_as_text`: as in [`FoundFlow`].
    pub(super) fn report(
        &mut self,
        sink: &'static Sink,
        is_wild: bool,
        starts_as_text: bool,
        taints: &Taints,
        span: ByteSpan,
    ) {
        if self.silence > 0 {
            return;
        }
        let kind = sink.kind;
        for t in taints.iter().flat_map(|t| t.iter()) {
            if t.clean & kind.bit() != 0 {
                continue;
            }
            let is_strong = matches!(
                kind,
                SinkKind::Sql | SinkKind::Command | SinkKind::Code | SinkKind::Deserialization
            );
            // A name that states a check of addresses states nothing about markup.
            let is_strong = is_strong || kind == SinkKind::Html && t.doubt == Doubt::Stated;
            let doubt = if is_strong { Doubt::None } else { t.doubt };
            let proof = if doubt == Doubt::Unknown {
                Proof::Unknown
            } else {
                t.proof
            };
            if proof == Proof::Unknown {
                let is_total = matches!(
                    kind,
                    SinkKind::Command | SinkKind::Code | SinkKind::Deserialization
                );
                if !sink.unknown.unwrap_or(t.is_built || is_total) {
                    continue;
                }
            }
            let cap = match (proof, is_wild) {
                _ if doubt == Doubt::Stated => FlowCertainty::Low,
                (Proof::Unknown, _) => FlowCertainty::Low,
                (Proof::Local, _) | (_, true) => FlowCertainty::Medium,
                (Proof::Request, false) => FlowCertainty::High,
            };
            let found = FoundFlow {
                taint: Some(t.clone()),
                span,
                label: sink.label,
                cwe: sink.cwe,
                confidence: sink.confidence.min(cap),
                proof,
                is_late: sink.late,
                starts_as_text,
                texts: &sink.texts,
            };
            self.keep(FlowSubject::Flow(kind), found);
        }
    }

    /// Records a finding, unless the position already has one with a stronger proof.
    fn keep(&mut self, subject: FlowSubject, new: FoundFlow) {
        match self.found.entry((subject, new.span.start)) {
            std::collections::hash_map::Entry::Vacant(v) => {
                v.insert(new);
            }
            std::collections::hash_map::Entry::Occupied(mut o) => {
                if new.rank() > o.get().rank() {
                    o.insert(new);
                }
            }
        }
    }

    /// Reports a value that is written to a member.
    pub(super) fn check_write(&mut self, target: ExprId, of: ExprId, name: Sym, value: &FlowValue) {
        let base = self.eval(of);
        let word = self.module.word(name);
        let path = self.paths.member(base.path, name, word);
        self.check_written(target, path, Some((of, &base)), value);
    }

    /// Reports a value that is written to an item: `config["DEBUG"] = True`.
    pub(super) fn check_item_write(
        &mut self,
        target: ExprId,
        of: ExprId,
        word: &str,
        value: &FlowValue,
    ) {
        let base = self.eval(of);
        let Some(path) = base.path else { return };
        let path = self.paths.member_word(path, word);
        self.check_written(target, path, Some((of, &base)), value);
    }

    /// Reports a value that is written to a variable of the file.
    pub(super) fn check_global(&mut self, target: ExprId, name: Sym, value: &FlowValue) {
        if self.frames.is_empty() {
            let path = self.paths.root(self.module.word(name), Root::Free);
            self.check_written(target, path, None, value);
        }
    }

    /// Reports a value that is written to a name.
    pub(super) fn check_written(
        &mut self,
        target: ExprId,
        path: PathId,
        receiver: Option<(ExprId, &FlowValue)>,
        value: &FlowValue,
    ) {
        if self.paths.hits(path).iter().all(|h| !h.write) {
            return;
        }
        let span = self.module.expr(target).span;
        let given = [GivenArg {
            keyword: None,
            value: value.clone(),
            expr: self.written.unwrap_or(target),
            is_spread: false,
        }];
        let call = CallInfo {
            args: &given,
            receiver,
            span: self.member_span(target, span),
        };
        self.check_call(path, &call, true);
    }

    /// Returns the bytes from the last name of a callee or target on. The line of that name is the
    /// line of the finding.
    pub(super) fn member_span(&self, callee: ExprId, whole: ByteSpan) -> ByteSpan {
        let ExprKind::Member { of, .. } = &self.module.expr(callee).kind else {
            return whole;
        };
        let end = self.module.expr(*of).span.end;
        if end <= whole.start || end >= whole.end {
            return whole;
        }
        let text = self
            .text
            .get(end as usize..whole.end as usize)
            .unwrap_or_default();
        let skip = text
            .iter()
            .take_while(|b| !(b.is_ascii_alphanumeric() || **b == b'_' || **b == b'$'))
            .count();
        let start = end + u32::try_from(skip).unwrap_or_default();
        if start < whole.end {
            ByteSpan {
                start,
                end: whole.end,
            }
        } else {
            whole
        }
    }

    /// Returns true for a variable, and for a call of a function that converts text to text.
    fn is_text_call(&self, id: ExprId) -> bool {
        let callee = match &self.module.expr(id).kind {
            ExprKind::Call { callee, .. } => *callee,
            ExprKind::Pass(of) => return self.is_text_call(*of),
            ExprKind::New { .. } => return false,
            _ => return true,
        };
        let name = match &self.module.expr(callee).kind {
            ExprKind::Name(n) | ExprKind::Member { name: n, .. } => self.module.word(*n),
            _ => return false,
        };
        let words = [
            "str",
            "format",
            "join",
            "encode",
            "decode",
            "replace",
            "strip",
            "get",
            "lower",
            "upper",
            "title",
            "toString",
            "concat",
            "render_template_string",
        ];
        words.contains(&name)
    }

    /// Reports data that a handler returns to the client.
    pub(super) fn check_returned(&mut self, id: ExprId, value: &FlowValue, _span: ByteSpan) {
        let first = match &self.module.expr(id).kind {
            ExprKind::Collection(items) if items.iter().all(|i| i.key.is_none()) => items
                .first()
                .map(|i| (i.value, value.item(Some(&ItemKey::Int(0))))),
            ExprKind::Collection(_) => None,
            _ => Some((id, value.clone())),
        };
        let Some((id, mut value)) = first else { return };
        if value.items.is_some() {
            return;
        }
        let span = self.module.expr(id).span;
        // The result of a call on data counts as a text only if the text is joined from parts.
        if matches!(
            self.module.expr(id).kind,
            ExprKind::Call { .. } | ExprKind::New { .. } | ExprKind::Pass(_)
        ) || value.path.is_some_and(|p| self.paths.is_call(p))
        {
            let is_text = self.is_text_call(id);
            let shown = value.taints.iter().flat_map(|t| t.iter()).filter(|t| {
                (t.is_built && is_text)
                    || self
                        .origins
                        .get(t.origin as usize)
                        .is_some_and(|o| o.span.end == span.end)
            });
            let kept: Vec<Taint> = shown.cloned().collect();
            value.taints = if kept.is_empty() {
                None
            } else {
                Some(Rc::new(kept))
            };
        }
        let frameworks = self.frame().frameworks.clone();
        for sink in self.table.sinks {
            if sink
                .returns
                .is_some_and(|r| r == "true" || frameworks.contains(&r))
            {
                self.report(sink, false, false, &value.taints, span);
            }
        }
    }
}

/// Returns true if the known start of a text is a character that starts no tag.
fn is_text_at_start(value: &FlowValue) -> bool {
    let start = match (&value.constant, &value.known) {
        (Some(c), _) => c.text().and_then(|t| t.chars().next()),
        (None, Some(known)) => known.chars().next(),
        (None, None) => None,
    };
    start.is_some_and(|c| c.is_alphanumeric() || matches!(c, '"' | '\'' | '{' | '[' | '('))
}

/// Returns true for a value with request data.
fn is_requested(value: &FlowValue) -> bool {
    value
        .deep()
        .iter()
        .flat_map(|t| t.iter())
        .any(|t| t.proof == Proof::Request)
}

/// Returns true if a constant equals a word of the tables. `True` is `true`, `None` is `null`.
pub(super) fn same(table: &str, written: &str) -> bool {
    plain(table) == plain(written)
}

/// Returns the text of a constant in the spelling that all languages share.
fn plain(text: &str) -> Cow<'_, str> {
    match text {
        "None" | "nil" | "NULL" | "undefined" => "null".into(),
        "True" | "False" | "TRUE" | "FALSE" => text.to_ascii_lowercase().into(),
        _ => text.into(),
    }
}

/// Returns the steps of data from its source to its current position.
pub(super) fn way(taint: &Taint) -> Vec<ByteSpan> {
    let mut out = Vec::new();
    let mut at = taint.trail.as_ref().map(Rc::clone);
    while let Some(t) = at {
        out.push(t.span);
        at = t.before.clone();
    }
    out.reverse();
    out
}
