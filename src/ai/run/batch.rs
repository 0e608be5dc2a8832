//! Runs the questions of a review beside the driver of their batches.

use super::{Finding, Member, Remark, ReviewSession, RunOutcome, Team, oneshot};
use crate::ai::batch::drive::{BatchDriver, BatchJob, BatchServices, finish_submission};
use crate::ai::run::ReviewJob;
use std::time::Duration;

/// Time that a stopped run waits for the answer to a submission, so that it can be recorded.
const SUBMISSION: Duration = Duration::from_secs(10);

/// Returns the driver of the batches of a run, if its requests are sent in batches.
pub(super) fn driver<'a>(job: &ReviewJob<'a>, nonce: &str) -> Option<BatchDriver<'a>> {
    let is_used = job.is_batch && job.script.is_none() && job.agent.is_none();
    let batch_job = BatchJob {
        repo: job.repo,
        env: job.env,
        progress: job.progress,
        stop: job.stop,
        deadline: job.deadline,
    };
    is_used.then(|| BatchDriver::new(batch_job, nonce))
}

impl<'a> ReviewSession<'a> {
    /// Asks all questions like [`run`](Self::run), in batches if the request wants that.
    pub(super) async fn run_or_batch(
        &self,
        teams: &[Team<'a>],
        floor: oneshot::Receiver<Vec<Finding>>,
        out: RunOutcome,
    ) -> RunOutcome {
        let Some(driver) = &self.batch else {
            return self.run(teams, floor, out).await;
        };
        let members = teams.iter().flat_map(|team| &team.members);
        let services: BatchServices<'_> = members
            .filter_map(|member| Some((member.name(), member.batch()?)))
            .collect();
        let open = || self.unblocked_questions();
        let mut driving = std::pin::pin!(driver.drive(&services, &open));
        let mut out = tokio::select! {
            biased;
            out = self.run(teams, floor, out) => out,
            never = driving.as_mut() => match never {},
        };
        finish_submission(driver, driving.as_mut(), SUBMISSION).await;
        out.remarks
            .extend(driver.end().into_iter().map(Remark::of_the_run));
        out
    }

    /// Returns the number of questions that are not answered and do not wait for the budget.
    fn unblocked_questions(&self) -> usize {
        let open = self.planned.get().saturating_sub(self.answered.get());
        open.saturating_sub(self.ledger.blocked())
    }
}

impl Member<'_> {
    /// Returns the batch interface of a backend, if it has one.
    fn batch(&self) -> Option<crate::ai::backend::BatchService<'_>> {
        match self {
            Self::Backend { backend, .. } => backend.batch(),
            Self::Script { .. } | Self::Agent(_) => None,
        }
    }
}
