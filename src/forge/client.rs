//! JSON over HTTP for the APIs of forges: paths below a base address, pages, and the meaning of
//! errors.
//!
//! The operator sets the base address ([`super::site`]). No answer of a forge can direct a request,
//! and with it the token, to another address.

use crate::http;
use crate::http::{
    Failure, HeaderMap, Limits, Method, Protocol, Refusal, Repeat, Reply, Request, Server, Trouble,
    Url,
};
use secrecy::SecretString;
use serde_json::Value;
use std::time::{Duration, SystemTime};

/// Bytes of an answer after decompression, at most.
const MAX_BODY: usize = 16 << 20;
/// Pause after a forge reports too many requests without a time to retry.
const COOL_DOWN: Duration = Duration::from_secs(60);

/// A forge's API at one address.
#[derive(Debug)]
pub(super) struct Client {
    server: Server,
    /// Ends with a slash.
    base: Url,
    /// Setting to change if the token is wrong, such as `GITHUB_TOKEN`.
    token_name: String,
}

/// An answer.
#[derive(Clone, Debug)]
pub(super) struct ApiDocument {
    /// Null if the body is empty.
    pub(super) value: Value,
    pub(super) headers: HeaderMap,
}

/// The query parameters of an address.
pub(super) type Query<'a> = &'a [(&'a str, &'a str)];

impl Client {
    /// Returns a client of a server whose paths are all below `base`.
    pub(super) fn new(server: Server, mut base: Url, token_name: String) -> Self {
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        Self {
            server,
            base,
            token_name,
        }
    }

    /// Resolves the token. Only the first call has a cost.
    pub(super) async fn ready(&self, limits: &Limits<'_>) -> Result<(), Failure> {
        self.server.ready(limits).await
    }

    /// Returns true if the client has no token.
    pub(super) fn is_keyless(&self) -> bool {
        self.server.is_keyless()
    }

    /// Returns the token, if there is one and it was resolved.
    pub(super) fn token(&self) -> Option<&SecretString> {
        self.server.key().map(|key| key.secret())
    }

    /// Returns the name of the setting for the token.
    pub(super) fn token_name(&self) -> &str {
        &self.token_name
    }

    /// Returns the path prefix of requests; ends with a slash.
    pub(super) fn api_path(&self) -> &str {
        self.base.path()
    }

    /// Makes text of the forge safe to display: without the token, on one line, escaped, and short.
    pub(super) fn shown(&self, text: &str) -> String {
        self.server.shown(text)
    }

    /// Returns an address below the base. A segment cannot change the path: slashes are escaped,
    /// and a segment of dots is rejected.
    ///
    /// # Errors
    ///
    /// `Setup` if a segment is not valid in an address.
    pub(super) fn url(
        &self,
        segments: &[impl AsRef<str>],
        query: Query<'_>,
    ) -> Result<Url, Failure> {
        let mut url = self.base.clone();
        let segments = segments.iter().map(AsRef::as_ref);
        // True for an empty segment too.
        if segments.clone().any(|s| s.chars().all(|c| c == '.')) {
            return Err(invalid_segment());
        }
        url.path_segments_mut()
            .map_err(|()| invalid_segment())?
            .pop_if_empty()
            .extend(segments);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Ok(url)
    }

    /// Sends a request to an address from [`Client::url`], [`Client::next`] or [`Client::page`], and
    /// reads the answer.
    pub(super) async fn send(
        &self,
        method: Method,
        repeat: Repeat,
        url: Url,
        body: Option<&Value>,
        limits: &Limits<'_>,
    ) -> Result<ApiDocument, Failure> {
        let body = body.map(Value::to_string);
        let request = Request {
            method,
            url,
            body: body.as_ref().map(String::as_bytes),
            content_type: None,
            repeat,
        };
        self.server
            .send(&request, self, limits, &mut http::admit_all)
            .await
    }

