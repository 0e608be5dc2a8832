//! Checks of rules for secrets, which distinguish a secret from text that only resembles one.
//!
//! A rule's pattern finds the form, and a check decides whether the text is a live secret. Checks
//! are pure, read one line and the text after it, and take linear time. They know formats
//! (checksums, encoded payloads), placeholders, and the usual names of passwords, but no rules.

mod assignment;
pub(crate) mod checksum;
mod credential;
pub(crate) mod encoded;
pub(crate) mod generate;
mod host;
mod jwt;
mod key;
pub(crate) mod name;
pub(crate) mod overlap;
mod placeholder;
mod presigned;
pub(crate) mod published;
pub(crate) mod shape;
pub(crate) mod words;
mod written;

use super::role;

/// The match of the pattern of a rule for secrets, with its context.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SecretCandidate<'a> {
    /// The text of the group `secret`, or of the whole match.
    pub(crate) secret: &'a [u8],
    /// The line of the secret, without its line end. Of a long line, the part around the secret.
    pub(crate) line: &'a [u8],
    /// Offset of the secret in the line, in bytes.
    pub(crate) at: usize,
    /// The known text after `line`. It starts with the line end if `line` is a whole line.
    pub(crate) after: &'a [u8],
    /// The path of the file, in git's form.
    pub(crate) path: &'a [u8],
}

impl<'a> SecretCandidate<'a> {
    /// Returns the secret as text. `None`: it is not UTF-8, so it is not a secret, because secrets
    /// are ASCII.
    fn text(&self) -> Option<&'a str> {
        std::str::from_utf8(self.secret).ok()
    }

    /// Returns the line up to the secret.
    fn head(&self) -> &'a [u8] {
        self.line.get(..self.at).unwrap_or(self.line)
    }

    /// Returns the line after the secret.
    fn tail(&self) -> &'a [u8] {
        self.line
            .get(self.at + self.secret.len()..)
            .unwrap_or_default()
    }
}

