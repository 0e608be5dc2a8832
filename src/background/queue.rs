//! Transitions of the queue of a repository. Pure.
//!
//! One review runs and one commit waits. A newer commit replaces the one that waits: its review covers everything that
//! a push would send. A review that runs is not replaced, since its requests are paid for and its answers about
//! unmodified parts serve the next one.

use crate::wire::background::{Ending, Last, Order, Queue, Running, VERSION, Waiting};

/// How many processes may end before the review of a commit does.
const MAX_ATTEMPTS: u32 = 3;

/// The process that takes a commit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Worker<'a> {
    pub(super) pid: u32,
    pub(super) birth: Option<u64>,
    /// RFC 3339.
    pub(super) now: &'a str,
}

/// Adds a commit.
pub(super) fn submit(queue: &mut Queue, order: Order) {
    queue.waiting = Some(Waiting { order, held: None });
}

/// Puts back the commit of a process that ended before its review did.
pub(super) fn recover(queue: &mut Queue, now: &str) {
    let Some(Running { mut order, is_stopping, .. }) = queue.running.take() else { return };
    order.attempts += 1;
    if is_stopping {
        queue.last = Some(last(&order, now, Ending::Stopped, None));
    } else if order.attempts >= MAX_ATTEMPTS {
        let note = format!("its process ended {MAX_ATTEMPTS} times before the review did");
        queue.last = Some(last(&order, now, Ending::Abandoned, Some(note)));
    } else if queue.waiting.is_none() {
        queue.waiting = Some(Waiting { order, held: None });
    }
}

/// Gives the commit that waits to a process.
pub(super) fn claim(queue: &mut Queue, worker: Worker<'_>) -> Option<Order> {
    let order = queue.waiting.take()?.order;
    let Worker { pid, birth, now } = worker;
    let running = Running { order: order.clone(), pid, birth, since: now.to_owned(), is_stopping: false };
    queue.running = Some(running);
    Some(order)
}

/// Puts the commit that was taken back to wait for a person or another day, unless a newer one waits.
pub(super) fn hold(queue: &mut Queue, why: &str) {
    if let Some(Running { order, is_stopping, .. }) = queue.running.take()
        && !is_stopping
        && queue.waiting.is_none()
    {
        queue.waiting = Some(Waiting { order, held: Some(why.to_owned()) });
    }
}

/// Records the result of the review that runs.
pub(super) fn finish(queue: &mut Queue, mut result: Last) {
    if queue.running.take().is_some_and(|r| r.is_stopping) {
        result.ending = Ending::Stopped;
    }
    queue.last = Some(result);
}

/// Removes a commit that a push has reviewed.
pub(super) fn pushed(queue: &mut Queue, commits: &[String]) {
    queue.waiting = queue.waiting.take().filter(|w| !commits.contains(&w.order.commit));
}

/// Removes what waits, and marks what runs.
pub(super) fn stop(queue: &mut Queue) {
    queue.waiting = None;
    if let Some(running) = &mut queue.running {
        running.is_stopping = true;
    }
}

/// Returns true if a process has something to do.
pub(super) fn is_due(queue: &Queue) -> bool {
    queue.running.is_none() && queue.waiting.as_ref().is_some_and(|w| w.held.is_none())
}

/// Returns a result without a verdict.
pub(super) fn last(order: &Order, now: &str, ending: Ending, note: Option<String>) -> Last {
    Last {
        commit: order.commit.clone(),
        worktree: order.worktree.clone(),
        at: now.to_owned(),
        ending,
        verdict: None,
        review_id: None,
        cost_usd: None,
        note,
    }
}