    /// Returns the address of the next page, if there is one.
    ///
    /// # Errors
    ///
    /// `Malformed` if the address is not below the base.
    pub(super) fn next(&self, headers: &HeaderMap) -> Result<Option<Url>, Failure> {
        let Some(next) = headers
            .get_all("link")
            .iter()
            .filter_map(|v| v.to_str().ok())
            .find_map(next_of)
        else {
            return Ok(None);
        };
        self.page(next).map(Some)
    }

    /// Parses the address of another page of a list.
    ///
    /// # Errors
    ///
    /// `Malformed` if the address is not below the base.
    pub(super) fn page(&self, address: &str) -> Result<Url, Failure> {
        let url = self.base.join(address).ok().filter(|url| self.holds(url));
        url.ok_or_else(|| {
            Failure::new(
                http::Cause::Malformed,
                "the next page of a list is on another server",
            )
        })
    }

    /// Returns true if an address is below the base.
    pub(super) fn holds(&self, url: &Url) -> bool {
        let bare = url.username().is_empty() && url.password().is_none();
        bare && url.origin() == self.base.origin() && url.path().starts_with(self.base.path())
    }
}

/// Returns the error for a segment that is not valid in an address.
fn invalid_segment() -> Failure {
    Failure::new(http::Cause::Setup, "a name that no address can hold")
}

/// Returns the address of the next page in a `Link` header.
fn next_of(header: &str) -> Option<&str> {
    let mut rest = header;
    while let Some(start) = rest.find('<') {
        let (target, after) = rest[start + 1..].split_once('>')?;
        // The parameters end at the next link.
        let end = after
            .find(",<")
            .or_else(|| after.find(", <"))
            .unwrap_or(after.len());
        let is_next = after[..end].split(';').any(|p| {
            let Some((name, value)) = p.split_once('=') else {
                return false;
            };
            let value = value.trim().trim_end_matches(',').trim_matches('"');
            name.trim().eq_ignore_ascii_case("rel")
                && value.split(' ').any(|r| r.eq_ignore_ascii_case("next"))
        });
        if is_next {
            return Some(target);
        }
        rest = &after[end..];
    }
    None
}

impl Protocol for Client {
    type Answer = ApiDocument;

    async fn read(&self, reply: Reply<'_>) -> Result<ApiDocument, Trouble> {
        let headers = reply.headers().clone();
        let bytes = reply.body(MAX_BODY).await.map_err(|mut trouble| {
            if trouble.failure.cause == http::Cause::Malformed {
                trouble.failure.cause = http::Cause::TooLarge;
            }
            trouble
        })?;
        if bytes.is_empty() {
            return Ok(ApiDocument {
                value: Value::Null,
                headers,
            });
        }
        match http::json(&bytes) {
            Some(value) => Ok(ApiDocument { value, headers }),
            None => {
                let said = self.shown(&String::from_utf8_lossy(&bytes));
                Err(Trouble::malformed(format!(
                    "the answer is not JSON: {said}"
                )))
            }
        }
    }

    fn moved(&self, path: &str) -> Option<String> {
        let path = self.shown(path);
        Some(format!(
            "it was renamed or moved, and is at {path} now: give the remote its new address (git remote set-url)"
        ))
    }

