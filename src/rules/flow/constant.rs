//! Calculates with constants.

use super::SinkKind;
use super::shape::Op;
use super::value::{Const, GAP, ItemKey};

/// Returns a constant as part of a text.
pub(super) fn shown(c: &Const) -> Option<String> {
    match c {
        Const::Text(t) => Some(t.to_string()),
        Const::Int(i) => Some(i.to_string()),
        Const::Bool(b) => Some(b.to_string()),
        Const::Float(f) => Some(f.to_string()),
        Const::Null => Some("null".to_owned()),
        Const::Regex(_) => None,
    }
}

/// Returns a constant as a key of a collection.
pub(super) fn key(c: &Const) -> Option<ItemKey> {
    match c {
        Const::Text(t) => Some(ItemKey::Text(t.clone())),
        Const::Int(i) => Some(ItemKey::Int(*i)),
        _ => None,
    }
}

/// Returns a character of a text. Negative: from the end.
pub(super) fn char_at(text: &str, at: i64) -> Option<Const> {
    let at = if at < 0 {
        i64::try_from(text.chars().count()).ok()? + at
    } else {
        at
    };
    let c = text.chars().nth(usize::try_from(at).ok()?)?;
    Some(Const::Text(c.to_string().into()))
}

fn number(c: &Const) -> Option<f64> {
    match c {
        #[expect(clippy::cast_precision_loss, reason = "only compared")]
        Const::Int(i) => Some(*i as f64),
        Const::Float(f) => Some(*f),
        _ => None,
    }
}

/// Evaluates a binary operation on constants.
pub(super) fn binary(op: Op, a: &Const, b: &Const) -> Option<Const> {
    if let Some(o) = compare(op, a, b) {
        return Some(Const::Bool(o));
    }
    if let (Const::Int(x), Const::Int(y)) = (a, b) {
        return match op {
            Op::Add => x.checked_add(*y),
            Op::Sub => x.checked_sub(*y),
            Op::Mul => x.checked_mul(*y),
            Op::Div => x.checked_div(*y),
            Op::Rem => x.checked_rem(*y),
            _ => None,
        }
        .map(Const::Int);
    }
    if op == Op::Add && (a.text().is_some() || b.text().is_some()) {
        let text = format!("{}{}", shown(a)?, shown(b)?);
        return if text.len() <= 4096 {
            Some(Const::Text(text.into()))
        } else {
            None
        };
    }
    let (x, y) = (number(a)?, number(b)?);
    match op {
        Op::Add => Some(Const::Float(x + y)),
        Op::Sub => Some(Const::Float(x - y)),
        Op::Mul => Some(Const::Float(x * y)),
        _ => None,
    }
}

fn compare(op: Op, a: &Const, b: &Const) -> Option<bool> {
    match op {
        Op::Equal => return Some(equal(a, b)),
        Op::NotEqual => return Some(!equal(a, b)),
        Op::In | Op::NotIn => {
            let (part, whole) = (a.text()?, b.text()?);
            return Some(whole.contains(&**part) == (op == Op::In));
        }
        _ => {}
    }
    let (x, y) = (number(a)?, number(b)?);
    match op {
        Op::Less => Some(x < y),
        Op::LessEqual => Some(x <= y),
        Op::Greater => Some(x > y),
        Op::GreaterEqual => Some(x >= y),
        _ => None,
    }
}

fn equal(a: &Const, b: &Const) -> bool {
    match (number(a), number(b)) {
        (Some(x), Some(y)) => (x - y).abs() < f64::EPSILON,
        _ => a == b,
    }
}

/// Returns the kinds of sinks that data cannot harm if it follows a text. An address with a fixed
/// host is such a text.
pub(super) fn fixed_by(known: &str) -> u32 {
    let targets = SinkKind::Url.bit() | SinkKind::Redirect.bit();
    if known.is_empty() {
        return 0;
    }
    // A path on this site.
    if known.starts_with('/') {
        let second = known.chars().nth(1);
        return if second.is_some_and(|c| c != '/' && c != '\\' && c != GAP) {
            targets
        } else {
            0
        };
    }
    if known.starts_with('?') || known.starts_with('#') {
        return targets;
    }
    let rest = match known.split_once("://") {
        Some((scheme, rest)) if scheme.len() < 20 => rest,
        // A base that the program chose, followed by a path.
        _ if known.starts_with(GAP) => known.trim_start_matches(GAP),
        _ => return 0,
    };
    let host_end = rest.find(['/', '?', '#']);
    match host_end {
        Some(0) if !known.starts_with(GAP) => 0,
        Some(_) => targets,
        None => 0,
    }
}
