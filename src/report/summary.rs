//! The summary of a CI job in Markdown: the complete report in the size that GitHub accepts for
//! `$GITHUB_STEP_SUMMARY`.

use super::markdown::{Detail, page};
use crate::review::Review;
use std::io::{self, Write};

/// Bytes of a summary, at most. GitHub accepts 1 MiB from a step, and other programs of the step
/// may add to it.
const BOUND: usize = 1_000_000;

/// Writes the summary.
pub fn render(review: &Review, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(page(review, &Detail::summary(BOUND)).as_bytes())
}
