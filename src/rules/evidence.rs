//! Words of a file that show what it handles, by the tables of the data flow. Nothing is parsed.

use super::flow::{Trigger, has_sink};
use super::language::Languages;
use super::scan::flow::language_of;
use crate::diff::RepoPath;

/// Bytes of a file that are searched, at most.
const MOST: usize = 256 << 10;

/// The parts of a data flow that a file has words for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowWords {
    /// The file can read data of requests, messages or command lines.
    pub has_source: bool,
    /// The file names a call that data of others must not reach.
    pub has_sink: bool,
}

impl FlowWords {
    /// Searches a file. Takes time linear in its first [`MOST`] bytes.
    pub fn of(path: &RepoPath, text: &[u8]) -> Self {
        let text = &text[..text.len().min(MOST)];
        let languages = Languages::of(path.as_bytes(), text);
        let Some(language) = language_of(path.as_bytes(), languages) else {
            return Self::default();
        };
        Self {
            has_source: Trigger::new(language, text).has_source(),
            has_sink: has_sink(language, text),
        }
    }
}
