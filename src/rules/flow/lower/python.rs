//! The shape of Python files.

mod compare;
mod value;

use super::super::shape::{
    Annotation, Catch, Class, CodeBlock, ExprId, ExprKind, Field, Function, FunctionId, Param,
    StmtKind, SwitchCase, Sym,
};
use super::{Lower, block, child, children, field, fields, span, stmt};
use tree_sitter::Node;
use value::{arguments, expr};

/// Lowers a file.
pub(super) fn file(l: &mut Lower<'_>, root: Node<'_>) -> CodeBlock {
    body(l, root)
}

fn body(l: &mut Lower<'_>, node: Node<'_>) -> CodeBlock {
    block(l, &children(node), statement)
}

fn body_of(l: &mut Lower<'_>, node: Node<'_>, name: &'static str) -> CodeBlock {
    field(node, name).map(|n| body(l, n)).unwrap_or_default()
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
        "expression_statement" | "ERROR" | "block" | "module" => return out.extend(body(l, node)),
        "import_statement" | "import_from_statement" | "future_import_statement" => {
            return import(l, node);
        }
        "assignment" => return assignment(l, node, out),
        "return_statement" => StmtKind::Return(children(node).first().map(|n| expr(l, *n))),
        "raise_statement" => StmtKind::Throw(children(node).first().map(|n| expr(l, *n))),
        "break_statement" => StmtKind::Break,
        "continue_statement" => StmtKind::Continue,
        "assert_statement" => match children(node).first() {
            Some(test) => StmtKind::Assert(expr(l, *test)),
            None => return,
        },
        "if_statement" => condition(l, node),
        "while_statement" => {
            let test = field(node, "condition").map(|n| expr(l, n));
            let body = body_of(l, node, "body");
            StmtKind::While {
                test,
                body,
                update: Vec::new(),
                is_post_test: false,
            }
        }
        "for_statement" => {
            let (Some(left), Some(right)) = (field(node, "left"), field(node, "right")) else {
                return;
            };
            let (target, iterable) = (expr(l, left), expr(l, right));
            StmtKind::Each {
                target,
                key: None,
                iterable,
                body: body_of(l, node, "body"),
            }
        }
        "with_statement" => return with(l, node, out),
        "try_statement" => attempt(l, node),
        "match_statement" => choice(l, node),
        "function_definition" => StmtKind::Function(function(l, node, Vec::new())),
        "class_definition" => class(l, node, Vec::new()),
        "decorated_definition" => return decorated(l, node, out),
        "pass_statement" | "global_statement" | "nonlocal_statement" | "comment" => return,
        _ => StmtKind::Expr(expr(l, node)),
    };
    out.push(stmt(node, kind));
}

fn import(l: &mut Lower<'_>, node: Node<'_>) {
    let from = field(node, "module_name").map(|n| l.text(n).to_owned());
    if child(node, "wildcard_import").is_some() {
        l.import("*", from.as_deref().unwrap_or_default());
    }
    for name in fields(node, "name") {
        let (path, alias) = match name.kind() {
            "aliased_import" => (field(name, "name"), field(name, "alias")),
            _ => (Some(name), None),
        };
        let Some(path) = path.map(|p| l.text(p).to_owned()) else {
            continue;
        };
        let alias = alias.map(|a| l.text(a).to_owned());
        match (&from, alias) {
            (Some(from), alias) => {
                let full = format!("{}.{path}", from.trim_end_matches('.'));
                l.import(alias.as_deref().unwrap_or(&path), &full);
            }
            (None, Some(alias)) => l.import(&alias, &path),
            // `import a.b` declares `a`.
            (None, None) => {
                let first = path.split('.').next().unwrap_or_default().to_owned();
                l.import(&first, &first);
            }
        }
    }
}

fn assignment(l: &mut Lower<'_>, node: Node<'_>, out: &mut CodeBlock) {
    let Some(left) = field(node, "left") else {
        return;
    };
    if let Some(ty) = field(node, "type") {
        let ty = Some(type_name(l, ty));
        let (target, value) = (expr(l, left), field(node, "right").map(|n| expr(l, n)));
        out.push(stmt(node, StmtKind::Declare { target, ty, value }));
        return;
    }
    let id = expr(l, node);
    out.push(stmt(node, StmtKind::Expr(id)));
}

/// Returns the name of a type: `Optional[str]` is `str`, `list[str]` is `list`, `"User"` is `User`.
fn type_name(l: &mut Lower<'_>, node: Node<'_>) -> Sym {
    let text = l.text(node).trim_matches(['"', '\'', ' ']);
    let inner = [
        "Optional[",
        "typing.Optional[",
        "Annotated[",
        "typing.Annotated[",
    ];
    let text = inner
        .iter()
        .find_map(|p| text.strip_prefix(p))
        .unwrap_or(text);
    let text = text
        .split(['[', ',', ']', '|'])
        .next()
        .unwrap_or_default()
        .trim();
    l.sym(text)
}

