//! Limits of the numbers in a report, so that no sum of several reports overflows, and no number
//! alone asks for much memory or time. No review comes near them.

use crate::rounds::recall::DROPPED_MOST;
use crate::wire::merging::MergeFacts;
use crate::wire::{self, BackendUsage, Coverage, Finding, Summary};

/// Counts, tokens, lines of a change and milliseconds, at most: the sum of 10,000 shards fits in 64
/// bits.
const COUNT_MOST: u64 = 1 << 48;
/// Numbers of lines and columns, at most: a number after it still fits in 32 bits.
const POSITION_MOST: u32 = i32::MAX as u32;
/// Costs in US dollars, at most.
const COST_MOST: f64 = 1e12;

/// Returns the name of a number that no review has; `None` if all are plausible.
pub(super) fn too_large(report: &wire::Report) -> Option<&'static str> {
    let rest = [(report.duration_ms, "duration_ms")];
    summary(&report.summary)
        .or_else(|| coverage(&report.coverage))
        .or_else(|| report.usage.iter().find_map(usage))
        .or_else(|| report.findings.iter().find_map(finding))
        .or_else(|| notes(report))
        .or_else(|| report.merge.as_deref().and_then(facts))
        .or_else(|| first_large(&rest))
}

/// Returns the name of the first count over the limit.
fn first_large(counts: &[(u64, &'static str)]) -> Option<&'static str> {
    let large = counts.iter().find(|(n, _)| *n > COUNT_MOST);
    large.map(|(_, name)| *name)
}

/// Returns a name if one of the counts is over the limit.
fn any_large(counts: &[usize], name: &'static str) -> Option<&'static str> {
    let is_large = counts.iter().any(|n| *n as u64 > COUNT_MOST);
    is_large.then_some(name)
}

fn summary(s: &Summary) -> Option<&'static str> {
    if s.dropped > DROPPED_MOST {
        return Some("dropped");
    }
    let totals = [s.critical, s.major, s.minor, s.suggestion];
    let aside = [s.suppressed, s.dispositioned];
    let unlisted = s.unlisted.as_ref().map(|u| {
        [
            u.critical,
            u.major,
            u.minor,
            u.suggestion,
            u.blocking,
            u.warning,
            u.suppressed,
        ]
    });
    any_large(&totals, "summary")
        .or_else(|| any_large(&aside, "summary"))
        .or_else(|| any_large(&unlisted.unwrap_or_default(), "unlisted"))
}

fn coverage(c: &Coverage) -> Option<&'static str> {
    let counts = [
        c.files_total,
        c.files_reviewed,
        c.hunks_total,
        c.hunks_reviewed,
        c.cached,
        c.records,
    ];
    let mut shares = c.by_reviewer.values();
    any_large(&counts, "coverage").or_else(|| {
        shares.find_map(|s| any_large(&[s.files_reviewed, s.files_total], "by_reviewer"))
    })
}

fn usage(u: &BackendUsage) -> Option<&'static str> {
    let is_cost = |cost: f64| (0.0..=COST_MOST).contains(&cost);
    if !u.cost_usd.is_none_or(is_cost) {
        return Some("cost_usd");
    }
    if !u.earlier_usd.is_none_or(is_cost) {
        return Some("earlier_usd");
    }
    first_large(&[
        (u.requests, "requests"),
        (u.from_cache, "from_cache"),
        (u.failed, "failed"),
        (u.input_tokens, "input_tokens"),
        (u.cached_tokens, "cached_tokens"),
        (u.output_tokens, "output_tokens"),
        (u.duration_ms, "duration_ms"),
    ])
}

fn finding(f: &Finding) -> Option<&'static str> {
    let own = [f.line, f.end_line].into_iter().flatten();
    let also = f.also.iter().map(|a| a.line);
    let flow = f.flow.iter().map(|step| step.line);
    let mut lines = own.chain(also).chain(flow);
    lines.any(|line| line > POSITION_MOST).then_some("line")
}

fn notes(report: &wire::Report) -> Option<&'static str> {
    let mut lines = report.notes.iter().filter_map(|n| n.line);
    lines.any(|line| line > POSITION_MOST).then_some("line")
}

fn facts(m: &MergeFacts) -> Option<&'static str> {
    let first_change = m.first_change.iter().filter_map(|f| f.line);
    let columns = m.findings.iter().filter_map(|f| f.columns);
    let columns = columns.flat_map(|(start, end)| [start, end]);
    let frames = || m.findings.iter().filter_map(|f| f.frame.as_ref());
    let skipped = frames().flat_map(|f| f.lines.iter().map(|l| l.skipped));
    let mut positions = first_change
        .chain(columns)
        .chain(frames().map(|f| f.first))
        .chain(skipped);
    if positions.any(|at| at > POSITION_MOST) {
        return Some("merge");
    }
    any_large(&[m.added, m.removed, m.shown], "merge")
        .or_else(|| any_large(&m.unlisted_blocking, "unlisted_blocking"))
}
