//! Common methods and functions of texts, lists and maps.

use super::eval::map_taints;
use super::run::FlowRun;
use super::shape::{ByteSpan, ExprId, ExprKind};
use super::sink::GivenArg;
use super::value::{Const, FlowValue, ItemKey, Items, Taints, join_taints};
use super::{SinkKind, constant, strictness};
use std::rc::Rc;

/// Classes and functions that create an empty collection.
const COLLECTIONS: [&str; 31] = [
    "Properties",
    "ArrayList",
    "LinkedList",
    "Vector",
    "HashMap",
    "TreeMap",
    "LinkedHashMap",
    "Hashtable",
    "ConcurrentHashMap",
    "HashSet",
    "TreeSet",
    "LinkedHashSet",
    "ArrayDeque",
    "Stack",
    "Map",
    "Set",
    "List",
    "Dictionary",
    "dict",
    "list",
    "set",
    "defaultdict",
    "OrderedDict",
    "deque",
    "mutableListOf",
    "mutableMapOf",
    "make",
    "Array",
    "Hash",
    "listOf",
    "mapOf",
];

impl FlowRun<'_> {
    /// Returns the result of a function or method of the usual libraries. `None`: unknown.
    pub(super) fn builtin(
        &mut self,
        word: &str,
        receiver: Option<&(ExprId, FlowValue)>,
        given: &[GivenArg],
        span: ByteSpan,
    ) -> Option<FlowValue> {
        let joins = matches!(word, "join" | "Join" | "joinToString" | "implode");
        if joins {
            if let Some(text) = self.separated(receiver, given) {
                return Some(text);
            }
            // The list is behind its separator, and the order of its elements is not known.
            let is_list = |v: &FlowValue| v.items.is_some();
            let has_own_list = receiver.is_some_and(|(_, base)| is_list(base));
            if !has_own_list && given.iter().any(|a| is_list(&a.value)) {
                let data = given
                    .iter()
                    .fold(None, |t, a| join_taints(&t, &a.value.deep()));
                if data.is_some() {
                    return Some(FlowValue::tainted(map_taints(&data, 0, true)));
                }
            }
        }
        let Some((place, base)) = receiver else {
            return self.function(word, given);
        };
        if let Some(v) = constant_method(word, base, given) {
            return Some(v);
        }
        let first = given.first();
        match word {
            "format" | "formatted" | "sprintf" | "Format"
                if matches!(base.constant, Some(Const::Text(_)))
                    || base.known.is_some()
                    || base.taints.is_some() =>
            {
                Some(self.braces(base, given))
            }
            "format" | "Format" | "sprintf" | "Sprintf" | "Sprint" | "Sprintln" | "Errorf"
            | "join" | "Join" | "concat" | "Concat" | "plus" => {
                let mut parts: Vec<FlowValue> = Vec::new();
                if base.taints.is_some()
                    || base.constant.is_some()
                    || base.known.is_some()
                    || base.items.is_some()
                {
                    parts.push(base.clone());
                }
                parts.extend(given.iter().map(|a| a.value.clone()));
                Some(self.joined(word, &parts))
            }
            "append" | "insert" | "push" | "concat!" | "<<" | "write" | "Append" | "AppendLine"
            | "AppendFormat" | "prepend"
                if base.items.is_none() =>
            {
                let mut parts = vec![base.clone()];
                parts.extend(given.iter().map(|a| a.value.clone()));
                let is_text = matches!(
                    word,
                    "append"
                        | "Append"
                        | "AppendLine"
                        | "insert"
                        | "AppendFormat"
                        | "prepend"
                        | "<<"
                );
                let data: Taints = given
                    .iter()
                    .fold(None, |t, a| join_taints(&t, &a.value.deep()));
                if !is_text && data.is_none() {
                    return None;
                }
                if word == "write" {
                    return None;
                }
                let mut v = self.concat(&parts);
                v.path = base.path;
                let v = self.through(v, span);
                self.store(*place, v.clone());
                Some(v)
            }
            "toString" | "c_str" | "to_s" | "trim" | "strip" | "toLowerCase" | "toUpperCase"
            | "lower" | "upper" | "ToString"
                if given.is_empty() || base.taints.is_some() || base.constant.is_some() =>
            {
                let mut v = base.clone();
                v.path = None;
                if v.taints.is_none() && v.constant.is_none() {
                    v.taints = base.deep();
                }
                Some(v)
            }
            // `url.JoinPath(base, x)`, `address.JoinPath(x)`.
            "JoinPath" => {
                let is_package = self.is_package(*place, base.path);
                Some(self.joined_path((!is_package).then_some(base), given))
            }
            // `path.split("/").pop()` has no separator.
            "pop" | "last" | "Last" if given.is_empty() && self.is_split_path(*place) => {
                let data = FlowValue::tainted(base.deep());
                Some(data.clean(SinkKind::Path.bit() | SinkKind::ZipSlip.bit()))
            }
            // `setLength(0)` clears a text.
            "setLength" | "Clear"
                if base.items.is_none()
                    && first.is_none_or(|a| a.value.constant == Some(Const::Int(0))) =>
            {
                self.store(
                    *place,
                    FlowValue {
                        path: base.path,
                        ..FlowValue::text("")
                    },
                );
                Some(FlowValue::default())
            }
            "length" | "size" | "count" | "hashCode" | "indexOf" | "equals"
            | "equalsIgnoreCase" | "isEmpty" | "contains" | "startsWith" | "endsWith"
            | "startswith" | "endswith" | "isdigit" | "compareTo" | "lastIndexOf" | "test"
            | "matches" | "includes" | "start_with?" | "end_with?" | "include?" | "StartsWith"
            | "EndsWith" | "Contains" | "IndexOf" | "Equals" | "intValue" | "longValue" => {
                Some(self.number(&base.taints))
            }
            "replace" | "replaceAll" | "gsub" | "sub" | "Replace" | "ReplaceAll"
            | "ReplaceAllString" | "translate" => Some(self.replaced(base, given)),
            "compile" | "Compile" | "MustCompile" => {
                let text = first?.value.constant.as_ref()?.text()?;
                Some(FlowValue::constant(Const::Regex(Rc::clone(text))))
            }
            "asList" | "of" | "copyOf" | "unmodifiableList" | "freeze" | "asReadOnly"
            | "singletonList"
                if base.taints.is_none() =>
            {
                if let [one] = given
                    && one.value.items.is_some()
                {
                    return Some(one.value.clone());
                }
                let mut list = FlowValue::collection(Items::list());
                given.iter().for_each(|a| list.push(a.value.clone()));
                Some(list)
            }
            // A lookup in a table of constants returns harmless values.
            "get" | "getOrDefault" | "fetch" | "dig" if base.items.is_some() => {
                let default = given.get(1).map(|a| a.value.clone());
                let key = first
                    .and_then(|a| a.value.constant.as_ref())
                    .and_then(constant::key);
                let v = base.item(key.as_ref());
                Some(match default {
                    Some(d) => super::value::join(&v, &d),
                    None => v,
                })
            }
            _ => None,
        }
    }

    /// Returns true for a call that splits a text at the separator of folders:
    /// `x.split("/")`, `explode('/', $x)`.
    pub(super) fn is_split_path(&self, id: ExprId) -> bool {
        let module = self.module;
        let ExprKind::Call { callee, args } = &module.expr(id).kind else {
            return matches!(&module.expr(id).kind, ExprKind::Pass(of) if self.is_split_path(*of));
        };
        let name = match &module.expr(*callee).kind {
            ExprKind::Name(name) | ExprKind::Member { name, .. } => module.word(*name),
            _ => return false,
        };
        // A limit leaves separators in the last part.
        let is_whole = match name {
            "split" | "Split" => args.len() == 1,
            "explode" => args.len() == 2,
            _ => false,
        };
        is_whole
            && args.iter().any(|a| match &module.expr(a.value).kind {
                ExprKind::Text(t) => &**t == "/",
                ExprKind::Regex(p) => matches!(&**p, "/" | "\\/" | "[\\\\/]" | "[/\\\\]"),
                ExprKind::Member { name, .. } => module.word(*name) == "sep",
                ExprKind::Name(name) => module.word(*name) == "DIRECTORY_SEPARATOR",
                _ => false,
            })
    }

    /// Returns the result of a function without a receiver.
    fn function(&mut self, word: &str, given: &[GivenArg]) -> Option<FlowValue> {
        let first = given.first().map(|a| &a.value);
        match word {
            // The text that a builder starts with.
            "StringBuilder" | "StringBuffer"
                if first.is_some_and(|f| f.constant.is_some() || f.known.is_some()) =>
            {
                let is_text = !matches!(first?.constant, Some(Const::Int(_)));
                is_text.then(|| FlowValue {
                    path: None,
                    ..first.cloned().unwrap_or_default()
                })
            }
            "sprintf" | "format" | "vsprintf" | "implode" | "join" | "concat" | "Sprintf" => {
                let parts: Vec<FlowValue> = given.iter().map(|a| a.value.clone()).collect();
                Some(self.joined(word, &parts))
            }
            // Go.
            "append" => {
                let mut list = first?.clone();
                for a in given.iter().skip(1) {
                    if a.is_spread {
                        list.put(None, a.value.item(None));
                    } else {
                        list.push(a.value.clone());
                    }
                }
                Some(list)
            }
            "RegExp" | "Regex" | "compile" => {
                let text = first?.constant.as_ref()?.text()?;
                Some(FlowValue::constant(Const::Regex(Rc::clone(text))))
            }
            "str" | "String" | "strval" | "unicode" | "toString" => {
                let v = first?;
                Some(FlowValue {
                    path: None,
                    taints: v.deep(),
                    constant: v.constant.clone(),
                    known: v.known.clone(),
                    ..FlowValue::default()
                })
            }
            "list" | "tuple" | "set" | "sorted" | "reversed" | "array_values" | "frozenset"
                if first.is_some_and(|f| f.items.is_some()) =>
            {
                first.cloned()
            }
            "listOf" | "arrayOf" | "setOf" | "mutableListOf" | "array" => {
                let mut list = FlowValue::collection(Items::list());
                given.iter().for_each(|a| list.push(a.value.clone()));
                Some(list)
            }
            "dict" if given.iter().any(|a| a.keyword.is_some()) => {
                let mut map = FlowValue::collection(Items::default());
                for a in given {
                    let key = a.keyword.map(|k| ItemKey::Text(self.module.word(k).into()));
                    map.put(key, a.value.clone());
                }
                Some(map)
            }
            w if COLLECTIONS.contains(&w)
                && given
                    .iter()
                    .all(|a| a.value.taints.is_none() && a.value.items.is_none()) =>
            {
                Some(FlowValue::collection(Items::list()))
            }
            "len" | "strlen" | "count" | "bool" | "empty" | "isset" | "is_null" | "is_array"
            | "is_numeric" | "ctype_digit" | "in_array" | "isinstance" | "hasattr" | "ord"
            | "sizeof" => {
                let taints = given
                    .iter()
                    .fold(None, |t, a| join_taints(&t, &a.value.taints));
                Some(self.number(&taints))
            }
            "preg_replace" | "str_replace" => {
                let subject = given.get(2)?.value.clone();
                Some(self.replaced(&subject, given.get(..2)?))
            }
            _ => None,
        }
    }

    /// Joins texts, or formats them.
    fn joined(&mut self, word: &str, parts: &[FlowValue]) -> FlowValue {
        let mut list = Vec::new();
        for p in parts {
            match &p.items {
                Some(i) => list.extend(i.keys.values().chain(&i.rest).cloned()),
                None => list.push(p.clone()),
            }
        }
        let is_format = word.to_ascii_lowercase().contains("format")
            || word.to_ascii_lowercase().contains("sprintf")
            || word == "Errorf";
        // A culture or locale can be in front of the format.
        let has_culture = list.first().is_some_and(|f| {
            f.constant.is_none() && f.known.is_none() && f.taints.is_none() && f.items.is_none()
        });
        if is_format
            && let Some((format, values)) = list
                .get(usize::from(has_culture)..)
                .and_then(|l| l.split_first())
            && let Some(Const::Text(t)) = &format.constant
        {
            return self.filled(&Rc::clone(t), values);
        }
        let out = self.concat(&list);
        let lists = parts.iter().filter(|p| p.items.is_some());
        let own = lists.fold(None, |t, p| join_taints(&t, &p.taints));
        let own = map_taints(&own, 0, true);
        if word.eq_ignore_ascii_case("join") || word == "implode" {
            out.with(&own)
        } else {
            out
        }
    }

    /// Fills `%s` and `{}` of a format in order.
    fn filled(&mut self, format: &str, values: &[FlowValue]) -> FlowValue {
        let mut parts = Vec::new();
        let mut rest = format;
        let mut next = 0;
        while let Some(at) = rest.find(['%', '{']) {
            parts.push(FlowValue::text(rest.get(..at).unwrap_or_default()));
            let is_brace = rest.get(at..).is_some_and(|r| r.starts_with('{'));
            rest = rest.get(at + 1..).unwrap_or_default();
            let end = if is_brace {
                rest.find('}').map(|e| e + 1)
            } else {
                rest.find(|c: char| c.is_ascii_alphabetic() || c == '%')
                    .map(|e| e + 1)
            };
            let Some(end) = end else { break };
            let spec = rest.get(..end).unwrap_or_default();
            rest = rest.get(end..).unwrap_or_default();
            if spec == "%" {
                parts.push(FlowValue::text("%"));
                continue;
            }
            let position = spec.trim_end_matches(|c: char| !c.is_ascii_digit());
            let index = if is_brace || spec.contains('$') {
                position
                    .split(['$', ':'])
                    .next()
                    .and_then(|p| p.parse::<usize>().ok())
            } else {
                None
            };
            let index = match index {
                Some(i) if spec.contains('$') => i.saturating_sub(1),
                Some(i) => i,
                None => {
                    next += 1;
                    next - 1
                }
            };
            let is_number = !is_brace
                && spec.ends_with(['d', 'i', 'f', 'x', 'X', 'u', 'o', 'e', 'g', 'b', 'c', 't']);
            parts.push(if is_number {
                FlowValue::default()
            } else {
                values.get(index).cloned().unwrap_or_default()
            });
        }
        parts.push(FlowValue::text(rest));
        self.concat(&parts)
    }

    /// Python's `"…{}…{name}".format(…)`.
    fn braces(&mut self, base: &FlowValue, given: &[GivenArg]) -> FlowValue {
        let Some(Const::Text(format)) = &base.constant else {
            let mut parts = vec![base.clone()];
            parts.extend(given.iter().map(|a| a.value.clone()));
            return self.concat(&parts);
        };
        let positional: Vec<FlowValue> = given
            .iter()
            .filter(|a| a.keyword.is_none())
            .map(|a| a.value.clone())
            .collect();
        let format = Rc::clone(format);
        if format.contains('%') && !format.contains('{') {
            return self.filled(&format, &positional);
        }
        let mut parts = Vec::new();
        let mut rest: &str = &format;
        let mut next = 0;
        while let Some(at) = rest.find('{') {
            parts.push(FlowValue::text(rest.get(..at).unwrap_or_default()));
            rest = rest.get(at + 1..).unwrap_or_default();
            if let Some(after) = rest.strip_prefix('{') {
                parts.push(FlowValue::text("{"));
                rest = after;
                continue;
            }
            let end = rest.find('}').unwrap_or(rest.len());
            let field = rest.get(..end).unwrap_or_default();
            rest = rest.get((end + 1).min(rest.len())..).unwrap_or_default();
            let spec = field.split_once(':').map_or("", |s| s.1);
            let name = field.split([':', '!', '.', '[']).next().unwrap_or_default();
            let value = if let Ok(i) = name.parse::<usize>() {
                positional.get(i).cloned()
            } else if name.is_empty() {
                next += 1;
                positional.get(next - 1).cloned()
            } else {
                let named = given
                    .iter()
                    .find(|a| a.keyword.is_some_and(|k| self.module.word(k) == name));
                named.map(|a| a.value.clone())
            };
            let is_number = spec.ends_with(['d', 'f', 'x']);
            parts.push(value.filter(|_| !is_number).unwrap_or_default());
        }
        parts.push(FlowValue::text(rest));
        let spread: Taints = given
            .iter()
            .filter(|a| a.is_spread)
            .fold(None, |t, a| join_taints(&t, &a.value.deep()));
        self.concat(&parts).with(&map_taints(&spread, 0, true))
    }

    /// Returns a text after a replacement. The text is harmless if only a few kinds of characters
    /// remain.
    fn replaced(&mut self, base: &FlowValue, given: &[GivenArg]) -> FlowValue {
        let mut v = base.clone();
        v.constant = None;
        v.known = None;
        let mut taints = v.taints.clone();
        let pattern = given.iter().find_map(|a| match &a.value.constant {
            Some(Const::Regex(p) | Const::Text(p)) => Some(Rc::clone(p)),
            _ => None,
        });
        for a in given {
            taints = join_taints(&taints, &a.value.taints);
        }
        v.taints = taints;
        match pattern {
            Some(p) => v.clean(removed(&p)),
            None => v,
        }
    }

    pub(super) fn collection_method(
        &mut self,
        word: &str,
        place: ExprId,
        base: &FlowValue,
        given: &[GivenArg],
    ) -> Option<FlowValue> {
        base.items.as_ref()?;
        let first = given.first();
        let key = first
            .and_then(|a| a.value.constant.as_ref())
            .and_then(constant::key);
        let mut holder = base.clone();
        let result = match word {
            "put" | "set" | "setProperty" | "setAttribute" | "putIfAbsent" | "Add"
                if given.len() == 2 =>
            {
                holder.put(key, given.get(1)?.value.clone());
                FlowValue::default()
            }
            "add" | "push" | "append" | "addLast" | "Add" | "offer" | "enqueue" | "addElement"
            | "<<" | "Push" => {
                given.iter().for_each(|a| holder.push(a.value.clone()));
                holder.clone()
            }
            "unshift" | "insert" | "addFirst" | "appendleft" => {
                holder.put(None, given.last()?.value.clone());
                FlowValue::default()
            }
            "extend" | "addAll" | "update" | "putAll" | "merge!" | "AddRange" => {
                for a in given {
                    for (k, v) in a.value.items.iter().flat_map(|i| i.keys.iter()) {
                        match k {
                            ItemKey::Text(_) => holder.put(Some(k.clone()), v.clone()),
                            ItemKey::Int(_) => holder.push(v.clone()),
                        }
                    }
                    if a.value.taints.is_some() {
                        holder.put(None, FlowValue::tainted(a.value.taints.clone()));
                    }
                    if let Some(k) = a.keyword {
                        let word = self.module.word(k).into();
                        holder.put(Some(ItemKey::Text(word)), a.value.clone());
                    }
                }
                FlowValue::default()
            }
            "remove" | "removeAt" | "RemoveAt" | "pop" | "removeFirst" | "shift" | "removeLast"
            | "poll" => {
                let last = holder.items.as_ref().map_or(0, |i| i.keys.len());
                let default = if word == "pop" || word == "removeLast" {
                    i64::try_from(last).ok()? - 1
                } else {
                    0
                };
                let index = match &key {
                    Some(ItemKey::Int(i)) => *i,
                    Some(ItemKey::Text(_)) => {
                        let v = base.item(key.as_ref());
                        holder.forget(key.as_ref()?);
                        self.store(place, holder);
                        return Some(v);
                    }
                    None if given.is_empty() => default,
                    None => return Some(base.item(None)),
                };
                holder.remove(index)
            }
            "clear" | "Clear" => {
                holder = FlowValue::collection(Items::list());
                FlowValue::default()
            }
            "get" | "elementAt" | "at" | "getProperty" | "ElementAt" | "firstElement"
            | "getFirst" | "first" | "peek" | "element" => {
                let key = if given.is_empty() {
                    Some(ItemKey::Int(0))
                } else {
                    key
                };
                let v = base.item(key.as_ref());
                return Some(match given.get(1) {
                    Some(d) => super::value::join(&v, &d.value),
                    None => v,
                });
            }
            "values" | "items" | "entries" | "toArray" | "iterator" | "stream" | "copy"
            | "clone" | "toList" | "elements" | "entrySet" => {
                return Some(base.clone());
            }
            "keys" | "keySet" => return Some(FlowValue::tainted(base.taints.clone())),
            "size" | "length" | "isEmpty" | "contains" | "containsKey" | "includes" | "has"
            | "include?" | "indexOf" | "count" => {
                return Some(FlowValue::default());
            }
            _ => return None,
        };
        self.store(place, holder);
        Some(result)
    }
}

