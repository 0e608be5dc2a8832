//! Reviews one chunk under one lens: sends it, and anchors the claims of the answer.

use super::answer::{NoAnswer, ParsedAnswer, Query};
use super::audit::ChunkTurn;
use super::ledger::LedgerEntry;
use super::member::Member;
use super::turns::{AskedPart, PartResult};
use super::{Remark, ReviewSession, Team, foreign};
use crate::ai::anchor::path::ChangedPaths;
use crate::ai::anchor::{self, Anchored, ClaimCandidate, TreeFiles};
use crate::ai::ask::{Begun, Cause, Failure};
use crate::ai::claim::{self, NotReviewed};
use crate::ai::plan::Chunk;
use crate::ai::prompt::{self, Lens};
use crate::ai::reply;
use crate::ai::{Compliance, Dropped, Opinion, UnmetRequirement};
use crate::diff::RepoPath;
use crate::untrusted::Inert;
use crate::verdict::{CoverageFailure, FailureCause};

/// Number of lines from which a truncated answer justifies a split. If the answer on fewer lines is
/// too long, the model is verbose, and would be so again on half of them.
const MANY_LINES: usize = 100;

/// Returns the number of lines of a chunk.
fn lines(chunk: &Chunk) -> usize {
    chunk
        .pieces
        .iter()
        .flat_map(|p| &p.hunks)
        .map(|h| h.lines.len())
        .sum()
}

/// The result of one chunk under one lens.
#[derive(Default)]
pub(super) struct ChunkReview {
    pub(super) candidates: Vec<ClaimCandidate>,
    pub(super) remarks: Vec<Remark>,
    pub(super) dropped: Vec<Dropped>,
    pub(super) failed: Vec<CoverageFailure>,
    pub(super) cut: Vec<(RepoPath, String)>,
    pub(super) entries: Vec<LedgerEntry>,
    pub(super) cached: usize,
    pub(super) compliance: Option<Compliance>,
    pub(super) missing: Vec<UnmetRequirement>,
    pub(super) opinions: Vec<Opinion>,
}

/// Returns true if a smaller chunk can succeed after a failure: the request was too large, or the
/// answer on many lines was truncated.
fn is_too_large(failure: &Failure, chunk: &Chunk) -> bool {
    match failure.cause {
        Cause::TooLarge => true,
        Cause::CutOff => lines(chunk) >= MANY_LINES,
        _ => false,
    }
}

impl<'a> ReviewSession<'a> {
    /// Reviews one chunk under one lens. The first lens starts alone: when its answer begins, the
    /// provider has cached the start of the prompt, which the other lenses share.
    pub(super) async fn review_after_first_lens(
        &self,
        team: &Team<'a>,
        chunk: &Chunk,
        lens: Lens,
        (begun, turn): (&Begun, &ChunkTurn),
    ) -> ChunkReview {
        match self.job.lenses().first() == Some(&lens) {
            // All requests of a batch are sent together.
            _ if self.batch.is_some() => {}
            true => turn.begin().await,
            false => begun.wait().await,
        }
        let review = self.review_chunk(team, chunk.clone(), lens, begun).await;
        begun.set();
        turn.end_lens();
        review
    }

    /// Reviews one chunk, in several parts if it is too large.
    async fn review_chunk(
        &self,
        team: &Team<'a>,
        chunk: Chunk,
        lens: Lens,
        begun: &Begun,
    ) -> ChunkReview {
        let asked = self.ask_in_turn(team, chunk, is_too_large, async |member, part| {
            self.review_with(member, part, lens, begun).await
        });
        let mut all = ChunkReview::default();
        for part in asked.await {
            all.merge(self.reviewed(part));
        }
        all
    }

    /// Returns the review of one part, or the files that were not reviewed.
    fn reviewed(&self, AskedPart { chunk, result }: AskedPart<ChunkReview>) -> ChunkReview {
        let unanswered = ChunkReview {
            entries: LedgerEntry::unanswered(&chunk),
            ..ChunkReview::default()
        };
        let paths = self.paths(&chunk).into_iter();
        match result {
            PartResult::Answered {
                mut answer,
                failures,
            } => {
                answer.remarks.extend(failures.into_iter().map(|failure| {
                    Remark::of_the_run(format!("the next backend was asked: {failure}"))
                }));
                answer
            }
            PartResult::Limit(limit) => ChunkReview {
                cut: paths.map(|p| (p, limit.clone())).collect(),
                ..unanswered
            },
            PartResult::Failed(failures) => {
                let cause = FailureCause::Other(failures.join("; "));
                ChunkReview {
                    failed: paths
                        .map(|path| CoverageFailure::in_file(path, cause.clone()))
                        .collect(),
                    ..unanswered
                }
            }
        }
    }

