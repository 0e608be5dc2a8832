//! Decodes the blobs of a history, each once, in the order of their deltas.
//!
//! A blob that a pack stores as a delta is visited right after its base, with the parts of it that
//! are copied. So a visitor has to look only at the other parts. The data of a base is dropped with
//! its last delta, and the base with the most deltas below it comes last: the number of blobs in
//! memory at a time grows with the logarithm of the number of blobs.

use super::packs::{
    Delta, DeltaBase, Number, ObjectLocation, ObjectSet, Objects, Pack, PackOrder, Undecodable,
};
use gix::objs::Kind;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// No position.
const NONE: u32 = u32::MAX;

/// A part of a blob that is copied from its base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedPart {
    /// Start in the blob.
    pub start: usize,
    /// Range in the base.
    pub base: Range<usize>,
}

/// A visited base of a blob.
#[derive(Clone, Copy, Debug)]
pub struct DecodedBase<'a, M> {
    pub number: Number,
    pub data: &'a [u8],
    pub mark: &'a M,
    /// The parts of the blob that are copied from it, in order.
    pub copied: &'a [CopiedPart],
}

/// Receives the blobs of one thread.
pub trait BlobVisitor {
    /// Mark that a visitor keeps for a blob.
    type Mark;
    /// Receives a blob.
    fn blob(
        &mut self,
        number: Number,
        data: &[u8],
        base: Option<DecodedBase<'_, Self::Mark>>,
    ) -> Self::Mark;
    /// Receives a blob that cannot be decoded.
    fn undecodable(&mut self, number: Number, why: Undecodable);
    /// Returns true if the traversal should end.
    fn is_over(&self) -> bool;
}

/// The wanted blobs of a pack with the objects that they are deltas of, by position in the pack.
struct Forest<'a> {
    set: &'a ObjectSet,
    pack: &'a Pack,
    order: &'a PackOrder,
    first_child: Vec<u32>,
    next_sibling: Vec<u32>,
    is_wanted: Vec<bool>,
    /// Positions of whole objects.
    roots: Vec<u32>,
    /// Positions of entries whose base is missing.
    broken: Vec<u32>,
    /// Positions of wanted entries that are deltas of each other in a circle, or of such entries.
    circular: Vec<u32>,
}

impl<'a> Forest<'a> {
    fn new(set: &'a ObjectSet, pack: &'a Pack, wants: &dyn Fn(Number) -> bool) -> Self {
        let order = pack.order();
        let mut forest = Self {
            set,
            pack,
            order,
            first_child: vec![NONE; order.len()],
            next_sibling: vec![NONE; order.len()],
            is_wanted: vec![false; order.len()],
            roots: Vec::new(),
            broken: Vec::new(),
            circular: Vec::new(),
        };
        let mut is_needed = vec![false; order.len()];
        let mut base_of = vec![NONE; order.len()];
        let mut needed: Vec<u32> = Vec::new();
        for (position, is_needed) in is_needed.iter_mut().enumerate() {
            if wants(pack.first() + order.index(position)) {
                forest.is_wanted[position] = true;
                *is_needed = true;
                needed.push(position as u32);
            }
        }
        let mut next = 0;
        while let Some(position) = needed.get(next).copied() {
            next += 1;
            let entry = pack.entry(order.index(position as usize));
            let base = match entry.as_ref().map(|e| pack.base_of(e)) {
                Some(None) => {
                    forest.roots.push(position);
                    continue;
                }
                Some(Some(DeltaBase::Index(index))) => order.position(pack.offset(index)),
                Some(Some(DeltaBase::Missing)) | None => None,
            };
            let Some(base) = base else {
                forest.broken.push(position);
                continue;
            };
            base_of[position as usize] = base as u32;
            if !std::mem::replace(&mut is_needed[base], true) {
                needed.push(base as u32);
            }
        }
        forest.connect(&base_of, &needed);
        forest.find_circular(&needed);
        forest.roots.sort_unstable();
        forest
    }

