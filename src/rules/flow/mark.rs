//! Variables that only recognise the newest request of a component.

use std::collections::BTreeSet;

/// Returns true if a script only stores a variable in a member of an object and compares it with
/// the member: `this.newest = mark`, later `this.newest === mark`. The script does not read the
/// member in another way, or it is `current` of a React ref. Such a mark distinguishes requests
/// within a page and leaves it in no other way.
pub fn is_request_mark(name: &[u8], text: &[u8]) -> bool {
    const BEFORE: usize = 64;
    let mut is_compared = false;
    let mut members = BTreeSet::new();
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
        let (target, operator) = split_operator(before);
        let member = member_at_end(target);
        let compares = member.is_some() && matches!(operator, b"===" | b"!==" | b"==" | b"!=");
        let declares = [&b"const"[..], b"let", b"var"]
            .iter()
            .any(|word| before.ends_with(word));
        let stores = member.is_some() && operator == b"=";
        if !compares && !declares && !stores {
            return false;
        }
        members.extend(member.filter(|_| compares || stores));
        is_compared |= compares;
    }
    is_compared
        && members
            .iter()
            .all(|m| *m == b"current" || is_private(m, text))
}

/// Returns a text without the operator of `=` and `!` at its end, and the operator.
fn split_operator(text: &[u8]) -> (&[u8], &[u8]) {
    let size = text
        .iter()
        .rev()
        .take_while(|b| matches!(b, b'=' | b'!'))
        .count();
    let (target, operator) = text.split_at(text.len() - size);
    (target.trim_ascii_end(), operator)
}

/// Returns the name of the member that a text ends with: `newest` of `this.newest`, `current` of
/// a ref. Other objects can be records, whose members are stored.
fn member_at_end(text: &[u8]) -> Option<&[u8]> {
    let size = text.iter().rev().take_while(|b| is_word(**b)).count();
    let (before, name) = text.split_at(text.len() - size);
    (before.ends_with(b"this.") || before.ends_with(b".") && name == b"current").then_some(name)
}

/// Returns true if a script only assigns and compares a member.
fn is_private(member: &[u8], text: &[u8]) -> bool {
    memchr::memmem::find_iter(text, member).all(|at| {
        let (before, after) = (&text[..at], &text[at + member.len()..]);
        if before.last().is_some_and(|b| is_word(*b)) || after.first().is_some_and(|b| is_word(*b))
        {
            return true;
        }
        let after = after.trim_ascii_start();
        after.starts_with(b"=") && !after.starts_with(b"=>") || after.starts_with(b"!=")
    })
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
            "this._newest = token; if (this._newest === token) { show(); } this._newest = null;",
        ] {
            assert!(is_mark(rest), "{rest}");
        }
        for rest in [
            "ref.current = token;",
            "ref.current = token; if (ref.current === token) send(token);",
            "ref.current = token; if (ref.current === token) x = { token };",
            "if (given === token) login();",
            "this._newest = token; if (this._newest === token) send(this._newest);",
            "user.token = token; if (user.token === token) login();",
            "this.token = token; } check(token) { return this.token === token; ",
        ] {
            assert!(!is_mark(rest), "{rest}");
        }
    }
}
