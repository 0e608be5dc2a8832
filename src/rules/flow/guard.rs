//! Checks: the facts about data that follow from a condition on each of its branches.

mod check;

use super::run::FlowRun;
use super::shape::{ExprId, ExprKind, Op, Sym};
use super::strictness::strictness;
use super::value::{Const, Env, FlowValue, What};
use super::{FlowLanguage, SinkKind, names};
use check::{called, local_check};
use std::hash::Hasher;

const ALL: u32 = u32::MAX;

/// Applies the facts that follow if a condition has this outcome.
pub(super) fn assume(run: &mut FlowRun<'_>, test: ExprId, truth: bool) {
    if !run.tick() || !run.enter() {
        return;
    }
    assume_inside(run, test, truth);
    run.leave();
}

fn assume_inside(run: &mut FlowRun<'_>, test: ExprId, truth: bool) {
    let module = run.module;
    match &module.expr(test).kind {
        ExprKind::Not(of) => assume(run, *of, !truth),
        ExprKind::Pass(of) => assume(run, *of, truth),
        ExprKind::Assign { target, value, .. } => {
            assume(run, *value, truth);
            let _ = target;
        }
        ExprKind::Binary {
            op: Op::And,
            left,
            right,
        } if truth => {
            assume(run, *left, true);
            assume(run, *right, true);
        }
        ExprKind::Binary {
            op: Op::Or,
            left,
            right,
        } if !truth => {
            assume(run, *left, false);
            assume(run, *right, false);
        }
        // At least one of several parts decides: apply the facts that hold in all cases.
        ExprKind::Binary {
            op: op @ (Op::And | Op::Or),
            ..
        } => one_of(run, test, *op),
        ExprKind::Binary {
            op: op @ (Op::Equal | Op::NotEqual),
            left,
            right,
        } => {
            equality(run, *left, *right, (*op == Op::Equal) == truth);
        }
        ExprKind::Binary {
            op: op @ (Op::In | Op::NotIn),
            left,
            right,
        } => {
            if (*op == Op::In) == truth && is_fixed(run, *right) {
                cleanse(run, *left, ALL);
            } else if (*op == Op::In) == truth {
                // `base in path.resolve().parents`.
                if matches!(&module.expr(*right).kind, ExprKind::Member { name, .. } if module.word(*name) == "parents")
                {
                    cleanse(run, *right, SinkKind::Path.bit() | SinkKind::ZipSlip.bit());
                }
            } else {
                lacks(run, *right, *left);
            }
        }
        ExprKind::Binary {
            op: Op::Matches,
            left,
            right,
        } if truth => {
            let (a, b) = (run.quiet(*left), run.quiet(*right));
            match (&a.constant, &b.constant) {
                (_, Some(Const::Regex(p))) => cleanse(run, *left, strictness(p, false)),
                (Some(Const::Regex(p)), _) => cleanse(run, *right, strictness(p, false)),
                _ => {}
            }
        }
        // `indexOf(x) >= 0`, `> -1`; in C, a size within bounds.
        ExprKind::Binary {
            op: op @ (Op::GreaterEqual | Op::Greater | Op::Less | Op::LessEqual),
            left,
            right,
        } => {
            let is_over = matches!(op, Op::GreaterEqual | Op::Greater) == truth;
            if is_over {
                index_of(run, *left);
            }
            if matches!(run.language, FlowLanguage::C | FlowLanguage::Cpp) {
                let (small, large) = if is_over {
                    (*right, *left)
                } else {
                    (*left, *right)
                };
                if run.quiet(large).deep().is_none() {
                    cleanse(run, small, SinkKind::Memory.bit());
                }
            }
        }
        ExprKind::IsType { of, ty } => {
            let word = module.word(*ty);
            if truth && names::is_number(word) {
                cleanse(run, *of, ALL);
            } else if truth && matches!(word, "str" | "string" | "String") {
                cleanse(
                    run,
                    *of,
                    SinkKind::NoSql.bit()
                        | SinkKind::MassAssignment.bit()
                        | SinkKind::Prototype.bit(),
                );
            }
        }
        ExprKind::Call { callee, args } => called(run, test, *callee, args, truth),
        // A table of allowed values: `ALLOWED[x]`.
        ExprKind::Index { of, key } if truth && is_fixed(run, *of) => cleanse(run, *key, ALL),
        ExprKind::Name(name) => {
            // A variable that holds the outcome of a check.
            if let Some(check) = run.outcome(*name)
                && !run.is_in_outcome
            {
                run.is_in_outcome = true;
                assume(run, check, truth);
                run.is_in_outcome = false;
            }
        }
        _ => {}
    }
}

