//! Detects renames with git's own scoring.
//!
//! The constants and the order of the steps are those of git's `diffcore-rename.c` and
//! `diffcore-delta.c` at their defaults (renames at 50 %, no copies, `diff.renameLimit` 1000),
//! because a rename in git's output must be one here. The repository's configuration is ignored.

use super::worktree::Worktree;
use super::{ContentLocation, Half, Pair, tree};
use crate::diff::FileMode;
use crate::error::Result;
use std::collections::HashMap;

const MAX_SCORE: u64 = 60_000;
const MIN_SCORE: u64 = 30_000;
/// For files whose name is unique: half way between the minimum and equality.
const MIN_NAME_SCORE: u64 = 45_000;
/// Square root of the number of pairs that are compared, at most.
const LIMIT: usize = 1000;
/// Sources that are kept for each target.
const CANDIDATES: usize = 4;
/// Equal contents that are searched for one with the same name.
const MAX_EQUAL: usize = 100;

/// Returns a score in percent.
pub(super) fn percent(score: u32) -> u8 {
    u8::try_from(u64::from(score) * 100 / MAX_SCORE).unwrap_or(100)
}

/// Pairs deletions with additions, in place.
pub(super) fn detect(
    repo: &gix::Repository,
    pairs: &mut Vec<Pair>,
    mut work: Option<&mut Worktree<'_>>,
) -> Result<()> {
    if !pairs.iter().any(|p| p.new.is_none()) || !pairs.iter().any(|p| p.old.is_none()) {
        return Ok(());
    }
    if let Some(work) = work.as_deref_mut() {
        for half in pairs
            .iter_mut()
            .filter(|p| p.old.is_none())
            .filter_map(|p| p.new.as_mut())
        {
            // A file that cannot be read is not a rename. Loading it reports the error.
            let _ = work.identify(half);
        }
    }
    let mut found = {
        let mut old: Vec<UnpairedFile> = pairs
            .iter()
            .enumerate()
            .filter(|(_, p)| p.new.is_none())
            .filter_map(|(i, p)| Some(UnpairedFile::new(i, p.old.as_ref()?)))
            .collect();
        let mut new: Vec<UnpairedFile> = pairs
            .iter()
            .enumerate()
            .filter(|(_, p)| is_addition(p))
            .filter_map(|(i, p)| Some(UnpairedFile::new(i, p.new.as_ref()?)))
            .collect();
        old.sort_by(|a, b| a.half.path.cmp(&b.half.path));
        new.sort_by(|a, b| a.half.path.cmp(&b.half.path));
        RenameSearch {
            repo,
            work,
            old,
            new,
            found: Vec::new(),
        }
    };
    found.equal();
    found.same_name()?;
    found.similar()?;
    let found = found.found;
    let mut gone = vec![false; pairs.len()];
    for (from, to, score) in found {
        pairs[to].old = pairs[from].old.take();
        pairs[to].similarity = Some(u32::try_from(score).unwrap_or(0));
        gone[from] = true;
    }
    let mut gone = gone.into_iter();
    pairs.retain(|_| !gone.next().unwrap_or(false));
    Ok(())
}

/// Returns true if a pair is a new file with known content: a file that cannot be read is not the
/// target of a rename.
fn is_addition(pair: &Pair) -> bool {
    pair.old.is_none()
        && pair
            .new
            .as_ref()
            .is_some_and(|n| n.at != ContentLocation::Work || !n.id.is_null())
}

/// A deleted or added file.
struct UnpairedFile {
    /// Index of its pair.
    at: usize,
    half: Half,
    size: Option<u64>,
    spans: Option<Vec<(u32, u32)>>,
}

impl UnpairedFile {
    fn new(at: usize, half: &Half) -> Self {
        Self {
            at,
            half: half.clone(),
            size: None,
            spans: None,
        }
    }

    fn is_regular(&self) -> bool {
        matches!(self.half.mode, FileMode::Regular | FileMode::Executable)
    }

    fn name(&self) -> &[u8] {
        let path = &self.half.path;
        &path[memchr::memrchr(b'/', path).map_or(0, |i| i + 1)..]
    }
}

struct RenameSearch<'a, 'w> {
    repo: &'a gix::Repository,
    work: Option<&'a mut Worktree<'w>>,
    /// Files that are not part of a rename yet, by path.
    old: Vec<UnpairedFile>,
    new: Vec<UnpairedFile>,
    /// Indices of the deletion and the addition, and the score.
    found: Vec<(usize, usize, u64)>,
}

