//! Which parts of the change go into which request. Pure.
//!
//! Files stay whole where they fit, and what belongs together stays together ([`affinity`]). Cuts between chunks
//! depend on the files' names rather than on what came before, so that an edit moves few of them and the answers to
//! the other chunks can be used again. Nothing is dropped silently: what the limits leave out is named.

mod affinity;
mod split;

use super::material::{Group, Shown, ShownHunk};
use std::ops::Range;

pub use split::halve;

/// One request's part of the change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Position of the [`Group`](super::material::Group).
    pub group: usize,
    /// In the order of the change; at least one.
    pub pieces: Vec<Piece>,
    /// Bytes of related code that fit in the request.
    pub room: usize,
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

/// What requests may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Files of one request.
    pub files: usize,
    /// Shown lines of one request.
    pub lines: usize,
    /// Bytes of one request's part of the change: what the backend takes, less what is the same in all requests.
    /// Three bytes are about a token.
    pub bytes: usize,
    /// Requests for the whole change.
    pub requests: usize,
}

/// Bytes of related code in one request, as far as the backend takes them: this, or twice the part of the change.
const RELATED: usize = 20 << 10;

/// The requests of a review, and what they leave out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    pub chunks: Vec<Chunk>,
    /// What would have taken more requests than there may be, in order.
    pub left_out: Vec<LeftOut>,
}

/// A file that no request holds, or not all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftOut {
    pub group: usize,
    /// Position in [`Group::files`](super::material::Group::files).
    pub file: usize,
    /// A part of it is in a chunk.
    pub partly: bool,
}

/// How much of a request something takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Weight {
    files: usize,
    lines: usize,
    bytes: usize,
}

impl std::ops::Add for Weight {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { files: self.files + other.files, lines: self.lines + other.lines, bytes: self.bytes + other.bytes }
    }
}

impl Weight {
    /// Bytes of a file's heading besides its names, and of a hunk's besides its section.
    const HEADING: usize = 64;
    const HUNK: usize = 8;
    /// Bytes of the section that a part of a hunk may have.
    const SECTION: usize = 120;
    /// Bytes of a line besides its text: the number, the marker, the end.
    const LINE: usize = 9;

    fn of_lines(hunk: &ShownHunk, lines: Range<usize>) -> Self {
        let section = if lines.start == 0 { hunk.section.len() } else { hunk.section.len().max(Self::SECTION) };
        let count = lines.len();
        let bytes: usize = hunk.lines[lines].iter().map(|l| l.text.len() + Self::LINE).sum();
        Self { files: 0, lines: count, bytes: bytes + section + Self::HUNK }
    }

    fn of_file(file: &Shown) -> Self {
        // A guideline may name the files that it is about.
        let guidelines: usize = file.guidelines.iter().map(|g| g.len() + file.name.len() + 4).sum();
        let names = file.name.len() + file.old_name.as_ref().map_or(0, String::len);
        Self { files: 1, lines: 0, bytes: names + Self::HEADING + guidelines }
    }

    fn of_piece(file: &Shown, piece: &Piece) -> Self {
        let hunks = piece.hunks.iter().map(|p| Self::of_lines(&file.hunks[p.hunk], p.lines.clone()));
        hunks.fold(Self::of_file(file), Self::add)
    }

    fn fits(self, limits: &Limits) -> bool {
        self.files <= limits.files && self.lines <= limits.lines && self.bytes <= limits.bytes
    }

    /// Returns true if it takes at least half of a request.
    fn is_half(self, limits: &Limits) -> bool {
        self.files * 2 >= limits.files || self.lines * 2 >= limits.lines || self.bytes * 2 >= limits.bytes
    }
}

use std::ops::Add as _;

/// Cuts the change into chunks. The same change gives the same chunks.
pub fn plan(groups: &[Group], limits: &Limits) -> Plan {
    let limits = &Limits { files: limits.files.max(1), lines: limits.lines.max(1), ..*limits };
    let mut plan = Plan::default();
    for (index, group) in groups.iter().enumerate() {
        let mut chunks = pack(index, group, limits);
        // Only a question about a whole group has its commit messages. What several questions ask does not depend on them.
        if chunks.len() == 1 {
            let messages: usize = group.messages.iter().map(|m| m.len() + 2).sum();
            chunks = pack(index, group, &Limits { bytes: limits.bytes.saturating_sub(messages), ..*limits });
        }
        plan.chunks.append(&mut chunks);
    }
    let beyond = plan.chunks.split_off(plan.chunks.len().min(limits.requests));
    for chunk in beyond {
        for piece in chunk.pieces {
            let known = |c: &Chunk| c.group == chunk.group && c.pieces.iter().any(|p| p.file == piece.file);
            let left = LeftOut { group: chunk.group, file: piece.file, partly: plan.chunks.iter().any(known) };
            if plan.left_out.last() != Some(&left) {
                plan.left_out.push(left);
            }
        }
    }
    plan
}

