//! Renders prompts. Pure: all untrusted text is redacted before, and put inside fences here.
//!
//! A prompt consists of constant instructions, the context of the run, a part of the change, and
//! the task, in this order, so that providers can cache its prefix. Its last line is the nonce,
//! which a reply must repeat.

mod consult;
mod criteria;
mod fence;
mod languages;
mod manifest;
mod related;
mod show;
mod unchanged;

use super::anchor::section_of;
use super::ask::{Manifest, Nonce, Prompt};
use super::context::shortened;
use super::kept::ExcludedFile;
use super::material::{Document, Group, Shown, ShownHunk};
use super::plan::{self, Chunk};
use super::redact;
use crate::diff::{LineKind, RepoPath};
use crate::finding::{Category, Draft};
use crate::request::{Criterion, Depth, Previous};
use crate::text::listed;
pub use consult::{Exhibit, consult};
pub use criteria::criteria;
use fence::fenced;
use related::Picked;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

/// The context of a run that all its requests share, except the change itself. All texts are
/// redacted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Brief {
    pub depth: Depth,
    /// Description by the author of the request and the work done.
    pub summary: Option<String>,
    /// Design documents that the change must follow.
    pub documents: Vec<Document>,
    /// Tickets and pages that the change refers to, named by their keys.
    pub tickets: Vec<Document>,
    /// Conventions of the team. Conventions of a folder are only sent with chunks that touch it.
    pub conventions: Vec<Document>,
    /// Categories to review; all if empty.
    pub focus: Vec<Category>,
    /// Areas that need special attention, as the author describes them.
    pub areas: Vec<String>,
    /// Results of the project's tests, in a few lines.
    pub tests: Option<String>,
    /// Earlier rounds of the same review, oldest first.
    pub previous: Vec<Previous>,
    /// Changed files that are not sent to any model.
    pub kept: Vec<ExcludedFile>,
    /// Criteria of the task. The task itself is among the documents.
    pub criteria: Vec<Criterion>,
    /// Claims of models that a person rejected. Each is sent with the chunks that contain its line.
    pub rejections: Vec<Rejection>,
}

/// A claim that a person rejected. Texts are redacted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Path in the format of reports.
    pub path: String,
    pub rule: String,
    /// The line that the claim was about.
    pub line: String,
    pub reason: String,
}

impl Rejection {
    /// Returns true if a hunk of these files contains the line of the claim.
    fn is_about(&self, files: &[&Shown]) -> bool {
        let mut own = files.iter().filter(|f| f.path().to_wire() == self.path);
        own.any(|f| {
            f.hunks
                .iter()
                .flat_map(|h| &h.lines)
                .any(|l| l.text.contains(&self.line))
        })
    }
}

/// The kind of defects that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lens {
    /// All kinds at once, for depth quick.
    Whole,
    Correctness,
    Security,
    /// Conventions, design documents and the request.
    Conventions,
    /// Tests and interfaces.
    Tests,
}

impl Lens {
    /// The lenses of depth thorough, one request each.
    pub const THOROUGH: [Self; 4] = [
        Self::Correctness,
        Self::Security,
        Self::Conventions,
        Self::Tests,
    ];

    fn task(self) -> &'static str {
        match self {
            Self::Whole => include_str!("prompt/whole.md"),
            Self::Correctness => include_str!("prompt/correctness.md"),
            Self::Security => include_str!("prompt/security.md"),
            Self::Conventions => include_str!("prompt/conventions.md"),
            Self::Tests => include_str!("prompt/tests.md"),
        }
    }
}

