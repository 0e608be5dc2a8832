//! Reads and scans the parts of a source, on a number of threads that depends on the amount of
//! work.

use super::files::Files;
use super::frame::Frames;
use super::record::{RecordPiece, Recorder};
use super::resolved::{ChangePart, PartContent};
use super::shard::ShardMap;
use super::{Note, Stat};
use crate::diff::{
    self, BinaryChange, Body, Entry, FileChange, FileMode, ObjectId, RepoPath, Side, TextChange,
};
use crate::error::{Kind, Result};
use crate::finding::listing::{Counted, Floor};
use crate::finding::{Finding, LineSpan, Location};
use crate::git::{Change, Reader, Repo, State};
use crate::policy::Policy;
use crate::progress::Progress;
use crate::request::Authority;
use crate::rules::{self, Rest, RuleSet, Scope, Seen, Tree};
use crate::stop::Stop;
use crate::untrusted::Inert;
use crate::verdict::{Coverage, CoverageFailure, FailureCause, Skip};
use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Stack size in bytes of a thread that scans. The data flow analysis follows calls and expressions
/// by recursion: a builder of 800 lines needs 0.7 MB in an optimized build, and more than the usual
/// 2 MB in other builds.
pub(crate) const SCAN_STACK: usize = 16 << 20;

/// A scan of fewer files runs on the calling thread, because starting a thread costs more.
const SMALL: usize = 24;
/// With more threads than this, the threads wait for each other's memory.
const MOST_THREADS: usize = 16;
/// Files below the target of a link whose paths are compared, at most.
const MOST_LINKED: usize = 200_000;

/// Notes of each kind about new instructions to models, at most.
pub(super) const MOST_TOLD: usize = 20;

/// Inputs of a scan.
#[derive(Clone, Copy)]
pub(super) struct RuleScan<'a> {
    pub(super) repo: Option<&'a Repo>,
    pub(super) rules: &'a RuleSet,
    pub(super) authority: Authority,
    pub(super) policy: &'a Policy,
    pub(super) files: &'a Files,
    pub(super) progress: &'a dyn Progress,
    /// Threads, at most. `None`: the number of cores, up to [`MOST_THREADS`].
    pub(super) jobs: Option<u32>,
    pub(super) stop: &'a Stop,
    /// Records the change as text, if a record is requested.
    pub(super) recorder: Option<&'a Recorder>,
    /// All files of a state are scanned, and not a change.
    pub(super) is_tree: bool,
    /// Passes on the findings of each file when it has been scanned; `None` if they are not final
    /// then.
    pub(super) stream: Option<&'a FileFindings<'a>>,
    /// The part of the files that is scanned; `None` for all.
    pub(super) shard: Option<&'a ShardMap>,
}

/// Receives the findings of one file. Called from several threads.
pub(super) type FileFindings<'a> = dyn Fn(&[Finding]) + Sync + 'a;

/// Results of a scan, in no particular order.
#[derive(Debug, Default)]
pub(super) struct Scanned {
    pub(super) findings: Vec<Finding>,
    /// Findings that are not listed.
    pub(super) counted: Vec<Counted>,
    /// Rank that a further finding must precede to be listed.
    floor: Floor,
    pub(super) notes: Vec<Note>,
    pub(super) coverage: Coverage,
    /// Files read from the worktree, with the IDs of their content.
    pub(super) seen: Vec<(RepoPath, ObjectId)>,
    /// First changed line. A file with added lines is preferred.
    pub(super) first_change: Option<Location>,
    pub(super) pieces: Vec<RecordPiece>,
    pub(super) stat: Stat,
}

/// A unit of work for one thread.
#[derive(Clone, Copy)]
enum Unit {
    /// Entry number `entry` of part number `part`.
    File { part: usize, entry: usize },
    /// All of a part.
    Part(usize),
}

