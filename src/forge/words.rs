//! The texts of comments.

use crate::finding::Finding;
use crate::report::{self, Format, Style};
use crate::review::Review;
use crate::untrusted::Inert;

/// How findings are written for a forge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flavor {
    /// A block whose text takes the place of the lines can be applied with a button.
    pub suggestions: bool,
    /// Bytes of a comment at most.
    pub bound: usize,
}

/// Writes a review as a comment.
pub(super) fn comment(review: &Review, flavor: &Flavor) -> String {
    let mut bytes = Vec::new();
    // Nothing can go wrong in memory.
    let _ = report::render(review, Format::Human, &Style::default(), &mut bytes);
    fenced(&String::from_utf8_lossy(&bytes), flavor.bound)
}

/// Writes a finding as a comment on its lines.
pub(super) fn finding(finding: &Finding, flavor: &Flavor) -> String {
    let text = format!("{}: {}\n{}", finding.severity(), Inert::new(finding.title()), Inert::new(finding.message()));
    fenced(&text, flavor.bound)
}

fn fenced(text: &str, bound: usize) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}text\n{}\n{fence}", &text[..text.floor_char_boundary(bound)])
}
