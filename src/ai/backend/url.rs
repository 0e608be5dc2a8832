//! Base addresses of backends.

use super::dialect::Dialect;
use crate::ai::ask::{Cause, Failure};
use crate::http::{Url, is_local};
use std::fmt;

/// Context of a local server in tokens: the smallest size that such servers are commonly started
/// with.
const LOCAL_TOKENS: u32 = 8_000;
/// Context of a remote compatible server in tokens.
const ELSEWHERE_TOKENS: u32 = 32_000;
/// Bytes of a token, at least: most code has four.
const TOKEN: u64 = 3;
/// Divisor for the share of a context that is reserved for the answer: a quarter.
const ANSWER_SHARE: u64 = 4;

/// Returns the bytes of prompt that fit in a context, with room for an answer.
pub(super) fn bytes_of(tokens: u32) -> usize {
    let tokens = u64::from(tokens);
    usize::try_from((tokens - tokens / ANSWER_SHARE) * TOKEN).unwrap_or(usize::MAX)
}

/// Returns the tokens that remain for an answer in a context after a request of this size.
pub(super) fn room_for_answer(context: u64, request: usize) -> u64 {
    let used = u64::try_from(request).unwrap_or(u64::MAX).div_ceil(TOKEN);
    context.saturating_sub(used).max(context / ANSWER_SHARE)
}

/// The base address of a server, including the version.
#[derive(Clone, Debug)]
pub(super) struct BackendAddress {
    base: Url,
    own: bool,
}

impl BackendAddress {
    /// Parses the configured address, or the default of the dialect, and adds the version if it is
    /// missing.
    ///
    /// # Errors
    ///
    /// Returns `Setup` if the address is not an HTTP URL, or uses plain HTTP to another machine.
    pub(super) fn of(configured: Option<&str>, dialect: &Dialect) -> Result<Self, Failure> {
        let text = configured.unwrap_or(dialect.home);
        let mut base = Url::parse(text).map_err(|_| wrong_url("is not a URL"))?;
        let local = is_local(&base);
        match base.scheme() {
            "https" => {}
            "http" if local => {}
            "http" => {
                return Err(wrong_url(
                    "must not send code and keys over plain http to another machine",
                ));
            }
            _ => return Err(wrong_url("is not an HTTP URL")),
        }
        let own = Url::parse(dialect.home).is_ok_and(|home| home.origin() == base.origin());
        let last = base
            .path()
            .rsplit('/')
            .find(|s| !s.is_empty())
            .unwrap_or_default()
            .to_owned();
        let versioned = last
            .strip_prefix('v')
            .is_some_and(|v| v.starts_with(|c: char| c.is_ascii_digit()));
        if let Ok(mut path) = base.path_segments_mut() {
            path.pop_if_empty();
            if last.is_empty() || !dialect.path_is_whole && !versioned {
                path.push(dialect.version);
            }
        }
        Ok(Self { base, own })
    }

    /// Returns the URL of a resource below the base. Segments are escaped, so they cannot leave the
    /// base path.
    pub(super) fn join(&self, segments: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.extend(segments);
        }
        url
    }

    /// Returns the base address.
    pub(super) fn url(&self) -> &Url {
        &self.base
    }

    /// Returns true if this is the provider itself, not a compatible server.
    pub(super) fn is_own(&self) -> bool {
        self.own
    }

    pub(super) fn is_secure(&self) -> bool {
        self.base.scheme() == "https"
    }

    /// Returns the context of a compatible server in tokens, for prompt and answer together.
    pub(super) fn context_tokens(&self) -> u32 {
        if is_local(&self.base) {
            LOCAL_TOKENS
        } else {
            ELSEWHERE_TOKENS
        }
    }

    /// Returns the maximum size of a prompt in bytes.
    pub(super) fn capacity(&self, dialect: &Dialect) -> usize {
        match self.own {
            true => dialect.capacity,
            false => bytes_of(self.context_tokens()),
        }
    }
}

impl fmt::Display for BackendAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.base.as_str())
    }
}

/// Builds the failure of a configured address that cannot be used.
fn wrong_url(why: &str) -> Failure {
    Failure::new(Cause::Setup, format!("base_url {why}")).hint("use an https address")
}

#[cfg(test)]
mod tests {
    use super::super::{anthropic, google, openai};
    use super::BackendAddress;

    #[test]
    fn addresses_end_with_a_version_whether_it_was_written_or_not() {
        let dialects = [&anthropic::DIALECT, &openai::DIALECT, &google::DIALECT];
        for (dialect, given, expected) in [
            (0, None, "https://api.anthropic.com/v1/x"),
            (0, Some("http://127.0.0.1:1"), "http://127.0.0.1:1/v1/x"),
            (
                0,
                Some("https://gateway.example/anthropic/v1"),
                "https://gateway.example/anthropic/v1/x",
            ),
            (
                0,
                Some("https://gateway.example/anthropic"),
                "https://gateway.example/anthropic/v1/x",
            ),
            (1, None, "https://api.openai.com/v1/x"),
            (
                1,
                Some("http://localhost:11434/v1"),
                "http://localhost:11434/v1/x",
            ),
            (1, Some("http://[::1]:8080"), "http://[::1]:8080/v1/x"),
            (
                1,
                Some("https://openrouter.example/api/v1"),
                "https://openrouter.example/api/v1/x",
            ),
            (
                1,
                Some("https://server.example/openai"),
                "https://server.example/openai/x",
            ),
            (
                1,
                Some("https://r.openai.azure.com/openai/deployments/d"),
                "https://r.openai.azure.com/openai/deployments/d/x",
            ),
            (
                1,
                Some(
                    "https://l-aiplatform.googleapis.com/v1/projects/p/locations/l/endpoints/openapi",
                ),
                "https://l-aiplatform.googleapis.com/v1/projects/p/locations/l/endpoints/openapi/x",
            ),
            (
                1,
                Some("https://bedrock-runtime.r.amazonaws.com/openai/v1"),
                "https://bedrock-runtime.r.amazonaws.com/openai/v1/x",
            ),
            (
                2,
                None,
                "https://generativelanguage.googleapis.com/v1beta/x",
            ),
            (
                2,
                Some("https://gateway.example"),
                "https://gateway.example/v1beta/x",
            ),
        ] {
            let address = BackendAddress::of(given, dialects[dialect]).unwrap();
            assert_eq!(address.join(&["x"]).as_str(), expected);
            assert_eq!(address.is_own(), given.is_none(), "{expected}");
        }
    }

    #[test]
    fn net_19_plain_http_goes_to_this_machine_only() {
        for bad in [
            "http://example.com/v1",
            "http://127.0.0.1.example.com",
            "http://10.0.0.1",
            "ftp://127.0.0.1",
            "x",
        ] {
            assert!(
                BackendAddress::of(Some(bad), &openai::DIALECT).is_err(),
                "{bad}"
            );
        }
    }

    #[test]
    fn nothing_in_a_model_name_leaves_its_place() {
        let address = BackendAddress::of(Some("http://127.0.0.1:1"), &google::DIALECT).unwrap();
        let path = (google::DIALECT.path)("../../x?key=1#y");
        let path: Vec<_> = path.iter().map(String::as_str).collect();
        let url = address.join(&path);
        assert_eq!(
            (url.host_str(), url.query(), url.fragment()),
            (Some("127.0.0.1"), None, None)
        );
        assert!(url.path().starts_with("/v1beta/"), "{url}");
    }
}
