//! Calls that check a value: functions of the file, of the table, and those that a name describes.

use super::super::paths::Calling;
use super::super::run::FlowRun;
use super::super::shape::{Arg, ExprId, ExprKind, FunctionId, Op, Sym};
use super::super::sink::{CallInfo, GivenArg};
use super::super::strictness::strictness;
use super::super::table::{Place, Role};
use super::super::value::{Const, FlowValue};
use super::super::{FlowLanguage, SinkKind};
use super::{ALL, cleanse, equality, hash, is_fixed, lacks};

/// Applies the facts that follow if a call used as a condition is true.
pub(super) fn called(run: &mut FlowRun<'_>, id: ExprId, callee: ExprId, args: &[Arg], truth: bool) {
    let module = run.module;
    let (of, name) = match &module.expr(callee).kind {
        ExprKind::Member { of, name } => (Some(*of), *name),
        ExprKind::Name(name) => (None, *name),
        _ => return,
    };
    let word = module.word(name);
    let base = of.map(|o| run.quiet(o));
    if tabled(run, id, (of, base.as_ref(), name), args, truth) && !is_regex_word(word) {
        return;
    }
    if let Some(f) = run.local_function(callee) {
        local_check(run, f, args, Some(truth));
        return;
    }
    let first = args.first().map(|a| a.value);
    match word {
        "equals" | "equalsIgnoreCase" | "eql?" | "Equals" | "contentEquals" => {
            if let (Some(of), Some(first)) = (of, first) {
                equality(run, of, first, truth);
            }
            return;
        }
        "isEmpty" | "empty" | "isset" | "isBlank" | "is_null" | "IsNullOrEmpty"
        | "IsNullOrWhiteSpace" | "nil?" | "blank?" | "present?" | "isNotBlank" | "isNotEmpty"
        | "len" | "endsWith" | "endswith" | "end_with?" | "HasSuffix" | "exists" | "isFile"
        | "isfile" | "bool" | "Boolean" | "is_string" | "file_exists" => return,
        _ => {}
    }
    if !truth {
        if let (
            "startsWith" | "startswith" | "start_with?" | "StartsWith" | "HasPrefix"
            | "str_starts_with",
            Some(a),
        ) = (word, first)
        {
            let (text, part) = match (of, args.get(1)) {
                (_, Some(p)) if matches!(word, "HasPrefix" | "str_starts_with") => (a, p.value),
                (Some(of), _) => (of, a),
                (None, _) => return,
            };
            if matches!(run.quiet(part).constant, Some(Const::Text(t)) if matches!(&*t, "//" | "/\\"))
            {
                slashes(run, text, 2);
            }
        }
        if let (
            "contains" | "includes" | "include?" | "Contains" | "str_contains" | "ContainsAny"
            | "ContainsRune" | "has",
            Some(first),
        ) = (word, first)
        {
            // `strings.Contains(x, "..")`, `x.contains("..")`.
            match (of, args.get(1)) {
                (_, Some(part)) => lacks(run, first, part.value),
                (Some(of), None) => lacks(run, of, first),
                (None, None) => {}
            }
        }
        return;
    }
    match word {
        // Membership in a collection that the program chose.
        "includes" | "contains" | "has" | "include?" | "containsKey" | "hasOwnProperty"
        | "Contains" | "ContainsKey" | "member?" | "key?" | "has_key?" | "containsValue"
        | "hasOwn" | "is_member" | "Includes" | "any" => {
            if word == "hasOwn" || word == "any" {
                if let Some(key) = args.get(1) {
                    cleanse(run, key.value, ALL);
                }
            } else if let (Some(of), Some(first)) = (of, first) {
                let subject = base.as_ref();
                if subject.is_some_and(|b| b.taints.is_none()) && is_fixed(run, of) {
                    cleanse(run, first, ALL);
                }
            }
        }
        "in_array" | "array_key_exists" | "Contains_" => {
            if let Some(first) = first {
                cleanse(run, first, ALL);
            }
        }
        "startsWith" | "startswith" | "start_with?" | "StartsWith" | "hasPrefix"
        | "str_starts_with" | "starts_with" | "HasPrefix" | "is_relative_to" | "IsSubPathOf"
        | "isRelativeTo" => {
            let kinds = SinkKind::Path.bit()
                | SinkKind::Url.bit()
                | SinkKind::Redirect.bit()
                | SinkKind::ZipSlip.bit();
            let is_function = matches!(word, "HasPrefix" | "str_starts_with") || of.is_none();
            if let Some(target) =
                (if is_function { first } else { of }).map(|t| without_separator(run, t))
            {
                prefix_check(
                    run,
                    target,
                    if is_function {
                        args.get(1).map(|a| a.value)
                    } else {
                        first
                    },
                    kinds,
                );
            }
        }
        "isdigit" | "isalnum" | "isnumeric" | "isdecimal" | "isalpha" | "isidentifier"
        | "isInteger" | "isFinite" | "is_numeric" | "is_int" | "ctype_digit" | "ctype_alnum"
        | "ctype_alpha" | "ctype_xdigit" | "isNumeric" | "isAlphanumeric" | "isUUID" | "isInt"
        | "isAlpha" | "isNaN" => {
            let target = if matches!(
                word,
                "isInteger"
                    | "isFinite"
                    | "isNumeric"
                    | "isUUID"
                    | "isInt"
                    | "isAlphanumeric"
                    | "isAlpha"
                    | "isNaN"
            ) {
                first
            } else {
                of.filter(|_| first.is_none()).or(first)
            };
            if let Some(t) = target.filter(|_| word != "isNaN") {
                cleanse(run, t, ALL);
            }
        }
        "find" | "search" | "is_match" | "lookingAt" | "containsMatchIn" => {
            regex_check(run, word, of, args);
        }
        _ if is_regex_word(word) => regex_check(run, word, of, args),
        _ => by_name(run, word, of, args),
    }
}