/// Returns an empty queue.
pub(super) fn empty() -> Queue {
    Queue { version: VERSION, ..Queue::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-01-31T00:00:00Z";
    const WORKER: Worker<'_> = Worker { pid: 7, birth: Some(1), now: NOW };

    fn order(commit: &str) -> Order {
        Order {
            commit: commit.to_owned(),
            worktree: "/w".to_owned(),
            git_dir: "/w/.git".to_owned(),
            push: None,
            since: NOW.to_owned(),
            attempts: 0,
        }
    }

    fn with(commits: &[&str]) -> Queue {
        let mut queue = empty();
        commits.iter().for_each(|c| submit(&mut queue, order(c)));
        queue
    }

    fn waits(queue: &Queue) -> Option<&str> {
        queue.waiting.as_ref().map(|w| w.order.commit.as_str())
    }

    #[test]
    fn a_newer_commit_replaces_the_one_that_waits_and_not_the_one_that_runs() {
        let mut queue = with(&["a"]);
        assert_eq!(claim(&mut queue, WORKER), Some(order("a")));
        submit(&mut queue, order("b"));
        submit(&mut queue, order("c"));
        assert_eq!((queue.running.as_ref().map(|r| r.order.commit.as_str()), waits(&queue)), (Some("a"), Some("c")));
        assert!(!is_due(&queue), "one review at a time");
        finish(&mut queue, last(&order("a"), NOW, Ending::Reviewed, None));
        assert!(is_due(&queue));
        assert_eq!(claim(&mut queue, WORKER), Some(order("c")));
    }

    #[test]
    fn a_commit_whose_process_died_waits_again_until_it_died_too_often() {
        let mut queue = with(&["a"]);
        for attempt in 1..MAX_ATTEMPTS {
            claim(&mut queue, WORKER);
            recover(&mut queue, NOW);
            assert_eq!(queue.waiting.as_ref().map(|w| w.order.attempts), Some(attempt));
        }
        claim(&mut queue, WORKER);
        recover(&mut queue, NOW);
        assert_eq!((waits(&queue), queue.last.as_ref().map(|l| l.ending)), (None, Some(Ending::Abandoned)));
    }

    #[test]
    fn a_commit_whose_process_died_does_not_replace_a_newer_one() {
        let mut queue = with(&["a"]);
        claim(&mut queue, WORKER);
        submit(&mut queue, order("b"));
        recover(&mut queue, NOW);
        assert_eq!((waits(&queue), queue.running.is_some()), (Some("b"), false));
    }

    #[test]
    fn a_commit_that_is_held_is_not_due_until_it_is_submitted_again() {
        let mut queue = with(&["a"]);
        claim(&mut queue, WORKER);
        hold(&mut queue, "no money");
        assert!(!is_due(&queue));
        assert_eq!(queue.waiting.as_ref().and_then(|w| w.held.as_deref()), Some("no money"));
        submit(&mut queue, order("a"));
        assert!(is_due(&queue));
    }

    #[test]
    fn a_hold_does_not_replace_a_newer_commit() {
        let mut queue = with(&["a"]);
        claim(&mut queue, WORKER);
        submit(&mut queue, order("b"));
        hold(&mut queue, "no money");
        assert_eq!(waits(&queue), Some("b"));
        assert!(is_due(&queue));
    }

    #[test]
    fn a_review_that_a_person_stops_does_not_come_back() {
        let end = |finish_it: fn(&mut Queue)| {
            let mut queue = with(&["a"]);
            claim(&mut queue, WORKER);
            submit(&mut queue, order("b"));
            stop(&mut queue);
            finish_it(&mut queue);
            (waits(&queue).map(str::to_owned), queue.last.as_ref().map(|l| l.ending))
        };
        assert_eq!(end(|q| recover(q, NOW)), (None, Some(Ending::Stopped)));
        assert_eq!(end(|q| finish(q, last(&order("a"), NOW, Ending::Failed, None))), (None, Some(Ending::Stopped)));
    }

    #[test]
    fn a_push_takes_the_commits_that_it_reviewed() {
        let mut queue = with(&["a"]);
        pushed(&mut queue, &["b".to_owned()]);
        assert_eq!(waits(&queue), Some("a"));
        pushed(&mut queue, &["a".to_owned()]);
        assert_eq!(waits(&queue), None);
    }
}