    /// Lists the wanted entries to which no chain of deltas leads. Git never writes such a pack.
    fn find_circular(&mut self, needed: &[u32]) {
        let mut is_reached = vec![false; self.first_child.len()];
        let mut open = self.roots.clone();
        open.extend_from_slice(&self.broken);
        while let Some(position) = open.pop() {
            is_reached[position as usize] = true;
            let mut child = self.first_child[position as usize];
            while child != NONE {
                open.push(child);
                child = self.next_sibling[child as usize];
            }
        }
        let missed = needed.iter().copied();
        let missed = missed.filter(|p| !is_reached[*p as usize] && self.is_wanted[*p as usize]);
        self.circular = missed.collect();
    }

    /// Lists the deltas of each base: those with the fewest deltas of their own first.
    fn connect(&mut self, base_of: &[u32], needed: &[u32]) {
        let mut weight = vec![1u32; base_of.len()];
        let mut waiting = vec![0u32; base_of.len()];
        let parent = |position: u32| Some(base_of[position as usize]).filter(|b| *b != NONE);
        for base in needed.iter().filter_map(|p| parent(*p)) {
            waiting[base as usize] += 1;
        }
        let mut ready: Vec<u32> = needed.to_vec();
        ready.retain(|p| waiting[*p as usize] == 0);
        while let Some(position) = ready.pop() {
            let Some(base) = parent(position) else {
                continue;
            };
            weight[base as usize] += weight[position as usize];
            waiting[base as usize] -= 1;
            if waiting[base as usize] == 0 {
                ready.push(base);
            }
        }
        let mut order: Vec<u32> = needed.to_vec();
        order.sort_unstable_by_key(|p| std::cmp::Reverse((weight[*p as usize], *p)));
        for position in order {
            if let Some(base) = parent(position) {
                self.next_sibling[position as usize] = self.first_child[base as usize];
                self.first_child[base as usize] = position;
            }
        }
    }

    fn number(&self, position: u32) -> Number {
        self.pack.first() + self.order.index(position as usize)
    }
}

/// A decoded object whose deltas are not all visited yet.
struct OpenBase<M> {
    position: u32,
    data: Vec<u8>,
    mark: Option<M>,
    next: u32,
}

/// Visits the wanted blobs of a set, with one visitor for each thread. Returns the visitors.
pub(super) fn visit<V: BlobVisitor + Send>(
    set: &ObjectSet,
    wants: &(dyn Fn(Number) -> bool + Sync),
    visitors: Vec<V>,
) -> Vec<V> {
    let mut visitors = visitors;
    for pack in set.packs() {
        let forest = Forest::new(set, pack, wants);
        let next = AtomicUsize::new(0);
        if let Some(first) = visitors.first_mut() {
            for position in forest.broken.iter().copied() {
                lose(&forest, position, first, Undecodable::Corrupt);
            }
            for position in forest.circular.iter().copied() {
                read_elsewhere(&forest, position, first, Undecodable::Corrupt);
            }
        }
        in_parallel(&mut visitors, |visitor| {
            let mut inflate = gix::zlib::Inflate::default();
            while let Some(root) = forest.roots.get(next.fetch_add(1, Ordering::Relaxed)) {
                if visitor.is_over() {
                    return;
                }
                descend(&forest, *root, &mut inflate, visitor);
            }
        });
    }
    let loose: Vec<Number> = set.loose().filter(|n| wants(*n)).collect();
    let next = AtomicUsize::new(0);
    in_parallel(&mut visitors, |visitor| {
        let mut data = Vec::new();
        while let Some(number) = loose.get(next.fetch_add(1, Ordering::Relaxed)) {
            if visitor.is_over() {
                return;
            }
            let ObjectLocation::Loose(id) = set.location(*number) else {
                continue;
            };
            match set.read_loose(id, &mut data) {
                Ok(Kind::Blob) => drop(visitor.blob(*number, &data, None)),
                Ok(_) => visitor.undecodable(*number, Undecodable::Corrupt),
                Err(why) => visitor.undecodable(*number, why),
            }
        }
    });
    visitors
}

/// Runs a function with each visitor, each on a thread of its own.
fn in_parallel<V: Send>(visitors: &mut [V], work: impl Fn(&mut V) + Sync) {
    let Some((first, others)) = visitors.split_first_mut() else {
        return;
    };
    std::thread::scope(|s| {
        for other in others {
            let work = &work;
            // If the system cannot start more threads, the existing threads do the work.
            let thread = std::thread::Builder::new().spawn_scoped(s, move || work(other));
            if thread.is_err() {
                break;
            }
        }
        work(first);
    });
}