/// A check by its name.
type SecretCheck = fn(&SecretCandidate<'_>) -> bool;

/// Every check that a rule may name, except `entropy:N`.
pub(crate) const CHECKS: &[(&str, SecretCheck)] = &[
    // A generator made the text, and it was not typed as an example.
    ("random", |c| c.text().is_some_and(shape::is_random)),
    ("not-placeholder", |c| {
        c.text().is_some_and(|s| !placeholder::is_placeholder(s))
    }),
    ("letters-and-digits", |c| {
        c.text().is_some_and(shape::has_letters_and_digits)
    }),
    ("not-uuid", |c| c.text().is_some_and(|s| !shape::is_uuid(s))),
    // A person would type it as a password, and not as a placeholder for one.
    ("password", |c| {
        c.text()
            .is_some_and(|s| credential::is_password(s, credential::Bar::Normal))
    }),
    // The value is assigned to a name of a secret, in a form of the file's language.
    ("assigned-quoted", assignment::quoted),
    ("assigned-bare", assignment::bare),
    ("assigned-token", assignment::token),
    ("not-manual", assignment::outside_manuals),
    ("not-shown", assignment::outside_doc_comments),
    // A name in code can be as long and varied as a token, but consists of words.
    ("not-words", |c| {
        c.text().is_some_and(|s| shape::wordiness(s) < 0.6)
    }),
    ("url-password", assignment::url_password),
    // Formats with a proof of their validity.
    ("crc32-base62", |c| checksum::crc32_base62(c.secret)),
    ("grafana-crc32", |c| checksum::grafana(c.secret)),
    ("aws-account", |c| checksum::aws_account(c.secret)),
    ("not-presigned", |c| !presigned::is_key_id(c)),
    ("not-long-expired", |c| !presigned::is_long_expired(c)),
    ("bech32", |c| checksum::bech32(c.secret)),
    ("base58check", |c| checksum::base58check(c.secret)),
    ("stellar-crc16", |c| checksum::stellar(c.secret)),
    ("wireguard-clamp", |c| checksum::wireguard(c.secret)),
    // Encoded payloads with readable content.
    ("private-key-body", |c| {
        encoded::private_key_body(c) || key::parses(c)
    }),
    ("private-key-parses", key::parses),
    // It has the form of a key, but no program would load it.
    ("private-key-unparsed", |c| {
        encoded::private_key_body(c) && !key::parses(c)
    }),
    ("in-tests", |c| role::is_test_path(c.path)),
    ("in-tests-or-documentation", |c| {
        role::is_test_path(c.path) || role::is_documentation(c.path)
    }),
    ("jwt", |c| {
        jwt::jwt(c.secret).is_some_and(|j| j.is_credential())
    }),
    ("jwt-service-role", |c| {
        jwt::jwt(c.secret).is_some_and(|j| j.is_service_role())
    }),
    ("basic-auth", |c| encoded::basic_auth(c.secret)),
    ("discord-id", |c| encoded::discord_id(c.secret)),
    ("macaroon", |c| {
        encoded::decodes_to(c.secret, b"\x02\x01\x08pypi.org")
    }),
    ("base64-json", |c| encoded::base64_json(c.secret)),
    ("base64-text", |c| encoded::base64_secret_text(c)),
    ("kubernetes-value", encoded::kubernetes_value),
];

/// Returns true if the check is about the text after the header of a private key. The header itself
/// is public.
pub(crate) fn is_for_key_headers(check: &str) -> bool {
    check.starts_with("private-key-")
}

/// Returns true if the check is about values that people choose, or whose first characters are also
/// secret.
pub(crate) fn is_for_passwords(check: &str) -> bool {
    [
        "password",
        "assigned-quoted",
        "assigned-bare",
        "assigned-token",
        "url-password",
        "basic-auth",
        "base64-text",
        "kubernetes-value",
    ]
    .contains(&check)
}

/// Runs the check with a name. `None`: there is none.
///
/// `entropy:N` requires at least N bits for each character. N is a decimal number.
pub(crate) fn check(name: &str, candidate: &SecretCandidate<'_>) -> Option<bool> {
    if let Some(bits) = name.strip_prefix("entropy:") {
        let bits: f32 = bits.parse().ok()?;
        return Some(shape::entropy(candidate.secret) >= bits);
    }
    CHECKS
        .iter()
        .find(|(n, _)| *n == name)
        .map(|(_, check)| check(candidate))
}

#[cfg(test)]
mod tests {
    use crate::diff::{RepoPath, code};
    use crate::policy::RulesPolicy;
    use crate::rules::{RuleSet, Scope, format, sample, team};

    fn catalogue() -> Vec<format::Rule> {
        let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/rules/catalog");
        let mut rules = Vec::new();
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if name.starts_with("secrets-") {
                rules.extend(team::read(&name, &std::fs::read_to_string(&path).unwrap()).unwrap());
            }
        }
        rules
    }

    #[test]
    fn a_rule_sees_its_secrets_whatever_their_random_part() {
        let rules = RuleSet::new(&RulesPolicy::default(), &[]).unwrap();
        let (mut tried, mut missed) = (0, Vec::new());
        for rule in catalogue() {
            for sample in rule
                .samples
                .iter()
                .filter(|s| s.matches && s.text.contains("${"))
            {
                for seed in 0..3 {
                    let text = sample::expand(&sample.text, &format!("{} again {seed}", rule.id));
                    tried += 1;
                    let change = code::added(
                        RepoPath::from(sample.path.as_str()),
                        text.clone().into_bytes(),
                    );
                    let mut found = Vec::new();
                    rules.scan(&change, Scope::Secrets, &mut found);
                    if !found.iter().any(|f| f.rule_id() == rule.id) {
                        missed.push(format!("{}: {text}", rule.id));
                    }
                }
            }
        }
        // A random text may contain a word or a run by chance.
        assert!(
            missed.len() * 200 <= tried,
            "{} of {tried} missed:\n{}",
            missed.len(),
            missed.join("\n")
        );
    }

    #[test]
    fn the_catalogue_knows_at_least_eighty_issuers() {
        let by_issuer = catalogue()
            .iter()
            .filter(|r| r.confidence == "high")
            .count();
        assert!(by_issuer >= 150, "{by_issuer}");
    }
}
