//! The lines between `diff --git` and the content: modes, IDs, renames.

use super::HeaderFault;
use super::names::{self, NamePair};
use crate::diff::unified::unquote;
use crate::diff::{ChangeKind, Entry, FileMode, ObjectId, Side};

/// The header lines of one file.
#[derive(Debug, Default)]
pub(super) struct GitHead<'a> {
    old_mode: Option<FileMode>,
    new_mode: Option<FileMode>,
    pub(super) added: bool,
    pub(super) deleted: bool,
    similarity: Option<u8>,
    copied: bool,
    from: Option<&'a [u8]>,
    to: Option<&'a [u8]>,
    /// The two IDs as written, often abbreviated.
    ids: Option<(&'a [u8], &'a [u8])>,
}

impl<'a> GitHead<'a> {
    /// Creates the header of a changed submodule.
    pub(super) fn of_submodule() -> Self {
        let mode = Some(FileMode::Submodule);
        Self {
            old_mode: mode,
            new_mode: mode,
            ..Self::default()
        }
    }

    /// Parses a line; returns false if it is not part of the header.
    pub(super) fn take(&mut self, line: &'a [u8]) -> Result<bool, &'static str> {
        if let Some(mode) = line.strip_prefix(b"old mode ") {
            self.old_mode = Some(file_mode(mode)?);
        } else if let Some(mode) = line.strip_prefix(b"new mode ") {
            self.new_mode = Some(file_mode(mode)?);
        } else if let Some(mode) = line.strip_prefix(b"deleted file mode ") {
            self.deleted = true;
            self.old_mode = Some(file_mode(mode)?);
        } else if let Some(mode) = line.strip_prefix(b"new file mode ") {
            self.added = true;
            self.new_mode = Some(file_mode(mode)?);
        } else if let Some(name) = line
            .strip_prefix(b"rename from ")
            .or_else(|| line.strip_prefix(b"rename old "))
        {
            self.from = Some(name);
        } else if let Some(name) = line
            .strip_prefix(b"rename to ")
            .or_else(|| line.strip_prefix(b"rename new "))
        {
            self.to = Some(name);
        } else if let Some(name) = line.strip_prefix(b"copy from ") {
            self.copied = true;
            self.from = Some(name);
        } else if let Some(name) = line.strip_prefix(b"copy to ") {
            self.copied = true;
            self.to = Some(name);
        } else if let Some(percent) = line
            .strip_prefix(b"similarity index ")
            .or_else(|| line.strip_prefix(b"dissimilarity index "))
        {
            let percent = percent
                .strip_suffix(b"%")
                .and_then(|p| std::str::from_utf8(p).ok()?.parse().ok());
            self.similarity = Some(
                percent
                    .filter(|p| *p <= 100)
                    .ok_or("invalid similarity: not a percentage")?,
            );
        } else if let Some(rest) = line.strip_prefix(b"index ") {
            let mut words = rest.splitn(2, |b| *b == b' ');
            let ids = words.next().unwrap_or_default();
            let at =
                memchr::memmem::find(ids, b"..").ok_or("invalid index line: expected two IDs")?;
            let ids = (&ids[..at], &ids[at + 2..]);
            if ids.1.contains(&b',') || ids.0.contains(&b',') {
                return Err("unsupported combined diff of a merge");
            }
            self.ids = Some(ids);
            if let Some(mode) = words.next() {
                let mode = file_mode(mode)?;
                self.old_mode.get_or_insert(mode);
                self.new_mode.get_or_insert(mode);
            }
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Returns the names of the rename and copy lines.
    pub(super) fn names(&self) -> Option<NamePair> {
        Some(NamePair {
            old: whole_name(self.from?)?,
            new: whole_name(self.to?)?,
        })
    }

    /// Returns true if the IDs differ, so that the file has content to review which the patch
    /// lacks.
    pub(super) fn content_is_missing(&self, entry: &Entry) -> bool {
        /// ID of the empty file, SHA-1 and SHA-256; an abbreviated ID is compared with its start.
        const EMPTY: [&[u8]; 2] = [
            b"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
            b"473a0f4c3be8a93681a267e3b1e9a7dcda",
        ];
        let Some((old, new)) = self.ids else {
            return false;
        };
        match (&entry.old, &entry.new) {
            (_, None) => false,
            (None, _) => !EMPTY
                .iter()
                .any(|e| new.starts_with(&e[..new.len().min(e.len())])),
            _ => old != new,
        }
    }

    /// Combines the names and the header.
    pub(super) fn entry(
        &self,
        pair: &NamePair,
        added: bool,
        deleted: bool,
    ) -> Result<Entry, HeaderFault> {
        if added && deleted {
            return Err(HeaderFault::Other("file is both new and deleted"));
        }
        let old = side(&pair.old, self.old_mode, self.ids.map(|i| i.0));
        let new = side(&pair.new, self.new_mode, self.ids.map(|i| i.1));
        let similarity = self.similarity.unwrap_or(100);
        let kind = match (self.from, self.to) {
            _ if added => ChangeKind::Added,
            _ if deleted => ChangeKind::Deleted,
            (Some(_), Some(_)) if self.copied => ChangeKind::Copied { similarity },
            (Some(_), Some(_)) => ChangeKind::Renamed { similarity },
            (None, None) => ChangeKind::Modified,
            _ => return Err(HeaderFault::Other("rename or copy with only one file name")),
        };
        let old = if added { None } else { Some(old?) };
        let new = if deleted { None } else { Some(new?) };
        Ok(Entry { kind, old, new })
    }
}

/// Returns a name without its quotes; `None` if a text follows it.
fn whole_name(text: &[u8]) -> Option<Vec<u8>> {
    match unquote(text) {
        Some((name, used)) => (used == text.len()).then_some(name),
        None => Some(text.to_vec()),
    }
}

/// Returns one side of an entry. Its ID is `None` if the patch has none, or an abbreviated one, or
/// only zeros.
fn side(path: &[u8], mode: Option<FileMode>, id: Option<&[u8]>) -> Result<Side, HeaderFault> {
    let path = names::path(path)?;
    let id = id
        .and_then(|id| std::str::from_utf8(id).ok())
        .and_then(ObjectId::from_hex)
        .filter(|id| !id.is_null());
    Ok(Side {
        path,
        mode: mode.unwrap_or(FileMode::Regular),
        id,
    })
}

fn file_mode(digits: &[u8]) -> Result<FileMode, &'static str> {
    let mode = std::str::from_utf8(digits)
        .ok()
        .and_then(|d| u32::from_str_radix(d.trim(), 8).ok());
    match mode.map(|m| (m & 0o170_000, m & 0o111)) {
        Some((0o100_000, 0)) => Ok(FileMode::Regular),
        Some((0o100_000, _)) => Ok(FileMode::Executable),
        Some((0o120_000, _)) => Ok(FileMode::Symlink),
        Some((0o160_000, _)) => Ok(FileMode::Submodule),
        _ => Err("invalid file mode"),
    }
}
