//! Abstract values: the possible contents of a variable.

use super::doubt::Doubt;
use super::paths::PathId;
use super::shape::{ByteSpan, ClassId, FunctionId, Sym};
use super::{Proof, TaintKind};
use std::cell::{Cell, OnceCell};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

/// Sources of one value, at most.
const MOST_TAINTS: usize = 6;
/// Items of a collection whose keys are known, at most.
const MOST_ITEMS: usize = 64;
/// Levels of collections in collections.
const MOST_LEVELS: u32 = 4;
/// Items of a collection and of the collections inside, at most.
const MOST_INSIDE: u32 = 300;

/// A known value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Const {
    Text(Rc<str>),
    Int(i64),
    Float(f64),
    Bool(bool),
    Null,
    Regex(Rc<str>),
}

impl Const {
    /// Returns the text of a text constant.
    pub(super) fn text(&self) -> Option<&Rc<str>> {
        match self {
            Self::Text(t) => Some(t),
            _ => None,
        }
    }

    /// Returns the constant in the notation of the tables.
    pub(super) fn written(&self) -> String {
        match self {
            Self::Text(t) | Self::Regex(t) => t.to_string(),
            Self::Int(i) => i.to_string(),
            Self::Float(f) => f.to_string(),
            Self::Bool(b) => b.to_string(),
            Self::Null => "null".to_owned(),
        }
    }

    /// Returns the truth value of the constant. `None`: it depends on the language.
    pub(super) fn truth(&self) -> Option<bool> {
        match self {
            Self::Bool(b) => Some(*b),
            Self::Null => Some(false),
            Self::Int(i) => Some(*i != 0),
            Self::Text(t) => Some(!t.is_empty()),
            Self::Float(_) | Self::Regex(_) => None,
        }
    }
}

/// A source in this file.
#[derive(Clone, Copy, Debug)]
pub(super) struct TaintOrigin {
    pub(super) span: ByteSpan,
    pub(super) label: &'static str,
    pub(super) kind: TaintKind,
}

/// A position that data passed, and the positions before it.
#[derive(Debug)]
pub(super) struct Trail {
    pub(super) span: ByteSpan,
    pub(super) before: Option<Rc<Trail>>,
    pub(super) len: u32,
}

/// Data of a source in a value.
#[derive(Clone, Debug)]
pub(super) struct Taint {
    /// Index into the origins of the run.
    pub(super) origin: u32,
    pub(super) proof: Proof,
    /// Kinds of sinks that the value is harmless for.
    pub(super) clean: u32,
    /// Whether unknown code processed the data.
    pub(super) doubt: Doubt,
    /// The data is a part of a longer text.
    pub(super) is_built: bool,
    pub(super) trail: Option<Rc<Trail>>,
}

/// The data in a value.
pub(super) type Taints = Option<Rc<Vec<Taint>>>;

/// A key of a collection.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum ItemKey {
    Int(i64),
    Text(Rc<str>),
}

/// The contents of a collection or object.
#[derive(Clone, Debug, Default)]
pub(super) struct Items {
    pub(super) keys: BTreeMap<ItemKey, FlowValue>,
    /// The values under unknown keys.
    pub(super) rest: Option<FlowValue>,
    /// The keys are the indexes 0, 1, 2 … of a list whose items are all known.
    pub(super) is_list: bool,
    /// Depth of nested collections, and the number of items in all of them.
    level: u32,
    size: u32,
    /// The data of all contents.
    all: OnceCell<Taints>,
    /// A hash of all contents. 0: not computed.
    hash: Cell<u64>,
}

impl Items {
    /// An empty list.
    pub(super) fn list() -> Self {
        Self {
            is_list: true,
            ..Self::default()
        }
    }

    /// Discards values derived from the items, before the items change.
    fn touch(&mut self) {
        self.all = OnceCell::new();
        self.hash = Cell::new(0);
    }

