//! Notes of objects (git-notes(1)). Read in process, written by the git program.

use super::program::Program;
use super::{Repo, gix_id, own, tree};
use crate::diff::ObjectId;
use crate::env::Env;
use crate::error::{Error, Result};
use std::io::Write as _;

/// Bytes of a note, at most.
const MOST: usize = 1 << 20;

impl Repo {
    /// Returns the note of an object in the notes reference with this full name, or `None` if there
    /// is none.
    ///
    /// # Errors
    /// Incomplete: the note cannot be read, or is larger than a mebibyte.
    pub fn note(&self, reference: &str, object: ObjectId) -> Result<Option<Vec<u8>>> {
        match self.refs.find(&self.local(), reference)? {
            Some(commit) => self
                .note_id(own(&commit), object)?
                .map(|id| self.note_text(id))
                .transpose(),
            None => Ok(None),
        }
    }

    /// Reads a note.
    ///
    /// # Errors
    /// As [`Repo::note`].
    pub fn note_text(&self, note: ObjectId) -> Result<Vec<u8>> {
        let mut buf = Vec::new();
        tree::load(
            &self.local(),
            &gix_id(&note),
            gix::objs::Kind::Blob,
            &mut buf,
        )?;
        if buf.len() > MOST {
            return Err(Error::incomplete(format!(
                "the note {note} is larger than {MOST} bytes"
            )));
        }
        Ok(buf)
    }

    /// Finds the note of an object in a commit of notes.
    ///
    /// # Errors
    /// Incomplete: the commit or a folder of it cannot be read.
    pub fn note_id(&self, commit: ObjectId, object: ObjectId) -> Result<Option<ObjectId>> {
        let repo = self.local();
        let name = object.to_string();
        let (mut folder, mut rest) = (tree::of_commit(&repo, gix_id(&commit))?, name.as_bytes());
        let mut buf = Vec::new();
        // With many notes git distributes them to nested folders of two digits.
        loop {
            tree::load(&repo, &folder, gix::objs::Kind::Tree, &mut buf)?;
            let mut entries = tree::TreeEntries::new(&repo, &buf);
            let mut next = None;
            while let Some(e) = entries.next()? {
                if e.mode.is_some() && e.name == rest {
                    return Ok(Some(own(e.id)));
                }
                if e.mode.is_none() && rest.len() > 2 && e.name == &rest[..2] {
                    next = Some(e.id.to_owned());
                }
            }
            match next {
                Some(id) => (folder, rest) = (id, &rest[2..]),
                None => return Ok(None),
            }
        }
    }

    /// Sets the note of an object, replacing an existing one.
    ///
    /// # Errors
    /// Usage: git was not found, or it failed.
    pub fn set_note(
        &self,
        reference: &str,
        object: ObjectId,
        text: &[u8],
        env: &Env,
    ) -> Result<()> {
        let repo = self.local();
        let file = temporary_file(text)
            .map_err(|e| Error::incomplete("cannot write the note").caused_by(&e))?;
        let path = file
            .path()
            .to_str()
            .ok_or_else(|| Error::usage("the path of the temporary folder is not UTF-8"))?;
        let git = Program::find(&repo, env, self.worktree())?;
        git.set_note(reference, &object.to_string(), path, &self.writer(env))
    }

    /// Merges a commit of notes into a reference: if both have a note of an object, their lines are
    /// joined, sorted and deduplicated.
    ///
    /// # Errors
    /// Usage: git was not found, or it failed.
    pub fn merge_notes(&self, reference: &str, commit: ObjectId, env: &Env) -> Result<()> {
        let git = Program::find(&self.local(), env, self.worktree())?;
        git.merge_notes(reference, &commit.to_string(), &self.writer(env))
    }

    /// Returns the name and email address of the author of notes.
    fn writer(&self, env: &Env) -> (String, String) {
        let (name, email) = self.identity();
        let name = name.or_else(|| env.var("GIT_AUTHOR_NAME").map(str::to_owned));
        let email = email.or_else(|| env.var("GIT_AUTHOR_EMAIL").map(str::to_owned));
        (
            name.unwrap_or_else(|| "claude-reviewer".to_owned()),
            email.unwrap_or_else(|| "claude-reviewer@localhost".to_owned()),
        )
    }
}

/// Returns a temporary file with the given content.
fn temporary_file(content: &[u8]) -> std::io::Result<tempfile::NamedTempFile> {
    let mut file = tempfile::NamedTempFile::new()?;
    file.write_all(content)?;
    file.flush()?;
    Ok(file)
}
