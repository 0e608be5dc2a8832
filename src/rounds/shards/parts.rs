//! Joins the parts of reviews of shards, each part by itself. Sums saturate: the numbers come from
//! files of other jobs.

use crate::ai::{BackendUsage, Compliance, Models};
use crate::context::GatheredItem;
use crate::diff::LineNo;
use crate::finding::listing::{Floor, Unlisted};
use crate::finding::{Finding, Location, Origin, Severity, arrange, joined};
use crate::review::{Note, Record, Review, Stat, TestResults, unused_waiver};
use crate::verdict::{Coverage, FailureCause, Share, TestOutcome};
use crate::wire::merging::PolicyEffect;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Debug;

/// Effect of each finding under the policy: by the commit and the fingerprint of the finding, as
/// reports state them.
pub(super) type EffectsOfFindings = HashMap<(Option<String>, String), PolicyEffect>;

/// Joins the lists of findings, and lists the worst of very many. Returns the findings and the
/// numbers of the unlisted ones.
pub(super) fn findings(
    lists: Vec<Vec<Finding>>,
    unlisted: impl Iterator<Item = Unlisted>,
    effects: &EffectsOfFindings,
) -> (Vec<Finding>, Unlisted) {
    let effect = |f: &Finding| {
        let key = (f.commit.map(|c| c.to_string()), f.fingerprint().to_string());
        effects.get(&key).copied().unwrap_or_default()
    };
    let all = joined::join(lists);
    let mut unlisted = unlisted.fold(Unlisted::default(), |all, other| sum(all, &other));
    // Findings of models are few, and each is listed.
    let (mut listed, of_models): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|f| *f.origin() == Origin::Rules);
    let before = listed.len();
    Floor::default().cut(&mut listed, 0, |f| count(&mut unlisted, f, effect(f)));
    if listed.len() < before {
        // Equal quotes of a file are numbered among the findings that are listed.
        listed = arrange(listed);
    }
    listed.extend(of_models);
    (joined::join(vec![listed]), unlisted)
}

/// Counts a finding that is not listed.
fn count(unlisted: &mut Unlisted, f: &Finding, effect: PolicyEffect) {
    if f.suppressed.is_some() {
        unlisted.suppressed += 1;
        return;
    }
    let severity = Severity::ALL.iter().position(|s| *s == f.severity());
    let severity = severity.unwrap_or_default();
    unlisted.counting[severity] += 1;
    match effect {
        PolicyEffect::Blocks => unlisted.blocking[severity] += 1,
        PolicyEffect::Warns => unlisted.warning += 1,
        PolicyEffect::Counts => {}
    }
}

fn sum(a: Unlisted, b: &Unlisted) -> Unlisted {
    let add = |a: [usize; 4], b: [usize; 4]| std::array::from_fn(|i| a[i].saturating_add(b[i]));
    Unlisted {
        counting: add(a.counting, b.counting),
        blocking: add(a.blocking, b.blocking),
        warning: a.warning.saturating_add(b.warning),
        suppressed: a.suppressed.saturating_add(b.suppressed),
    }
}

/// Adds the coverage of all shards.
pub(super) fn coverage(reviews: &[Review]) -> Coverage {
    let mut out = Coverage::default();
    let mut shares: BTreeMap<String, Share> = BTreeMap::new();
    for c in reviews.iter().map(|r| &r.coverage) {
        add(&mut out.files_total, c.files_total);
        add(&mut out.files_reviewed, c.files_reviewed);
        add(&mut out.hunks_total, c.hunks_total);
        add(&mut out.hunks_reviewed, c.hunks_reviewed);
        add(&mut out.hunks_by_rules, c.hunks_by_rules);
        add(&mut out.cached, c.cached);
        add(&mut out.records, c.records);
        out.skipped.extend(c.skipped.iter().cloned());
        out.failed.extend(c.failed.iter().cloned());
        for (name, share) in &c.by_reviewer {
            let all = shares.entry(name.clone()).or_default();
            add(&mut all.files_reviewed, share.files_reviewed);
            add(&mut all.files_total, share.files_total);
        }
    }
    out.by_reviewer = shares;
    lose_skipped_backends(&mut out);
    out
}