impl Brief {
    /// Truncates documents and conventions, the longest first, until the whole context takes at
    /// most half of a request of `capacity` bytes. Returns notes that list the truncated documents.
    pub fn fit(&mut self, capacity: usize) -> Vec<String> {
        /// No text is truncated below this size in bytes.
        const LEAST: usize = 1 << 10;
        let mut cut: Vec<(String, usize)> = Vec::new();
        while fixed_bytes(self, capacity) > capacity / 2 {
            let all = self
                .documents
                .iter_mut()
                .chain(&mut self.tickets)
                .chain(&mut self.conventions);
            let longest = all.max_by_key(|d| d.text.len());
            let Some(longest) = longest.filter(|d| d.text.len() > LEAST) else {
                break;
            };
            let half = (longest.text.len() / 2).max(LEAST);
            let (text, rest) = shortened(std::mem::take(&mut longest.text), half);
            longest.text = text;
            match cut.iter_mut().find(|(name, _)| *name == longest.name) {
                Some((_, sum)) => *sum += rest,
                None => cut.push((longest.name.clone(), rest)),
            }
        }
        cut.into_iter()
            .map(|(name, rest)| {
                format!("{rest} bytes of {name} were not sent to a model: too long")
            })
            .collect()
    }
}

const SYSTEM: &str = include_str!("prompt/system.md");
const REFUTE: &str = include_str!("prompt/refute.md");
const AROUND: &str = include_str!("prompt/around.md");
const REPRODUCE: &str = include_str!("prompt/reproduce.md");
const PROVE: &str = include_str!("prompt/prove.md");
const CHANGE: &str = include_str!("prompt/change.md");
const DECIDE: &str = include_str!("prompt/decide.md");
const PART: &str = include_str!("prompt/part.md");
const AGAIN: &str = include_str!("prompt/again.md");
const REJECTED: &str = include_str!("prompt/rejected.md");
const TICKETS: &str = include_str!("prompt/tickets.md");
const AREAS: &str = include_str!("prompt/areas.md");
/// Bytes of a cited section in the prompt that verifies a claim, at most.
const CITED: usize = 4 << 10;
/// Lines around a claim in the prompt that verifies it, at most.
const CLAIM_LINES: usize = 80;
/// Bytes of related code in the prompt that verifies a claim, at most.
const CLAIM_RELATED: usize = 20 << 10;
/// Bytes of the prompt that verifies a claim, without its code and the list of files, at most:
/// rules, task and names.
const CLAIM_FIXED: usize = 6 << 10;
/// Divisor for the share of a request that is reserved for follow-up rounds: an eighth.
const ROUNDS_SHARE: usize = 8;
/// Rejected claims that a request lists, at most.
const REJECTIONS: usize = 20;
/// Names of excluded files that a request lists, at most.
const KEPT_NAMES: usize = 10;

/// Renders the prompt to review a chunk.
pub fn review(brief: &Brief, group: &Group, chunk: &Chunk, lens: Lens, nonce: &Nonce) -> Prompt {
    review_after(brief.previous.len(), brief, group, chunk, lens, nonce)
}

/// Returns the prompts about a chunk from earlier rounds whose answers are still valid, the oldest
/// first: the prompt was the same when there were fewer rounds, and the chunk is unchanged. An
/// explanation of a finding in one of its files invalidates an answer.
pub fn earlier(
    brief: &Brief,
    group: &Group,
    chunk: &Chunk,
    lens: Lens,
    nonce: &Nonce,
) -> Vec<Prompt> {
    let last_explained = brief.previous.iter().rposition(|round| {
        round.all
            || chunk.pieces.iter().any(|p| {
                round
                    .explained
                    .contains(&group.files[p.file].path().to_wire())
            })
    });
    let all = last_explained.map_or(0, |i| i + 1)..brief.previous.len();
    all.map(|rounds| review_after(rounds, brief, group, chunk, lens, nonce))
        .collect()
}

/// Renders the prompt to review a chunk, limited to the first `rounds` follow-up rounds.
fn review_after(
    rounds: usize,
    brief: &Brief,
    group: &Group,
    chunk: &Chunk,
    lens: Lens,
    nonce: &Nonce,
) -> Prompt {
    let previous = &brief.previous[..rounds];
    Prompt {
        system: SYSTEM,
        context: context(brief, previous),
        manifest: manifest::manifest(group, &brief.kept, chunk),
        chunk: part(brief, group, chunk),
        task: messages(group, chunk, lens)
            + &task(brief, previous, lens, Some((group, chunk)), nonce),
        nonce: nonce.clone(),
    }
}

