//! Pages of PHP that are not HTML, because the script says so for every answer.

use crate::rules::flow::Flow;

/// Start of a statement that sets a header, at the top level of a script.
const HEADER: &[u8] = b"header(";
/// Types, in lower case, in which browsers run no scripts.
const PLAIN: &[&[u8]] = &[
    b"text/plain",
    b"application/json",
    b"application/octet-stream",
];

/// Returns true if a script of PHP sets a type without scripts before the sink of a flow, in a
/// statement at the start of a line, and sets no other type anywhere.
pub(super) fn is_plain(f: &Flow, text: &[u8]) -> bool {
    let is_script = text.trim_ascii_start().starts_with(b"<?php");
    let Some(sink) = f.sink().filter(|_| is_script) else {
        return false;
    };
    let lower = text.to_ascii_lowercase();
    let types: Vec<usize> = memchr::memmem::find_iter(&lower, b"content-type:").collect();
    let is_set = types.first().is_some_and(|at| {
        let line = memchr::memrchr(b'\n', &lower[..*at]).map_or(0, |n| n + 1);
        *at < sink.start && lower[line..].starts_with(HEADER)
    });
    is_set
        && types.iter().all(|at| {
            let value = lower[at + b"content-type:".len()..].trim_ascii_start();
            PLAIN.iter().any(|name| value.starts_with(name))
        })
}
