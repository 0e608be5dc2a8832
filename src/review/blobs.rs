//! Searches the blobs of a history for secrets, each blob once.
//!
//! A blob that its pack stores as a delta of another version of the file has the secrets of that
//! version in the lines that are copied, and new ones only in its other lines. If those have no
//! sign of a secret ([`SecretSigns`]), the rules do not read the blob. All other blobs are read
//! like new files.

mod copied;
mod groups;

use super::Note;
use super::frame::Frames;
use super::scan::{RuleScan, Scanned, default_threads};
use crate::diff::{Body, FileChange, ObjectId, RepoPath, code};
use crate::finding::listing::{Effect, Floor};
use crate::finding::{Finding, Severity};
use crate::git::{
    BlobNumber, BlobVisitor, DecodedBase, HistoryBlobs, HistoryScope, HistorySearch, PathPriority,
    Undecodable,
};
use crate::rules::{self, Scope, SecretSigns, Seen};
use crate::verdict::{FailureCause, Skip};
use copied::CopiedLines;
use groups::{SecretGroups, SecretKey};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Objects that the coverage names one by one, at most.
const LOST_MAX: usize = 20;
/// Lines above and below a changed line in which a secret can be recognized by its neighbours.
const NEAR: usize = 3;
/// Lines above and below a changed line in which a secret can be split over joined literals.
const ROW: usize = 16;
/// Blobs between two reports of the progress.
const STEP: usize = 256;

/// Searches a history, and adds what it finds to the results of a scan.
///
/// `head`: the tree of HEAD, in which secrets may still be.
pub(super) fn scan_history(
    scan: &RuleScan<'_>,
    scope: &HistoryScope,
    head: Option<ObjectId>,
    out: &mut Scanned,
) {
    let Some(repo) = scan.repo else { return };
    let threads = scan.jobs.map_or_else(default_threads, |j| j as usize);
    let search = HistorySearch {
        priority: &|path| priority_of(scan, path),
        is_over: &|| scan.stop.signal().is_some(),
        threads,
    };
    let blobs = match repo.history(scope, search) {
        Ok(blobs) => blobs,
        Err(e) => return out.coverage.fail(FailureCause::Other(e.on_one_line())),
    };
    let shared = SharedSearch {
        scan,
        blobs: &blobs,
        total: blobs.count(),
        done: AtomicUsize::new(0),
        groups: Mutex::new(SecretGroups::default()),
    };
    let visitors = (0..threads).map(|_| SearchThread::new(&shared)).collect();
    let mut counts = BlobCounts::default();
    for visitor in blobs.visit(visitors) {
        counts.add(visitor.counts);
        out.merge(visitor.out);
    }
    let groups = shared.groups.into_inner();
    let groups = groups.unwrap_or_else(PoisonError::into_inner);
    let reread = Reread {
        scan,
        blobs: &blobs,
    };
    let is_all_searched = matches!(scope, HistoryScope::Everything)
        && scan.files.is_everything()
        && scan.shard.is_none()
        && counts.failed == 0
        && counts.sum() == shared.total
        && blobs.lost().is_empty()
        && blobs.broken().is_empty();
    groups.report(&reread, (head, is_all_searched), out);
    account(&blobs, scan, &counts, shared.total, out);
}

/// Returns how well a path suits to judge a blob by it.
fn priority_of(scan: &RuleScan<'_>, path: &[u8]) -> PathPriority {
    let name = RepoPath::new(path);
    if !scan.reads(&name) {
        return PathPriority::Ignored;
    }
    PathPriority::Read(leniency(scan, &name))
}

/// Returns a number that is smaller for a path at which a secret has more effect: first by how the
/// rules judge the path, then by the thresholds of the policy for it, the worst severity first.
fn leniency(scan: &RuleScan<'_>, path: &RepoPath) -> u8 {
    let thresholds = scan.policy.thresholds(Some(path));
    let is_lenient = rules::is_judged_leniently(path.as_bytes());
    let effects = Severity::ALL.map(|severity| thresholds.effect_of(severity));
    effects.iter().fold(u8::from(is_lenient), |sum, effect| {
        let weight = match effect {
            Effect::Blocks => 0,
            Effect::Warns => 1,
            Effect::Counts | Effect::Suppressed => 2,
        };
        sum * 3 + weight
    })
}