    fn refused(&self, refusal: &Refusal) -> Trouble {
        let code = refusal.status.as_u16();
        let said = match http::json(&refusal.body) {
            Some(value) => said(&value),
            None => String::from_utf8_lossy(&refusal.body).into_owned(),
        };
        let limited = limited(refusal, &said);
        let cause = match code {
            _ if limited.is_some() => http::Cause::Refused,
            404 => http::Cause::Setup,
            413 => http::Cause::TooLarge,
            408 | 500.. => http::Cause::Unreachable,
            _ => http::Cause::Refused,
        };
        let mut message = http::named(refusal.status);
        if let Some(after) = limited {
            message.push_str(&format!("; retry after {} s", http::ceil(after)));
        }
        if !said.trim().is_empty() {
            message.push_str(": ");
            message.push_str(&self.shown(&said));
        }
        let mut failure = Failure::new(cause, message);
        failure.status = Some(code);
        failure.retry_after = limited;
        failure.hint = match code {
            _ if limited.is_some() => None,
            401 | 403 | 404 if self.is_keyless() => Some(format!(
                "it was asked without a token: set {}",
                self.token_name
            )),
            401 => Some(format!("check the token in {}", self.token_name)),
            403 => Some(format!(
                "the token in {} may not do this: give it the right, or another token",
                self.token_name
            )),
            404 => Some(format!(
                "does it exist, and may the token in {} read it?",
                self.token_name
            )),
            _ => None,
        };
        match limited {
            // The forge rejected the request, so it was not carried out.
            Some(after) => Trouble {
                failure,
                passing: true,
                floor: Some(after),
                maybe_done: false,
            },
            None => {
                let passing = code != 409 && http::retry::is_passing(code, None);
                Trouble {
                    failure,
                    passing,
                    floor: None,
                    maybe_done: true,
                }
            }
        }
    }
}

/// Returns the time to wait after too many requests: 429, or GitHub's 403 with certain headers or
/// words (<https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api>).
fn limited(refusal: &Refusal, said: &str) -> Option<Duration> {
    let code = refusal.status.as_u16();
    if code != 403 && code != 429 {
        return None;
    }
    if let Some(after) = refusal.after {
        return Some(after);
    }
    let used_up = [
        ("x-ratelimit-remaining", "x-ratelimit-reset"),
        ("ratelimit-remaining", "ratelimit-reset"),
    ];
    for (left, reset) in used_up {
        if number_in(refusal, left) == Some(0)
            && let Some(reset) = number_in(refusal, reset)
        {
            let now = SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap_or_default();
            return Some(Duration::from_secs(
                reset
                    .saturating_sub(now.as_secs())
                    .clamp(1, 365 * 24 * 3600),
            ));
        }
    }
    let by_words = code == 429 || said.to_ascii_lowercase().contains("secondary rate limit");
    by_words.then_some(COOL_DOWN)
}

/// Returns the number in a header of an answer.
fn number_in(refusal: &Refusal, header: &str) -> Option<u64> {
    refusal
        .headers
        .get(header)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()
}

/// Extracts the error message of a forge: GitHub's `message` and `errors`, GitLab's `message` or
/// `error` (text, list or object), Bitbucket's `errors[].message` and `error.message`.
fn said(value: &Value) -> String {
    let mut out = Vec::new();
    for key in ["message", "error", "error_description", "errors"] {
        gather(&value[key], &mut out, 0);
    }
    out.join("; ")
}