/// Renders the prompt that compares a whole change with its commit messages. The list of files with
/// their line counts is part of the question, so that an answer about another state of the change
/// does not match.
pub fn whole_change(brief: &Brief, group: &Group, nonce: &Nonce) -> Prompt {
    let chunk = plan::all_of(0, &group.files);
    let mut text = manifest::manifest(group, &brief.kept, &chunk).text;
    fenced("commit messages", &group.messages.join("\n\n"), &mut text);
    let mut task = CHANGE.to_owned();
    ending(brief, group.tree.is_some(), nonce, &mut task);
    Prompt {
        system: SYSTEM,
        context: context(brief, &[]),
        manifest: Manifest::default(),
        chunk: text,
        task,
        nonce: nonce.clone(),
    }
}

/// Renders the commit messages, but only for a request with the whole change. A part omits them, so
/// that it is reviewed again only if its own code changes, and not after every commit.
fn messages(group: &Group, chunk: &Chunk, lens: Lens) -> String {
    let mut out = String::new();
    let is_asked = matches!(lens, Lens::Whole | Lens::Conventions) && !is_part(group, chunk);
    if is_asked && !group.messages.is_empty() {
        fenced("commit messages", &group.messages.join("\n\n"), &mut out);
    }
    out
}

/// Returns true if other requests contain more of the same change.
fn is_part(group: &Group, chunk: &Chunk) -> bool {
    chunk.pieces.len() < group.files.len() || chunk.pieces.iter().any(|p| p.split)
}

/// The code in the prompt that verifies a claim: lines of one hunk, and related code.
#[derive(Debug)]
struct ClaimCode<'g> {
    file: &'g Shown,
    hunk: &'g ShownHunk,
    lines: Range<usize>,
    picked: Picked<'g>,
    /// Lines of the function around the hunk, by number.
    around: BTreeMap<u32, &'g str>,
}

impl<'g> ClaimCode<'g> {
    /// Returns the unchanged lines before and after the lines of the hunk.
    fn unchanged(&self) -> [Vec<(u32, &'g str)>; 2] {
        let mut numbers = self.hunk.lines[self.lines.clone()]
            .iter()
            .filter_map(|l| l.new.map(|n| n.get()));
        let (Some(first), Some(last)) = (numbers.clone().next(), numbers.next_back()) else {
            return [const { Vec::new() }; 2];
        };
        [
            related::between(&self.around, 0, first),
            related::between(&self.around, last, u32::MAX),
        ]
    }
}

/// Returns the code around a claim, with at most `room` bytes of related code. Returns `None` if
/// the claim is not anchored to a line that can be shown.
fn claim_code<'g>(draft: &Draft, group: &'g Group, room: usize) -> Option<ClaimCode<'g>> {
    let location = draft.location.as_ref()?;
    let first = location.lines?.first;
    let index = group
        .files
        .iter()
        .position(|f| *f.path() == location.file)?;
    let file = &group.files[index];
    let (number, hunk, at) = file.hunks.iter().enumerate().find_map(|(number, h)| {
        let at = h.lines.iter().position(|l| l.new == Some(first))?;
        let mut pieces = h.lines[at..].iter().take_while(|l| l.new == Some(first));
        // If a long line is divided into pieces, take the one that contains the quote.
        let quoted =
            pieces.position(|l| !draft.quote.is_empty() && l.text.contains(draft.quote.trim()));
        Some((number, h, at + quoted.unwrap_or(0)))
    })?;
    let lines = around(hunk, at);
    let picked = Picked::fit(group, &vec![(index, number, lines.clone())], room);
    let around_hunk = picked.around(index).cloned().unwrap_or_default();
    Some(ClaimCode {
        file,
        hunk,
        lines,
        picked,
        around: around_hunk,
    })
}