/// Cuts one group into chunks, however many.
fn pack(index: usize, group: &Group, limits: &Limits) -> Vec<Chunk> {
    let mut packer = Packer {
        group: index,
        files: &group.files,
        limits,
        full: Vec::new(),
        open: Vec::new(),
        weight: Weight::default(),
    };
    for cluster in affinity::clusters(&group.files) {
        packer.add(&cluster);
    }
    packer.close();
    packer.full
}

/// Fills chunks with the files of one group.
struct Packer<'a> {
    group: usize,
    files: &'a [Shown],
    limits: &'a Limits,
    full: Vec<Chunk>,
    /// The chunk that is being filled.
    open: Vec<Piece>,
    weight: Weight,
}

impl Packer<'_> {
    /// Adds files that belong together.
    fn add(&mut self, cluster: &[usize]) {
        let pieces: Vec<Piece> = cluster.iter().map(|f| whole(self.files, *f)).collect();
        let weight = pieces.iter().map(|p| self.weigh(p)).fold(Weight::default(), Weight::add);
        if weight.fits(self.limits) {
            if !(self.weight + weight).fits(self.limits) {
                self.close();
            }
            self.take(pieces, weight);
        } else {
            for piece in pieces {
                self.add_alone(piece);
            }
        }
        // Past the middle, the name of the file decides where the chunk ends: an edit before it does not move it.
        let ends = cluster.last().is_some_and(|f| is_end(self.files[*f].path().as_bytes()));
        if ends && self.weight.is_half(self.limits) {
            self.close();
        }
    }

    /// Adds a file on its own, in parts if it has to be.
    fn add_alone(&mut self, piece: Piece) {
        let weight = self.weigh(&piece);
        if weight.fits(self.limits) {
            if !(self.weight + weight).fits(self.limits) {
                self.close();
            }
            return self.take(vec![piece], weight);
        }
        let file = &self.files[piece.file];
        self.close();
        let parts = split::parts(file, self.limits);
        let split = parts.len() > 1;
        for hunks in parts {
            // The last part leaves room for what follows.
            self.close();
            let piece = Piece { file: piece.file, hunks, split };
            let weight = self.weigh(&piece);
            self.take(vec![piece], weight);
        }
    }

    fn weigh(&self, piece: &Piece) -> Weight {
        Weight::of_piece(&self.files[piece.file], piece)
    }

    fn take(&mut self, pieces: Vec<Piece>, weight: Weight) {
        self.open.extend(pieces);
        self.weight = self.weight + weight;
    }

    fn close(&mut self) {
        let mut pieces = std::mem::take(&mut self.open);
        pieces.sort_by_key(|p| p.file);
        let room = self.limits.bytes.saturating_sub(self.weight.bytes).min(RELATED.max(2 * self.weight.bytes));
        self.weight = Weight::default();
        if !pieces.is_empty() {
            self.full.push(Chunk { group: self.group, pieces, room });
        }
    }
}

/// Returns all files of a group as one part, which no request shows: claims about the whole change are found in it.
pub fn all_of(group: usize, files: &[Shown]) -> Chunk {
    Chunk { group, pieces: (0..files.len()).map(|file| whole(files, file)).collect(), room: 0 }
}

fn whole(files: &[Shown], file: usize) -> Piece {
    let hunks = files[file].hunks.iter().enumerate().map(|(hunk, h)| HunkPart { hunk, lines: 0..h.lines.len() });
    Piece { file, hunks: hunks.collect(), split: false }
}

/// Tells of one name in four, always of the same ones, that a chunk may end behind it.
fn is_end(name: &[u8]) -> bool {
    // FNV-1a.
    let hash = name.iter().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3));
    (hash >> 32) & 3 == 0
}

#[cfg(test)]
mod tests;