fn gather(value: &Value, out: &mut Vec<String>, depth: usize) {
    const MOST: usize = 8;
    if out.len() >= MOST || depth > 3 {
        return;
    }
    match value {
        Value::String(text) if !text.trim().is_empty() => out.push(text.clone()),
        Value::Array(list) => list.iter().for_each(|v| gather(v, out, depth + 1)),
        Value::Object(object) => {
            let before = out.len();
            for key in ["message", "detail", "error"] {
                gather(
                    &object.get(key).cloned().unwrap_or_default(),
                    out,
                    depth + 1,
                );
            }
            if out.len() > before {
                return;
            }
            // GitHub has an object with field and code; GitLab maps fields to lists of messages.
            if let (Some(field), Some(code)) = (object.get("field"), object.get("code")) {
                out.push(format!(
                    "{} {}",
                    field.as_str().unwrap_or_default(),
                    code.as_str().unwrap_or_default()
                ));
                return;
            }
            for (name, inner) in object {
                let mut of_field = Vec::new();
                gather(inner, &mut of_field, depth + 1);
                if !of_field.is_empty() {
                    out.push(format!("{name} {}", of_field.join(", ")));
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::{Client, next_of, said};
    use crate::http::{Method, Pool, Proxies, Server, Setup, Url, key::KeySource};
    use serde_json::json;

    fn client(base: &str) -> Client {
        let address = Url::parse(base).unwrap();
        let server = Server::new(Setup {
            address: address.clone(),
            setting: "github_api",
            carries: ("authorization", "Bearer "),
            headers: &[],
            key: KeySource::Keyless,
            max_retries: 0,
            retry_delay: crate::http::retry::DELAY,
            is_patient: false,
            proxies: Proxies::default(),
            pool: Pool::default(),
        });
        Client::new(server, address, "GITHUB_TOKEN".to_owned())
    }

    #[test]
    fn the_next_page_is_found_among_links() {
        for (header, next) in [
            (
                "<https://a/x?page=2>; rel=\"next\", <https://a/x?page=9>; rel=\"last\"",
                Some("https://a/x?page=2"),
            ),
            (
                "<https://a/x?page=1>; rel=\"prev\",<https://a/x?page=3>; rel=next",
                Some("https://a/x?page=3"),
            ),
            (
                "<https://a/x?a=1,2&page=3>; title=\"a\"; rel=\"last next\"",
                Some("https://a/x?a=1,2&page=3"),
            ),
            ("<https://a/x>; rel=\"prev\"", None),
            ("<https://a/x; rel=\"next\"", None),
            ("", None),
        ] {
            assert_eq!(next_of(header), next, "{header}");
        }
    }

    #[test]
    fn no_page_leads_the_token_elsewhere() {
        let client = client("https://forge.example/api/v3");
        assert!(client.holds(
            &Url::parse("https://forge.example/api/v3/repositories/1/pulls?page=2").unwrap()
        ));
        for elsewhere in [
            "http://forge.example/api/v3/x",
            "https://forge.example:8443/api/v3/x",
            "https://forge.example.evil/api/v3/x",
            "https://evil.example/api/v3/x",
            "https://u:p@forge.example/api/v3/x",
            "https://forge.example/api/v30/x",
            "https://forge.example/api/v3/../../x",
        ] {
            assert!(
                !client.holds(&Url::parse(elsewhere).unwrap()),
                "{elsewhere}"
            );
        }
    }

    #[test]
    fn nothing_in_a_name_leaves_its_place() {
        let client = client("https://forge.example/api/v4/");
        let url = client
            .url(&["projects", "a/b?c#d", "x%2f"], &[("q", "a&b")])
            .unwrap();
        assert_eq!(
            url.as_str(),
            "https://forge.example/api/v4/projects/a%2Fb%3Fc%23d/x%252f?q=a%26b"
        );
        for bad in ["", ".", ".."] {
            assert!(client.url(&["projects", bad], &[]).is_err(), "{bad:?}");
        }
        let _ = Method::PUT;
    }

    #[test]
    fn the_words_of_every_forge_are_found() {
        for (body, expected) in [
            (
                json!({ "message": "Bad credentials", "documentation_url": "https://x" }),
                "Bad credentials",
            ),
            (
                json!({ "message": "Validation Failed", "errors": [{ "resource": "R", "field": "line", "code": "invalid" }] }),
                "Validation Failed; line invalid",
            ),
            (
                json!({ "message": "Unprocessable Entity", "errors": ["Line could not be resolved"] }),
                "Unprocessable Entity; Line could not be resolved",
            ),
            (
                json!({ "message": { "note": ["can't be blank"] } }),
                "note can't be blank",
            ),
            (
                json!({ "error": "invalid_token", "error_description": "expired" }),
                "invalid_token; expired",
            ),
            (
                json!({ "errors": [{ "context": null, "message": "No permission", "exceptionName": "E" }] }),
                "No permission",
            ),
            (
                json!({ "type": "error", "error": { "message": "Not found", "detail": "no repository" } }),
                "Not found; no repository",
            ),
            (json!(["x"]), ""),
        ] {
            assert_eq!(said(&body), expected, "{body}");
        }
    }
}
