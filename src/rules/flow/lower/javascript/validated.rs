//! Data of requests that a schema or the declaration of a route accepts only in a harmless form: a
//! number, a UUID, a value of a list. Such a value becomes an argument of the call
//! `validated value`, which a sanitizer of the table matches.

use super::super::super::shape::CollectionItem;
use super::super::super::strictness::strictness;
use super::super::{Lower, children, field};
use super::expression::expr;
use super::{ExprId, ExprKind, function};
use tree_sitter::Node;

/// Names that frameworks give to the parts of a request. The names of one list mean the same part.
const GROUPS: [&[&str]; 4] = [
    &["params"],
    &["query", "querystring"],
    &["body", "payload"],
    &["headers", "cookies", "header", "cookie"],
];

/// Functions of express-validator that start a chain, with the index in [`GROUPS`]. `check` is
/// about all groups.
const CHAINS: [(&str, Option<usize>); 6] = [
    ("param", Some(0)),
    ("query", Some(1)),
    ("body", Some(2)),
    ("header", Some(3)),
    ("cookie", Some(3)),
    ("check", None),
];

/// Methods of express-validator after which a value is harmless.
const CHECKS: [&str; 17] = [
    "isInt",
    "isNumeric",
    "isFloat",
    "isDecimal",
    "isBoolean",
    "isUUID",
    "isULID",
    "isMongoId",
    "isAlphanumeric",
    "isAlpha",
    "isHexadecimal",
    "isIn",
    "isDate",
    "isISO8601",
    "isIP",
    "isPort",
    "isSlug",
];

/// Parts of schemas of Joi, Zod, TypeBox and JSON Schema that accept only harmless values.
const STRICT: [&str; 28] = [
    ".number(",
    ".integer(",
    ".int(",
    ".bigint(",
    ".boolean(",
    ".guid(",
    ".uuid(",
    ".cuid(",
    ".ulid(",
    ".valid(",
    ".alphanum(",
    ".hex(",
    ".date(",
    ".isoDate(",
    ".enum(",
    ".nativeEnum(",
    ".literal(",
    "Type.Integer(",
    "Type.Number(",
    "Type.Boolean(",
    "Type.Literal(",
    "type:'integer'",
    "type:'number'",
    "type:'boolean'",
    "format:'uuid'",
    "format:'date",
    "format:'ipv",
    "enum:[",
];

/// Levels of a schema that are searched for a name.
const LEVELS: u32 = 6;

/// Returns a member of a request as the argument of `validated value` if the route around it
/// validates it.
pub(super) fn member(l: &mut Lower<'_>, node: Node<'_>, value: ExprId) -> ExprId {
    match is_validated(l, node) {
        true => l.call(node, "validated value", vec![value]),
        false => value,
    }
}

/// Returns true if the route of a function around a member, such as `req.params.id`, validates it.
fn is_validated(l: &Lower<'_>, node: Node<'_>) -> bool {
    let Some(object) = field(node, "object").filter(|o| o.kind() == "member_expression") else {
        return false;
    };
    let (Some(part), Some(name)) = (field(object, "property"), field(node, "property")) else {
        return false;
    };
    let Some(group) = GROUPS
        .iter()
        .position(|names| names.contains(&l.text(part)))
    else {
        return false;
    };
    let wanted = RequestPart {
        group,
        name: l.text(name),
    };
    let mut at = node;
    while let Some(parent) = at.parent().filter(|_| l.may_search(1)) {
        let is_function = function::is_literal(at) || at.kind() == "method_definition";
        if is_function && wanted.is_in_route(l, at, parent) {
            return true;
        }
        at = parent;
    }
    false
}

/// The effect of an argument of a route on requests whose part is not valid.
#[derive(Clone, Copy)]
enum Middleware {
    Rejects,
    /// It adds an error to the request, as express-validator does.
    Marks,
    Other,
}

/// A part of a request.
struct RequestPart<'t> {
    /// Index in [`GROUPS`].
    group: usize,
    name: &'t str,
}