/// Returns true for an entry of a change. After a stop signal, [`RuleScan::entry`] still visits
/// these: it counts them as files that were not reviewed, except for the ignored ones.
fn is_counted_when_stopped(parts: &[ChangePart], unit: Unit) -> bool {
    let Unit::File { part, .. } = unit else {
        return false;
    };
    parts[part].change().is_some() && !parts[part].is_repeat
}

impl RuleScan<'_> {
    /// Scans every part.
    pub(super) fn run(&self, parts: &[ChangePart]) -> Scanned {
        let units: Vec<Unit> = parts
            .iter()
            .enumerate()
            .flat_map(|(part, p)| {
                let n = match &p.content {
                    PartContent::Change(c) => c.entries.len(),
                    PartContent::Given(files) => files.len(),
                    PartContent::Commit(_) => 0,
                };
                let whole = matches!(p.content, PartContent::Commit(_)).then_some(Unit::Part(part));
                (0..n)
                    .filter(|entry| self.is_own(&p.content, *entry))
                    .map(move |entry| Unit::File { part, entry })
                    .chain(whole)
            })
            .collect();
        let next = AtomicUsize::new(0);
        let threads = match units.len() {
            n if n < SMALL => 1,
            n => self
                .jobs
                .map_or_else(default_threads, |j| j as usize)
                .min(n / (SMALL / 2)),
        };
        let mut all = if threads == 1 {
            self.work(parts, &units, &next)
        } else {
            std::thread::scope(|s| {
                // If the system cannot start more threads, the existing threads do the work.
                let others = (1..threads).map_while(|_| {
                    let thread = std::thread::Builder::new().stack_size(SCAN_STACK);
                    thread
                        .spawn_scoped(s, || self.work(parts, &units, &next))
                        .ok()
                });
                let others: Vec<_> = others.collect();
                let mut all = self.work(parts, &units, &next);
                for o in others {
                    match o.join() {
                        Ok(part) => all.merge(part),
                        Err(panic) => std::panic::resume_unwind(panic),
                    }
                }
                all
            })
        };
        for p in parts {
            if let Some(change) = p.change() {
                self.whole_change(p, change, &mut all);
            }
        }
        // Several commits may have the same note.
        let mut said = HashSet::new();
        all.notes
            .retain(|n| n.file.is_some() || said.insert(n.text.clone()));
        all
    }

    /// Returns true if an entry of a part is in the shard that is scanned.
    fn is_own(&self, content: &PartContent, entry: usize) -> bool {
        let Some(shard) = self.shard else { return true };
        match content {
            PartContent::Change(change) => shard.has(change.entries[entry].path()),
            PartContent::Given(files) => shard.has(files[entry].path()),
            PartContent::Commit(_) => true,
        }
    }

    /// Returns true if this scan reports what needs the whole change: it is not divided, or it is
    /// of the first shard.
    pub(super) fn is_for_the_whole(&self) -> bool {
        self.shard.is_none_or(ShardMap::is_first)
    }

    /// Returns the findings of the rule that is reported once for many files, in the files of the
    /// other shards. Only files that become executable can have one. The rule is about a change, so
    /// a tree has none.
    pub(super) fn gathered_elsewhere(&self, parts: &[ChangePart]) -> Vec<Finding> {
        let (Some(repo), Some(shard), false) = (self.repo, self.shard, self.is_tree) else {
            return Vec::new();
        };
        let mut reader = repo.reader();
        let mut found = Vec::new();
        for part in parts.iter().filter(|part| part.scope == Scope::All) {
            let Some(change) = part.change() else {
                continue;
            };
            for (index, entry) in change.entries.iter().enumerate() {
                let is_elsewhere = becomes_executable(entry) && !shard.has(entry.path());
                if !is_elsewhere || !self.files.select(entry.path()) || self.is_aside(entry) {
                    continue;
                }
                // The shard of the file reports what cannot be read.
                if let Ok(file) = self.load(change, index, &mut reader) {
                    let scope = (Scope::All, Seen::Net);
                    self.rules
                        .scan_above(&file, scope, &Floor::default(), &mut found);
                }
            }
        }
        found.retain(|f| f.rule_id() == rules::GATHERED);
        found
    }

    /// Scans units until none is left. `next` is the index of the next unit, which all threads
    /// share.
    fn work(&self, parts: &[ChangePart], units: &[Unit], next: &AtomicUsize) -> Scanned {
        let mut out = Scanned::default();
        let mut reader = self.repo.map(Repo::reader);
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let Some(unit) = units.get(i) else { return out };
            if self.stop.signal().is_some() && !is_counted_when_stopped(parts, *unit) {
                out.fail(self.path(parts, *unit), FailureCause::Stopped);
                continue;
            }
            // A panic in one file must not count as its review, and must not stop the review of
            // other files.
            let first = out.findings.len();
            let unwind =
                std::panic::AssertUnwindSafe(|| self.unit(parts, *unit, reader.as_mut(), &mut out));
            if std::panic::catch_unwind(unwind).is_err() {
                out.fail(self.path(parts, *unit), FailureCause::InternalError);
                reader = self.repo.map(Repo::reader);
            } else if let Some(stream) = self.stream {
                stream(&out.findings[first..]);
            }
            let Scanned {
                findings,
                counted,
                floor,
                ..
            } = &mut out;
            floor.settle(findings, 0, |f| counted.push(self.count(f, parts)));
            self.progress.files(i + 1, units.len());
        }
    }

    /// Returns the path of a unit that is a file.
    fn path(&self, parts: &[ChangePart], unit: Unit) -> Option<RepoPath> {
        let Unit::File { part, entry } = unit else {
            return None;
        };
        match &parts[part].content {
            PartContent::Change(change) => change.entries.get(entry).map(|e| e.path().clone()),
            PartContent::Given(files) => files.get(entry).map(|f| f.path().clone()),
            PartContent::Commit(_) => None,
        }
    }

    fn unit(
        &self,
        parts: &[ChangePart],
        unit: Unit,
        reader: Option<&mut Reader<'_>>,
        out: &mut Scanned,
    ) {
        match unit {
            Unit::File { part, entry } => {
                let p = &parts[part];
                match (&p.content, reader) {
                    (PartContent::Change(change), Some(reader)) if p.is_repeat => {
                        let mut again = Scanned::default();
                        self.entry(p, (part, change), entry, reader, &mut again);
                        out.take_repeat(again);
                    }
                    (PartContent::Change(change), Some(reader)) => {
                        self.entry(p, (part, change), entry, reader, out);
                    }
                    (PartContent::Given(files), _) => {
                        self.file(p, (part, entry), &files[entry], out);
                    }
                    _ => {}
                }
            }
            Unit::Part(part) => {
                let p = &parts[part];
                let (PartContent::Commit(id), Some(reader)) = (&p.content, reader) else {
                    return;
                };
                match reader.alone(*id) {
                    Ok(change) => {
                        for entry in 0..change.entries.len() {
                            self.entry(p, (part, &change), entry, reader, out);
                        }
                        self.whole_change(p, &change, out);
                    }
                    Err(e) => out
                        .coverage
                        .fail(FailureCause::Other(format!("commit {}: {e}", id.short()))),
                }
            }
        }
    }

    /// `change`: the change of the part with this number.
    fn entry(
        &self,
        part: &ChangePart,
        (number, change): (usize, &Change),
        index: usize,
        reader: &mut Reader<'_>,
        out: &mut Scanned,
    ) {
        let entry = &change.entries[index];
        let path = entry.path();
        if !self.selected(path) {
            return;
        }
        if self.policy.ignores(path) {
            return out.skip(part, path, Skip::Ignored);
        }
        let is_record = self.is_record(entry);
        let loaded = if self.stop.signal().is_some() {
            Err(FailureCause::Stopped)
        } else {
            self.load(change, index, reader)
                .map_err(|e| FailureCause::Other(e.on_one_line()))
        };
        match loaded {
            Ok(file) => self.scan(part, (number, index), &file, is_record, out),
            Err(cause) => {
                out.coverage.files_total += usize::from(part.scope == Scope::All && !is_record);
                out.coverage.fail_file(path.clone(), cause);
            }
        }
    }

    /// Returns true if an entry is reviewed, and not only searched for secrets.
    pub(super) fn is_wanted(&self, entry: &Entry) -> bool {
        self.selected(entry.path()) && !self.is_aside(entry)
    }

    /// Returns true if the policy ignores an entry, or the entry is a stored review.
    pub(super) fn is_aside(&self, entry: &Entry) -> bool {
        self.policy.ignores(entry.path()) || self.is_record(entry)
    }

    /// Returns true if every side of an entry is a regular file in the location of a stored review.
    /// A file that is moved there from another location is missing in that location.
    fn is_record(&self, entry: &Entry) -> bool {
        entry.sides().all(|s| {
            matches!(s.mode, FileMode::Regular | FileMode::Executable)
                && self.policy.is_record(&s.path)
        })
    }

    /// Reads one entry, as an added file if it becomes visible to rules.
    pub(super) fn load(
        &self,
        change: &Change,
        index: usize,
        reader: &mut Reader<'_>,
    ) -> Result<FileChange> {
        match self.comes_into_view(&change.entries[index]) {
            true => reader.load_as_added(change, index),
            false => reader.load(change, index),
        }
    }

    /// Returns true if a rename makes a file visible to review, or to rules that did not check its
    /// old path.
    fn comes_into_view(&self, entry: &Entry) -> bool {
        match (&entry.old, &entry.new) {
            (Some(old), Some(new)) if old.path != new.path => {
                let was_aside = self.policy.ignores(&old.path) || self.policy.is_record(&old.path);
                was_aside || rules::comes_alive(&old.path, &new.path)
            }
            _ => false,
        }
    }

    fn file(&self, part: &ChangePart, order: (usize, usize), file: &FileChange, out: &mut Scanned) {
        if !self.selected(file.path()) {
            return;
        }
        if self.policy.ignores(file.path()) {
            return out.skip(part, file.path(), Skip::Ignored);
        }
        self.scan(part, order, file, self.is_record(&file.entry), out);
    }

    /// Returns true if a path is selected, and the policy does not ignore it.
    pub(super) fn reads(&self, path: &RepoPath) -> bool {
        self.selected(path) && !self.policy.ignores(path)
    }

    fn selected(&self, path: &RepoPath) -> bool {
        self.files.select(path) && self.shard.is_none_or(|shard| shard.has(path))
    }

    /// Scans one file. `order`: index of the file in the change. `is_record`: true if its entry in
    /// the change is a stored review. That entry may have another side than `file`.
    fn scan(
        &self,
        part: &ChangePart,
        order: (usize, usize),
        file: &FileChange,
        is_record: bool,
        out: &mut Scanned,
    ) {
        let scope = if is_record {
            Scope::Secrets
        } else {
            part.scope
        };
        if !is_record {
            out.pieces.extend(
                self.recorder
                    .and_then(|r| r.piece(part, order, file, self.rules)),
            );
        }
        let first = out.findings.len();
        // The author of a patch also controls the lines around its changes.
        let is_part = part.commit.is_some() || matches!(part.content, PartContent::Given(_));
        let seen = if is_part { Seen::Part } else { Seen::Net };
        let rest = self
            .rules
            .scan_above(file, (scope, seen), &out.floor, &mut out.findings);
        out.notes.extend(notes_on_limits(part, file, &rest));
        let thresholds = self.policy.thresholds(Some(file.path()));
        let is_inside = part.commit.is_some() && part.scope == Scope::Secrets;
        out.counted.extend(rest.counted.into_iter().map(|c| {
            c.in_commit(part.commit, is_inside)
                .with_effect(thresholds.effect_of(c.severity))
        }));
        let mut frames = file.text().map(|text| Frames::of(text, self.rules));
        for f in &mut out.findings[first..] {
            f.commit = part.commit;
            if let (Some(frames), Some(span)) = (&mut frames, f.lines()) {
                f.frame = frames.around(span);
            }
        }
        let is_of_worktree = part.change().is_some_and(|c| c.head == State::Worktree);
        if let Some(side) = file.entry.new.as_ref().filter(|_| is_of_worktree) {
            out.seen.extend(side.id.map(|id| (side.path.clone(), id)));
        }
        if is_record && part.scope == Scope::All {
            out.count_record(file);
        }
        if scope == Scope::All {
            let remarks = self.rules.remarks(file, seen, &out.findings[first..]);
            out.notes.extend(remarks.into_iter().map(|r| Note {
                file: Some(file.path().clone()),
                line: Some(r.line),
                text: r.text,
                origin: "rules".to_owned(),
            }));
            out.count_file(file);
        }
    }

    /// Counts a finding that is not listed.
    pub(super) fn count(&self, f: &Finding, parts: &[ChangePart]) -> Counted {
        let is_inside = f.commit.is_some()
            && parts
                .iter()
                .any(|p| p.commit == f.commit && p.scope == Scope::Secrets);
        let effect = self.policy.thresholds(f.file()).effect_of(f.severity());
        Counted::of(f)
            .in_commit(f.commit, is_inside)
            .with_effect(effect)
    }

    /// Returns what the rules about a change as a whole find. Their reads use a separate reader.
    fn findings_of_whole(&self, change: &Change) -> Vec<Finding> {
        let files = ChangedTree {
            scan: self,
            change,
            reader: RefCell::new(None),
        };
        let tree = Tree {
            load: &|index| files.load(index),
            exists: &|path| files.exists(path),
            target: &|path| files.target(path),
            below: &|folder| files.below(folder),
            ignores: &|path| self.policy.ignores(path),
        };
        let mut found = Vec::new();
        self.rules.scan_change(change, &tree, &mut found);
        if !self.files.is_everything() {
            found.retain(|f| f.file().is_some_and(|path| self.files.select(path)));
        }
        found
    }

    /// Runs the rules over the change of a part as a whole, and adds notes about it.
    fn whole_change(&self, part: &ChangePart, change: &Change, out: &mut Scanned) {
        self.lower_moved(part, change, &mut out.findings);
        if !self.is_for_the_whole() {
            return;
        }
        out.notes
            .extend(change.notes.iter().map(|n| Note::general("git", n.clone())));
        if part.scope == Scope::All && self.authority == Authority::Base && !self.is_tree {
            out.notes.extend(self.conventions(change));
        }
        if part.scope == Scope::All {
            for mut found in self.findings_of_whole(change) {
                found.commit = part.commit;
                out.findings.push(found);
            }
        }
    }
}

