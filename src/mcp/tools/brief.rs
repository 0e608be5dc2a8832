//! The schema of an answer in `tools/list`: small, because clients send the list to a model with
//! every request.
//!
//! It has the type of each member. Nested values are plain objects and arrays. Which
//! members are required is left out: only how many every answer has, errors included.
//! The resource `schema://TOOL` has the complete schema.

use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Members whose descriptions stay, because they decide what a client does next.
const EXPLAINED: &[&str] = &[
    "advice",
    "comments",
    "findings",
    "outcome",
    "retryable",
    "status",
    "verdict",
];

/// Returns the brief form of a complete schema. Every answer that fits the complete schema fits the
/// brief one.
pub(super) fn brief(full: &Value) -> Value {
    let schema = Full {
        definitions: full["$defs"].as_object(),
    };
    let mut properties = Map::new();
    for (name, member) in full["properties"].as_object().into_iter().flatten() {
        let mut shown = schema.member(member);
        let description = member
            .get("description")
            .filter(|_| EXPLAINED.contains(&name.as_str()));
        if let (Some(shown), Some(text)) = (shown.as_object_mut(), description) {
            shown.insert("description".to_owned(), text.clone());
        }
        properties.insert(name.clone(), shown);
    }
    let ways = full["anyOf"].as_array().into_iter().flatten();
    let least = ways
        .map(|way| way["required"].as_array().map_or(0, Vec::len))
        .min()
        .unwrap_or_default();
    json!({"type": "object", "properties": properties, "minProperties": least})
}

/// The values that a schema allows, with references resolved.
#[derive(Debug, Default)]
struct SchemaShape<'a> {
    types: BTreeSet<&'a str>,
    /// Allowed strings; empty if all are allowed.
    choices: BTreeSet<&'a str>,
    /// An alternative allows any string.
    any_string: bool,
    /// Schemas of list items.
    items: Vec<&'a Value>,
}

struct Full<'a> {
    definitions: Option<&'a Map<String, Value>>,
}

impl<'a> Full<'a> {
    /// Returns the schema of a member of the answer.
    fn member(&self, schema: &'a Value) -> Value {
        let shape = self.shape(schema);
        let mut out = typed(&shape);
        if !shape.choices.is_empty() && !shape.any_string {
            let null = shape.types.contains("null").then_some(Value::Null);
            out["enum"] = shape
                .choices
                .iter()
                .map(|c| Value::from(*c))
                .chain(null)
                .collect();
        }
        if let [items] = shape.items.as_slice() {
            out["items"] = typed(&self.shape(items));
        }
        out
    }

    fn shape(&self, schema: &'a Value) -> SchemaShape<'a> {
        let mut shape = SchemaShape::default();
        self.add(schema, &mut shape);
        shape
    }

    fn add(&self, schema: &'a Value, shape: &mut SchemaShape<'a>) {
        if let Some(name) = schema["$ref"]
            .as_str()
            .and_then(|r| r.strip_prefix("#/$defs/"))
        {
            if let Some(definition) = self.definitions.and_then(|d| d.get(name)) {
                self.add(definition, shape);
            }
            return;
        }
        let ways = ["anyOf", "oneOf"]
            .iter()
            .filter_map(|k| schema[*k].as_array());
        for way in ways.flatten() {
            self.add(way, shape);
        }
        let types = match &schema["type"] {
            Value::String(one) => vec![one.as_str()],
            Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let choices = schema["enum"]
            .as_array()
            .into_iter()
            .flatten()
            .chain(schema.get("const"));
        let choices: Vec<&str> = choices.filter_map(Value::as_str).collect();
        shape.any_string |= types.contains(&"string") && choices.is_empty();
        shape.choices.extend(choices);
        if let (true, Some(items)) = (types.contains(&"array"), schema.get("items")) {
            shape.items.push(items);
        }
        if schema.get("const").is_some_and(Value::is_string) {
            shape.types.insert("string");
        }
        shape.types.extend(types);
    }
}

/// Returns the schema that allows the types of a shape.
fn typed(shape: &SchemaShape<'_>) -> Value {
    let types: Vec<&str> = shape.types.iter().copied().collect();
    match types.as_slice() {
        [] => json!({}),
        [one] => json!({ "type": one }),
        all => json!({ "type": all }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::tools::ALL;

    #[test]
    fn types_and_choices_stay_and_details_go() {
        let full = json!({
            "properties": {
                "verdict": {"anyOf": [{"$ref": "#/$defs/Verdict"}, {"type": "null"}], "description": "The verdict."},
                "findings": {"type": "array", "items": {"$ref": "#/$defs/Finding"}, "description": "All."},
                "name": {"anyOf": [{"$ref": "#/$defs/Verdict"}, {"type": "string"}], "description": "Any text."},
                "since": {"$ref": "#/$defs/Finding"},
            },
            "anyOf": [{"title": "Review", "required": ["verdict"]}],
            "$defs": {
                "Verdict": {"oneOf": [{"const": "pass", "description": "p"}, {"type": "string", "enum": ["block"]}]},
                "Finding": {"type": "object", "properties": {"line": {"type": ["integer", "null"], "minimum": 1}}},
            },
        });
        assert_eq!(
            brief(&full),
            json!({
                "type": "object",
                "properties": {
                    "verdict": {
                        "type": ["null", "string"], "enum": ["block", "pass", null], "description": "The verdict."
                    },
                    "findings": {
                        "type": "array",
                        "items": {"type": "object"},
                        "description": "All.",
                    },
                    "name": {"type": "string"},
                    "since": {"type": "object"},
                },
                "minProperties": 1,
            })
        );
    }

    #[test]
    fn every_member_of_an_answer_keeps_its_name_and_a_type() {
        for tool in ALL.iter().copied().flatten() {
            let full = (tool.answers)();
            let brief = brief(&full);
            let [of_brief, of_full] =
                [&brief, &full].map(|schema| schema["properties"].as_object().unwrap().keys());
            assert_eq!(
                of_brief.collect::<Vec<_>>(),
                of_full.collect::<Vec<_>>(),
                "{}",
                tool.name
            );
            for (name, member) in brief["properties"].as_object().unwrap() {
                assert!(member.get("type").is_some(), "{}: {name}", tool.name);
            }
        }
    }
}
