//! Whether a session may be approved after its last round. Pure.

use super::again::next_round;
use super::owed::{self, Owed, RoundRecord};
use crate::error::Error;
use crate::review::Remote;
use crate::wire::stored::{Review, Session, State};
use crate::wire::{Outcome, SourceKind, Verdict};

/// Returns the error for a rejected approval. Only a person may force it.
pub(super) fn not_approved(
    session: &Session,
    remotes: &[Remote],
    doubt: &str,
    owed: &[Owed<'_>],
) -> Error {
    let id = &session.review_id;
    let again = next_round(session, remotes);
    let mut error = Error::usage(format!("review {id} cannot be approved: {doubt}"))
        .hint_agent(format!(
            "fix the cause, then call request_review with previous_review_id {id}"
        ))
        .hint_agent("if that is not possible, ask a person")
        .hint_person(format!("fix the cause and review again: {again}"));
    if let Some(f) = owed.iter().find_map(|o| o.now) {
        // A waiver records the finding by name, unlike `--force`, which covers all.
        let waived = format!("{again} --waive {}=REASON", f.fingerprint);
        error = error.hint_person(format!(
            "or let it through by name, with the reason: `{waived}`"
        ));
    }
    error.hint_person(format!(
        "`claude-reviewer complete {id} --status approved --force` approves it, and records that"
    ))
}

/// Returns why a session should not be approved after its last round, if there is a reason.
pub(super) fn doubt(
    session: &Session,
    last: &Review,
    open: usize,
    rounds: &[RoundRecord<'_>],
    owed: &[Owed<'_>],
) -> Option<String> {
    let (through, unseen): (Vec<Owed<'_>>, Vec<Owed<'_>>) =
        owed.iter().partition(|o| o.now.is_some());
    match (open, last.outcome, last.verdict) {
        (1, _, _) => Some("1 finding blocks".to_owned()),
        (2.., _, _) => Some(format!("{open} findings block")),
        (_, Outcome::Cancelled, _) => Some("its last round was broken off".to_owned()),
        (_, Outcome::Incomplete, _) | (_, _, Verdict::Incomplete) => Some("its last round is incomplete".to_owned()),
        _ if untested(session).is_some() => untested(session),
        (_, _, Verdict::Block) => Some("its last round blocks".to_owned()),
        _ if owed::is_blind(rounds) => Some(
            "its last round reviewed none of its files, and an earlier round blocked (see coverage.skipped)".to_owned(),
        ),
        _ if last.since.as_ref().is_some_and(|since| since.is_replaced) => Some(
            "its last round reviewed another change: the one with the earlier findings was moved away or taken back"
                .to_owned(),
        ),
        _ if !through.is_empty() => Some(format!(
            "a blocking finding still exists, and passes only because the policy changed: {}",
            owed::names(&through)
        )),
        _ if !unseen.is_empty() => {
            let policy = if unseen.iter().any(|o| o.other_policy) { ", and the policy changed since" } else { "" };
            Some(format!("its last round did not check {}{policy}", owed::names(&unseen)))
        }
        _ if unchecked(session, last) || emptied(session, last) => {
            Some("its last round did not check all earlier findings".to_owned())
        }
        _ => None,
    }
}

/// Returns an error message if the project's tests failed when they last ran. Rounds that do not
/// run them are skipped.
fn untested(session: &Session) -> Option<String> {
    let round = session
        .rounds
        .iter()
        .rev()
        .find(|r| r.review.test_results.is_some())?;
    let tests = round.review.test_results.as_ref().filter(|t| !t.passed)?;
    Some(format!(
        "the project's tests failed in round {}: {}",
        round.review.round, tests.summary
    ))
}

/// Returns the reviews of the rounds before the last one, oldest first.
fn earlier(session: &Session) -> impl DoubleEndedIterator<Item = &Review> {
    let before = session.rounds.len().saturating_sub(1);
    session.rounds[..before].iter().map(|r| &r.review)
}

/// Returns true if a blocking finding is in code that the last round did not check.
fn unchecked(session: &Session, last: &Review) -> bool {
    let mut entries = last.since.iter().flat_map(|s| &s.entries);
    entries.any(|e| e.state == State::Unchecked && e.blocked(earlier(session)))
}

/// Returns true if blocking findings disappeared because the last round reviewed another source,
/// which has no changes.
fn emptied(session: &Session, last: &Review) -> bool {
    let blocked = earlier(session)
        .next_back()
        .is_some_and(|r| r.report.findings.iter().any(|f| f.blocking));
    let (begun, now) = (&session.request.source, &last.report.source);
    // Staged or unstaged changes are part of all changes since the same commit.
    let is_own =
        begun.base == now.base && (begun.kind == now.kind || now.kind == SourceKind::Changes);
    last.outcome == Outcome::NothingToReview && blocked && !is_own
}
