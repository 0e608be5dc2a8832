//! How much a flow of data weighs: by the origin of the value, and by what an attacker gains.

use super::{line_around, sender};
use crate::finding::Severity;
use crate::policy::RuleProfile;
use crate::rules::flow::{Flow, FlowSubject, Proof, SinkKind, StepRole};
use crate::rules::language::Languages;
use crate::rules::report::ValueOrigin;

/// Sources that exist in the browser only, by their labels in the table of JavaScript.
pub(super) const OF_BROWSER: &[&str] = &[
    "address of the page",
    "page that links here",
    "name of the window",
    "cookie of the page",
    "storage of the browser",
    "input field",
];

/// Start of the names of environment variables that servers set to text of a client or of a pull
/// request: CGI (RFC 3875), sshd, GitHub Actions, GitLab CI and Jenkins.
const SET_BY_SERVERS: &[&str] = &[
    "HTTP_",
    "QUERY_STRING",
    "PATH_INFO",
    "REQUEST_URI",
    "SSH_ORIGINAL_COMMAND",
    "GITHUB_HEAD_REF",
    "CI_COMMIT_",
    "CI_MERGE_REQUEST_",
    "CHANGE_BRANCH",
    "CHANGE_TITLE",
];

/// Word in the labels of names and paths in archives.
const ARCHIVE: &str = "archive";
/// Bytes behind a source in which the name of its variable is searched.
const NAME_NEAR: usize = 100;

/// Returns true if the value comes from the command line or the environment of the program, and the
/// person who runs the program gains nothing by it. A program in C can have the rights of another
/// user, and servers set some variables to text of others.
pub(super) fn is_of_caller(f: &Flow, languages: Languages, text: &[u8]) -> bool {
    f.is_of_caller && !is_set_by_server(f, text) && !languages.any_of(&["c", "cpp"])
}

/// Returns true if the source of a flow names an environment variable that servers set to text of
/// others.
fn is_set_by_server(f: &Flow, text: &[u8]) -> bool {
    f.steps.first().is_some_and(|source| {
        // The name can be on a line below the source: `os.environ[`, `"HTTP_HOST"`, `]`.
        let start = line_around(text, source.start).start;
        let end = text.len().min(source.end + NAME_NEAR).max(start);
        let lines = &text[start..end];
        SET_BY_SERVERS
            .iter()
            .any(|name| memchr::memmem::find(lines, name.as_bytes()).is_some())
    })
}

/// Returns true if the source of a flow is the environment of a program in PHP, or the command line
/// of a script. Both are entries of the variable that also has the headers of a request.
///
/// With the setting `register_argc_argv`, a web server fills it from the address of the request, so
/// the file must say that it is a script.
pub(super) fn is_of_caller_in_php(f: &Flow, path: &[u8], text: &[u8]) -> bool {
    let source = f.steps.first().and_then(|s| text.get(s.start..));
    let name = source.and_then(entry_of_server);
    if name.is_some_and(is_of_environment) {
        return true;
    }
    // The whole text is searched only for such a read, because this is asked for every flow.
    if name != Some(b"argv") {
        return false;
    }
    text.starts_with(b"#!")
        || has_any(text, &[b"PHP_SAPI", b"php_sapi_name"])
        || path
            .split(|b| *b == b'/')
            .rev()
            .skip(1)
            .any(|folder| folder == b"bin")
}

/// Returns the name of the entry that an expression reads from the variable of the server:
/// `HTTP_HOST` of `$_SERVER['HTTP_HOST']`.
fn entry_of_server(read: &[u8]) -> Option<&[u8]> {
    let rest = read.strip_prefix(b"$_SERVER[")?;
    let (quote, rest) = rest.split_first()?;
    let end = rest.iter().take(NAME_NEAR).position(|b| b == quote)?;
    matches!(quote, b'\'' | b'"').then(|| &rest[..end])
}

/// Returns true for the name of an entry of `$_SERVER` that is a variable of the environment of the
/// server. Entries of a request have the names of CGI (RFC 3875, section 4.1), and servers add some.
fn is_of_environment(name: &[u8]) -> bool {
    const OF_REQUEST: [&[u8]; 21] = [
        b"HTTP_",
        b"REQUEST_",
        b"QUERY_STRING",
        b"PATH_",
        b"ORIG_",
        b"REDIRECT_",
        b"PHP_",
        b"AUTH_",
        b"REMOTE_",
        b"CONTENT_",
        b"SCRIPT_",
        b"SERVER_",
        b"DOCUMENT_",
        b"UNENCODED_",
        b"LOGON_",
        b"SSL_",
        b"GEOIP_",
        b"X_",
        b"CF_",
        b"TLS_",
        b"URL",
    ];
    let is_part = |b: &u8| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_';
    let is_variable = name.contains(&b'_') && name.iter().all(is_part);
    is_variable && !OF_REQUEST.iter().any(|start| name.starts_with(start))
}

