//! Presigned addresses of AWS, which name a key ID and contain no secret.

use super::SecretCandidate;

/// Returns true if the text is the key ID, or starts with it, in the credential scope of a
/// presigned address: `X-Amz-Credential=ID/date/region/service/aws4_request` with a signature.
///
/// The address is made to be handed out. Who has it can do the one signed request until it expires,
/// and cannot sign another.
pub(super) fn is_key_id(c: &SecretCandidate<'_>) -> bool {
    const NAME: &[u8] = b"X-Amz-Credential=";
    let head = c.head();
    let name = head
        .get(head.len().saturating_sub(NAME.len())..)
        .unwrap_or_default();
    let value = c.line.get(c.at..).unwrap_or_default();
    let id = value
        .iter()
        .position(|b| !b.is_ascii_uppercase() && !b.is_ascii_digit())
        .unwrap_or(value.len());
    name.eq_ignore_ascii_case(NAME)
        && id > 0
        && has_scope(&value[id..])
        && memchr::memmem::find(c.line, b"X-Amz-Signature=").is_some()
}

/// Returns true if the text is the signature of an address that expired before this program existed:
/// `?e=1576142006&token=SIGNATURE`, with the end of its validity in seconds since 1970.
pub(super) fn is_long_expired(c: &SecretCandidate<'_>) -> bool {
    /// 2001-09-09, the first time with ten digits.
    const EARLIEST: u64 = 1_000_000_000;
    /// 2025-01-01.
    const LONG_AGO: u64 = 1_735_689_600;
    const NAME: &[u8] = b"&token=";
    let head = c.head().strip_suffix(NAME).unwrap_or_default();
    let digits = head.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let (before, time) = head.split_at(head.len() - digits);
    let time = std::str::from_utf8(time).ok().and_then(|t| t.parse().ok());
    let is_end = before.ends_with(b"?e=") || before.ends_with(b"&e=");
    digits == 10 && is_end && time.is_some_and(|time: u64| (EARLIEST..LONG_AGO).contains(&time))
}

/// Returns true if a text starts with `/date/region/service/aws4_request`.
fn has_scope(text: &[u8]) -> bool {
    let Some([date, region, service, end]) = scope(text) else {
        return false;
    };
    let is_date = date.len() == 8 && date.iter().all(u8::is_ascii_digit);
    let are_names = [region, service]
        .iter()
        .all(|name| (1..=32).contains(&name.len()));
    is_date && are_names && end == b"aws4_request"
}

/// Returns the four words at the start of a text, each after a slash.
fn scope(text: &[u8]) -> Option<[&[u8]; 4]> {
    let (date, rest) = word(text)?;
    let (region, rest) = word(rest)?;
    let (service, rest) = word(rest)?;
    let (end, _) = word(rest)?;
    Some([date, region, service, end])
}

/// Reads a slash, which can be percent-encoded, and the word after it.
fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = [&b"/"[..], b"%2F", b"%2f"]
        .iter()
        .find_map(|slash| text.strip_prefix(*slash))?;
    let end = rest
        .iter()
        .position(|b| !b.is_ascii_alphanumeric() && !matches!(b, b'-' | b'_'));
    Some(rest.split_at(end.unwrap_or(rest.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_presigned(line: &str) -> bool {
        let at = line.find("KEYID").unwrap();
        is_key_id(&SecretCandidate {
            secret: b"KEYID",
            line: line.as_bytes(),
            at,
            after: b"",
            path: b"a.md",
        })
    }

    #[test]
    fn the_key_id_of_a_presigned_address_is_no_credential() {
        for slash in ["/", "%2F", "%2f"] {
            let scope = ["", "20240131", "eu-west-1", "s3", "aws4_request"].join(slash);
            let line = format!(
                "https://a.example/b?X-Amz-Credential=KEYID{scope}&X-Amz-Expires=60&X-Amz-Signature=0a"
            );
            assert!(is_presigned(&line), "{line}");
        }
    }

    #[test]
    fn a_key_id_elsewhere_is_a_credential() {
        for line in [
            "X-Amz-Credential=KEYID",
            "X-Amz-Credential=KEYID/20240131/eu-west-1/s3/aws4_request",
            "X-Amz-Credential=KEYID/2024/eu-west-1/s3/aws4_request&X-Amz-Signature=0a",
            "key=KEYID # X-Amz-Credential=A/20240131/eu-west-1/s3/aws4_request&X-Amz-Signature=0a",
        ] {
            assert!(!is_presigned(line), "{line}");
        }
    }
}
