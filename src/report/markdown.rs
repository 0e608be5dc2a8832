//! A comment for a pull request in Markdown: findings by file with folded details, worst first,
//! within the size limit of the forge.
//!
//! The comment is inert: text of a change, a model or a server cannot mention a user, link, load,
//! run a command or render markup. [`finding`] returns the comments on single lines.

mod block;
mod page;

pub(super) use self::block::{added, item};
pub use self::page::Withheld;
pub(super) use self::page::{Detail, page};

use crate::finding::Finding;
use crate::review::Review;
use std::io::{self, Write};

/// The forge whose Markdown dialect is used. All of them support CommonMark with tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavor {
    Github,
    Gitlab,
    /// Shows HTML as text, so details cannot be folded.
    Bitbucket,
}

impl Flavor {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Github, Self::Gitlab, Self::Bitbucket];

    /// Returns the size limit of a comment. Forges count characters; counting bytes never exceeds
    /// their limit.
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

/// Returns the comment in GitHub's Markdown in at most `bound` bytes. GitLab shows it, too.
pub fn comment(review: &Review, bound: usize) -> String {
    comment_for(review, Flavor::Github, bound)
}

/// Returns the comment in the Markdown of a forge, in at most `bound` bytes.
pub fn comment_for(review: &Review, flavor: Flavor, bound: usize) -> String {
    page(review, &Detail::comment(flavor, bound))
}

/// Returns the comment that [`comment_for`] returns, without some findings.
pub fn comment_without(review: &Review, flavor: Flavor, bound: usize, hidden: &Withheld) -> String {
    page(review, &Detail::comment(flavor, bound).without(hidden))
}

/// Returns a person's text, such as a reason, on one line of Markdown: at most `most` characters,
/// and inert.
pub fn words(text: &str, most: usize) -> String {
    let short: String = text.chars().take(most).collect();
    let end = if short.len() < text.len() { "…" } else { "" };
    format!("{}{end}", item(short.trim_end()))
}

/// Returns the part of a comment that is the same in each review of the same change: without the
/// line about its basis, its duration and its session.
pub fn lasting(review: &Review, comment: &str) -> String {
    comment.replace(&page::basis(review), "")
}

/// Returns the body of a comment on a finding's lines, with a suggestion that the forge can apply
/// if there is one.
///
/// The suggestion replaces the lines of the comment: on GitHub all of them, on GitLab those up from
/// the last one. If it would not apply, its code is shown instead: lines that the change does not
/// add, hidden characters, the form of a patch, or text that the forge would read as a command.
pub fn finding(f: &Finding, flavor: Flavor) -> String {
    let body = block::block(f, &block::BlockOptions::inline(flavor));
    if body.len() <= flavor.bound() {
        body
    } else {
        block::brief(f, false)
    }
}
