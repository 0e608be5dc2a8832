//! The schemas of replies, and the claims in them, which are untrusted.
//!
//! The schemas are generated from these types, so they are constant. They are stricter than the
//! parser, `reply`: a server that enforces the schema prevents invalid replies, and a reply from
//! another server is not lost because of a misspelled severity.

pub mod counsel;
pub mod criteria;
pub mod fix;
pub mod reproduction;

use super::ask;
use crate::finding::{Category, Severity};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};
use std::sync::LazyLock;

/// A reply: one JSON document. The fields are in the order in which a model should write them: the
/// evidence before the judgement, the summary last.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct Reply {
    /// The value of the prompt's last line.
    pub nonce: String,
    pub findings: Vec<Claim>,
    /// Null unless design documents were given.
    pub design_compliance: Option<ComplianceClaim>,
    /// Empty unless documents with requirements were given.
    pub missing_requirements: Vec<RequirementClaim>,
    /// Every file that was reviewed completely, by its path as shown.
    pub files_reviewed: Vec<String>,
    /// Files, or parts of them, that could not be reviewed.
    pub not_reviewed: Vec<NotReviewed>,
    /// Two or three sentences on the change.
    pub summary: String,
    /// Remarks about how the reply was read: unknown keys. Foreign text.
    #[schemars(skip)]
    pub notes: Vec<String>,
}

/// A file that the model could not review.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct NotReviewed {
    /// The path as shown.
    pub file: String,
    pub why: String,
}

/// A defect that a model claims.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct Claim {
    /// The path as shown; null: the change as a whole.
    pub file: Option<String>,
    /// The number in front of the line, on the new side.
    pub line: Option<i64>,
    /// The number of the last line, if there is more than one.
    pub end_line: Option<i64>,
    /// The offending line, verbatim and whole; several lines if one alone occurs more than once.
    pub quote: Option<String>,
    /// Other lines that the finding involves; empty if there are none.
    pub also: Vec<Elsewhere>,
    /// One concrete input or state, and the wrong outcome.
    pub failure: Option<String>,
    /// The defect and its cause.
    pub message: String,
    #[schemars(schema_with = "severities")]
    pub severity: String,
    #[schemars(schema_with = "categories")]
    pub category: String,
    /// The number of the weakness in the CWE list; required for the category security.
    pub cwe: Option<i64>,
    /// A few words.
    pub title: String,
    /// A fix, in words.
    pub suggestion: Option<String>,
    /// Code to replace exactly the lines `line` to `end_line`, or null.
    pub replacement: Option<String>,
    /// The violated convention, as `FILE#Heading: "its words, verbatim"`, or null.
    pub convention: Option<String>,
    /// Remarks about how the claim was read: an unknown severity. Foreign text.
    #[schemars(skip)]
    pub notes: Vec<String>,
}

/// Another line that a finding involves.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct Elsewhere {
    /// The path as shown.
    pub file: Option<String>,
    pub line: Option<i64>,
    /// The line, verbatim.
    pub quote: Option<String>,
}

/// Whether the change follows the documents.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct ComplianceClaim {
    pub follows_architecture: bool,
    pub violations: Vec<ViolationClaim>,
}

/// Where the change leaves the design.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct ViolationClaim {
    pub issue: String,
    pub description: String,
    #[schemars(schema_with = "severities")]
    pub impact: String,
    /// The place in the document, as `FILE#Heading: "its words, verbatim"`.
    pub reference: Option<String>,
    pub recommendation: Option<String>,
}

/// What a document asks for and the change lacks.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct RequirementClaim {
    pub requirement: String,
    /// The place in the document, as `FILE#Heading: "its words, verbatim"`.
    pub reference: Option<String>,
    #[schemars(schema_with = "severities")]
    pub severity: String,
}

/// The decision on one claim.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct Rebuttal {
    /// The value of the prompt's last line.
    pub nonce: String,
    /// The fact in the code that decides, in one or two sentences.
    pub reason: String,
    /// The line of code that decides, verbatim and whole; empty if the claim is not refuted.
    pub quote: String,
    /// True if the claim does not hold.
    pub refuted: bool,
}

/// Returns the schema of a [`Reply`]. It never changes during a run.
pub fn schema() -> &'static ask::Schema {
    static SCHEMA: LazyLock<ask::Schema> = LazyLock::new(|| ask::Schema {
        name: "review",
        value: strict_schema_of::<Reply>(),
    });
    &SCHEMA
}

/// Returns the schema of a [`Rebuttal`]. It never changes during a run.
pub fn rebuttal_schema() -> &'static ask::Schema {
    static SCHEMA: LazyLock<ask::Schema> = LazyLock::new(|| ask::Schema {
        name: "verdict",
        value: strict_schema_of::<Rebuttal>(),
    });
    &SCHEMA
}

