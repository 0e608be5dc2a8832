//! Data and cookies of programs that are clients themselves.

use super::line_around;
use crate::rules::flow::{Flow, FlowSubject, SinkKind};
use crate::rules::language::Languages;
use crate::rules::lexer::{self, Place};

/// Label of fields of forms in the table of C#. Web Forms and desktop programs call them alike.
const FORM_FIELD: &str = "form field";
/// Imports of libraries for windows of the desktop in C#.
const DESKTOP: &[&[u8]] = &[
    b"using System.Windows.Forms;",
    b"using System.Windows.Controls;",
    b"using Microsoft.UI.Xaml",
    b"using Avalonia",
];
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
        && imports_desktop(text)
}

/// Returns true if a line of C# imports a library for windows of the desktop. An import in a
/// comment or a string does not count, and neither does one in a file that leaves code out by conditions.
fn imports_desktop(text: &[u8]) -> bool {
    let mut code = text.to_vec();
    for range in lexer::not_code(Languages::of(b"a.cs", b""), text) {
        code[range].fill(b' ');
    }
    let mut lines = code.split(|b| *b == b'\n').map(<[u8]>::trim_ascii);
    !contains(&code, b"#if") && lines.any(|line| DESKTOP.iter().any(|name| line.starts_with(name)))
}

/// Returns true if a cookie of Go is made for a request that the program sends: by `AddCookie`,
/// which only requests have, or by `SetCookie` of the client library resty.
pub(super) fn is_of_client(f: &Flow, text: &[u8]) -> bool {
    let Some(sink) = f.sink().filter(|sink| sink.start <= text.len()) else {
        return false;
    };
    let before = &text[line_around(text, sink.start).start..sink.start];
    // The step can start inside of the name of the type: `&http.Cookie{`.
    let is_of_name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.');
    let end = before
        .iter()
        .rposition(|b| !is_of_name(b))
        .map_or(0, |at| at + 1);
    let before = before[..end].strip_suffix(b"&").unwrap_or(&before[..end]);
    before.ends_with(b".AddCookie(") || before.ends_with(b".SetCookie(") && imports_resty(text)
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
    use super::{imports_desktop, imports_resty};

    #[test]
    fn an_import_counts_in_code_only() {
        const IMPORT: &str = "using System.Windows.Forms;";
        assert!(imports_desktop(
            format!("using System;\n{IMPORT}\n").as_bytes()
        ));
        for text in [
            format!("// {IMPORT}\n"),
            format!("/*\n{IMPORT}\n*/\n"),
            format!("var a = @\"\n{IMPORT}\n\";\n"),
            format!("#if NEVER\n{IMPORT}\n#endif\n"),
        ] {
            assert!(!imports_desktop(text.as_bytes()), "{text}");
        }
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