/// Returns the highest severity of a flow of data that does not come from a request; `None`: that
/// of its rule. Who runs the program, and who writes its settings, files and records, chose the
/// value, and can mostly reach the same effect directly.
///
/// - Servers set some variables of the environment to text of others.
/// - A value of the caller in a command or code is `minor`: an error in it runs other commands.
/// - The profile `audit` keeps these findings above suggestions.
/// - An archive can come from another person than the one who opens it.
/// - A program in C can have the rights of another user, and its errors of memory are crashes.
pub(super) fn severity_by_origin(
    f: &Flow,
    origin: ValueOrigin,
    (languages, profile): (Languages, RuleProfile),
    text: &[u8],
) -> Option<Severity> {
    if !matches!(origin, ValueOrigin::Local | ValueOrigin::Caller) || is_set_by_server(f, text) {
        return None;
    }
    if languages.any_of(&["c", "cpp"]) {
        return None;
    }
    let is_of_caller = origin == ValueOrigin::Caller;
    match f.subject {
        FlowSubject::Flow(SinkKind::Path | SinkKind::ZipSlip) if is_of_caller => {
            Some(Severity::Suggestion)
        }
        FlowSubject::Flow(SinkKind::ZipSlip) => None,
        _ if f.source_label.contains(ARCHIVE) => None,
        FlowSubject::Flow(SinkKind::Code | SinkKind::Command) if is_of_caller => {
            Some(Severity::Minor)
        }
        _ if profile == RuleProfile::Default => Some(Severity::Suggestion),
        _ => None,
    }
}

/// Returns the highest severity of a flow by what an attacker gains; `None`: that of its rule.
///
/// - An expression that keeps a browser busy harms only the user who opened the page.
/// - Pages of other sites that read answers without credentials see what everyone can see. A check
///   of the origin (CWE 346) decides about requests with credentials.
/// - The user of a desktop program chooses which files, programs and addresses it opens.
/// - A cookie of a request has no attributes: a client only sends its name and value.
/// - The length of a pause is not a secret.
/// - A redirect to the address of the same request mostly stays on this site.
/// - The header of a token names the key with which the function verifies it then.
pub(super) fn severity_by_gain(f: &Flow, text: &[u8]) -> Option<Severity> {
    let is_low = match f.subject {
        FlowSubject::Flow(SinkKind::Regex) => {
            f.proof != Proof::Request || OF_BROWSER.contains(&f.source_label)
        }
        FlowSubject::Rule("cors") => f.cwe != Some(ORIGIN_CHECK) && !grants_credentials(text),
        FlowSubject::Rule("cookie") => sender::is_of_client(f, text),
        FlowSubject::Rule("weak-random") => is_delay(f, text),
        FlowSubject::Flow(SinkKind::Redirect) => is_own_address(f, text),
        FlowSubject::Rule("jwt") => is_verified_below(f, text),
        _ => false,
    };
    (is_low || sender::is_of_desktop(f, text)).then_some(Severity::Suggestion)
}

/// Bytes of a function below a call that are searched, at most.
const FUNCTION_MAX: usize = 8 << 10;

/// Returns true if a function of Go that reads a token without a check verifies the same token below.
fn is_verified_below(f: &Flow, text: &[u8]) -> bool {
    const READ: &[u8] = b"Unverified(";
    const VERIFY: &[&[u8]] = &[b"jwt.Parse(", b".ParseWithClaims(", b"TokenSignature("];
    let Some(call) = f.sink().and_then(|sink| text.get(sink.start..)) else {
        return false;
    };
    let call = &call[..call.len().min(FUNCTION_MAX)];
    let end = memchr::memmem::find(call, b"\n}").unwrap_or(call.len());
    let mut lines = call[..end].split(|b| *b == b'\n');
    let Some(read) = lines.next() else {
        return false;
    };
    let Some(at) = memchr::memmem::find(read, READ) else {
        return false;
    };
    let token = &read[at + READ.len()..];
    let length = token
        .iter()
        .take_while(|b| b.is_ascii_alphanumeric())
        .count();
    let token = &token[..length];
    !token.is_empty()
        && lines
            .map(<[u8]>::trim_ascii_start)
            .filter(|line| !line.starts_with(b"//") && !line.contains(&b'"'))
            .any(|line| has_any(line, VERIFY) && has_any(line, &[token]))
}

/// The weakness of a missing check of the origin.
const ORIGIN_CHECK: u32 = 346;

