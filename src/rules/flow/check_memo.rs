//! Remembers the results of functions of the file that check their arguments.
//!
//! Every statement that calls a function of the file asks whether the function checks its
//! arguments, and a run for that asks it again of the functions that it calls. Without a memory,
//! three quarters of the steps of files in C were such runs, and four fifths of these runs
//! repeated an earlier one.

use super::shape::FunctionId;
use std::collections::HashMap;
use std::rc::Rc;

/// Runs of a file that are remembered, at most.
const MOST_CHECKS: usize = 4096;

/// A run of a function for a check: the function, and a hash of all that the run depends on.
pub(super) type CheckKey = (FunctionId, u64);

/// The result of a run for a check.
#[derive(Clone, Debug)]
pub(super) struct KnownCheck {
    /// The kinds of sinks for which each argument is harmless after the call.
    pub(super) kinds: Rc<[u32]>,
    /// Steps of work that the run took.
    pub(super) work: u64,
    /// Depth at the start of the run.
    pub(super) depth: u32,
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
    pub(super) fn get(&self, key: CheckKey, work: u64, depth: u32) -> Option<&KnownCheck> {
        self.known
            .get(&key)
            .filter(|known| known.work < work && depth <= known.depth)
    }

    /// Remembers a result, unless there are too many.
    pub(super) fn insert(&mut self, key: CheckKey, known: KnownCheck) {
        if self.known.len() < MOST_CHECKS || self.known.contains_key(&key) {
            self.known.insert(key, known);
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