/// Returns the lines that a refutation of a claim can quote: lines in the prompt of [`refute`] that
/// the change leaves in the file.
pub fn refutable_lines<'g>(
    brief: &Brief,
    draft: &Draft,
    group: &'g Group,
    capacity: usize,
) -> Vec<&'g str> {
    let room = claim_room(brief, draft, group, capacity);
    let Some(code) = claim_code(draft, group, room) else {
        return Vec::new();
    };
    let unchanged = code
        .unchanged()
        .concat()
        .into_iter()
        .map(|(_, text)| text)
        .chain(code.picked.lines());
    let unchanged: Vec<&str> = unchanged.collect();
    let ClaimCode { hunk, lines, .. } = code;
    let is_gone = hunk.lines.iter().all(|l| l.kind == LineKind::Removed);
    let shown = hunk.lines[lines]
        .iter()
        .filter(|l| is_gone || l.kind != LineKind::Removed);
    shown.map(|l| l.text.as_str()).chain(unchanged).collect()
}

/// Returns the bytes available for related code in a request about a claim.
fn claim_room(brief: &Brief, draft: &Draft, group: &Group, capacity: usize) -> usize {
    let code = claim_with_code(brief, draft, group, 0).map_or(0, |text| text.len());
    let used = code + files_beside(brief, draft, group).text.len() + CLAIM_FIXED;
    CLAIM_RELATED.min(capacity.saturating_sub(used))
}

/// Renders the prompt that verifies one claim with its code, in a request of `capacity` bytes.
/// Returns `None` if the claim is not anchored to a line that can be shown.
pub fn refute(
    brief: &Brief,
    draft: &Draft,
    group: &Group,
    capacity: usize,
    nonce: &Nonce,
) -> Option<Prompt> {
    let chunk = claim_with_code(
        brief,
        draft,
        group,
        claim_room(brief, draft, group, capacity),
    )?;
    let mut task = DECIDE.to_owned();
    ending(brief, group.tree.is_some(), nonce, &mut task);
    Some(about_a_claim(
        REFUTE,
        files_beside(brief, draft, group),
        chunk,
        task,
        nonce,
    ))
}

/// Renders the prompt for a test that demonstrates the defect of one claim, in a request of
/// `capacity` bytes. `command` runs the project's tests. Returns `None` if the claim is not
/// anchored to a line that can be shown.
pub fn reproduce(
    brief: &Brief,
    draft: &Draft,
    (group, capacity): (&Group, usize),
    command: Option<&str>,
    nonce: &Nonce,
) -> Option<Prompt> {
    let chunk = claim_with_code(
        brief,
        draft,
        group,
        claim_room(brief, draft, group, capacity),
    )?;
    let mut task = PROVE.to_owned();
    if let Some(command) = command {
        let _ = writeln!(
            task,
            "The project's tests run with this command: {}",
            redact::visible(command.as_bytes())
        );
    }
    // A test needs more than the lines of the claim, at every depth.
    if group.tree.is_some() {
        task.push_str(AROUND);
    }
    task.push_str("nonce: ");
    task.push_str(nonce.as_str());
    Some(about_a_claim(
        REPRODUCE,
        files_beside(brief, draft, group),
        chunk,
        task,
        nonce,
    ))
}

/// Builds a prompt with one claim and no other part of the change.
fn about_a_claim(
    system: &'static str,
    manifest: Manifest,
    chunk: String,
    task: String,
    nonce: &Nonce,
) -> Prompt {
    Prompt {
        system,
        manifest,
        context: String::new(),
        chunk,
        task,
        nonce: nonce.clone(),
    }
}