/// Adds to the coverage what the search did not read, and a note with the totals.
fn account(
    blobs: &HistoryBlobs,
    scan: &RuleScan<'_>,
    counts: &BlobCounts,
    total: usize,
    out: &mut Scanned,
) {
    let coverage = &mut out.coverage;
    coverage.files_total += total;
    coverage.files_reviewed += counts.text;
    if scan.stop.signal().is_some() {
        coverage.fail(FailureCause::Stopped);
    } else if counts.sum() != total {
        let missed = total.abs_diff(counts.sum());
        let why = format!("{missed} of {total} blobs were not searched; check: git fsck --full");
        coverage.fail(FailureCause::Other(why));
    }
    if blobs.is_cut_off() {
        let why = "this shallow clone omits older commits; fetch them: git fetch --unshallow";
        coverage.fail(FailureCause::Other(why.to_owned()));
    }
    for why in blobs.broken().iter().take(LOST_MAX) {
        coverage.fail(FailureCause::Other(why.clone()));
    }
    let more = blobs.broken().len().saturating_sub(LOST_MAX);
    if more > 0 {
        let why = format!("{more} more references cannot be read; check: git fsck --full");
        coverage.fail(FailureCause::Other(why));
    }
    for lost in blobs.lost().iter().take(LOST_MAX) {
        let cause = FailureCause::Other(lost.why.clone());
        match lost.path.as_slice() {
            [] => coverage.fail(cause),
            path => coverage.fail_file(RepoPath::new(path), cause),
        }
    }
    let more = blobs.lost().len().saturating_sub(LOST_MAX);
    if more > 0 {
        let why = format!("{more} more objects are missing or cannot be read");
        coverage.fail(FailureCause::Other(why));
    }
    let text = format!(
        "{total} blobs of {} commits: {} searched as text, {} as binary files, {} ignored by the policy, {} not read",
        blobs.commits(),
        counts.text,
        counts.binary,
        counts.ignored,
        total.saturating_sub(counts.text + counts.binary + counts.ignored),
    );
    out.notes.push(Note::general("git", text));
}

/// How many blobs were searched in which way.
#[derive(Clone, Copy, Debug, Default)]
struct BlobCounts {
    text: usize,
    binary: usize,
    ignored: usize,
    /// Not decoded, or not searched because of a panic. The coverage names them.
    failed: usize,
}

impl BlobCounts {
    fn add(&mut self, other: Self) {
        self.text += other.text;
        self.binary += other.binary;
        self.ignored += other.ignored;
        self.failed += other.failed;
    }

    /// Returns the number of blobs that the search visited.
    fn sum(self) -> usize {
        self.text + self.binary + self.ignored + self.failed
    }
}

/// State that all threads of a search share.
struct SharedSearch<'a> {
    scan: &'a RuleScan<'a>,
    blobs: &'a HistoryBlobs,
    total: usize,
    done: AtomicUsize,
    groups: Mutex<SecretGroups>,
}

/// The search of one thread.
struct SearchThread<'a> {
    shared: &'a SharedSearch<'a>,
    out: Scanned,
    counts: BlobCounts,
    /// Paths that the coverage already lists as skipped, by their number.
    skipped: BTreeSet<(u32, Skip)>,
}

/// Result of the search of a blob, for the deltas of it.
struct BlobMark {
    /// False if the blob was not read, so that nothing follows for its deltas.
    is_read: bool,
    has_nul: bool,
    signs: SecretSigns,
    /// Lines with secrets in the blob, with the number of their group.
    secrets: Vec<(usize, Range<usize>)>,
}

impl BlobMark {
    const UNREAD: Self = Self {
        is_read: false,
        has_nul: false,
        signs: SecretSigns::None,
        secrets: Vec::new(),
    };
}

impl BlobVisitor for SearchThread<'_> {
    type Mark = BlobMark;

    fn blob(
        &mut self,
        number: BlobNumber,
        data: &[u8],
        base: Option<DecodedBase<'_, BlobMark>>,
    ) -> BlobMark {
        let done = self.shared.done.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(STEP) || done == self.shared.total {
            self.shared.scan.progress.files(done, self.shared.total);
        }
        let before = self.counts;
        let search = std::panic::AssertUnwindSafe(|| self.search(number, data, base));
        // A panic in one blob must not count as its review, and must not stop the review of others.
        match std::panic::catch_unwind(search) {
            Ok(mark) => mark,
            Err(_) => {
                self.counts = before;
                self.counts.failed += 1;
                let path = RepoPath::new(self.shared.blobs.path(number));
                self.out
                    .coverage
                    .fail_file(path, FailureCause::InternalError);
                BlobMark::UNREAD
            }
        }
    }

    fn undecodable(&mut self, number: BlobNumber, why: Undecodable) {
        self.counts.failed += 1;
        let id = self.shared.blobs.id(number);
        let text = match why {
            Undecodable::TooLarge => {
                format!("blob {id}, or the blob that it is a delta of, is larger than 64 MiB")
            }
            Undecodable::Corrupt => format!("blob {id} is corrupt; check: git fsck --full"),
        };
        let path = RepoPath::new(self.shared.blobs.path(number));
        self.out.coverage.fail_file(path, FailureCause::Other(text));
    }

    fn is_over(&self) -> bool {
        self.shared.scan.stop.signal().is_some()
    }
}