/// Visits a whole object and everything that is a delta of it.
fn descend<V: BlobVisitor>(
    forest: &Forest<'_>,
    root: u32,
    inflate: &mut gix::zlib::Inflate,
    visitor: &mut V,
) {
    let data = match decoded_root(forest, root, inflate) {
        Ok(data) => data,
        Err(why) => return lose(forest, root, visitor, why),
    };
    let is_wanted = |position: u32| forest.is_wanted[position as usize];
    let mark = is_wanted(root).then(|| visitor.blob(forest.number(root), &data, None));
    let mut open = vec![OpenBase {
        position: root,
        data,
        mark,
        next: forest.first_child[root as usize],
    }];
    let (mut delta, mut copied) = (Vec::new(), Vec::new());
    while let Some(base) = open.last_mut() {
        let position = base.next;
        if position == NONE || visitor.is_over() {
            open.pop();
            continue;
        }
        base.next = forest.next_sibling[position as usize];
        copied.clear();
        let buffers = (&mut delta, &mut copied);
        let data = match decoded_delta(forest, position, inflate, buffers, &base.data) {
            Ok(data) => data,
            Err(why) => {
                lose(forest, position, visitor, why);
                continue;
            }
        };
        let mark = is_wanted(position).then(|| {
            let base = base.mark.as_ref().map(|mark| DecodedBase {
                number: forest.number(base.position),
                data: &base.data,
                mark,
                copied: &copied,
            });
            visitor.blob(forest.number(position), &data, base)
        });
        if base.next == NONE {
            open.pop();
        }
        open.push(OpenBase {
            position,
            data,
            mark,
            next: forest.first_child[position as usize],
        });
    }
}

/// Decodes a blob that is not a delta.
fn decoded_root(
    forest: &Forest<'_>,
    position: u32,
    inflate: &mut gix::zlib::Inflate,
) -> Result<Vec<u8>, Undecodable> {
    let entry = forest.pack.entry(forest.order.index(position as usize));
    let entry = entry.ok_or(Undecodable::Corrupt)?;
    if entry.header.as_kind() != Some(Kind::Blob) {
        return Err(Undecodable::Corrupt);
    }
    let mut data = Vec::new();
    forest.pack.inflate(&entry, inflate, &mut data)?;
    Ok(data)
}

/// Decodes a delta, given its base, and lists the parts that are copied. The first buffer is for
/// the delta itself.
fn decoded_delta(
    forest: &Forest<'_>,
    position: u32,
    inflate: &mut gix::zlib::Inflate,
    (delta, copied): (&mut Vec<u8>, &mut Vec<CopiedPart>),
    base: &[u8],
) -> Result<Vec<u8>, Undecodable> {
    let entry = forest.pack.entry(forest.order.index(position as usize));
    let entry = entry.ok_or(Undecodable::Corrupt)?;
    forest.pack.inflate(&entry, inflate, delta)?;
    Delta::parse(delta)?.apply(base, |start, base| copied.push(CopiedPart { start, base }))
}

/// Reports that an object cannot be decoded, and neither can what is a delta of it. Objects that
/// have a copy in another pack or a loose one are read from there.
fn lose<V: BlobVisitor>(forest: &Forest<'_>, position: u32, visitor: &mut V, why: Undecodable) {
    let mut open = vec![position];
    while let Some(position) = open.pop() {
        if forest.is_wanted[position as usize] {
            read_elsewhere(forest, position, visitor, why);
        }
        let mut child = forest.first_child[position as usize];
        while child != NONE {
            open.push(child);
            child = forest.next_sibling[child as usize];
        }
    }
}

/// Visits the copy of a blob that its pack does not give: in another pack, or a loose one. Without
/// one, reports that the blob cannot be decoded.
fn read_elsewhere<V: BlobVisitor>(
    forest: &Forest<'_>,
    position: u32,
    visitor: &mut V,
    why: Undecodable,
) {
    let number = forest.number(position);
    match Objects::new(forest.set).copy(number) {
        Some((data, Kind::Blob)) => drop(visitor.blob(number, &data, None)),
        _ => visitor.undecodable(number, why),
    }
}
