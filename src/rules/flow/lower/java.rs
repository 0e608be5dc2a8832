//! The shape of Java files.

use super::super::shape::{
    Annotation, Arg, Arm, Catch, Class, CodeBlock, CollectionItem, ExprId, ExprKind, Field,
    Function, FunctionId, Op, Param, StmtKind, SwitchCase, Sym,
};
use super::{
    Lower, block, child, children, field, fields, has_token, integer, plain, span, stmt, unescape,
};
use tree_sitter::Node;

pub(super) mod hints;
pub(super) mod secret;
pub(super) mod spring;

/// Lowers a file.
pub(super) fn file(l: &mut Lower<'_>, root: Node<'_>) -> CodeBlock {
    body(l, root)
}

fn body(l: &mut Lower<'_>, node: Node<'_>) -> CodeBlock {
    block(l, &children(node), statement)
}

/// Lowers a statement that may be a block.
fn body_of(l: &mut Lower<'_>, node: Node<'_>, name: &str) -> CodeBlock {
    field(node, name)
        .map(|n| block(l, &[n], statement))
        .unwrap_or_default()
}

fn statement(l: &mut Lower<'_>, node: Node<'_>, out: &mut CodeBlock) {
    if !l.enter() {
        return;
    }
    statement_inside(l, node, out);
    l.leave();
}

fn statement_inside(l: &mut Lower<'_>, node: Node<'_>, out: &mut CodeBlock) {
    let kind = match node.kind() {
        "block"
        | "program"
        | "constructor_body"
        | "static_initializer"
        | "labeled_statement"
        | "ERROR"
        | "expression_statement" => return inner(l, node, out),
        "synchronized_statement" => StmtKind::Block(body_of(l, node, "body")),
        "import_declaration" => return import(l, node),
        "package_declaration"
        | "identifier"
        | "type_identifier"
        | "modifiers"
        | "line_comment"
        | "block_comment" => {
            return;
        }
        "local_variable_declaration" | "field_declaration" | "constant_declaration" => {
            return declaration(l, node, out);
        }
        "method_declaration" | "constructor_declaration" | "compact_constructor_declaration" => {
            StmtKind::Function(function(l, node, &[]))
        }
        "class_declaration"
        | "interface_declaration"
        | "enum_declaration"
        | "record_declaration" => class(l, node),
        "return_statement" => StmtKind::Return(first_of(l, node)),
        "yield_statement" => StmtKind::Return(first_of(l, node)),
        "throw_statement" => StmtKind::Throw(first_of(l, node)),
        "break_statement" => StmtKind::Break,
        "continue_statement" => StmtKind::Continue,
        "assert_statement" => return,
        "if_statement" => {
            let test = condition(l, node);
            let then = body_of(l, node, "consequence");
            StmtKind::If {
                test,
                then,
                otherwise: body_of(l, node, "alternative"),
            }
        }
        "while_statement" | "do_statement" => {
            let test = Some(condition(l, node));
            let is_post_test = node.kind() == "do_statement";
            StmtKind::While {
                test,
                body: body_of(l, node, "body"),
                update: Vec::new(),
                is_post_test,
            }
        }
        "for_statement" => return counted(l, node, out),
        "enhanced_for_statement" => return each(l, node, out),
        "switch_expression" => switch(l, node),
        "try_statement" | "try_with_resources_statement" => attempt(l, node),
        _ => StmtKind::Expr(expr(l, node)),
    };
    out.push(stmt(node, kind));
    if node.kind() == "method_invocation" {
        change(l, node, out);
    }
}

/// Adds the change that a call makes to its receiver.
fn change(l: &mut Lower<'_>, node: Node<'_>, out: &mut CodeBlock) {
    let (Some(of), Some(name), Some(args)) = (
        field(node, "object"),
        field(node, "name"),
        field(node, "arguments"),
    ) else {
        return;
    };
    if matches!(of.kind(), "identifier" | "field_access")
        && let Some(call) = hints::change(l.text(name), l.text(args))
    {
        let target = expr(l, of);
        hints::changed(l, node, call, target, out);
    }
}

/// Lowers the children as statements of the enclosing block.
fn inner(l: &mut Lower<'_>, node: Node<'_>, out: &mut CodeBlock) {
    for n in children(node) {
        statement(l, n, out);
    }
}

/// Lowers the condition in parentheses.
fn condition(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    match field(node, "condition") {
        Some(n) => expr(l, n),
        None => l.unknown(node, Vec::new()),
    }
}