/// Renders the list of changed files for the prompt that verifies a claim.
fn files_beside(brief: &Brief, draft: &Draft, group: &Group) -> Manifest {
    let file = draft
        .location
        .as_ref()
        .and_then(|l| group.files.iter().position(|f| *f.path() == l.file));
    file.map_or_else(Manifest::default, |file| {
        manifest::beside(group, &brief.kept, file)
    })
}

/// Renders a claim and the code around it, with at most `room` bytes of related code. Returns
/// `None` if the claim is not anchored to a line that can be shown.
fn claim_with_code(brief: &Brief, draft: &Draft, group: &Group, room: usize) -> Option<String> {
    let found = claim_code(draft, group, room)?;
    let [before, after] = found.unchanged();
    let ClaimCode {
        file,
        hunk,
        lines: shown,
        picked,
        ..
    } = found;
    let mut chunk = String::new();
    let mut code = String::new();
    show::heading(file, false, &mut code);
    show::section(file, hunk, shown.start, &mut code);
    unchanged::unchanged(&before, picked.added(&file.name), &mut code);
    show::lines(hunk, shown, &mut code);
    unchanged::unchanged(&after, picked.added(&file.name), &mut code);
    fenced("code", &code, &mut chunk);
    let related = picked.write();
    if !related.is_empty() {
        fenced("related code", &related, &mut chunk);
    }
    if let Some(section) = draft
        .convention
        .as_deref()
        .and_then(|label| cited(brief, file, label))
    {
        document("conventions", &section, &mut chunk);
    }
    fenced("claim", &claim(draft, file, group), &mut chunk);
    Some(chunk)
}

/// Returns the section that a claim cites, truncated to [`CITED`] bytes.
fn cited(brief: &Brief, file: &Shown, label: &str) -> Option<Document> {
    let guidelines = Document {
        name: "guidelines".to_owned(),
        text: file.guidelines.join("\n"),
        folder: Vec::new(),
    };
    let all = brief
        .conventions
        .iter()
        .chain(&brief.documents)
        .chain(&brief.tickets)
        .chain([&guidelines]);
    let section = all.into_iter().find_map(|d| section_of(label, d))?;
    let (text, _) = shortened(section.to_owned(), CITED);
    Some(Document {
        name: redact::visible(label.as_bytes()),
        text,
        folder: Vec::new(),
    })
}

/// Returns the bytes of a request of `capacity` bytes that all requests share, at most, and that
/// are not available for a chunk.
///
/// A share of the capacity is reserved for follow-up rounds even if there are none yet. Otherwise a
/// further round would leave less room for related code, and unchanged parts would be reviewed
/// again.
pub fn fixed_bytes(brief: &Brief, capacity: usize) -> usize {
    let without_rounds = shared_bytes(brief, &[]);
    shared_bytes(brief, &brief.previous).max(without_rounds + capacity / ROUNDS_SHARE)
}

fn shared_bytes(brief: &Brief, previous: &[Previous]) -> usize {
    let nonce = Nonce::new([0; 16]);
    let lenses = Lens::THOROUGH.iter().chain([&Lens::Whole]);
    let task = lenses
        .map(|l| task(brief, previous, *l, None, &nonce).len())
        .max()
        .unwrap_or_default();
    let scoped: usize = brief
        .conventions
        .iter()
        .filter(|d| !d.folder.is_empty())
        .map(|d| d.text.len() + 200)
        .sum();
    let context = context(brief, previous).len();
    SYSTEM.len() + context + scoped + task + languages::longest() + criteria::bytes(brief) + 400
}

/// Renders the context that all requests of a run share.
fn context(brief: &Brief, previous: &[Previous]) -> String {
    let mut out = String::new();
    for d in brief.conventions.iter().filter(|d| d.folder.is_empty()) {
        document("conventions", d, &mut out);
    }
    for d in &brief.documents {
        document("document", d, &mut out);
    }
    for d in &brief.tickets {
        document("ticket", d, &mut out);
    }
    if let Some(summary) = &brief.summary {
        fenced("request", summary, &mut out);
    }
    if !brief.areas.is_empty() {
        fenced("focus", &brief.areas.join("\n"), &mut out);
    }
    if let Some(tests) = &brief.tests {
        fenced("test results", tests, &mut out);
    }
    for round in previous {
        fenced("previous round", &round.text, &mut out);
    }
    out
}

