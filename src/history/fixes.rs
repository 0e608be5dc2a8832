//! `fixes.json` of a session, and its links in the hash chain.
//!
//! A fix is stored several times until it ends. Each time adds a link to the session's chain, so
//! that a stored state of a fix cannot be replaced unnoticed if a later head is known elsewhere.

use super::chain;
use super::document::{FIXES, stored_fixes, text};
use super::trouble::Result;
use super::{SessionId, Store};
use crate::error;
use crate::wire::fixing::{FixLink, Fixes, StoredFix};
use crate::wire::stored::STORED_VERSION;
use serde_json::Value;
use std::collections::HashSet;

/// Fixes of a session that are kept, at most; the oldest are dropped.
pub(super) const MOST: usize = 100;
/// Fractions of a US dollar that are stored. A number with so few digits survives a round trip,
/// which its digest needs.
const PARTS: f64 = 1e9;

/// Whether a fix continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    Open,
    /// The fix has ended, and its record is final.
    Ended,
}

impl Store {
    /// Stores a fix of a session, replacing its earlier state. Assigns a number if it has none.
    /// Returns the fix.
    ///
    /// # Errors
    ///
    /// Usage: the session is missing. Incomplete: it cannot be written.
    pub fn record_fix(
        &self,
        id: &SessionId,
        fix: StoredFix,
        progress: Progress,
    ) -> error::Result<StoredFix> {
        let stored = self
            .lock()
            .and_then(|_lock| self.link_fix(*id, fix, progress));
        stored.map_err(|t| t.error(format!("the fix of review {id} was not stored")))
    }

    /// Stores a fix with a link that continues the chain.
    fn link_fix(&self, id: SessionId, mut fix: StoredFix, progress: Progress) -> Result<StoredFix> {
        let previous = self.head_of(id)?;
        let folder = self.sessions()?.folder(&id.to_string())?;
        // An unreadable file is replaced, because no verdict depends on it.
        let Fixes {
            mut fixes,
            mut links,
            ..
        } = stored_fixes(&folder).unwrap_or_default();
        if fix.number == 0 {
            let numbers = fixes
                .iter()
                .map(|f| f.number)
                .chain(links.iter().map(|l| l.number));
            fix.number = numbers.max().unwrap_or(0).saturating_add(1);
        }
        for cost in fix.attempts.iter_mut().filter_map(|a| a.cost.as_mut()) {
            *cost = (*cost * PARTS).round() / PARTS;
        }
        match fixes.iter_mut().find(|f| f.number == fix.number) {
            Some(place) => place.clone_from(&fix),
            None => fixes.push(fix.clone()),
        }
        let surplus = fixes.len().saturating_sub(MOST);
        fixes.drain(..surplus);
        let sha256 = chain::of_fix(&serde_json::to_value(&fix).unwrap_or_default());
        let ended = progress == Progress::Ended;
        let mut link = FixLink {
            number: fix.number,
            ended,
            sha256,
            previous,
            seal: String::new(),
        };
        link.seal = chain::link(&link);
        let head = link.seal.clone();
        links.push(link);
        let document = Fixes {
            schema_version: STORED_VERSION,
            review_id: id.to_string(),
            fixes,
            links,
        };
        self.replace_in(&folder, FIXES, &text(&document)?)?;
        self.note(id, &head);
        Ok(fix)
    }
}

/// Returns the last head of a chain, including the links of fixes that continue it.
pub(super) fn end(head: String, fixes: Option<&Fixes>) -> String {
    let links = fixes.iter().flat_map(|f| &f.links);
    links.fold(head, |head, link| {
        if link.previous == head {
            link.seal.clone()
        } else {
            head
        }
    })
}

/// The result of comparing fixes with their links.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ComparedFixes {
    /// Descriptions of differences from the stored state.
    pub(super) edits: Vec<String>,
    /// Fixes without a link.
    pub(super) unlinked: Vec<u32>,
}