/// Counts nothing as reviewed if a required backend was not asked at all. A shard whose files are not
/// shown to models does not know that the whole review lacks the backend.
fn lose_skipped_backends(all: &mut Coverage) {
    let rules = all.by_reviewer.get(Origin::Rules.name());
    let files_total = rules.map_or(all.files_total, |share| share.files_total);
    for failure in &all.failed {
        if let FailureCause::NotAsked { backend } | FailureCause::AgentReviewed { backend } =
            &failure.cause
        {
            (all.files_reviewed, all.hunks_reviewed) = (0, 0);
            let nothing = Share {
                files_reviewed: 0,
                files_total,
            };
            all.by_reviewer.insert(backend.clone(), nothing);
        }
    }
}

fn add(to: &mut usize, n: usize) {
    *to = to.saturating_add(n);
}

/// Joins the notes: those about the review as a whole in the order of the shards, then those about
/// files by position. That a waiver matches no finding is true only if every shard notes it.
pub(super) fn notes(reviews: &[Review]) -> Vec<Note> {
    let mut ordered = OrderedNotes::default();
    for review in reviews {
        ordered.add(review.notes.iter().filter(|n| n.file.is_none()));
    }
    let mut unused: HashMap<&String, usize> = HashMap::new();
    for review in reviews {
        let own: HashSet<&String> = review.merge_inputs.unused_waivers.iter().collect();
        for fingerprint in own {
            *unused.entry(fingerprint).or_default() += 1;
        }
    }
    let used = unused.into_iter().filter(|(_, n)| *n < reviews.len());
    let used = used.map(|(fingerprint, _)| key_of(&unused_waiver(fingerprint)));
    let mut whole = ordered.without(&used.collect());
    let of_files = reviews.iter().flat_map(|r| &r.notes);
    let of_files = of_files.filter(|n| n.file.is_some()).cloned();
    whole.extend(of_files);
    Note::arrange(&mut whole);
    whole
}

/// Identity of a note about the review as a whole: its origin, its text, and its line.
type NoteKey = (String, String, Option<LineNo>);

fn key_of(note: &Note) -> NoteKey {
    (note.origin.clone(), note.text.clone(), note.line)
}

/// Notes about the review as a whole in the order in which all shards have them, each once.
#[derive(Default)]
struct OrderedNotes<'a> {
    /// The notes, each with the position of the one that follows.
    notes: Vec<(&'a Note, Option<usize>)>,
    first: Option<usize>,
    known: HashMap<NoteKey, usize>,
}

impl<'a> OrderedNotes<'a> {
    /// Adds the notes of a shard: a new one follows the one before it in the shard.
    fn add(&mut self, of_shard: impl Iterator<Item = &'a Note>) {
        let mut before: Option<usize> = None;
        for note in of_shard {
            let new = self.notes.len();
            let at = *self.known.entry(key_of(note)).or_insert(new);
            if at == new {
                let next = match before {
                    Some(before) => &mut self.notes[before].1,
                    None => &mut self.first,
                };
                let follows = next.replace(new);
                self.notes.push((note, follows));
            }
            before = Some(at);
        }
    }

    /// Returns the notes in order, without some of them.
    fn without(&self, left_out: &HashSet<NoteKey>) -> Vec<Note> {
        let mut out = Vec::new();
        let mut at = self.first;
        while let Some((note, next)) = at.and_then(|i| self.notes.get(i)) {
            if !left_out.contains(&key_of(note)) {
                out.push((*note).clone());
            }
            at = *next;
        }
        out
    }
}

/// Joins what the models report, and adds their requests and costs.
pub(super) fn models(reviews: &[Review]) -> Models {
    let mut out = Models {
        asked: unique(reviews.iter().map(|r| &r.models.asked[..])),
        missing: unique(reviews.iter().map(|r| &r.models.missing[..])),
        opinions: unique(reviews.iter().map(|r| &r.models.opinions[..])),
        compliance: compliance(reviews),
        ..Models::default()
    };
    for m in reviews.iter().map(|r| &r.models) {
        out.owed |= m.owed;
        out.dropped.extend(m.dropped.iter().cloned());
        out.no_conventions = out.no_conventions.take().or(m.no_conventions.clone());
        for usage in &m.usage {
            add_usage(&mut out.usage, usage);
        }
    }
    out
}