/// Returns true if a call is the argument of a function that waits: `usleep(mt_rand(1, 9))`.
fn is_delay(f: &Flow, text: &[u8]) -> bool {
    let Some(sink) = f.sink().filter(|sink| sink.start <= text.len()) else {
        return false;
    };
    let before = text[line_around(text, sink.start).start..sink.start].trim_ascii_end();
    let name = before.strip_suffix(b"(").map(|before| {
        let is_part = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
        let start = before
            .iter()
            .rposition(|b| !is_part(b))
            .map_or(0, |at| at + 1);
        before[start..].to_ascii_lowercase()
    });
    name.is_some_and(|name| has_any(&name, &[b"sleep", b"delay"]))
}

/// Returns true if a redirect goes to the address of the request itself, which nothing but joined
/// texts changes.
fn is_own_address(f: &Flow, text: &[u8]) -> bool {
    /// Bytes behind the step in which the name of a variable can stand: `['REQUEST_URI']`.
    const BEHIND: usize = 16;
    let Some(source) = f.steps.first().filter(|s| s.role == StepRole::Source) else {
        return false;
    };
    let end = text.len().min(source.end + BEHIND);
    let read = text.get(source.start..end).unwrap_or_default();
    let stop = read.iter().position(|b| b"\n;,)?+".contains(b));
    let read = &read[..stop.unwrap_or(read.len())];
    // A parameter of the request can have these names too.
    let is_named = has_any(
        read,
        &[
            b"req.originalUrl",
            b"request.originalUrl",
            b"ctx.originalUrl",
            b"REQUEST_URI",
            b"getRequestURI(",
            b"get_full_path(",
        ],
    );
    let is_direct = f.sink().is_some_and(|sink| {
        let line = line_around(text, source.start.min(text.len()));
        let outside = text
            .get(source.start..line.end)
            .map(|rest| rest.iter().filter(|b| matches!(b, b'(' | b'[')).count());
        line.contains(&sink.start)
            && outside.is_some_and(|n| n <= 1)
            && !has_any(
                &text[line],
                &[b"explode", b"split", b"substr", b"slice", b"replace"],
            )
    });
    is_direct && is_named && !has_any(&read.to_ascii_lowercase(), NOT_HEADERS)
}

/// Returns true if a file allows credentials in requests of other sites:
/// `Access-Control-Allow-Credentials: true` and the settings of frameworks for it.
fn grants_credentials(text: &[u8]) -> bool {
    const WORD: &[u8] = b"credentials";
    /// Bytes after the word in which its value is.
    const NEAR: usize = 16;
    let lower = text.to_ascii_lowercase();
    memchr::memmem::find_iter(&lower, WORD).any(|at| {
        let rest = &lower[at + WORD.len()..];
        let rest = &rest[..rest.len().min(NEAR)];
        rest.starts_with(b"()") || memchr::memmem::find(rest, b"true").is_some()
    })
}

/// Parts of the request other than headers. A link can set a parameter named `referer`.
const NOT_HEADERS: &[&[u8]] = &[
    b"arg",
    b"param",
    b"query",
    b"form",
    b"body",
    b".get.",
    b".get[",
    b"_get",
    b"_post",
    b".post",
    b"_request",
    b"cookie",
    b"input",
    b"values",
    b"->get",
    b"->all",
];

/// Returns the highest severity of a redirect to the address in the header `Referer`; `None` for
/// other flows. The browser sets the header to the page from which the user came, so an attacker
/// can only send the user back to the attacker's own page.
pub(super) fn severity_of_referrer(f: &Flow, text: &[u8]) -> Option<Severity> {
    /// Bytes behind the step in which the name of the header can stand: `['HTTP_REFERER']`.
    const BEHIND: usize = 32;
    if f.subject != FlowSubject::Flow(SinkKind::Redirect) {
        return None;
    }
    let source = f.steps.first().filter(|s| s.role == StepRole::Source)?;
    let end = text.len().min(source.end + BEHIND);
    let behind = text.get(source.end..end)?;
    let stop = behind.iter().position(|b| b"\n;,)]|?+#/".contains(b));
    let end = source.end + stop.unwrap_or(behind.len());
    let read = text.get(source.start..end)?.to_ascii_lowercase();
    // A parameter of a handler that has this name is not a header.
    let is_read = has_any(&read, &[b".", b"[", b"(", b"->"]);
    let is_referrer =
        is_read && has_any(&read, &[b"referer", b"referrer"]) && !has_any(&read, NOT_HEADERS);
    is_referrer.then_some(Severity::Suggestion)
}

/// Returns true if a text contains one of some words.
fn has_any(text: &[u8], words: &[&[u8]]) -> bool {
    words
        .iter()
        .any(|word| memchr::memmem::find(text, word).is_some())
}