/// Returns the result of a method of a known text with known arguments.
fn constant_method(word: &str, base: &FlowValue, given: &[GivenArg]) -> Option<FlowValue> {
    let Some(Const::Text(text)) = &base.constant else {
        return None;
    };
    let c = match word {
        "charAt" => constant::char_at(text, i64::try_from(size_at(given, 0)?).ok()?)?,
        "length" | "size" if given.is_empty() => {
            Const::Int(i64::try_from(text.chars().count()).ok()?)
        }
        "substring" | "slice" | "Substring" => {
            let (from, to) = (size_at(given, 0)?, size_at(given, 1).unwrap_or(text.len()));
            Const::Text(text.get(from..to)?.into())
        }
        "toUpperCase" | "upper" | "upcase" | "ToUpper" => Const::Text(text.to_uppercase().into()),
        "toLowerCase" | "lower" | "downcase" | "ToLower" => Const::Text(text.to_lowercase().into()),
        "trim" | "strip" | "Trim" => Const::Text(text.trim().into()),
        "equals" | "Equals" => Const::Bool(**text == **constant_at(given, 0)?.text()?),
        "contains" | "includes" | "include?" | "Contains" => {
            Const::Bool(text.contains(&**constant_at(given, 0)?.text()?))
        }
        "startsWith" | "startswith" | "StartsWith" => {
            Const::Bool(text.starts_with(&**constant_at(given, 0)?.text()?))
        }
        "endsWith" | "endswith" | "EndsWith" => {
            Const::Bool(text.ends_with(&**constant_at(given, 0)?.text()?))
        }
        "indexOf" | "find" | "IndexOf" => Const::Int(
            text.find(&**constant_at(given, 0)?.text()?)
                .and_then(|i| i64::try_from(i).ok())
                .unwrap_or(-1),
        ),
        "concat" => Const::Text(format!("{text}{}", constant_at(given, 0)?.text()?).into()),
        _ => return None,
    };
    Some(FlowValue::constant(c))
}