    /// Counts the items again.
    fn count(&mut self) {
        let mut size = 0u32;
        let mut level = 0;
        for v in self.keys.values().chain(&self.rest) {
            let (l, s) = v.items.as_ref().map_or((0, 0), |i| (i.level, i.size));
            level = level.max(l);
            size = size.saturating_add(s + 1);
        }
        self.level = level + 1;
        self.size = size;
    }
}

/// The definition of a value in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum What {
    #[default]
    Other,
    Function(FunctionId),
    Class(ClassId),
    Instance(ClassId),
}

/// The possible values of a variable.
#[derive(Clone, Debug, Default)]
pub(super) struct FlowValue {
    pub(super) taints: Taints,
    pub(super) constant: Option<Const>,
    /// Origin of the value, or its type.
    pub(super) path: Option<PathId>,
    pub(super) items: Option<Rc<Items>>,
    pub(super) what: What,
    /// The known parts of a text, with [`GAP`] in place of unknown parts.
    pub(super) known: Option<Rc<str>>,
}

/// Placeholder for an unknown part of a text.
pub(super) const GAP: char = '\u{fffc}';

impl FlowValue {
    /// Returns a value that is a known constant.
    pub(super) fn constant(c: Const) -> Self {
        Self {
            constant: Some(c),
            ..Self::default()
        }
    }

    /// Returns a value that is a known text.
    pub(super) fn text(text: &str) -> Self {
        Self::constant(Const::Text(text.into()))
    }

    /// Returns a value with a path.
    pub(super) fn at(path: PathId) -> Self {
        Self {
            path: Some(path),
            ..Self::default()
        }
    }

    /// Returns a value that the file defines.
    pub(super) fn defined(what: What) -> Self {
        Self {
            what,
            ..Self::default()
        }
    }

    /// Returns a value with data.
    pub(super) fn tainted(taints: Taints) -> Self {
        Self {
            taints,
            ..Self::default()
        }
    }

    /// Returns a value that is a collection.
    pub(super) fn collection(items: Items) -> Self {
        Self {
            items: Some(Rc::new(items)),
            ..Self::default()
        }
    }

    /// Returns the value without its data.
    pub(super) fn without_data(&self) -> Self {
        Self {
            constant: self.constant.clone(),
            path: self.path,
            what: self.what,
            ..Self::default()
        }
    }

    /// Returns the data of the value and of all its contents.
    pub(super) fn deep(&self) -> Taints {
        let Some(items) = &self.items else {
            return self.taints.clone();
        };
        let all = items.all.get_or_init(|| inside(items));
        join_taints(&self.taints, all)
    }

    /// Returns the data of the value and of its contents under unknown keys or indexes, without
    /// named fields.
    pub(super) fn outer(&self) -> Taints {
        let mut out = self.taints.clone();
        let Some(items) = &self.items else { return out };
        for v in items.rest.iter().chain(
            items
                .keys
                .iter()
                .filter(|(k, _)| matches!(k, ItemKey::Int(_)))
                .map(|(_, v)| v),
        ) {
            out = join_taints(&out, &v.deep());
        }
        out
    }

    /// Returns the value reduced in size so that it can be an item.
    fn small(self) -> Self {
        match &self.items {
            Some(i) if i.level >= MOST_LEVELS || i.size > MOST_INSIDE => {
                let taints = self.deep();
                Self {
                    taints,
                    items: None,
                    ..self
                }
            }
            _ => self,
        }
    }

    /// Returns the value under a key. `None` as key: any key.
    pub(super) fn item(&self, key: Option<&ItemKey>) -> Self {
        let own = Self::tainted(self.taints.clone());
        let Some(items) = &self.items else { return own };
        match key {
            Some(k) => match (items.keys.get(k), &items.rest) {
                (Some(v), _) => v.with(&own.taints),
                (None, Some(rest)) => rest.with(&own.taints),
                (None, None) => own,
            },
            None => {
                let mut out: Option<Self> = None;
                for v in items.keys.values().chain(&items.rest) {
                    out = Some(match out {
                        Some(o) => join(&o, v),
                        None => v.clone(),
                    });
                }
                out.unwrap_or_default().with(&own.taints)
            }
        }
    }

