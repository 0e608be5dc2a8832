//! Decides whether a value under the name of a secret is hidden. A false positive costs a reader
//! one value, so the tests are generous: only references, complete placeholders and ordinary names
//! stay readable.

use crate::rules::secret::{shape, words};

/// Strength of the evidence that the name of a value gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tier {
    /// The name is that of a password or a secret.
    Password,
    /// The name is that of a token or key, which a generator makes.
    Token,
    /// The name only contains a word for a secret (`token_url`).
    Weak,
}

/// Bytes of a value that are analysed, at most.
const WEIGHED: usize = 256;

/// Returns true if a value must be hidden. `quoted`: it is a string literal.
pub(super) fn is_hidden(value: &[u8], tier: Tier, quoted: bool) -> bool {
    let value = String::from_utf8_lossy(&value[..value.len().min(WEIGHED)]);
    let value = value.trim_end_matches([',', ';', ' ', '\t', '\r']);
    if value.len() < 4 || is_reference(value) || words::is_filler(value) {
        return false;
    }
    let weight = CharacterCounts::of(value);
    match tier {
        Tier::Password => !words::is_stand_in(value) && weight.is_password(value, quoted),
        Tier::Token => !words::is_stand_in(value) && weight.is_token(),
        Tier::Weak => weight.is_certain(),
    }
}

/// Character counts of a value.
#[derive(Clone, Copy, Debug)]
struct CharacterCounts {
    length: usize,
    lower: usize,
    upper: usize,
    digits: usize,
    /// Number of bytes other than letters, digits and joiners of words.
    signs: usize,
    spaces: usize,
    /// The share of the value that consists of words.
    words: f32,
}

impl CharacterCounts {
    fn of(value: &str) -> Self {
        let joiners = value
            .bytes()
            .filter(|b| matches!(b, b'_' | b'-' | b'.' | b'/' | b':' | b','))
            .count();
        let lower = value.bytes().filter(u8::is_ascii_lowercase).count();
        let upper = value.bytes().filter(u8::is_ascii_uppercase).count();
        let digits = value.bytes().filter(u8::is_ascii_digit).count();
        let spaces = value.bytes().filter(u8::is_ascii_whitespace).count();
        let rest = lower + upper + digits + joiners + spaces;
        let signs = value.len().saturating_sub(rest);
        let words = shape::wordiness(value);
        Self {
            length: value.len(),
            lower,
            upper,
            digits,
            signs,
            spaces,
            words,
        }
    }

    /// Returns true if it can be a password that a person uses.
    fn is_password(self, value: &str, quoted: bool) -> bool {
        // A sentence, unless it has characters that a sentence lacks.
        if self.spaces > 0 && (self.words > 0.6 || self.digits == 0) {
            return self.is_certain();
        }
        if is_dated(value) || self.letters() == 0 && self.signs == 0 && self.digits < 6 {
            return false;
        }
        if self.digits + self.signs > 0 {
            // `password1`, `utf8_password`: in code, a bare value is a name.
            return quoted || !(self.signs == 0 && self.digits <= 2 && self.words > 0.6);
        }
        let joined = value
            .split(['-', '_', '.', ' '])
            .filter(|w| w.len() >= 3)
            .count()
            >= 3;
        let named = speaks_of_itself(value);
        self.length >= 6 && self.words < 0.5 || joined && !named && words::substance(value) >= 12
    }

    /// Returns true if it can be generated, or is a password.
    fn is_token(self) -> bool {
        let mixed = self.upper >= 2 && self.lower >= 2 && self.length >= 10;
        let made = self.words < 0.6 && (self.digits >= 2 || mixed) && self.spaces == 0;
        self.length >= 6 && made && self.letters() > 0 || self.is_certain()
    }

    /// Returns true if it has no resemblance to a name or a sentence.
    fn is_certain(self) -> bool {
        let random = self.length >= 16
            && self.spaces == 0
            && self.words < 0.45
            && (self.digits >= 2 && self.letters() >= 2 || self.upper >= 3 && self.lower >= 3);
        let classes = [self.lower, self.upper, self.digits, self.signs];
        let typed = self.length >= 9
            && self.digits > 0
            && self.signs > 0
            && self.spaces == 0
            && classes.iter().filter(|n| **n > 0).count() >= 4;
        random || typed
    }

