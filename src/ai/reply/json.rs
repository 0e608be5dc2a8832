//! Parses untrusted JSON, with limits on all sizes.

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use std::cell::Cell;
use std::collections::HashSet;
use std::fmt;

/// Bytes of a string, at most.
pub(super) const MAX_STRING: usize = 16 << 10;
/// Bytes of a key, at most.
const MAX_KEY: usize = 256;
/// Members of a list or an object, at most.
const MAX_MEMBERS: usize = 10_000;
/// Values of a document, at most.
const MAX_VALUES: usize = 200_000;

/// A JSON value. Members of an object keep their order; keys are unique.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Json {
    Null,
    Bool(bool),
    Int(i64),
    /// A fraction, or an integer that does not fit in `Int`.
    Float(f64),
    Text(String),
    List(Vec<Json>),
    Object(Object),
}

/// The members of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Object(pub(super) Vec<(String, Json)>);

impl Object {
    /// Removes a member and returns it. Null counts as absent.
    pub(super) fn take(&mut self, key: &str) -> Option<Json> {
        let at = self.0.iter().position(|(k, _)| k == key)?;
        Some(self.0.swap_remove(at).1).filter(|v| *v != Json::Null)
    }

    /// Removes the first of several members that is present and not null.
    pub(super) fn take_any(&mut self, keys: &[&str]) -> Option<Json> {
        keys.iter().find_map(|k| self.take(k))
    }
}

impl Json {
    /// Returns the text of a string, or of another scalar. The texts of a list are joined with
    /// newlines.
    pub(super) fn into_text(self) -> Option<String> {
        match self {
            Self::Text(s) => Some(s),
            Self::Int(n) => Some(n.to_string()),
            Self::Float(n) => Some(n.to_string()),
            Self::Bool(b) => Some(b.to_string()),
            Self::List(list) => {
                let texts: Vec<String> = list.into_iter().filter_map(Self::into_text).collect();
                (!texts.is_empty()).then(|| texts.join("\n"))
            }
            Self::Null | Self::Object(_) => None,
        }
    }

    /// Returns true for a list or an object that is not empty.
    pub(super) fn has_members(&self) -> bool {
        match self {
            Self::List(list) => !list.is_empty(),
            Self::Object(object) => !object.0.is_empty(),
            _ => false,
        }
    }
}

/// The reason why a document is rejected.
#[derive(Debug)]
pub(super) enum JsonFault {
    /// Invalid JSON or a duplicate key, with the message of serde.
    Syntax(String),
    /// An exceeded limit.
    Bound(&'static str),
}

/// Parses a text that consists of one document. `serde_json` limits the nesting to 128 levels.
pub(super) fn read(text: &str) -> Result<Json, JsonFault> {
    let bounds = Bounds::default();
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = Seed(&bounds)
        .deserialize(&mut reader)
        .and_then(|v| reader.end().map(|()| v));
    value.map_err(|e| match bounds.hit.get() {
        Some(bound) => JsonFault::Bound(bound),
        None if e.to_string().starts_with("recursion limit") => {
            JsonFault::Bound("nesting deeper than 128 levels")
        }
        None => JsonFault::Syntax(e.to_string()),
    })
}

/// Returns the end of the object at the start of a text. Returns `None` if the object does not end.
pub(super) fn end_of_object(text: &str) -> Option<usize> {
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    for (i, b) in text.bytes().enumerate() {
        match b {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(i + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// The number of parsed values, and the exceeded limit.
#[derive(Default)]
struct Bounds {
    values: Cell<usize>,
    hit: Cell<Option<&'static str>>,
}

impl Bounds {
    fn stop<T, E: serde::de::Error>(&self, bound: &'static str) -> Result<T, E> {
        self.hit.set(Some(bound));
        Err(E::custom(bound))
    }

    fn text<E: serde::de::Error>(&self, text: String) -> Result<Json, E> {
        if text.len() > MAX_STRING {
            self.stop("a string longer than 16 KiB")
        } else {
            Ok(Json::Text(text))
        }
    }
}

#[derive(Clone, Copy)]
struct Seed<'b>(&'b Bounds);

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Json;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        let count = self.0.values.get() + 1;
        self.0.values.set(count);
        if count > MAX_VALUES {
            return self.0.stop("more than 200,000 values");
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, b: bool) -> Result<Json, E> {
        Ok(Json::Bool(b))
    }

    fn visit_i64<E>(self, n: i64) -> Result<Json, E> {
        Ok(Json::Int(n))
    }

    fn visit_u64<E>(self, n: u64) -> Result<Json, E> {
        Ok(i64::try_from(n).map_or(Json::Float(n as f64), Json::Int))
    }

    fn visit_f64<E>(self, n: f64) -> Result<Json, E> {
        Ok(Json::Float(n))
    }

    fn visit_str<E: serde::de::Error>(self, s: &str) -> Result<Json, E> {
        self.visit_string(s.to_owned())
    }

    fn visit_string<E: serde::de::Error>(self, s: String) -> Result<Json, E> {
        self.0.text(s)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = seq.next_element_seed(self)? {
            if list.len() == MAX_MEMBERS {
                return self.0.stop("a list of more than 10,000 members");
            }
            list.push(value);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut members: Vec<(String, Json)> = Vec::new();
        let mut seen = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            if members.len() == MAX_MEMBERS || key.len() > MAX_KEY {
                return self.0.stop(
                    "an object of more than 10,000 members, or with a key longer than 256 bytes",
                );
            }
            if !seen.insert(key.clone()) {
                return Err(A::Error::custom("duplicate key in an object"));
            }
            members.push((key, map.next_value_seed(self)?));
        }
        Ok(Json::Object(Object(members)))
    }
}
