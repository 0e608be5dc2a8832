//! Arguments of tools. One table defines them; both the schema that clients see and the validation
//! of calls derive from it.
//!
//! The SDK derives both from a type (`Parameters`), with serde. Its errors do not name the invalid
//! argument (MCP-05), it checks no length that the schema names (MCP-06, MCP-14), and after an
//! error it has no valid arguments, which [`super::tools::McpTool::refused`] needs.

use serde_json::{Map, Value, json};

/// Bytes of a text argument, at most, unless the table sets another limit.
pub(super) const TEXT: usize = 64 << 10;

/// One argument.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arg {
    pub(super) name: &'static str,
    /// Description for the client.
    pub(super) about: &'static str,
    pub(super) kind: ArgType,
    pub(super) required: bool,
}

/// Type of an argument.
#[derive(Clone, Copy, Debug)]
pub(super) enum ArgType {
    /// A text of at most this number of bytes.
    Text(usize),
    /// One of these values. The first one is the default, if there is a default.
    Choice {
        of: &'static [&'static str],
        default: Option<&'static str>,
    },
    /// A list of texts, with limits on their number and length.
    Texts {
        most: usize,
        bytes: usize,
    },
    /// A list of some of these values. The schema lists `of`; the values of `also` are accepted
    /// too.
    Choices {
        of: &'static [&'static str],
        also: fn(&str) -> bool,
    },
    Number {
        from: i64,
        to: i64,
        default: i64,
    },
    /// A text or an object, as the schema defines. The tool validates the content.
    TextOrObject(fn() -> Value),
}

/// The arguments of a call, validated against the table.
#[derive(Clone, Debug, Default)]
pub(super) struct GivenArgs {
    values: Map<String, Value>,
    /// Names of invalid arguments.
    spoilt: Vec<&'static str>,
}

/// The reason why a call is rejected.
#[derive(Debug)]
pub(super) struct Unfit {
    /// A sentence that names the invalid argument.
    pub(super) why: String,
    /// The valid arguments.
    pub(super) given: GivenArgs,
}

impl GivenArgs {
    /// Validates arguments. A null counts as a missing argument.
    ///
    /// # Errors
    ///
    /// The first invalid argument, together with the valid ones.
    pub(super) fn check(args: &[Arg], sent: Map<String, Value>) -> Result<Self, Unfit> {
        let mut given = Self::default();
        let mut wrong = None;
        for (name, value) in sent {
            let Some(arg) = args.iter().find(|a| a.name == name) else {
                let names: Vec<_> = args.iter().map(|a| a.name).collect();
                let takes = if names.is_empty() {
                    "none are taken".to_owned()
                } else {
                    format!("known: {}", names.join(", "))
                };
                wrong.get_or_insert(format!("unknown argument {}; {takes}", shown(&name)));
                continue;
            };
            if value.is_null() {
                continue;
            }
            match arg.kind.check(&value) {
                Ok(()) => {
                    given.values.insert(name, value);
                }
                Err(why) => {
                    wrong.get_or_insert(format!("{name} must be {why}"));
                    given.spoilt.push(arg.name);
                }
            }
        }
        let wrong = wrong.or_else(|| {
            let missing = args
                .iter()
                .find(|a| a.required && !given.values.contains_key(a.name))?;
            Some(format!("{} is missing: {}", missing.name, missing.about))
        });
        match wrong {
            Some(why) => Err(Unfit { why, given }),
            None => Ok(given),
        }
    }

    /// Returns true if the argument was sent and is invalid.
    pub(super) fn is_spoilt(&self, name: &str) -> bool {
        self.spoilt.contains(&name)
    }

    /// Returns a text argument.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.values.get(name).and_then(Value::as_str)
    }

    /// Returns a list of texts; empty if it was not sent.
    pub(super) fn texts(&self, name: &str) -> Vec<&str> {
        let list = self.values.get(name).and_then(Value::as_array);
        list.map(|l| l.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default()
    }

    /// Returns a number argument.
    pub(super) fn number(&self, name: &str) -> Option<i64> {
        self.values.get(name).and_then(whole)
    }

    /// Returns the raw value of an argument.
    pub(super) fn value(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }
}

