//! The chain of sessions: the request of each, which its seals cover, contains the heads of earlier
//! ones. Pure.
//!
//! So the removal of a session between others leaves a gap, and a session whose last round or
//! closing was removed lacks a head that a later session recorded. The oldest sessions may be
//! missing, because pruning removes them. Only `latest.json`, which no seal covers, records changes
//! after the newest session began; a head that was recorded elsewhere is stronger evidence.

use super::SessionId;
use crate::wire::stored::Head;
use std::collections::{HashMap, HashSet};

/// A record that a session existed or had a head.
#[derive(Clone, Debug)]
pub(super) struct SessionClaim {
    pub(super) by: String,
    pub(super) id: SessionId,
    /// `None` if the record only says that the session existed.
    pub(super) head: Option<String>,
}

impl SessionClaim {
    /// Returns the records in a list of heads. `by` is the file or session with the list.
    pub(super) fn all<'h>(by: &str, heads: impl IntoIterator<Item = &'h Head>) -> Vec<Self> {
        let heads = heads
            .into_iter()
            .filter_map(|h| Some((SessionId::parse(&h.review_id)?, h.head.clone())));
        heads
            .map(|(id, head)| Self {
                by: by.to_owned(),
                id,
                head,
            })
            .collect()
    }
}

/// An existing session.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownSession<'s> {
    pub(super) id: SessionId,
    /// All heads that it had, by its seals.
    pub(super) heads: &'s [String],
    /// Whether it has no other modification and this version understands all of it, so that its
    /// seals can be trusted.
    pub(super) sound: bool,
}

/// A contradiction between a record and the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Break {
    /// The session is missing, though older ones exist.
    Hole(SessionId, String),
    /// A head of the session is missing.
    Cut(SessionId, String),
}

/// Compares the records with the existing sessions. `aside` are the sessions that are damaged or
/// were removed for that; `oldest` is the oldest existing one.
pub(super) fn breaks(
    claims: &[SessionClaim],
    known: &[KnownSession<'_>],
    aside: &[SessionId],
    oldest: Option<SessionId>,
) -> Vec<Break> {
    let mut out: Vec<Break> = Vec::new();
    let mut reported: HashSet<SessionId> = HashSet::new();
    let aside: HashSet<SessionId> = aside.iter().copied().collect();
    let known: HashMap<SessionId, &KnownSession<'_>> = known.iter().map(|k| (k.id, k)).collect();
    for claim in claims {
        let (id, by) = (claim.id, &claim.by);
        if reported.contains(&id) {
            continue;
        }
        let found = match (known.get(&id), &claim.head) {
            (Some(k), Some(head)) if k.sound && !k.heads.contains(head) => Break::Cut(
                id,
                format!(
                    "{by} recorded its head {head}, which it no longer contains: it was truncated or rewritten"
                ),
            ),
            (Some(_), _) => continue,
            (None, _) if aside.contains(&id) || oldest.is_none_or(|oldest| id < oldest) => continue,
            (None, _) => Break::Hole(id, format!("missing, but {by} refers to it")),
        };
        reported.insert(id);
        out.push(found);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u32) -> SessionId {
        SessionId::parse(&format!("2026-01-31-{n:03}")).unwrap()
    }

    fn claim(by: &str, n: u32, head: Option<&str>) -> SessionClaim {
        SessionClaim {
            by: by.to_owned(),
            id: id(n),
            head: head.map(str::to_owned),
        }
    }

    /// Compares records with a store whose oldest session is 2, and whose session 3 is damaged.
    fn told(there: &[KnownSession<'_>], claims: &[SessionClaim]) -> Vec<Break> {
        breaks(claims, there, &[id(3)], Some(id(2)))
    }

    #[test]
    fn what_is_missing_between_others_is_a_hole_and_what_is_older_is_not() {
        let heads = ["a".to_owned(), "b".to_owned()];
        let there = [2, 4].map(|n| KnownSession {
            id: id(n),
            heads: &heads,
            sound: true,
        });
        let sound = [
            claim("x", 2, Some("a")),
            claim("x", 2, Some("b")),
            claim("x", 4, None),
        ];
        assert_eq!(told(&there, &sound), []);
        assert_eq!(told(&there, &[claim("x", 1, Some("gone"))]), [], "pruned");
        assert_eq!(told(&there, &[claim("x", 3, Some("gone"))]), [], "damaged");
        let hole = told(&there, &[claim("x", 5, None), claim("y", 5, Some("c"))]);
        assert_eq!(
            hole,
            [Break::Hole(id(5), "missing, but x refers to it".to_owned())]
        );
        let cut = told(&there, &[claim("x", 2, Some("c"))]);
        assert!(
            matches!(cut.as_slice(), [Break::Cut(i, why)] if *i == id(2) && why.contains("recorded its head c")),
            "{cut:?}"
        );
        assert_eq!(
            breaks(&[claim("x", 1, None)], &[], &[], None),
            [],
            "all were removed"
        );
        // The first record of a session counts, whatever other records there are.
        let both = told(
            &there,
            &[
                claim("x", 2, Some("c")),
                claim("y", 5, None),
                claim("z", 2, Some("d")),
            ],
        );
        assert!(
            matches!(both.as_slice(), [Break::Cut(a, _), Break::Hole(b, _)] if (*a, *b) == (id(2), id(5))),
            "{both:?}"
        );
        let unsound = [KnownSession {
            sound: false,
            ..there[0]
        }];
        assert_eq!(
            breaks(&[claim("x", 2, Some("c"))], &unsound, &[], Some(id(2))),
            []
        );
    }
}
