//! Converts the report of a shard back to its review, with the facts that only such a report has.

use crate::ai::Dropped;
use crate::diff::LineNo;
use crate::finding::{Finding, Frame, FrameLine, LineSpan, Location};
use crate::request::{OnBlock, OnIncomplete};
use crate::review::{MergeInputs, Record, Review, ShardDigests, Stat};
use crate::rounds::recall;
use crate::wire::merging::{
    ChangedFile, CodeFrame, DroppedClaim, FindingFacts, FirstLine, MergeFacts,
};
use crate::wire::{self, mapping};

/// Returns the review of a shard's report. Without facts, it shows what its report states.
pub(super) fn review(report: &wire::Report) -> Review {
    let mut out = recall::review(report, &[]);
    let Some(facts) = report.merge.as_deref() else {
        return out;
    };
    out.source.label.clone_from(&facts.label);
    out.source.repository.clone_from(&facts.repository);
    out.rules_only = facts.rules_only;
    out.models.asked.clone_from(&facts.asked);
    out.models
        .no_conventions
        .clone_from(&facts.without_conventions);
    if !facts.dropped.is_empty() {
        out.models.dropped = facts.dropped.iter().map(dropped).collect();
    }
    if facts.incomplete_passes {
        out.judged_by.on_incomplete = OnIncomplete::Warn;
    }
    out.stat = Stat {
        added: facts.added,
        removed: facts.removed,
        shown: facts.shown,
    };
    out.first_change = facts.first_change.as_ref().map(first_change);
    out.unlisted.blocking = facts.unlisted_blocking;
    let of_findings = report.findings.iter().zip(&facts.findings);
    out.findings = of_findings.map(|(f, facts)| finding(f, facts)).collect();
    out.merge_inputs = merge_inputs(facts);
    out.record = facts.change.as_deref().map(|files| Record {
        text: text_of(files),
        left_out: facts.left_out.clone(),
    });
    out
}

fn merge_inputs(facts: &MergeFacts) -> MergeInputs {
    let files = facts.change.iter().flatten();
    MergeInputs {
        on_block: if facts.exit_zero {
            OnBlock::ExitZero
        } else {
            OnBlock::Fail
        },
        order: files.map(|f| f.order).collect(),
        is_gate: facts.gate,
        unused_waivers: facts.unused_waivers.clone(),
        digests: ShardDigests {
            state: facts.state.clone(),
            selection: facts.selection.clone(),
            options: facts.options.clone(),
        },
    }
}

/// Joins the diffs of files.
fn text_of(files: &[ChangedFile]) -> Vec<u8> {
    let texts: Vec<&[u8]> = files.iter().map(|f| f.text.bytes()).collect();
    texts.concat()
}

fn dropped(d: &DroppedClaim) -> Dropped {
    Dropped {
        backend: d.backend.clone(),
        claim: d.claim.clone(),
        why: d.why.clone().into(),
    }
}

fn first_change(first: &FirstLine) -> Location {
    let line = first.line.and_then(LineNo::new);
    Location {
        file: mapping::path(&first.file),
        lines: line.map(|line| LineSpan {
            first: line,
            last: line,
            columns: None,
        }),
    }
}

/// Returns a finding with its columns and its code.
fn finding(f: &wire::Finding, facts: &FindingFacts) -> Finding {
    let columns = facts.columns.filter(|(start, end)| start <= end);
    let mut out = recall::finding_at(f, columns);
    out.frame = facts.frame.as_ref().and_then(frame);
    out
}

/// Returns the code around a finding; `None` if the number of its first line is invalid.
fn frame(code: &CodeFrame) -> Option<Frame> {
    let lines = code.lines.iter().map(|l| FrameLine {
        text: l.text.bytes().to_owned(),
        skipped: l.skipped,
        added: l.added,
    });
    Some(Frame {
        first: LineNo::new(code.first)?,
        lines: lines.collect(),
    })
}
