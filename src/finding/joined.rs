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
        // The first finding with this key, in the list that has it first.
        let (first, at) = *known.entry(key).or_insert((list, out.len()));
        if first == list {
            out.push((list, f));
        } else if f.blocking && !out[at].1.blocking {
            out[at].1 = f;
        }
    }
    out.into_iter().map(|(_, f)| f).collect()
}
