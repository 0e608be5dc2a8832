//! Numbers every object of a repository, and reads objects straight from the packs.
//!
//! A walk over a whole history reads most objects of a repository once. Through the object
//! database each read searches every index, and resolves a chain of deltas from its start. Here an
//! object has a number, so that what is known about it fits in an array, and the objects that a
//! chain passes are kept for the next read.

use super::unreadable;
use crate::error::{Error, Result};
use gix::objs::Kind;
use gix::odb::pack::{self, data::entry::Header};
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::OnceLock;

/// Bytes of an object that is decoded, and of a delta, at most. A header can name any size, and a
/// few kilobytes of compressed data can grow to gigabytes.
pub(super) const OBJECT_MAX: u64 = 64 << 20;
/// Bytes of decoded objects that one thread keeps, at most.
const KEPT_MAX: usize = 48 << 20;
/// Deltas from an object to the whole object that its chain starts with, at most. Git writes at
/// most 4,095.
const CHAIN_MAX: usize = 10_000;

/// Why an object was not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undecodable {
    /// It, or an object that it is a delta of, is larger than 64 MiB.
    TooLarge,
    Corrupt,
}

impl std::fmt::Display for Undecodable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::TooLarge => "it, or the object that it is a delta of, is larger than 64 MiB",
            Self::Corrupt => "its data is corrupt",
        })
    }
}

impl std::error::Error for Undecodable {}

/// Every object of a repository, its alternates included.
pub(super) struct ObjectSet {
    packs: Vec<Pack>,
    /// Loose objects, sorted. The number of the first one is the number of packed objects.
    loose: Vec<gix::ObjectId>,
    stores: Vec<gix::odb::loose::Store>,
    packed: u32,
    hash: gix::hash::Kind,
}

/// A pack and its index.
pub(super) struct Pack {
    index: pack::index::File,
    data: pack::data::File,
    /// Number of the pack's first object.
    first: u32,
    /// Objects of the pack.
    count: u32,
    /// Computed on first use.
    order: OnceLock<PackOrder>,
}

/// The entries of a pack in the order of their offsets. An entry's place in it is its position.
pub(super) struct PackOrder {
    offsets: Vec<u64>,
    /// Indexes of the entries, by position.
    indexes: Vec<u32>,
}

impl PackOrder {
    /// Returns the position of the entry at an offset.
    pub(super) fn position(&self, offset: u64) -> Option<usize> {
        self.offsets.binary_search(&offset).ok()
    }

    /// Returns the index of the entry at a position.
    pub(super) fn index(&self, position: usize) -> u32 {
        self.indexes[position]
    }

    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        self.indexes.len()
    }
}

/// The number of an object: an index into arrays over all objects of an [`ObjectSet`]. An object
/// in two packs has two numbers, of which [`ObjectSet::find`] returns the first.
pub(super) type Number = u32;

