//! Compares a whole change with its commit messages. Requests about a part omit the messages, so
//! that a further commit does not repeat them. Only at depth thorough, where tools can read the
//! files.

use super::answer::{NoAnswer, ParsedAnswer, Query};
use super::chunk::ChunkReview;
use super::{Remark, ReviewSession, Team, described};
use crate::ai::anchor::{self, TreeFiles};
use crate::ai::claim;
use crate::ai::plan;
use crate::ai::{prompt, reply};
use crate::request::Depth;

impl<'a> ReviewSession<'a> {
    /// Returns the groups whose whole change a team reviews: groups with commit messages, several
    /// parts, and a tree for the tools.
    pub(super) fn wholes(&self, team: &Team<'a>) -> Vec<usize> {
        if self.job.policy.review.depth != Depth::Thorough
            || self.job.is_audit
            || self.batch.is_some()
        {
            return Vec::new();
        }
        let has_backend = team.members.first().is_some_and(|m| m.is_backend());
        let groups = (0..self.groups.len()).filter(|group| {
            let parts = team.chunks.iter().filter(|c| c.group == *group).count();
            parts > 1 && !self.groups[*group].messages.is_empty() && self.tree(*group).is_some()
        });
        groups.filter(|_| has_backend).collect()
    }

    /// Asks whether a whole change does what its messages say. The first answer of a member is
    /// used.
    pub(super) async fn review_whole_change(&self, team: &Team<'a>, group: usize) -> ChunkReview {
        let mut failures = Vec::new();
        for member in &team.members {
            let prompt = prompt::whole_change(self.brief, &self.groups[group], &self.nonce);
            let query = Query::new(&prompt, claim::schema(), self.around(group));
            let asked = match self.question(member, &query, reply::parse).await {
                Ok(asked) => asked,
                Err(NoAnswer::Limit(limit)) => {
                    failures.push(limit);
                    break;
                }
                Err(NoAnswer::Failed(f)) => {
                    failures.push(format!("{}: {}", member.name(), described(&f)));
                    continue;
                }
            };
            self.step();
            let ParsedAnswer {
                value, read, keep, ..
            } = asked;
            self.store(keep).await;
            return self.claims_about_the_whole(&value, &read, member.name(), group);
        }
        self.step();
        // This is not a failure, because each line was reviewed with its part.
        let text = format!(
            "the commit messages were not compared with the change: {}",
            failures.join("; ")
        );
        ChunkReview {
            remarks: vec![Remark::of_the_run(text)],
            ..ChunkReview::default()
        }
    }

    /// Anchors the claims of an answer in any file of the change.
    fn claims_about_the_whole(
        &self,
        reply: &claim::Reply,
        read: &[crate::ai::ask::Read],
        backend: &str,
        group: usize,
    ) -> ChunkReview {
        let chunk = plan::all_of(group, &self.groups[group].files);
        let context = anchor::Context {
            group: &self.groups[group],
            chunk: &chunk,
            conventions: &self.brief.conventions,
            documents: &self.brief.documents,
            tickets: &self.brief.tickets,
            read,
            backend,
            rules: self.job.rules,
            tree: self.tree(group).map(|tree| tree as &dyn TreeFiles),
        };
        let mut out = ChunkReview::default();
        out.add_claims(anchor::claims(reply, &context), backend);
        out
    }
}
