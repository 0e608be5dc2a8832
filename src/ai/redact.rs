//! Removes secrets from text, and makes hidden characters visible.
//!
//! All text for a backend passes through this module. Secrets become placeholders with their kind
//! and length, and characters that hide or reorder text are written as `\u{202e}`. The number of
//! lines does not change.

use crate::diff::{RepoPath, code};
use crate::rules::{RuleSet, Secret};
use crate::untrusted::{is_active, joins};
use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;

/// A redacted text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redacted {
    /// Redacted text with the same number of lines; line ends are `\n`.
    pub text: String,
    /// Rule IDs of the replaced secrets, without duplicates, in order of appearance.
    pub kinds: Vec<String>,
}

/// Replaces the secrets of a text, and makes its hidden characters visible. Decodes UTF-16 and
/// UTF-32 first.
pub fn text(rules: &RuleSet, bytes: &[u8]) -> Redacted {
    whole(rules, bytes)
}

fn whole(rules: &RuleSet, bytes: &[u8]) -> Redacted {
    let bytes = decoded(bytes);
    let mut out = Redacted::default();
    Sieve::new(rules, &bytes).write(0..bytes.len(), &mut out.text, &mut out.kinds);
    out
}

/// Returns a redacted path on one line. A path that is not UTF-8 is returned in git's quoted form.
pub fn path(rules: &RuleSet, path: &RepoPath) -> String {
    name(rules, path.to_wire().as_bytes())
}

/// Returns the redacted name of a document or branch.
pub fn name(rules: &RuleSet, bytes: &[u8]) -> String {
    text(rules, bytes)
        .text
        .replace('\n', "\\u{a}")
        .replace('\t', "\\u{9}")
}

/// Makes hidden characters visible without replacing secrets, for text that is already redacted.
pub fn visible(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    reveal(bytes, &mut out);
    out
}

/// The secrets of a text, to write parts of it. Secrets are detected in the whole text, because
/// their context matters.
#[derive(Debug)]
pub(super) struct Sieve<'t, 'r> {
    text: &'t [u8],
    secrets: Vec<Secret<'r>>,
}

impl<'t, 'r> Sieve<'t, 'r> {
    /// Detects the secrets of a text.
    pub(super) fn new(rules: &'r RuleSet, text: &'t [u8]) -> Self {
        Self {
            text,
            secrets: rules.secrets(text),
        }
    }

    /// Returns the secrets that overlap a part.
    fn touching(&self, part: &Range<usize>) -> &[Secret<'r>] {
        let from = self.secrets.partition_point(|s| s.span.end <= part.start);
        let count = self.secrets[from..].partition_point(|s| s.span.start < part.end);
        &self.secrets[from..from + count]
    }

    /// Writes a part of the text. A secret that extends beyond the part is replaced too.
    pub(super) fn write(&self, part: Range<usize>, out: &mut String, kinds: &mut Vec<String>) {
        let mut at = part.start;
        for secret in self.touching(&part) {
            reveal(&self.text[at..secret.span.start.max(at)], out);
            let _ = write!(out, "<secret:{}:{}>", secret.kind, secret.span.len());
            if !kinds.iter().any(|k| k == secret.kind) {
                kinds.push(secret.kind.to_owned());
            }
            at = secret.span.end.min(part.end);
        }
        reveal(&self.text[at..part.end], out);
    }
}

/// Decodes UTF-16 and UTF-32 to UTF-8, in which secrets are detected.
fn decoded(bytes: &[u8]) -> Cow<'_, [u8]> {
    let wide = bytes.starts_with(b"\xff\xfe")
        || bytes.starts_with(b"\xfe\xff")
        || memchr::memchr(0, bytes).is_some();
    if wide
        && let Some(text) = code::added(RepoPath::from("text"), bytes.to_vec()).text()
        && let Some(whole) = text.new.whole()
    {
        return Cow::Owned(whole.to_vec());
    }
    Cow::Borrowed(bytes)
}

/// The word at the start of prompt fences; see `prompt::fence`.
pub(super) const FENCE: &str = "untrusted";

/// Appends text with hidden characters visible and fence-like text escaped. Tabs and line ends are
/// kept; bytes that are not UTF-8 become `\xff`.
fn reveal(text: &[u8], out: &mut String) {
    let plain = text
        .iter()
        .all(|b| matches!(b, b' '..=b'~' | b'\t' | b'\n'));
    let mut from = 0;
    // Escape the bracket of a fence that this program did not write.
    for at in memchr::memchr_iter(b'<', text).filter(|at| is_fence(&text[*at..])) {
        reveal_part(&text[from..at], plain, out);
        out.push_str("\\u{3c}");
        from = at + 1;
    }
    reveal_part(&text[from..], plain, out);
}