impl RuleScan<'_> {
    /// Returns a note for each changed document that describes the team's conventions to models.
    fn conventions(&self, change: &Change) -> Vec<Note> {
        let names = &self.policy.review.conventions;
        let sides = change.entries.iter().flat_map(Entry::sides);
        let paths: BTreeSet<&RepoPath> = sides
            .map(|s| &s.path)
            .filter(|p| is_named(p, names))
            .collect();
        let what = "the team's conventions; models read the old version until the merge";
        let notes = paths.iter().take(MOST_TOLD).map(|p| {
            Note::general(
                "review",
                format!("{} documents {what}", self.rules.masked(&p.to_wire())),
            )
        });
        let mut notes: Vec<Note> = notes.collect();
        if paths.len() > MOST_TOLD {
            let text = format!(
                "{} more convention documents change",
                paths.len() - MOST_TOLD
            );
            notes.push(Note::general("review", text));
        }
        notes
    }
}

/// Returns true if an entry is executable and was not, or is new.
fn becomes_executable(entry: &Entry) -> bool {
    let is_executable = |side: &Side| side.mode == FileMode::Executable;
    entry.new.as_ref().is_some_and(is_executable) && !entry.old.as_ref().is_some_and(is_executable)
}

/// Returns the number of threads without a setting.
pub(super) fn default_threads() -> usize {
    std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(MOST_THREADS)
}

