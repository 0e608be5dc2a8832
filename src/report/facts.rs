//! What a report of a shard states for `report merge`: see [`crate::wire::merging`].

use crate::finding::listing::Effect;
use crate::finding::{Finding, Frame, Location};
use crate::request::{OnBlock, OnIncomplete};
use crate::review::Review;
use crate::wire::merging::{
    ChangedFile, CodeFrame, CodeLine, DroppedClaim, FindingFacts, FirstLine, MergeFacts,
    PolicyEffect, RawText,
};
use std::path::Path;

/// Returns the facts of a review that its report does not have.
pub(super) fn of(review: &Review) -> MergeFacts {
    let place = review.place.as_ref();
    MergeFacts {
        label: review.source.label.clone(),
        repository: place.and_then(|p| folder(&p.top)),
        exit_zero: review.merge_inputs.on_block == OnBlock::ExitZero,
        gate: review.merge_inputs.is_gate,
        incomplete_passes: review.judged_by.on_incomplete == OnIncomplete::Warn,
        rules_only: review.rules_only,
        without_conventions: review.models.no_conventions.clone(),
        added: review.stat.added,
        removed: review.stat.removed,
        shown: review.stat.shown,
        first_change: review.first_change.as_ref().map(first_line),
        unlisted_blocking: review.unlisted.blocking,
        findings: review.findings.iter().map(|f| finding(f, review)).collect(),
        dropped: dropped(review),
        change: changed_files(review),
        asked: review.models.asked.clone(),
        unused_waivers: review.merge_inputs.unused_waivers.clone(),
        state: review.merge_inputs.digests.state.clone(),
        selection: review.merge_inputs.digests.selection.clone(),
        options: review.merge_inputs.digests.options.clone(),
        left_out: review
            .record
            .as_ref()
            .map(|r| r.left_out.clone())
            .unwrap_or_default(),
    }
}

/// Returns the name of a folder; `None` if it is not UTF-8.
fn folder(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_str()?.to_owned())
}

fn first_line(first: &Location) -> FirstLine {
    FirstLine {
        file: first.file.to_wire(),
        line: first.lines.map(|l| l.first.get()),
    }
}

/// Returns the state of a finding.
fn finding(f: &Finding, review: &Review) -> FindingFacts {
    let thresholds = review.judged_by.thresholds(f.file());
    let effect = match thresholds.effect_of(f.severity()) {
        Effect::Blocks => PolicyEffect::Blocks,
        Effect::Warns => PolicyEffect::Warns,
        Effect::Counts | Effect::Suppressed => PolicyEffect::Counts,
    };
    FindingFacts {
        columns: f.lines().and_then(|l| l.columns),
        frame: f.frame.as_ref().map(code),
        effect,
    }
}

fn code(frame: &Frame) -> CodeFrame {
    let lines = frame.lines.iter().map(|l| CodeLine {
        text: RawText::new(&l.text),
        skipped: l.skipped,
        added: l.added,
    });
    CodeFrame {
        first: frame.first.get(),
        lines: lines.collect(),
    }
}

fn dropped(review: &Review) -> Vec<DroppedClaim> {
    let dropped = review.models.dropped.iter().map(|d| DroppedClaim {
        backend: d.backend.clone(),
        claim: d.claim.clone(),
        why: d.why.to_string(),
    });
    dropped.collect()
}

/// Returns the recorded change by file; `None` if it was not recorded.
fn changed_files(review: &Review) -> Option<Vec<ChangedFile>> {
    let record = review.record.as_ref()?;
    let files = record.files().zip(&review.merge_inputs.order);
    let files = files.map(|(text, order)| ChangedFile {
        order: *order,
        text: RawText::new(text),
    });
    Some(files.collect())
}
