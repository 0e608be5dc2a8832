//! Short names: which references git's rules find under one, and which commits an abbreviated id.

use crate::error::{Error, Result};
use std::collections::HashSet;

/// Returns the commits here whose ids begin with these digits.
///
/// # Errors
/// Incomplete: the objects cannot be listed.
pub(super) fn commits(repo: &gix::Repository, digits: &str) -> Result<Vec<gix::ObjectId>> {
    let Ok(prefix) = gix::hash::Prefix::from_hex(digits) else { return Ok(Vec::new()) };
    let mut found = HashSet::new();
    let failed =
        |e: gix::Error| Error::incomplete("the objects cannot be listed").caused_by(&e).hint("git fsck --full");
    repo.objects.lookup_prefix(prefix, Some(&mut found)).map_err(failed)?;
    let is_commit = |id: &gix::ObjectId| repo.find_header(*id).is_ok_and(|h| h.kind() == gix::objs::Kind::Commit);
    found.retain(is_commit);
    Ok(found.into_iter().collect())
}
