//! Data and cookies of programs that are clients themselves.

use super::line_around;
use crate::rules::flow::{Flow, FlowSubject, SinkKind};
use crate::rules::language::Languages;
use crate::rules::lexer::{self, Place};

/// Label of fields of forms in the table of C#. Web Forms and desktop programs call them alike.
const FORM_FIELD: &str = "form field";
/// Parts of the names of frameworks for the web. They count wherever they are in a file.
const WEB: &[&[u8]] = &[b"System.Web", b"AspNetCore"];

/// Returns true if the value of a flow is what the user of a desktop program has typed. A database
/// or a directory can be shared with other users, so their statements count.
pub(super) fn is_of_desktop(f: &Flow, text: &[u8]) -> bool {
    const SHARED: [SinkKind; 4] = [
        SinkKind::Sql,
        SinkKind::NoSql,
        SinkKind::Ldap,
        SinkKind::XPath,
    ];
    let is_shared = matches!(f.subject, FlowSubject::Flow(kind) if SHARED.contains(&kind));
    f.source_label == FORM_FIELD
        && !is_shared
        && !WEB.iter().any(|name| contains(text, name))
        && imports_no_web(text)
}

/// Returns true if the code of a file in C# has imports, none of which is of a framework for the
/// web: a page of Web Forms imports `System.Web`. Some files of a desktop program leave the import
/// of its library for windows to the project. A file that leaves code out by conditions does not
/// count, and neither does an import in a comment or a string. A snippet without imports can be a
/// page.
fn imports_no_web(text: &[u8]) -> bool {
    let mut code = text.to_vec();
    for range in lexer::not_code(Languages::of(b"a.cs", b""), text) {
        code[range].fill(b' ');
    }
    let mut lines = code.split(|b| *b == b'\n').map(<[u8]>::trim_ascii);
    !contains(&code, b"#if") && lines.any(is_import)
}

/// Returns true for a line that imports a namespace in C#.
fn is_import(line: &[u8]) -> bool {
    let name = line
        .strip_prefix(b"using ")
        .and_then(|rest| rest.strip_suffix(b";"));
    name.is_some_and(|name| {
        !name.is_empty()
            && name
                .iter()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_'))
    })
}

/// Returns true if a cookie is made for a request that the program sends, or if it is deleted.
///
/// - `AddCookie` of Go, which only requests have, and `SetCookie` of the client library resty.
///   A call that goes on behind `SetCookie(…)` is one of resty too: the methods of frameworks with
///   this name have no result, so such code would not compile.
/// - The options of `Cookies.Delete` in C#, which name the deleted cookie.
pub(super) fn is_of_client(f: &Flow, text: &[u8]) -> bool {
    let Some(sink) = f.sink().filter(|sink| sink.start <= text.len()) else {
        return false;
    };
    let before = &text[line_around(text, sink.start).start..sink.start];
    if is_deleted(before) {
        return true;
    }
    // The step can start inside of the name of the type: `&http.Cookie{`.
    let is_of_name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.');
    let end = before
        .iter()
        .rposition(|b| !is_of_name(b))
        .map_or(0, |at| at + 1);
    let before = before[..end].strip_suffix(b"&").unwrap_or(&before[..end]);
    // The dot of a chain is often at the end of the line above.
    let sets = before.ends_with(b".SetCookie(") || before.trim_ascii_start() == b"SetCookie(";
    before.ends_with(b".AddCookie(") || sets && (goes_on(text, sink.end) || imports_resty(text))
}

/// Returns true if the text on the line before the options of a cookie calls `Cookies.Delete`.
fn is_deleted(before: &[u8]) -> bool {
    const DELETE: &[u8] = b".Cookies.Delete(";
    let at = memchr::memmem::rfind(before, DELETE);
    at.is_some_and(|at| !has_any(&before[at + DELETE.len()..], b"();{}"))
}

/// Returns true if a call follows the parenthesis behind an argument that ends at a byte:
/// `.SetCookie(&http.Cookie{…}).Get(url)`.
fn goes_on(text: &[u8], end: usize) -> bool {
    let rest = text.get(end..).unwrap_or_default().trim_ascii_start();
    let rest = rest.strip_prefix(b")").map(<[u8]>::trim_ascii_start);
    rest.is_some_and(|rest| rest.starts_with(b"."))
}

fn has_any(text: &[u8], bytes: &[u8]) -> bool {
    text.iter().any(|b| bytes.contains(b))
}

/// Returns true if a file of Go imports the client library resty in code, and names no framework
/// whose context has a `SetCookie` for responses.
fn imports_resty(text: &[u8]) -> bool {
    const RESTY: &[u8] = b"\"github.com/go-resty/resty";
    const SERVERS: [&[u8]; 2] = [b"labstack/echo", b"kataras/iris"];
    /// Words that start a declaration, before which all imports are.
    const DECLARATIONS: [&[u8]; 4] = [b"func", b"var", b"const", b"type"];
    let mut code = text.to_vec();
    for (range, place) in lexer::outline(b"a.go", text) {
        if place == Place::Comment {
            code[range].fill(b' ');
        }
    }
    let lines = code.split(|b| *b == b'\n').map(<[u8]>::trim_ascii);
    let mut imports =
        lines.take_while(|line| !DECLARATIONS.iter().any(|word| line.starts_with(word)));
    !SERVERS.iter().any(|name| contains(text, name)) && imports.any(|line| contains(line, RESTY))
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(text, part).is_some()
}

#[cfg(test)]
mod tests {
    use super::{goes_on, imports_no_web, imports_resty, is_deleted};

    #[test]
    fn an_import_counts_in_code_only() {
        const IMPORT: &str = "using System.Windows.Forms;";
        assert!(imports_no_web(
            format!("namespace A;\n{IMPORT}\n").as_bytes()
        ));
        for text in [
            format!("// {IMPORT}\n"),
            format!("/*\n{IMPORT}\n*/\n"),
            format!("var a = @\"\n{IMPORT}\n\";\n"),
            format!("#if NEVER\n{IMPORT}\n#endif\n"),
            "using var a = Open();\n".to_owned(),
            "label.Text = box.Text;\n".to_owned(),
        ] {
            assert!(!imports_no_web(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn a_deleted_cookie_is_recognized_by_the_call_on_its_line() {
        assert!(is_deleted(b"Response.Cookies.Delete(name, "));
        assert!(!is_deleted(
            b"Response.Cookies.Delete(name); Response.Cookies.Append(name, v, "
        ));
        assert!(!is_deleted(b"Response.Cookies.Append(Delete, v, "));
    }

    #[test]
    fn a_call_behind_set_cookie_is_one_of_a_client() {
        let text = b"c.SetCookie(&http.Cookie{}).\n  Get(u)\nc.SetCookie(&http.Cookie{})\n.5";
        assert!(goes_on(text, 26));
        assert!(!goes_on(b"c.SetCookie(&http.Cookie{})\nx.Get()", 26));
    }

    #[test]
    fn an_import_of_the_client_library_counts_in_code_only() {
        const IMPORT: &str = "\"github.com/go-resty/resty/v2\"";
        for (lines, expected) in [
            (format!("import {IMPORT}"), true),
            (format!("// import {IMPORT}"), false),
            (format!("/*\n{IMPORT}\n*/"), false),
            (format!("var a = `\n{IMPORT}\n`"), false),
            (
                format!("import {IMPORT}\n// github.com/kataras/iris"),
                false,
            ),
        ] {
            let text = format!("package a\n\n{lines}\n\nfunc f() {{}}\n");
            assert_eq!(imports_resty(text.as_bytes()), expected, "{text}");
        }
    }
}