/// The location of an object.
#[derive(Clone, Copy)]
pub(super) enum ObjectLocation<'a> {
    /// The entry with this index in a pack.
    Packed(&'a Pack, u32),
    Loose(&'a gix::oid),
}

impl Pack {
    /// Returns the header of the entry with this index.
    pub(super) fn entry(&self, index: u32) -> Option<pack::data::Entry> {
        self.data.entry(self.index.pack_offset_at_index(index)).ok()
    }

    /// Returns the number of the pack's first object.
    pub(super) fn first(&self) -> Number {
        self.first
    }

    /// Returns the entries in the order of their offsets.
    pub(super) fn order(&self) -> &PackOrder {
        self.order.get_or_init(|| {
            let offset = |i: &u32| self.index.pack_offset_at_index(*i);
            let mut pairs: Vec<(u64, u32)> = (0..self.count).map(|i| (offset(&i), i)).collect();
            pairs.sort_unstable();
            let (offsets, indexes) = pairs.into_iter().unzip();
            PackOrder { offsets, indexes }
        })
    }

    /// Returns the index of the entry that a delta is based on; `None` if the entry is not a delta.
    pub(super) fn base_of(&self, entry: &pack::data::Entry) -> Option<DeltaBase> {
        Some(match entry.header {
            Header::OfsDelta { base_distance } => {
                let offset = entry.checked_base_pack_offset(base_distance);
                let order = self.order();
                match offset.and_then(|o| order.position(o)) {
                    Some(position) => DeltaBase::Index(order.index(position)),
                    None => DeltaBase::Missing,
                }
            }
            Header::RefDelta { base_id } => self
                .index_of(&base_id)
                .map_or(DeltaBase::Missing, DeltaBase::Index),
            _ => return None,
        })
    }

    /// Returns the offset of the entry with this index.
    pub(super) fn offset(&self, index: u32) -> u64 {
        self.index.pack_offset_at_index(index)
    }

    /// Returns the index of the entry of an object.
    pub(super) fn index_of(&self, id: &gix::oid) -> Option<u32> {
        self.index.lookup(id)
    }

    /// Inflates the data of an entry: an object, or a delta.
    ///
    /// # Errors
    /// The data is larger than [`OBJECT_MAX`], or it cannot be inflated.
    pub(super) fn inflate(
        &self,
        entry: &pack::data::Entry,
        inflate: &mut gix::zlib::Inflate,
        out: &mut Vec<u8>,
    ) -> std::result::Result<(), Undecodable> {
        if entry.decompressed_size > OBJECT_MAX {
            return Err(Undecodable::TooLarge);
        }
        // Data shrinks to a thousandth at best, so a larger size is not true.
        let rest = (self.data.pack_end() as u64).saturating_sub(entry.data_offset);
        if entry.decompressed_size / 1100 > rest {
            return Err(Undecodable::Corrupt);
        }
        out.clear();
        out.resize(entry.decompressed_size as usize, 0);
        let inflated = self.data.decompress_entry(entry, inflate, out);
        inflated.map(drop).map_err(|_| Undecodable::Corrupt)
    }
}

impl ObjectSet {
    /// Opens the packs of a repository, and lists its loose objects.
    ///
    /// # Errors
    /// Incomplete: a pack or a folder of objects cannot be read.
    pub(super) fn open(repo: &gix::Repository) -> Result<Self> {
        let hash = repo.object_hash();
        let store = repo.objects.store_ref();
        let mut folders = vec![store.path().to_owned()];
        folders.extend(store.alternate_db_paths().map_err(|e| {
            Error::incomplete("cannot read the alternates of the repository").caused_by(&e)
        })?);
        let mut set = Self {
            packs: Vec::new(),
            loose: Vec::new(),
            stores: Vec::new(),
            packed: 0,
            hash,
        };
        for folder in folders {
            for index in indexes(&folder.join("pack"))? {
                set.add_pack(&index)?;
            }
            let store = gix::odb::loose::Store::at(folder, hash);
            set.loose
                .extend(store.iter().filter_map(std::result::Result::ok));
            set.stores.push(store);
        }
        set.loose.sort_unstable();
        set.loose.dedup();
        Ok(set)
    }

    /// Adds a pack, given the path of its index.
    fn add_pack(&mut self, path: &Path) -> Result<()> {
        let unreadable = |e: &gix::Error| {
            Error::incomplete(format!("cannot read the pack {}", path.display()))
                .caused_by(e)
                .hint("git fsck --full")
        };
        let index = pack::index::File::at(path, self.hash).map_err(|e| unreadable(&e))?;
        let data = pack::data::File::at(path.with_extension("pack"), self.hash)
            .map_err(|e| unreadable(&e))?;
        let count = index.num_objects();
        let first = self.packed;
        self.packed = first
            .checked_add(count)
            .ok_or_else(|| Error::incomplete("the repository has more than 2^32 objects"))?;
        self.packs.push(Pack {
            index,
            data,
            first,
            count,
            order: OnceLock::new(),
        });
        Ok(())
    }

    /// Returns the number of numbers.
    pub(super) fn len(&self) -> usize {
        self.packed as usize + self.loose.len()
    }

    /// Returns the packs.
    pub(super) fn packs(&self) -> &[Pack] {
        &self.packs
    }

    /// Returns the numbers of the loose objects.
    pub(super) fn loose(&self) -> std::ops::Range<Number> {
        self.packed..self.len() as u32
    }

    /// Returns the number of an object; `None` if the repository lacks it.
    pub(super) fn find(&self, id: &gix::oid) -> Option<Number> {
        for pack in &self.packs {
            if let Some(index) = pack.index.lookup(id) {
                return Some(pack.first + index);
            }
        }
        let at = self
            .loose
            .binary_search_by(|known| known.as_ref().cmp(id))
            .ok()?;
        Some(self.packed + at as u32)
    }

    /// Returns the ID of an object.
    pub(super) fn id(&self, number: Number) -> gix::ObjectId {
        match self.location(number) {
            ObjectLocation::Packed(pack, index) => pack.index.oid_at_index(index).to_owned(),
            ObjectLocation::Loose(id) => id.to_owned(),
        }
    }

    /// Returns the location of an object.
    pub(super) fn location(&self, number: Number) -> ObjectLocation<'_> {
        match number.checked_sub(self.packed) {
            Some(at) => ObjectLocation::Loose(&self.loose[at as usize]),
            None => {
                let at = self.packs.partition_point(|p| p.first <= number) - 1;
                let pack = &self.packs[at];
                ObjectLocation::Packed(pack, number - pack.first)
            }
        }
    }

    /// Reads a loose object. Returns its type.
    ///
    /// # Errors
    /// It is missing, corrupt, or larger than [`OBJECT_MAX`].
    pub(super) fn read_loose(
        &self,
        id: &gix::oid,
        out: &mut Vec<u8>,
    ) -> std::result::Result<Kind, Undecodable> {
        let mut why = Undecodable::Corrupt;
        for store in &self.stores {
            let Ok(Some((size, _))) = store.try_header(id) else {
                continue;
            };
            if size > OBJECT_MAX {
                why = Undecodable::TooLarge;
                continue;
            }
            if let Ok(Some(data)) = store.try_find(id, out) {
                let (kind, size) = (data.kind, data.data.len());
                // The data follows the header in the buffer.
                let start = out.len().saturating_sub(size);
                out.drain(..start);
                return Ok(kind);
            }
        }
        Err(why)
    }
}