/// Returns a value as an integer; accepts `5.0`.
fn whole(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| {
        value
            .as_f64()
            .filter(|f| f.fract() == 0.0 && f.abs() < 1e15)
            .map(|f| f as i64)
    })
}

/// Returns untrusted text, shortened for a message.
pub(super) fn shown(text: &str) -> String {
    let end = text.floor_char_boundary(80);
    let more = if end < text.len() { "…" } else { "" };
    format!("{:?}{more}", &text[..end])
}

impl ArgType {
    /// Returns the expected form if the value does not have it.
    fn check(self, value: &Value) -> Result<(), String> {
        match self {
            Self::Text(most) => match value.as_str() {
                None => Err("a string".to_owned()),
                Some(s) if s.len() > most => {
                    Err(format!("at most {most} bytes long; it has {}", s.len()))
                }
                Some(_) => Ok(()),
            },
            Self::Choice { of, .. } => match value.as_str() {
                Some(s) if of.contains(&s) => Ok(()),
                Some(s) => Err(format!("one of {}; it is {}", of.join(", "), shown(s))),
                None => Err(format!("a string, one of {}", of.join(", "))),
            },
            Self::Texts { most, bytes } => {
                let list = value.as_array().ok_or("a list of strings")?;
                if list.len() > most {
                    return Err(format!("a list of at most {most}; it has {}", list.len()));
                }
                match list
                    .iter()
                    .position(|v| v.as_str().is_none_or(|s| s.len() > bytes))
                {
                    Some(at) => Err(format!(
                        "a list of strings of at most {bytes} bytes each; item {at} is not"
                    )),
                    None => Ok(()),
                }
            }
            Self::Choices { of, also } => {
                let list = value
                    .as_array()
                    .ok_or_else(|| format!("a list, of {}", of.join(", ")))?;
                for v in list {
                    match v.as_str() {
                        Some(s) if of.contains(&s) || also(s) => {}
                        Some(s) => {
                            return Err(format!(
                                "a list of {}; one item is {}",
                                of.join(", "),
                                shown(s)
                            ));
                        }
                        None => return Err(format!("a list of strings, of {}", of.join(", "))),
                    }
                }
                if list.len() > 64 {
                    Err("a list of at most 64".to_owned())
                } else {
                    Ok(())
                }
            }
            Self::Number { from, to, .. } => match whole(value) {
                Some(n) if (from..=to).contains(&n) => Ok(()),
                _ => Err(format!("a whole number from {from} to {to}")),
            },
            Self::TextOrObject(_) => match value {
                Value::String(s) if s.len() <= TEXT => Ok(()),
                Value::Object(_) => Ok(()),
                _ => Err(format!("a string of at most {TEXT} bytes, or an object")),
            },
        }
    }

    fn schema(self) -> Value {
        match self {
            Self::Text(most) => json!({"type": "string", "maxLength": most}),
            Self::Choice { of, default: None } => json!({"type": "string", "enum": of}),
            Self::Choice {
                of,
                default: Some(d),
            } => json!({"type": "string", "enum": of, "default": d}),
            Self::Texts { most, bytes } => {
                json!({"type": "array", "items": {"type": "string", "maxLength": bytes}, "maxItems": most})
            }
            Self::Choices { of, .. } => {
                json!({"type": "array", "items": {"type": "string", "enum": of}})
            }
            Self::Number { from, to, default } => {
                json!({"type": "integer", "minimum": from, "maximum": to, "default": default})
            }
            Self::TextOrObject(schema) => schema(),
        }
    }
}