    fn letters(self) -> usize {
        self.lower + self.upper
    }
}

fn speaks_of_itself(value: &str) -> bool {
    let plain = value.to_ascii_lowercase();
    ["pass", "secret", "token", "key", "credential"]
        .iter()
        .any(|w| plain.contains(w))
}

/// Returns true for a date, a version or an address: digits and the characters that join them.
fn is_dated(value: &str) -> bool {
    value
        .bytes()
        .all(|b| b.is_ascii_digit() || joins_numbers(b))
        && value.bytes().any(joins_numbers)
}

fn joins_numbers(b: u8) -> bool {
    matches!(b, b'.' | b':' | b'-' | b'/' | b'T' | b'Z')
}

/// Returns true if a text only names or fetches a value (SEC-05). Without its references, the rest
/// of it must be short or consist of words.
pub(super) fn is_reference(text: &str) -> bool {
    #[rustfmt::skip]
    const SCHEMES: &[&str] = &[
        "arn:aws", "vault:", "op://", "ssm:", "sops:", "secret://", "secretref", "env:", "env.", "kms:", "ref+",
        "!ref", "!sub", "!getatt", "!vault", "!secret", "enc[", "enc(", "$ansible_vault", "keyvault:", "@microsoft.keyvault",
        "/run/secrets/", "file:",
    ];
    #[rustfmt::skip]
    const INSIDE: &[&str] = &[
        "process.env", "os.environ", "getenv", "import.meta.env", "env[", "system.getproperty",
    ];
    let lower = text.to_ascii_lowercase();
    if SCHEMES.iter().any(|s| lower.starts_with(s)) || INSIDE.iter().any(|s| lower.contains(s)) {
        return true;
    }
    if is_variable(text) || is_call(text) || is_path(text) || is_access(text) || is_url(&lower) {
        return true;
    }
    without_interpolations(text).is_some_and(|rest| rest.len() < 8 || shape::wordiness(&rest) > 0.6)
}

/// `$NAME`, `%NAME%`, `<name>`, `@@name@@`, `__NAME__`, `[[name]]`, `:name`, `&name`.
fn is_variable(text: &str) -> bool {
    text.strip_prefix('$')
        .is_some_and(|t| is_name_of_variable(t) && is_plain(t))
        || [
            ("%", "%"),
            ("<", ">"),
            ("@@", "@@"),
            ("__", "__"),
            ("[[", "]]"),
            ("[", "]"),
            ("{", "}"),
        ]
        .iter()
        .any(|(open, close)| {
            text.strip_prefix(open)
                .and_then(|t| t.strip_suffix(close))
                .is_some_and(is_name_of_variable)
        })
}

/// Returns true for the name of a variable in its signs, which can have several words.
fn is_name_of_variable(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b' ' | b'-'))
}

fn is_plain(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Returns true for `get_token(x)` and `settings["key"]`: a name, and a call or an index.
fn is_call(text: &str) -> bool {
    let text = text.trim_end_matches([';', ',', '.']);
    let Some(open) = text.find(['(', '[']) else {
        return false;
    };
    let name = &text[..open];
    text.ends_with([')', ']', '}', '?'])
        && name.len() >= 2
        && name.bytes().all(|b| {
            b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b':' | b'$' | b'>' | b'-')
        })
        && shape::wordiness(name) > 0.45
}

/// `config.database.password`, `Self::TOKEN`, `user->password`.
fn is_access(text: &str) -> bool {
    let joined = text.contains('.') || text.contains("::") || text.contains("->");
    let path = text.replace("::", ".").replace("->", ".");
    joined
        && path
            .split('.')
            .all(|p| p.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && is_plain(p))
        && shape::wordiness(text) > 0.45
}