/// Returns the pack indexes of a folder, sorted by name.
fn indexes(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => {
            return Err(
                Error::incomplete(format!("cannot read the folder {}", folder.display()))
                    .caused_by(&e),
            );
        }
    };
    let mut out = Vec::new();
    for entry in entries {
        let path = entry.map(|e| e.path()).unwrap_or_default();
        let is_index = path.extension().is_some_and(|e| e == "idx");
        if is_index && path.with_extension("pack").exists() {
            out.push(path);
        }
    }
    out.sort();
    Ok(out)
}

/// Reads the objects of a set in one thread, and keeps those that were read last.
pub(super) struct Objects<'a> {
    set: &'a ObjectSet,
    inflate: gix::zlib::Inflate,
    delta: Vec<u8>,
    kept: HashMap<Number, KeptObject, foldhash::fast::FixedState>,
    kept_bytes: usize,
    /// Number of reads, which is the age of kept objects.
    clock: u32,
}

/// An object that was read before.
struct KeptObject {
    data: Rc<Vec<u8>>,
    kind: Kind,
    used: u32,
}

impl<'a> Objects<'a> {
    /// Creates a reader that keeps nothing yet.
    pub(super) fn new(set: &'a ObjectSet) -> Self {
        Self {
            set,
            inflate: gix::zlib::Inflate::default(),
            delta: Vec::new(),
            kept: HashMap::default(),
            kept_bytes: 0,
            clock: 0,
        }
    }

    /// Reads an object.
    ///
    /// # Errors
    /// Incomplete: it is corrupt, of another type, or larger than [`OBJECT_MAX`].
    pub(super) fn read(
        &mut self,
        repo: &gix::Repository,
        number: Number,
        kind: Kind,
    ) -> Result<Rc<Vec<u8>>> {
        let id = self.set.id(number);
        let found = match self.set.location(number) {
            ObjectLocation::Packed(pack, index) => match self.packed(pack, index) {
                Ok(found) => Ok(found),
                Err(why) => self.copy(number).ok_or(why),
            },
            ObjectLocation::Loose(_) => self.loose(&id),
        };
        match found {
            Ok((data, is)) if is == kind => Ok(data),
            Ok((_, is)) => Err(
                Error::incomplete(format!("object {id} is a {is}, not a {kind}"))
                    .hint("git fsck --full"),
            ),
            Err(Undecodable::TooLarge) => Err(Error::incomplete(format!(
                "cannot read object {id}: {}",
                Undecodable::TooLarge
            ))
            .hint(format!("git cat-file -s {id}"))),
            Err(why) => Err(unreadable(repo, &id, Some(&why))),
        }
    }

    /// Reads a loose object. Returns its type.
    ///
    /// # Errors
    /// As [`ObjectSet::read_loose`].
    fn loose(&self, id: &gix::oid) -> std::result::Result<(Rc<Vec<u8>>, Kind), Undecodable> {
        let mut out = Vec::new();
        let kind = self.set.read_loose(id, &mut out)?;
        Ok((Rc::new(out), kind))
    }

