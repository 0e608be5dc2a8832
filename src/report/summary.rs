//! The summary of a job, in Markdown: all there is to say, in what GitHub takes for `$GITHUB_STEP_SUMMARY`.

use super::markdown::{Detail, page};
use crate::review::Review;
use std::io::{self, Write};

/// Bytes of a summary. GitHub takes 1 MiB from a step; other programs of the step may have something to say too.
const BOUND: usize = 1_000_000;

/// Writes the summary.
pub fn render(review: &Review, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(page(review, &Detail::summary(BOUND)).as_bytes())
}