fn document(kind: &str, document: &Document, out: &mut String) {
    fenced(
        kind,
        &format!("name: {}\n\n{}", document.name, document.text),
        out,
    );
}

/// Renders a chunk, with the conventions and guidelines for its files.
fn part(brief: &Brief, group: &Group, chunk: &Chunk) -> String {
    let files: Vec<&Shown> = chunk.pieces.iter().map(|p| &group.files[p.file]).collect();
    let mut out = String::new();
    for d in brief.conventions.iter().filter(|d| !d.folder.is_empty()) {
        if files
            .iter()
            .any(|f| is_inside(f.path().as_bytes(), &d.folder))
        {
            document("conventions", d, &mut out);
        }
    }
    let guidelines = guidelines(&files);
    if !guidelines.is_empty() {
        fenced("guidelines", &guidelines, &mut out);
    }
    let mut text = String::new();
    let picked = Picked::of(group, chunk);
    show::chunk(group, chunk, &picked, &mut text);
    kept(brief, &files, &mut text);
    fenced("change", &text, &mut out);
    let rejected = rejected(brief, &files);
    if !rejected.is_empty() {
        fenced("rejected before", &rejected, &mut out);
    }
    let related = picked.write();
    if !related.is_empty() {
        fenced("related code", &related, &mut out);
    }
    out
}

/// Lists the rejected claims about lines of these files.
fn rejected(brief: &Brief, files: &[&Shown]) -> String {
    let mut out = String::new();
    for r in brief
        .rejections
        .iter()
        .filter(|r| r.is_about(files))
        .take(REJECTIONS)
    {
        let reason = if r.reason.is_empty() {
            "no reason was given"
        } else {
            &r.reason
        };
        let text = format!(
            "{}: {} ({}): rejected before: {reason}",
            r.path, r.line, r.rule
        );
        let _ = writeln!(out, "{}", redact::visible(text.as_bytes()));
    }
    out
}

/// Returns true if a path is inside a folder.
fn is_inside(path: &[u8], folder: &[u8]) -> bool {
    path.strip_prefix(folder)
        .is_some_and(|rest| rest.first() == Some(&b'/'))
}

/// Lists the guidelines of the policy for the files. Each text is listed once, with the files that
/// it applies to.
fn guidelines(files: &[&Shown]) -> String {
    let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
    for file in files {
        for text in &file.guidelines {
            match all.iter_mut().find(|(known, _)| known == text) {
                Some((_, names)) => names.push(&file.name),
                None => all.push((text, vec![&file.name])),
            }
        }
    }
    let mut out = String::new();
    for (text, names) in all {
        // Omit the names if the guideline applies to all files.
        if names.len() < files.len() {
            let _ = writeln!(out, "{}:", names.join(", "));
        }
        let _ = writeln!(out, "{text}");
    }
    out
}

/// Appends excluded files in the folders of the chunk's files, such as the lockfile of a manifest.
fn kept(brief: &Brief, files: &[&Shown], out: &mut String) {
    let near = brief.kept.iter().filter(|k| {
        files
            .iter()
            .any(|f| folder_of(f.path()) == folder_of(&k.path))
    });
    let near: Vec<&ExcludedFile> = near.collect();
    if near.is_empty() {
        return;
    }
    let names: Vec<_> = near
        .iter()
        .take(KEPT_NAMES)
        .map(|k| format!("{} ({})", k.name, k.why.name()))
        .collect();
    let names = listed(&names, near.len());
    let _ = writeln!(out, "\nchanged too, not shown: {names}");
}