impl RequestPart<'_> {
    /// Returns true if the call or object that a handler is passed to validates the part.
    fn is_in_route(&self, l: &Lower<'_>, handler: Node<'_>, parent: Node<'_>) -> bool {
        match parent.kind() {
            "arguments" => self.is_in_arguments(l, parent),
            "array" => parent
                .parent()
                .is_some_and(|p| p.kind() == "arguments" && self.is_in_arguments(l, p)),
            "pair" => parent
                .parent()
                .is_some_and(|object| self.is_in_options(l, object)),
            "object" if handler.kind() == "method_definition" => self.is_in_options(l, parent),
            _ => false,
        }
    }

    fn is_in_arguments(&self, l: &Lower<'_>, arguments: Node<'_>) -> bool {
        let arguments: Vec<Node<'_>> = children(arguments).into_iter().flat_map(members).collect();
        if !l.may_search(arguments.len()) {
            return false;
        }
        let mut is_marked = false;
        for argument in &arguments {
            let middleware = match argument.kind() {
                "string" if self.is_in_path(l.text(*argument)) => Middleware::Rejects,
                "object" if self.is_in_schemas(l, *argument) => Middleware::Rejects,
                _ => self.middleware(l, *argument),
            };
            match middleware {
                Middleware::Rejects => return true,
                Middleware::Marks => is_marked = true,
                Middleware::Other => {}
            }
        }
        is_marked && rejects(l, &arguments)
    }

    /// Checks the object that has the handler, the object around it, and the call that gets one of
    /// them.
    fn is_in_options(&self, l: &Lower<'_>, object: Node<'_>) -> bool {
        let outer = object
            .parent()
            .filter(|p| p.kind() == "pair")
            .and_then(|pair| pair.parent());
        [Some(object), outer].into_iter().flatten().any(|object| {
            let call = object.parent().filter(|p| p.kind() == "arguments");
            self.is_in_schemas(l, object)
                || call.is_some_and(|arguments| self.is_in_arguments(l, arguments))
        })
    }

    /// Returns true for a path such as `/orders/:id(\\d+)`.
    fn is_in_path(&self, path: &str) -> bool {
        let start = format!(":{}(", self.name);
        let Some((_, rest)) = path.split_once(&start).filter(|_| self.group == 0) else {
            return false;
        };
        let pattern = rest
            .split(')')
            .next()
            .unwrap_or_default()
            .replace("\\\\", "\\");
        let pattern = pattern.trim_start_matches('^').trim_end_matches('$');
        strictness(pattern, true) == u32::MAX
    }

    /// Returns how an argument of a route validates the part.
    fn middleware(&self, l: &Lower<'_>, node: Node<'_>) -> Middleware {
        let (mut at, mut is_checked) = (node, false);
        while at.kind() == "call_expression" {
            let Some(callee) = field(at, "function") else {
                break;
            };
            if let (Some(object), Some(method)) =
                (field(callee, "object"), field(callee, "property"))
            {
                is_checked |= CHECKS.contains(&l.text(method));
                if object.kind() == "call_expression" {
                    at = object;
                    continue;
                }
            }
            let arguments = field(at, "arguments").map(children).unwrap_or_default();
            let word = l.text(callee).rsplit('.').next().unwrap_or_default();
            if let Some((_, group)) = CHAINS.iter().find(|(name, _)| *name == word) {
                let is_about = group.is_none_or(|group| group == self.group)
                    && arguments
                        .first()
                        .is_some_and(|a| quoted(l.text(*a)) == self.name);
                return if is_checked && is_about {
                    Middleware::Marks
                } else {
                    Middleware::Other
                };
            }
            let lower = word.to_ascii_lowercase();
            let validates = lower.contains("valid") || lower.contains("celebrate");
            let is_about = validates && arguments.iter().any(|a| self.is_in_group(l, *a));
            return if is_about {
                Middleware::Rejects
            } else {
                Middleware::Other
            };
        }
        Middleware::Other
    }

    /// Searches the values of `schema` and `validate` in the options of a route.
    fn is_in_schemas(&self, l: &Lower<'_>, options: Node<'_>) -> bool {
        pairs(l, options)
            .into_iter()
            .any(|(key, value)| match name_of(l, key) {
                "schema" | "validate" => self.is_in_group(l, value),
                "options" | "config" if value.kind() == "object" => self.is_in_schemas(l, value),
                _ => false,
            })
    }

    /// Searches an object with one schema for each part of a request.
    fn is_in_group(&self, l: &Lower<'_>, schemas: Node<'_>) -> bool {
        let names = GROUPS.get(self.group).copied().unwrap_or_default();
        pairs(l, schemas).into_iter().any(|(key, value)| {
            let key = name_of(l, key)
                .rsplit('.')
                .next()
                .unwrap_or_default()
                .to_ascii_lowercase();
            names.contains(&key.trim_end_matches(']')) && is_strict_in(l, value, self.name, LEVELS)
        })
    }
}