/// Returns the variable that is false if a part of a condition has this outcome: `x` of `!x`.
///
/// Only parts of an alternative count, such as `x && !is_valid(x)` before a return: in a single
/// condition, the test itself can have assigned the variable, and `x !== true` says nothing.
fn without_text(run: &FlowRun<'_>, part: ExprId, truth: bool) -> Option<Sym> {
    match &run.module.expr(part).kind {
        ExprKind::Not(of) => without_text(run, *of, !truth),
        ExprKind::Pass(of) => without_text(run, *of, truth),
        ExprKind::Name(name) => (!truth).then_some(*name),
        _ => None,
    }
}

/// Applies that a variable is false as a condition: it has no text, such as `""` and `null`.
/// This is no check of the value, so sinks that wait for a later check stay.
fn is_empty(run: &mut FlowRun<'_>, name: Sym) {
    let variable = run.variable(name);
    if let Some(v) = run.env.get(variable)
        && v.taints.is_some()
        && v.items.is_none()
    {
        let v = v.clean(ALL);
        run.env.set(variable, v);
    }
}

/// Applies that the condition of an `if`, which is nothing but a variable, is false.
pub(super) fn assume_no_text(run: &mut FlowRun<'_>, test: ExprId) {
    if let ExprKind::Name(name) = &run.module.expr(test).kind {
        is_empty(run, *name);
    }
}

/// Applies the facts that hold regardless of which part of a condition decides: `a == 1 || a == 2`.
fn one_of(run: &mut FlowRun<'_>, test: ExprId, op: Op) {
    let mut leaves = Vec::new();
    let mut at = test;
    loop {
        match &run.module.expr(at).kind {
            ExprKind::Binary { op: o, left, right } if *o == op => {
                leaves.push(*right);
                at = *left;
            }
            ExprKind::Pass(of) => at = *of,
            _ => break,
        }
    }
    leaves.push(at);
    if leaves.len() > 12 {
        return;
    }
    let is_or = op == Op::Or;
    let mut out: Option<Env> = None;
    for leaf in leaves.into_iter().rev() {
        let before = run.env.clone();
        assume(run, leaf, is_or);
        if let Some(name) = without_text(run, leaf, is_or) {
            is_empty(run, name);
        }
        let holds = std::mem::replace(&mut run.env, before);
        out = super::run::join_envs(out, Some(holds));
        assume(run, leaf, !is_or);
    }
    if let Some(env) = out {
        run.env = env;
    }
}

