//! Remembers what functions of the file say about their arguments, as checks.
//!
//! Every statement that calls a function of the file asks whether the function checks its
//! arguments, and a run for that asks it again of the functions that it calls. Without a memory,
//! three quarters of the steps of files in C were such runs, and four fifths of these runs
//! repeated an earlier one.

use super::run::FlowRun;
use super::shape::FunctionId;
use super::value::FlowValue;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

/// Runs of a file that are remembered, at most.
const MOST_CHECKS: usize = 4096;

/// A run of a function for a check: the function, and a hash of all that the run depends on.
pub(super) type CheckKey = (FunctionId, u64);

/// The result of a run for a check.
#[derive(Clone, Debug)]
pub(super) struct KnownCheck {
    /// The kinds of sinks for which each argument is harmless after the call.
    kinds: Rc<[u32]>,
    /// Steps of work that the run took.
    work: u64,
    /// Depth at the start of the run.
    depth: u32,
}

/// The results of runs for checks, while the variables of the file and the objects of its classes
/// stay the same.
#[derive(Debug, Default)]
pub(super) struct CheckMemo {
    known: HashMap<CheckKey, KnownCheck>,
}

impl CheckMemo {
    /// Forgets all results, because something changed that every run can read.
    pub(super) fn clear(&mut self) {
        self.known.clear();
    }

    /// Returns the result of a run that would take less than this work, from this depth.
    fn get(&self, key: CheckKey, work: u64, depth: u32) -> Option<&KnownCheck> {
        self.known
            .get(&key)
            .filter(|known| known.work < work && depth <= known.depth)
    }

    /// Remembers a result, unless there are too many.
    fn insert(&mut self, key: CheckKey, known: KnownCheck) {
        if self.known.len() < MOST_CHECKS || self.known.contains_key(&key) {
            self.known.insert(key, known);
        }
    }
}

/// A run for a check that has started.
pub(super) struct StartedCheck {
    key: CheckKey,
    work: u64,
    depth: u32,
    /// Bodies that calls had run before.
    invoked: u64,
    /// False if a limit had ended a run before.
    was_complete: bool,
}

impl FlowRun<'_> {
    /// Returns the key of a run for a check. `None`: the run depends on more than the key says.
    ///
    /// The run of a function that is nested in another one depends on the variables of that one,
    /// and while the statements of the file run, a function sees the variables set so far.
    pub(super) fn check_key(
        &self,
        f: FunctionId,
        params: &[FlowValue],
        this: Option<&FlowValue>,
        outcome: Option<bool>,
    ) -> Option<CheckKey> {
        let is_nested = self.nested.get(f.0 as usize).copied().unwrap_or_default();
        let is_in_function = self.frames.iter().any(|x| x.function.is_some());
        if is_nested || !(self.has_globals || is_in_function) {
            return None;
        }
        let mut h = std::hash::DefaultHasher::new();
        // The frames decide about recursion, depth, and the meaning of the name of the object.
        for frame in &self.frames {
            (frame.function, frame.class).hash(&mut h);
        }
        (self.frames.len(), outcome, self.into, self.is_in_outcome).hash(&mut h);
        (&self.listed, &self.segments, &self.unfinished).hash(&mut h);
        // Arguments that are bound to a function are without data if they were reported.
        self.found.len().hash(&mut h);
        for value in params {
            value.feed_wholly(&mut h);
        }
        this.is_some().hash(&mut h);
        if let Some(this) = this {
            this.feed_wholly(&mut h);
        }
        Some((f, h.finish()))
    }

    /// Returns the result of an equal earlier run, and counts its work: a memory that saved work
    /// would move the point at which a limit ends the analysis.
    pub(super) fn known_check(&mut self, key: CheckKey) -> Option<Rc<[u32]>> {
        let known = self.checks.get(key, self.work, self.depth)?;
        self.work -= known.work;
        Some(Rc::clone(&known.kinds))
    }

    /// Starts a run whose result may be remembered.
    pub(super) fn start_check(&mut self, key: CheckKey) -> StartedCheck {
        StartedCheck {
            key,
            work: self.work,
            depth: self.depth,
            invoked: self.invoked,
            was_complete: std::mem::replace(&mut self.is_complete, true),
        }
    }

    /// Ends a run. Remembers its result if another run would be the same: no limit ended it, and it
    /// found the results of all calls in the memory of calls.
    pub(super) fn end_check(&mut self, started: StartedCheck, kinds: &[u32]) {
        let is_whole = self.is_complete && self.work > 0;
        self.is_complete &= started.was_complete;
        if is_whole && self.invoked == started.invoked {
            let known = KnownCheck {
                kinds: kinds.into(),
                work: started.work - self.work,
                depth: started.depth,
            };
            self.checks.insert(started.key, known);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a result that took some work, from a depth.
    fn known(work: u64, depth: u32) -> KnownCheck {
        KnownCheck {
            kinds: [1, 2].as_slice().into(),
            work,
            depth,
        }
    }

    #[test]
    fn a_result_is_found_by_its_key_while_work_and_depth_suffice() {
        let mut memo = CheckMemo::default();
        memo.insert((FunctionId(1), 7), known(10, 5));
        let kinds = |key, work, depth| memo.get(key, work, depth).map(|k| k.kinds.to_vec());
        assert_eq!(kinds((FunctionId(1), 7), 11, 5), Some(vec![1, 2]));
        assert_eq!(kinds((FunctionId(1), 7), 10, 5), None);
        assert_eq!(kinds((FunctionId(1), 7), 11, 6), None);
        assert_eq!(kinds((FunctionId(1), 8), 11, 5), None);
        assert_eq!(kinds((FunctionId(2), 7), 11, 5), None);
    }

    #[test]
    fn the_number_of_results_is_bounded() {
        let mut memo = CheckMemo::default();
        for hash in 0..2 * MOST_CHECKS as u64 {
            memo.insert((FunctionId(0), hash), known(1, 0));
        }
        assert_eq!(memo.known.len(), MOST_CHECKS);
        memo.clear();
        assert!(memo.get((FunctionId(0), 0), u64::MAX, 0).is_none());
    }
}
