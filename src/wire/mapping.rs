//! The one mapping between the domain and the types of reports. Both directions stand side by side,
//! so that a stored report becomes the review that it was made of.
//!
//! Directions without a counterpart are where they are used: `report/json` composes a report, and
//! `rounds/recall` a review. A finding is rebuilt there, because it needs a proof.

use crate::ai::ask::Spent;
use crate::ai::{BackendUsage, Compliance, DesignViolation, Opinion, UnmetRequirement};
use crate::context::GatheredItem;
use crate::diff::{LineNo, RepoPath, unified};
use crate::finding::listing::Unlisted;
use crate::finding::{self, Evidence};
use crate::request::Shard;
use crate::review::{self, Note, PolicyInfo, SourceInfo};
use crate::verdict::{self, CoverageFailure, FailureCause, Share, Skip};
use crate::wire;
use std::time::Duration;

/// Converts an enumeration of the domain to the one of reports with the same variants, and back.
macro_rules! same_variants {
    ($domain:ty, $report:ty, [$($variant:ident),+ $(,)?]) => {
        impl From<$domain> for $report {
            fn from(of: $domain) -> Self {
                match of {
                    $(<$domain>::$variant => Self::$variant,)+
                }
            }
        }

        impl From<$report> for $domain {
            fn from(of: $report) -> Self {
                match of {
                    $(<$report>::$variant => Self::$variant,)+
                }
            }
        }
    };
}

same_variants!(
    verdict::Outcome,
    wire::Outcome,
    [Reviewed, Incomplete, NothingToReview, Cancelled]
);
same_variants!(
    verdict::Verdict,
    wire::Verdict,
    [Pass, Warn, Block, Incomplete]
);
same_variants!(
    verdict::Assessment,
    wire::Assessment,
    [Lgtm, LgtmWithSuggestions, NeedsChanges]
);
same_variants!(
    verdict::TestOutcome,
    wire::TestOutcome,
    [Passed, Failed, NotStarted, TimedOut, Stopped]
);
same_variants!(
    review::SourceKind,
    wire::SourceKind,
    [
        Staged, Unstaged, Changes, Commit, Branch, Patch, Code, Pr, Tree
    ]
);
same_variants!(
    finding::Severity,
    wire::Severity,
    [Critical, Major, Minor, Suggestion]
);
same_variants!(
    finding::Category,
    wire::Category,
    [
        Bug,
        Security,
        Performance,
        Style,
        Architecture,
        Design,
        MissingRequirement,
        BestPractice,
        Test,
    ]
);
same_variants!(finding::Confidence, wire::Confidence, [High, Medium, Low]);
same_variants!(finding::FlowRole, wire::FlowRole, [Source, Through, Sink]);

impl From<finding::Decision> for wire::Disposition {
    fn from(decision: finding::Decision) -> Self {
        match decision {
            finding::Decision::Accepted => Self::Accepted,
            finding::Decision::Rejected => Self::Rejected,
            finding::Decision::Deferred => Self::Deferred,
        }
    }
}

/// Returns the decision that a report states; `None` for a finding without one.
pub fn decision(stated: wire::Disposition) -> Option<finding::Decision> {
    match stated {
        wire::Disposition::Accepted => Some(finding::Decision::Accepted),
        wire::Disposition::Rejected => Some(finding::Decision::Rejected),
        wire::Disposition::Deferred => Some(finding::Decision::Deferred),
        wire::Disposition::Pending | wire::Disposition::Fixed => None,
    }
}

impl From<&finding::Disposition> for wire::Decided {
    fn from(d: &finding::Disposition) -> Self {
        Self {
            reason: d.reason.clone(),
            owner: d.owner.clone(),
            expires: d.expires.map(|date| date.to_string()),
        }
    }
}

/// Returns the decision of a person about a stored finding; `None` if there is none. A date that
/// cannot be parsed does not limit the decision.
pub fn disposition(f: &wire::Finding) -> Option<finding::Disposition> {
    let decision = decision(f.disposition)?;
    let decided = f.decided.as_ref()?;
    Some(finding::Disposition {
        decision,
        reason: decided.reason.clone(),
        owner: decided.owner.clone(),
        expires: decided.expires.as_ref().and_then(|date| date.parse().ok()),
    })
}

/// Parses a path as in reports: a path that is not UTF-8 is quoted as in git. The inverse of
/// [`RepoPath::to_wire`].
pub fn path(written: &str) -> RepoPath {
    let quoted = unified::unquote(written.as_bytes());
    match quoted.filter(|(bytes, end)| *end == written.len() && std::str::from_utf8(bytes).is_err())
    {
        Some((bytes, _)) => RepoPath::new(bytes),
        None => RepoPath::from(written),
    }
}

