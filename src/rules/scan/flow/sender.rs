//! Data and cookies of programs that are clients themselves.

use super::line_around;
use crate::rules::flow::{Flow, FlowSubject, SinkKind};

/// Label of fields of forms in the table of C#. Web Forms and desktop programs call them alike.
const FORM_FIELD: &str = "form field";
/// Imports of libraries for windows of the desktop in C#.
const DESKTOP: &[&[u8]] = &[
    b"using System.Windows.Forms;",
    b"using System.Windows.Controls;",
    b"using Microsoft.UI.Xaml",
    b"using Avalonia",
];
/// Names of Web Forms.
const WEB: &[u8] = b"System.Web";

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
        && DESKTOP.iter().any(|name| contains(text, name))
        && !contains(text, WEB)
}

/// Returns true if a cookie of Go is made for a request that the program sends: by `AddCookie`,
/// which only requests have, or by `SetCookie` of the client library resty.
pub(super) fn is_of_client(f: &Flow, text: &[u8]) -> bool {
    const RESTY: &[u8] = b"\"github.com/go-resty/resty";
    /// The context of this framework has a `SetCookie` for responses.
    const ECHO: &[u8] = b"\"github.com/labstack/echo";
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
    before.ends_with(b".AddCookie(")
        || before.ends_with(b".SetCookie(") && contains(text, RESTY) && !contains(text, ECHO)
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(text, part).is_some()
}