    /// Returns the value with more data.
    pub(super) fn with(&self, taints: &Taints) -> Self {
        if taints.is_none() {
            return self.clone();
        }
        Self {
            taints: join_taints(&self.taints, taints),
            ..self.clone()
        }
    }

    /// Stores a value under a key. `None` as key: an unknown key.
    pub(super) fn put(&mut self, key: Option<ItemKey>, value: Self) {
        let value = value.small();
        let items = Rc::make_mut(self.items.get_or_insert_with(Rc::default));
        items.touch();
        match key {
            Some(k) if items.keys.len() < MOST_ITEMS || items.keys.contains_key(&k) => {
                if let ItemKey::Int(i) = k
                    && items.is_list
                    && usize::try_from(i).is_ok_and(|i| i > items.keys.len())
                {
                    items.is_list = false;
                }
                items.keys.insert(k, value);
            }
            _ => {
                items.is_list = false;
                items.rest = Some(match &items.rest {
                    Some(r) => join(r, &value),
                    None => Self {
                        constant: None,
                        ..value
                    },
                });
            }
        }
        items.count();
    }

    /// Appends to a list.
    pub(super) fn push(&mut self, value: Self) {
        let list = self.items.get_or_insert_with(|| Rc::new(Items::list()));
        let key = match i64::try_from(list.keys.len()) {
            Ok(i) if list.is_list => Some(ItemKey::Int(i)),
            _ => None,
        };
        self.put(key, value);
    }

    /// Removes an item of a list.
    pub(super) fn remove(&mut self, index: i64) -> Self {
        let Some(items) = &mut self.items else {
            return Self::tainted(self.taints.clone());
        };
        let items = Rc::make_mut(items);
        if !items.is_list {
            return Self::tainted(self.taints.clone());
        }
        items.touch();
        let removed = items.keys.remove(&ItemKey::Int(index)).unwrap_or_default();
        let old = std::mem::take(&mut items.keys);
        for (i, v) in (0i64..).zip(old.into_values()) {
            items.keys.insert(ItemKey::Int(i), v);
        }
        removed
    }

    /// Changes the data, also inside of collections.
    pub(super) fn map_taints(&self, change: &dyn Fn(&Taint) -> Taint) -> Self {
        self.map_level(change, 0)
    }

    fn map_level(&self, change: &dyn Fn(&Taint) -> Taint, level: u32) -> Self {
        let mut out = self.clone();
        if let Some(t) = &self.taints {
            out.taints = Some(Rc::new(t.iter().map(change).collect()));
        }
        if let Some(items) = &self.items
            && level < MOST_LEVELS
        {
            if items.all.get_or_init(|| inside(items)).is_none() {
                return out;
            }
            let mut new = Items {
                is_list: items.is_list,
                level: items.level,
                size: items.size,
                ..Items::default()
            };
            new.rest = items.rest.as_ref().map(|r| r.map_level(change, level + 1));
            for (k, v) in &items.keys {
                new.keys.insert(k.clone(), v.map_level(change, level + 1));
            }
            out.items = Some(Rc::new(new));
        }
        out
    }

    /// Returns the value as harmless for kinds of sinks.
    pub(super) fn clean(&self, kinds: u32) -> Self {
        if kinds == u32::MAX {
            return Self {
                taints: None,
                items: None,
                ..self.clone()
            };
        }
        self.map_taints(&|t| Taint {
            clean: t.clean | kinds,
            ..t.clone()
        })
    }

    /// Returns the value as harmful for kinds of sinks again.
    pub(super) fn exposed(&self, kinds: u32) -> Self {
        self.map_taints(&|t| Taint {
            clean: t.clean & !kinds,
            ..t.clone()
        })
    }