/// Returns the text of an evidence in reports.
pub fn evidence_text(e: &Evidence) -> String {
    match e {
        Evidence::Rule(id) => format!("rule:{id}"),
        Evidence::Quote => "quote".to_owned(),
        Evidence::Reproduced => "reproduced".to_owned(),
        Evidence::Read { path, first, last } => format!("read:{}:{first}-{last}", path.to_wire()),
        Evidence::Backend(name) => format!("backend:{name}"),
        Evidence::Carried { round } => format!("carried:round-{round}"),
    }
}

/// Parses an evidence as [`evidence_text`] writes it; `None` for kinds of other versions.
pub fn evidence(text: &str) -> Option<Evidence> {
    if text == "quote" {
        return Some(Evidence::Quote);
    }
    if text == "reproduced" {
        return Some(Evidence::Reproduced);
    }
    let (kind, rest) = text.split_once(':')?;
    match kind {
        "rule" => Some(Evidence::Rule(rest.to_owned())),
        "backend" => Some(Evidence::Backend(rest.to_owned())),
        "carried" => Some(Evidence::Carried {
            round: rest.strip_prefix("round-")?.parse().ok()?,
        }),
        "read" => {
            let (file, lines) = rest.rsplit_once(':')?;
            let (first, last) = lines.split_once('-')?;
            Some(Evidence::Read {
                path: path(file),
                first: LineNo::new(first.parse().ok()?)?,
                last: LineNo::new(last.parse().ok()?)?,
            })
        }
        _ => None,
    }
}

impl From<&finding::Also> for wire::Also {
    fn from(a: &finding::Also) -> Self {
        Self {
            file: a.file.to_wire(),
            line: a.line.get(),
            quote: a.quote.clone(),
        }
    }
}

/// Returns a related line of a stored finding; `None` if it has no number.
fn also(a: &wire::Also) -> Option<finding::Also> {
    Some(finding::Also {
        file: path(&a.file),
        line: LineNo::new(a.line)?,
        quote: a.quote.clone(),
    })
}

impl From<&finding::FlowStep> for wire::FlowStep {
    fn from(s: &finding::FlowStep) -> Self {
        Self {
            role: s.role.into(),
            line: s.line.get(),
            quote: s.quote.clone(),
        }
    }
}

/// Returns a step of a stored data flow; `None` if it has no number.
fn flow_step(s: &wire::FlowStep) -> Option<finding::FlowStep> {
    Some(finding::FlowStep {
        line: LineNo::new(s.line)?,
        role: s.role.into(),
        quote: s.quote.clone(),
    })
}

impl From<&finding::Reproduction> for wire::ReproductionTest {
    fn from(r: &finding::Reproduction) -> Self {
        let files = r.files.iter().map(|(path, text)| wire::TestFile {
            path: path.clone(),
            text: text.clone(),
        });
        Self {
            command: r.command.clone(),
            files: files.collect(),
        }
    }
}

impl From<&wire::ReproductionTest> for finding::Reproduction {
    fn from(r: &wire::ReproductionTest) -> Self {
        let files = r.files.iter().map(|f| (f.path.clone(), f.text.clone()));
        Self {
            command: r.command.clone(),
            files: files.collect(),
        }
    }
}

impl From<&finding::Waiver> for wire::Waiver {
    fn from(w: &finding::Waiver) -> Self {
        Self {
            reason: w.reason.clone(),
            actor: w.actor.clone(),
            link: w.link.clone(),
        }
    }
}

impl From<&wire::Waiver> for finding::Waiver {
    fn from(w: &wire::Waiver) -> Self {
        Self {
            reason: w.reason.clone(),
            actor: w.actor.clone(),
            link: w.link.clone(),
        }
    }
}

impl From<&finding::Suppression> for wire::Suppression {
    fn from(s: &finding::Suppression) -> Self {
        Self {
            by: s.by.to_owned(),
            reason: s.reason.clone(),
        }
    }
}

impl From<&wire::Suppression> for finding::Suppression {
    fn from(s: &wire::Suppression) -> Self {
        Self {
            by: if s.by == "inline" { "inline" } else { "policy" },
            reason: s.reason.clone(),
        }
    }
}