/// Compares fixes with their links. `values` are the fixes as JSON values of the file, including
/// fields that this version does not know. Pure.
pub(super) fn compare(fixes: &Fixes, values: &[Value]) -> ComparedFixes {
    let mut out = ComparedFixes::default();
    for (fix, value) in fixes.fixes.iter().zip(values) {
        match fixes.links.iter().rev().find(|l| l.number == fix.number) {
            None => out.unlinked.push(fix.number),
            Some(link) if link.sha256 == chain::of_fix(value) => {}
            Some(_) => out.edits.push(format!("fix {} was modified", fix.number)),
        }
    }
    let oldest = fixes.fixes.iter().map(|f| f.number).min().unwrap_or(0);
    let is_full = fixes.fixes.len() >= MOST;
    let mut seen = HashSet::new();
    let mut ended = HashSet::new();
    for link in &fixes.links {
        if ended.contains(&link.number) {
            out.edits.push(format!(
                "fix {} was stored again after it had ended",
                link.number
            ));
        }
        if link.ended {
            ended.insert(link.number);
        }
        if seen.insert(link.number) && !fixes.fixes.iter().any(|f| f.number == link.number) {
            // Only the oldest fixes are dropped, and only for newer ones.
            let is_dropped = is_full && link.number < oldest;
            if !is_dropped {
                out.edits.push(format!("fix {} is missing", link.number));
            }
        }
    }
    let mut numbers = HashSet::new();
    if let Some(twice) = fixes.fixes.iter().find(|f| !numbers.insert(f.number)) {
        out.edits.push(format!("it has fix {} twice", twice.number));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fix(number: u32, via: &str) -> StoredFix {
        StoredFix {
            number,
            via: via.to_owned(),
            ..StoredFix::default()
        }
    }

    fn link(of: &StoredFix, previous: &str, ended: bool) -> FixLink {
        let sha256 = chain::of_fix(&serde_json::to_value(of).unwrap());
        let link = FixLink {
            number: of.number,
            ended,
            sha256,
            previous: previous.to_owned(),
            seal: String::new(),
        };
        FixLink {
            seal: chain::link(&link),
            ..link
        }
    }

    fn compared(fixes: Vec<StoredFix>, links: Vec<FixLink>) -> ComparedFixes {
        let values: Vec<Value> = fixes
            .iter()
            .map(|f| serde_json::to_value(f).unwrap())
            .collect();
        compare(
            &Fixes {
                fixes,
                links,
                ..Fixes::default()
            },
            &values,
        )
    }

    #[test]
    fn fixes_are_compared_with_their_newest_links() {
        let (early, late, other) = (fix(1, "cli"), fix(1, "mcp"), fix(2, "cli"));
        let links = vec![
            link(&early, "a", false),
            link(&late, "b", true),
            link(&other, "c", false),
        ];
        let none = ComparedFixes::default();
        assert_eq!(
            compared(vec![late.clone(), other.clone()], links.clone()),
            none
        );
        for (name, fixes, expected) in [
            (
                "an earlier state",
                vec![early.clone(), other.clone()],
                "fix 1 was modified",
            ),
            ("one is gone", vec![other.clone()], "fix 1 is missing"),
            ("all are gone", vec![], "fix 1 is missing"),
            (
                "one is there twice",
                vec![late.clone(), late.clone(), other.clone()],
                "it has fix 1 twice",
            ),
        ] {
            let found = compared(fixes, links.clone());
            assert!(
                found.edits.iter().any(|e| e == expected),
                "{name}: {found:?}"
            );
        }
        let again = [links.clone(), vec![link(&early, "d", false)]].concat();
        let found = compared(vec![early, other.clone()], again);
        assert_eq!(found.edits, ["fix 1 was stored again after it had ended"]);
        let found = compared(vec![late, other, fix(3, "cli")], links);
        assert_eq!(
            found,
            ComparedFixes {
                unlinked: vec![3],
                ..ComparedFixes::default()
            }
        );
    }

    #[test]
    fn the_oldest_fixes_may_be_dropped_for_newer_ones() {
        let most = u32::try_from(MOST).unwrap();
        let all: Vec<StoredFix> = (1..=most + 2).map(|n| fix(n, "cli")).collect();
        let links: Vec<FixLink> = all.iter().map(|f| link(f, "a", true)).collect();
        assert_eq!(
            compared(all[2..].to_vec(), links.clone()),
            ComparedFixes::default()
        );
        assert_eq!(compared(all[3..].to_vec(), links.clone()).edits.len(), 3);
        let without_one: Vec<StoredFix> = all.iter().filter(|f| f.number != 50).cloned().collect();
        assert_eq!(compared(without_one, links).edits, ["fix 50 is missing"]);
    }

    #[test]
    fn a_chain_ends_with_the_links_that_continue_it() {
        let first = link(&fix(1, "cli"), "a", false);
        let second = link(&fix(1, "cli"), &first.seal, true);
        let later = link(&fix(2, "cli"), "b", true);
        let fixes = Fixes {
            links: vec![first.clone(), second.clone(), later.clone()],
            ..Fixes::default()
        };
        assert_eq!(end("a".to_owned(), Some(&fixes)), second.seal);
        assert_eq!(end("b".to_owned(), Some(&fixes)), later.seal);
        assert_eq!(end("c".to_owned(), Some(&fixes)), "c");
        assert_eq!(end("a".to_owned(), None), "a");
        assert_ne!(
            chain::link(&first),
            chain::link(&FixLink {
                ended: true,
                ..first.clone()
            })
        );
        assert_ne!(
            chain::link(&first),
            chain::link(&FixLink {
                number: 9,
                ..first.clone()
            })
        );
    }

    #[test]
    fn a_stored_cost_is_read_as_it_was_written() {
        for cost in [
            0.1 + 0.2,
            1.0 / 3.0,
            123.456_789_012_345,
            0.000_000_000_4,
            98_765.432_1,
        ] {
            let rounded = (cost * PARTS).round() / PARTS;
            let value = serde_json::to_value(rounded).unwrap();
            let again: Value = serde_json::from_str(&value.to_string()).unwrap();
            assert_eq!(again, value);
        }
    }
}
