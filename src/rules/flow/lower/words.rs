//! Names and patterns that several lowerings recognise.

/// Returns true if a variable of this name holds a secret: `resetToken`, `api_key`, `password`.
pub(super) fn has_secret_name(name: &str) -> bool {
    let lower: String = name
        .chars()
        .filter(|c| *c != '_')
        .collect::<String>()
        .to_ascii_lowercase();
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
    // A token list of a parser, a count, a type or the name of a token is not a secret.
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

/// Returns true if a regular expression repeats a group that is itself one repeated atom, as in
/// `(a+)+`. The time of such an expression can grow exponentially with the length of the text.
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
                    || (bytes.get(i + 1) == Some(&b'{')
                        && pattern.get(i..).is_some_and(|r| r.contains(",}")));
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

/// Returns true if a group is one atom with `+` or `*`, with or without an optional atom (`\w+\s?`)
/// or an atom that matches everything (`(a)+.`). Also returns true if two alternatives are equal or
/// overlap (`a|a`).
fn is_repeated_atom(group: &str) -> bool {
    let group = group.strip_prefix("?:").unwrap_or(group);
    if let Some((a, b)) = group.split_once('|')
        && !group.contains(['[', '('])
    {
        return !a.is_empty() && (a == b || (a.len() == 1 && b == format!("{a}{a}")));
    }
    let Some(parts) = atoms(group) else {
        return false;
    };
    match parts.as_slice() {
        [one] => is_repeated(one),
        [one, (".", None)] => is_repeated(one),
        [one, two] => {
            (is_repeated(one) && is_optional(two)) || (is_optional(one) && is_repeated(two))
        }
        _ => false,
    }
}

/// Returns true if an atom, which is given with its quantifier, can match a text of any length.
fn is_repeated(atom: &(&str, Option<char>)) -> bool {
    matches!(atom.1, Some('+' | '*')) && atom.0 != "^"
}

/// Returns true if an atom, which is given with its quantifier, can match the empty text.
fn is_optional(atom: &(&str, Option<char>)) -> bool {
    matches!(atom.1, Some('?' | '*'))
}

/// Returns the atoms of an expression with their quantifiers, if they are characters, classes, and
/// groups without a choice.
fn atoms(group: &str) -> Option<Vec<(&str, Option<char>)>> {
    let mut out = Vec::new();
    let mut rest = group;
    while let Some(first) = rest.chars().next() {
        let size = match first {
            '[' => rest.find(']')? + 1,
            '(' => rest.find(')')? + 1,
            '\\' => 1 + rest.chars().nth(1)?.len_utf8(),
            '|' | ')' | '{' => return None,
            c => c.len_utf8(),
        };
        let (atom, after) = rest.split_at_checked(size)?;
        if atom.starts_with('(') && (atom.contains('|') || atom.get(1..)?.contains('(')) {
            return None;
        }
        let quantifier = after
            .chars()
            .next()
            .filter(|c| matches!(c, '+' | '*' | '?'));
        out.push((atom, quantifier));
        rest = after.get(quantifier.map_or(0, char::len_utf8)..)?;
        if out.len() > 2 {
            return None;
        }
    }
    Some(out)
}

/// Parts of names of passwords, in lower case.
const PASSWORDS: &[&str] = &["passw", "passphrase", "pwd"];
/// Parts of names that contain such a word but do not name a password.
const NOT_PASSWORDS: &[&str] = &[
    "reset",
    "hash",
    "file",
    "url",
    "field",
    "policy",
    "digest",
    "encrypted",
    "encoded",
    "error",
    "label",
];
/// Words of protocols that require a specific hash.
const PROTOCOLS: &[&str] = &[
    "realm",
    "ntlm",
    "scramble",
    "gravatar",
    "cram",
    "nonce",
    "wsse",
    "expir",
    "remember",
    "challenge",
];
/// Calls whose argument is hashed, in lower case.
const HASHES: &[&str] = &[
    "digest(",
    "update(",
    "computehash(",
    "hashdata(",
    "getbytes(",
    "[]byte(",
    "writestring(",
    ".sum(",
];

/// Returns true if a function that computes a hash hashes a password: it passes a password to a
/// hash call, or converts one to bytes.
pub(super) fn hashes_password(function: &str) -> bool {
    let text = function.to_ascii_lowercase();
    if PROTOCOLS.iter().any(|w| text.contains(w)) {
        return false;
    }
    let mut at = 0;
    while let Some((start, end)) = next_password(&text, at) {
        at = end;
        let (before, after) = (
            text.get(..start).unwrap_or_default(),
            text.get(end..).unwrap_or_default(),
        );
        let after = after.strip_prefix("()").unwrap_or(after);
        let is_bytes = [".getbytes(", ".tobytearray(", ".encodetobytearray("]
            .iter()
            .any(|w| after.starts_with(w));
        let statement = before
            .rsplit([';', '{', '}', '\n'])
            .next()
            .unwrap_or_default();
        let is_hashed = HASHES.iter().any(|w| statement.contains(w));
        let is_joined = before.trim_end().ends_with('+') || after.trim_start().starts_with('+');
        if is_bytes || is_hashed || (is_joined && !statement.contains("log")) {
            return true;
        }
    }
    false
}

/// Returns the next name of a password, starting at an offset.
fn next_password(text: &str, from: usize) -> Option<(usize, usize)> {
    let mut from = from;
    loop {
        let rest = text.get(from..)?;
        let at = from + PASSWORDS.iter().filter_map(|w| rest.find(w)).min()?;
        let start = text.get(..at)?.rfind(|c| !is_word(c)).map_or(0, |i| i + 1);
        let end = text
            .get(at..)?
            .find(|c| !is_word(c))
            .map_or(text.len(), |i| at + i);
        let name = text.get(start..end)?;
        // A name before the parentheses of a call is a function.
        let is_call = text.get(end..)?.starts_with('(') && !text.get(end..)?.starts_with("()");
        if !is_call && !NOT_PASSWORDS.iter().any(|w| name.contains(w)) {
            return Some((start, end));
        }
        from = end;
    }
}

/// Returns the last word of a path: `token` of `@user.token`, `id` of `params[:id]`, `Token` of
/// `string(s.cfg.Token)`.
pub(super) fn last_word(text: &str) -> &str {
    let text = text.trim_end_matches(|c: char| !is_word(c));
    text.rsplit(|c: char| !is_word(c))
        .next()
        .unwrap_or_default()
}

/// Returns true for a character of a name.
pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_groups_that_match_a_text_in_many_ways_are_exponential() {
        for pattern in [
            "(a+)+",
            "(\\w+\\s?)+$",
            "(?:[a-z]+-?)*x",
            "(([a-z])+.)+",
            "(\\s*\\w+)*",
            "(a|a)*",
        ] {
            assert!(is_exponential(pattern), "{pattern}");
        }
        for pattern in [
            "(\\w+ )+",
            "(a+b)+",
            "([a-z]+\\.)+",
            "(\\d+,\\d+)*",
            "(ab?)+",
            "^(a-?){1,3}$",
            "(a+.b)+",
            "(é+x)+",
        ] {
            assert!(!is_exponential(pattern), "{pattern}");
        }
    }

    #[test]
    fn a_hash_of_a_password_is_told_by_names() {
        for text in [
            "String f(String password) { md.digest(password.getBytes()); }",
            "byte[] f(User u) { byte[] b = u.getPassword().getBytes(); return md.digest(b); }",
            "string F(string pwd) { return md5.ComputeHash(Encoding.UTF8.GetBytes(pwd)); }",
            "String f(String salt, String password) { String all = salt + password; return md.digest(all.getBytes()); }",
        ] {
            assert!(hashes_password(text), "{text}");
        }
        for text in [
            "String f(byte[] body) { return md.digest(body); }",
            "String f(String passwordResetUrl) { md.digest(passwordResetUrl.getBytes()); }",
            "void f(String password) { log.info(\"md5 \" + etag); check(password); md.digest(body); }",
            "String f(String user, String realm, String password) { md.digest((user + realm + password).getBytes()); }",
        ] {
            assert!(!hashes_password(text), "{text}");
        }
    }
}