/// Returns true if a path is in a list of names and paths.
fn is_named(path: &RepoPath, names: &[String]) -> bool {
    let path = path.as_bytes();
    let name = path.rsplit(|b| *b == b'/').next().unwrap_or(path);
    names
        .iter()
        .any(|n| n.as_bytes() == if n.contains('/') { path } else { name })
}

/// Reads the new side of a change for the rules. The scan of the files themselves reports read
/// errors.
struct ChangedTree<'a> {
    scan: &'a RuleScan<'a>,
    change: &'a Change,
    /// Opened at the first read.
    reader: RefCell<Option<Reader<'a>>>,
}

impl ChangedTree<'_> {
    /// Reads the entry with an index; `None` if that fails, or if the entry is not reviewed.
    fn load(&self, index: usize) -> Option<FileChange> {
        let repo = self.scan.repo?;
        if self.scan.is_aside(&self.change.entries[index]) {
            return None;
        }
        self.reader
            .borrow_mut()
            .get_or_insert_with(|| repo.reader())
            .load(self.change, index)
            .ok()
    }

    /// Returns true if the new side has a file with a path.
    fn exists(&self, path: &RepoPath) -> bool {
        let Some(repo) = self.scan.repo else {
            return false;
        };
        // Only the existence of the file matters, and an error about its size shows that it
        // exists.
        match self
            .reader
            .borrow_mut()
            .get_or_insert_with(|| repo.reader())
            .read(&self.change.head, path, 0)
        {
            Ok(content) => content.is_some(),
            Err(e) => e.kind == Kind::Usage,
        }
    }

    /// Returns the target of the link at a path; `None` without a link.
    fn target(&self, path: &RepoPath) -> Option<Vec<u8>> {
        let repo = self.scan.repo?;
        self.reader
            .borrow_mut()
            .get_or_insert_with(|| repo.reader())
            .target(&self.change.head, path)
            .ok()
            .flatten()
    }

    /// Lists the files below a folder. The second value is true if there are more.
    fn below(&self, folder: &RepoPath) -> (Vec<RepoPath>, bool) {
        let Some(repo) = self.scan.repo else {
            return (Vec::new(), false);
        };
        let mut reader = self.reader.borrow_mut();
        let reader = reader.get_or_insert_with(|| repo.reader());
        reader
            .below(&self.change.head, folder, MOST_LINKED)
            .unwrap_or_default()
    }
}

