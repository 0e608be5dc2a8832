//! Divides the change into requests. Pure.
//!
//! A file stays whole if it fits, and related files stay together ([`affinity`]). The cuts between
//! chunks depend on file names instead of on the preceding content. So an edit moves few cuts, and
//! the cached answers to the other chunks remain usable. Nothing is dropped silently: the plan
//! lists what exceeds the limits.

mod affinity;
mod by_risk;
mod imports;
mod split;

use super::material::{Group, Shown, ShownHunk};
use std::ops::Range;

pub use by_risk::by_risk;
pub use split::halve;

/// The part of the change in one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Position of the [`Group`](super::material::Group).
    pub group: usize,
    /// Pieces in the order of the change; at least one.
    pub pieces: Vec<FilePiece>,
    /// Bytes of related code that fit in the request.
    pub room: usize,
}

/// A file, or a part of one, in a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePiece {
    /// Position in [`Group::files`](super::material::Group::files).
    pub file: usize,
    /// Line ranges of the hunks, in order. Together they are the whole file, unless it is split.
    pub hunks: Vec<HunkPart>,
    /// True if other chunks contain further parts of the file.
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

/// Limits of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Files of one request, at most.
    pub files: usize,
    /// Lines of one request, at most.
    pub lines: usize,
    /// Bytes of the change in one request, at most: the capacity of the backend, minus the text
    /// that all requests share. Three bytes are about one token.
    pub bytes: usize,
    /// Requests for the whole change, at most.
    pub requests: usize,
}

impl Limits {
    /// Returns these limits, with room for at least one file and one line.
    fn at_least_one(self) -> Self {
        Self {
            files: self.files.max(1),
            lines: self.lines.max(1),
            ..self
        }
    }
}

/// Bytes of related code in one request, if the capacity allows: this, or twice the size of the
/// change in it.
const RELATED: usize = 20 << 10;

/// The requests of a review, and the files that they leave out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReviewPlan {
    pub chunks: Vec<Chunk>,
    /// Files that exceed the limit of requests, in order.
    pub left_out: Vec<LeftOut>,
}

/// A file that the requests leave out, or contain only in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftOut {
    pub group: usize,
    /// Position in [`Group::files`](super::material::Group::files).
    pub file: usize,
    /// True if a chunk contains a part of it.
    pub partly: bool,
}

/// The size of a part of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ChunkWeight {
    files: usize,
    lines: usize,
    bytes: usize,
}

impl std::ops::Add for ChunkWeight {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            files: self.files + other.files,
            lines: self.lines + other.lines,
            bytes: self.bytes + other.bytes,
        }
    }
}

impl ChunkWeight {
    /// Bytes of a file heading without names, and of a hunk header without its section.
    const HEADING: usize = 64;
    const HUNK: usize = 8;
    /// Bytes of the section in a part of a hunk, at most.
    const SECTION: usize = 120;
    /// Bytes of a line without its text: the number, the marker, the newline.
    const LINE: usize = 9;

    fn of_lines(hunk: &ShownHunk, lines: Range<usize>) -> Self {
        let section = if lines.start == 0 {
            hunk.section.len()
        } else {
            hunk.section.len().max(Self::SECTION)
        };
        let count = lines.len();
        let bytes: usize = hunk.lines[lines]
            .iter()
            .map(|l| l.text.len() + Self::LINE)
            .sum();
        Self {
            files: 0,
            lines: count,
            bytes: bytes + section + Self::HUNK,
        }
    }

    fn of_file(file: &Shown) -> Self {
        // A guideline may list the files that it applies to.
        let guidelines: usize = file
            .guidelines
            .iter()
            .map(|g| g.len() + file.name.len() + 4)
            .sum();
        let names = file.name.len() + file.old_name.as_ref().map_or(0, String::len);
        Self {
            files: 1,
            lines: 0,
            bytes: names + Self::HEADING + guidelines,
        }
    }

    fn of_piece(file: &Shown, piece: &FilePiece) -> Self {
        let hunks = piece
            .hunks
            .iter()
            .map(|p| Self::of_lines(&file.hunks[p.hunk], p.lines.clone()));
        hunks.fold(Self::of_file(file), Self::add)
    }

    fn fits(self, limits: &Limits) -> bool {
        self.files <= limits.files && self.lines <= limits.lines && self.bytes <= limits.bytes
    }

    /// Returns true if this is at least half of the limits of a request.
    fn is_half(self, limits: &Limits) -> bool {
        self.files * 2 >= limits.files
            || self.lines * 2 >= limits.lines
            || self.bytes * 2 >= limits.bytes
    }
}

use std::ops::Add as _;

