//! Which parts of the change go into which request. Pure.

use std::ops::Range;

/// One request's part of the change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Position of the [`Group`](super::material::Group).
    pub group: usize,
    /// In the order of the change; at least one.
    pub pieces: Vec<Piece>,
}

/// A file, or a part of one, in a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Position in [`Group::files`](super::material::Group::files).
    pub file: usize,
    /// Which lines of which hunks, in order; together the whole file unless it was split.
    pub hunks: Vec<HunkPart>,
    /// The file has further parts in other chunks.
    pub split: bool,
}

/// Consecutive lines of a hunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HunkPart {
    /// Position in [`Shown::hunks`](super::material::Shown::hunks).
    pub hunk: usize,
    /// Positions in [`ShownHunk::lines`](super::material::ShownHunk::lines).
    pub lines: Range<usize>,
}