    /// Reads a copy of an object that cannot be decoded: in another pack, or a loose one. `None`:
    /// no copy can be decoded.
    pub(super) fn copy(&mut self, number: Number) -> Option<(Rc<Vec<u8>>, Kind)> {
        let id = self.set.id(number);
        for pack in &self.set.packs {
            let index = pack.index.lookup(id);
            let other = index.filter(|index| pack.first + index != number);
            if let Some(Ok(found)) = other.map(|index| self.packed(pack, index)) {
                return Some(found);
            }
        }
        self.loose(&id).ok()
    }

    /// Reads an object of a pack, and keeps it with the objects of its chain.
    ///
    /// # Errors
    /// It cannot be decoded, or its chain of deltas has no end.
    fn packed(
        &mut self,
        pack: &Pack,
        index: u32,
    ) -> std::result::Result<(Rc<Vec<u8>>, Kind), Undecodable> {
        self.clock += 1;
        let mut chain = Vec::new();
        let mut at = index;
        let (mut data, kind) = loop {
            if let Some(kept) = self.kept.get_mut(&(pack.first + at)) {
                kept.used = self.clock;
                break (Rc::clone(&kept.data), kept.kind);
            }
            let entry = pack.entry(at).ok_or(Undecodable::Corrupt)?;
            let base = match pack.base_of(&entry) {
                Some(DeltaBase::Index(base)) => base,
                Some(DeltaBase::Missing) => return Err(Undecodable::Corrupt),
                None => {
                    let mut out = Vec::new();
                    pack.inflate(&entry, &mut self.inflate, &mut out)?;
                    let kind = entry.header.as_kind().ok_or(Undecodable::Corrupt)?;
                    let data = Rc::new(out);
                    self.keep(pack.first + at, &data, kind);
                    break (data, kind);
                }
            };
            if chain.len() > CHAIN_MAX {
                return Err(Undecodable::Corrupt);
            }
            chain.push((at, entry));
            at = base;
        };
        for (at, entry) in chain.into_iter().rev() {
            let mut delta = std::mem::take(&mut self.delta);
            let inflated = pack.inflate(&entry, &mut self.inflate, &mut delta);
            let applied = inflated.and_then(|()| Delta::parse(&delta)?.apply(&data, |_, _| ()));
            self.delta = delta;
            data = Rc::new(applied?);
            self.keep(pack.first + at, &data, kind);
        }
        Ok((data, kind))
    }

    /// Keeps an object, and forgets the oldest half if there are too many bytes.
    fn keep(&mut self, number: Number, data: &Rc<Vec<u8>>, kind: Kind) {
        if data.len() > KEPT_MAX / 8 {
            return;
        }
        self.kept_bytes += data.len();
        let used = self.clock;
        self.kept.insert(
            number,
            KeptObject {
                data: Rc::clone(data),
                kind,
                used,
            },
        );
        if self.kept_bytes <= KEPT_MAX {
            return;
        }
        let mut ages: Vec<u32> = self.kept.values().map(|k| k.used).collect();
        let middle = ages.len() / 2;
        let (_, limit, _) = ages.select_nth_unstable(middle);
        let limit = *limit;
        self.kept.retain(|_, k| k.used > limit);
        self.kept_bytes = self.kept.values().map(|k| k.data.len()).sum();
    }
}

/// The base of a delta.
pub(super) enum DeltaBase {
    /// The entry with this index in the same pack.
    Index(u32),
    /// The pack lacks it.
    Missing,
}

/// A delta: instructions that make an object from parts of its base and new bytes (git's
/// `gitformat-pack`).
#[derive(Clone, Copy)]
pub(super) struct Delta<'a> {
    /// Bytes of the base.
    base_size: usize,
    /// Bytes of the object.
    size: usize,
    instructions: &'a [u8],
}

/// An instruction of a delta.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Instruction {
    /// Copies these bytes of the base.
    Copy(Range<usize>),
    /// Inserts these bytes of the delta's instructions.
    Insert(Range<usize>),
}

impl<'a> Delta<'a> {
    /// Reads the header of a delta.
    ///
    /// # Errors
    /// It is malformed, or its object is larger than [`OBJECT_MAX`].
    pub(super) fn parse(data: &'a [u8]) -> std::result::Result<Self, Undecodable> {
        let (base_size, rest) = size(data).ok_or(Undecodable::Corrupt)?;
        let (size, instructions) = size(rest).ok_or(Undecodable::Corrupt)?;
        if size as u64 > OBJECT_MAX {
            return Err(Undecodable::TooLarge);
        }
        Ok(Self {
            base_size,
            size,
            instructions,
        })
    }