impl RenameSearch<'_, '_> {
    /// Matches additions with deletions of the same content, preferring the same name.
    fn equal(&mut self) {
        let mut by_id: HashMap<gix::ObjectId, Vec<usize>> = HashMap::new();
        for (i, f) in self.old.iter().enumerate() {
            by_id.entry(f.half.id).or_default().push(i);
        }
        let mut used = vec![false; self.old.len()];
        let mut taken = vec![false; self.new.len()];
        for (n, new) in self.new.iter().enumerate() {
            let Some(same) = by_id.get(&new.half.id) else {
                continue;
            };
            let mut best: Option<(usize, bool)> = None;
            for &o in same.iter().take(MAX_EQUAL + 1) {
                let old = &self.old[o];
                let alike =
                    (old.is_regular() && new.is_regular()) || old.half.mode == new.half.mode;
                if used[o] || !alike {
                    continue;
                }
                let named = old.name() == new.name();
                if best.is_none_or(|(_, b)| named && !b) {
                    best = Some((o, named));
                }
                if named {
                    break;
                }
            }
            if let Some((o, _)) = best {
                used[o] = true;
                taken[n] = true;
                self.found.push((self.old[o].at, new.at, MAX_SCORE));
            }
        }
        self.drop_used(&used, &taken);
    }

    /// Matches files that moved and whose name is unique on both sides.
    fn same_name(&mut self) -> Result<()> {
        let (olds, news) = (unique_names(&self.old), unique_names(&self.new));
        let mut used = vec![false; self.old.len()];
        let mut taken = vec![false; self.new.len()];
        for (o, used) in used.iter_mut().enumerate() {
            let name = self.old[o].name();
            if let (Some(Some(_)), Some(&Some(n))) = (olds.get(name), news.get(name)) {
                let score = self.score(o, n, MIN_NAME_SCORE)?;
                if score >= MIN_NAME_SCORE {
                    *used = true;
                    taken[n] = true;
                    self.found.push((self.old[o].at, self.new[n].at, score));
                }
            }
        }
        self.drop_used(&used, &taken);
        Ok(())
    }

    /// Compares every deletion with every addition and takes the best pairs first.
    fn similar(&mut self) -> Result<()> {
        let (olds, news) = (self.old.len(), self.new.len());
        if olds == 0 || news == 0 || olds.saturating_mul(news) > LIMIT * LIMIT {
            return Ok(());
        }
        let mut all: Vec<RenameCandidate> = Vec::new();
        for n in 0..news {
            let mut best: Vec<RenameCandidate> = Vec::with_capacity(CANDIDATES + 1);
            for o in 0..olds {
                // Low scores too: the slot that they free decides between equal candidates.
                let score = self.score(o, n, MIN_SCORE)?;
                let candidate = RenameCandidate {
                    score,
                    named: self.old[o].name() == self.new[n].name(),
                    old: o,
                    new: n,
                };
                if best.len() < CANDIDATES {
                    best.push(candidate);
                    continue;
                }
                // The first of the worst candidates is replaced, and only by a better one.
                let mut worst = 0;
                for i in 1..best.len() {
                    if best[i].rank() < best[worst].rank() {
                        worst = i;
                    }
                }
                if best[worst].rank() < candidate.rank() {
                    best[worst] = candidate;
                }
            }
            all.extend(best);
        }
        all.retain(|c| c.score >= MIN_SCORE);
        all.sort_by_key(|c| std::cmp::Reverse(c.rank()));
        let mut used = vec![false; olds];
        let mut taken = vec![false; news];
        for c in all {
            if !used[c.old] && !taken[c.new] {
                used[c.old] = true;
                taken[c.new] = true;
                self.found
                    .push((self.old[c.old].at, self.new[c.new].at, c.score));
            }
        }
        self.drop_used(&used, &taken);
        Ok(())
    }

    fn drop_used(&mut self, used: &[bool], taken: &[bool]) {
        let mut i = 0..;
        self.old.retain(|_| !i.next().is_some_and(|i| used[i]));
        let mut i = 0..;
        self.new.retain(|_| !i.next().is_some_and(|i| taken[i]));
    }

    /// Returns the share of the larger side that both have in common, as a fraction of
    /// [`MAX_SCORE`]; 0 if it is certainly less than `min`.
    fn score(&mut self, o: usize, n: usize, min: u64) -> Result<u64> {
        if !self.old[o].is_regular() || !self.new[n].is_regular() {
            return Ok(0);
        }
        let (a, b) = (self.size(true, o)?, self.size(false, n)?);
        let (large, small) = (a.max(b), a.min(b));
        if large * (MAX_SCORE - min) < (large - small) * MAX_SCORE || small == 0 {
            return Ok(0);
        }
        self.read(true, o)?;
        self.read(false, n)?;
        let (Some(old), Some(new)) = (&self.old[o].spans, &self.new[n].spans) else {
            return Ok(0);
        };
        Ok(copied(old, new) * MAX_SCORE / large)
    }

