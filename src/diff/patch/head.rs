//! The lines between `diff --git` and the content: modes, IDs, renames.

use super::Fault;
use super::names::{self, Pair};
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
        Self { old_mode: mode, new_mode: mode, ..Self::default() }
    }

    /// Parses a line; returns false if it is not part of the header.
    pub(super) fn take(&mut self, line: &'a [u8]) -> Result<bool, &'static str> {
        let is = |key: &str| line.strip_prefix(key.as_bytes());
        if let Some(mode) = is("old mode ") {
            self.old_mode = Some(file_mode(mode)?);
        } else if let Some(mode) = is("new mode ") {
            self.new_mode = Some(file_mode(mode)?);
        } else if let Some(mode) = is("deleted file mode ") {
            self.deleted = true;
            self.old_mode = Some(file_mode(mode)?);
        } else if let Some(mode) = is("new file mode ") {
            self.added = true;
            self.new_mode = Some(file_mode(mode)?);
        } else if let Some(name) = is("rename from ").or_else(|| is("rename old ")) {
            self.from = Some(name);
        } else if let Some(name) = is("rename to ").or_else(|| is("rename new ")) {
            self.to = Some(name);
        } else if let Some(name) = is("copy from ") {
            self.copied = true;
            self.from = Some(name);
        } else if let Some(name) = is("copy to ") {
            self.copied = true;
            self.to = Some(name);
        } else if let Some(percent) = is("similarity index ").or_else(|| is("dissimilarity index ")) {
            let percent = percent.strip_suffix(b"%").and_then(|p| std::str::from_utf8(p).ok()?.parse().ok());
            self.similarity = Some(percent.filter(|p| *p <= 100).ok_or("invalid similarity: not a percentage")?);
        } else if let Some(rest) = is("index ") {
            let mut words = rest.splitn(2, |b| *b == b' ');
            let ids = words.next().unwrap_or_default();
            let at = memchr::memmem::find(ids, b"..").ok_or("invalid index line: expected two IDs")?;
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
    pub(super) fn names(&self) -> Option<Pair> {
        let name = |text: &[u8]| match unquote(text) {
            Some((name, used)) => (used == text.len()).then_some(name),
            None => Some(text.to_vec()),
        };
        Some(Pair { old: name(self.from?)?, new: name(self.to?)? })
    }

    /// Returns true if the IDs differ, so that the file has content to review which the patch lacks.
    pub(super) fn content_is_missing(&self, entry: &Entry) -> bool {
        /// ID of the empty file, SHA-1 and SHA-256; an abbreviated ID is compared with its start.
        const EMPTY: [&[u8]; 2] = [b"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391", b"473a0f4c3be8a93681a267e3b1e9a7dcda"];
        let Some((old, new)) = self.ids else { return false };
        let empty = |id: &[u8]| EMPTY.iter().any(|e| id.starts_with(&e[..id.len().min(e.len())]));
        match (&entry.old, &entry.new) {
            (_, None) => false,
            (None, _) => !empty(new),
            _ => old != new,
        }
    }

    /// Combines the names and the header.
    pub(super) fn entry(&self, pair: &Pair, added: bool, deleted: bool) -> Result<Entry, Fault> {
        let id = |text: &[u8]| std::str::from_utf8(text).ok().and_then(ObjectId::from_hex).filter(|id| !id.is_null());
        let side = |path: &[u8], mode: Option<FileMode>, text: Option<&[u8]>| {
            let path = names::path(path)?;
            Ok::<_, Fault>(Side { path, mode: mode.unwrap_or(FileMode::Regular), id: text.and_then(id) })
        };
        if added && deleted {
            return Err(Fault::Other("file is both new and deleted"));
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
            _ => return Err(Fault::Other("rename or copy with only one file name")),
        };
        let old = if added { None } else { Some(old?) };
        let new = if deleted { None } else { Some(new?) };
        Ok(Entry { kind, old, new })
    }
}

fn file_mode(digits: &[u8]) -> Result<FileMode, &'static str> {
    let mode = std::str::from_utf8(digits).ok().and_then(|d| u32::from_str_radix(d.trim(), 8).ok());
    match mode.map(|m| (m & 0o170_000, m & 0o111)) {
        Some((0o100_000, 0)) => Ok(FileMode::Regular),
        Some((0o100_000, _)) => Ok(FileMode::Executable),
        Some((0o120_000, _)) => Ok(FileMode::Symlink),
        Some((0o160_000, _)) => Ok(FileMode::Submodule),
        _ => Err("invalid file mode"),
    }
}