fn first_of(l: &mut Lower<'_>, node: Node<'_>) -> Option<ExprId> {
    children(node).first().map(|n| expr(l, *n))
}

fn import(l: &mut Lower<'_>, node: Node<'_>) {
    let Some(path) = child(node, "scoped_identifier").or_else(|| child(node, "identifier")) else {
        return;
    };
    let path = l.text(path).to_owned();
    let last = path.rsplit('.').next().unwrap_or_default().to_owned();
    let alias = if child(node, "asterisk").is_some() {
        "*"
    } else {
        last.as_str()
    };
    l.import(alias, &path);
}

fn declaration(l: &mut Lower<'_>, node: Node<'_>, out: &mut CodeBlock) {
    let ty = field(node, "type").and_then(|t| type_name(l, t));
    for d in fields(node, "declarator") {
        let Some(name) = field(d, "name") else {
            continue;
        };
        let value = field(d, "value").map(|v| expr(l, v));
        let target = l.name(name);
        out.push(stmt(d, StmtKind::Declare { target, ty, value }));
    }
}

/// Returns the name of a type without its arguments and dimensions. `var` and arrays of bytes:
/// None.
fn type_name(l: &mut Lower<'_>, node: Node<'_>) -> Option<Sym> {
    let text = l.text(node);
    let text = text.split(['<', '[']).next().unwrap_or_default().trim();
    let text = text.rsplit([' ', '\n']).next().unwrap_or_default();
    // `byte[]` is data, and not a number.
    let is_data = node.kind() == "array_type" && matches!(text, "byte" | "char");
    (!text.is_empty() && text != "var" && !is_data).then(|| l.sym(text))
}

fn counted(l: &mut Lower<'_>, node: Node<'_>, out: &mut CodeBlock) {
    for n in fields(node, "init") {
        statement(l, n, out);
    }
    let test = field(node, "condition").map(|n| expr(l, n));
    let body = body_of(l, node, "body");
    let update = block(l, &fields(node, "update"), statement);
    out.push(stmt(
        node,
        StmtKind::While {
            test,
            body,
            update,
            is_post_test: false,
        },
    ));
}

fn each(l: &mut Lower<'_>, node: Node<'_>, out: &mut CodeBlock) {
    let (Some(name), Some(value)) = (field(node, "name"), field(node, "value")) else {
        return;
    };
    let ty = field(node, "type").and_then(|t| type_name(l, t));
    let iterable = expr(l, value);
    let target = l.name(name);
    let mut body = body_of(l, node, "body");
    if ty.is_some() {
        // This declares only the type of the variable. The loop assigns its value.
        body.insert(
            0,
            stmt(
                name,
                StmtKind::Declare {
                    target,
                    ty,
                    value: Some(target),
                },
            ),
        );
    }
    out.push(stmt(
        node,
        StmtKind::Each {
            target,
            key: None,
            iterable,
            body,
        },
    ));
}

/// Lowers the labels of a case. `default`: no tests.
fn tests(l: &mut Lower<'_>, labels: &[Node<'_>]) -> Vec<ExprId> {
    let mut out = Vec::new();
    for label in labels {
        if has_token(*label, "default") {
            return Vec::new();
        }
        for n in children(*label).into_iter().filter(|n| n.kind() != "guard") {
            out.push(expr(l, n));
        }
    }
    out
}

fn switch(l: &mut Lower<'_>, node: Node<'_>) -> StmtKind {
    let subject = Some(condition(l, node));
    let mut cases = Vec::new();
    let mut falls_through = false;
    for part in field(node, "body").map(children).unwrap_or_default() {
        let (labels, rest): (Vec<_>, Vec<_>) = children(part)
            .into_iter()
            .partition(|n| n.kind() == "switch_label");
        falls_through |= part.kind() == "switch_block_statement_group";
        let tests = tests(l, &labels);
        cases.push(SwitchCase {
            tests,
            body: block(l, &rest, statement),
        });
    }
    StmtKind::Switch {
        subject,
        cases,
        falls_through,
    }
}

/// Lowers a `switch` with a value.
fn choice(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let subject = Some(condition(l, node));
    let mut arms = Vec::new();
    for part in field(node, "body").map(children).unwrap_or_default() {
        let (labels, rest): (Vec<_>, Vec<_>) = children(part)
            .into_iter()
            .partition(|n| n.kind() == "switch_label");
        let tests = tests(l, &labels);
        let value = arm(l, part, &rest);
        arms.push(Arm { tests, value });
    }
    l.expr(node, ExprKind::Match { subject, arms })
}