fn equality(run: &mut FlowRun<'_>, left: ExprId, right: ExprId, is_equal: bool) {
    let (a, b) = (run.quiet(left), run.quiet(right));
    let module = run.module;
    if !is_equal {
        // `if (part === "..") return` in a loop over `path.split("/")`.
        for (of, other) in [(left, &b), (right, &a)] {
            if matches!(&other.constant, Some(Const::Text(t)) if &**t == "..")
                && matches!(&module.expr(of).kind, ExprKind::Name(n) if run.segments.contains(n))
            {
                cleanse(run, of, SinkKind::Path.bit() | SinkKind::ZipSlip.bit());
            }
        }
    }
    // `m.indexOf(x) !== -1`, `strpos(x, base) === 0`, `typeof x === "number"`,
    // `matches() == false`.
    for (of, other) in [(left, &b), (right, &a)] {
        match &other.constant {
            Some(Const::Int(-1)) if !is_equal => index_of(run, of),
            // `x.indexOf("..") === -1`, `strpos($x, "..") === false`.
            Some(Const::Int(-1)) => searched(run, of),
            Some(Const::Bool(false)) if is_equal && is_prefix_search(run, of) => searched(run, of),
            Some(Const::Bool(t)) => assume(run, of, *t == is_equal),
            // `re.match(p, x)` compared with `None`.
            Some(Const::Null) => assume(run, of, !is_equal),
            Some(Const::Int(0)) if is_equal && is_prefix_search(run, of) => prefix_search(run, of),
            Some(Const::Int(1)) if is_equal => assume(run, of, true),
            Some(Const::Int(0)) if !is_equal => assume(run, of, true),
            _ => {}
        }
    }
    if is_equal {
        if is_constant_value(&b)
            && !matches!(&module.expr(left).kind, ExprKind::Call { .. } if is_count(run, left))
        {
            cleanse(run, left, ALL);
        } else if is_constant_value(&a) {
            cleanse(run, right, ALL);
        } else if is_listed(run, right) && b.deep().is_none() {
            // `for allowed in LIST: if x == allowed`.
            cleanse(run, left, ALL);
        } else if is_listed(run, left) && a.deep().is_none() {
            cleanse(run, right, ALL);
        } else if is_common_path(run, left) && is_own(&b) {
            // `os.path.commonpath([base, path]) == base`.
            cleanse(run, left, SinkKind::Path.bit() | SinkKind::ZipSlip.bit());
        } else if is_common_path(run, right) && is_own(&a) {
            cleanse(run, right, SinkKind::Path.bit() | SinkKind::ZipSlip.bit());
        } else if let Some(whole) = leading_part(run, right).filter(|_| is_own(&a)) {
            // `realpath($base) === substr(realpath($path), 0, strlen($base))`.
            cleanse(run, whole, SinkKind::Path.bit() | SinkKind::ZipSlip.bit());
        } else if let Some(whole) = leading_part(run, left).filter(|_| is_own(&b)) {
            cleanse(run, whole, SinkKind::Path.bit() | SinkKind::ZipSlip.bit());
        } else if b.deep().is_none() && a.deep().is_some() && is_derived(run, left) {
            // `parsed.hostname == settings.HOST`.
            cleanse(run, left, ALL);
        } else if a.deep().is_none()
            && b.deep().is_some()
            && is_derived(run, right)
            && is_derived(run, left)
        {
            // `own.netloc == parsed.netloc`.
            cleanse(run, right, ALL);
        } else if is_name(run, left) && is_name(run, right) && b.deep().is_none() {
            // `path === root || path.startsWith(root + sep)`.
            cleanse(run, left, SinkKind::Path.bit() | SinkKind::ZipSlip.bit());
        } else if is_derived(run, left) && is_own_host(run, right) {
            cleanse(run, left, SinkKind::Redirect.bit());
        } else if is_derived(run, right) && is_own_host(run, left) {
            cleanse(run, right, SinkKind::Redirect.bit());
        }
    }
}

/// Returns true for a variable.
fn is_name(run: &FlowRun<'_>, id: ExprId) -> bool {
    matches!(run.module.expr(id).kind, ExprKind::Name(_))
}

/// Returns true for a call that returns the folder that several paths are in.
fn is_common_path(run: &FlowRun<'_>, id: ExprId) -> bool {
    callee_name(run, id) == Some("commonpath")
}

/// Returns true for the name of the host to which the request was sent. An attacker chooses it for
/// own requests only, and not when a user follows a link.
fn is_own_host(run: &FlowRun<'_>, id: ExprId) -> bool {
    const NAMES: [&str; 7] = [
        "$_SERVER['HTTP_HOST']",
        "$_SERVER[\"HTTP_HOST\"]",
        "$_SERVER['SERVER_NAME']",
        "$request->getHost()",
        "request.host",
        "req.hostname",
        "req.headers.host",
    ];
    let text = run.source_text(run.module.expr(id).span);
    NAMES.contains(&text) || text.ends_with("->getUri()->getHost()")
}

/// Returns true for the variable of a loop over a collection that the program chose.
fn is_listed(run: &FlowRun<'_>, id: ExprId) -> bool {
    matches!(&run.module.expr(id).kind, ExprKind::Name(n) if run.listed.contains(n))
}

/// Returns the text whose start an expression reads: `p` of `substr($p, 0, $n)`, `p.slice(0, n)`.
fn leading_part(run: &FlowRun<'_>, id: ExprId) -> Option<ExprId> {
    let module = run.module;
    let ExprKind::Call { callee, args } = &module.expr(id).kind else {
        return None;
    };
    let (text, first) = match (&module.expr(*callee).kind, args.as_slice()) {
        (ExprKind::Name(n), [text, first, _]) if is_part_word(module.word(*n)) => {
            (text.value, first)
        }
        (ExprKind::Member { of, name }, [first, _]) if is_part_word(module.word(*name)) => {
            (*of, first)
        }
        _ => return None,
    };
    matches!(module.expr(first.value).kind, ExprKind::Int(0)).then_some(text)
}

