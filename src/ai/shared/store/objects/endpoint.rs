//! Addresses of stores that a variable names: an emulator, or a server with the same interface.

use super::StoreFailure;
use crate::http::{Url, is_local};

/// Bytes of an address, at most.
const MAX_ENDPOINT: usize = 1024;

/// Validates the address in a variable; returns it without a trailing slash. `subject` starts the
/// reason of an error, and `scheme` is that of an address without one, as the tools of the store
/// read it.
///
/// Plain HTTP is only accepted for this machine: it would send answers, and the credentials of the
/// store, unencrypted to another one.
///
/// # Errors
///
/// The reason, without the address.
pub(super) fn endpoint(subject: &str, text: &str, scheme: &str) -> Result<String, StoreFailure> {
    let text = text.trim();
    let text = match text.contains("://") {
        true => text.to_owned(),
        false => format!("{scheme}://{text}"),
    };
    let url = Url::parse(&text)
        .ok()
        .filter(|_| text.len() <= MAX_ENDPOINT);
    let Some(url) = url.filter(|url| url.host_str().is_some_and(|host| !host.is_empty())) else {
        return Err(format!("{subject} is not a URL"));
    };
    match url.scheme() {
        "https" => {}
        "http" if is_local(&url) => {}
        "http" => {
            return Err(format!(
                "{subject} must be an https URL: plain http is for this machine only"
            ));
        }
        _ => return Err(format!("{subject} must be an https URL")),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(format!("{subject} must not contain a user or a password"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(format!("{subject} must not contain a query or a fragment"));
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_a_url_without_a_trailing_slash() {
        for (text, read) in [
            ("http://127.0.0.1:9000", "http://127.0.0.1:9000"),
            (
                "http://127.0.0.1:10000/account/",
                "http://127.0.0.1:10000/account",
            ),
            ("localhost:4443", "http://localhost:4443"),
            ("[::1]:4443", "http://[::1]:4443"),
            (
                "https://storage.example.com/",
                "https://storage.example.com",
            ),
        ] {
            assert_eq!(
                endpoint("HOST", text, "http").as_deref(),
                Ok(read),
                "{text}"
            );
        }
        for bad in [
            "",
            "https://",
            "ftp://127.0.0.1",
            "unix:///run/socket",
            "https://storage.example.com/?key=x",
            "https://storage.example.com/#x",
        ] {
            let why = endpoint("HOST", bad, "http").unwrap_err();
            assert!(why.starts_with("HOST "), "{bad}: {why}");
        }
    }

    #[test]
    fn net_19_a_plain_endpoint_is_for_this_machine_only() {
        for there in [
            "http://10.0.0.1:9000",
            "http://storage.example.com",
            "http://localhost.example.com",
            "http://[2001:db8::1]",
            "http://0.0.0.0:9000",
            // The metadata service of a cloud is not a store.
            "http://169.254.169.254",
            "storage.example.com:4443",
        ] {
            let why = endpoint("HOST", there, "http").unwrap_err();
            assert!(why.contains("for this machine only"), "{there}: {why}");
        }
    }

    #[test]
    fn a_reason_contains_no_password() {
        let why = endpoint("HOST", "https://user:hunter2-canary@h.example.com", "https");
        assert!(!why.unwrap_err().contains("canary"));
    }
}
