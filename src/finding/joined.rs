//! Joins the findings of several reviews of one change.

use super::{Finding, sort_key};

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
    let mut group = 0;
    for (list, f) in all {
        if out
            .get(group)
            .is_none_or(|(_, first)| sort_key(first) != sort_key(&f))
        {
            group = out.len();
        }
        let known = out[group..]
            .iter_mut()
            .find(|(other, known)| *other != list && is_same(known, &f));
        match known {
            Some((_, known)) if f.blocking && !known.blocking => *known = f,
            Some(_) => {}
            None => out.push((list, f)),
        }
    }
    out.into_iter().map(|(_, f)| f).collect()
}

/// Returns true if two findings with equal sort keys are the same.
fn is_same(a: &Finding, b: &Finding) -> bool {
    a.fingerprint == b.fingerprint && a.draft.title == b.draft.title
}
