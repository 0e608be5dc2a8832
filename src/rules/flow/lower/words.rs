//! Names and patterns that several lowerings recognise.

/// Returns true if a variable of this name holds a secret: `resetToken`, `api_key`, `password`.
pub(super) fn has_secret_name(name: &str) -> bool {
    let lower: String = name.chars().filter(|c| *c != '_').collect::<String>().to_ascii_lowercase();
    const WORDS: [&str; 20] = [
        "password",
        "passwd",
        "secret",
        "token",
        "apikey",
        "otp",
        "nonce",
        "salt",
        "sessionid",
        "sessionkey",
        "csrf",
        "signature",
        "hmac",
        "authkey",
        "accesskey",
        "privatekey",
        "encryptionkey",
        "pincode",
        "verificationcode",
        "resetcode",
    ];
    // A list of tokens of a parser, a count, a type or a name of a token is not a secret.
    const NOT: [&str; 13] = [
        "tokens",
        "tokentype",
        "tokenid",
        "tokencount",
        "tokenkind",
        "tokenize",
        "tokenname",
        "length",
        "algorithm",
        "kind",
        "format",
        "index",
        "hint",
    ];
    WORDS.iter().any(|w| lower.contains(w)) && !NOT.iter().any(|w| lower.contains(w))
}

/// Returns true if a regular expression repeats a group that is itself one repeated atom, as in `(a+)+`. The time of
/// such an expression can grow exponentially with the text.
pub(super) fn is_exponential(pattern: &str) -> bool {
    let bytes = pattern.as_bytes();
    let mut opened: Vec<usize> = Vec::new();
    let (mut i, mut in_class) = (0, false);
    while let Some(b) = bytes.get(i) {
        match b {
            b'\\' => i += 1,
            b'[' if !in_class => in_class = true,
            b']' if in_class => in_class = false,
            b'(' if !in_class => opened.push(i + 1),
            b')' if !in_class => {
                let start = opened.pop().unwrap_or_default();
                let is_repeated = matches!(bytes.get(i + 1), Some(b'+' | b'*'))
                    || (bytes.get(i + 1) == Some(&b'{') && pattern.get(i..).is_some_and(|r| r.contains(",}")));
                if is_repeated && pattern.get(start..i).is_some_and(is_repeated_atom) {
                    return true;
                }
            }
            _ => {}
        }
        i += 1;
    }
    false
}

/// Returns true if a group is one atom with `+` or `*`, or alternatives of which two are equal or overlap (`a|a`).
fn is_repeated_atom(group: &str) -> bool {
    let group = group.strip_prefix("?:").unwrap_or(group);
    if let Some((a, b)) = group.split_once('|') {
        return !a.is_empty() && (a == b || (a.len() == 1 && b == format!("{a}{a}")));
    }
    let Some(atom) = group.strip_suffix(['+', '*']) else { return false };
    let mut chars = atom.chars();
    match chars.next() {
        Some('[') => atom.find(']') == Some(atom.len() - 1),
        Some('\\') => atom.chars().count() == 2,
        // A group inside a group: `((a+))+`.
        Some('(') => atom.strip_prefix('(').and_then(|a| a.strip_suffix(')')).is_some_and(|a| !a.contains(['(', '|'])),
        Some(c) => c != '^' && atom.chars().count() == 1,
        None => false,
    }
}
