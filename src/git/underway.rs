//! Operations in progress, and the destination of a push.

use super::{Repo, own};
use crate::bounded;
use crate::error::Result;
use std::fs::File;
use std::io::{Seek as _, SeekFrom};
use std::path::Path;

/// Bytes at the end of a reflog that hold its last line.
const LAST_LINE: u64 = 4096;

/// The destination of a push of the current branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushTarget {
    /// Name of the remote.
    pub remote: String,
    /// Full name of the reference there.
    pub reference: String,
    /// Object ID that the remote had when it was last asked; zeros if it has no such reference.
    pub known: String,
}

impl Repo {
    /// Returns the multi-step operation in progress, if there is one: its commits are not final.
    pub fn underway(&self) -> Option<&'static str> {
        use gix::state::InProgress as P;
        let name = match self.local().state() {
            Some(P::ApplyMailbox) => "am",
            Some(P::ApplyMailboxRebase | P::Rebase | P::RebaseInteractive) => "rebase",
            Some(P::Bisect) => "bisect",
            Some(P::CherryPick | P::CherryPickSequence) => "cherry-pick",
            Some(P::Merge) => "merge",
            Some(P::Revert | P::RevertSequence) => "revert",
            None if self.git_dir().join("sequencer").is_dir() => "cherry-pick",
            // A bisect that stopped at its start has no log yet.
            None if self.git_dir().join("BISECT_START").is_file() => "bisect",
            // A single commit that is picked without a conflict leaves no other trace while its
            // hooks run.
            None if is_picked(self.git_dir()) => "cherry-pick",
            None => return None,
        };
        Some(name)
    }

    /// Returns the destination of a push of the current branch. Returns `None` if HEAD is detached,
    /// or no branch of the remote is known, so that a push would send the whole history.
    ///
    /// # Errors
    /// Incomplete, if references cannot be read.
    pub fn push_target(&self) -> Result<Option<PushTarget>> {
        let local = self.local();
        let Some(branch) = self.refs.branch(&local)? else {
            return Ok(None);
        };
        let Ok(full) = gix::refs::FullName::try_from(branch.as_str()) else {
            return Ok(None);
        };
        let direction = gix::remote::Direction::Push;
        let remotes = self.remotes();
        let configured = local
            .branch_remote_name(full.shorten(), direction)
            .map(|n| n.as_bstr().to_string());
        let remote = configured.filter(|r| remotes.contains(r)).or_else(|| {
            remotes
                .iter()
                .find(|r| *r == "origin")
                .or(remotes.first())
                .cloned()
        });
        let Some(remote) = remote else {
            return Ok(None);
        };
        let prefix = format!("refs/remotes/{remote}/");
        let tracking = local.branch_remote_tracking_ref_name(full.as_ref(), direction);
        let tracking = tracking
            .and_then(std::result::Result::ok)
            .map(|n| n.as_bstr().to_string());
        let same = format!("{prefix}{}", full.shorten());
        let tracking = tracking.filter(|t| t.starts_with(&prefix)).unwrap_or(same);
        let known = self.refs.find(&local, &tracking)?;
        if known.is_none() && self.refs.tips(&local, &prefix)?.is_empty() {
            return Ok(None);
        }
        let reference = format!("refs/heads/{}", &tracking[prefix.len()..]);
        let known = known.unwrap_or(local.object_hash().null());
        Ok(Some(PushTarget {
            remote,
            reference,
            known: own(&known).to_string(),
        }))
    }
}

/// Returns true if the last line of HEAD's reflog is that of `git cherry-pick`.
fn is_picked(git_dir: &Path) -> bool {
    let Ok(bytes) = end_of(&git_dir.join("logs/HEAD")) else {
        return false;
    };
    let line = bytes
        .trim_ascii_end()
        .rsplit(|b| *b == b'\n')
        .next()
        .unwrap_or_default();
    line.split(|b| *b == b'\t')
        .nth(1)
        .is_some_and(|message| message.starts_with(b"cherry-pick: "))
}

/// Reads the end of a file.
fn end_of(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LAST_LINE)))?;
    bounded::start(file, LAST_LINE)
}