fn is_regex_word(word: &str) -> bool {
    matches!(
        word,
        "test"
            | "match"
            | "fullmatch"
            | "matches"
            | "preg_match"
            | "match?"
            | "IsMatch"
            | "MatchString"
            | "matchEntire"
    )
}

/// Applies a check by a function of this file: the facts about its parameters hold for the
/// arguments.
pub(super) fn local_check(run: &mut FlowRun<'_>, f: FunctionId, args: &[Arg], truth: Option<bool>) {
    if run.frames.len() > 5 {
        return;
    }
    let given: Vec<GivenArg> = args.iter().map(|a| run.given(a)).collect();
    for (a, kinds) in args.iter().zip(run.says(f, &given, truth).iter()) {
        cleanse(run, a.value, *kinds);
    }
}

/// Returns true if the table has a guard for the call.
fn tabled(
    run: &mut FlowRun<'_>,
    id: ExprId,
    callee: (Option<ExprId>, Option<&FlowValue>, Sym),
    args: &[Arg],
    truth: bool,
) -> bool {
    let module = run.module;
    let (of, base, name) = callee;
    let path = match (of, base) {
        (Some(_), Some(b)) => run.paths.member(b.path, name, module.word(name)),
        _ => run.free(name),
    };
    let path = run.paths.call(path, Calling::Plain);
    let hits = run.paths.hits(path);
    let mut is_known = false;
    for hit in hits.iter() {
        let Role::Guard(i) = hit.role else { continue };
        let Some(g) = run.table.guards.get(usize::from(i)) else {
            continue;
        };
        if g.negative == truth {
            is_known = true;
            continue;
        }
        if !g.when.is_empty() || !g.unless.is_empty() {
            let given: Vec<GivenArg> = args.iter().map(|a| run.given(a)).collect();
            let receiver = of.zip(base);
            let call = CallInfo {
                args: &given,
                receiver,
                span: module.expr(id).span,
            };
            if !run.applies(g.when, g.unless, &call) {
                continue;
            }
        }
        is_known = true;
        for place in g.args {
            match place {
                Place::Arg(n) => {
                    if let Some(a) = args.get(usize::from(*n)) {
                        cleanse(run, a.value, g.kinds);
                    }
                }
                Place::Receiver => {
                    if let Some(of) = of {
                        cleanse(run, of, g.kinds);
                    }
                }
                Place::All | Place::From(_) => {
                    args.iter().for_each(|a| cleanse(run, a.value, g.kinds));
                }
                Place::Keyword(_) | Place::Spread | Place::Result => {}
            }
        }
    }
    is_known
}

fn prefix_check(run: &mut FlowRun<'_>, target: ExprId, base: Option<ExprId>, kinds: u32) {
    let Some(base) = base else {
        return cleanse(run, target, kinds);
    };
    let b = run.quiet(base);
    if let Some(data) = b.deep() {
        let own = run.quiet(target).deep();
        if data.iter().any(|t| {
            t.proof == super::super::Proof::Request
                || (t.proof > super::super::Proof::Unknown
                    && own
                        .iter()
                        .flat_map(|o| o.iter())
                        .any(|o| o.origin == t.origin))
        }) {
            return;
        }
    }
    let mut kinds = kinds;
    if let Some(Const::Text(t)) = &b.constant {
        // `/` alone also starts `//evil.example`, and a scheme alone does not fix the host.
        if &**t == "/" {
            return slashes(run, target, 1);
        }
        if matches!(&**t, "http" | "http://" | "https://" | "https" | "") {
            return;
        }
        if t.starts_with("http") && super::super::constant::fixed_by(t) == 0 {
            return;
        }
        if !t.starts_with("http") && !t.starts_with('/') {
            kinds = ALL & !(SinkKind::Path.bit() | SinkKind::ZipSlip.bit());
            kinds &= SinkKind::Url.bit() | SinkKind::Redirect.bit() | SinkKind::Path.bit();
        }
    }
    cleanse(run, target, kinds);
}