impl<'a> SearchThread<'a> {
    fn new(shared: &'a SharedSearch<'a>) -> Self {
        Self {
            shared,
            out: Scanned::default(),
            counts: BlobCounts::default(),
            skipped: BTreeSet::new(),
        }
    }

    /// Searches a blob, unless the policy ignores its path.
    fn search(
        &mut self,
        number: BlobNumber,
        data: &[u8],
        base: Option<DecodedBase<'_, BlobMark>>,
    ) -> BlobMark {
        let blobs = self.shared.blobs;
        if !self.shared.scan.reads(&RepoPath::new(blobs.path(number))) {
            self.counts.ignored += 1;
            self.skip(number, Skip::Ignored);
            return BlobMark::UNREAD;
        }
        // The path decides which rules apply.
        let base = base
            .filter(|b| b.mark.is_read && blobs.path_index(b.number) == blobs.path_index(number));
        let Some(base) = base else {
            return self.whole(number, data);
        };
        let lines = CopiedLines::new(data, base.data, base.copied);
        let has_nul = if base.mark.has_nul {
            memchr::memchr(0, data).is_some()
        } else {
            let mut fresh = lines.fresh().iter();
            fresh.any(|range| memchr::memchr(0, &data[range.clone()]).is_some())
        };
        let fresh = if has_nul {
            SecretSigns::File
        } else {
            self.signs(data, lines.fresh())
        };
        let signs = base.mark.signs.max(fresh);
        if fresh != SecretSigns::None || signs == SecretSigns::File {
            return self.read(number, data, has_nul, signs);
        }
        let secrets = base.mark.secrets.iter().flat_map(|(group, line)| {
            let copies = lines.copies_of(data, line);
            copies.map(move |line| (*group, line))
        });
        let secrets: Vec<(usize, Range<usize>)> = secrets.collect();
        // A changed line next to a secret can be a part of it.
        if is_beside(data, lines.fresh(), &secrets) {
            return self.read(number, data, has_nul, signs);
        }
        self.counts.text += 1;
        self.note_versions(number, &secrets);
        BlobMark {
            is_read: true,
            has_nul,
            signs,
            secrets,
        }
    }

    /// Searches a blob of which nothing is known.
    fn whole(&mut self, number: BlobNumber, data: &[u8]) -> BlobMark {
        let has_nul = memchr::memchr(0, data).is_some();
        let whole = 0..data.len();
        let signs = if has_nul {
            SecretSigns::File
        } else {
            self.signs(data, std::slice::from_ref(&whole))
        };
        if signs == SecretSigns::None {
            self.counts.text += 1;
            return BlobMark {
                is_read: true,
                has_nul,
                signs,
                secrets: Vec::new(),
            };
        }
        self.read(number, data, has_nul, signs)
    }

    /// Returns the strongest sign of a secret in some lines.
    fn signs(&self, data: &[u8], lines: &[Range<usize>]) -> SecretSigns {
        let rules = self.shared.scan.rules;
        let mut signs = SecretSigns::None;
        for range in lines {
            let around = copied::with_neighbours(data, range, NEAR);
            let wide = copied::with_neighbours(data, range, ROW);
            let found = rules.secret_signs(&data[range.clone()], &data[around], &data[wide]);
            signs = signs.max(found);
            if signs == SecretSigns::File {
                break;
            }
        }
        signs
    }