/// Returns the path of the folder that contains a file, with its trailing slash.
fn folder_of(path: &RepoPath) -> &[u8] {
    let path = path.as_bytes();
    &path[..memchr::memrchr(b'/', path).map_or(0, |i| i + 1)]
}

/// Renders the task. `about` is the chunk to review. With `None` the result is the longest task,
/// without a checklist.
fn task(
    brief: &Brief,
    previous: &[Previous],
    lens: Lens,
    about: Option<(&Group, &Chunk)>,
    nonce: &Nonce,
) -> String {
    let mut out = lens.task().to_owned();
    if let (Lens::Whole | Lens::Correctness, Some((group, chunk))) = (lens, about) {
        languages::checklist(group, chunk, &mut out);
    }
    if about.is_none_or(|(group, chunk)| is_part(group, chunk)) {
        out.push_str(PART);
    }
    if !previous.is_empty() {
        out.push_str(AGAIN);
    }
    if let Some((group, chunk)) = about {
        let files: Vec<&Shown> = chunk.pieces.iter().map(|p| &group.files[p.file]).collect();
        if !rejected(brief, &files).is_empty() {
            out.push_str(REJECTED);
        }
    }
    if !brief.tickets.is_empty() {
        out.push_str(TICKETS);
    }
    if !brief.areas.is_empty() {
        out.push_str(AREAS);
    }
    if !brief.focus.is_empty() {
        let names: Vec<_> = brief.focus.iter().map(|c| c.name()).collect();
        let _ = writeln!(out, "Focus on: {}.", names.join(", "));
    }
    ending(
        brief,
        about.is_none_or(|(group, _)| group.tree.is_some()),
        nonce,
        &mut out,
    );
    out
}

/// Appends the common end of a task.
fn ending(brief: &Brief, has_tree: bool, nonce: &Nonce, out: &mut String) {
    if has_tree && brief.depth == Depth::Thorough {
        out.push_str(AROUND);
    }
    out.push_str("nonce: ");
    out.push_str(nonce.as_str());
}

/// Selects the lines around a position in a hunk.
fn around(hunk: &ShownHunk, at: usize) -> Range<usize> {
    let start = at.saturating_sub(CLAIM_LINES / 2);
    start..(at + CLAIM_LINES / 2).min(hunk.lines.len())
}

/// Renders a claim. Text from a model is untrusted too.
fn claim(draft: &Draft, file: &Shown, group: &Group) -> String {
    let line = draft
        .location
        .as_ref()
        .and_then(|l| l.lines)
        .map_or(0, |l| l.first.get());
    let mut out = format!(
        "file: {}\nline: {line}\nseverity: {}\n",
        file.name, draft.severity
    );
    let (failure, convention) = (draft.failure.as_deref(), draft.convention.as_deref());
    for (name, text) in [
        ("quote", draft.quote.as_str()),
        ("title", &draft.title),
        ("message", &draft.message),
        ("failure", failure.unwrap_or_default()),
        ("convention", convention.unwrap_or_default()),
    ] {
        if !text.is_empty() {
            let _ = writeln!(out, "{name}: {}", redact::visible(text.as_bytes()));
        }
    }
    for also in &draft.also {
        let place = format!(
            "{}:{}: {}",
            name_of(&also.file, group),
            also.line,
            also.quote
        );
        let _ = writeln!(out, "also: {}", redact::visible(place.as_bytes()));
    }
    out
}

/// Returns the name of a file in prompts. A path that is in no prompt may contain a secret.
fn name_of<'g>(path: &'g RepoPath, group: &'g Group) -> Cow<'g, str> {
    if let Some(file) = group.files.iter().find(|f| f.path() == path) {
        return Cow::Borrowed(&file.name);
    }
    let name = path.to_wire();
    match group.related.excerpts.iter().any(|e| *e.path == *name) {
        true => Cow::Owned(name.to_string()),
        false => Cow::Borrowed("another file"),
    }
}
