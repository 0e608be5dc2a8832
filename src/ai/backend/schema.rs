//! Adapts our JSON Schema to the subset that each provider supports. Pure.
//!
//! The parser of replies checks removed constraints itself; the schema only helps a model to answer
//! correctly.

use serde_json::{Map, Value, json};

/// Keywords that no provider needs.
const NOISE: [&str; 4] = ["$schema", "$id", "format", "default"];
/// Constraints that Anthropic's structured outputs reject
/// (<https://platform.claude.com/docs/en/build-with-claude/structured-outputs>).
const LIMITS: [&str; 13] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
];
/// Nesting limit, higher than the depth of any schema here.
const MAX_DEPTH: usize = 32;

/// Returns the schema for Chat Completions with `strict`. References are inlined, because a
/// reference must not have a description next to it.
pub(super) fn openai(schema: &Value) -> Value {
    rewrite(schema, schema, &|_| {}, 0)
}

/// Returns the schema for Anthropic's `output_config`: without limits, and with `anyOf` in place of
/// lists of types.
pub(super) fn anthropic(schema: &Value) -> Value {
    rewrite(
        schema,
        schema,
        &|object| {
            object.retain(|key, _| !LIMITS.contains(&key.as_str()));
            let Some(Value::Array(types)) = object.get("type").cloned() else {
                return;
            };
            object.remove("type");
            let mut rest = Map::new();
            for key in [
                "properties",
                "required",
                "additionalProperties",
                "items",
                "enum",
            ] {
                if let Some(value) = object.remove(key) {
                    rest.insert(key.to_owned(), value);
                }
            }
            object.insert(
                "anyOf".to_owned(),
                types.iter().map(|t| alternative(t, &rest)).collect(),
            );
        },
        0,
    )
}

/// Returns the schema for one of several types. `rest` holds the members of the schema, which
/// `null` does not need.
fn alternative(kind: &Value, rest: &Map<String, Value>) -> Value {
    let mut one = if kind == "null" {
        Map::new()
    } else {
        rest.clone()
    };
    if let Some(Value::Array(values)) = one.get_mut("enum") {
        values.retain(|v| !v.is_null());
    }
    one.insert("type".to_owned(), kind.clone());
    Value::Object(one)
}

/// Returns the schema for Google's `responseJsonSchema`: `enum` in place of `const`.
pub(super) fn google(schema: &Value) -> Value {
    rewrite(
        schema,
        schema,
        &|object| {
            if let Some(only) = object.remove("const") {
                object.insert("enum".to_owned(), json!([only]));
            }
        },
        0,
    )
}

/// Copies a schema with references inlined, and applies a function to each object.
fn rewrite(
    value: &Value,
    root: &Value,
    mend: &dyn Fn(&mut Map<String, Value>),
    depth: usize,
) -> Value {
    if depth > MAX_DEPTH {
        return json!({});
    }
    let object = match value {
        Value::Object(object) => object,
        Value::Array(list) => {
            return list
                .iter()
                .map(|v| rewrite(v, root, mend, depth + 1))
                .collect();
        }
        other => return other.clone(),
    };
    let mut out = Map::new();
    if let Some(target) = object
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|r| root.pointer(r.strip_prefix('#')?))
        && let Value::Object(target) = rewrite(target, root, mend, depth + 1)
    {
        out = target;
    }
    for (key, value) in object {
        match key.as_str() {
            "$ref" | "$defs" | "definitions" => {}
            // The keys below are names of members, not keywords.
            "properties" => {
                let properties = value.as_object().into_iter().flatten();
                let properties =
                    properties.map(|(k, v)| (k.clone(), rewrite(v, root, mend, depth + 1)));
                out.insert(key.clone(), Value::Object(properties.collect()));
            }
            "enum" | "const" | "required" => drop(out.insert(key.clone(), value.clone())),
            _ if NOISE.contains(&key.as_str()) => {}
            _ => drop(out.insert(key.clone(), rewrite(value, root, mend, depth + 1))),
        }
    }
    mend(&mut out);
    Value::Object(out)
}

#[cfg(test)]
mod tests {
    use super::{anthropic, google, openai};
    use serde_json::{Value, json};

    fn schema() -> Value {
        json!({
            "$schema": "x", "type": "object", "additionalProperties": false, "required": ["default", "list", "of"],
            "properties": {
                "default": { "type": ["integer", "null"], "format": "int64", "minimum": 1, "description": "d" },
                "list": { "type": "array", "items": { "$ref": "#/$defs/Item" }, "maxItems": 9 },
                "of": { "description": "beside", "anyOf": [{ "$ref": "#/$defs/Item" }, { "type": "null" }] }
            },
            "$defs": { "Item": { "type": "object", "properties": { "k": { "const": "v" } } } }
        })
    }

    #[test]
    fn references_are_written_out_and_names_are_left_alone() {
        let item = json!({ "type": "object", "properties": { "k": { "const": "v" } } });
        let expected = json!({
            "type": "object", "additionalProperties": false, "required": ["default", "list", "of"],
            "properties": {
                "default": { "type": ["integer", "null"], "minimum": 1, "description": "d" },
                "list": { "type": "array", "items": item, "maxItems": 9 },
                "of": { "description": "beside", "anyOf": [item, { "type": "null" }] }
            }
        });
        assert_eq!(openai(&schema()), expected);
    }

    #[test]
    fn anthropic_gets_no_limits_and_no_lists_of_types() {
        let out = anthropic(&schema());
        let expected =
            json!({ "description": "d", "anyOf": [{ "type": "integer" }, { "type": "null" }] });
        assert_eq!(out["properties"]["default"], expected);
        assert_eq!(out["properties"]["list"].get("maxItems"), None);
        let nullable = json!({ "type": ["string", "null"], "enum": ["a", null] });
        assert_eq!(
            anthropic(&nullable),
            json!({ "anyOf": [{ "type": "string", "enum": ["a"] }, { "type": "null" }] })
        );
    }

    #[test]
    fn google_gets_no_constants() {
        assert_eq!(
            google(&schema())["properties"]["list"]["items"]["properties"]["k"],
            json!({ "enum": ["v"] })
        );
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let endless =
            json!({ "$ref": "#/$defs/A", "$defs": { "A": { "items": { "$ref": "#/$defs/A" } } } });
        assert!(openai(&endless)["items"].is_object());
    }
}
