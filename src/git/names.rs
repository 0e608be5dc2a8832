//! Short names: the references that git's rules find for one, and the commits of an abbreviated ID.
//!
//! Git takes the first match, and prefers a tag to a branch: an attacker who can push a tag
//! `origin/main` would control the meaning of `origin/main`. So a name with more than one commit is
//! rejected here.

use super::{Repo, own};
use crate::diff::ObjectId;
use crate::error::{Error, Result};
use std::collections::HashSet;

/// Digits of an abbreviated ID from which it competes with names: as many as git writes.
const SHORTEST: usize = 7;

/// One meaning of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameMeaning {
    /// Full name of a reference, or an object ID.
    pub name: String,
    /// Object that it points to, after following tags.
    pub id: ObjectId,
}

/// Returns the part of a revision before its first suffix: the name of a reference, or an object
/// ID.
fn named(rev: &str) -> &str {
    let ends = [rev.find(['^', '~', ':']), rev.find("@{")];
    &rev[..ends.into_iter().flatten().min().unwrap_or(rev.len())]
}

/// Returns true if a revision is only a short name: without a suffix, and not a full ID or a full
/// name.
pub fn is_short(rev: &str) -> bool {
    named(rev) == rev
        && !matches!(rev, "" | "HEAD" | "@")
        && !rev.starts_with("refs/")
        && ObjectId::from_hex(rev).is_none()
}

/// Returns all meanings of the name in a revision by git's rules, git's choice first
/// (gitrevisions(7)). Returns none for HEAD and full object IDs, and if no reference has the name.
/// A full name means that one reference.
///
/// # Errors
/// Incomplete: a reference cannot be read.
pub(super) fn places(repo: &Repo, local: &gix::Repository, rev: &str) -> Result<Vec<NameMeaning>> {
    let name = named(rev);
    let hash = local.object_hash();
    if matches!(name, "" | "HEAD" | "@")
        || ObjectId::from_hex(name).is_some_and(|_| name.len() == hash.len_in_hex())
    {
        return Ok(Vec::new());
    }
    let full = match name.starts_with("refs/") {
        true => vec![name.to_owned()],
        false => vec![
            name.to_owned(),
            format!("refs/{name}"),
            format!("refs/tags/{name}"),
            format!("refs/heads/{name}"),
            format!("refs/remotes/{name}"),
            format!("refs/remotes/{name}/HEAD"),
        ],
    };
    let mut found = repo.refs.exact(local, &full)?;
    if !found.is_empty()
        && !name.starts_with("refs/")
        && let Some(digits) = digits(name)
    {
        found.extend(
            commits(local, digits)?
                .into_iter()
                .map(|id| (id.to_string(), id)),
        );
    }
    let is_one = found.len() == 1;
    let places = found.into_iter().map(|(name, id)| {
        let id = if is_one { id } else { without_tags(local, id) };
        NameMeaning { name, id: own(&id) }
    });
    Ok(places.collect())
}

/// Returns the object at the end of a chain of tags. Returns the given ID if a tag cannot be read:
/// the code that resolves it reports the error.
fn without_tags(local: &gix::Repository, id: gix::ObjectId) -> gix::ObjectId {
    match local.find_object(id).map(gix::Object::peel_tags_to_end) {
        Ok(Ok(end)) => end.id,
        _ => id,
    }
}

/// Returns the digits of a name that may be an abbreviated ID, including the format of
/// `git describe`.
fn digits(name: &str) -> Option<&str> {
    let digits = name.rsplit_once("-g").map_or(name, |(_, digits)| digits);
    (digits.len() >= SHORTEST && digits.bytes().all(|b| b.is_ascii_hexdigit())).then_some(digits)
}

/// Returns true if a name has more than one commit.
pub fn is_ambiguous(places: &[NameMeaning]) -> bool {
    places.iter().any(|p| p.id != places[0].id)
}

/// Returns the error for an ambiguous name. `flag` is the flag before it on the command line, such
/// as `--base `.
pub fn ambiguous(rev: &str, places: &[NameMeaning], flag: &str) -> Error {
    let names: Vec<&str> = places.iter().map(|p| p.name.as_str()).collect();
    let meant = ["refs/remotes/", "refs/heads/"]
        .iter()
        .find_map(|p| names.iter().find(|n| n.starts_with(p)));
    let meant = meant.or(names.first()).unwrap_or(&rev);
    let suffix = &rev[named(rev).len()..];
    Error::usage(format!("{rev} is ambiguous: {}", names.join(" or ")))
        .hint_person(format!("use the full name: {flag}{meant}{suffix}"))
        .hint_agent(format!("use the full name: {meant}{suffix}"))
}

/// Returns the local commits whose IDs begin with these digits.
///
/// # Errors
/// Incomplete: the objects cannot be listed.
pub(super) fn commits(repo: &gix::Repository, digits: &str) -> Result<Vec<gix::ObjectId>> {
    let Ok(prefix) = gix::hash::Prefix::from_hex(digits) else {
        return Ok(Vec::new());
    };
    let mut found = HashSet::new();
    repo.objects
        .lookup_prefix(prefix, Some(&mut found))
        .map_err(|e| {
            Error::incomplete("cannot list the objects")
                .caused_by(&e)
                .hint("git fsck --full")
        })?;
    found.retain(|id| {
        repo.find_header(*id)
            .is_ok_and(|h| h.kind() == gix::objs::Kind::Commit)
    });
    Ok(found.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_ends_where_a_suffix_begins() {
        for (rev, name) in [
            ("origin/main", "origin/main"),
            ("main~3^2", "main"),
            ("v1^{commit}", "v1"),
            ("main@{upstream}", "main"),
            ("@{-1}", ""),
            ("a@b", "a@b"),
            ("main:a.txt", "main"),
        ] {
            assert_eq!(named(rev), name);
            assert_eq!(is_short(rev), rev == name, "{rev}");
        }
        for rev in ["HEAD", "@", "", "refs/heads/main", &"ab".repeat(20)] {
            assert!(!is_short(rev), "{rev}");
        }
    }

    #[test]
    fn digits_are_those_of_ids_and_of_what_describe_writes() {
        assert_eq!(digits("abcdef1"), Some("abcdef1"));
        assert_eq!(digits("v1.0-3-gabcdef12"), Some("abcdef12"));
        for none in ["abcdef", "main", "x-gabc", "abcdefg"] {
            assert_eq!(digits(none), None, "{none}");
        }
    }
}