/// Returns the members of a list of middleware, or the node itself.
fn members(node: Node<'_>) -> Vec<Node<'_>> {
    if node.kind() == "array" {
        children(node)
    } else {
        vec![node]
    }
}

/// Returns true if the handler reads the errors that chains mark, or a middleware can do so: one of
/// another file is known by its name. `arguments`: the arguments of the route.
fn rejects(l: &Lower<'_>, arguments: &[Node<'_>]) -> bool {
    arguments.iter().any(|n| match n.kind() {
        "identifier" | "member_expression" => l.text(*n).to_ascii_lowercase().contains("valid"),
        _ if !function::is_literal(*n) => false,
        // The search reads the text of the function.
        _ => l.may_search(n.byte_range().len() / 64) && reads_errors(l.text(*n)),
    })
}

fn reads_errors(code: &str) -> bool {
    ["validationResult(", "matchedData("]
        .iter()
        .any(|call| code.contains(call))
}

/// Returns true if a schema has a strict entry for a name.
fn is_strict_in(l: &Lower<'_>, schema: Node<'_>, name: &str, levels: u32) -> bool {
    if levels == 0 || function::is_literal(schema) || !l.may_search(schema.named_child_count()) {
        return false;
    }
    if schema.kind() == "pair" {
        let (Some(key), Some(value)) = (field(schema, "key"), field(schema, "value")) else {
            return false;
        };
        if name_of(l, key) == name && is_strict(l.text(value)) {
            return true;
        }
    }
    children(schema)
        .into_iter()
        .any(|n| is_strict_in(l, n, name, levels - 1))
}

/// Returns true if the text of a schema accepts only harmless values.
fn is_strict(schema: &str) -> bool {
    let text: String = schema.chars().filter(|c| !c.is_whitespace()).collect();
    let text = text.replace('"', "'");
    let expression = [".regex(/", ".pattern(/", "pattern:'"]
        .iter()
        .find_map(|start| text.split_once(start));
    let expression = expression.and_then(|(_, rest)| rest.split(['/', '\'']).next());
    STRICT.iter().any(|part| text.contains(part))
        || expression.is_some_and(|e| strictness(e, false) == u32::MAX)
}

/// Lowers the result of a schema of Zod or Joi: an object with a value for each key. `None`: the
/// call is another one.
pub(super) fn parsed(l: &mut Lower<'_>, node: Node<'_>) -> Option<ExprId> {
    let callee = field(node, "function").filter(|f| f.kind() == "member_expression")?;
    let method = l.text(field(callee, "property")?);
    let wrapper = match method {
        "parse" | "parseAsync" => None,
        "safeParse" | "safeParseAsync" => Some("data"),
        // Joi returns invalid values too.
        "validate" if declares_error(l, node) => Some("value"),
        _ => return None,
    };
    let schema = schema_of(l, field(callee, "object")?)?;
    let given = children(field(node, "arguments")?).first().copied()?;
    let is_object = schema.text.contains(".object(");
    if !is_object && !is_strict(schema.text) {
        return None;
    }
    let value = match schema.object {
        Some(object) if is_object => object_of(l, node, object, given),
        _ => {
            let value = expr(l, given);
            l.call(node, "validated value", vec![value])
        }
    };
    let Some(wrapper) = wrapper else {
        return Some(value);
    };
    let key = l.constant(node, wrapper);
    Some(l.expr(
        node,
        ExprKind::Collection(vec![CollectionItem {
            key: Some(key),
            value,
            is_spread: false,
        }]),
    ))
}