    /// Returns true for the constant `null`.
    fn is_null(&self) -> bool {
        self.constant == Some(Const::Null)
    }

    /// Returns the value with some of its data harmless for kinds. If no data is given, all data
    /// becomes harmless.
    pub(super) fn clean_data(&self, kinds: u32, data: &Taints) -> Self {
        let Some(data) = data else {
            return self.clean(kinds);
        };
        let is_all = self
            .deep()
            .iter()
            .flat_map(|l| l.iter())
            .all(|t| data.iter().any(|d| d.origin == t.origin));
        if is_all {
            return self.clean(kinds);
        }
        self.map_taints(&|t| {
            let is_given = data.iter().any(|d| d.origin == t.origin);
            Taint {
                clean: if is_given { t.clean | kinds } else { t.clean },
                ..t.clone()
            }
        })
    }

    /// Feeds everything that can change the run of a function without findings into a hash: the
    /// properties of [`Self::feed`], and the known parts of texts.
    pub(super) fn feed_wholly(&self, to: &mut impl Hasher) {
        self.feed(to, 0);
        self.feed_known(to);
    }

    /// Feeds the known parts of texts in a value into a hash.
    fn feed_known(&self, to: &mut impl Hasher) {
        self.known.hash(to);
        let Some(items) = &self.items else { return };
        for v in items.keys.values().chain(&items.rest) {
            v.feed_known(to);
        }
    }

    /// Feeds the properties that matter for a call into a hash.
    pub(super) fn feed(&self, to: &mut impl Hasher, level: u32) {
        for t in self.taints.iter().flat_map(|t| t.iter()) {
            (t.origin, t.clean, t.is_built, t.doubt, t.proof).hash(to);
        }
        self.path.hash(to);
        self.what.hash(to);
        match &self.constant {
            None => 0u8.hash(to),
            Some(c) => {
                std::mem::discriminant(c).hash(to);
                c.written().hash(to);
            }
        }
        let Some(items) = &self.items else { return };
        if items.hash.get() == 0 && level <= MOST_LEVELS {
            let mut h = std::hash::DefaultHasher::new();
            items.is_list.hash(&mut h);
            for (k, v) in &items.keys {
                k.hash(&mut h);
                v.feed(&mut h, level + 1);
            }
            if let Some(r) = &items.rest {
                r.feed(&mut h, level + 1);
            }
            items.hash.set(h.finish().max(1));
        }
        items.hash.get().hash(to);
    }

    /// Forgets an item with a text as key.
    pub(super) fn forget(&mut self, key: &ItemKey) {
        if let Some(items) = &mut self.items {
            let items = Rc::make_mut(items);
            items.touch();
            items.keys.remove(key);
        }
    }
}

/// Returns the data in a collection.
fn inside(items: &Items) -> Taints {
    let mut out: Taints = None;
    for v in items.keys.values().chain(&items.rest) {
        out = join_taints(&out, &v.deep());
    }
    out
}

/// Joins data of two branches.
pub(super) fn join_taints(a: &Taints, b: &Taints) -> Taints {
    let (a, b) = match (a, b) {
        (None, x) | (x, None) => return x.clone(),
        (Some(a), Some(b)) => (a, b),
    };
    if Rc::ptr_eq(a, b) {
        return Some(Rc::clone(a));
    }
    let mut out: Vec<Taint> = (**a).clone();
    for t in b.iter() {
        match out.iter_mut().find(|o| o.origin == t.origin) {
            Some(o) => {
                // Keep the trail that is harmless for fewer kinds, because that trail is reported.
                if o.clean & !t.clean != 0 {
                    o.trail = t.trail.clone();
                }
                o.clean &= t.clean;
                o.is_built |= t.is_built;
                o.doubt = o.doubt.min(t.doubt);
            }
            None => out.push(t.clone()),
        }
    }
    if out.len() > MOST_TAINTS {
        out.sort_by_key(|t| (std::cmp::Reverse(t.proof), t.clean.count_ones(), t.origin));
        out.truncate(MOST_TAINTS);
    }
    Some(Rc::new(out))
}