/// Joins lists. Equal items stay once; they are compared by their debug text, which has all fields.
fn unique<'a, T: Debug + Clone + 'a>(lists: impl Iterator<Item = &'a [T]>) -> Vec<T> {
    let mut seen = HashSet::new();
    let all = lists.flatten();
    all.filter(|item| seen.insert(format!("{item:?}")))
        .cloned()
        .collect()
}

/// Joins the compliance of all shards: the whole complies only if every part does.
fn compliance(reviews: &[Review]) -> Option<Compliance> {
    let all = || reviews.iter().filter_map(|r| r.models.compliance.as_ref());
    all().next()?;
    Some(Compliance {
        follows: all().all(|c| c.follows),
        violations: unique(all().map(|c| &c.violations[..])),
    })
}

/// Adds the requests to a backend. The shards run at the same time, so that the longest counts.
fn add_usage(to: &mut Vec<BackendUsage>, part: &BackendUsage) {
    let is_same = |u: &&mut BackendUsage| {
        u.backend == part.backend && u.model == part.model && u.batch == part.batch
    };
    let Some(all) = to.iter_mut().find(is_same) else {
        to.push(part.clone());
        return;
    };
    let (sum, other) = (&mut all.spent, &part.spent);
    sum.requests = sum.requests.saturating_add(other.requests);
    sum.input_tokens = sum.input_tokens.saturating_add(other.input_tokens);
    sum.cached_tokens = sum.cached_tokens.saturating_add(other.cached_tokens);
    sum.output_tokens = sum.output_tokens.saturating_add(other.output_tokens);
    sum.cost_usd = sum_of(sum.cost_usd, other.cost_usd);
    all.earlier_usd = sum_of(all.earlier_usd, part.earlier_usd);
    all.from_cache = all.from_cache.saturating_add(part.from_cache);
    all.failed = all.failed.saturating_add(part.failed);
    all.duration = all.duration.max(part.duration);
}

/// Returns the sum of two costs; `None` if neither is known.
fn sum_of(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    }
}

/// Returns the tickets and pages that models of any shard received.
pub(super) fn context(reviews: &[Review]) -> Vec<GatheredItem> {
    unique(reviews.iter().map(|r| &r.context[..]))
}

/// Returns the results of the project's tests: those of the first shard in which they did not pass.
pub(super) fn tests(reviews: &[Review]) -> Option<TestResults> {
    let mut all = reviews.iter().filter_map(|r| r.tests.as_ref());
    let first = all.clone().next()?;
    let failed = all.find(|t| t.outcome != TestOutcome::Passed);
    Some(failed.unwrap_or(first).clone())
}

/// Adds the line counts.
pub(super) fn stat(reviews: &[Review]) -> Stat {
    let mut out = Stat::default();
    for stat in reviews.iter().map(|r| r.stat) {
        add(&mut out.added, stat.added);
        add(&mut out.removed, stat.removed);
        add(&mut out.shown, stat.shown);
    }
    out
}

/// Returns the first changed line. A file with added lines is preferred.
pub(super) fn first_change(reviews: &[Review]) -> Option<Location> {
    let all = reviews.iter().filter_map(|r| r.first_change.as_ref());
    let first = all.min_by(|a, b| (a.lines.is_none(), &a.file).cmp(&(b.lines.is_none(), &b.file)));
    first.cloned()
}

/// Joins the recorded changes in the order of the whole change; `None` if a shard has none.
pub(super) fn record(reviews: &[Review]) -> Option<Record> {
    let mut files: Vec<((usize, usize), &[u8])> = Vec::new();
    let mut left_out = Vec::new();
    for review in reviews {
        let record = review.record.as_ref()?;
        files.extend(
            review
                .merge_inputs
                .order
                .iter()
                .copied()
                .zip(record.files()),
        );
        left_out.extend(record.left_out.iter().cloned());
    }
    files.sort_by_key(|(order, _)| *order);
    let texts: Vec<&[u8]> = files.into_iter().map(|(_, text)| text).collect();
    Some(Record {
        text: texts.concat(),
        left_out,
    })
}