/// Returns true if a call is the value of `{ value, error }`.
fn declares_error(l: &Lower<'_>, call: Node<'_>) -> bool {
    let target = call
        .parent()
        .filter(|p| p.kind() == "variable_declarator")
        .and_then(|p| field(p, "name"));
    target.is_some_and(|t| t.kind() == "object_pattern" && l.text(t).contains("error"))
}

/// A schema: its text, and the literal with its keys.
struct Schema<'t, 'n> {
    text: &'t str,
    object: Option<Node<'n>>,
}

/// Returns the schema that an expression is or names.
fn schema_of<'t, 'n>(l: &Lower<'t>, node: Node<'n>) -> Option<Schema<'t, 'n>> {
    let value = match node.kind() {
        "identifier" => declared(l, node)?,
        _ => node,
    };
    let text = l.text(value);
    let is_schema = ["z.", "zod.", "Joi.", "joi."]
        .iter()
        .any(|start| text.starts_with(start));
    (is_schema && value.kind() == "call_expression").then(|| Schema {
        text,
        object: first_object(value),
    })
}

/// Returns the value of a variable at the top of the file.
fn declared<'n>(l: &Lower<'_>, name: Node<'n>) -> Option<Node<'n>> {
    let mut root = name;
    while let Some(parent) = root.parent() {
        root = parent;
    }
    if !l.may_search(root.named_child_count()) {
        return None;
    }
    let statements = children(root)
        .into_iter()
        .map(|n| field(n, "declaration").unwrap_or(n));
    let declarators = statements
        .filter(|n| n.kind() == "lexical_declaration")
        .flat_map(children);
    declarators
        .filter(|d| field(*d, "name").is_some_and(|n| l.text(n) == l.text(name)))
        .find_map(|d| field(d, "value"))
}

/// Returns the object that the innermost call of a chain gets: `{ id }` of
/// `z.object({ id }).strict()`.
fn first_object(node: Node<'_>) -> Option<Node<'_>> {
    let mut at = node;
    while at.kind() == "call_expression" {
        let callee = field(at, "function")?;
        match field(callee, "object").filter(|o| o.kind() == "call_expression") {
            Some(object) => at = object,
            None => break,
        }
    }
    children(field(at, "arguments")?)
        .into_iter()
        .find(|a| a.kind() == "object")
}

/// Lowers the values that a schema with keys takes from an object.
fn object_of(l: &mut Lower<'_>, node: Node<'_>, schema: Node<'_>, given: Node<'_>) -> ExprId {
    let of = expr(l, given);
    let keys = pairs(l, schema);
    let mut items = Vec::new();
    for (key, value) in keys {
        let name = quoted(l.text(key));
        let sym = l.sym(name);
        let member = l.expr(node, ExprKind::Member { of, name: sym });
        // A text cannot be an object in a filter of a database, but harms as any other text does.
        let schema = l.text(value);
        let check = if is_strict(schema) {
            Some("validated value")
        } else {
            schema.contains(".string(").then_some("String")
        };
        let value = check.map_or(member, |check| l.call(node, check, vec![member]));
        let key = l.constant(node, name);
        items.push(CollectionItem {
            key: Some(key),
            value,
            is_spread: false,
        });
    }
    l.expr(node, ExprKind::Collection(items))
}

/// Returns the keys and values of an object literal, or of the one that a call such as
/// `Joi.object({ … })` gets.
fn pairs<'n>(l: &Lower<'_>, node: Node<'n>) -> Vec<(Node<'n>, Node<'n>)> {
    let object = match node.kind() {
        "call_expression" => first_object(node).unwrap_or(node),
        _ => node,
    };
    if !l.may_search(object.named_child_count()) {
        return Vec::new();
    }
    let pairs = children(object).into_iter().filter(|n| n.kind() == "pair");
    pairs
        .filter_map(|pair| Some((field(pair, "key")?, field(pair, "value")?)))
        .collect()
}

/// Returns the name of a key: `params` of `params`, `'params'` and `[Segments.PARAMS]`.
fn name_of<'t>(l: &Lower<'t>, key: Node<'_>) -> &'t str {
    quoted(l.text(key))
}

/// Returns a text without quotes around it.
fn quoted(text: &str) -> &str {
    text.trim_matches(['"', '\'', '`'])
}
