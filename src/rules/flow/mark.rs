//! Variables that only recognise the newest request of a component.

/// Returns true if a script only stores a variable in a React ref and compares it with the ref:
/// `ref.current = mark`, later `ref.current === mark`. Such a mark distinguishes requests within a
/// page and leaves it in no other way.
pub fn is_request_mark(name: &[u8], text: &[u8]) -> bool {
    const BEFORE: usize = 64;
    const COMPARED: [&[u8]; 4] = [
        b".current ===",
        b".current !==",
        b".current ==",
        b".current !=",
    ];
    let mut is_compared = false;
    for at in memchr::memmem::find_iter(text, name) {
        let (before, after) = (
            &text[at.saturating_sub(BEFORE)..at],
            &text[at + name.len()..],
        );
        if before.last().is_some_and(|b| is_word(*b)) || after.first().is_some_and(|b| is_word(*b))
        {
            continue;
        }
        let before = before.trim_ascii_end();
        let compares = COMPARED.iter().any(|c| before.ends_with(c));
        let declares = [&b"const"[..], b"let", b"var"]
            .iter()
            .any(|word| before.ends_with(word));
        if !compares && !declares && !before.ends_with(b".current =") {
            return false;
        }
        is_compared |= compares;
    }
    is_compared
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$')
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_mark_of_a_request_is_only_stored_and_compared() {
        fn is_mark(rest: &str) -> bool {
            super::is_request_mark(b"token", format!("let token = a();{rest}").as_bytes())
        }
        for rest in [
            "ref.current = token; if (ref.current === token) {}",
            "if (ref.current !== token) return; tokens();",
            "a.current = token;\n  if (a.current == token && b) {}",
        ] {
            assert!(is_mark(rest), "{rest}");
        }
        for rest in [
            "ref.current = token;",
            "ref.current = token; if (ref.current === token) send(token);",
            "ref.current = token; if (ref.current === token) x = { token };",
            "if (given === token) login();",
        ] {
            assert!(!is_mark(rest), "{rest}");
        }
    }
}