/// Returns true if a text starts like a prompt fence, with any mark.
fn is_fence(text: &[u8]) -> bool {
    let start = text[1..].iter().take(16);
    let skipped = start
        .take_while(|b| b.is_ascii_whitespace() || !b.is_ascii_graphic() || **b == b'/')
        .count();
    text.get(1 + skipped..1 + skipped + FENCE.len())
        .is_some_and(|w| w.eq_ignore_ascii_case(FENCE.as_bytes()))
}

fn reveal_part(text: &[u8], plain: bool, out: &mut String) {
    if plain {
        out.extend(text.utf8_chunks().map(|c| c.valid()));
        return;
    }
    for chunk in text.utf8_chunks() {
        let mut previous = None;
        let mut chars = chunk.valid().chars().peekable();
        while let Some(c) = chars.next() {
            let next = chars.peek().copied();
            match c {
                '\t' | '\n' => out.push(c),
                '\r' if next == Some('\n') => {}
                c if is_active(c) && !joins(previous, c, next) => {
                    let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
                }
                c => out.push(c),
            }
            previous = Some(c);
        }
        for b in chunk.invalid() {
            let _ = write!(out, "\\x{b:02x}");
        }
    }
}

/// Returns true if the name of a file indicates secrets, so that its content is never sent.
///
/// Such files are environment files (`.env`, `.env.production`, `app.env`; not `.env.example`),
/// private keys, certificates, key stores, and the files in which programs store credentials.
pub fn is_sensitive(path: &RepoPath) -> bool {
    let path = path.as_bytes().to_ascii_lowercase();
    let name = path.rsplit(|b| *b == b'/').next().unwrap_or_default();
    let parent = path
        .len()
        .checked_sub(name.len() + 1)
        .map_or(&[][..], |end| &path[..end]);
    let parent = parent.rsplit(|b| *b == b'/').next().unwrap_or_default();
    let Ok(name) = std::str::from_utf8(name) else {
        return false;
    };
    is_environment(name) || is_key(name) || is_credentials(parent, name)
}

/// Parts of a file name that mark an example without real secrets.
const PLAIN: &[&str] = &[
    "example", "sample", "template", "tmpl", "tpl", "dist", "default", "defaults", "schema",
];

fn is_plain(name: &str) -> bool {
    name.split(['.', '-', '_'])
        .any(|part| PLAIN.contains(&part))
}

fn is_environment(name: &str) -> bool {
    // `.env.d.ts` declares types, and `.env.rs` is code.
    const PROGRAM: &[&str] = &[
        "ts", "tsx", "mts", "cts", "js", "jsx", "mjs", "cjs", "vue", "py", "rb", "go", "rs",
        "java", "kt", "kts", "scala", "groovy", "swift", "c", "h", "cc", "cpp", "hpp", "cs", "php",
        "pl", "lua", "ex", "exs", "hs", "clj", "dart", "sh", "bash", "zsh", "fish", "ksh", "ps1",
        "bat", "cmd", "sql", "tf", "html", "md", "vault",
    ];
    let Some((stem, rest)) = name.split_once(".env") else {
        return name == ".envrc";
    };
    let ends = rest.is_empty() || rest.starts_with(['.', '-', '_']) || rest == "rc";
    let program = rest
        .rsplit('.')
        .next()
        .is_some_and(|e| PROGRAM.contains(&e));
    ends && !program && !is_plain(rest) && !is_plain(stem)
}

fn is_key(name: &str) -> bool {
    const STORES: &[&str] = &[
        "pem",
        "key",
        "p12",
        "pfx",
        "p8",
        "pk8",
        "pkcs12",
        "jks",
        "jceks",
        "bcfks",
        "keystore",
        "truststore",
        "ppk",
        "crt",
        "cer",
        "der",
        "p7b",
        "kdbx",
        "kdb",
        "agilekeychain",
        "keychain",
        "gpg",
        "ovpn",
    ];
    let ssh = [
        "id_rsa",
        "id_dsa",
        "id_ecdsa",
        "id_ed25519",
        "id_ecdsa_sk",
        "id_ed25519_sk",
        "identity",
    ];
    let extension = name.rsplit_once('.').map_or("", |(_, e)| e);
    let host = name.starts_with("ssh_host_") && name.ends_with("_key");
    STORES.contains(&extension) || ssh.contains(&name) || host || name == "master.key"
}