/// Returns the constant that is passed at a position.
fn constant_at(given: &[GivenArg], position: usize) -> Option<&Const> {
    given.get(position).and_then(|a| a.value.constant.as_ref())
}

/// Returns the number that is passed at a position, unless it is negative.
fn size_at(given: &[GivenArg], position: usize) -> Option<usize> {
    match constant_at(given, position) {
        Some(Const::Int(n)) => usize::try_from(*n).ok(),
        _ => None,
    }
}

/// Returns the kinds for which a text is harmless after all matches of a pattern are removed.
fn removed(pattern: &str) -> u32 {
    // `[^a-z0-9_]` and `\W` leave only the listed characters.
    let p = without_delimiters(pattern).trim_end_matches(['+', '*']);
    if p == "\\W" || p == "\\D" {
        return u32::MAX;
    }
    let Some(kept) = p.strip_prefix("[^").and_then(|r| r.strip_suffix(']')) else {
        return 0;
    };
    if has_escaped_set(kept) {
        return 0;
    }
    let kinds = strictness::strictness(&format!("^[{kept}]+$"), true);
    if keeps_separator(kept) {
        kinds
    } else {
        kinds | SinkKind::Path.bit() | SinkKind::ZipSlip.bit()
    }
}

/// Returns an expression without the slashes and flags of PHP: `[^a-z]` of `/[^a-z]/iu`.
fn without_delimiters(pattern: &str) -> &str {
    let inner = pattern
        .strip_prefix('/')
        .and_then(|rest| rest.rsplit_once('/'))
        .filter(|(_, flags)| flags.bytes().all(|b| b.is_ascii_alphabetic()));
    inner.map_or(pattern.trim_matches('/'), |(inner, _)| inner)
}

