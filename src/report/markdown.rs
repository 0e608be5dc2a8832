//! A comment for a pull request, in Markdown: findings by file to unfold, the worst first, within a forge's limit.
//!
//! The comment is inert: nothing that a change, a model or a server wrote mentions anybody, links, loads, commands or
//! draws. What a forge publishes beside a line is made by [`finding`].

mod block;
mod page;

pub(super) use self::block::{added, item};
pub(super) use self::page::{Detail, page};

use crate::finding::Finding;
use crate::review::Review;
use std::io::{self, Write};

/// Whose Markdown it is. What they share is CommonMark with tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavor {
    Github,
    Gitlab,
    /// Shows HTML as text, so nothing folds.
    Bitbucket,
}

impl Flavor {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Github, Self::Gitlab, Self::Bitbucket];

    /// Returns how many characters a comment may have. Bytes are counted, of which there are never fewer.
    pub fn bound(self) -> usize {
        match self {
            Self::Github => 65_536,
            Self::Gitlab => 1_000_000,
            Self::Bitbucket => 32_768,
        }
    }
}

/// Writes the comment for GitHub.
pub fn render(review: &Review, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(comment(review, Flavor::Github.bound()).as_bytes())
}

/// Returns the comment in GitHub's Markdown, which GitLab shows too, in at most `bound` bytes.
pub fn comment(review: &Review, bound: usize) -> String {
    comment_for(review, Flavor::Github, bound)
}

/// Returns the comment in the Markdown of a forge, in at most `bound` bytes.
pub fn comment_for(review: &Review, flavor: Flavor, bound: usize) -> String {
    page(review, &Detail::comment(flavor, bound))
}

/// Returns what of a review's comment stays the same when the same change is reviewed again: all but what it is based
/// on, how long it took and where it is stored.
pub fn lasting(review: &Review, comment: &str) -> String {
    comment.replace(&page::basis(review), "")
}

/// Returns the body of a comment on a finding's lines, with a suggestion to apply where there is one that fits.
///
/// The suggestion counts from the comment's own lines: on GitHub all of them, on GitLab up from the last one. It is
/// left out, and its code shown, where it would not apply: lines that the change does not have, other text than it
/// shows, a patch of its own, or what the forge would take for a command.
pub fn finding(f: &Finding, flavor: Flavor) -> String {
    let body = block::block(f, &block::Look::inline(flavor));
    if body.len() <= flavor.bound() { body } else { block::brief(f, false) }
}