/// Lowers the value of a case: an expression, or a block that ends with `yield`.
fn arm(l: &mut Lower<'_>, part: Node<'_>, rest: &[Node<'_>]) -> ExprId {
    if let [one] = rest
        && one.kind() == "expression_statement"
        && let Some(value) = first_of(l, *one)
    {
        return value;
    }
    let mut body = block(l, rest, statement);
    let value = match body.last().map(|s| &s.kind) {
        Some(StmtKind::Return(value)) => *value,
        _ => None,
    };
    if value.is_some() {
        body.pop();
    }
    l.expr(part, ExprKind::Block { body, value })
}

fn attempt(l: &mut Lower<'_>, node: Node<'_>) -> StmtKind {
    let mut main = Vec::new();
    for r in field(node, "resources").map(children).unwrap_or_default() {
        resource(l, r, &mut main);
    }
    main.extend(body_of(l, node, "body"));
    let mut catches = Vec::new();
    let mut finally = Vec::new();
    for part in children(node) {
        match part.kind() {
            "finally_clause" => finally = block(l, &children(part), statement),
            "catch_clause" => {
                let param = child(part, "catch_formal_parameter");
                let name = param.and_then(|p| field(p, "name")).map(|n| l.sym_of(n));
                let ty = param
                    .and_then(|p| child(p, "catch_type"))
                    .map(|n| l.sym_of(n));
                catches.push(Catch {
                    name,
                    ty,
                    body: body_of(l, part, "body"),
                });
            }
            _ => {}
        }
    }
    StmtKind::Try {
        body: main,
        catches,
        finally,
    }
}

fn resource(l: &mut Lower<'_>, node: Node<'_>, out: &mut CodeBlock) {
    let (Some(name), Some(value)) = (field(node, "name"), field(node, "value")) else {
        return;
    };
    let ty = field(node, "type").and_then(|t| type_name(l, t));
    let value = Some(expr(l, value));
    let target = l.name(name);
    out.push(stmt(node, StmtKind::Declare { target, ty, value }));
}

/// Lowers the annotations of a declaration.
fn marks(l: &mut Lower<'_>, node: Node<'_>) -> Vec<Annotation> {
    let mut out = Vec::new();
    let Some(modifiers) = child(node, "modifiers") else {
        return out;
    };
    for a in children(modifiers)
        .into_iter()
        .filter(|n| matches!(n.kind(), "annotation" | "marker_annotation"))
    {
        let Some(name) = field(a, "name") else {
            continue;
        };
        let path = l.text(name).to_owned();
        let name = l.path(name, &path);
        let args = field(a, "arguments")
            .map(|n| annotation_arguments(l, n))
            .unwrap_or_default();
        out.push(Annotation { name, args });
    }
    out
}

fn annotation_arguments(l: &mut Lower<'_>, node: Node<'_>) -> Vec<Arg> {
    let mut out = Vec::new();
    for a in children(node) {
        let arg = match (a.kind(), field(a, "key"), field(a, "value")) {
            ("element_value_pair", Some(key), Some(value)) => Arg {
                keyword: Some(l.sym_of(key)),
                value: expr(l, value),
                is_spread: false,
            },
            _ => plain(expr(l, a)),
        };
        out.push(arg);
    }
    out
}

fn has_modifier(node: Node<'_>, word: &str) -> bool {
    child(node, "modifiers").is_some_and(|m| has_token(m, word))
}

/// Lowers a method or constructor. `around`: the annotations of its class.
fn function(l: &mut Lower<'_>, node: Node<'_>, around: &[Annotation]) -> FunctionId {
    let name = field(node, "name").map(|n| l.sym_of(n));
    let ty = field(node, "type").and_then(|n| type_name(l, n));
    let marks = marks(l, node);
    let params = field(node, "parameters")
        .map(|p| parameters(l, p))
        .unwrap_or_default();
    let mut body = body_of(l, node, "body");
    if let Some(block) = field(node, "body") {
        spring::responses(l, &mut body, &marks, around, ty, block);
        trust_all(l, node, &params, block, &mut body);
    }
    let is_constructor = node.kind() != "method_declaration";
    let is_static = has_modifier(node, "static");
    let function = Function {
        span: span(node),
        name,
        params,
        body,
        marks,
        ty,
        is_constructor,
        is_static,
        ..Default::default()
    };
    l.module.add_function(function)
}

/// Adds calls to methods that accept every certificate or every host name: `checkServerTrusted`
/// with an empty body, and a `verify` that only returns `true`. The table has these calls.
fn trust_all(
    l: &mut Lower<'_>,
    node: Node<'_>,
    params: &[Param],
    block: Node<'_>,
    body: &mut CodeBlock,
) {
    let Some(name) = field(node, "name") else {
        return;
    };
    let statements = children(block);
    let callee = match (l.text(name), statements.as_slice()) {
        ("checkServerTrusted", []) if params.len() > 1 => "java.trust-all",
        ("verify", [one]) if is_verifier(l, params) && is_true(l, *one) => "java.verify-all",
        _ => return,
    };
    let call = l.call(name, callee, Vec::new());
    body.insert(0, stmt(name, StmtKind::Expr(call)));
}

/// Returns true for the parameters of `HostnameVerifier.verify`.
fn is_verifier(l: &Lower<'_>, params: &[Param]) -> bool {
    matches!(params, [_, Param { ty: Some(ty), .. }] if l.module.word(*ty).ends_with("SSLSession"))
}

fn is_true(l: &Lower<'_>, node: Node<'_>) -> bool {
    node.kind() == "return_statement"
        && l.text(node)
            .trim_start_matches("return")
            .trim_matches([' ', ';'])
            == "true"
}

fn parameters(l: &mut Lower<'_>, node: Node<'_>) -> Vec<Param> {
    let mut out = Vec::new();
    for p in children(node) {
        let is_variadic = p.kind() == "spread_parameter";
        let name = match p.kind() {
            "identifier" => Some(p),
            _ => field(p, "name")
                .or_else(|| child(p, "variable_declarator").and_then(|d| field(d, "name"))),
        };
        let Some(name) = name else { continue };
        let ty = field(p, "type").or_else(|| is_variadic.then(|| spread_type(p)).flatten());
        let ty = ty.and_then(|t| type_name(l, t));
        let marks = marks(l, p);
        let ty = if spring::is_injected(l, &marks) {
            Some(l.sym("Principal"))
        } else {
            ty
        };
        out.push(Param {
            span: span(p),
            name: Some(l.sym_of(name)),
            ty,
            marks,
            is_variadic,
            ..Default::default()
        });
    }
    out
}

fn spread_type(node: Node<'_>) -> Option<Node<'_>> {
    children(node)
        .into_iter()
        .find(|n| !matches!(n.kind(), "modifiers" | "variable_declarator"))
}

fn bases(l: &mut Lower<'_>, node: Node<'_>) -> Vec<Sym> {
    let mut out = Vec::new();
    for part in [
        field(node, "superclass"),
        field(node, "interfaces"),
        child(node, "extends_interfaces"),
    ] {
        for n in part.map(children).unwrap_or_default() {
            let types = if n.kind() == "type_list" {
                children(n)
            } else {
                vec![n]
            };
            out.extend(types.into_iter().filter_map(|t| type_name(l, t)));
        }
    }
    out
}

fn class(l: &mut Lower<'_>, node: Node<'_>) -> StmtKind {
    let name = field(node, "name").map(|n| l.sym_of(n));
    let mut class = Class {
        span: span(node),
        name,
        bases: bases(l, node),
        marks: marks(l, node),
        ..Default::default()
    };
    class.is_enum = node.kind() == "enum_declaration";
    if node.kind() == "record_declaration" {
        record(l, node, &mut class);
    }
    if let Some(body) = field(node, "body") {
        members(l, body, &mut class);
    }
    StmtKind::Class(l.module.add_class(class))
}

fn members(l: &mut Lower<'_>, node: Node<'_>, class: &mut Class) {
    for n in children(node) {
        match n.kind() {
            "method_declaration" | "constructor_declaration" => {
                let id = function(l, n, &class.marks);
                class.methods.push(id);
            }
            "field_declaration" | "constant_declaration" => member_fields(l, n, class),
            "enum_body_declarations" => members(l, n, class),
            "enum_constant" | "compact_constructor_declaration" => {}
            _ => statement(l, n, &mut class.body),
        }
    }
}

fn member_fields(l: &mut Lower<'_>, node: Node<'_>, class: &mut Class) {
    let ty = field(node, "type").and_then(|t| type_name(l, t));
    let marks = marks(l, node);
    for d in fields(node, "declarator") {
        let Some(name) = field(d, "name") else {
            continue;
        };
        let value = field(d, "value").map(|v| expr(l, v));
        let name = l.sym_of(name);
        class.fields.push(Field {
            name,
            ty,
            value,
            marks: marks.clone(),
        });
    }
}

/// Adds the constructor and the accessors of a record.
fn record(l: &mut Lower<'_>, node: Node<'_>, class: &mut Class) {
    let params = field(node, "parameters")
        .map(|p| parameters(l, p))
        .unwrap_or_default();
    let mut body = Vec::new();
    for p in &params {
        let Some(name) = p.name else { continue };
        class.fields.push(Field {
            name,
            ty: p.ty,
            value: None,
            marks: Vec::new(),
        });
        let this = l.expr(node, ExprKind::This);
        let target = l.expr(node, ExprKind::Member { of: this, name });
        let value = l.expr(node, ExprKind::Name(name));
        body.push(l.assign(node, target, value));
        let back = vec![stmt(node, StmtKind::Return(Some(target)))];
        let accessor = Function {
            span: p.span,
            name: Some(name),
            body: back,
            ty: p.ty,
            ..Default::default()
        };
        class.methods.push(l.module.add_function(accessor));
    }
    let constructor = Function {
        span: span(node),
        name: class.name,
        params,
        body,
        is_constructor: true,
        ..Default::default()
    };
    class.methods.push(l.module.add_function(constructor));
}

fn arguments(l: &mut Lower<'_>, node: Node<'_>) -> Vec<Arg> {
    field(node, "arguments")
        .map(|a| all(l, a))
        .unwrap_or_default()
        .into_iter()
        .map(plain)
        .collect()
}

fn argument_text<'t>(l: &Lower<'t>, node: Node<'_>) -> &'t str {
    field(node, "arguments")
        .map(|a| l.text(a))
        .unwrap_or_default()
}

fn all(l: &mut Lower<'_>, node: Node<'_>) -> Vec<ExprId> {
    children(node).into_iter().map(|n| expr(l, n)).collect()
}

/// Lowers the first child.
fn first(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    match children(node).first() {
        Some(n) => expr(l, *n),
        None => l.unknown(node, Vec::new()),
    }
}

fn expr(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    if !l.enter() {
        return l.unknown(node, Vec::new());
    }
    let id = expr_inside(l, node);
    l.leave();
    id
}

fn expr_inside(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let kind = match node.kind() {
        "identifier" | "type_identifier" => return l.name(node),
        "scoped_identifier" | "scoped_type_identifier" => {
            let path = l.text(node).to_owned();
            return l.path(node, &path);
        }
        "this" => ExprKind::This,
        "super" => ExprKind::Super,
        "string_literal" => return string(l, node),
        "character_literal" => ExprKind::Text(unescape(l.text(node).trim_matches('\'')).into()),
        "decimal_integer_literal"
        | "hex_integer_literal"
        | "octal_integer_literal"
        | "binary_integer_literal" => {
            integer(l.text(node)).map_or(ExprKind::Float(0.0), ExprKind::Int)
        }
        "decimal_floating_point_literal" | "hex_floating_point_literal" => ExprKind::Float(
            l.text(node)
                .trim_end_matches(['f', 'F', 'd', 'D'])
                .parse()
                .unwrap_or_default(),
        ),
        "true" => ExprKind::Bool(true),
        "false" => ExprKind::Bool(false),
        "null_literal" => ExprKind::Null,
        "parenthesized_expression" => ExprKind::Pass(first(l, node)),
        "field_access" => return access(l, node),
        "array_access" => match (field(node, "array"), field(node, "index")) {
            (Some(of), Some(key)) => ExprKind::Index {
                of: expr(l, of),
                key: expr(l, key),
            },
            _ => ExprKind::Unknown(all(l, node)),
        },
        "method_invocation" => return call(l, node),
        "explicit_constructor_invocation" => {
            let is_this = field(node, "constructor").is_some_and(|c| c.kind() == "this");
            let callee = l.expr(
                node,
                if is_this {
                    ExprKind::This
                } else {
                    ExprKind::Super
                },
            );
            ExprKind::Call {
                callee,
                args: arguments(l, node),
            }
        }
        "object_creation_expression" => return creation(l, node),
        "array_creation_expression" => match field(node, "value") {
            Some(value) => return expr(l, value),
            None => ExprKind::Collection(Vec::new()),
        },
        "array_initializer" | "element_value_array_initializer" => {
            ExprKind::Collection(items(l, node))
        }
        "binary_expression" => return binary(l, node),
        "unary_expression" => return unary(l, node),
        "update_expression" => return update(l, node),
        "assignment_expression" => return assign(l, node),
        "ternary_expression" => {
            match (
                field(node, "condition"),
                field(node, "consequence"),
                field(node, "alternative"),
            ) {
                (Some(test), Some(yes), Some(no)) => ExprKind::Conditional {
                    test: expr(l, test),
                    yes: expr(l, yes),
                    no: expr(l, no),
                },
                _ => ExprKind::Unknown(all(l, node)),
            }
        }
        "cast_expression" => match (
            field(node, "value"),
            field(node, "type").and_then(|t| type_name(l, t)),
        ) {
            (Some(of), Some(ty)) => ExprKind::Cast {
                of: expr(l, of),
                ty,
            },
            _ => ExprKind::Pass(first(l, node)),
        },
        "instanceof_expression" => return instance(l, node),
        "lambda_expression" => ExprKind::Function(lambda(l, node)),
        "method_reference" => return reference(l, node),
        "class_literal" => {
            let of = children(node)
                .first()
                .map(|n| l.text(*n).to_owned())
                .unwrap_or_default();
            let of = l.path(node, &of);
            ExprKind::Member {
                of,
                name: l.sym("class"),
            }
        }
        "switch_expression" => return choice(l, node),
        "annotation" | "marker_annotation" => {
            let args = field(node, "arguments")
                .map(|n| annotation_arguments(l, n))
                .unwrap_or_default();
            ExprKind::Unknown(args.into_iter().map(|a| a.value).collect())
        }
        _ => ExprKind::Unknown(all(l, node)),
    };
    l.expr(node, kind)
}

fn access(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let (Some(of), Some(name)) = (field(node, "object"), field(node, "field")) else {
        return first(l, node);
    };
    if name.kind() == "this" {
        return l.expr(node, ExprKind::This);
    }
    let of = expr(l, of);
    let name = l.sym_of(name);
    l.expr(node, ExprKind::Member { of, name })
}

fn call(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let Some(name) = field(node, "name") else {
        return first(l, node);
    };
    let word = l.text(name);
    let class = field(node, "object")
        .map(|o| l.text(o))
        .filter(|t| t.len() < 40);
    let args = arguments(l, node);
    if let Some(known) = special(l, node, class, word, &args) {
        return known;
    }
    if word == "append" && field(node, "object").is_some_and(|o| is_append(l, o)) {
        return appended(l, node);
    }
    let written = class.map(|c| format!("{c}.{word}")).unwrap_or_default();
    if let Some(path) = hints::checked_name(l, node, &written) {
        let callee = l.path(name, path);
        return l.expr(node, ExprKind::Call { callee, args });
    }
    let changed = hints::checked_name(l, node, word).or_else(|| hints::shell_name(l, node, word));
    let mut word = changed.unwrap_or(word);
    if field(node, "arguments").is_some_and(|a| hints::finds_dots(word, l.text(a))) {
        word = "containsDots";
    }
    let callee = match field(node, "object") {
        Some(of) => {
            let of = expr(l, of);
            let name_of = l.sym(word);
            l.expr(name, ExprKind::Member { of, name: name_of })
        }
        None => l.named(name, word),
    };
    let is_lookup = !args.is_empty() && class.is_some_and(|c| hints::is_lookup(c, word));
    let call = l.expr(node, ExprKind::Call { callee, args });
    if secret::is_comparison(l, node, class, word, argument_text(l, node)) {
        return secret::noted(l, node, "java.secret-compare", call);
    }
    if hints::is_default_parser(l, node, word, argument_text(l, node)) {
        return secret::noted(l, node, "java.default-parser", call);
    }
    if is_lookup {
        hints::looked_up(l, node, call, callee)
    } else {
        call
    }
}

fn is_append(l: &Lower<'_>, node: Node<'_>) -> bool {
    node.kind() == "method_invocation" && field(node, "name").is_some_and(|n| l.text(n) == "append")
}

/// Lowers `b.append(x).append(y)` to one call with all arguments, because each call changes `b`.
fn appended(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let mut calls = Vec::new();
    let mut at = node;
    while is_append(l, at) {
        calls.push(at);
        match field(at, "object") {
            Some(of) => at = of,
            None => break,
        }
    }
    let of = expr(l, at);
    let name = l.sym("append");
    let callee = l.expr(node, ExprKind::Member { of, name });
    let args = calls
        .into_iter()
        .rev()
        .flat_map(|c| arguments(l, c))
        .collect();
    l.expr(node, ExprKind::Call { callee, args })
}

/// Lowers calls whose result is known from their text: a property with a default becomes the
/// default, and a value of an enum is one of a few texts.
fn special(
    l: &mut Lower<'_>,
    node: Node<'_>,
    class: Option<&str>,
    method: &str,
    args: &[Arg],
) -> Option<ExprId> {
    match args {
        [_, default] if method == "getProperty" && class != Some("System") => {
            let default = default.value;
            Some(l.expr(node, ExprKind::Pass(default)))
        }
        [one] if class.is_some_and(|c| hints::is_enum(c, method)) => {
            let arg = one.value;
            Some(l.call(node, "java.checked", vec![arg]))
        }
        // The bytes of a constant are constant. An uploaded file has a method of this name too,
        // without arguments.
        args if matches!(method, "getBytes" | "toCharArray")
            && class.is_some_and(|c| !args.is_empty() || is_constant(c)) =>
        {
            let of = field(node, "object").map(|o| expr(l, o))?;
            Some(l.expr(node, ExprKind::Pass(of)))
        }
        _ if hints::is_weak_random(class, method, argument_text(l, node))
            && hints::is_secret(l, node) =>
        {
            Some(l.call(node, "java.secret-random", Vec::new()))
        }
        _ if secret::is_random_secret(l, node, class, method, argument_text(l, node)) => {
            Some(l.call(node, "java.secret-random", Vec::new()))
        }
        _ => None,
    }
}

/// Returns true for a text in quotes and for the name of a constant.
fn is_constant(text: &str) -> bool {
    let name = text.rsplit('.').next().unwrap_or_default();
    text.starts_with('"')
        || name
            .chars()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

fn creation(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let Some(ty) = field(node, "type") else {
        return first(l, node);
    };
    let name = type_name(l, ty)
        .map(|s| l.module.word(s).to_owned())
        .unwrap_or_default();
    let body = child(node, "class_body");
    // An anonymous class with one method is a function that sees the variables around it.
    if let Some(body) = body
        && let [method] = children(body).as_slice()
        && method.kind() == "method_declaration"
    {
        let id = function(l, *method, &[]);
        return l.expr(node, ExprKind::Function(id));
    }
    let is_safe = name == "Yaml"
        && field(node, "arguments").is_some_and(|a| l.text(a).contains("SafeConstructor"));
    let is_secret = hints::is_weak_random(Some(&name), "new", argument_text(l, node))
        && hints::is_secret(l, node);
    let written = match is_safe {
        true => "SafeYaml",
        false if is_secret => "SecretRandom",
        false => hints::checked_name(l, node, &name)
            .or_else(|| hints::shell_name(l, node, &name))
            .unwrap_or(&name),
    };
    let class = l.path(ty, written);
    let args = arguments(l, node);
    let new = l.expr(node, ExprKind::New { class, args });
    let Some(body) = body else { return new };
    let base = l.sym(&name);
    let mut class = Class {
        span: span(node),
        bases: vec![base],
        ..Default::default()
    };
    members(l, body, &mut class);
    let id = l.module.add_class(class);
    let body = vec![stmt(node, StmtKind::Class(id))];
    l.expr(
        node,
        ExprKind::Block {
            body,
            value: Some(new),
        },
    )
}

fn items(l: &mut Lower<'_>, node: Node<'_>) -> Vec<CollectionItem> {
    all(l, node)
        .into_iter()
        .map(|value| CollectionItem {
            key: None,
            value,
            is_spread: false,
        })
        .collect()
}

fn operator(text: &str) -> Op {
    match text {
        "+" => Op::Add,
        "-" => Op::Sub,
        "*" => Op::Mul,
        "/" => Op::Div,
        "%" => Op::Rem,
        "&&" => Op::And,
        "||" => Op::Or,
        "==" => Op::Equal,
        "!=" => Op::NotEqual,
        "<" => Op::Less,
        "<=" => Op::LessEqual,
        ">" => Op::Greater,
        ">=" => Op::GreaterEqual,
        _ => Op::Bits,
    }
}

fn binary(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let text = field(node, "operator")
        .map(|o| l.text(o))
        .unwrap_or_default();
    let op = operator(text);
    let mut left: Option<ExprId> = None;
    // The innermost operands come first, so that a long chain is not deep.
    for part in l.chain(node, "binary_expression", text) {
        let right = expr(l, part);
        left = Some(match left {
            Some(left) => l.expr(node, ExprKind::Binary { op, left, right }),
            None => right,
        });
    }
    left.unwrap_or_else(|| l.unknown(node, Vec::new()))
}

fn unary(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let Some(operand) = field(node, "operand") else {
        return first(l, node);
    };
    let sign = field(node, "operator")
        .map(|o| l.text(o))
        .unwrap_or_default();
    let of = expr(l, operand);
    let kind = match (sign, &l.module.expr(of).kind) {
        ("!", _) => ExprKind::Not(of),
        ("-", ExprKind::Int(n)) => ExprKind::Int(n.wrapping_neg()),
        ("+", _) => ExprKind::Pass(of),
        _ => ExprKind::Negate(of),
    };
    l.expr(node, kind)
}

fn update(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let target = first(l, node);
    let op = Some(if has_token(node, "--") {
        Op::Sub
    } else {
        Op::Add
    });
    let value = l.expr(node, ExprKind::Int(1));
    l.expr(node, ExprKind::Assign { target, op, value })
}

fn assign(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let (Some(left), Some(right)) = (field(node, "left"), field(node, "right")) else {
        return first(l, node);
    };
    let text = field(node, "operator")
        .map(|o| l.text(o))
        .unwrap_or_default();
    let op = (text != "=").then(|| operator(text.trim_end_matches('=')));
    let value = expr(l, right);
    let target = expr(l, left);
    l.expr(node, ExprKind::Assign { target, op, value })
}

/// Lowers `x instanceof T`, and `x instanceof T name`, which also binds the name.
fn instance(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let Some(left) = field(node, "left") else {
        return first(l, node);
    };
    let of = expr(l, left);
    let Some(ty) = field(node, "right").and_then(|t| type_name(l, t)) else {
        return l.unknown(node, vec![of]);
    };
    let test = l.expr(node, ExprKind::IsType { of, ty });
    let Some(name) = field(node, "name") else {
        return test;
    };
    let target = l.name(name);
    let body = vec![stmt(
        name,
        StmtKind::Declare {
            target,
            ty: Some(ty),
            value: Some(of),
        },
    )];
    l.expr(
        node,
        ExprKind::Block {
            body,
            value: Some(test),
        },
    )
}

fn lambda(l: &mut Lower<'_>, node: Node<'_>) -> FunctionId {
    let params = match field(node, "parameters") {
        Some(p) if p.kind() == "identifier" => {
            vec![Param {
                span: span(p),
                name: Some(l.sym_of(p)),
                ..Default::default()
            }]
        }
        Some(p) => parameters(l, p),
        None => Vec::new(),
    };
    let body = match field(node, "body") {
        Some(b) if b.kind() == "block" => body(l, b),
        Some(b) => {
            let value = expr(l, b);
            vec![stmt(b, StmtKind::Return(Some(value)))]
        }
        None => Vec::new(),
    };
    l.module.add_function(Function {
        span: span(node),
        params,
        body,
        ..Default::default()
    })
}

/// Lowers `a::b` to the member. A constructor, `A::new`, is the class.
fn reference(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let of = first(l, node);
    let text = l.text(node).to_owned();
    match text.rsplit("::").next() {
        Some(name) if name != "new" => {
            let name = l.sym(name.trim());
            l.expr(node, ExprKind::Member { of, name })
        }
        _ => of,
    }
}

fn string(l: &mut Lower<'_>, node: Node<'_>) -> ExprId {
    let text = l.text(node);
    let text = match text.strip_prefix("\"\"\"") {
        Some(block) => block
            .strip_suffix("\"\"\"")
            .unwrap_or(block)
            .trim_start_matches([' ', '\r'])
            .trim_start_matches('\n'),
        None => text
            .trim_start_matches('"')
            .strip_suffix('"')
            .unwrap_or(text),
    };
    let text = unescape(text);
    l.constant(node, &text)
}