/// Joins the values of two branches.
pub(super) fn join(a: &FlowValue, b: &FlowValue) -> FlowValue {
    if a.is_same(b) {
        return a.clone();
    }
    let constant = match (&a.constant, &b.constant) {
        (Some(x), Some(y)) if x == y => Some(x.clone()),
        _ => None,
    };
    let path = match (a.path, b.path) {
        (Some(x), Some(y)) if x == y => Some(x),
        (Some(x), None) if b.is_null() || b.is_empty() => Some(x),
        (None, Some(y)) if a.is_null() || a.is_empty() => Some(y),
        (x, y) => x.or(y),
    };
    let what = if a.what == What::Other {
        b.what
    } else {
        a.what
    };
    let items = match (&a.items, &b.items) {
        (Some(x), Some(y)) => Some(join_items(x, y)),
        (x, y) => x.clone().or_else(|| y.clone()),
    };
    let known = if a.known == b.known {
        a.known.clone()
    } else {
        None
    };
    FlowValue {
        taints: join_taints(&a.taints, &b.taints),
        constant,
        path,
        items,
        what,
        known,
    }
}

impl FlowValue {
    /// Returns true if both values are copies of one value. Compares pointers, not contents.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let taints = match (&self.taints, &other.taints) {
            (None, None) => true,
            (Some(a), Some(b)) => Rc::ptr_eq(a, b),
            _ => false,
        };
        let items = match (&self.items, &other.items) {
            (None, None) => true,
            (Some(a), Some(b)) => Rc::ptr_eq(a, b),
            _ => false,
        };
        taints
            && items
            && self.path == other.path
            && self.what == other.what
            && self.constant == other.constant
            && self.known == other.known
    }

    /// Returns true if nothing is known about the value.
    pub(super) fn is_empty(&self) -> bool {
        self.taints.is_none()
            && self.constant.is_none()
            && self.path.is_none()
            && self.items.is_none()
    }
}

fn join_items(a: &Rc<Items>, b: &Rc<Items>) -> Rc<Items> {
    if Rc::ptr_eq(a, b) {
        return Rc::clone(a);
    }
    let mut out = Items {
        is_list: a.is_list && b.is_list && a.keys.len() == b.keys.len(),
        ..Items::default()
    };
    for (k, v) in &a.keys {
        let joined = match b.keys.get(k) {
            Some(w) => join(v, w),
            None => FlowValue {
                constant: None,
                ..v.clone()
            },
        };
        out.keys.insert(k.clone(), joined);
    }
    for (k, v) in &b.keys {
        if !a.keys.contains_key(k) && out.keys.len() < MOST_ITEMS {
            out.keys.insert(
                k.clone(),
                FlowValue {
                    constant: None,
                    ..v.clone()
                },
            );
        }
    }
    out.rest = match (&a.rest, &b.rest) {
        (Some(x), Some(y)) => Some(join(x, y)),
        (x, y) => x.clone().or_else(|| y.clone()),
    };
    out.count();
    Rc::new(out)
}

/// Variables at a point of a function. A copy is shared until one of the two changes.
#[derive(Clone, Debug, Default)]
pub(super) struct Env {
    /// Sorted.
    vars: Rc<Vec<(Sym, FlowValue)>>,
    /// Texts of expressions that a check has found harmless, by hash, for kinds.
    checked: Rc<Vec<(u64, u32)>>,
}

impl Env {
    pub(super) fn get(&self, name: Sym) -> Option<&FlowValue> {
        let i = self.vars.binary_search_by_key(&name, |(n, _)| *n).ok()?;
        self.vars.get(i).map(|(_, v)| v)
    }