/// Returns a finding of a report. `index` is its position there, from 0.
pub fn finding(index: usize, f: &finding::Finding) -> wire::Finding {
    let lines = f.lines();
    wire::Finding {
        id: format!("F{}", index + 1),
        fingerprint: f.fingerprint().to_string(),
        rule_id: f.rule_id().to_owned(),
        origin: f.origin().name().to_owned(),
        file: f.file().map(RepoPath::to_wire),
        line: lines.map(|l| l.first.get()),
        end_line: lines.map(|l| l.last.get()),
        column: finding::column(f),
        also: f.also().iter().map(Into::into).collect(),
        flow: f.flow().iter().map(Into::into).collect(),
        commit: f.commit.map(|c| c.to_string()),
        severity: f.severity().into(),
        category: f.category().into(),
        confidence: f.confidence().into(),
        title: f.title().to_owned(),
        message: f.message().to_owned(),
        failure: f.failure().map(str::to_owned),
        suggestion: f.suggestion().map(str::to_owned),
        replacement: f.replacement().map(str::to_owned),
        quote: f.quote().to_owned(),
        cwe: f.cwe(),
        convention: f.convention().map(str::to_owned),
        evidence: f.evidence().iter().map(evidence_text).collect(),
        blocking: f.blocking,
        disputed: f.disputed.clone(),
        reproduction: f.reproduction.as_ref().map(Into::into),
        waived: f.waived.as_ref().map(Into::into),
        disposition: f
            .disposition
            .as_ref()
            .map_or(wire::Disposition::Pending, |d| d.decision.into()),
        decided: f.disposition.as_ref().map(Into::into),
        suppressed: f.suppressed.as_ref().map(Into::into),
        references: f.references().to_vec(),
    }
}

/// Returns what a stored finding states, without its proof and its state.
pub fn draft(f: &wire::Finding) -> finding::Draft {
    finding::Draft {
        rule_id: f.rule_id.clone(),
        location: f.file.as_deref().map(|file| finding::Location {
            file: path(file),
            lines: span(f),
        }),
        also: f.also.iter().filter_map(also).collect(),
        flow: f.flow.iter().filter_map(flow_step).collect(),
        severity: f.severity.into(),
        category: f.category.into(),
        title: f.title.clone(),
        message: f.message.clone(),
        failure: f.failure.clone(),
        suggestion: f.suggestion.clone(),
        replacement: f.replacement.clone(),
        quote: f.quote.clone(),
        cwe: f.cwe,
        convention: f.convention.clone(),
        references: f.references.clone(),
    }
}

/// Returns the lines of a stored finding; `None` for a whole file. A last line before the first one
/// is ignored.
fn span(f: &wire::Finding) -> Option<finding::LineSpan> {
    let first = LineNo::new(f.line?)?;
    let last = f
        .end_line
        .and_then(LineNo::new)
        .filter(|l| *l >= first)
        .unwrap_or(first);
    Some(finding::LineSpan {
        first,
        last,
        columns: None,
    })
}

impl From<&SourceInfo> for wire::ReviewedSource {
    fn from(s: &SourceInfo) -> Self {
        Self {
            kind: s.kind.into(),
            base: s.base.clone(),
            head: s.head.clone(),
            tree: s.tree.clone(),
            checked_out: s.checked_out.clone(),
            history: s.is_history,
            label: Some(s.label.clone()).filter(|label| !label.is_empty()),
        }
    }
}

/// The name of the kind stands in for a label that an old report lacks.
impl From<&wire::ReviewedSource> for SourceInfo {
    fn from(s: &wire::ReviewedSource) -> Self {
        let kind = review::SourceKind::from(s.kind);
        Self {
            kind,
            base: s.base.clone(),
            head: s.head.clone(),
            tree: s.tree.clone(),
            base_tree: None,
            label: s.label.clone().unwrap_or_else(|| kind.name().to_owned()),
            is_history: s.history,
            checked_out: s.checked_out.clone(),
            shard: None,
            repository: None,
        }
    }
}

impl From<&PolicyInfo> for wire::Policy {
    fn from(policy: &PolicyInfo) -> Self {
        Self {
            origin: policy.origin.clone(),
            hash: policy.hash.clone(),
        }
    }
}

impl From<Shard> for wire::Shard {
    fn from(shard: Shard) -> Self {
        Self {
            index: shard.index(),
            of: shard.of(),
        }
    }
}

/// Returns the source of a report, with its shard. A shard that cannot exist counts as none.
pub fn source(report: &wire::Report) -> SourceInfo {
    let shard = report.shard.and_then(|s| Shard::new(s.index, s.of));
    SourceInfo {
        shard,
        ..SourceInfo::from(&report.source)
    }
}