fn condition(l: &mut Lower<'_>, node: Node<'_>) -> StmtKind {
    let test = match field(node, "condition") {
        Some(n) => expr(l, n),
        None => l.unknown(node, Vec::new()),
    };
    let then = body_of(l, node, "consequence");
    let mut otherwise: CodeBlock = Vec::new();
    for part in fields(node, "alternative").into_iter().rev() {
        if part.kind() == "else_clause" {
            otherwise = body_of(l, part, "body");
        } else if let Some(test) = field(part, "condition") {
            let test = expr(l, test);
            let then = body_of(l, part, "consequence");
            otherwise = vec![stmt(
                part,
                StmtKind::If {
                    test,
                    then,
                    otherwise,
                },
            )];
        }
    }
    StmtKind::If {
        test,
        then,
        otherwise,
    }
}

fn with(l: &mut Lower<'_>, node: Node<'_>, out: &mut CodeBlock) {
    let mut items = Vec::new();
    for clause in children(node)
        .into_iter()
        .filter(|n| n.kind() == "with_clause")
    {
        for item in children(clause) {
            items.extend(field(item, "value"));
        }
    }
    for item in items {
        if item.kind() == "as_pattern" {
            let parts = children(item);
            let target = field(item, "alias").map(|a| children(a).first().copied().unwrap_or(a));
            if let (Some(value), Some(target)) = (parts.first(), target) {
                let (value, target) = (expr(l, *value), expr(l, target));
                out.push(l.assign(item, target, value));
            }
        } else {
            let id = expr(l, item);
            out.push(stmt(item, StmtKind::Expr(id)));
        }
    }
    out.extend(body_of(l, node, "body"));
}

