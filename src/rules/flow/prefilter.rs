//! Bytes that a lowering turns into calls with names of the tables.
//!
//! The tables name such calls `__double_free` or `java.html-body`. No file has these words, so a file needs other words that
//! show that the analysis is worth its time.

use super::FlowLanguage;

/// Keys that are data, slow expressions, comparisons of secrets.
const SCRIPT: &[&str] = &["][", ")+", ")*", "createHmac", "signature", "Math.random", "api-key", "href"];

/// Memory, sizes, permissions.
const C: &[&str] = &[
    "free(",
    "delete ",
    "malloc(",
    "realloc(",
    "alloca(",
    "memcpy(",
    "memmove(",
    "memset(",
    "memcmp(",
    "strncpy(",
    "strncat(",
    "snprintf(",
    "fgets(",
    "read(",
    "recv(",
    "access(",
    "rand()",
    "random()",
    "setuid(",
    "setgid(",
    "seteuid(",
    "setegid(",
    "return &",
    "cin >>",
];

/// Responses of handlers, numbers. Managers that trust everything are found line by line.
const JAVA: &[&str] = &[
    "RestController",
    "ResponseBody",
    "@Controller",
    "\"redirect:",
    "Random",
    ".random()",
    "JWT.decode(",
    "JWT.parse(",
    "JWTParser.parse(",
    "Hmac",
    "hmac",
];

/// Markup that a handler returns.
const PYTHON: &[&str] = &[".route(", "@app.", "@bp.", "return \"<", "return '<", "return f\"<", "return f'<"];

/// Parameters, expressions, numbers.
const RUBY: &[&str] = &["params", "validates", "permit", "rand", ")+", ")*", "=~"];

/// Pages for developers, forms, numbers.
const CSHARP: &[&str] = &[
    "DeveloperExceptionPage",
    ".Text",
    "HttpPost",
    "Random",
    ")+",
    ")*",
    "ignature",
    "ComputeHash(",
    "HashData(",
    "ReadJwtToken(",
];

/// Comparisons of secrets.
const GO: &[&str] = &["Header.Get(", "GetHeader(", "hmac.", "sha256.New()", "sha512.New()"];

/// Returns true if a text has what its lowering turns into a call of the tables.
pub(super) fn has_stand_in(language: FlowLanguage, text: &[u8]) -> bool {
    let words = match language {
        // `<?= … ?>` is an `echo`.
        FlowLanguage::Php => &["<?="][..],
        FlowLanguage::JavaScript | FlowLanguage::TypeScript | FlowLanguage::Tsx => SCRIPT,
        FlowLanguage::C | FlowLanguage::Cpp => C,
        FlowLanguage::Java | FlowLanguage::Kotlin => JAVA,
        FlowLanguage::Python => PYTHON,
        FlowLanguage::Ruby => RUBY,
        FlowLanguage::CSharp => CSHARP,
        FlowLanguage::Go => GO,
    };
    let is_c = matches!(language, FlowLanguage::C | FlowLanguage::Cpp);
    words.iter().any(|w| memchr::memmem::find(text, w.as_bytes()).is_some()) || (is_c && writes_item(text))
}

/// Returns true for a text with `x[i] = …`. A table of data, `x[] = {`, is not one.
fn writes_item(text: &[u8]) -> bool {
    memchr::memchr_iter(b']', text).any(|at| {
        let rest = text.get(at + 1..).unwrap_or_default().trim_ascii_start();
        let value = rest.strip_prefix(b"=").map(<[u8]>::trim_ascii_start);
        value.is_some_and(|v| !v.starts_with(b"{") && !v.starts_with(b"="))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_to_an_item_is_not_a_table_of_data() {
        for text in ["b[8] = 0;", "b[i]=x;", "  a[n]\n    = 1;"] {
            assert!(has_stand_in(FlowLanguage::C, text.as_bytes()), "{text}");
        }
        for text in ["int t[] = { 1, 2 };", "if (a[1] == 2) {}", "f(a[1]);"] {
            assert!(!has_stand_in(FlowLanguage::C, text.as_bytes()), "{text}");
        }
    }
}