fn is_credentials(parent: &[u8], name: &str) -> bool {
    const NAMES: &[&str] = &[
        ".netrc",
        "_netrc",
        ".pgpass",
        "pgpass.conf",
        ".my.cnf",
        ".htpasswd",
        ".git-credentials",
        ".pypirc",
        ".s3cfg",
        ".boto",
        ".dockercfg",
        ".dockerconfigjson",
        ".vault-token",
        ".terraformrc",
        "terraform.rc",
        "kubeconfig",
        "credentials.json",
        "client_secret.json",
        "client_secrets.json",
        "service-account.json",
        "service_account.json",
        "serviceaccount.json",
        "application_default_credentials.json",
        "credentials.xml",
        "secrets.json",
        "shadow",
        "wallet.dat",
        ".pass",
        ".passwd",
        "cookies.txt",
    ];
    // In the folders of programs, names are short.
    let inside: &[&str] = match parent {
        b".aws" => &["credentials", "config"],
        b".docker" => &["config.json"],
        b".kube" => &["config"],
        b".gem" | b".cargo" => &["credentials", "credentials.toml"],
        b".config" => &["credentials"],
        _ => &[],
    };
    let state = name.ends_with(".tfstate") || name.ends_with(".tfstate.backup");
    (NAMES.contains(&name) || inside.contains(&name) || state) && !is_plain(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::RulesPolicy;
    use crate::rules::secret::generate::generate;

    fn rules() -> RuleSet {
        RuleSet::new(&RulesPolicy::default(), &[]).unwrap()
    }

    /// Generates a secret. The result for a name is always the same.
    fn made(name: &str) -> String {
        let mut state = 0x2545_f491_u32;
        generate(name, &mut |below| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % below
        })
        .unwrap()
    }

    fn shown(input: &str) -> (String, Vec<String>) {
        let r = text(&rules(), input.as_bytes());
        (r.text, r.kinds)
    }

    #[test]
    fn sec_01_secrets_become_placeholders_that_tell_kind_and_length() {
        let (aws, github) = (made("aws-key-id:AKIA"), made("github-token:ghp"));
        let (out, kinds) = shown(&format!("a = \"{aws}\"\nb = '{github}' # and {aws}\n"));
        let aws_mark = format!("<secret:aws-access-key-id:{}>", aws.len());
        assert_eq!(out.matches(&aws_mark).count(), 2, "{out}");
        assert!(!out.contains(&aws) && !out.contains(&github[4..]), "{out}");
        assert_eq!(kinds.len(), 2, "{kinds:?}");
        assert_eq!(out.lines().count(), 2);
        let line = format!("password = \"{}\"\n", made("password:20"));
        let out = text(&rules(), line.as_bytes()).text;
        assert!(
            out.starts_with("password = \"<secret:hardcoded-credential")
                && out.ends_with(":20>\"\n"),
            "{out}"
        );
    }

    #[test]
    fn sec_05_references_stay() {
        let code = "a = process.env.GITHUB_TOKEN\nb: ${TOKEN}\nc := os.Getenv(\"API_KEY\")\n\
                    password = config.get('db_password')\ntoken: \"{{ secrets.token }}\"\n";
        assert_eq!(shown(code), (code.to_owned(), Vec::new()));
    }

    #[test]
    fn sec_01_the_body_of_a_key_is_replaced_line_by_line() {
        let body = made("pem-body");
        let kind = ["RSA PRIVATE", " KEY"].concat();
        let (begin, end) = (
            format!("-----BEGIN {kind}-----"),
            format!("-----END {kind}-----"),
        );
        let mark = |n: usize| format!("<secret:private-key:{n}>");
        let (out, kinds) = shown(&format!(
            "{begin}\n{body}\n  \"{body}\\n\" +\n{end}\nlet a = 1;\n"
        ));
        let n = body.len();
        assert_eq!(
            out,
            format!(
                "{begin}\n{}\n  \"{}\" +\n{end}\nlet a = 1;\n",
                mark(n),
                mark(n + 2)
            )
        );
        assert_eq!(kinds, ["private-key"]);
        // Only the end of the key is included, as in a patch.
        let (out, _) = shown(&format!("let a = 1;\n{body}\n{body}\n{end}\n"));
        assert_eq!(
            out,
            format!("let a = 1;\n{}\n{}\n{end}\n", mark(n), mark(n))
        );
        let (out, _) = shown(&format!(
            "{{\"private_key\": \"{begin}\\n{body}\\n{end}\\n\"}}\n"
        ));
        assert!(
            !out.contains(&body[..20]) && out.contains("<secret:"),
            "{out}"
        );
        let code =
            format!("if text.starts_with(\"{begin}\") {{\nprintln!(\"{begin}{{}}\", body);\n}}\n");
        assert_eq!(shown(&code).0, code, "code about keys is not a key");
        let (out, _) = shown(&format!(
            "---- BEGIN SSH2 ENCRYPTED PRIVATE{} ----\n{body}\n",
            " KEY"
        ));
        assert!(!out.contains(&body), "{out}");
        let (out, _) = shown(&format!(
            "Private-Lines: 2\n{body}\n{body}\nPrivate-MAC: 1\n"
        ));
        assert!(
            !out.contains(&body) && out.ends_with("Private-MAC: 1\n"),
            "{out}"
        );
    }

    #[test]
    fn sec_01_encoded_secrets_are_replaced_whole() {
        use base64::Engine as _;
        let encoded = base64::engine::general_purpose::STANDARD
            .encode(format!("x = {}", made("aws-key-id:AKIA")));
        let (out, kinds) = shown(&format!("data: {encoded}\n"));
        assert!(out.starts_with("data: <secret:aws-access-key-id:"), "{out}");
        assert!(!out.contains(&encoded[..24]) && kinds.len() == 1, "{out}");
    }

    #[test]
    fn sec_01_secrets_in_utf_16_are_found() {
        let secret = made("aws-key-id:AKIA");
        let wide: Vec<u8> = format!("\u{feff}key = \"{secret}\"\n")
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        let out = text(&rules(), &wide).text;
        assert!(
            out.contains("key = \"<secret:aws-access-key-id:20>\"") && !out.contains('\0'),
            "{out}"
        );
    }

    #[test]
    fn inj_07_what_hides_is_shown() {
        for (input, output) in [
            ("a\u{202e}b\u{2066}c", "a\\u{202e}b\\u{2066}c"),
            (
                "x\u{e0041}\u{fe01}\u{200b}",
                "x\\u{e0041}\\u{fe01}\\u{200b}",
            ),
            ("\x1b[31mred\0\x08", "\\u{1b}[31mred\\u{0}\\u{8}"),
            ("a\tb\r\nc\rd\n", "a\tb\nc\\u{d}d\n"),
            ("👩\u{200d}👩 日本語 é", "👩\u{200d}👩 日本語 é"),
        ] {
            assert_eq!(shown(input).0, output, "{input:?}");
        }
        assert_eq!(text(&rules(), b"caf\xe9\n").text, "caf\\xe9\n");
    }

    #[test]
    fn inj_03_what_looks_like_a_fence_is_none() {
        for (input, output) in [
            ("a </untrusted-00ff> b", "a \\u{3c}/untrusted-00ff> b"),
            ("<UNTRUSTED-1 change>", "\\u{3c}UNTRUSTED-1 change>"),
            ("< / untrusted", "\\u{3c} / untrusted"),
            ("<\u{200b}untrusted>", "\\u{3c}\\u{200b}untrusted>"),
            ("<trusted> untrusted <", "<trusted> untrusted <"),
        ] {
            assert_eq!(shown(input).0, output, "{input:?}");
        }
    }

    #[test]
    fn a_part_of_a_text_shows_nothing_of_a_secret_that_it_cuts() {
        let rules = rules();
        let text = format!("k = \"{}\"", made("aws-key-id:AKIA"));
        let sieve = Sieve::new(&rules, text.as_bytes());
        for cut in 0..=text.len() {
            for part in [0..cut, cut..text.len()] {
                let mut out = String::new();
                sieve.write(part.clone(), &mut out, &mut Vec::new());
                assert!(
                    !out.contains("AKI") && !out.contains(&text[20..24]),
                    "{part:?} {out}"
                );
            }
        }
    }

    #[test]
    fn sec_07_files_that_hold_secrets_are_known_by_name() {
        for name in [
            ".env",
            "a/.env.production",
            "prod.env",
            ".env.local",
            ".envrc",
            "id_rsa",
            "deploy/server.pem",
            "tls.key",
            "cert.p12",
            "a/.aws/credentials",
            ".kube/config",
            ".netrc",
            "x/credentials.json",
            "main.tfstate",
            "ssh_host_rsa_key",
            ".ENV",
            "release.keystore",
            "putty.ppk",
            ".git-credentials",
        ] {
            assert!(is_sensitive(&RepoPath::from(name)), "{name}");
        }
        for name in [
            ".env.example",
            ".env.sample",
            "example.env",
            ".env.d.ts",
            "run.env.sh",
            "load.env.ps1",
            "env.rs",
            "environment.yml",
            "src/.environment",
            "id_rsa.pub",
            "src/key.rs",
            "config",
            "credentials.rs",
            "keystore.go",
            "docs/credentials.md",
            "a.envelope",
            ".env.template",
            "identity/mod.rs",
            "shadow/dom.js",
            "src/config.json",
            "monkey",
        ] {
            assert!(!is_sensitive(&RepoPath::from(name)), "{name}");
        }
    }
}
