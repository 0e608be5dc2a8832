//! Passwords in addresses: `scheme://user:password@host`, with any host.

use super::value::{self, Tier};
use crate::rules::secret::words;
use std::ops::Range;

/// Bytes of a user name, a password and a host together, at most.
const AUTHORITY: usize = 4096;

/// Finds passwords in addresses. Linear: bytes of one address are not searched again.
pub(super) fn find(text: &[u8], out: &mut Vec<Range<usize>>) {
    let mut done = 0;
    for at in memchr::memmem::find_iter(text, b"://") {
        if at < done {
            continue;
        }
        let start = at + 3;
        let rest = &text[start..text.len().min(start + AUTHORITY)];
        let Some(first) = rest.iter().position(|b| *b == b'@' || ends_address(*b)) else {
            continue;
        };
        done = start + first;
        if rest[first] != b'@' {
            continue;
        }
        let host = rest[first..]
            .iter()
            .position(|b| ends_address(*b) || matches!(b, b'/' | b'?' | b'#' | b','));
        let end = host.map_or(rest.len(), |i| first + i);
        let sign = memchr::memrchr(b'@', &rest[..end]).unwrap_or(first);
        let Some(colon) = memchr::memchr(b':', &rest[..sign]) else {
            continue;
        };
        if is_password(&rest[..colon], &rest[colon + 1..sign]) {
            out.push(start + colon + 1..start + sign);
        }
    }
}

/// Returns true for a byte that ends an address: white space, a quote or a bracket of a tag.
fn ends_address(b: u8) -> bool {
    b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b'`' | b'<' | b'>')
}

fn is_password(user: &[u8], password: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(password) else {
        return true;
    };
    let port = text.len() < 6 && text.bytes().all(|b| b.is_ascii_digit());
    if text.len() < 4
        || text.contains("//")
        || port
        || user.eq_ignore_ascii_case(password)
        || words::is_stand_in(text)
    {
        return false;
    }
    // A value of letters alone counts here, because only a password can be in this position.
    !value::is_reference(text) && !words::is_filler(text)
        || value::is_hidden(password, Tier::Weak, true)
}
