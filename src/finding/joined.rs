//! Joins the findings of several reviews of one change.

use super::{Finding, sort_key};
use std::collections::HashMap;

/// Returns the findings of all lists in the order of [`super::arrange`]. Findings that several lists
/// have stay once; a blocking one is preferred. Fingerprints do not change, because the parts of one
/// change have different files.
pub(crate) fn join(lists: Vec<Vec<Finding>>) -> Vec<Finding> {
    let mut all: Vec<(usize, Finding)> = Vec::new();
    for (list, findings) in lists.into_iter().enumerate() {
        all.extend(findings.into_iter().map(|f| (list, f)));
    }
    // A stable sort: findings of one list with equal keys stay in their order.
    all.sort_by(|(_, a), (_, b)| sort_key(a).cmp(&sort_key(b)));
    let mut out: Vec<(usize, Finding)> = Vec::with_capacity(all.len());
    let (mut group, mut known) = (0, HashMap::new());
    for (list, f) in all {
        if out
            .get(group)
            .is_none_or(|(_, first)| sort_key(first) != sort_key(&f))
        {
            group = out.len();
            known.clear();
        }
        let key = (f.fingerprint.clone(), f.draft.title.clone());
        let places: &mut SamePlaces = known.entry(key).or_default();
        match places.of_another_list(list) {
            Some(at) if f.blocking && !out[at].1.blocking => out[at].1 = f,
            Some(_) => {}
            None => {
                places.add(list, out.len());
                out.push((list, f));
            }
        }
    }
    out.into_iter().map(|(_, f)| f).collect()
}

/// The positions of findings in the result that have one sort key, fingerprint and title. A list of
/// another job can have very many of them, so only two are kept: the first one, and the first one of
/// another list.
#[derive(Default)]
struct SamePlaces {
    /// The number of the list, and the position.
    first: Option<(usize, usize)>,
    other: Option<(usize, usize)>,
}

impl SamePlaces {
    /// Returns the position of the first finding that is not of a list.
    fn of_another_list(&self, list: usize) -> Option<usize> {
        let mut both = self.first.iter().chain(&self.other);
        both.find(|(of, _)| *of != list).map(|(_, at)| *at)
    }

    /// Adds a finding of a list.
    fn add(&mut self, list: usize, at: usize) {
        match self.first {
            None => self.first = Some((list, at)),
            Some((first, _)) if first != list && self.other.is_none() => {
                self.other = Some((list, at));
            }
            Some(_) => {}
        }
    }
}