/// Returns true for a value without data from outside.
fn is_own(value: &FlowValue) -> bool {
    let data = value.deep();
    data.iter()
        .flat_map(|t| t.iter())
        .all(|t| t.proof == super::Proof::Unknown)
}

/// Returns true for functions that read a part of a text from one position to another.
fn is_part_word(word: &str) -> bool {
    matches!(
        word,
        "substr" | "mb_substr" | "slice" | "substring" | "Substring"
    )
}

/// Returns true for a constant text or number.
fn is_constant_value(value: &FlowValue) -> bool {
    matches!(
        value.constant,
        Some(Const::Text(_) | Const::Int(_) | Const::Float(_))
    )
}

/// Applies the absence of a part in a text: without `..` the text stays in its folder, without a
/// line end it stays in its line.
fn lacks(run: &mut FlowRun<'_>, text: ExprId, part: ExprId) {
    let Some(Const::Text(part)) = run.quiet(part).constant else {
        return;
    };
    let kinds = match &*part {
        ".." | "../" | "/" | "\\" => SinkKind::Path.bit() | SinkKind::ZipSlip.bit(),
        "\n" | "\r" | "\r\n" => {
            SinkKind::Log.bit() | SinkKind::Header.bit() | SinkKind::Email.bit()
        }
        "<" | "&" => SinkKind::Html.bit(),
        "'" => SinkKind::Sql.bit() | SinkKind::XPath.bit(),
        "$" => SinkKind::NoSql.bit(),
        "__proto__" => SinkKind::Prototype.bit(),
        _ => 0,
    };
    cleanse(run, text, kinds);
}

fn is_count(run: &FlowRun<'_>, id: ExprId) -> bool {
    matches!(
        callee_name(run, id),
        Some("len" | "count" | "strlen" | "size" | "length")
    )
}

/// Returns true for a member or call on data, such as `urlparse(x).netloc`.
fn is_derived(run: &FlowRun<'_>, id: ExprId) -> bool {
    match run.module.expr(id).kind {
        ExprKind::Member { .. } | ExprKind::Call { .. } => true,
        // An entry with a name, such as `$parts['host']`.
        ExprKind::Index { key, .. } => matches!(run.module.expr(key).kind, ExprKind::Text(_)),
        _ => false,
    }
}

fn callee_name<'a>(run: &'a FlowRun<'_>, id: ExprId) -> Option<&'a str> {
    let ExprKind::Call { callee, .. } = &run.module.expr(id).kind else {
        return None;
    };
    match &run.module.expr(*callee).kind {
        ExprKind::Name(n) | ExprKind::Member { name: n, .. } => Some(run.module.word(*n)),
        _ => None,
    }
}

fn is_prefix_search(run: &FlowRun<'_>, id: ExprId) -> bool {
    matches!(
        callee_name(run, id),
        Some(
            "strpos"
                | "indexOf"
                | "stripos"
                | "strncmp"
                | "compare"
                | "find"
                | "IndexOf"
                | "mb_strpos"
        )
    )
}

/// Applies that a part was not found in a text.
fn searched(run: &mut FlowRun<'_>, id: ExprId) {
    let module = run.module;
    let ExprKind::Call { callee, args } = &module.expr(id).kind else {
        return;
    };
    match (&module.expr(*callee).kind, args.as_slice()) {
        (ExprKind::Member { of, .. }, [part]) => lacks(run, *of, part.value),
        (_, [text, part, ..]) => lacks(run, text.value, part.value),
        _ => {}
    }
}

/// Applies a prefix check: `strpos(x, base) === 0`, `x.indexOf(base) === 0`, `strncmp(x, base, n)
/// == 0`.
fn prefix_search(run: &mut FlowRun<'_>, id: ExprId) {
    let module = run.module;
    let ExprKind::Call { callee, args } = &module.expr(id).kind else {
        return;
    };
    let kinds = SinkKind::Path.bit()
        | SinkKind::Url.bit()
        | SinkKind::Redirect.bit()
        | SinkKind::ZipSlip.bit();
    if let ExprKind::Member { of, .. } = &module.expr(*callee).kind {
        cleanse(run, *of, kinds);
    } else if let Some(a) = args.first() {
        cleanse(run, a.value, kinds);
    }
}