/// Cuts the change into chunks. The result is deterministic.
pub fn plan(groups: &[Group], limits: &Limits) -> ReviewPlan {
    let limits = &limits.at_least_one();
    let mut plan = ReviewPlan::default();
    for (index, group) in groups.iter().enumerate() {
        let clusters = affinity::clusters(&group.files);
        let mut chunks = pack(index, group, &clusters, limits);
        // Only a request for a whole group contains its commit messages. If there are several
        // requests, they do not depend on the messages.
        if chunks.len() == 1 {
            let messages: usize = group.messages.iter().map(|m| m.len() + 2).sum();
            chunks = pack(
                index,
                group,
                &clusters,
                &Limits {
                    bytes: limits.bytes.saturating_sub(messages),
                    ..*limits
                },
            );
        }
        plan.chunks.append(&mut chunks);
    }
    let beyond = plan
        .chunks
        .split_off(plan.chunks.len().min(limits.requests));
    plan.left_out = left_out(&plan.chunks, beyond);
    plan
}

/// Returns the files of the chunks that are not asked about, in order. `asked`: the other chunks.
pub fn left_out(asked: &[Chunk], beyond: Vec<Chunk>) -> Vec<LeftOut> {
    let mut all = Vec::new();
    for chunk in beyond {
        for piece in chunk.pieces {
            let mut own = asked
                .iter()
                .filter(|c| c.group == chunk.group)
                .flat_map(|c| &c.pieces);
            let partly = own.any(|p| p.file == piece.file);
            let left = LeftOut {
                group: chunk.group,
                file: piece.file,
                partly,
            };
            if all.last() != Some(&left) {
                all.push(left);
            }
        }
    }
    all
}

/// Cuts related files of one group into chunks, without a limit on their number.
fn pack(index: usize, group: &Group, clusters: &[Vec<usize>], limits: &Limits) -> Vec<Chunk> {
    let mut packer = Packer {
        group: index,
        files: &group.files,
        limits,
        full: Vec::new(),
        open: Vec::new(),
        weight: ChunkWeight::default(),
    };
    for cluster in clusters {
        packer.add(cluster);
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
    open: Vec<FilePiece>,
    weight: ChunkWeight,
}

impl Packer<'_> {
    /// Adds related files.
    fn add(&mut self, cluster: &[usize]) {
        let pieces: Vec<FilePiece> = cluster.iter().map(|f| whole(self.files, *f)).collect();
        let weight = pieces
            .iter()
            .map(|p| self.weigh(p))
            .fold(ChunkWeight::default(), ChunkWeight::add);
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
        // Once a chunk is half full, the file name decides where it ends, so that an edit in
        // earlier files does not move the cut.
        let ends = cluster
            .last()
            .is_some_and(|f| is_end(self.files[*f].path().as_bytes()));
        if ends && self.weight.is_half(self.limits) {
            self.close();
        }
    }

    /// Adds a single file, split into parts if necessary.
    fn add_alone(&mut self, piece: FilePiece) {
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
            // Close only before each part, so that the last one can share its chunk with the
            // following files.
            self.close();
            let piece = FilePiece {
                file: piece.file,
                hunks,
                split,
            };
            let weight = self.weigh(&piece);
            self.take(vec![piece], weight);
        }
    }

    fn weigh(&self, piece: &FilePiece) -> ChunkWeight {
        ChunkWeight::of_piece(&self.files[piece.file], piece)
    }

    fn take(&mut self, pieces: Vec<FilePiece>, weight: ChunkWeight) {
        self.open.extend(pieces);
        self.weight = self.weight + weight;
    }

    fn close(&mut self) {
        let mut pieces = std::mem::take(&mut self.open);
        pieces.sort_by_key(|p| p.file);
        let room = self
            .limits
            .bytes
            .saturating_sub(self.weight.bytes)
            .min(RELATED.max(2 * self.weight.bytes));
        self.weight = ChunkWeight::default();
        if !pieces.is_empty() {
            self.full.push(Chunk {
                group: self.group,
                pieces,
                room,
            });
        }
    }
}

/// Returns all files of a group as one chunk, to anchor claims about the whole change. No request
/// contains it.
pub fn all_of(group: usize, files: &[Shown]) -> Chunk {
    Chunk {
        group,
        pieces: (0..files.len()).map(|file| whole(files, file)).collect(),
        room: 0,
    }
}

fn whole(files: &[Shown], file: usize) -> FilePiece {
    let hunks = files[file]
        .hunks
        .iter()
        .enumerate()
        .map(|(hunk, h)| HunkPart {
            hunk,
            lines: 0..h.lines.len(),
        });
    FilePiece {
        file,
        hunks: hunks.collect(),
        split: false,
    }
}

/// Returns true for one in four file names, by hash: a chunk may end after such a file.
fn is_end(name: &[u8]) -> bool {
    // FNV-1a.
    let hash = name.iter().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| {
        (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 32) & 3 == 0
}

#[cfg(test)]
mod tests;
