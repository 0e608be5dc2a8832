//! How far a review is, for people who wait.

/// Hears how far a review is. Called from several threads.
pub trait Progress: Sync {
    /// `done` of `total` files are reviewed.
    fn files(&self, done: usize, total: usize);
}

/// Says nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn files(&self, _done: usize, _total: usize) {}
}
