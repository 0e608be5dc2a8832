//! The texts that a regular expression accepts, and the kinds of flows for which they are harmless.

use super::SinkKind;

/// Returns the kinds for which a text is harmless if it matches a pattern from start to end.
pub(super) fn strictness(pattern: &str, is_full: bool) -> u32 {
    let p = pattern;
    let starts = is_full || p.starts_with('^') || p.starts_with("\\A");
    let ends = is_full || p.ends_with('$') || p.ends_with("\\z") || p.ends_with("\\Z");
    if starts && ends {
        let body = p.trim_start_matches("\\A").trim_start_matches('^');
        let body = body
            .trim_end_matches('$')
            .trim_end_matches("\\z")
            .trim_end_matches("\\Z");
        if is_wide(body) {
            return 0;
        }
        let mut kinds = u32::MAX;
        if lets_pass(body, '.') && lets_pass(body, '/') {
            kinds &= !(SinkKind::Path.bit() | SinkKind::ZipSlip.bit());
        }
        return kinds;
    }
    // `^/(?!/)`: a path on this site.
    if starts && is_local_path(p) {
        return SinkKind::Redirect.bit() | SinkKind::Url.bit();
    }
    // `^https://example\.com/`: the host is fixed.
    if starts && (p.contains("://") || p.contains(":\\/\\/")) {
        let plain = p
            .trim_start_matches("\\A")
            .trim_start_matches('^')
            .replace('\\', "");
        return super::constant::fixed_by(&plain.replace("https?", "https"));
    }
    0
}

/// Returns true for a pattern that requires a slash at the start and forbids a second one.
fn is_local_path(pattern: &str) -> bool {
    let plain = pattern
        .trim_start_matches("\\A")
        .trim_start_matches('^')
        .replace("\\/", "/");
    let Some(rest) = plain.strip_prefix('/') else {
        return false;
    };
    if let Some(not) = rest.strip_prefix("(?!") {
        return not.split(')').next().is_some_and(|n| n.contains('/'));
    }
    if let Some(class) = rest.strip_prefix('[') {
        let Some((class, _)) = class.split_once(']') else {
            return false;
        };
        return class.starts_with('^') == class.contains('/');
    }
    rest.starts_with(|c: char| c.is_ascii_alphanumeric()) || rest.starts_with("\\w")
}

/// Returns true if a pattern has parts that match any text.
fn is_wide(body: &str) -> bool {
    let mut chars = body.chars().peekable();
    let mut class = String::new();
    let mut in_class = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                let next = chars.next();
                if matches!(next, Some('S' | 'W' | 'D' | 's')) {
                    return true;
                }
            }
            '[' if !in_class => {
                in_class = true;
                class.clear();
            }
            ']' if in_class => {
                in_class = false;
                if class.starts_with('^') || class.contains(['\'', '"', '<', ';', '&', '|', '`']) {
                    return true;
                }
            }
            _ if in_class => class.push(c),
            '.' if chars.peek().is_some_and(|n| matches!(n, '*' | '+' | '{')) => return true,
            _ => {}
        }
    }
    false
}

fn lets_pass(body: &str, c: char) -> bool {
    let mut in_class = false;
    for x in body.chars() {
        match x {
            '[' => in_class = true,
            ']' => in_class = false,
            _ if in_class && x == c => return true,
            _ => {}
        }
    }
    false
}
