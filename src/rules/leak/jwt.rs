//! JSON Web Tokens of any kind: signed or not, encrypted, with or without claims that a rule
//! requires.

use crate::rules::decode;
use std::ops::Range;

/// Characters of a header, at least.
const HEADER: usize = 16;
/// Parts of a token, at most: a JWE has five.
const PARTS: usize = 5;

fn sign(b: &u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'=')
}

/// Finds tokens: the Base64 of a JSON object that names an algorithm, and at least one further
/// part. Linear.
pub(super) fn find(text: &[u8], out: &mut Vec<Range<usize>>) {
    let mut done = 0;
    for at in memchr::memmem::find_iter(text, b"eyJ") {
        if at < done || at > 0 && sign(&text[at - 1]) && text[at - 1] != b'=' {
            continue;
        }
        let header = at + text[at..].iter().take_while(|b| sign(b)).count();
        done = header;
        if header - at < HEADER || !names_algorithm(&text[at..header]) {
            continue;
        }
        let mut end = header;
        for _ in 1..PARTS {
            let length = text[end..]
                .strip_prefix(b".")
                .map(|rest| rest.iter().take_while(|b| sign(b)).count());
            match length {
                // The third part of five can be empty.
                Some(n) if n > 0 || text.get(end + 1) == Some(&b'.') => end += n + 1,
                _ => break,
            }
        }
        if end > header + 8 {
            done = end;
            out.push(at..end);
        }
    }
}

fn names_algorithm(header: &[u8]) -> bool {
    const KEYS: [&[u8]; 5] = [b"\"alg\"", b"\"enc\"", b"\"typ\"", b"\"kid\"", b"\"cty\""];
    let end = header.iter().rposition(|b| *b != b'=').map_or(0, |i| i + 1);
    let json = decode::decode(&header[..end.min(4096)]).unwrap_or_default();
    KEYS.iter()
        .any(|k| memchr::memmem::find(&json, k).is_some())
}