fn is_path(text: &str) -> bool {
    let starts = ["/", "./", "../", "~/", "\\\\"]
        .iter()
        .any(|s| text.starts_with(s));
    let drive = text.as_bytes().get(1) == Some(&b':') && text.contains('\\');
    (starts || drive) && shape::wordiness(text) > 0.5
}

/// Returns true for an address without a password in it. Values in its query have their own names.
fn is_url(lower: &str) -> bool {
    let Some((scheme, rest)) = lower.split_once("://") else {
        return false;
    };
    scheme
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
        && !rest.contains('@')
}

/// Returns a text without `${…}`, `{{…}}`, `#{…}`, `%{…}`, `$(…)`, `<%…%>`, `{0}` and `%s`; `None`:
/// it has none.
fn without_interpolations(text: &str) -> Option<String> {
    const PAIRS: &[(&str, &str)] = &[
        ("${{", "}}"),
        ("${", "}"),
        ("{{", "}}"),
        ("#{", "}"),
        ("%{", "}"),
        ("@{", "}"),
        ("$(", ")"),
        ("%(", ")s"),
        ("<%", "%>"),
        ("{", "}"),
    ];
    let mut rest = String::with_capacity(text.len());
    let (mut at, mut any) = (0, false);
    while at < text.len() {
        let tail = &text[at..];
        let pair = PAIRS.iter().find(|(open, _)| tail.starts_with(open));
        let close = pair.and_then(|(open, close)| {
            let inner = &tail[open.len()..];
            inner.find(close).map(|i| open.len() + i + close.len())
        });
        if let Some(length) = close {
            (at, any) = (at + length, true);
        } else if ["%s", "%d", "%v"].iter().any(|f| tail.starts_with(f)) {
            (at, any) = (at + 2, true);
        } else {
            let c = tail.chars().next().unwrap_or(' ');
            rest.push(c);
            at += c.len_utf8();
        }
    }
    any.then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lek_03_a_value_is_hidden_unless_it_is_a_reference_a_stand_in_or_a_name() {
        for value in [
            "Winter2024!x",
            "mySecret789",
            "Default#2019!",
            "zebra7x!",
            "kR8#mm2pQ",
            "zagreb77ko",
            "Xk7vQ2mWp9",
            "readyPlayer4!",
            "prefix-${ENV}-kR8mm2pQx9",
            "getMeIn2024",
            "maple-harbor-violet-onion",
        ] {
            assert!(is_hidden(value.as_bytes(), Tier::Password, true), "{value}");
        }
        for value in [
            "Xk7vQ2mWp9Lr4TzN8sYb",
            "9f86d081884c7d659a2feaa0c55ad015",
            "Winter2024!x",
        ] {
            assert!(is_hidden(value.as_bytes(), Tier::Token, false), "{value}");
            assert!(is_hidden(value.as_bytes(), Tier::Weak, true), "{value}");
        }
    }

    #[test]
    fn sec_05_references_stand_ins_and_names_stay_readable() {
        for value in [
            "${DB_PASSWORD}",
            "$TOKEN",
            "%TOKEN%",
            "{{ secrets.token }}",
            "${{ secrets.TOKEN2 }}",
            "<your-key>",
            "process.env.TOKEN_2",
            "os.environ['X1']",
            "getenv(\"API_KEY_2\")",
            "config.db2.password",
            "changeme",
            "password123",
            "********",
            "xxxxxxxxxxxx",
            "your-password",
            "confirmPassword",
            "String",
            "https://id.example.com/oauth2/token",
            "/run/secrets/db1",
            "arn:aws:secretsmanager:eu-1:1:x",
            "vault:secret/data/db2#pw",
            "ENC[AES256_GCM,data:x1]",
            "prefix-${TOKEN_1}",
            "user_password",
            "required",
            "get_token(x1)",
            "2024-01-01",
            "4096",
        ] {
            for quoted in [true, false] {
                assert!(
                    !is_hidden(value.as_bytes(), Tier::Password, quoted),
                    "{value}"
                );
                assert!(!is_hidden(value.as_bytes(), Tier::Token, quoted), "{value}");
            }
        }
    }
}
