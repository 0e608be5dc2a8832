//! Divides the files of a review into shards.
//!
//! The first two bytes of the SHA-256 of a path select one of 65,536 buckets. The buckets are dealt
//! to the shards by the bytes of their files: the largest bucket first, each to the shard with the
//! fewest bytes so far. Only files that are selected and not ignored have a weight. The result
//! depends only on the paths and sizes of the reviewed state, the selection and the policy, so that
//! runs on different machines agree. Every path has a bucket, also one that only a commit
//! inside of a branch has.

use crate::diff::{Entry, ObjectId, RepoPath};
use crate::disposition::DecisionEntries;
use crate::error::Result;
use crate::git::{Change, Repo};
use crate::hex;
use crate::request::{Overrides, ReviewRequest, Shard};
use sha2::{Digest as _, Sha256};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Number of buckets: one for each value of two bytes.
const BUCKETS: usize = 1 << 16;

/// The shard under review, and the shard of every path.
#[derive(Debug)]
pub(super) struct ShardMap {
    shard: Shard,
    /// Number of the shard of each bucket, counted from 1.
    of_bucket: Vec<u32>,
    /// Digest of all files of the review, with their sizes: shards with different ones divide
    /// different files.
    state: String,
}

/// Digests of what the shards of one review share, without the ends of its source. Empty without
/// shards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShardDigests {
    /// The files that are divided: their paths, modes, contents and sizes.
    pub state: String,
    /// The patterns of `--files`, or the paths of a tree.
    pub selection: String,
    /// The options that change what is found or how it counts.
    pub options: String,
}

/// A SHA-256 of fields. Each field is added after its length, so that the fields of a digest are
/// unambiguous.
#[derive(Default)]
pub(super) struct FieldsDigest(Sha256);

impl FieldsDigest {
    pub(super) fn add(&mut self, field: &[u8]) {
        self.0.update((field.len() as u64).to_le_bytes());
        self.0.update(field);
    }

    /// Returns the first 20 bytes in hexadecimal digits.
    pub(super) fn text(self) -> String {
        hex::encode(&self.0.finalize()[..20])
    }
}

/// Returns the digest of the patterns that select files, which are relative to the top of the
/// worktree. Their order is of no meaning.
pub(super) fn digest_of_patterns(patterns: &[String]) -> String {
    let mut sorted: Vec<&String> = patterns.iter().collect();
    sorted.sort_unstable();
    sorted.dedup();
    let mut digest = FieldsDigest::default();
    sorted.iter().for_each(|p| digest.add(p.as_bytes()));
    digest.text()
}

/// Returns the digest of the options that change what is found or how it counts, with the backends
/// that are asked and the decisions of people. Limits of time and costs are part of the policy.
pub(super) fn digest_of_options(
    request: &ReviewRequest,
    backends: &[String],
    decisions: &DecisionEntries,
) -> String {
    let Overrides {
        block_on,
        warn_on,
        on_incomplete: _,
        focus,
        depth,
        model,
        jobs: _,
        timeout: _,
        max_cost_usd: _,
        max_requests: _,
        max_tokens: _,
    } = &request.overrides;
    let brief = &request.brief;
    let mut waivers: Vec<&String> = request.waivers.iter().collect();
    waivers.sort_unstable();
    waivers.dedup();
    let mut digest = FieldsDigest::default();
    for field in [
        format!("{:?} {}", request.authority, request.is_audit),
        format!("{} {backends:?}", request.offline),
        format!("{block_on:?} {warn_on:?}"),
        format!("{focus:?} {depth:?} {model:?}"),
        format!("{waivers:?}"),
        format!("{decisions:?}"),
        format!("{:?} {:?}", brief.summary, brief.documents),
        format!("{:?} {:?}", brief.focus, brief.contract),
    ] {
        digest.add(field.as_bytes());
    }
    digest.text()
}

/// Adds a file to the digest of the reviewed files.
fn add_entry(digest: &mut FieldsDigest, entry: &Entry, id: Option<ObjectId>, bytes: u64) {
    digest.add(entry.path().as_bytes());
    digest.add(format!("{:?}", entry.new.as_ref().map(|s| s.mode)).as_bytes());
    digest.add(id.map(|id| id.to_string()).unwrap_or_default().as_bytes());
    digest.add(&bytes.to_le_bytes());
}

/// Returns the digest of the paths, modes and contents of the wanted files of changes.
pub(super) fn digest_of_contents<'a>(
    repo: &Repo,
    changes: impl Iterator<Item = &'a Change>,
    is_wanted: &dyn Fn(&Entry) -> bool,
) -> String {
    let mut reader = repo.reader();
    let mut digest = FieldsDigest::default();
    for change in changes {
        for entry in change.entries.iter().filter(|entry| is_wanted(entry)) {
            let id = reader.content_id(change, entry);
            add_entry(&mut digest, entry, id, 0);
        }
    }
    digest.text()
}

/// The files of a bucket, or of a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct ShardLoad {
    bytes: u64,
    files: u64,
}