    pub(super) fn set(&mut self, name: Sym, value: FlowValue) {
        let at = self.vars.binary_search_by_key(&name, |(n, _)| *n);
        let vars = Rc::make_mut(&mut self.vars);
        match at {
            Ok(i) => {
                if let Some(v) = vars.get_mut(i) {
                    v.1 = value;
                }
            }
            Err(i) => vars.insert(i, (name, value)),
        }
    }

    /// Returns the number of variables.
    pub(super) fn len(&self) -> usize {
        self.vars.len()
    }

    /// Remembers that a check has found an expression harmless for kinds.
    pub(super) fn check(&mut self, hash: u64, kinds: u32) {
        if kinds == 0 {
            return;
        }
        let checked = Rc::make_mut(&mut self.checked);
        if checked.len() >= 16 {
            checked.remove(0);
        }
        checked.push((hash, kinds));
    }

    /// Returns true if checks have found expressions harmless.
    pub(super) fn has_checks(&self) -> bool {
        !self.checked.is_empty()
    }

    /// Returns the kinds that checks have found an expression harmless for.
    pub(super) fn checks(&self, hash: u64) -> u32 {
        self.checked
            .iter()
            .filter(|(h, _)| *h == hash)
            .fold(0, |k, (_, kinds)| k | kinds)
    }

    /// Returns true if nothing has changed between the two.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.vars, &other.vars)
    }

    /// Joins the variables of two branches.
    pub(super) fn join(&self, other: &Self) -> Self {
        let checked = if Rc::ptr_eq(&self.checked, &other.checked) || self.checked.is_empty() {
            Rc::clone(&self.checked)
        } else {
            let mut checked = Vec::new();
            for (h, kinds) in self.checked.iter() {
                let both = kinds & other.checks(*h);
                if both != 0 {
                    checked.push((*h, both));
                }
            }
            Rc::new(checked)
        };
        if self.is_same(other) {
            return Self {
                vars: Rc::clone(&self.vars),
                checked,
            };
        }
        let mut vars = Vec::with_capacity(self.vars.len().max(other.vars.len()));
        let (mut a, mut b) = (self.vars.iter().peekable(), other.vars.iter().peekable());
        loop {
            match (a.peek(), b.peek()) {
                (Some(x), Some(y)) if x.0 == y.0 => {
                    vars.push((x.0, join(&x.1, &y.1)));
                    a.next();
                    b.next();
                }
                (Some(x), Some(y)) if x.0 < y.0 => vars.extend(a.next().cloned()),
                (Some(_), None) => vars.extend(a.next().cloned()),
                (_, Some(_)) => vars.extend(b.next().cloned()),
                (None, None) => break,
            }
        }
        Self {
            vars: Rc::new(vars),
            checked,
        }
    }

    /// Applies the changes that a function literal, which may have run, made to variables that
    /// exist here.
    pub(super) fn absorb(&mut self, inner: &Self, hidden: &[Sym]) {
        if self.is_same(inner) {
            return;
        }
        let vars = Rc::make_mut(&mut self.vars);
        for (name, value) in vars.iter_mut().filter(|(n, _)| !hidden.contains(n)) {
            if let Some(v) = inner.get(*name) {
                *value = join(value, v);
            }
        }
    }

    /// Changes the data of all variables.
    pub(super) fn map_taints(&mut self, change: &dyn Fn(&Taint) -> Taint) {
        for (_, value) in Rc::make_mut(&mut self.vars) {
            *value = value.map_taints(change);
        }
    }

    /// Returns a hash of all known facts, to detect whether a loop changes anything.
    pub(super) fn digest(&self) -> u64 {
        let mut h = std::hash::DefaultHasher::new();
        for (n, v) in self.vars.iter() {
            n.hash(&mut h);
            v.feed(&mut h, 0);
        }
        h.finish()
    }
}