impl From<&Note> for wire::ReportNote {
    fn from(n: &Note) -> Self {
        Self {
            file: n.file.as_ref().map(RepoPath::to_wire),
            line: n.line.map(|l| l.get()),
            text: n.text.clone(),
            origin: n.origin.clone(),
        }
    }
}

impl From<&wire::ReportNote> for Note {
    fn from(n: &wire::ReportNote) -> Self {
        Self {
            file: n.file.as_deref().map(path),
            line: n.line.and_then(LineNo::new),
            text: n.text.clone(),
            origin: n.origin.clone(),
        }
    }
}

impl From<&GatheredItem> for wire::ContextItem {
    fn from(item: &GatheredItem) -> Self {
        Self {
            reference: item.reference.clone(),
            title: item.title.clone(),
            source: item.source.clone(),
            version: item.version.clone(),
            digest: item.digest.clone(),
        }
    }
}

/// The text of a ticket is not in a report.
impl From<&wire::ContextItem> for GatheredItem {
    fn from(item: &wire::ContextItem) -> Self {
        Self {
            reference: item.reference.clone(),
            title: item.title.clone(),
            source: item.source.clone(),
            version: item.version.clone(),
            digest: item.digest.clone(),
            text: String::new(),
        }
    }
}

/// Returns the number of findings that a report does not list; `None` if it lists all.
pub fn unlisted(u: &Unlisted) -> Option<wire::UnlistedCounts> {
    let [critical, major, minor, suggestion] = u.counting;
    let out = wire::UnlistedCounts {
        critical,
        major,
        minor,
        suggestion,
        blocking: u.total_blocking(),
        warning: u.warning,
        suppressed: u.suppressed,
    };
    (*u != Unlisted::default()).then_some(out)
}

impl From<&wire::UnlistedCounts> for Unlisted {
    fn from(u: &wire::UnlistedCounts) -> Self {
        let mut out = Self {
            counting: [u.critical, u.major, u.minor, u.suggestion],
            warning: u.warning,
            suppressed: u.suppressed,
            ..Self::default()
        };
        // The severities of blocking ones are not stored: assume the highest.
        let mut left = u.blocking;
        for (blocking, counting) in out.blocking.iter_mut().zip(out.counting) {
            *blocking = left.min(counting);
            left -= *blocking;
        }
        out
    }
}

impl From<&verdict::Coverage> for wire::Coverage {
    fn from(c: &verdict::Coverage) -> Self {
        let shares = c.by_reviewer.iter();
        let skipped = c.skipped.iter().map(|(p, why)| wire::Skipped {
            file: p.to_wire(),
            reason: why.name().to_owned(),
        });
        let failed = c.failed.iter().map(|f| wire::Failed {
            file: f.file.as_ref().map(RepoPath::to_wire),
            reason: f.reason(),
        });
        Self {
            files_total: c.files_total,
            files_reviewed: c.files_reviewed,
            by_reviewer: shares.map(|(n, s)| (n.clone(), (*s).into())).collect(),
            hunks_total: c.hunks_total,
            hunks_reviewed: c.hunks_reviewed,
            cached: c.cached,
            records: c.records,
            skipped: skipped.collect(),
            failed: failed.collect(),
        }
    }
}

impl From<&wire::Coverage> for verdict::Coverage {
    fn from(c: &wire::Coverage) -> Self {
        let shares = c.by_reviewer.iter();
        let skipped = c.skipped.iter().map(|s| (path(&s.file), skip(&s.reason)));
        let failed = c.failed.iter();
        let failed = failed.map(|f| CoverageFailure {
            file: f.file.as_deref().map(path),
            cause: FailureCause::parse(&f.reason),
        });
        Self {
            files_total: c.files_total,
            files_reviewed: c.files_reviewed,
            by_reviewer: shares.map(|(n, s)| (n.clone(), (*s).into())).collect(),
            hunks_total: c.hunks_total,
            hunks_reviewed: c.hunks_reviewed,
            // Not stored; only a running review needs it.
            hunks_by_rules: c.hunks_reviewed,
            cached: c.cached,
            records: c.records,
            skipped: skipped.collect(),
            failed: failed.collect(),
        }
    }
}

/// Returns the reason with a name why a file was skipped.
fn skip(name: &str) -> Skip {
    Skip::ALL
        .iter()
        .copied()
        .find(|s| s.name() == name)
        .unwrap_or(Skip::Ignored)
}

