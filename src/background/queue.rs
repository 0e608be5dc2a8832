//! Transitions of the queue of a repository. Pure.
//!
//! One review runs, and commits wait. A newer commit replaces waiting ones that its review covers,
//! because it contains their changes. Commits of other branches and worktrees wait in addition. A
//! running review is not replaced: its requests are paid for, and its answers about unmodified
//! parts serve the next one.

use crate::wire::background::{
    BackgroundEnd, Covered, Last, Queue, ReviewOrder, Running, VERSION, Waiting,
};

/// Processes that may end before the review of a commit does, at most.
const MAX_ATTEMPTS: u32 = 3;

/// Waiting commits, at most. This bounds the file of the queue, which each commit rewrites.
const MOST: usize = 256;

/// Returns how the review of a new commit covers that of an earlier one; `None` if it does not.
pub(super) type Covers<'a> = &'a dyn Fn(&ReviewOrder) -> Option<Covered>;

/// The process that takes a commit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Worker<'a> {
    pub(super) pid: u32,
    pub(super) birth: Option<u64>,
    /// RFC 3339.
    pub(super) now: &'a str,
}

/// Adds a commit, and removes the ones that its review covers. If too many wait, the oldest is
/// dropped and recorded as the last result.
pub(super) fn submit(queue: &mut Queue, mut order: ReviewOrder, covers: Covers<'_>) {
    let mut kept = Vec::new();
    for waiting in take(queue) {
        match covers(&waiting.order) {
            None => kept.push(waiting),
            Some(covered) => {
                // The first one is the oldest.
                order.from = order.from.or(covered.from);
                order.covers.extend(waiting.order.covers);
            }
        }
    }
    order
        .covers
        .extend(queue.running.as_ref().and_then(|r| covers(&r.order)));
    kept.push(Waiting { order, held: None });
    let now = kept
        .last()
        .map_or_else(String::new, |w| w.order.since.clone());
    for dropped in kept.drain(..kept.len().saturating_sub(MOST)) {
        let note = format!("not reviewed: more than {MOST} commits wait");
        queue.last = Some(last(
            &dropped.order,
            &now,
            BackgroundEnd::Abandoned,
            Some(note),
        ));
    }
    put(queue, kept);
}

/// Removes and returns all waiting commits, the oldest first.
fn take(queue: &mut Queue) -> Vec<Waiting> {
    queue
        .waiting
        .take()
        .into_iter()
        .chain(std::mem::take(&mut queue.later))
        .collect()
}

fn put(queue: &mut Queue, waiting: Vec<Waiting>) {
    let mut waiting = waiting.into_iter();
    queue.waiting = waiting.next();
    queue.later = waiting.collect();
}

/// Returns all waiting commits, the oldest first.
fn all(queue: &Queue) -> impl Iterator<Item = &Waiting> {
    queue.waiting.iter().chain(&queue.later)
}

/// Puts a commit back in front of the waiting ones, unless the review of one of them covers it.
fn put_back(queue: &mut Queue, order: ReviewOrder, held: Option<String>) {
    let mut waiting = take(queue);
    match waiting
        .iter_mut()
        .find_map(|w| Some((cover_of(&order, w)?, w)))
    {
        Some((covered, later)) => {
            later.order.from = covered.from.or(later.order.from.take());
            later.order.covers.extend(order.covers);
        }
        None => waiting.insert(0, Waiting { order, held }),
    }
    put(queue, waiting);
}

/// Returns how the review of a waiting commit covers that of another commit.
fn cover_of(order: &ReviewOrder, waiting: &Waiting) -> Option<Covered> {
    waiting
        .order
        .covers
        .iter()
        .find(|c| c.commit == order.commit)
        .cloned()
}

