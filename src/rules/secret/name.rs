//! Names of secrets, read word by word.

/// The kind of value that a name suggests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SecretKind {
    Password,
    Secret,
    Token,
}

/// Returns the kind of the name before a value: the last name with a word for a secret. The word
/// "credentials" has many meanings, so a name with only that word does not describe its value, and
/// neither does a name before it.
pub(crate) fn named(head: &[u8]) -> Option<SecretKind> {
    let head = &head[head.len().saturating_sub(160)..];
    let name = head
        .split(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'$')))
        .rev()
        .find(|part| speaks_of_secret(part) || split(part).iter().any(|w| w == "credentials"))?;
    // `("/etc/passwd", "…")`: the name ends a path.
    let start = name.as_ptr() as usize - head.as_ptr() as usize;
    if start > 0 && head[start - 1] == b'/' {
        return None;
    }
    judge(name)
}

/// Returns true if a name has a word for a secret.
pub(super) fn speaks_of_secret(name: &[u8]) -> bool {
    split(name).iter().any(|w| word(w).is_some()) || compound(name).is_some()
}

/// Splits a name into lower-case words, at punctuation and at capitals.
pub(crate) fn split(name: &[u8]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut fresh = true;
    for (i, b) in name.iter().enumerate() {
        if !b.is_ascii_alphabetic() {
            fresh = true;
            continue;
        }
        let before = i.checked_sub(1).map(|j| name[j]);
        let after = name.get(i + 1);
        let hump = b.is_ascii_uppercase()
            && (before.is_some_and(|p| p.is_ascii_lowercase())
                || before.is_some_and(|p| p.is_ascii_uppercase())
                    && after.is_some_and(u8::is_ascii_lowercase));
        if fresh || hump {
            out.push(String::new());
            fresh = false;
        }
        if let Some(last) = out.last_mut() {
            last.push(char::from(b.to_ascii_lowercase()));
        }
    }
    out
}

/// Returns the kind that a single word suggests.
fn word(w: &str) -> Option<SecretKind> {
    const PASSWORD: &[&str] = &[
        "password",
        "passwd",
        "passwort",
        "passphrase",
        "pwd",
        "pass",
        "passcode",
        "pswd",
        "psw",
    ];
    let singular = w.strip_suffix('s').filter(|s| s.len() > 4).unwrap_or(w);
    // Not every word with this ending counts: compass, bypass.
    #[rustfmt::skip]
    const OWNERS: &[&str] = &[
        "db", "my", "sql", "mysql", "user", "admin", "root", "mail", "smtp", "ftp", "login", "store", "key", "auth",
        "bind", "ldap", "api",
    ];
    let owned = w.strip_suffix("pass").or_else(|| w.strip_suffix("pw"));
    if w == "pw" || owned.is_some_and(|o| OWNERS.contains(&o)) {
        return Some(SecretKind::Password);
    }
    if PASSWORD.contains(&w)
        || ["password", "passwd", "passphrase", "pwd", "pswd"]
            .iter()
            .any(|p| singular.ends_with(p))
    {
        return Some(SecretKind::Password);
    }
    if singular == "secret" || singular.ends_with("secret") || w == "secretkey" || w == "credential"
    {
        return Some(SecretKind::Secret);
    }
    if singular.ends_with("token") && !matches!(singular, "tokentoken") {
        return Some(SecretKind::Token);
    }
    const KEYS: &[&str] = &[
        "apikey",
        "accesskey",
        "authkey",
        "privatekey",
        "encryptionkey",
        "masterkey",
        "appkey",
        "accountkey",
        "apisecret",
    ];
    KEYS.iter()
        .any(|k| singular.ends_with(k))
        .then_some(SecretKind::Token)
}

/// Returns the kind of two words that only together suggest it: `api_key`, `accessKey`,
/// `private-key`.
fn compound(name: &[u8]) -> Option<(usize, SecretKind)> {
    #[rustfmt::skip]
    const BEFORE_KEY: &[&str] = &[
        "api", "access", "secret", "private", "stripe", "sendgrid", "twilio", "mailgun", "github", "gitlab", "openai",
        "anthropic", "slack", "algolia", "datadog", "paypal", "heroku", "nuget", "azure", "encryption", "encrypt",
        "auth", "signing", "master", "account", "storage", "shared", "subscription", "function", "service", "client",
        "app", "consumer", "hmac", "jwt", "session", "webhook", "deploy", "admin", "license", "aes", "crypto",
        "cipher", "security", "authorization", "sas", "primary", "write", "ingest",
    ];
    let words = split(name);
    words
        .windows(2)
        .rposition(|w| {
            matches!(w[1].as_str(), "key" | "keys") && BEFORE_KEY.contains(&w[0].as_str())
        })
        .map(|i| {
            // The primary key of a table and the session key of a map are often not secrets.
            (
                i + 1,
                if words[i] == "secret" {
                    SecretKind::Secret
                } else {
                    SecretKind::Token
                },
            )
        })
}