impl From<Share> for wire::ReviewerCoverage {
    fn from(share: Share) -> Self {
        Self {
            files_reviewed: share.files_reviewed,
            files_total: share.files_total,
        }
    }
}

impl From<wire::ReviewerCoverage> for Share {
    fn from(share: wire::ReviewerCoverage) -> Self {
        Self {
            files_reviewed: share.files_reviewed,
            files_total: share.files_total,
        }
    }
}

/// Returns how the project's tests ended. Older reports have only whether they passed.
pub fn test_outcome(t: &wire::TestResults) -> verdict::TestOutcome {
    match t.outcome {
        Some(outcome) => outcome.into(),
        None if t.passed => verdict::TestOutcome::Passed,
        None => verdict::TestOutcome::Failed,
    }
}

impl From<&BackendUsage> for wire::BackendUsage {
    fn from(u: &BackendUsage) -> Self {
        Self {
            backend: u.backend.clone(),
            model: u.model.clone(),
            requests: u.spent.requests,
            from_cache: u.from_cache,
            failed: u.failed,
            input_tokens: u.spent.input_tokens,
            cached_tokens: u.spent.cached_tokens,
            output_tokens: u.spent.output_tokens,
            cost_usd: u.spent.cost_usd,
            batch: u.batch,
            earlier_usd: u.earlier_usd,
            duration_ms: wire::milliseconds(u.duration),
        }
    }
}

impl From<&wire::BackendUsage> for BackendUsage {
    fn from(u: &wire::BackendUsage) -> Self {
        Self {
            backend: u.backend.clone(),
            model: u.model.clone(),
            spent: Spent {
                requests: u.requests,
                input_tokens: u.input_tokens,
                cached_tokens: u.cached_tokens,
                output_tokens: u.output_tokens,
                cost_usd: u.cost_usd,
                ..Spent::default()
            },
            from_cache: u.from_cache,
            failed: u.failed,
            batch: u.batch,
            earlier_usd: u.earlier_usd,
            duration: Duration::from_millis(u.duration_ms),
        }
    }
}

impl From<&Compliance> for wire::DesignCompliance {
    fn from(c: &Compliance) -> Self {
        let violations = c.violations.iter().map(|v| wire::DesignViolation {
            issue: v.issue.clone(),
            description: v.description.clone(),
            impact: v.impact.into(),
            reference: v.reference.clone(),
            recommendation: v.recommendation.clone(),
        });
        Self {
            follows_architecture: c.follows,
            violations: violations.collect(),
        }
    }
}

impl From<&wire::DesignCompliance> for Compliance {
    fn from(c: &wire::DesignCompliance) -> Self {
        let violations = c.violations.iter().map(|v| DesignViolation {
            issue: v.issue.clone(),
            description: v.description.clone(),
            impact: v.impact.into(),
            reference: v.reference.clone(),
            recommendation: v.recommendation.clone(),
        });
        Self {
            follows: c.follows_architecture,
            violations: violations.collect(),
        }
    }
}

impl From<&UnmetRequirement> for wire::MissingRequirement {
    fn from(m: &UnmetRequirement) -> Self {
        Self {
            requirement: m.requirement.clone(),
            reference: m.reference.clone(),
            severity: m.severity.into(),
        }
    }
}

impl From<&wire::MissingRequirement> for UnmetRequirement {
    fn from(m: &wire::MissingRequirement) -> Self {
        Self {
            requirement: m.requirement.clone(),
            reference: m.reference.clone(),
            severity: m.severity.into(),
        }
    }
}

impl From<&Opinion> for wire::Opinion {
    fn from(o: &Opinion) -> Self {
        Self {
            backend: o.backend.clone(),
            text: o.text.clone(),
        }
    }
}

impl From<&wire::Opinion> for Opinion {
    fn from(o: &wire::Opinion) -> Self {
        Self {
            backend: o.backend.clone(),
            text: o.text.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_as_they_were() {
        for name in [
            &b"a.rs"[..],
            b"\"quoted\".rs",
            b"caf\xe9/x y.py",
            "日本語".as_bytes(),
            b"tab\there",
        ] {
            let known = RepoPath::new(name);
            assert_eq!(path(&known.to_wire()), known);
        }
        for text in [
            "rule:x",
            "quote",
            "reproduced",
            "read:a:b.rs:3-7",
            "backend:m",
            "carried:round-2",
        ] {
            assert_eq!(evidence_text(&evidence(text).unwrap()), text);
        }
        assert_eq!(evidence("read:a.rs:0-7"), None);
    }
}