impl ShardMap {
    /// Divides the files of the changes. Files for which `is_read` returns false have no weight.
    ///
    /// # Errors
    /// Incomplete: the size of a file is not known. Another run might know it and divide the files
    /// differently, so that a file would be in no shard.
    pub(super) fn of<'a>(
        shard: Shard,
        repo: &Repo,
        (changes, is_read): (impl Iterator<Item = &'a Change>, &dyn Fn(&RepoPath) -> bool),
    ) -> Result<Self> {
        let mut reader = repo.reader();
        let mut loads = vec![ShardLoad::default(); BUCKETS];
        let mut digest = FieldsDigest::default();
        for change in changes {
            for entry in &change.entries {
                let mut bytes = 0;
                if shard.of() > 1 {
                    bytes = reader.size(change, entry).map_err(|e| {
                        e.hint("shards are divided by the sizes of files: fetch all objects first")
                    })?;
                }
                if is_read(entry.path()) {
                    let load = &mut loads[bucket_of(entry.path())];
                    load.files += 1;
                    load.bytes += bytes;
                }
                let id = reader.content_id(change, entry);
                add_entry(&mut digest, entry, id, bytes);
            }
        }
        Ok(Self {
            state: digest.text(),
            ..Self::dealt(shard, &loads)
        })
    }

    /// Returns the digest of all files of the review.
    pub(super) fn state(&self) -> &str {
        &self.state
    }

    /// Deals buckets with these loads to the shards.
    fn dealt(shard: Shard, loads: &[ShardLoad]) -> Self {
        let mut order: Vec<usize> = (0..loads.len()).collect();
        order.sort_by_key(|bucket| (Reverse(loads[*bucket]), *bucket));
        let mut shards: BinaryHeap<Reverse<(ShardLoad, u32)>> = (1..=shard.of())
            .map(|index| Reverse((ShardLoad::default(), index)))
            .collect();
        let mut of_bucket = vec![1; loads.len()];
        for bucket in order {
            let Some(Reverse((mut load, index))) = shards.pop() else {
                break;
            };
            of_bucket[bucket] = index;
            load.bytes += loads[bucket].bytes;
            load.files += loads[bucket].files;
            shards.push(Reverse((load, index)));
        }
        Self {
            shard,
            of_bucket,
            state: String::new(),
        }
    }

    /// Returns true if the shard under review has a path.
    pub(super) fn has(&self, path: &RepoPath) -> bool {
        self.of_bucket[bucket_of(path)] == self.shard.index()
    }

    /// Returns true if the shard under review is the one with the findings that need the whole
    /// change.
    pub(super) fn is_first(&self) -> bool {
        self.shard.index() == 1
    }
}

/// Returns the bucket of a path: the first two bytes of its SHA-256, the first one as the higher.
fn bucket_of(path: &RepoPath) -> usize {
    let digest = Sha256::digest(path.as_bytes());
    usize::from(u16::from_be_bytes([digest[0], digest[1]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the total load of each of `of` shards.
    fn totals(loads: &[ShardLoad], of: u32) -> Vec<ShardLoad> {
        let shard = Shard::new(1, of).unwrap();
        let map = ShardMap::dealt(shard, loads);
        let mut out = vec![ShardLoad::default(); of as usize];
        for (bucket, index) in map.of_bucket.iter().enumerate() {
            out[*index as usize - 1].bytes += loads[bucket].bytes;
            out[*index as usize - 1].files += loads[bucket].files;
        }
        out
    }

    #[test]
    fn shards_differ_by_at_most_the_largest_bucket() {
        let loads: Vec<ShardLoad> = (0..1000u64)
            .map(|i| ShardLoad {
                bytes: i * i % 977 * 100,
                files: 1 + i % 3,
            })
            .collect();
        let largest = loads.iter().map(|l| l.bytes).max().unwrap();
        for of in [1, 2, 3, 7, 16] {
            let totals = totals(&loads, of);
            let all: u64 = totals.iter().map(|l| l.bytes).sum();
            assert_eq!(all, loads.iter().map(|l| l.bytes).sum::<u64>());
            let (least, most) = (totals.iter().min().unwrap(), totals.iter().max().unwrap());
            assert!(most.bytes - least.bytes <= largest, "{of}: {totals:?}");
        }
    }

    #[test]
    fn the_deal_of_buckets_never_changes() {
        let load = |bytes, files| ShardLoad { bytes, files };
        let loads = [
            load(5, 1),
            load(9, 1),
            load(0, 0),
            load(5, 2),
            load(4, 1),
            load(0, 0),
        ];
        // 9 to shard 1; 5 with two files to shard 2; the other 5 to shard 3; 4 to shard 3, which has
        // as many bytes as shard 2 and fewer files; empty buckets to the shard with the least.
        let map = ShardMap::dealt(Shard::new(1, 3).unwrap(), &loads);
        assert_eq!(map.of_bucket, [3, 1, 2, 2, 3, 2]);
    }

    #[test]
    fn the_bucket_of_a_path_is_documented_and_never_changes() {
        // `printf src/lib.rs | sha256sum` prints b1a3….
        assert_eq!(bucket_of(&RepoPath::from("src/lib.rs")), 0xb1a3);
    }
}
