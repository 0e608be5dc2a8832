//! JSON schemas of the answers, generated from the wire types in a form that all clients can read:
//! draft 2020-12 without `$schema`, which the protocol assumes, and without `format`, because
//! validators reject unknown formats. The SDK's `schema_for_output` generates the schema of one type
//! and keeps both; a tool here answers with one of several types.

use crate::wire::answer::CallFailure;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// Members of a report that only `--shard` adds, which no tool has.
const OF_SHARDS: [&str; 2] = ["shard", "merge"];

/// Generates the schema of one type of answer.
pub(super) type AnswerSchema = fn(&mut SchemaGenerator) -> Value;

/// Returns the schema of an answer type.
pub(super) fn kind<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    T::json_schema(generator).to_value()
}

/// Returns the schema of a tool that answers with one of these types, or with an error.
///
/// All members are at the top level, for clients that read only that. `anyOf` states which of them
/// belong together.
pub(super) fn schema(kinds: &[AnswerSchema]) -> Value {
    let mut generator = SchemaSettings::draft2020_12()
        .with(|s| s.meta_schema = None)
        .into_generator();
    let (mut properties, mut ways) = (Map::new(), Vec::new());
    for one in kinds
        .iter()
        .copied()
        .chain([kind::<CallFailure> as AnswerSchema])
    {
        let described = one(&mut generator);
        let members = described["properties"].as_object().into_iter().flatten();
        for (name, property) in members.filter(|(name, _)| !OF_SHARDS.contains(&name.as_str())) {
            let both = match properties.get(name) {
                Some(known) => either(known, property),
                None => property.clone(),
            };
            properties.insert(name.clone(), both);
        }
        // The schema says nothing about members that a type lacks; it does not require them to be
        // null.
        let kept = ["title", "required"]
            .into_iter()
            .filter_map(|k| Some((k.to_owned(), described.get(k)?.clone())));
        ways.push(Value::Object(kept.collect()));
    }
    let definitions = generator.take_definitions(true);
    let mut schema =
        json!({"type": "object", "properties": properties, "anyOf": ways, "$defs": definitions});
    plain(&mut schema);
    schema
}

/// Returns a schema that accepts both; it has the description of the first.
fn either(one: &Value, other: &Value) -> Value {
    let [first, second] = [one, other].map(|schema| {
        let mut bare = schema.clone();
        plain(&mut bare);
        bare.as_object_mut().map(|o| o.remove("description"));
        bare
    });
    match first == second {
        true => one.clone(),
        false => {
            let mut both = json!({"anyOf": [first, second]});
            for description in [one, other]
                .into_iter()
                .filter_map(|v| v.get("description"))
                .take(1)
            {
                both["description"] = description.clone();
            }
            both
        }
    }
}

/// Removes the parts that only code generators need: names of number formats, and defaults.
fn plain(schema: &mut Value) {
    match schema {
        Value::Array(all) => all.iter_mut().for_each(plain),
        Value::Object(members) => {
            // A member of an answer can have this name too. Its schema is an object, so it is kept.
            members
                .retain(|name, value| value.is_object() || name != "format" && name != "default");
            members.values_mut().for_each(plain);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use crate::mcp::tools::ALL;
    use serde_json::{Map, Value};

    /// Collects the members of objects that have no description.
    fn unexplained(
        at: &str,
        schema: &Value,
        definitions: &Map<String, Value>,
        out: &mut Vec<String>,
    ) {
        match schema {
            Value::Array(all) => all
                .iter()
                .for_each(|s| unexplained(at, s, definitions, out)),
            Value::Object(members) => {
                for (name, member) in members {
                    let at = format!("{at}.{name}");
                    if name == "properties" {
                        let all = member.as_object().into_iter().flatten();
                        let unexplained = all.filter(|(_, v)| !is_explained(v, definitions));
                        out.extend(unexplained.map(|(n, _)| format!("{at}.{n}")));
                    }
                    unexplained(&at, member, definitions, out);
                }
            }
            _ => {}
        }
    }

    /// Returns true if a member or its definition has a description.
    fn is_explained(member: &Value, definitions: &Map<String, Value>) -> bool {
        let name = member["$ref"]
            .as_str()
            .and_then(|r| r.strip_prefix("#/$defs/"));
        has_description(member) || name.is_some_and(|n| has_description(&definitions[n]))
    }

    fn has_description(schema: &Value) -> bool {
        schema["description"]
            .as_str()
            .is_some_and(|d| !d.is_empty())
    }

    #[test]
    fn every_member_of_every_answer_is_explained() {
        for tool in ALL.iter().copied().flatten() {
            let schema = (tool.answers)();
            let definitions = schema["$defs"].as_object().cloned().unwrap_or_default();
            let mut out = Vec::new();
            unexplained(tool.name, &schema, &definitions, &mut out);
            assert!(out.is_empty(), "{out:#?}");
            assert!(
                schema["properties"].as_object().unwrap().len() > 5,
                "{}",
                tool.name
            );
        }
    }

    #[test]
    fn schemas_hold_nothing_that_clients_stumble_over() {
        for tool in ALL.iter().copied().flatten() {
            let text = (tool.answers)().to_string();
            for word in ["\"format\"", "\"$schema\"", "\"default\":null", "\"$id\""] {
                assert!(!text.contains(word), "{}: {word}", tool.name);
            }
            assert!(!text.contains("\"$ref\":\"http"), "{}", tool.name);
        }
    }
}