impl Scanned {
    /// Records that a unit of work was not reviewed. `file` is `None` for a whole part.
    fn fail(&mut self, file: Option<RepoPath>, cause: FailureCause) {
        self.coverage.failed.push(CoverageFailure { file, cause });
    }

    fn skip(&mut self, part: &ChangePart, path: &RepoPath, why: Skip) {
        tracing::debug!(path = %Inert::new(path.as_bytes()), ?why, "skipped");
        if part.scope == Scope::All {
            self.coverage.files_total += 1;
            self.coverage.skipped.push((path.clone(), why));
        }
    }

    /// Counts a stored review in the change. A review is stored as text, so another kind of file in
    /// its place is not one, and was not reviewed.
    fn count_record(&mut self, file: &FileChange) {
        self.coverage.records += 1;
        let is_undecoded = file.text().is_some_and(|t| t.undecoded.is_some());
        let is_data = is_undecoded || matches!(file.body, Body::Binary(_) | Body::Submodule { .. });
        if file.entry.new.is_some() && is_data {
            let why = "it has the path of a stored review, but is not a text file";
            let cause = FailureCause::Other(why.to_owned());
            self.coverage.fail_file(file.path().clone(), cause);
        }
    }

    /// Counts a scanned file: as reviewed, skipped or failed.
    fn count_file(&mut self, file: &FileChange) {
        self.saw(file);
        let hunks = file.text().map_or(0, |t| t.hunks.len());
        self.stat.count(file);
        let coverage = &mut self.coverage;
        coverage.files_total += 1;
        coverage.hunks_total += hunks;
        let path = file.path().clone();
        match &file.body {
            // Git also reports code as binary if it has a NUL or an attribute.
            Body::Binary(b)
                if b.is_withheld() && file.entry.new.is_some() && is_text(file.path()) =>
            {
                let why =
                    "the patch calls it binary and lacks its content; `git diff --binary` has it";
                coverage.fail_file(path, FailureCause::Other(why.to_owned()));
            }
            Body::Binary(BinaryChange {
                undecoded: Some(why),
                ..
            })
            | Body::Text(TextChange {
                undecoded: Some(why),
                ..
            }) => coverage.fail_file(path, FailureCause::Other(why.to_string())),
            Body::Binary(_) => coverage.skipped.push((path, Skip::Binary)),
            Body::Submodule { .. } => coverage.skipped.push((path, Skip::Submodule)),
            Body::Same | Body::Text(_) => {
                coverage.files_reviewed += 1;
                coverage.hunks_reviewed += hunks;
            }
        }
    }