/// Returns the input schema of a tool.
pub(super) fn schema(args: &[Arg]) -> Map<String, Value> {
    let mut properties = Map::new();
    for arg in args {
        let mut schema = arg.kind.schema();
        if let Value::Object(members) = &mut schema {
            members.insert("description".to_owned(), arg.about.into());
        }
        properties.insert(arg.name.to_owned(), schema);
    }
    let required: Vec<_> = args.iter().filter(|a| a.required).map(|a| a.name).collect();
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), properties.into());
    if !required.is_empty() {
        schema.insert("required".to_owned(), required.into());
    }
    schema.insert("additionalProperties".to_owned(), false.into());
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARGS: &[Arg] = &[
        Arg {
            name: "code",
            about: "the text to review",
            kind: ArgType::Text(8),
            required: true,
        },
        Arg {
            name: "n",
            about: "how many",
            kind: ArgType::Number {
                from: 1,
                to: 9,
                default: 5,
            },
            required: false,
        },
        Arg {
            name: "how",
            about: "how",
            kind: ArgType::Choice {
                of: &["quick", "thorough"],
                default: Some("quick"),
            },
            required: false,
        },
        Arg {
            name: "list",
            about: "list",
            kind: ArgType::Texts { most: 2, bytes: 3 },
            required: false,
        },
    ];

    fn check(value: Value) -> Result<GivenArgs, String> {
        let Value::Object(map) = value else {
            panic!("an object")
        };
        GivenArgs::check(ARGS, map).map_err(|u| u.why)
    }

    #[test]
    fn every_complaint_names_the_argument() {
        for (value, says) in [
            (json!({}), "code is missing: the text to review"),
            (json!({"code": null}), "code is missing"),
            (json!({"code": 1}), "code must be a string"),
            (
                json!({"code": "123456789"}),
                "code must be at most 8 bytes long; it has 9",
            ),
            (
                json!({"code": "x", "cod": 1}),
                "unknown argument \"cod\"; known: code, n, how, list",
            ),
            (
                json!({"code": "x", "n": 0}),
                "n must be a whole number from 1 to 9",
            ),
            (json!({"code": "x", "n": 1.5}), "n must be a whole number"),
            (json!({"code": "x", "n": "3"}), "n must be a whole number"),
            (
                json!({"code": "x", "how": "deep"}),
                "how must be one of quick, thorough; it is \"deep\"",
            ),
            (
                json!({"code": "x", "how": ["quick"]}),
                "how must be a string",
            ),
            (json!({"code": "x", "list": "a"}), "list must be a list"),
            (
                json!({"code": "x", "list": ["a", 1]}),
                "list must be a list of strings of at most 3 bytes each; item 1",
            ),
            (
                json!({"code": "x", "list": ["a", "b", "c"]}),
                "list must be a list of at most 2",
            ),
        ] {
            let said = check(value.clone()).unwrap_err();
            assert!(said.starts_with(says), "{value}: {said}");
        }
        let given = check(json!({"code": "x", "n": 3.0, "how": null, "list": ["a"]})).unwrap();
        assert_eq!(
            (given.text("code"), given.number("n"), given.text("how")),
            (Some("x"), Some(3), None)
        );
        assert_eq!(given.texts("list"), ["a"]);
    }

    #[test]
    fn what_fits_is_known_where_something_else_does_not() {
        let Value::Object(sent) = json!({"n": 0, "how": "quick", "x": 1, "list": null}) else {
            unreachable!()
        };
        let Unfit { why, given } = GivenArgs::check(ARGS, sent).unwrap_err();
        assert!(why.starts_with("n must be"), "{why}");
        assert_eq!(
            (given.text("how"), given.number("n")),
            (Some("quick"), None)
        );
        assert!(given.is_spoilt("n") && !given.is_spoilt("how") && !given.is_spoilt("list"));
    }

    #[test]
    fn the_schema_says_the_same_as_the_check() {
        let schema = Value::Object(schema(ARGS));
        assert_eq!(schema["required"], json!(["code"]));
        assert_eq!(schema["additionalProperties"], json!(false));
        assert_eq!(schema["properties"]["how"]["default"], json!("quick"));
        assert_eq!(schema["properties"]["n"]["type"], json!("integer"));
        assert!(
            schema["properties"]
                .as_object()
                .unwrap()
                .values()
                .all(|p| p["description"].is_string())
        );
        assert!(!schema.to_string().contains("\"format\""));
    }
}