/// Returns the kind that a whole name suggests. The words before and after the word for a secret
/// can exclude it.
fn judge(name: &[u8]) -> Option<SecretKind> {
    #[rustfmt::skip]
    const NOT_AFTER: &[&str] = &[
        "url", "uri", "path", "file", "filename", "dir", "name", "names", "id", "ids", "type", "types", "field",
        "label", "hint", "placeholder", "header", "param", "parameter", "regex", "regexp", "pattern", "length", "len",
        "size", "min", "max", "count", "expiry", "expires", "expiration", "expire", "ttl", "format", "prefix",
        "suffix", "policy", "class", "style", "selector", "input", "prompt", "message", "msg", "error", "err",
        "title", "description", "desc", "env", "var", "variable", "column", "attr", "attribute", "property", "ref",
        "reference", "version", "provider", "store", "manager", "location", "arn", "hash", "hashed", "digest",
        "hasher", "encoder", "validator", "validation", "strength", "reset", "change", "changed", "forgot", "confirm",
        "confirmation", "required", "enabled", "disabled", "enable", "disable", "algorithm", "algo", "alg", "method",
        "mode", "scheme", "kind", "status", "state", "endpoint", "scope", "scopes", "issuer", "audience", "generator",
        "service", "helper", "util", "utils", "factory", "handler", "text", "help", "info", "page", "view", "form",
        "button", "link", "icon", "address", "symbol", "index", "idx", "position", "stream", "list", "map", "table",
        "model", "schema", "key", "keyname", "keyid", "fingerprint", "thumbprint", "alias", "cookie", "rule", "rules",
        "check", "checker", "source", "target", "usage", "option", "options", "config", "template", "example", "salt",
        "iv", "nonce", "encoding", "charset", "limit", "limits", "bucket", "event", "action", "test", "namespace",
        "group", "role", "user", "username", "login", "email", "host", "port", "region", "domain", "realm", "section",
        "mount", "selected", "visible", "visibility", "toggle", "meter", "rotation", "lifetime", "duration",
        "interval", "timeout", "date", "time", "at", "doc", "docs", "color", "colour", "separator", "delimiter",
        "number", "num", "kwargs", "args", "arg", "flag", "cmd", "command", "query", "lookup", "search", "match",
        "matcher", "filter", "parser", "lexer", "uses", "budget", "price", "cost", "contract", "mgr", "settings",
        "setting", "dto", "spec", "data", "item", "items", "entry", "request", "response",
        // Operations on an existing secret: `password.encode("latin1")`.
        "encode", "decode", "split", "replace", "strip", "lstrip", "rstrip", "trim", "starts", "startswith", "ends",
        "endswith", "join", "append", "concat", "includes", "contains", "pop",
    ];
    #[rustfmt::skip]
    const NOT_BEFORE: &[&str] = &[
        "public", "publishable", "ice", "pub", "site", "next", "page", "pagination", "continuation", "sync", "resume",
        "cancel", "cancellation", "cancelation", "csrf", "xsrf", "no", "is", "has", "show", "hide", "forgot", "reset",
        "invalid", "wrong", "missing", "enable", "disable", "use", "min", "max", "placeholder", "fake", "mock",
        "dummy", "example", "sample", "test", "hash", "hashed", "encrypted", "number", "lexer", "parser", "syntax",
        "design", "css", "color", "theme", "stop", "start", "end", "bos", "eos", "pad", "unk", "mask", "special",
        "idempotency", "cache", "foreign", "unique", "sort", "partition", "bad", "incorrect", "expected", "lock",
        "etag", "old", "new", "measurement", "recaptcha", "captcha", "anon", "anonymous", "verify", "verification",
        "one", "security",
    ];
    let words = split(name);
    let (at, named) = match compound(name) {
        Some(found) => found,
        None => {
            let at = words.iter().rposition(|w| word(w).is_some())?;
            (at, word(&words[at])?)
        }
    };
    let after = &words[at + 1..];
    // Of `secret_key`, `token_secret` and `password_key`, only the first is a credential.
    let denied_after = after.iter().any(|w| NOT_AFTER.contains(&w.as_str()))
        && !(named == SecretKind::Secret
            && after.first().is_some_and(|w| w == "key")
            && after.len() == 1);
    let first = if compound(name).is_some() {
        at.saturating_sub(1)
    } else {
        at
    };
    // A pass of a renderer or a compiler.
    #[rustfmt::skip]
    const NOT_BEFORE_PASS: &[&str] = &[
        "draw", "render", "compute", "shader", "shadow", "depth", "blur", "light", "lighting", "first", "second",
        "third", "multi", "single", "two", "pre", "post", "compiler", "optimization", "forward",
    ];
    let is_pass =
        words[at] == "pass" && first > 0 && NOT_BEFORE_PASS.contains(&words[first - 1].as_str());
    let denied_before = is_pass
        || words[..first]
            .iter()
            .any(|w| NOT_BEFORE.contains(&w.as_str()));
    (!denied_after && !denied_before).then_some(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_names() {
        for (name, expected) in [
            ("password", Some(SecretKind::Password)),
            ("db.password", Some(SecretKind::Password)),
            ("DB_PASS", Some(SecretKind::Password)),
            ("dbPassword", Some(SecretKind::Password)),
            ("compass", None),
            ("draw_pass_1", None),
            ("renderPass", None),
            ("db_pass_1", Some(SecretKind::Password)),
            ("passed", None),
            ("password_hint", None),
            ("passwordField", None),
            ("password_hash", None),
            ("test_password", None),
            ("token_url", None),
            ("nextPageToken", None),
            ("accessToken", Some(SecretKind::Token)),
            ("GITHUB_TOKEN", Some(SecretKind::Token)),
            ("TOKEN_GITHUB", Some(SecretKind::Token)),
            ("api_key", Some(SecretKind::Token)),
            ("apiKey", Some(SecretKind::Token)),
            ("APIKEY", Some(SecretKind::Token)),
            ("api_key_id", None),
            ("publicKey", None),
            ("aws_secret_access_key", Some(SecretKind::Token)),
            ("client_secret", Some(SecretKind::Secret)),
            ("SECRET_KEY", Some(SecretKind::Secret)),
            ("primary_color", None),
        ] {
            assert_eq!(named(name.as_bytes()), expected, "{name}");
        }
    }
}
