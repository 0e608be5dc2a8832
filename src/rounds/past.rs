//! Counts the findings of stored reviews by file: an audit asks first about files that had some.

use crate::diff::RepoPath;
use crate::env::Env;
use crate::error::Result;
use crate::history::Store;
use crate::request::{ReviewRequest, Source};
use crate::review;
use crate::wire::mapping;
use std::collections::BTreeMap;

/// Sessions that are read, newest first, at most.
const MOST: usize = 50;

/// Returns the number of findings in the last rounds of the newest stored reviews, by file; none if
/// the request is not a review of a tree by models. Reviews that cannot be read do not count: they
/// only change an order.
pub(super) fn findings(request: &ReviewRequest, env: &Env) -> Vec<(RepoPath, u32)> {
    if !matches!(request.source, Source::Tree(_)) || request.offline {
        return Vec::new();
    }
    stored(request, env).unwrap_or_default()
}

fn stored(request: &ReviewRequest, env: &Env) -> Result<Vec<(RepoPath, u32)>> {
    let (place, policy) = review::store_location(request, env)?;
    if request.backends.is_empty() && policy.review.backends.is_empty() {
        return Ok(Vec::new());
    }
    let Some(store) = Store::find(&place)? else {
        return Ok(Vec::new());
    };
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for review in store.last_rounds(MOST) {
        for file in review.comments.into_iter().filter_map(|c| c.file) {
            *counts.entry(file).or_default() += 1;
        }
    }
    let counts = counts.into_iter();
    Ok(counts
        .map(|(file, count)| (mapping::path(&file), count))
        .collect())
}