fn index_of(run: &mut FlowRun<'_>, id: ExprId) {
    let module = run.module;
    let ExprKind::Call { callee, args } = &module.expr(id).kind else {
        return;
    };
    let ExprKind::Member { of, name } = &module.expr(*callee).kind else {
        return;
    };
    // `Array.IndexOf(list, x)`, or `list.indexOf(x)`.
    let (list, sought) = match args.as_slice() {
        [list, sought] if is_array_class(run, *of) => (list.value, Some(sought)),
        _ => (*of, args.first()),
    };
    if let ("indexOf" | "IndexOf" | "index" | "findIndex" | "search", Some(a)) =
        (module.word(*name), sought)
        && is_fixed(run, list)
    {
        cleanse(run, a.value, ALL);
    }
}

/// Returns true for the class `Array` of C#, whose methods take the list as an argument.
fn is_array_class(run: &FlowRun<'_>, id: ExprId) -> bool {
    matches!(run.module.expr(id).kind, ExprKind::Name(n) if run.module.word(n) == "Array")
}

/// Returns true for a collection that the program chose: a literal of constants, or a name without
/// data.
pub(super) fn is_fixed(run: &mut FlowRun<'_>, id: ExprId) -> bool {
    let v = run.quiet(id);
    if v.deep().is_some() {
        return false;
    }
    match &v.items {
        Some(_) => true,
        // A constant of the module, a setting, a field.
        None => matches!(
            run.module.expr(id).kind,
            ExprKind::Name(_)
                | ExprKind::Member { .. }
                | ExprKind::Call { .. }
                | ExprKind::Collection(_)
        ),
    }
}

/// Applies a statement that calls a function which raises an error for an invalid value:
/// `validate(x)`, `assert_allowed(x)`.
pub(super) fn after(run: &mut FlowRun<'_>, id: ExprId) {
    let module = run.module;
    let call = match &module.expr(id).kind {
        ExprKind::Call { .. } => id,
        ExprKind::Pass(of) => *of,
        _ => return,
    };
    let ExprKind::Call { callee, args } = &module.expr(call).kind else {
        return;
    };
    let (of, name) = match &module.expr(*callee).kind {
        ExprKind::Name(n) => (None, *n),
        ExprKind::Member { of, name } => (Some(*of), *name),
        _ => return,
    };
    if let Some(f) = run.local_function(*callee) {
        return local_check(run, f, args, None);
    }
    let lower = module.word(name).to_ascii_lowercase();
    if matches!(
        lower.as_str(),
        "abort"
            | "exit"
            | "die"
            | "_exit"
            | "halt"
            | "panic"
            | "notfound"
            | "fatal"
            | "fatalf"
            | "log_fatal"
    ) {
        let base = of.map(|o| run.quiet(o));
        if base.is_none_or(|b| b.what == What::Other) {
            run.is_alive = false;
        }
        return;
    }
    if let ("relative_to", Some(of)) = (lower.as_str(), of) {
        return cleanse(run, of, SinkKind::Path.bit() | SinkKind::ZipSlip.bit());
    }
    let starts = ["validate", "assert", "ensure", "require", "verify", "check"];
    let says = [
        "valid", "safe", "allow", "path", "url", "host", "name", "permit", "trusted", "input",
        "within",
    ];
    if starts.iter().any(|w| lower.starts_with(w)) && says.iter().any(|w| lower.contains(w)) {
        for a in args {
            cleanse(run, a.value, ALL);
        }
    }
}

/// Marks the target of an expression as harmless for kinds.
pub(super) fn cleanse(run: &mut FlowRun<'_>, id: ExprId, kinds: u32) {
    if kinds == 0 || !run.enter() {
        return;
    }
    cleanse_inside(run, id, kinds);
    run.leave();
}

/// Returns true for the languages in which `x || ""` is `x` or the text. In the others it is a truth
/// value.
fn or_returns_operand(language: FlowLanguage) -> bool {
    matches!(
        language,
        FlowLanguage::JavaScript
            | FlowLanguage::TypeScript
            | FlowLanguage::Tsx
            | FlowLanguage::Python
            | FlowLanguage::Ruby
    )
}