fn severities(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": Severity::ALL.map(Severity::name) })
}

fn categories(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": Category::ALL.map(Category::name) })
}

/// Generates a schema that every provider accepts: without references, all properties required, no
/// additional properties.
fn strict_schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|s| {
        s.inline_subschemas = true;
        s.meta_schema = None;
    });
    let mut value = settings
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    make_strict(&mut value);
    value
}

fn make_strict(schema: &mut Value) {
    let Value::Object(object) = schema else {
        return;
    };
    for noise in ["title", "format", "default"] {
        object.remove(noise);
    }
    // The description of the field explains the type.
    let is_object = object.contains_key("properties");
    if is_object {
        object.remove("description");
    }
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        properties.values_mut().for_each(make_strict);
        let names: Vec<Value> = properties.keys().cloned().map(Value::String).collect();
        object.insert("required".to_owned(), Value::Array(names));
        object.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    if let Some(items) = object.get_mut("items") {
        make_strict(items);
    }
    // Some grammar generators ignore the properties if `type` is a list.
    if is_object && object.get("type").is_some_and(Value::is_array) {
        object.insert("type".to_owned(), Value::String("object".to_owned()));
        let inner = std::mem::take(object);
        *schema = json!({ "anyOf": [inner, { "type": "null" }] });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls a function with each schema inside a schema.
    fn visit(schema: &Value, see: &mut dyn FnMut(&serde_json::Map<String, Value>)) {
        let object = schema.as_object().unwrap();
        see(object);
        let properties = object.get("properties").and_then(Value::as_object);
        let inside = properties.into_iter().flat_map(|p| p.values());
        let choices = object
            .get("anyOf")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        inside
            .chain(object.get("items"))
            .chain(choices)
            .for_each(|s| visit(s, see));
    }

    #[test]
    fn every_object_of_a_schema_is_closed_and_requires_all_it_has() {
        for schema in [
            schema(),
            rebuttal_schema(),
            criteria::schema(),
            reproduction::schema(),
            counsel::proposal_schema(),
            counsel::decision_schema(),
        ] {
            let mut objects = 0;
            visit(&schema.value, &mut |o| {
                for key in o.keys() {
                    let known = [
                        "type",
                        "description",
                        "enum",
                        "properties",
                        "required",
                        "additionalProperties",
                    ];
                    assert!(
                        known.contains(&key.as_str()) || key == "items" || key == "anyOf",
                        "{key} in {o:?}"
                    );
                }
                if let Some(Value::Object(properties)) = o.get("properties") {
                    objects += 1;
                    let names: Vec<&String> = properties.keys().collect();
                    assert_eq!(o["required"], json!(names));
                    assert_eq!(o["additionalProperties"], Value::Bool(false));
                }
            });
            assert!(objects > 0);
        }
    }

    fn fields(schema: &Value) -> Vec<String> {
        schema["properties"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect()
    }

    #[test]
    fn the_schema_has_the_evidence_before_the_judgement_and_the_summary_last() {
        let value = &schema().value;
        assert_eq!(
            fields(value),
            [
                "nonce",
                "findings",
                "design_compliance",
                "missing_requirements",
                "files_reviewed",
                "not_reviewed",
                "summary"
            ]
        );
        let claim = &value["properties"]["findings"]["items"];
        assert_eq!(
            fields(claim),
            [
                "file",
                "line",
                "end_line",
                "quote",
                "also",
                "failure",
                "message",
                "severity",
                "category",
                "cwe",
                "title",
                "suggestion",
                "replacement",
                "convention",
            ]
        );
        assert_eq!(claim["properties"]["severity"]["enum"][0], "critical");
        assert_eq!(
            claim["properties"]["category"]["enum"]
                .as_array()
                .unwrap()
                .len(),
            9
        );
        assert_eq!(
            claim["properties"]["line"]["type"],
            json!(["integer", "null"])
        );
        assert_eq!(
            fields(&claim["properties"]["also"]["items"]),
            ["file", "line", "quote"]
        );
        let compliance = &value["properties"]["design_compliance"]["anyOf"];
        assert_eq!(compliance[1], json!({ "type": "null" }));
        let violation = &compliance[0]["properties"]["violations"]["items"];
        assert_eq!(
            fields(violation),
            [
                "issue",
                "description",
                "impact",
                "reference",
                "recommendation"
            ]
        );
        assert_eq!(
            fields(&rebuttal_schema().value),
            ["nonce", "reason", "quote", "refuted"]
        );
        assert_eq!(
            fields(&value["properties"]["not_reviewed"]["items"]),
            ["file", "why"]
        );
    }

    #[test]
    fn a_schema_is_small_enough_to_go_with_every_request() {
        assert!(
            schema().value.to_string().len() < 4_096,
            "{}",
            schema().value
        );
    }
}