/// Returns the path of a path to which a separator is appended: `p` of `p + os.sep`, which starts
/// with a folder as `p` does.
fn without_separator(run: &FlowRun<'_>, id: ExprId) -> ExprId {
    let module = run.module;
    let (path, end) = match &module.expr(id).kind {
        ExprKind::Binary {
            op: Op::Add,
            left,
            right,
        } => (*left, *right),
        ExprKind::Concat(parts) if parts.len() == 2 => (parts[0], parts[1]),
        ExprKind::Pass(of) => return without_separator(run, *of),
        _ => return id,
    };
    let is_separator = match &module.expr(end).kind {
        ExprKind::Text(text) => matches!(&**text, "/" | "\\"),
        ExprKind::Member { name, .. } => matches!(module.word(*name), "sep" | "separator"),
        _ => false,
    };
    if is_separator { path } else { id }
}

/// Applies a check for slashes: a text that starts with `/` (1) and not with `//` (2) is a path on
/// this site.
fn slashes(run: &mut FlowRun<'_>, text: ExprId, which: u64) {
    let hash = hash(run, text);
    run.env.check(hash.wrapping_add(which), 1);
    if run.env.checks(hash.wrapping_add(3 - which)) != 0 {
        cleanse(run, text, SinkKind::Redirect.bit() | SinkKind::Url.bit());
    }
}

/// Applies a check by a regular expression that only harmless text matches.
fn regex_check(run: &mut FlowRun<'_>, word: &str, of: Option<ExprId>, args: &[Arg]) {
    let base = of.map(|o| run.quiet(o));
    let is_full = matches!(word, "fullmatch" | "matches" | "matchEntire");
    if let (
        Some(FlowValue {
            constant: Some(Const::Regex(p)),
            ..
        }),
        Some(a),
    ) = (&base, args.first())
    {
        return cleanse(run, a.value, strictness(p, is_full));
    }
    // `pattern.matcher(x).matches()`.
    if let (Some(of), true) = (of, args.is_empty()) {
        let module = run.module;
        if let ExprKind::Call { callee, args } = &module.expr(of).kind
            && let ExprKind::Member { of: pattern, .. } = &module.expr(*callee).kind
            && let Some(a) = args.first()
            && let Some(Const::Regex(p)) = run.quiet(*pattern).constant
        {
            cleanse(run, a.value, strictness(&p, is_full));
        }
        return;
    }
    let values: Vec<FlowValue> = args.iter().map(|a| run.quiet(a.value)).collect();
    let pattern = values
        .iter()
        .position(|v| matches!(v.constant, Some(Const::Text(_) | Const::Regex(_))));
    let Some(at) = pattern else {
        return by_name(run, word, of, args);
    };
    let Some(Const::Text(p) | Const::Regex(p)) = values.get(at).and_then(|v| v.constant.clone())
    else {
        return;
    };
    let p: &str = if word == "preg_match" {
        p.get(1..)
            .and_then(|r| r.rsplit_once(|c: char| !c.is_ascii_alphabetic()))
            .map_or("", |r| r.0)
    } else {
        &p
    };
    // Python's `match` is anchored at the start.
    let anchored;
    let p = if word == "match" && run.language == FlowLanguage::Python && !p.starts_with('^') {
        anchored = format!("^{p}");
        anchored.as_str()
    } else {
        p
    };
    let kinds = strictness(p, is_full);
    let subject = args
        .iter()
        .enumerate()
        .find(|(i, _)| *i != at)
        .map(|(_, a)| a.value)
        .or(of);
    if let Some(s) = subject {
        cleanse(run, s, kinds);
    }
}

/// Applies a call of a function whose name indicates a check.
fn by_name(run: &mut FlowRun<'_>, word: &str, of: Option<ExprId>, args: &[Arg]) {
    let lower = word.to_ascii_lowercase();
    let says = [
        "valid",
        "safe",
        "allow",
        "whitelist",
        "permit",
        "trusted",
        "is_local",
        "islocal",
        "authoriz",
        "within",
        "inside",
        "known",
    ];
    if !says.iter().any(|w| lower.contains(w))
        || lower.contains("unsafe")
        || lower.contains("invalid")
    {
        return;
    }
    if args.is_empty() {
        if let Some(of) = of {
            cleanse(run, of, ALL);
        }
        return;
    }
    for a in args {
        cleanse(run, a.value, ALL);
    }
}