fn attempt(l: &mut Lower<'_>, node: Node<'_>) -> StmtKind {
    let mut main = body_of(l, node, "body");
    let mut catches = Vec::new();
    let mut finally = Vec::new();
    for part in children(node) {
        match part.kind() {
            "else_clause" => main.extend(body_of(l, part, "body")),
            "finally_clause" => {
                finally = child(part, "block").map(|b| body(l, b)).unwrap_or_default();
            }
            "except_clause" | "except_group_clause" => {
                let pattern = child(part, "as_pattern");
                let alias =
                    field(part, "alias").or_else(|| pattern.and_then(|p| field(p, "alias")));
                let name = alias.map(|a| l.sym_of(a));
                let body = child(part, "block").map(|b| body(l, b)).unwrap_or_default();
                catches.push(Catch {
                    name,
                    ty: None,
                    body,
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

fn choice(l: &mut Lower<'_>, node: Node<'_>) -> StmtKind {
    let subject = field(node, "subject").map(|n| expr(l, n));
    let mut cases = Vec::new();
    let parts = field(node, "body").map(children).unwrap_or_default();
    for part in parts.into_iter().filter(|n| n.kind() == "case_clause") {
        let mut tests = Vec::new();
        for pattern in children(part)
            .into_iter()
            .filter(|n| n.kind() == "case_pattern")
        {
            let inside = children(pattern);
            let constants = inside
                .iter()
                .filter(|n| matches!(n.kind(), "string" | "integer" | "true" | "false"));
            tests.extend(constants.copied().map(|n| expr(l, n)));
            if let Some(union) = inside.iter().find(|n| n.kind() == "union_pattern") {
                tests.extend(children(*union).into_iter().map(|n| expr(l, n)));
            }
        }
        let body = field(part, "consequence")
            .map(|b| body(l, b))
            .unwrap_or_default();
        cases.push(SwitchCase { tests, body });
    }
    StmtKind::Switch {
        subject,
        cases,
        falls_through: false,
    }
}

fn decorated(l: &mut Lower<'_>, node: Node<'_>, out: &mut CodeBlock) {
    let mut marks = Vec::new();
    for d in children(node)
        .into_iter()
        .filter(|n| n.kind() == "decorator")
    {
        marks.extend(children(d).first().map(|n| mark(l, *n)));
    }
    let Some(definition) = field(node, "definition") else {
        return;
    };
    let kind = match definition.kind() {
        "class_definition" => class(l, definition, marks),
        _ => StmtKind::Function(function(l, definition, marks)),
    };
    out.push(stmt(node, kind));
}

fn mark(l: &mut Lower<'_>, node: Node<'_>) -> Annotation {
    match (
        node.kind(),
        field(node, "function"),
        field(node, "arguments"),
    ) {
        ("call", Some(name), Some(args)) => Annotation {
            name: expr(l, name),
            args: arguments(l, args),
        },
        _ => Annotation {
            name: expr(l, node),
            args: Vec::new(),
        },
    }
}

fn function(l: &mut Lower<'_>, node: Node<'_>, marks: Vec<Annotation>) -> FunctionId {
    let name = field(node, "name").map(|n| l.sym_of(n));
    let ty = field(node, "return_type").map(|n| type_name(l, n));
    let params = field(node, "parameters")
        .map(|p| parameters(l, p))
        .unwrap_or_default();
    let body = body_of(l, node, "body");
    let is_constructor = field(node, "name").is_some_and(|n| l.text(n) == "__init__");
    let (is_static, is_getter) = (
        has_mark(l, &marks, "staticmethod"),
        has_mark(l, &marks, "property"),
    );
    let function = Function {
        span: span(node),
        name,
        params,
        body,
        marks,
        ty,
        is_constructor,
        is_static,
        is_getter,
        ..Default::default()
    };
    l.module.add_function(function)
}

/// Returns true if one of the decorators has this name, without a module before it.
fn has_mark(l: &Lower<'_>, marks: &[Annotation], name: &str) -> bool {
    marks.iter().any(
        |m| matches!(&l.module.expr(m.name).kind, ExprKind::Name(s) if l.module.word(*s) == name),
    )
}

fn parameters(l: &mut Lower<'_>, node: Node<'_>) -> Vec<Param> {
    let mut out = Vec::new();
    for p in children(node) {
        let inner = match p.kind() {
            "typed_parameter" => children(p).first().copied().unwrap_or(p),
            _ => field(p, "name").unwrap_or(p),
        };
        let is_variadic = matches!(
            inner.kind(),
            "list_splat_pattern" | "dictionary_splat_pattern"
        );
        let inner = if is_variadic {
            children(inner).first().copied().unwrap_or(inner)
        } else {
            inner
        };
        if inner.kind() != "identifier" {
            continue;
        }
        let name = Some(l.sym_of(inner));
        let ty = field(p, "type").map(|t| type_name(l, t));
        let default = field(p, "value").map(|v| expr(l, v));
        out.push(Param {
            span: span(p),
            name,
            ty,
            default,
            is_variadic,
            ..Default::default()
        });
    }
    out
}

fn class(l: &mut Lower<'_>, node: Node<'_>, marks: Vec<Annotation>) -> StmtKind {
    let name = field(node, "name").map(|n| l.sym_of(n));
    let mut class = Class {
        span: span(node),
        name,
        marks,
        ..Default::default()
    };
    for base in field(node, "superclasses")
        .map(children)
        .unwrap_or_default()
    {
        if base.kind() != "keyword_argument" {
            class.bases.push(type_name(l, base));
        }
    }
    class.is_enum = class.bases.iter().any(|base| is_enum(l, *base));
    for s in body_of(l, node, "body") {
        match s.kind {
            StmtKind::Function(id) => method(l, id, &mut class),
            StmtKind::Expr(id) => {
                if let Some(field) = static_field(l, id) {
                    class.fields.push(field);
                } else {
                    class.body.push(s);
                }
            }
            StmtKind::Declare { target, ty, value } => match l.module.expr(target).kind {
                ExprKind::Name(name) => class.fields.push(Field {
                    name,
                    ty,
                    value,
                    marks: Vec::new(),
                }),
                _ => class.body.push(s),
            },
            _ => class.body.push(s),
        }
    }
    StmtKind::Class(l.module.add_class(class))
}

/// Returns true for a base class of the module `enum`, which the file has to import: its name alone
/// could be that of any class.
fn is_enum(l: &Lower<'_>, base: Sym) -> bool {
    let base = l.module.word(base);
    let (first, last) = (base.split('.').next(), base.rsplit('.').next());
    let mut imports = l.module.imports.iter();
    let import = imports.find(|i| first == Some(l.module.word(i.alias)));
    let module = import.and_then(|i| l.module.word(i.path).split('.').next());
    module == Some("enum") && matches!(last, Some("Enum" | "IntEnum" | "StrEnum" | "IntFlag"))
}

/// Removes `self` from the parameters.
fn method(l: &mut Lower<'_>, id: FunctionId, class: &mut Class) {
    class.methods.push(id);
    let Some(f) = l.module.functions.get_mut(id.0 as usize) else {
        return;
    };
    if !f.is_static && !f.params.is_empty() {
        let first = f.params.remove(0);
        f.receiver = first.name;
    }
}

fn static_field(l: &Lower<'_>, id: ExprId) -> Option<Field> {
    let ExprKind::Assign {
        target,
        op: None,
        value,
    } = l.module.expr(id).kind
    else {
        return None;
    };
    let ExprKind::Name(name) = l.module.expr(target).kind else {
        return None;
    };
    Some(Field {
        name,
        ty: None,
        value: Some(value),
        marks: Vec::new(),
    })
}
