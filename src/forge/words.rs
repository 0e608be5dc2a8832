//! The texts of comments.

use crate::finding::Finding;
use crate::review::Review;
use crate::untrusted::{code, markdown};

/// How findings are written for a forge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flavor {
    /// A block whose text takes the place of the lines can be applied with a button.
    pub suggestions: bool,
    /// Bytes of a comment at most.
    pub bound: usize,
}

/// Writes a review as a comment. The same review makes the same text.
pub(super) fn comment(review: &Review, flavor: &Flavor) -> String {
    let mut text = format!("## claude-reviewer: {}\n", review.verdict.name());
    for (path, reason) in &review.coverage.failed {
        let path = path.as_ref().map_or_else(String::new, |p| format!("{}: ", code(p.as_bytes())));
        text.push_str(&format!("- not reviewed: {path}{}\n", markdown(reason)));
    }
    let mut left = 0;
    for f in review.findings.iter().filter(|f| f.counts()) {
        let place = f.file().map_or_else(String::new, |p| code(p.as_bytes()));
        let line = f.lines().map_or_else(String::new, |l| format!(", line {}", l.first));
        let entry =
            format!("\n### {}: {}\n{place}{line}\n\n{}\n", f.severity(), markdown(f.title()), markdown(f.message()));
        if text.len() + entry.len() + 100 > flavor.bound {
            left += 1;
        } else {
            text.push_str(&entry);
        }
    }
    if left > 0 {
        text.push_str(&format!("\nAnd {left} more.\n"));
    }
    text.truncate(text.floor_char_boundary(flavor.bound));
    text
}

/// Writes a finding as a comment on its lines.
pub(super) fn finding(finding: &Finding, flavor: &Flavor) -> String {
    let (title, message) = (markdown(finding.title()), markdown(finding.message()));
    let mut text = format!("**{}: {title}**\n\n{message}\n", finding.severity());
    text.truncate(text.floor_char_boundary(flavor.bound));
    text
}