fn cleanse_inside(run: &mut FlowRun<'_>, id: ExprId, kinds: u32) {
    let module = run.module;
    match &module.expr(id).kind {
        ExprKind::Name(name) => {
            clean_variable(run, *name, kinds);
            // The value that the variable was derived from: `host = urlparse(x).hostname`.
            for (from, through) in run.sources_of(*name) {
                if from != *name && kinds & through != 0 {
                    clean_variable(run, from, kinds & through);
                }
            }
        }
        ExprKind::Pass(of) | ExprKind::Cast { of, .. } => cleanse(run, *of, kinds),
        // `in_array($x ?? "", NAMES)` and `/^a+$/.test(x || "")` are about `x`: an `x` that is not
        // the result is empty.
        ExprKind::Binary {
            op: op @ (Op::Else | Op::Or),
            left,
            ..
        } if *op == Op::Else || or_returns_operand(run.language) => cleanse(run, *left, kinds),
        ExprKind::Assign { target, .. } => cleanse(run, *target, kinds),
        ExprKind::Member { of, name } => {
            let hash = hash(run, id);
            run.env.check(hash, kinds);
            // `urlparse(x).hostname in HOSTS` is about `x`.
            cleanse(run, *of, kinds_before(kinds, module.word(*name)));
        }
        ExprKind::Index { of, key } => {
            let hash = hash(run, id);
            run.env.check(hash, kinds);
            // `parse_url($x)['host'] === NAME` is about `$x`.
            if let ExprKind::Text(part) = &module.expr(*key).kind
                && is_host_part(part)
            {
                clean_address(run, *of, kinds_before(kinds, part));
            }
        }
        ExprKind::Call { callee, args } => {
            let hash = hash(run, id);
            run.env.check(hash, kinds);
            match &module.expr(*callee).kind {
                // `x.lower() in NAMES`, `os.path.realpath(x).startswith(base)`.
                ExprKind::Member { of, name } => {
                    let is_paths = matches!(&module.expr(*of).kind, ExprKind::Name(n) if matches!(module.word(*n), "Paths" | "Path"));
                    let kinds =
                        kinds_before(kinds, if is_paths { "Path" } else { module.word(*name) });
                    if kinds != 0 {
                        cleanse(run, *of, kinds);
                        args.iter().for_each(|a| cleanse(run, a.value, kinds));
                    }
                }
                ExprKind::Name(name) => {
                    let kinds = kinds_before(kinds, module.word(*name));
                    args.iter().for_each(|a| cleanse(run, a.value, kinds));
                }
                _ => {}
            }
        }
        ExprKind::New { class, args } => {
            let kinds = match &module.expr(*class).kind {
                ExprKind::Name(n) | ExprKind::Member { name: n, .. } => {
                    kinds_before(kinds, module.word(*n))
                }
                _ => 0,
            };
            args.iter().for_each(|a| cleanse(run, a.value, kinds));
        }
        ExprKind::Collection(items) => items.iter().for_each(|i| cleanse(run, i.value, kinds)),
        _ => {}
    }
}

/// Excludes kinds for the address that an expression was parsed from: `$x` of `parse_url($x)`. A
/// variable that was not parsed is a record, whose other entries are not checked.
fn clean_address(run: &mut FlowRun<'_>, parsed: ExprId, kinds: u32) {
    match &run.module.expr(parsed).kind {
        ExprKind::Name(name) => {
            for (from, through) in run.sources_of(*name) {
                if from != *name && kinds & through != 0 {
                    clean_variable(run, from, kinds & through);
                }
            }
        }
        ExprKind::Call { .. } => cleanse(run, parsed, kinds),
        _ => {}
    }
}

/// Returns true for the part of an address that decides which server it is.
fn is_host_part(name: &str) -> bool {
    matches!(name, "host" | "hostname" | "netloc")
}

/// Returns the kinds that a check of the result of a member or call excludes for its operand, too.
fn kinds_before(kinds: u32, word: &str) -> u32 {
    kinds & names::transparent(word)
}

fn clean_variable(run: &mut FlowRun<'_>, name: Sym, kinds: u32) {
    let variable = run.variable(name);
    let Some(v) = run.env.get(variable).or_else(|| run.globals.get(variable)) else {
        return;
    };
    if run.silence == 0 {
        for t in v.taints.iter().flat_map(|t| t.iter()) {
            if !run.checked.contains(&(t.origin, kinds)) && run.checked.len() < 1000 {
                run.checked.push((t.origin, kinds));
            }
        }
    }
    let v = v.clean(kinds);
    run.env.set(variable, v);
}

/// Returns a hash of the source text of an expression.
pub(super) fn hash(run: &FlowRun<'_>, id: ExprId) -> u64 {
    let text = run.source_text(run.module.expr(id).span);
    let mut h = std::hash::DefaultHasher::new();
    for part in text.split_ascii_whitespace() {
        h.write(part.as_bytes());
    }
    h.finish()
}