/// Puts back the commit of a process that ended before its review did.
pub(super) fn recover(queue: &mut Queue, now: &str) {
    let Some(Running {
        mut order,
        is_stopping,
        ..
    }) = queue.running.take()
    else {
        return;
    };
    order.attempts += 1;
    if is_stopping {
        queue.last = Some(last(&order, now, BackgroundEnd::Stopped, None));
    } else if order.attempts >= MAX_ATTEMPTS {
        let note = format!("its process ended {MAX_ATTEMPTS} times before the review did");
        queue.last = Some(last(&order, now, BackgroundEnd::Abandoned, Some(note)));
    } else {
        put_back(queue, order, None);
    }
}

/// Gives the first commit that is due to a process.
pub(super) fn claim(queue: &mut Queue, worker: Worker<'_>) -> Option<ReviewOrder> {
    let mut waiting = take(queue);
    let first = waiting.iter().position(|w| w.held.is_none());
    let order = first.map(|at| waiting.remove(at).order);
    put(queue, waiting);
    let order = order?;
    let Worker { pid, birth, now } = worker;
    let running = Running {
        order: order.clone(),
        pid,
        birth,
        since: now.to_owned(),
        is_stopping: false,
    };
    queue.running = Some(running);
    Some(order)
}

/// Puts the running commit back, to wait for a person or another day, unless the review of a newer
/// one covers it.
pub(super) fn hold(queue: &mut Queue, why: &str) {
    if let Some(Running {
        order, is_stopping, ..
    }) = queue.running.take()
        && !is_stopping
    {
        put_back(queue, order, Some(why.to_owned()));
    }
}

/// Releases all held commits. Returns the first one.
pub(super) fn resume(queue: &mut Queue) -> Option<String> {
    for waiting in queue.waiting.iter_mut().chain(&mut queue.later) {
        waiting.held = None;
        waiting.order.attempts = 0;
    }
    queue.waiting.as_ref().map(|w| w.order.commit.clone())
}

/// Records the result of the running review.
pub(super) fn finish(queue: &mut Queue, mut result: Last) {
    if queue.running.take().is_some_and(|r| r.is_stopping) {
        result.ending = BackgroundEnd::Stopped;
    }
    queue.last = Some(result);
}

/// Removes a commit that a push has reviewed.
pub(super) fn pushed(queue: &mut Queue, commits: &[String]) {
    let mut waiting = take(queue);
    waiting.retain(|w| !commits.contains(&w.order.commit));
    put(queue, waiting);
}

/// Removes the waiting commits, and marks the running one.
pub(super) fn stop(queue: &mut Queue) {
    take(queue);
    if let Some(running) = &mut queue.running {
        running.is_stopping = true;
    }
}

/// Returns true if a commit is due for a process.
pub(super) fn is_due(queue: &Queue) -> bool {
    queue.running.is_none() && all(queue).any(|w| w.held.is_none())
}

