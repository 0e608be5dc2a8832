//! Parses the arguments of tool calls. Each error is explained in the result.

use crate::ai::tree::Tree;
use crate::diff::{LineNo, RepoPath};
use crate::untrusted::Inert;
use serde_json::Value;

/// Bytes of a name that a result repeats, at most.
const SHOWN: usize = 200;
/// Suggested names, at most.
const NEAR: usize = 3;

/// Returns the arguments as an object. Some providers send them as JSON text.
pub(super) fn object(arguments: &Value) -> Result<Value, String> {
    let object = match arguments {
        Value::Object(_) => Some(arguments.clone()),
        Value::String(text) => serde_json::from_str(text).ok().filter(Value::is_object),
        _ => None,
    };
    object.ok_or_else(|| "the arguments must be one JSON object".to_owned())
}

/// Returns a string, or an empty one if it is absent.
pub(super) fn string<'a>(arguments: &'a Value, name: &str) -> Result<&'a str, String> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(s)) => Ok(s),
        Some(_) => Err(format!("{name} must be a string")),
    }
}

/// Returns a line number given as a number or string. Values below 1 become 1.
pub(super) fn line(arguments: &Value, name: &str) -> Result<Option<LineNo>, String> {
    let number = match arguments.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Number(n)) => n.as_f64(),
        Some(Value::String(s)) => s.trim().parse().ok(),
        Some(_) => None,
    };
    let number = number
        .filter(|n| n.is_finite())
        .ok_or_else(|| format!("{name} must be a line number"))?;
    // The cast saturates.
    Ok(LineNo::new((number as u32).max(1)))
}

/// Returns the file of the tree with the path in `path`.
pub(super) fn file<'t>(tree: &'t Tree<'_>, arguments: &Value) -> Result<&'t RepoPath, String> {
    let given = string(arguments, "path")?.trim();
    if given.is_empty() {
        return Err("path is missing: name a file, from the top of the repository".to_owned());
    }
    let shown = shown(tree, given);
    let name = inside(given).map_err(|why| format!("{shown} {why}"))?;
    let wanted = RepoPath::from(name);
    if crate::ai::redact::is_sensitive(&wanted) {
        return Err(format!(
            "{shown} may contain credentials, so its content is not shown. Judge by its name."
        ));
    }
    let paths = tree
        .paths()
        .map_err(|e| format!("the tree cannot be listed: {}", Inert::new(&e.message)))?;
    if let Ok(at) = paths.binary_search(&wanted) {
        return Ok(&paths[at]);
    }
    // A path that is not UTF-8 or that was redacted is accepted in the form in which it was shown.
    if let Some(found) = paths
        .iter()
        .find(|p| !is_simple(p) && (p.to_wire() == name || tree.name(p) == name))
    {
        return Ok(found);
    }
    // Accept the prefixes of a diff.
    if let Some(("a" | "b", rest)) = name.split_once('/')
        && let Ok(at) = paths.binary_search(&RepoPath::from(rest))
    {
        return Ok(&paths[at]);
    }
    let near = nearest(paths, name);
    let hint = match near.is_empty() {
        true => "list_files lists the files".to_owned(),
        false => format!(
            "did you mean {}?",
            near.iter()
                .map(|p| tree.name(p))
                .collect::<Vec<_>>()
                .join(", ")
        ),
    };
    Err(format!(
        "text file {shown} not found in the tree under review; {hint}"
    ))
}

/// Returns the given text in a form that is safe to repeat.
pub(super) fn shown(tree: &Tree<'_>, given: &str) -> String {
    let given = super::page::cut(given, SHOWN);
    format!("`{}`", Inert::new(tree.name(&RepoPath::from(&*given))))
}

/// Removes leading `./` from a path, and rejects paths that lead out of the tree.
pub(super) fn inside(given: &str) -> Result<&str, &'static str> {
    let mut name = given;
    while let Some(rest) = name.strip_prefix("./") {
        name = rest.trim_start_matches('/');
    }
    let out = "is outside of the tree under review: name a file from the top of the repository";
    let drive = name.as_bytes().get(1) == Some(&b':') && name.as_bytes()[0].is_ascii_alphabetic();
    if name.starts_with(['/', '~', '\\'])
        || drive
        || name.split(['/', '\\']).any(|p| p == "..")
        || name.contains('\0')
    {
        return Err(out);
    }
    if name.split('/').any(|p| p.eq_ignore_ascii_case(".git")) {
        return Err("is git's own: only the files under review are served");
    }
    Ok(name)
}

fn is_simple(path: &RepoPath) -> bool {
    path.as_bytes().iter().all(|b| matches!(b, b' '..=b'~'))
}

/// Returns the paths most similar to a wrong one, preferring the same file name.
fn nearest<'t>(paths: &'t [RepoPath], name: &str) -> Vec<&'t RepoPath> {
    let last = name.rsplit('/').next().unwrap_or(name);
    let same: Vec<_> = paths
        .iter()
        .filter(|p| p.file_name() == last.as_bytes())
        .take(NEAR)
        .collect();
    if !same.is_empty() {
        return same;
    }
    let mut near: Vec<_> = paths
        .iter()
        .take(20_000)
        .filter_map(|p| {
            Some((
                strsim::jaro_winkler(std::str::from_utf8(p.as_bytes()).ok()?, name),
                p,
            ))
        })
        .filter(|(score, _)| *score > 0.85)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    near.into_iter().take(NEAR).map(|(_, p)| p).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Parses a line number in the arguments of a call.
    fn first(value: &Value) -> Result<Option<u32>, String> {
        line(&json!({ "first": value }), "first").map(|l| l.map(LineNo::get))
    }

    #[test]
    fn a_line_number_may_be_written_in_many_ways() {
        for (given, read) in [
            (json!(42), Some(42)),
            (json!("42"), Some(42)),
            (json!(42.0), Some(42)),
            (json!(null), None),
        ] {
            assert_eq!(first(&given), Ok(read), "{given}");
        }
        for given in [json!(0), json!(-7), json!("-1")] {
            assert_eq!(first(&given), Ok(Some(1)), "{given}");
        }
        assert_eq!(first(&json!(1e300)), Ok(Some(u32::MAX)));
        for given in [json!("x"), json!([1]), json!(true), json!("NaN")] {
            assert!(first(&given).is_err(), "{given}");
        }
    }

    #[test]
    fn a_path_that_leads_out_is_refused_by_its_name() {
        for out in [
            "/etc/passwd",
            "..",
            "../x",
            "a/../../x",
            "~/.ssh/id",
            "C:\\x",
            "\\\\x",
            "a\0b",
            ".git/config",
            "a/.GIT/x",
        ] {
            assert!(inside(out).is_err(), "{out}");
        }
        for (given, name) in [
            ("a/b.rs", "a/b.rs"),
            ("./a", "a"),
            (".//./a", "a"),
            ("..a/b..c", "..a/b..c"),
        ] {
            assert_eq!(inside(given), Ok(name));
        }
    }

    #[test]
    fn arguments_may_come_as_text() {
        assert_eq!(
            object(&json!("{\"path\": \"a\"}")),
            Ok(json!({"path": "a"}))
        );
        for wrong in [json!("[1]"), json!("{"), json!(1), json!(null)] {
            assert!(object(&wrong).is_err());
        }
    }
}