/// Returns true if the characters of a class include a separator of folders: `/`, a backslash, a
/// range across `/`, or a class of all characters but a few.
fn keeps_separator(class: &str) -> bool {
    let wide = ["\\S", "\\W", "\\D", "\\P", "\\\\", "/", "[:"];
    if wide.iter().any(|w| class.contains(w)) {
        return true;
    }
    if has_escaped_set(class) {
        return true;
    }
    let chars: Vec<char> = class.chars().collect();
    chars.windows(3).any(|w| match w {
        [from, '-', to] => *from != '\\' && *from < '/' && '/' < *to,
        _ => false,
    })
}

/// Returns true if a class has an escape whose characters are not known here, such as `\x2f`,
/// `\u0000` and `\p{P}`. Words, digits and white space are known.
fn has_escaped_set(class: &str) -> bool {
    let mut chars = class.chars();
    while let Some(c) = chars.next() {
        let escaped = if c == '\\' { chars.next() } else { None };
        if escaped.is_some_and(|e| e.is_ascii_alphanumeric() && !matches!(e, 'w' | 'd' | 's')) {
            return true;
        }
    }
    false
}

/// Returns the kinds for which the result of a match is harmless: `re.match("^[a-z]+$",
/// x).group(0)`.
pub(super) fn matched(word: &str, receiver: Option<&FlowValue>, given: &[GivenArg]) -> Option<u32> {
    let is_full = matches!(word, "fullmatch" | "matchEntire");
    if !is_full && !matches!(word, "match" | "matcher" | "exec" | "search" | "Match") {
        return None;
    }
    let mut values = receiver.into_iter().chain(given.iter().map(|a| &a.value));
    let pattern = values.find_map(|v| match &v.constant {
        Some(Const::Regex(p) | Const::Text(p)) => Some(Rc::clone(p)),
        _ => None,
    })?;
    Some(strictness::strictness(&pattern, is_full)).filter(|k| *k != 0)
}