    /// Records the first changed line.
    fn saw(&mut self, file: &FileChange) {
        let line = file
            .text()
            .and_then(|t| t.added().next())
            .map(|block| block.first);
        if self
            .first_change
            .as_ref()
            .is_none_or(|f| (line.is_none(), file.path()) < (f.lines.is_none(), &f.file))
        {
            let lines = line.map(|first| LineSpan {
                first,
                last: first,
                columns: None,
            });
            self.first_change = Some(Location {
                file: file.path().clone(),
                lines,
            });
        }
    }

    /// Adds the findings and failures of a repeated scan of files that other parts already count.
    /// Leaves out its notes and its unlisted findings: if a commit of a range has the same ones,
    /// they would count twice.
    fn take_repeat(&mut self, other: Self) {
        self.findings.extend(other.findings);
        self.coverage.failed.extend(other.coverage.failed);
    }

    pub(super) fn merge(&mut self, other: Self) {
        let Self {
            findings,
            counted,
            floor: _,
            notes,
            coverage: c,
            first_change,
            seen,
            pieces,
            stat,
        } = other;
        self.counted.extend(counted);
        self.stat.add(stat);
        self.pieces.extend(pieces);
        self.seen.extend(seen);
        let both = [self.first_change.take(), first_change]
            .into_iter()
            .flatten();
        self.first_change =
            both.min_by(|a, b| (a.lines.is_none(), &a.file).cmp(&(b.lines.is_none(), &b.file)));
        self.findings.extend(findings);
        self.notes.extend(notes);
        self.coverage.add(c);
    }
}

/// Returns notes about findings of a file that are not listed, and about parts of it that the data
/// flow or the structural rules did not reach.
fn notes_on_limits(part: &ChangePart, file: &FileChange, rest: &Rest) -> Vec<Note> {
    let within = part
        .commit
        .map_or_else(String::new, |c| format!(" in commit {}", c.short()));
    let unlisted = rest.by_rule.iter().map(|u| {
        format!(
            "{} more of {} are not listed{within}: the first 1,000 are",
            u.count, u.rule
        )
    });
    let partial = [
        (rest.is_flow_partial, "data flow was followed"),
        (rest.is_tree_partial, "structural rules were matched"),
    ];
    let partial = partial.iter().filter(|(is_partial, _)| *is_partial);
    let partial = partial.map(|(_, what)| {
        format!("{what} only in a part of the file{within}: it is too large or too complex")
    });
    let texts = unlisted.chain(partial);
    texts
        .map(|text| Note {
            file: Some(file.path().clone()),
            line: None,
            text,
            origin: "rules".to_owned(),
        })
        .collect()
}

/// Returns true if a path is that of a text file: a format that rules support, or another language
/// or configuration format.
fn is_text(path: &RepoPath) -> bool {
    rules::is_code(path) || diff::is_text_name(path)
}