    /// Asks one backend about one chunk, and anchors its claims.
    async fn review_with(
        &self,
        member: &Member<'a>,
        chunk: &Chunk,
        lens: Lens,
        begun: &Begun,
    ) -> Result<ChunkReview, NoAnswer> {
        let group = &self.groups[chunk.group];
        let prompt = prompt::review(self.brief, group, chunk, lens, &self.nonce);
        let earlier = prompt::earlier(self.brief, group, chunk, lens, &self.nonce);
        let around = self.around(chunk.group);
        let query = Query {
            prompt: &prompt,
            earlier: &earlier,
            schema: claim::schema(),
            around,
            begun: Some(begun),
        };
        let asked = self.question(member, &query, reply::parse).await?;
        let ParsedAnswer {
            value: reply,
            read,
            cached,
            keep,
            ..
        } = asked;
        let name = member.name();
        let mut out = ChunkReview::default();
        let unaccounted =
            reply::unaccounted(&reply, chunk.pieces.iter().map(|p| &group.files[p.file]));
        out.entries = chunk
            .pieces
            .iter()
            .map(|p| LedgerEntry {
                file: (chunk.group, p.file),
                by: (!unaccounted.contains(group.files[p.file].path())).then(|| name.to_owned()),
            })
            .collect();
        out.failed.extend(unaccounted.into_iter().map(|path| {
            let cause = FailureCause::Backend {
                backend: name.to_owned(),
                reason: "the reply does not account for it".to_owned(),
            };
            CoverageFailure::in_file(path, cause)
        }));
        self.add_not_reviewed(&reply.not_reviewed, member, chunk, &mut out);
        self.store_if(out.failed.is_empty(), keep).await;
        out.cached = if cached {
            chunk.pieces.iter().map(|p| p.hunks.len()).sum()
        } else {
            0
        };
        let context = anchor::Context {
            group,
            chunk,
            conventions: &self.brief.conventions,
            documents: &self.brief.documents,
            tickets: &self.brief.tickets,
            read: &read,
            backend: name,
            rules: self.job.rules,
            tree: self.tree(chunk.group).map(|tree| tree as &dyn TreeFiles),
        };
        let text = foreign(reply.summary.trim(), self.job.rules);
        if !text.is_empty() {
            out.opinions.push(Opinion {
                backend: name.to_owned(),
                text,
            });
        }
        out.add_claims(anchor::claims(&reply, &context), name);
        (out.compliance, out.missing) = anchor::documented(&reply, &context);
        Ok(out)
    }
}

impl ReviewSession<'_> {
    /// Records files as failed that a reply lists as not reviewed. A name that matches no file of
    /// the change can mean any file of the chunk, so all of them fail.
    fn add_not_reviewed(
        &self,
        left: &[NotReviewed],
        member: &Member<'_>,
        chunk: &Chunk,
        out: &mut ChunkReview,
    ) {
        let group = &self.groups[chunk.group];
        let names = ChangedPaths::new(&group.files);
        for NotReviewed { file, why } in left {
            let why = foreign(why.trim(), self.job.rules);
            let why = if why.is_empty() {
                String::new()
            } else {
                format!(": {}", Inert::new(why).as_str())
            };
            let cause = FailureCause::Backend {
                backend: member.name().to_owned(),
                reason: format!("not reviewed according to the reply{why}"),
            };
            match names.find(file) {
                Some(found) if chunk.pieces.iter().any(|p| p.file == found) => {
                    let path = self.path(chunk.group, found);
                    out.failed.push(CoverageFailure::in_file(path, cause));
                }
                // Another request reviews this file.
                Some(_) => {}
                None if self.brief.kept.iter().any(|k| k.name == file.trim()) => {}
                None => out.failed.extend(
                    self.paths(chunk)
                        .into_iter()
                        .map(|path| CoverageFailure::in_file(path, cause.clone())),
                ),
            }
        }
        out.failed.dedup();
    }
}

impl ChunkReview {
    /// Adds the anchored claims of a backend.
    pub(super) fn add_claims(&mut self, claims: Vec<Anchored>, backend: &str) {
        let backend = backend.to_owned();
        for anchored in claims {
            match anchored {
                Anchored::Candidate(c) => self.candidates.push(*c),
                Anchored::Remark { file, line, text } => self.remarks.push(Remark {
                    backend: backend.clone(),
                    file,
                    line,
                    text,
                }),
                Anchored::Dropped { claim, why } => self.dropped.push(Dropped {
                    backend: backend.clone(),
                    claim,
                    why: why.into(),
                }),
            }
        }
    }

    /// Adds the review of another part of the change.
    pub(super) fn merge(&mut self, other: Self) {
        self.candidates.extend(other.candidates);
        self.remarks.extend(other.remarks);
        self.dropped.extend(other.dropped);
        self.failed.extend(other.failed);
        self.cut.extend(other.cut);
        self.entries.extend(other.entries);
        self.cached += other.cached;
        self.missing.extend(other.missing);
        self.opinions.extend(other.opinions);
        if let Some(theirs) = other.compliance {
            let ours = self.compliance.get_or_insert(Compliance {
                follows: true,
                violations: Vec::new(),
            });
            ours.follows &= theirs.follows;
            ours.violations.extend(theirs.violations);
        }
    }
}