/// Returns a result without a verdict.
pub(super) fn last(
    order: &ReviewOrder,
    now: &str,
    ending: BackgroundEnd,
    note: Option<String>,
) -> Last {
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
    Queue {
        version: VERSION,
        ..Queue::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-01-31T00:00:00Z";
    const WORKER: Worker<'_> = Worker {
        pid: 7,
        birth: Some(1),
        now: NOW,
    };

    fn order(commit: &str) -> ReviewOrder {
        ReviewOrder {
            commit: commit.to_owned(),
            worktree: "/w".to_owned(),
            git_dir: "/w/.git".to_owned(),
            push: None,
            since: NOW.to_owned(),
            attempts: 0,
            branch: None,
            from: None,
            covers: Vec::new(),
        }
    }

    /// Covers every earlier commit.
    fn every(old: &ReviewOrder) -> Option<Covered> {
        let from = old
            .from
            .clone()
            .or_else(|| Some(format!("before {}", old.commit)));
        Some(Covered {
            commit: old.commit.clone(),
            from,
        })
    }

    /// Covers no earlier commit.
    fn none(_: &ReviewOrder) -> Option<Covered> {
        None
    }

    fn all_waiting(queue: &Queue) -> Vec<&str> {
        all(queue).map(|w| w.order.commit.as_str()).collect()
    }

    fn with(commits: &[&str]) -> Queue {
        let mut queue = empty();
        commits
            .iter()
            .for_each(|c| submit(&mut queue, order(c), &every));
        queue
    }

    fn waits(queue: &Queue) -> Option<&str> {
        queue.waiting.as_ref().map(|w| w.order.commit.as_str())
    }

    #[test]
    fn a_newer_commit_replaces_the_one_that_waits_and_not_the_one_that_runs() {
        let mut queue = with(&["a"]);
        assert_eq!(claim(&mut queue, WORKER), Some(order("a")));
        submit(&mut queue, order("b"), &every);
        submit(&mut queue, order("c"), &every);
        assert_eq!(
            (
                queue.running.as_ref().map(|r| r.order.commit.as_str()),
                waits(&queue)
            ),
            (Some("a"), Some("c"))
        );
        assert!(!is_due(&queue), "one review at a time");
        finish(
            &mut queue,
            last(&order("a"), NOW, BackgroundEnd::Reviewed, None),
        );
        assert!(is_due(&queue));
        let taken = claim(&mut queue, WORKER).unwrap();
        assert_eq!(
            (taken.commit.as_str(), taken.from.as_deref()),
            ("c", Some("before b")),
            "b is part of it"
        );
    }

    #[test]
    fn commits_of_other_branches_wait_beside_each_other_in_their_order() {
        let mut queue = with(&["a"]);
        claim(&mut queue, WORKER);
        submit(&mut queue, order("b"), &none);
        submit(&mut queue, order("c"), &none);
        submit(&mut queue, order("d"), &|old| {
            every(old).filter(|c| c.commit == "b")
        });
        assert_eq!(all_waiting(&queue), ["c", "d"]);
        finish(
            &mut queue,
            last(&order("a"), NOW, BackgroundEnd::Reviewed, None),
        );
        for commit in ["c", "d"] {
            assert!(is_due(&queue));
            assert_eq!(
                claim(&mut queue, WORKER).map(|o| o.commit).as_deref(),
                Some(commit)
            );
            finish(
                &mut queue,
                last(&order(commit), NOW, BackgroundEnd::Reviewed, None),
            );
        }
        assert!(!is_due(&queue) && all_waiting(&queue).is_empty());
    }

    #[test]
    fn a_killed_review_and_later_commits_lose_nothing() {
        // The later commits are on the same branch: one review starts before all of them.
        let mut queue = with(&["a"]);
        claim(&mut queue, WORKER);
        submit(&mut queue, order("b"), &every);
        submit(&mut queue, order("c"), &every);
        recover(&mut queue, NOW);
        let taken = claim(&mut queue, WORKER).unwrap();
        assert_eq!(
            (taken.commit.as_str(), taken.from.as_deref()),
            ("c", Some("before a"))
        );
        // The next process dies too: the commits that it covers are kept.
        submit(&mut queue, order("d"), &every);
        recover(&mut queue, NOW);
        assert_eq!(
            claim(&mut queue, WORKER).unwrap().from.as_deref(),
            Some("before a")
        );
        // They are on another branch: both wait.
        let mut queue = with(&["a"]);
        claim(&mut queue, WORKER);
        submit(&mut queue, order("b"), &none);
        recover(&mut queue, NOW);
        assert_eq!(all_waiting(&queue), ["a", "b"]);
    }

    #[test]
    fn a_commit_that_is_held_does_not_keep_others_from_their_review() {
        let mut queue = with(&["a"]);
        claim(&mut queue, WORKER);
        submit(&mut queue, order("b"), &none);
        hold(&mut queue, "no price");
        assert_eq!(all_waiting(&queue), ["a", "b"]);
        assert!(is_due(&queue));
        assert_eq!(
            claim(&mut queue, WORKER).map(|o| o.commit).as_deref(),
            Some("b")
        );
        finish(
            &mut queue,
            last(&order("b"), NOW, BackgroundEnd::Reviewed, None),
        );
        assert!(!is_due(&queue));
        assert_eq!(resume(&mut queue).as_deref(), Some("a"));
        assert!(is_due(&queue));
    }

    #[test]
    fn the_commits_that_wait_are_bounded_and_a_dropped_one_is_the_last_result() {
        let mut queue = empty();
        (0..MOST).for_each(|n| submit(&mut queue, order(&n.to_string()), &none));
        assert_eq!(
            (all_waiting(&queue).len(), queue.last.clone()),
            (MOST, None)
        );
        submit(&mut queue, order("newest"), &none);
        assert_eq!(
            (all_waiting(&queue).len(), all_waiting(&queue).last()),
            (MOST, Some(&"newest"))
        );
        let last = queue.last.unwrap();
        assert_eq!(
            (last.commit.as_str(), last.ending),
            ("0", BackgroundEnd::Abandoned)
        );
        assert_eq!(
            last.note.as_deref(),
            Some("not reviewed: more than 256 commits wait")
        );
    }

    #[test]
    fn a_commit_whose_process_died_waits_again_until_it_died_too_often() {
        let mut queue = with(&["a"]);
        for attempt in 1..MAX_ATTEMPTS {
            claim(&mut queue, WORKER);
            recover(&mut queue, NOW);
            assert_eq!(
                queue.waiting.as_ref().map(|w| w.order.attempts),
                Some(attempt)
            );
        }
        claim(&mut queue, WORKER);
        recover(&mut queue, NOW);
        assert_eq!(
            (waits(&queue), queue.last.as_ref().map(|l| l.ending)),
            (None, Some(BackgroundEnd::Abandoned))
        );
    }

    #[test]
    fn a_commit_whose_process_died_does_not_replace_a_newer_one() {
        let mut queue = with(&["a"]);
        claim(&mut queue, WORKER);
        submit(&mut queue, order("b"), &every);
        recover(&mut queue, NOW);
        assert_eq!((waits(&queue), queue.running.is_some()), (Some("b"), false));
    }

    #[test]
    fn a_commit_that_is_held_is_not_due_until_it_is_submitted_again() {
        let mut queue = with(&["a"]);
        claim(&mut queue, WORKER);
        hold(&mut queue, "no money");
        assert!(!is_due(&queue));
        assert_eq!(
            queue.waiting.as_ref().and_then(|w| w.held.as_deref()),
            Some("no money")
        );
        submit(&mut queue, order("a"), &every);
        assert!(is_due(&queue));
    }

    #[test]
    fn a_hold_does_not_replace_a_newer_commit() {
        let mut queue = with(&["a"]);
        claim(&mut queue, WORKER);
        submit(&mut queue, order("b"), &every);
        hold(&mut queue, "no money");
        assert_eq!(waits(&queue), Some("b"));
        assert!(is_due(&queue));
    }

    #[test]
    fn a_review_that_a_person_stops_does_not_come_back() {
        let failed = last(&order("a"), NOW, BackgroundEnd::Failed, None);
        assert_eq!(
            end_of_stopped(|q| recover(q, NOW)),
            (None, Some(BackgroundEnd::Stopped))
        );
        assert_eq!(
            end_of_stopped(|q| finish(q, failed)),
            (None, Some(BackgroundEnd::Stopped))
        );
    }

    /// Stops a review while another commit waits, and ends it. Returns the waiting commit and how
    /// the review ended.
    fn end_of_stopped(
        finish_it: impl FnOnce(&mut Queue),
    ) -> (Option<String>, Option<BackgroundEnd>) {
        let mut queue = with(&["a"]);
        claim(&mut queue, WORKER);
        submit(&mut queue, order("b"), &every);
        stop(&mut queue);
        finish_it(&mut queue);
        (
            waits(&queue).map(str::to_owned),
            queue.last.as_ref().map(|l| l.ending),
        )
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