    /// Runs the rules over a blob.
    fn read(
        &mut self,
        number: BlobNumber,
        data: &[u8],
        has_nul: bool,
        signs: SecretSigns,
    ) -> BlobMark {
        let reread = Reread {
            scan: self.shared.scan,
            blobs: self.shared.blobs,
        };
        let (file, secrets) = reread.secrets(number, data.to_vec(), &mut self.out);
        if matches!(file.body, Body::Binary(_)) {
            self.counts.binary += 1;
            self.skip(number, Skip::Binary);
        } else {
            self.counts.text += 1;
        }
        let mut groups = self.groups();
        let rank = self.shared.blobs.rank(number);
        let secrets = secrets.into_iter().map(|found| {
            let group = groups.add(found.key, (rank, number), found.finding);
            (group, found.line)
        });
        let secrets = secrets.collect();
        drop(groups);
        BlobMark {
            is_read: true,
            has_nul,
            signs,
            secrets,
        }
    }

    /// Records that a blob has secrets which its base has too.
    fn note_versions(&self, number: BlobNumber, secrets: &[(usize, Range<usize>)]) {
        if secrets.is_empty() {
            return;
        }
        let rank = self.shared.blobs.rank(number);
        let mut groups = self.groups();
        for (group, _) in secrets {
            groups.add_version(*group, (rank, number));
        }
    }

    fn groups(&self) -> std::sync::MutexGuard<'a, SecretGroups> {
        let groups = self.shared.groups.lock();
        groups.unwrap_or_else(PoisonError::into_inner)
    }

    fn skip(&mut self, number: BlobNumber, why: Skip) {
        let index = self.shared.blobs.path_index(number);
        if self.skipped.insert((index, why)) {
            let path = RepoPath::new(self.shared.blobs.path(number));
            self.out.coverage.skipped.push((path, why));
        }
    }
}

/// Returns true if one of the ranges of lines is near the lines of a secret.
fn is_beside(data: &[u8], lines: &[Range<usize>], secrets: &[(usize, Range<usize>)]) -> bool {
    !secrets.is_empty()
        && lines.iter().any(|range| {
            let near = copied::with_neighbours(data, range, NEAR);
            let mut secrets = secrets.iter();
            secrets.any(|(_, line)| line.start < near.end && near.start < line.end)
        })
}

/// A secret of a blob.
struct FoundSecret {
    key: SecretKey,
    finding: Finding,
    /// The lines of the finding in the blob; empty if it is about the whole blob, or if the text is
    /// decoded.
    line: Range<usize>,
}

/// Runs the rules over single blobs.
#[derive(Clone, Copy)]
struct Reread<'a> {
    scan: &'a RuleScan<'a>,
    blobs: &'a HistoryBlobs,
}

impl Reread<'_> {
    /// Runs the rules for secrets over a blob as a new file. Findings that are not listed are
    /// counted in `out`.
    fn secrets(
        &self,
        number: BlobNumber,
        data: Vec<u8>,
        out: &mut Scanned,
    ) -> (FileChange, Vec<FoundSecret>) {
        let (rules, commit) = (self.scan.rules, self.blobs.commit(number));
        let path = self.blobs.path_index(number);
        let file = code::added(RepoPath::new(self.blobs.path(number)), data);
        let mut findings = Vec::new();
        let scope = (Scope::Secrets, Seen::Part);
        let rest = rules.scan_above(&file, scope, &Floor::default(), &mut findings);
        let thresholds = self.scan.policy.thresholds(Some(file.path()));
        out.counted.extend(rest.counted.into_iter().map(|c| {
            c.in_commit(commit, false)
                .with_effect(thresholds.effect_of(c.severity))
        }));
        let mut frames = file.text().map(|text| Frames::of(text, rules));
        let secrets = findings.into_iter().map(|mut finding| {
            finding.commit = commit;
            if let (Some(frames), Some(span)) = (&mut frames, finding.lines()) {
                finding.frame = frames.around(span);
            }
            FoundSecret {
                key: SecretKey::of(path, &finding, &file),
                line: copied::lines_of(&finding, &file).unwrap_or_default(),
                finding,
            }
        });
        let secrets = secrets.collect();
        (file, secrets)
    }

    /// Reads a blob again, and runs the rules over it. Returns nothing if it cannot be read.
    fn again(&self, number: BlobNumber) -> Vec<FoundSecret> {
        let Ok(data) = self.blobs.read(number) else {
            return Vec::new();
        };
        self.secrets(number, data, &mut Scanned::default()).1
    }

    /// Returns true if the rules have read a blob, given that the search was complete.
    fn is_searched(&self, number: BlobNumber) -> bool {
        self.blobs.has(number) && self.scan.reads(&RepoPath::new(self.blobs.path(number)))
    }

    fn is_over(&self) -> bool {
        self.scan.stop.signal().is_some()
    }
}
