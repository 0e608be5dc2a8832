//! What may be shown to a model: the change with every secret replaced and every hidden character visible.
//!
//! Plan, prompt and anchor all work on these lines, so that a quote is compared with exactly what was shown.

use crate::diff::{FileChange, LineKind, LineNo, ObjectId, RepoPath};
use crate::git::State;

/// Files that belong to one comparison: the net change, or one commit of a range.
#[derive(Debug)]
pub struct Group {
    /// The commit of a range that the files belong to; findings carry it.
    pub commit: Option<ObjectId>,
    /// The tree under review, for tools that look around; `None` for a patch or files outside a repository.
    pub tree: Option<State>,
    /// What the authors say of the change: commit messages, oldest first, redacted.
    pub messages: Vec<String>,
    pub files: Vec<Shown>,
}

/// A changed file as a model sees it.
#[derive(Debug)]
pub struct Shown {
    /// The change itself, unredacted: never rendered, only measured against.
    pub change: FileChange,
    /// One for each of the change's hunks, in order.
    pub hunks: Vec<ShownHunk>,
    /// What policy says about files like this, in order.
    pub guidelines: Vec<String>,
    /// Kinds of secrets that were replaced (rule ids), without repeats, in order of appearance.
    pub redacted: Vec<String>,
}

/// A hunk as a model sees it.
#[derive(Debug)]
pub struct ShownHunk {
    /// The enclosing function or heading, redacted; empty where there is none.
    pub section: String,
    pub lines: Vec<ShownLine>,
}

/// A line of a hunk as a model sees it.
#[derive(Debug)]
pub struct ShownLine {
    pub kind: LineKind,
    pub old: Option<LineNo>,
    pub new: Option<LineNo>,
    /// Without its line end; secrets replaced, hidden characters as `\u{202e}`, at most
    /// [`MAX_LINE`] bytes (what is cut says so).
    pub text: String,
}

/// Bytes of a line that are shown at most.
pub const MAX_LINE: usize = 2_000;

impl Shown {
    /// Returns the path on the new side, or the old one of a deletion.
    pub fn path(&self) -> &RepoPath {
        self.change.path()
    }
}

/// A text beside the change: the team's conventions, a design document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// As the reviewer cites it: the path from the top of the repository, or the name it was given by.
    pub name: String,
    /// Redacted.
    pub text: String,
    /// The folder it speaks for (`CLAUDE.md` of a sub-project); empty: everything.
    pub folder: Vec<u8>,
}