    fn size(&mut self, is_old: bool, i: usize) -> Result<u64> {
        let file = if is_old { &self.old[i] } else { &self.new[i] };
        if let Some(size) = file.size {
            return Ok(size);
        }
        let size = match (file.half.at, self.repo.find_header(file.half.id)) {
            (ContentLocation::Objects, Ok(header)) => header.size(),
            _ => self.content(is_old, i)?.len() as u64,
        };
        let file = if is_old {
            &mut self.old[i]
        } else {
            &mut self.new[i]
        };
        file.size = Some(size);
        Ok(size)
    }

    fn read(&mut self, is_old: bool, i: usize) -> Result<()> {
        let known = if is_old {
            &self.old[i].spans
        } else {
            &self.new[i].spans
        };
        if known.is_none() {
            let spans = spans(&self.content(is_old, i)?);
            let file = if is_old {
                &mut self.old[i]
            } else {
                &mut self.new[i]
            };
            file.spans = Some(spans);
        }
        Ok(())
    }

    fn content(&mut self, is_old: bool, i: usize) -> Result<Vec<u8>> {
        let half = if is_old {
            &self.old[i].half
        } else {
            &self.new[i].half
        };
        match (half.at, self.work.as_deref_mut()) {
            (ContentLocation::Work, Some(work)) => work.content(half),
            _ => {
                let mut buf = Vec::new();
                tree::load(self.repo, &half.id, gix::objs::Kind::Blob, &mut buf)?;
                Ok(buf)
            }
        }
    }
}

/// Returns the index of each name among the files; `None` for a name that several of them have.
fn unique_names(files: &[UnpairedFile]) -> HashMap<Vec<u8>, Option<usize>> {
    let mut names: HashMap<Vec<u8>, Option<usize>> = HashMap::new();
    for (i, f) in files.iter().enumerate() {
        names
            .entry(f.name().to_vec())
            .and_modify(|n| *n = None)
            .or_insert(Some(i));
    }
    names
}

struct RenameCandidate {
    score: u64,
    named: bool,
    old: usize,
    new: usize,
}

impl RenameCandidate {
    fn rank(&self) -> (u64, bool) {
        (self.score, self.named)
    }
}

/// Splits content into lines, or pieces of 64 bytes. Returns the hash of each distinct piece and
/// its total bytes, by hash.
fn spans(data: &[u8]) -> Vec<(u32, u32)> {
    const BASE: u32 = 107_927;
    let is_text = memchr::memchr(0, &data[..data.len().min(8000)]).is_none();
    let (mut a, mut b, mut len) = (0u32, 0u32, 0u32);
    let mut out = Vec::with_capacity(data.len() / 24 + 1);
    let mut bytes = data.iter().copied().peekable();
    while let Some(c) = bytes.next() {
        if is_text && c == b'\r' && bytes.peek() == Some(&b'\n') {
            continue;
        }
        let old = a;
        a = (a << 7) ^ (b >> 25);
        b = (b << 7) ^ (old >> 25);
        a = a.wrapping_add(u32::from(c));
        len += 1;
        if len < 64 && c != b'\n' {
            continue;
        }
        out.push((a.wrapping_add(b.wrapping_mul(0x61)) % BASE, len));
        (a, b, len) = (0, 0, 0);
    }
    if len > 0 {
        out.push((a.wrapping_add(b.wrapping_mul(0x61)) % BASE, len));
    }
    out.sort_unstable();
    out.dedup_by(|later, first| {
        let same = later.0 == first.0;
        if same {
            first.1 = first.1.saturating_add(later.1);
        }
        same
    });
    out
}

/// Returns how many bytes of `old` are in `new` too.
fn copied(old: &[(u32, u32)], new: &[(u32, u32)]) -> u64 {
    let (mut i, mut j, mut sum) = (0, 0, 0);
    while i < old.len() && j < new.len() {
        match old[i].0.cmp(&new[j].0) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal => {
                sum += u64::from(old[i].1.min(new[j].1));
                i += 1;
                j += 1;
            }
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_content_shares_every_byte() {
        let text = b"one\ntwo\nthree, which is longer than sixty-four bytes so that it is cut in the middle of it\n";
        let s = spans(text);
        assert_eq!(copied(&s, &s), text.len() as u64);
    }

    #[test]
    fn line_ends_do_not_matter_in_text() {
        assert_eq!(spans(b"a\r\nb\r\n"), spans(b"a\nb\n"));
        assert_ne!(spans(b"a\0\r\nb\r\n"), spans(b"a\0\nb\n"));
    }
}