    /// Reads the instruction at an offset, and returns it with the offset of the next one. `None`:
    /// it is malformed.
    pub(super) fn instruction(&self, at: usize) -> Option<(Instruction, usize)> {
        let command = *self.instructions.get(at)?;
        let mut at = at + 1;
        if command == 0 {
            return None;
        }
        if command & 0x80 == 0 {
            let end = at + usize::from(command);
            return (end <= self.instructions.len()).then_some((Instruction::Insert(at..end), end));
        }
        let mut fields = [0u8; 7];
        for (bit, field) in fields.iter_mut().enumerate() {
            if command & (1 << bit) != 0 {
                *field = *self.instructions.get(at)?;
                at += 1;
            }
        }
        let [o0, o1, o2, o3, s0, s1, s2] = fields;
        let offset = u32::from_le_bytes([o0, o1, o2, o3]) as usize;
        let length = match u32::from_le_bytes([s0, s1, s2, 0]) as usize {
            0 => 0x10000,
            length => length,
        };
        Some((Instruction::Copy(offset..offset.checked_add(length)?), at))
    }

    /// Applies the delta, and calls `copied` with the start in the object and the range in the
    /// base of each copied part.
    ///
    /// # Errors
    /// The delta is malformed, or for another base.
    pub(super) fn apply(
        &self,
        base: &[u8],
        copied: impl FnMut(usize, Range<usize>),
    ) -> std::result::Result<Vec<u8>, Undecodable> {
        self.applied(base, copied).ok_or(Undecodable::Corrupt)
    }

    /// Applies the delta. `None`: it is malformed, or for another base.
    fn applied(&self, base: &[u8], mut copied: impl FnMut(usize, Range<usize>)) -> Option<Vec<u8>> {
        // An instruction of seven bytes makes at most 16 MiB.
        let most = (self.instructions.len() as u64).saturating_mul(1 << 24);
        if base.len() != self.base_size || self.size as u64 > most {
            return None;
        }
        let mut out = Vec::with_capacity(self.size);
        let mut at = 0;
        while at < self.instructions.len() {
            let (instruction, next) = self.instruction(at)?;
            let part = match &instruction {
                Instruction::Copy(range) => base.get(range.clone())?,
                Instruction::Insert(range) => &self.instructions[range.clone()],
            };
            if out.len() + part.len() > self.size {
                return None;
            }
            if let Instruction::Copy(range) = instruction {
                copied(out.len(), range);
            }
            out.extend_from_slice(part);
            at = next;
        }
        (out.len() == self.size).then_some(out)
    }
}

/// Reads a size at the start of a delta, and returns the rest.
fn size(data: &[u8]) -> Option<(usize, &[u8])> {
    let (mut size, mut shift) = (0u64, 0);
    for (i, byte) in data.iter().enumerate() {
        size |= u64::from(byte & 0x7f).checked_shl(shift)?;
        shift += 7;
        if byte & 0x80 == 0 {
            return Some((usize::try_from(size).ok()?, &data[i + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a number as the header of a delta has it.
    fn encoded(mut size: u64) -> Vec<u8> {
        let mut out = Vec::new();
        while size > 0x7f {
            out.push((size & 0x7f) as u8 | 0x80);
            size >>= 7;
        }
        out.push(size as u8);
        out
    }

    /// A delta that names the size of its object, and inserts one byte.
    fn delta_of(size: u64) -> Vec<u8> {
        [encoded(0), encoded(size), vec![1, b'x']].concat()
    }

    #[test]
    fn git_12_a_delta_that_names_a_huge_object_is_refused_before_memory_is_allocated() {
        for size in [OBJECT_MAX + 1, 1 << 40, u64::MAX >> 1] {
            let delta = delta_of(size);
            assert_eq!(Delta::parse(&delta).err(), Some(Undecodable::TooLarge));
        }
        let delta = delta_of(1);
        let data = Delta::parse(&delta).and_then(|d| d.apply(b"", |_, _| ()));
        assert_eq!(data, Ok(b"x".to_vec()));
        let delta = delta_of(2);
        let data = Delta::parse(&delta).and_then(|d| d.apply(b"", |_, _| ()));
        assert_eq!(data, Err(Undecodable::Corrupt));
    }
}
