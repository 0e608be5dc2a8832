//! The result of adding comments on lines, which every forge returns.

use crate::http::Failure;

/// The result of adding comments on lines.
#[derive(Debug, Default)]
pub(super) struct Added {
    pub(super) placed: usize,
    /// Indices of comments that the forge rejected for their position.
    pub(super) unplaced: Vec<usize>,
    /// Failure that prevented the remaining comments.
    pub(super) failure: Option<Failure>,
}

impl Added {
    /// Ends with a failure.
    pub(super) fn ends(self, failure: Failure) -> Self {
        Self {
            failure: Some(failure),
            ..self
        }
    }
}
